package report

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRequestThatIsNotFollowedCostsNothing(t *testing.T) {
	var got http.ResponseWriter
	h := Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = w
		Name(r, "/_search")
		Note(r.Context(), "rewritten", "")
		Answered(r.Context(), time.Now())
	}), false, nil)
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/_search", http.NoBody)
	if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n != 0 || got != w {
		t.Errorf("%v allocations, and the answer goes to a %T", n, got)
	}
}
