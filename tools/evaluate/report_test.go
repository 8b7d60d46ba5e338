package evaluate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// words are what the texts of the sample are made of.
var words = strings.Fields("boundary layer heat transfer slender wing supersonic flow pressure shock")

// sample returns a result as of an evaluation of arms over queries. The second
// arm improves some queries, and harms fewer.
func sample(queries, arms int) *Result {
	r := &Result{Measures: []string{"MAP", "nDCG@10"}, LeftOut: LeftOut{Documents: []string{"471", "995"}, Ungraded: 3}}
	for i := range queries {
		q := QueryResult{Query: Query{ID: fmt.Sprint("q", i+1), Text: words[i%10] + " " + words[(i/3)%10] + " at high angles of attack"}}
		for k := range arms {
			value := 0.1 + 0.4*float64(i*37%100)/100
			if k > 0 {
				value = min(1, max(0, value+float64((i*53+k*11)%41-15)/100))
			}
			ranked := Ranked{Measures: map[string]float64{"MAP": value, "nDCG@10": value / 2}}
			for n := range 10 {
				d := (n*(1+k) + 3*k) % 13 // the arms have most documents in common, in another order
				hit := Hit{ID: fmt.Sprint("doc", d), Score: 10 - float64(n), Title: words[d%10] + " in a wind tunnel"}
				if d%3 == 0 {
					grade := float64(d % 4)
					hit.Grade = &grade
				}
				ranked.Hits = append(ranked.Hits, hit)
			}
			if k > 0 {
				ranked.Added = []AddedTerm{{Term: words[(i+1)%10], From: words[i%10], Boost: 0.4217}, {Term: words[(i+2)%10], Boost: 0.12}}
			}
			q.Arms = append(q.Arms, ranked)
		}
		r.Queries = append(r.Queries, q)
	}
	for k := range arms {
		r.Arms = append(r.Arms, sampleArm(r, k))
	}
	return r
}

func sampleArm(r *Result, k int) ArmResult {
	arm := ArmResult{
		Name: fmt.Sprint("S with C = ", 10*k), Unjudged: 0.12, Measures: map[string]Estimate{},
		Latency: Latency{P50: 3.2 + float64(k), P95: 9 + 3*float64(k), P99: 22},
	}
	if k == 0 {
		arm.Name = "direct"
	}
	for _, m := range r.Measures {
		var values, differences []float64
		for _, q := range r.Queries {
			values = append(values, q.Arms[k].Measures[m])
			differences = append(differences, q.Arms[k].Measures[m]-q.Arms[0].Measures[m])
		}
		e := Estimate{Mean: meanOf(values)}
		e.Interval.Low, e.Interval.High = Bootstrap(values, 0.95)
		if k > 0 {
			p := Randomization(differences)
			e.Gain = &Gain{Mean: meanOf(differences), P: p, Holm: p}
			e.Gain.Interval.Low, e.Gain.Interval.High = Bootstrap(differences, 0.95)
			added := 4.5
			arm.AddedTerms = &added
		}
		arm.Measures[m] = e
	}
	return arm
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

func pageOf(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	check.OK(t, WritePage(&b, r))
	return b.String()
}

func TestFiguresAreWhatTheResultHasDataFor(t *testing.T) {
	withoutTimes := sample(3, 3)
	for k := range withoutTimes.Arms {
		withoutTimes.Arms[k].Latency = Latency{}
	}
	for _, test := range []struct {
		name    string
		result  *Result
		changes int
	}{
		{"one arm", sample(3, 1), 0},
		{"several matrices", sample(3, 3), 2},
		{"no times", withoutTimes, 2},
		{"no queries", sample(0, 2), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			page := pageOf(t, test.result)
			for _, bad := range []string{"NaN", "Inf", "%!", "ZgotmplZ"} {
				check.That(t, !strings.Contains(page, bad), "a value is %s", bad)
			}
			check.Equal(t, test.changes, strings.Count(page, `class="changes"`))
		})
	}
}

func TestHeadlineIsOfAnArmThatIsClearlyBetter(t *testing.T) {
	r := sample(3, 3)
	set := func(k int, mean, p float64) {
		r.Arms[k].Measures["MAP"] = Estimate{Mean: mean, Gain: &Gain{Mean: mean - 0.3, P: p, Holm: p}}
	}
	headline := func() string {
		t.Helper()
		v := newView(r)
		return v.Best.Arm.Name + " " + v.Best.Verdict() + " " + v.Best.First.Name
	}
	set(1, 0.33, 0.01)
	set(2, 0.34, 0.2)
	check.Equal(t, "S with C = 10 ranks better than direct", headline())
	set(1, 0.33, 0.1)
	check.Equal(t, "S with C = 20 is not clearly better or worse than direct", headline())
	set(1, 0.2, 0.01)
	set(2, 0.1, 0.01)
	check.Equal(t, "S with C = 10 ranks worse than direct", headline())
}

func TestMostChangedQueriesAreShown(t *testing.T) {
	r := sample(30, 2)
	for i := range r.Queries { // 0 to 17 are better by i, 18 and 19 as before, 20 to 29 worse
		change := float64(i) / 100
		switch {
		case i >= 20:
			change = -change
		case i >= 18:
			change = 0
		}
		r.Queries[i].Arms[0].Measures["MAP"], r.Queries[i].Arms[1].Measures["MAP"] = 0.5, 0.5+change
	}
	want := [2][]string{{"q18", "q17", "q16", "q15", "q14"}, {"q30", "q29", "q28", "q27", "q26"}}
	c := compareRows(r, 1)
	check.Equal(t, want, shown(c))
	if want := "17 queries better, 10 worse, 3 the same"; c.Says != want { // 0/100 is no change, either
		t.Errorf("%s, want %s", c.Says, want)
	}
	r.Queries = r.Queries[:3]
	want = [2][]string{{"q3", "q2"}, nil}
	check.Equal(t, want, shown(compareRows(r, 1)))
}

func shown(c *comparison) [2][]string {
	var ids [2][]string
	for k, changes := range [][]change{c.Improved, c.Harmed} {
		for _, ch := range changes {
			ids[k] = append(ids[k], ch.ID)
		}
	}
	return ids
}

func TestListsSayWhatMoved(t *testing.T) {
	hits := func(ids string) []Hit {
		var list []Hit
		for id := range strings.FieldsSeq(ids) {
			list = append(list, Hit{ID: id})
		}
		return list
	}
	var got []string
	for _, r := range sideBySide(hits("a b c d"), hits("a d b e f")) {
		line := "-"
		if r.Before != nil {
			line = r.Before.ID + " " + r.Before.Moved
		}
		got = append(got, line+" | "+r.After.ID+" "+r.After.Moved)
	}
	want := []string{"a  | a ", "b  | d up 2", "c gone | b down 1", "d  | e new", "- | f new"}
	check.Equal(t, want, got)
}
