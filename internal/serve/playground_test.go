package serve

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/akin-search/akin/e2e/check"
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
		err := json.Unmarshal(w.Body.Bytes(), &got)
		check.Must(t, err == nil && w.Code == http.StatusOK, "%s: %d %s", word, w.Code, w.Body)
		neighbors := len(got.Neighbors)
		check.That(t, (neighbors > 0) == (got.Term == "kidnei"), "%s: %d neighbors", word, neighbors)
		got.Version, got.Neighbors = "", nil
		check.Equal(t, want, got, word)
	}
}
