package serve

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/simmatrix"
)

func TestThePlaygroundLooksWordsUpAsPeopleWriteThem(t *testing.T) {
	m := matrixOf(t, []simmatrix.TermRow{
		{Term: "kidnei", Form: "kidney", DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 1}}},
		{Term: "renal"},
		{Term: "ga", Form: "gas"},
		{Term: "gaa", Form: "ga"},
	}...)
	a, _ := startAppOf(t, refusingCluster(t, http.StatusOK), m, nil)
	for word, want := range map[string]playground.Row{
		"kidney": {Term: "kidnei", Word: "kidney", DocFreq: 5}, "Kidney": {Term: "kidnei", Word: "kidney", DocFreq: 5}, "kidnei": {Term: "kidnei", Word: "kidney", DocFreq: 5},
		"renal": {Term: "renal"}, "ga": {Term: "gaa", Word: "ga"}, "gas": {Term: "ga", Word: "gas"},
		"kidnay": {Term: "kidnay", Nearest: "kidney"}, "zebra": {Term: "zebra"},
	} {
		w := call(a.server.AdminHandler(), http.MethodPost, "/_akin/playground/neighbors", `{"matrix":"main","term":"`+word+`"}`,
			func(r *http.Request) { r.Host = "localhost" })
		var got playground.Row
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", word, w.Code, w.Body)
		}
		if neighbors := len(got.Neighbors); (neighbors > 0) != (got.Term == "kidnei") {
			t.Errorf("%s: %d neighbors", word, neighbors)
		}
		got.Version, got.Neighbors = "", nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", word, diff)
		}
	}
}
