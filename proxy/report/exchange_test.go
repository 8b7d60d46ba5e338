package report

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

func TestRequestThatIsNotFollowedCostsNothing(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/_search", http.NoBody)
	if n := testing.AllocsPerRun(100, func() {
		x := Follow(r, false, nil)
		x.Name(http.MethodGet, "/_search")
		x.Note(Rewritten, "", time.Second)
		x.End(r, http.StatusOK, 0, true)
		check.That(t, x == nil, "it is followed")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
