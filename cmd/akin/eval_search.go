package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/tools/evaluate"
)

// A target is where the searches of an arm go.
type target struct {
	client *esclient.Client
	admin  *esclient.Client // nil where no akin is asked
	off    bool             // akin is asked to leave searches alone
	index  string
	title  string // the field with titles, "" for none

	profile string
}

const (
	searchTimeout   = time.Minute
	maxSearchAnswer = 256 << 20
)

// call is a search with what is asked of akin.
func (t *target) call(body []byte) esclient.Call {
	header := http.Header{}
	if t.off {
		header.Set("X-Akin", "off")
	}
	if t.admin != nil {
		header.Set("X-Akin", "explain")
	}
	if t.profile != "" {
		header.Set("X-Akin-Profile", t.profile)
	}
	return esclient.Call{
		Method: http.MethodPost, Path: esclient.IndexPath(t.index, "/_search"), Header: header, Body: body,
		Timeout: searchTimeout, Limit: maxSearchAnswer,
	}
}

// search sends a body and, where akin gets it, asks what became of it.
func (t *target) search(ctx context.Context, body []byte) (a evaluate.Answer, err error) {
	var id string
	var text []byte
	began := time.Now()
	err = t.client.Send(ctx, t.call(body), func(h http.Header, r io.Reader) (err error) {
		id = h.Get("X-Akin-Explanation") // of akin
		text, err = io.ReadAll(r)
		return err
	})
	a.Took = time.Since(began)
	if err != nil {
		return a, err
	}
	if a.Hits, err = t.hits(text); err != nil || t.admin == nil {
		return a, err
	}
	var explanation struct {
		Reason  string               `json:"reason"`
		Outcome string               `json:"outcome"`
		Trial   string               `json:"trial"`
		Clauses []expand.Explanation `json:"clauses"`
	}
	err = t.admin.Do(ctx, esclient.Call{Path: "/_akin/explanations/" + id}, &explanation)
	if refused, ok := errors.AsType[*esclient.Error](err); ok && refused.Status == http.StatusNotFound && id != "" {
		a.Unexplained = true // other searches have taken its place
		return a, nil
	}
	if err == nil && explanation.Reason == "unknown_profile" {
		err = fmt.Errorf("akin has no profile %q", t.profile)
	}
	if err == nil && explanation.Trial != "" {
		err = fmt.Errorf("akin has the search in the trial %q, which chooses its settings: name them, profile:NAME", explanation.Trial)
	}
	a.FailedOpen = explanation.Outcome == "failed_open"
	a.Added = addedBy(explanation.Clauses)
	return a, err
}

func addedBy(clauses []expand.Explanation) []evaluate.AddedTerm {
	added := []evaluate.AddedTerm{}
	for _, c := range clauses {
		for _, t := range c.Added {
			added = append(added, evaluate.AddedTerm{
				Term: t.Term, Word: t.Word, From: t.From, FromWord: c.Words[t.From], Boost: t.Boost,
			})
		}
		for _, t := range c.Feedback {
			added = append(added, evaluate.AddedTerm{Term: t.Term, Word: t.Word, Boost: t.Boost})
		}
	}
	return added
}

// hits reads an answer. One that is not whole is an error.
func (t *target) hits(text []byte) ([]evaluate.Hit, error) {
	var answer struct {
		TimedOut bool                 `json:"timed_out"`
		Shards   struct{ Failed int } `json:"_shards"`
		Hits     struct {
			Hits []struct {
				ID     string         `json:"_id"`
				Score  *float64       `json:"_score"`
				Source map[string]any `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("the answer to a search: %w", err)
	}
	if answer.TimedOut || answer.Shards.Failed > 0 {
		return nil, fmt.Errorf("the answer is not whole: %d shards failed, timed out: %t", answer.Shards.Failed, answer.TimedOut)
	}
	hits := make([]evaluate.Hit, len(answer.Hits.Hits))
	for i, h := range answer.Hits.Hits {
		hits[i] = evaluate.Hit{ID: h.ID, Score: float64(len(hits) - i)}
		if h.Score != nil {
			hits[i].Score = *h.Score
		}
		hits[i].Title, _ = h.Source[t.title].(string)
	}
	return hits, nil
}

// Missing returns which of the documents are not in the index.
func (s *armSet) Missing(ctx context.Context, documents []string) (missing []string, err error) {
	const atOnce = 1000
	for some := range slices.Chunk(documents, atOnce) {
		body, err := json.Marshal(map[string]any{
			"size": len(some), "_source": false, "query": map[string]any{"ids": map[string]any{"values": some}},
		})
		if err != nil {
			return nil, err
		}
		direct := &target{client: s.first.client, index: s.first.index, off: s.first.admin != nil || s.first.off}
		found, err := direct.search(ctx, body)
		if err != nil {
			return nil, err
		}
		there := make(map[string]bool, len(some))
		for _, h := range found.Hits {
			there[h.ID] = true
		}
		for _, id := range some {
			if !there[id] {
				missing = append(missing, id)
			}
		}
	}
	return missing, nil
}
