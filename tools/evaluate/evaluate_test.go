package evaluate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

func hits(ids string, scores ...float64) []Hit {
	var all []Hit
	for i, id := range strings.Fields(ids) {
		all = append(all, Hit{ID: id, Score: scores[i]})
	}
	return all
}

func ids(hits []Hit) string {
	var all []string
	for _, h := range hits {
		all = append(all, fmt.Sprintf("%s %g", h.ID, h.Score))
	}
	return strings.Join(all, ", ")
}

// The expectations are trec_eval's: qsort by sim, a float, then by strcmp of
// docno, both falling.
func TestRankingHasTheTiesOfTrecEval(t *testing.T) {
	for name, test := range map[string]struct {
		hits []Hit
		want string
	}{
		"by falling id":            {hits("a c b d", 2, 1, 1, 0.5), "a 2, c 1, b 1, d 0.5"},
		"bytes, not numbers":       {hits("10 9 100", 1, 1, 1), "9 1, 100 1, 10 1"},
		"equal in 32 bits":         {hits("a b", 1.00000001, 1), "b 1, a 1.00000001"},
		"the engine's other order": {hits("a b c", 1, 3, 2), "a 3, b 2, c 1"},
		"each document once":       {hits("a b a", 3, 2, 1), "a 3, b 2"},
		"nothing":                  {nil, ""},
	} {
		check.Equal(t, test.want, ids(Ranking(test.hits)), name)
	}
}

// arms are two that note who was asked for what; broken is a query that fails.
func arms(broken string) (both []Arm, asked *[]string) {
	asked = new([]string)
	for _, name := range []string{"x", "y"} {
		both = append(both, Arm{Name: name, Search: func(_ context.Context, body []byte) (Answer, error) {
			*asked = append(*asked, name+string(body))
			if string(body) == broken {
				return Answer{}, errors.New("gone")
			}
			return Answer{Hits: hits(string(body)+" "+name, 2, 1), Took: time.Millisecond}, nil
		}})
	}
	return both, asked
}

func body(q Query) ([]byte, error) { return []byte(q.Text), nil }

// options keep the answers in a file and go on with those that are in it.
func options(t *testing.T, file *bytes.Buffer) SearchOptions {
	t.Helper()
	kept := check.Got(ReadKept(file))(t)
	return SearchOptions{Body: body, Kept: kept}
}

var queries = []Query{{ID: "1", Text: "a"}, {ID: "2", Text: "b"}, {ID: "3", Text: "c"}}

func TestArmsTakeTurnsToBeFirst(t *testing.T) {
	both, asked := arms("")
	_, err := Search(t.Context(), both, queries, SearchOptions{Body: body})
	check.OK(t, err)
	check.Equal(t, "xa,xa,ya,ya,yb,xb,xc,yc", strings.Join(*asked, ","), "asked")
}

func TestInterruptedRunGoesOnWithTheSameResult(t *testing.T) {
	var state, all, more bytes.Buffer
	both, _ := arms("")
	want := check.Got(Search(t.Context(), both, queries, options(t, &all)))(t)
	both, _ = arms("c")
	_, err := Search(t.Context(), both, queries, options(t, &state))
	check.Must(t, err != nil && err.Error() == "arm x, query 3: gone", "error %v", err)
	state.WriteString(`{"key":"3","answ`) // a run that was killed
	more.Write(state.Bytes())
	resumed := options(t, &state)
	n := len(resumed.Kept.answers)
	check.Must(t, n == 4, "%d answers", n)
	both, asked := arms("")
	got := check.Got(Search(t.Context(), both, queries, resumed))(t)
	check.Equal(t, want, got)
	check.Equal(t, "xc,xc,yc,yc", strings.Join(*asked, ","), "asked")
	both, asked = arms("")
	both[1].Plan = "another matrix"
	_, err = Search(t.Context(), both, queries[:2], options(t, &more))
	check.That(t, err == nil && strings.Join(*asked, ",") == "ya,ya,yb", "another plan of y: asked %s, %v", *asked, err)
}

// The file may be named by mistake, and must not be written to then.
func TestLinesOfAnotherFileAreNoAnswers(t *testing.T) {
	for _, text := range []string{"what\n", `{"query":"a search"}`, `{"key":"1","answer":{}}` + "\nwhat\n"} {
		check.Message(t, "no answer of an evaluation", check.ErrOf(ReadKept(bytes.NewBufferString(text))), text)
	}
	for _, half := range []string{"", "\n", `{"k`, "\n" + `{"key":"1","answ` + "\n\n"} {
		kept, err := ReadKept(bytes.NewBufferString(half))
		check.That(t, err == nil && len(kept.answers) == 0, "%q: %v, %v", half, kept, err)
	}
}

