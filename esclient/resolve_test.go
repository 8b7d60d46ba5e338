package esclient

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

func TestExpressionIsResolvedWithTheMappingOfAField(t *testing.T) {
	const text = `"mappings":{"properties":{"body":{"type":"text"}}}`
	many := make([]string, maxResolved+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"i%d":{}`, i)
	}
	for _, tt := range []struct {
		name, answer string
		want         []string
	}{
		{"an alias of two", `{"docs2":{` + text + `},"docs1":{` + text + `}}`, []string{"docs1", "docs2"}},
		{"an index without the field", `{"docs":{` + text + `},"logs":{"settings":{}}}`, []string{"docs", "logs"}},
		{"no index with the field", `{"docs":{},"logs":{}}`, []string{"docs", "logs"}},
		{
			"a data stream", `{".ds-logs-000001":{"data_stream":"logs",` + text + `},".ds-logs-000002":{"data_stream":"logs",` + text + `}}`,
			[]string{"logs"},
		},
		{"a closed index", `{"docs":{` + text + `},"old":{"settings":{"index.verified_before_close":"true"}}}`, []string{"docs"}},
		{"too many", "{" + strings.Join(many, ",") + "}", nil},
		{"none", `{}`, nil},
	} {
		f := clustertest.New().Reply("GET /live", http.StatusOK, tt.answer)
		c := cached(t, f)
		for range 2 {
			names, err := c.Resolve(t.Context(), at("live"), "body")
			check.That(t, err == nil && slices.Equal(names, tt.want), "%s: %q, %v; want %q", tt.name, names, err, tt.want)
		}
		// The schema came in the same call.
		if _, err := c.schema(t.Context(), c.key(at("live"), "body")); err != nil && !errors.Is(err, mapping.ErrNotText) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := c.Resolve(t.Context(), at("live"), "title"); err != nil || f.Asked("") != 1 {
			t.Errorf("%s: %d calls, want 1; error %v", tt.name, f.Asked(""), err)
		}
	}
}

func TestExpressionIsResolvedWhereTheSchemaIsKnown(t *testing.T) {
	f := clustertest.New().Reply("GET /live", http.StatusOK, `{"docs":{}}`)
	c := cached(t, f)
	_, err := c.schema(t.Context(), c.key(at("live"), "body"))
	check.Must(t, errors.Is(err, mapping.ErrNotText), "%v", err)
	names, err := c.Resolve(t.Context(), at("live"), "body")
	check.That(t, err == nil && slices.Equal(names, []string{"docs"}), "%q, %v", names, err)
	c.Forget("live")
	f.Reply("GET /live", http.StatusOK, `{"docs2":{}}`)
	names, err = c.Resolve(t.Context(), at("live"), "body")
	check.That(t, err == nil && slices.Equal(names, []string{"docs2"}), "forgotten: %q, %v", names, err)
}

func TestWhatCannotBeResolvedIsAnError(t *testing.T) {
	f := clustertest.New().Reply("GET /lost", http.StatusNotFound, `{"error":{"root_cause":[{"type":"index_not_found_exception","reason":"no such index [lost]"}]},"status":404}`)
	c := cached(t, f)
	var refused *Error
	names, err := c.Resolve(t.Context(), at("lost"), "body")
	check.That(t, errors.As(err, &refused) && refused.Status == http.StatusNotFound, "%q, %v", names, err)
	names, err = c.Resolve(t.Context(), at("eu:docs"), "body")
	check.That(t, errors.Is(err, ErrRemote), "%q, %v", names, err)
	check.Equal(t, 1, f.Asked(""))
}
