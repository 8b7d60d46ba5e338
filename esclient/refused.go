package esclient

import (
	"errors"
	"net/http"
	"strings"

	"github.com/akin-search/akin/esclient/answers"
)

// IsUnknown reports whether the cluster refused a call of akin's own for an
// index that is missing or closed, or for an analyzer that it does not have.
func IsUnknown(err error) bool {
	var refused *answers.Error
	return errors.As(err, &refused) && !IsBarred(err) &&
		(refused.Status == http.StatusBadRequest || refused.Status == http.StatusNotFound)
}

// IsBarred reports whether the cluster refused a call for its setting
// search.allow_expensive_queries, which bars queries of nested fields too:
// their document frequencies are counted by one. All engines say it in the
// same words.
func IsBarred(err error) bool {
	const words = "queries cannot be executed when 'search.allow_expensive_queries' is set to false"
	var refused *answers.Error
	return errors.As(err, &refused) && refused.Type == "exception" && strings.Contains(refused.Reason, words)
}
