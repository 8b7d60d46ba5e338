package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForwardedRequestsAnswerAsWithoutAkin runs the table twice directly and
// once through akin, each time from a clean slate. The two direct runs have
// to agree, which shows that the comparison is fair; the third has to agree
// with them.
func TestForwardedRequestsAnswerAsWithoutAkin(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		steps := forwardSteps(t)
		matrix := relatedFile(t, "car 1 0\nautomobile 0.9 0.1\nnumber -0.1 0.9\n")
		a := startAkin(t, section{
			"cluster":  section{"urls": []string{e.url}},
			"matrices": []section{{"name": "main", "indices": []string{"*"}, "fields": []string{"*"}, "file": matrix}},
		})
		first, second, through := runSteps(t, e, e.url, steps), runSteps(t, e, e.url, steps), runSteps(t, e, a.url, steps)
		for i, s := range steps {
			t.Run(s.name, func(t *testing.T) {
				want := first[i].stable(t)
				if diff := cmp.Diff(want, second[i].stable(t)); diff != "" {
					t.Fatalf("%s %s: two direct calls differ (-first +second):\n%s", s.method, s.target, diff)
				}
				if diff := cmp.Diff(want, through[i].stable(t)); diff != "" {
					t.Errorf("%s %s (-direct +through akin):\n%s", s.method, s.target, diff)
				}
			})
		}
	})
}

var scrollID = regexp.MustCompile(`"_scroll_id":"([^"]*)"`)

// runSteps sends the steps to base, one after the other, on an engine that
// has none of the indices that they make.
func runSteps(t *testing.T, e *engine, base string, steps []forwardStep) []rawResponse {
	t.Helper()
	e.dropIndex("akin-e2e-fwd")
	t.Cleanup(func() { e.dropIndex("akin-e2e-fwd") })
	answers := make([]rawResponse, 0, len(steps))
	scroll := ""
	for _, s := range steps {
		r := s.rawRequest
		if s.scroll {
			r.body = strings.ReplaceAll(r.body, "SCROLL", scroll)
		}
		answer := exchange(t, base, r)
		if m := scrollID.FindStringSubmatch(answer.body); m != nil {
			scroll = m[1]
		}
		answers = append(answers, answer)
	}
	return answers
}
