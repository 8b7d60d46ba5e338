package serve

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

func TestThePlaygroundLooksWordsUpAsPeopleWriteThem(t *testing.T) {
	m, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "kidnei", Form: "kidney", DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 1}}},
		{Term: "renal"},
		{Term: "ga", Form: "gas"},
		{Term: "gaa", Form: "ga"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := configs.Default()
	cfg.Cluster.URLs = []string{refusingCluster(t, http.StatusOK)}
	cfg.Matrices = []configs.Matrix{{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}}}
	a, err := New(t.Context(), Options{Config: cfg, Files: map[string]store.Loader{"main": store.InMemory(m)}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	for word, want := range map[string]playground.Row{
		"kidney": {Term: "kidnei", Word: "kidney", DocFreq: 5}, "Kidney": {Term: "kidnei", Word: "kidney", DocFreq: 5}, "kidnei": {Term: "kidnei", Word: "kidney", DocFreq: 5},
		"renal": {Term: "renal"}, "ga": {Term: "gaa", Word: "ga"}, "gas": {Term: "ga", Word: "gas"},
		"kidnay": {Term: "kidnay", Nearest: "kidney"}, "zebra": {Term: "zebra"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/_akin/playground/neighbors", strings.NewReader(`{"matrix":"main","term":"`+word+`"}`))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		a.server.AdminHandler().ServeHTTP(w, r)
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
