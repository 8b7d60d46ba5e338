package evaluate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

func logged(id string, count int) Query {
	return Query{ID: id, Text: id, Count: count}
}

// both returns the answers of two arms, each written as in "a b c".
func both(query, first, second string) Answered {
	a := Answered{Query: query}
	for i, hits := range []string{first, second} {
		answer := Answer{Took: time.Duration(i+1) * time.Millisecond}
		for id := range strings.FieldsSeq(hits) {
			answer.Hits = append(answer.Hits, Hit{ID: id, Title: "text of " + id})
		}
		a.Answers = append(a.Answers, answer)
	}
	return a
}

func TestCompareCountsSearchesAndNotQueries(t *testing.T) {
	log := []Query{logged("same", 3), logged("changed", 2), logged("gained", 4), logged("lost", 1), logged("refused", 50), logged("none", 10), logged("never sent", 9)}
	answered := []Answered{
		both("same", "a b", "a b"), both("changed", "a b", "b a"), both("gained", "", "a"), both("lost", "a", ""),
		{Query: "refused"},
		both("none", "", ""),
	}
	c := Compare([2]string{"direct", "akin"}, log, answered)
	check.Equal(t, 5, len(c.Each))
	c.Each = nil
	// Of 20 searches, 3 and 10 have overlap 1, and so have the 2 of the same two
	// documents.
	want := &Comparison{
		Arms: [2]ComparedArm{
			{Name: "direct", WithoutHits: 14, Latency: Latency{1, 1, 1}},
			{Name: "akin", WithoutHits: 11, Latency: Latency{2, 2, 2}},
		},
		Queries: 5, Searches: 20, Overlap: 0.75, ChangedFirst: 2, Gained: 4, Lost: 1, Refused: []string{"refused"},
	}
	check.Equal(t, want, c)
	if c := Compare([2]string{"a", "b"}, nil, nil); c.Overlap != 0 { // and not NaN
		t.Errorf("of nothing: %+v", c)
	}
}

func TestRefusedQueriesAreLeftOutAndOthersEndTheRun(t *testing.T) {
	refused, away := errors.New("parsing_exception"), errors.New("no node")
	arms := []Arm{{Name: "a", Search: func(_ context.Context, body []byte) (Answer, error) {
		return Answer{}, map[string]error{"bad": refused, "worse": away}[string(body)]
	}}}
	answered, err := Search(t.Context(), arms, []Query{{ID: "bad"}, {ID: "good"}, {ID: "worse"}, {ID: "never"}}, SearchOptions{
		Body:    func(q Query) ([]byte, error) { return []byte(q.ID), nil },
		Refused: func(err error) bool { return errors.Is(err, refused) },
	})
	check.That(t, errors.Is(err, away) && len(answered) == 2 && answered[0].Answers == nil && len(answered[1].Answers) == 1, "%+v, %v", answered, err)
}
