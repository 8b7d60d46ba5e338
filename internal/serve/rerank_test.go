package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/embedding"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/cache"
)

func TestVectorsOfTheCluster(t *testing.T) {
	answer := ""
	client := clientOf(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/i/_settings":
			_, _ = io.WriteString(w, `{"i":{"settings":{"index":{"uuid":"ui"}}}}`)
		case "/i,j/_settings":
			_, _ = io.WriteString(w, `{"j":{"settings":{"index":{"uuid":"uj"}}},"i":{"settings":{"index":{"uuid":"ui"}}}}`)
		case "/i", "/i/_mapping":
			_, _ = io.WriteString(w, `{"i":{"mappings":{"properties":{"body":{"type":"text","copy_to":"all"},"all":{"type":"text"}}},"settings":{}}}`)
		default:
			_, _ = io.WriteString(w, answer)
		}
	})))
	v := termVectors{documents.API{Client: client}}
	ids := make([]string, 2)
	err := v.UUIDs(t.Context(), []string{"i", "j"}, ids)
	check.That(t, err == nil && ids[0] == "ui" && ids[1] == "uj", "%q, %v", ids, err)
	for field, want := range map[string]bool{"body": true, "all": false} {
		got, err := v.Readable(t.Context(), "i", field)
		check.That(t, got == want && err == nil, "%s: %v, %v", field, got, err)
	}
	r := soft.New(soft.Options{Vectors: v, TTL: time.Minute})
	defer r.Close()
	hit := expand.Hit{Index: "i", ID: "1"}
	scores := func() error {
		by := &expand.Rerank{Fields: []expand.RerankField{{Field: "body", Boost: 1, Terms: []string{"car"}, Freqs: []float64{1}, Similarities: oneRow{}}}}
		_, err := r.Scores(t.Context(), by, []expand.Hit{hit})
		return err
	}
	answer = `{"docs":[{"_index":"i","_id":"1","error":{"type":"index_not_found_exception"}}]}`
	err = scores()
	check.That(t, cause(err) == "unknown_to_cluster", "an index that is gone: %v", err)
	answer = `{"docs":[` + strings.Repeat(" ", 33<<20) + `]}`
	check.Error(t, soft.ErrTooLarge, scores(), "a large answer")
	hit = expand.Hit{Index: "i", SeqNo: 3}
	answer = `{"hits":{"hits":[]}}`
	err = scores()
	check.That(t, cause(err) == "missing", "a number that no document has any more: %v", err)
}

// A request line has its bounds.
func TestManyIndicesAreAskedForInParts(t *testing.T) {
	var longest, asked int
	client := clientOf(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		longest, asked = max(longest, len(r.RequestURI)), asked+1
		answer := map[string]any{}
		for name := range strings.SplitSeq(strings.Trim(strings.TrimSuffix(r.URL.Path, "_settings"), "/"), ",") {
			answer[name] = map[string]any{"settings": map[string]any{"index": map[string]any{"uuid": "of " + name}}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})))
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("%03d%s", i, strings.Repeat("ü", 20))
	}
	ids := make([]string, len(names))
	check.OK(t, (termVectors{documents.API{Client: client}}).UUIDs(t.Context(), names, ids))
	for i := range names {
		check.That(t, ids[i] == "of "+names[i], "%s has %q", names[i], ids[i])
	}
	check.That(t, longest <= 3500 && asked >= 2 && asked <= 10, "%d requests, the longest of %d bytes", asked, longest)
}

// What one of the two does not know the other orders alone, and the error is
// told.
func TestHitsAreScoredByWhatAnswers(t *testing.T) {
	gone := errors.New("gone")
	model := &embedding.Maker{Documents: func(context.Context, []string) ([][]float32, error) { return nil, gone }}
	r := rerankers{
		soft: soft.New(soft.Options{TTL: time.Minute}), budget: time.Minute,
		vectors: embedding.New(embedding.Options{Maker: model}),
	}
	defer r.vectors.Close()
	fields := []expand.RerankField{{Field: "body", Boost: 1, Terms: []string{"car"}, Freqs: []float64{1}, Similarities: oneRow{}}}
	both, alone := &expand.Rerank{Fields: fields, Text: "car"}, &expand.Rerank{Fields: fields}
	scores, err := r.Scores(t.Context(), alone, nil)
	check.That(t, scores != nil && err == nil, "%v, %v", scores, err)
	scores, err = r.Scores(t.Context(), both, nil)
	check.That(t, scores != nil && errors.Is(err, embedding.ErrModel), "the model does not answer: %v, %v", scores, err)
	r.soft.Close()
	scores, err = r.Scores(t.Context(), both, nil)
	check.That(t, scores == nil && errors.Is(err, cache.ErrClosed), "neither answers: %v, %v", scores, err)
}

func TestReadinessSaysWhatALanguageModelLacks(t *testing.T) {
	down := errors.New("down")
	for want, s := range map[string]embedding.State{
		"":                      {Ready: true},
		"hits keep the order":   {Err: down},
		"the last documents":    {Ready: true, Documents: down},
		"vectors of documents ": {Ready: true, Store: down},
	} {
		lacks := lackingModel(s)
		if want == "" {
			check.Equal(t, 0, len(lacks))
			continue
		}
		check.Must(t, len(lacks) == 1, "%+v says %+v", s, lacks)
		check.That(t, lacks[0].Reason == "model" && strings.HasPrefix(lacks[0].Detail, want) && strings.HasSuffix(lacks[0].Detail, ": down"), "%+v says %+v", s, lacks)
	}
}
