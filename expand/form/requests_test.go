package form_test

import (
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

func TestRequestsBecomeWhatTheirFilesSay(t *testing.T) {
	requests.Replay(t, "../../e2e/testdata/requests", (*requests.File).OfForm)
}
