package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/rerank"
	"github.com/akin-search/akin/simmatrix"
)

func TestCausesOfTheEnginesOrder(t *testing.T) {
	for err, want := range map[error]string{
		rerank.ErrMissing: "missing", rerank.ErrNoTerms: "no_terms", rerank.ErrBusy: "busy", context.DeadlineExceeded: "budget",
		rerank.ErrClosed: "error", &esclient.Error{Status: http.StatusNotFound}: "unknown_to_cluster",
	} {
		if got := cause(fmt.Errorf("hits: %w", err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestRerankerIsMadeForTheModeSoftAlone(t *testing.T) {
	cfg := configs.Default()
	if softly(cfg) {
		t.Error("made by default")
	}
	cfg.Profiles["p"] = configs.Profile{Rewriting: configs.Rewriting{Mode: configs.ModeSoft}}
	if !softly(cfg) {
		t.Error("not made for a profile")
	}
	cfg = configs.Default()
	cfg.Expansion.Mode = configs.ModeSoft
	if !softly(cfg) {
		t.Error("not made for all")
	}
}

// oneRow is S and W of a single term.
type oneRow struct{}

func (oneRow) Version() string { return "one@1" }

func (oneRow) ID() string { return "one" }

func (oneRow) Docs() int64 { return 10 }

func (oneRow) Rows(_ context.Context, _ []string, rows []simmatrix.Row) error {
	clear(rows)
	return nil
}

func TestHitsAreScoredByTheTermsOfTheCluster(t *testing.T) {
	var asked string
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.URL.Path + " " + string(body)
		_, _ = io.WriteString(w, `{"docs":[
			{"_index":"i","_id":"1","found":true,"_version":4,"term_vectors":{"body":{"terms":{"car":{"term_freq":3}}}}},
			{"_index":"i","_id":"2","found":true,"_version":1,"term_vectors":{"body":{"terms":{"car":{"term_freq":1},"boat":{"term_freq":1}}}}}]}`)
	}))
	defer node.Close()
	client, err := esclient.New(esclient.Options{URLs: []string{node.URL}})
	if err != nil {
		t.Fatal(err)
	}
	r := reranker{rerank.New(rerank.Options{Vectors: vectors{client}, Bytes: 1 << 20})}
	defer r.Close()
	how := &expand.Rerank{Fields: []expand.RerankField{{Field: "body", Boost: 1, Terms: []string{"car"}, Freqs: []float64{1}, Similarities: oneRow{}}}}
	hits := []proxy.Hit{{Index: "i", ID: "1", Routing: "r", SeqNo: 1, PrimaryTerm: 1, Version: 4}, {Index: "i", ID: "2", Version: 1}}
	for _, how.Fields[0].Weights = range []expand.Weights{nil, oneRow{}} {
		scores, err := r.Scores(t.Context(), how, hits)
		if err != nil {
			t.Fatal(err)
		}
		if len(scores) != 2 || scores[0] < 0.999999 || scores[0] > 1.000001 || scores[1] < 0.7071 || scores[1] > 0.7072 {
			t.Errorf("got %v, want 1 and √½", scores)
		}
	}
	want := `/_mtermvectors {"docs":[{"_index":"i","_id":"1","routing":"r","fields":["body"]},{"_index":"i","_id":"2","fields":["body"]}]}`
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
