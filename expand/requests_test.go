package expand_test

import (
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

// The other request files are replayed beside the forms, in expand/form.
func TestRequestsBecomeWhatTheirFilesSay(t *testing.T) {
	requests.Replay(t, "../e2e/testdata/requests", func(f *requests.File) bool { return !f.OfForm() })
}
