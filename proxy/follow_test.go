package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// A rememberer is a Reranker that is only asked to remember.
type rememberer struct {
	rerankerFunc

	got chan []expand.Hit
	err error
}

func (r *rememberer) Remember(_ context.Context, by *expand.Rerank, hits []expand.Hit) error {
	if by.Key.Kind != "k" {
		return errors.New("another key")
	}
	r.got <- hits
	return r.err
}

// notRemembered rewrites searches as the mode auto does where hits are not
// remembered.
func notRemembered(ctx context.Context, r *expand.Request) (*expand.Result, error) {
	if r.Warm {
		found, err := rerankAll(ctx, r)
		found.Parts[0].Rerank.Key.Kind = "k"
		return found, err
	}
	again := *r
	again.Warm = true
	return &expand.Result{
		Rewritten: true, RawQuery: r.RawQuery, Body: []byte(rewritten), Parts: []expand.Part{{Index: r.Index, FollowUp: &again}},
		Clauses: []expand.Explanation{{Path: "query.match", Field: "body", Form: "saturated", Reason: "not_remembered"}},
	}, nil
}

// hits answers searches for hits to remember by one function, and others with
// any answer.
func hitsBy(remembered func(int, rawRequest) string) func(int, rawRequest) string {
	return func(n int, r rawRequest) string {
		if r.body == rerankedBody {
			return remembered(n, r)
		}
		return answerOf(originalAnswer)
	}
}

// The client gets its answer first. Then, with its credentials, the hits are
// found that would have been put in order, and remembered.
func TestHitsOfSearchesAreRememberedInTheBackground(t *testing.T) {
	by := &rememberer{got: make(chan []expand.Hit, 1)}
	p := startRerank(t, expander(notRemembered), by, hitsBy(frames(threeHits)))
	got := p.post(t, "/t/_search", jsonType+"Authorization: Basic x\n", "{}")
	check.Equal(t, originalAnswer, bodyOf(got))
	hits := <-by.got
	check.That(t, len(hits) == 3 && hits[1].Version == 7, "remembered %+v", hits)
	sent := p.all()
	check.Equal(t, []string{"Basic x"}, sent[1].get("Authorization"))
	check.That(t, strings.Contains(sent[1].line, "/t/_search"), "%s", sent[1].line)
	waitFor(t, "the count", func() bool { return p.value(t, "akin_follow_ups_total", "result", rememberedHits) == 1 })
	p.counted(t, 1, "akin_reranked_total", "result", rerankNotRemembered)
	p.became(t, "rewritten", "")
}

func TestFollowUpsThatFailAreCounted(t *testing.T) {
	unnamed := strings.ReplaceAll(threeHits, `"_version"`, `"version"`)
	for name, c := range map[string]struct {
		answer string
		err    error
	}{
		"refused":        {"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}", nil},
		"no answer":      {answerOf("[]"), nil},
		"unnamed hits":   {answerOf(unnamed), nil},
		"not remembered": {answerOf(threeHits), errors.New("a reason")},
	} {
		t.Run(name, func(t *testing.T) {
			by := &rememberer{got: make(chan []expand.Hit, 1), err: c.err}
			p := startRerank(t, expander(notRemembered), by, hitsBy(func(int, rawRequest) string { return c.answer }))
			check.Equal(t, originalAnswer, bodyOf(p.post(t, "/t/_search", jsonType, "{}")))
			waitFor(t, "the count", func() bool { return p.value(t, "akin_follow_ups_total", "result", rememberFailed) == 1 })
			p.counted(t, 0, "akin_fail_open_total")
		})
	}
}

// A search is not followed for the client that only wants to see what would be
// sent, and where nothing ranks hits.
func TestSearchesThatAreNotSentAreNotFollowed(t *testing.T) {
	by := &rememberer{got: make(chan []expand.Hit, 1)}
	p := startRerank(t, expander(notRemembered), by, hitsBy(frames(threeHits)))
	p.post(t, "/t/_search?akin=dry-run", jsonType, "{}")
	p.server.Close()
	check.Equal(t, 1, len(p.all()))
	p = startRerank(t, expander(notRemembered), nil, hitsBy(frames(threeHits)))
	p.post(t, "/t/_search", jsonType, "{}")
	p.server.Close()
	check.Equal(t, 1, len(p.all()))
}

// One runs at a time, and after it there is a pause.
func TestFollowUpsTakeAFifthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower()
		defer f.background.close()
		check.That(t, f.begin() && !f.begin(), "two run")
		f.background.release()
		f.end(f.rest(10*time.Millisecond, 1, nil))
		check.Elapse(39 * time.Millisecond)
		check.That(t, !f.begin(), "no pause")
		check.Elapse(time.Millisecond)
		check.That(t, f.begin(), "too long a pause")
		f.background.release()
		f.end(f.rest(10*time.Millisecond, 3, nil))
		check.Elapse(119 * time.Millisecond)
		check.That(t, !f.begin(), "no pause for all shards")
		check.Elapse(time.Millisecond)
		check.That(t, f.begin(), "too long a pause for all shards")
		f.background.release()
		f.end(f.rest(0, 0, errors.New("a reason")))
		check.Elapse(restAfterFailure - 1)
		check.That(t, !f.begin(), "no pause after a failure")
	})
}
