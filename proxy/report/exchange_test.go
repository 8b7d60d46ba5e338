package report

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRequestThatIsNotFollowedCostsNothing(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/_search", http.NoBody)
	if n := testing.AllocsPerRun(100, func() {
		x, got := Follow(r, false, nil)
		Name(got, "/_search")
		Note(got.Context(), "rewritten", "")
		Answered(got.Context(), time.Now())
		x.End(got, http.StatusOK, 0, true)
		if x != nil || got != r {
			t.Error("another request is handled")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