// Two queries, of which the arm y moves the relevant document of one up from
// rank 2 to 1 and leaves the other alone.
func TestJudgeComparesWithTheFirstArm(t *testing.T) {
	set := &Set{
		Queries: append(queries[:2:2], Query{ID: "not judged", Text: "d"}),
		Grades:  map[string]map[string]float64{"1": {"r": 1}, "2": {"r": 2, "n": 0}, "gone": {"r": 1}},
	}
	same := Answer{Hits: hits("r n", 2, 1), Took: 10 * time.Millisecond}
	answered := []Answered{
		{"1", []Answer{{Hits: hits("n r", 2, 1), Took: 20 * time.Millisecond}, {Hits: hits("r n", 2, 1), Added: []AddedTerm{{}, {}, {}}, Unexpanded: "no_terms"}}},
		{"2", []Answer{same, {Hits: same.Hits, Added: []AddedTerm{}, Unexplained: true}}},
	}
	measures := check.Got(ParseMeasures([]string{"MRR@5", "P@2"}))(t)
	both, _ := arms("")
	r := Judge(set, both, answered, measures)
	x, y := r.Arms[0], r.Arms[1]
	m := x.Measures["MRR@5"]
	check.That(t, m.Mean == .75 && m.Gain == nil, "the first arm: %+v", m)
	// Of four tosses two give as large a sum.
	if m := y.Measures["MRR@5"]; m.Mean != 1 || m.Gain.Mean != .25 || m.Gain.P != m.Gain.Holm || m.Gain.P < .9 || m.Gain.Interval != (Interval{0, .5}) {
		t.Errorf("the second arm: %+v %+v", m, m.Gain)
	}
	m = y.Measures["P@2"]
	check.That(t, m.Mean == .5 && m.Gain.P == 1, "what does not differ: %+v %+v", m, m.Gain)
	check.That(t, x.AddedTerms == nil && *y.AddedTerms == 1.5 && y.Unexpanded["no_terms"] == 1 && y.Warning == "only 0 of 1 searches were expanded" && x.Unjudged == .25, "%+v\n%+v", x, y)
	var table strings.Builder
	err := r.WriteTable(&table)
	check.That(t, err == nil && strings.Contains(table.String(), "\n1 searches of y have no explanation any more"), "%v\n%s", err, &table)
	want := (Latency{10, 20, 20})
	check.That(t, x.Latency == want, "latency %+v, want %+v", x.Latency, want)
	check.Equal(t, LeftOut{Unjudged: []string{"not judged"}, Unknown: []string{"gone"}}, r.LeftOut)
	first := r.Queries[0].Arms[0].Hits
	check.That(t, first[0].Grade == nil && *first[1].Grade == 1, "grades of hits: %+v", first)
}

func TestWarningIsOfSearchesThatShouldHaveBeenExpanded(t *testing.T) {
	count := func(expanded, enough, refused int) *Expansion {
		e := &Expansion{}
		for n, a := range []Answer{{Added: []AddedTerm{}}, {Unexpanded: enoughHits}, {Unexpanded: "rejected"}} {
			for range []int{expanded, enough, refused}[n] {
				e.Add(a)
			}
		}
		return e
	}
	check.Equal(t, "only 89 of 100 searches were expanded", count(89, 0, 11).Warning)
	for _, e := range []*Expansion{count(90, 0, 10), count(10, 80, 10), count(0, 0, 0)} {
		check.Equal(t, "", e.Warning)
	}
	check.Equal(t, "11 rejected, 2 enough_hits", count(89, 2, 11).Why())
}

func TestMeasuresAreNamedStrictly(t *testing.T) {
	for _, names := range []string{"map", "nDCG", "nDCG@0", "P@x", "recall@+5", "MAP@10", "MAP P@1 MAP", "P@010"} {
		check.That(t, check.ErrOf(ParseMeasures(strings.Fields(names))) != nil, "%s: no error", names)
	}
	_, err := ParseMeasures(DefaultMeasures())
	check.OK(t, err)
}

func TestTemplateMayBeginWithAByteOrderMark(t *testing.T) {
	template := check.Got(NewTemplate([]byte("\ufeff"+`{"query":{"match":{"body":"{{query}}"}}}`), 10, ""))(t)
	body, err := template.Body(Query{ID: "1", Text: "car"})
	check.That(t, err == nil && strings.Contains(string(body), `"body":"car"`), "%s, %v", body, err)
}
