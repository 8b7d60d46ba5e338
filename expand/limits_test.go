package expand

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The answers are shortened ones of OpenSearch 2.19 and 3.8 and Elasticsearch
// 7.10 and 8.19 to queries with too many clauses.
func TestClauseLimitIsReadFromRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		want   int64
	}{
		"one bool":        {`{"error":{"root_cause":[{"type":"query_shard_exception","reason":"failed to create query: maxClauseCount is set to 1024","index":"a"}]},"status":400}`, 1024},
		"OpenSearch":      {`{"error":{"root_cause":[{"type":"too_many_nested_clauses","reason":"Query contains too many nested clauses; maxClauseCount is set to 512"}]},"status":500}`, 512},
		"Elasticsearch 8": {`{"error":{"caused_by":{"type":"illegal_argument_exception","reason":"too many clauses","caused_by":{"type":"too_many_clauses","reason":"maxClauseCount is set to 7904"}}}}`, 7904},
		"another error":   {`{"error":{"type":"parsing_exception","reason":"unknown query [frob]"},"status":400}`, 0},
		"cut":             {`{"error":{"reason":"maxClauseCount is set to 10`, 0},
		"too far behind":  {strings.Repeat(" ", maxRefusal) + `maxClauseCount is set to 1024"`, 0},
		"no number":       {`maxClauseCount is set to x`, 0},
		"not a number":    {`maxClauseCount is set to 99999999999999999999"`, 0},
		"empty":           {``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, m := rental(t)
			e := New(c, m, DefaultOptions())
			profile := e.With(DefaultOptions())
			e.Refused("docs", []byte(tt.answer))
			if got := profile.limits.clauses.Load(); got != tt.want {
				t.Errorf("learnt %d, want %d", got, tt.want)
			}
			e.Refused("docs", []byte(`maxClauseCount is set to 4096"`))
			e.Refused("docs", []byte(`maxClauseCount is set to 8000"`))
			if got, want := profile.limits.clauses.Load(), tt.want; (want == 0 || want > 4096) && got != 4096 || want > 0 && want < 4096 && got != want {
				t.Errorf("learnt %d after larger ones, want the smallest", got)
			}
		})
	}
}

// The sentence is that of Elasticsearch 7.10, 8.19 and 9.5 and OpenSearch 2.19
// and 3.8 alike.
func TestRescoreWindowIsReadFromRefusals(t *testing.T) {
	sentence := `Rescore window [%d] is too large. It must be less than [%d]. This prevents allocating massive heaps for storing the results to be rescored. ` +
		`This limit can be set by changing the [index.max_rescore_window] index level setting.`
	c, m := rental(t)
	e := New(c, m, DefaultOptions())
	profile := e.With(DefaultOptions())
	for _, step := range []struct {
		answer string
		want   int64
	}{
		{`{"error":{"type":"illegal_argument_exception","reason":"Result window is too large, from + size must be less than or equal to: [10000] but was [10001]."}}`, 0},
		{`Rescore window [100] is too large. It must be less than [5`, 0},
		{`Rescore window [100] is too large. It must be less than [x]`, 0},
		{`{"shard":0,"index":"b","reason":{"type":"illegal_argument_exception","reason":"` + fmt.Sprintf(sentence, 200, 150) + `"}}`, 150},
		{fmt.Sprintf(sentence, 200, 199), 150},
		{`maxClauseCount is set to 10"`, 150},
		{fmt.Sprintf(sentence, 100, 10), 10},
	} {
		e.Refused("docs", []byte(step.answer))
		if got := profile.limits.windows.of("docs"); got != step.want {
			t.Errorf("%s: learnt %d, want %d", step.answer, got, step.want)
		}
	}
	if got := profile.limits.clauses.Load(); got != 10 {
		t.Errorf("the limit of clauses is %d, want 10", got)
	}
}

// What one index refuses says nothing of the others that are searched by the
// same path.
func TestRescoreWindowIsLearntOfEachSearchOfMultiSearch(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, DefaultOptions())
	lines := []byte("{\"index\":\"small\"}\n" + carRental + "\n{}\n" + carRental + "\n{\"index\":[\"docs\",\"more\"]}\n" + carRental + "\n")
	for _, path := range []string{"", "docs"} {
		req := &Request{Endpoint: EndpointMultiSearch, Index: path, Body: lines}
		res, err := e.Expand(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"small", path, "docs,more"}, res.Indices); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		e.Refused(res.Indices[0], []byte(`Rescore window [100] is too large. It must be less than [10].`))
		if res, err = e.Expand(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		var got []Reason
		for _, clause := range res.Clauses {
			got = append(got, clause.Reason)
		}
		if diff := cmp.Diff([]Reason{ReasonRescoreWindow, "", ""}, got); diff != "" {
			t.Errorf("path %q (-want +got)\n%s", path, diff)
		}
	}
}

func FuzzLimits(f *testing.F) {
	f.Add([]byte(`maxClauseCount is set to 1024"`))
	f.Add([]byte(`maxClauseCount is set to `))
	f.Add([]byte(`Rescore window [100] is too large. It must be less than [10].`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, n := range []int64{clauseLimit(answer), windowLimit(answer)} {
			if n < 0 || n > 0 && !strings.Contains(string(answer), strconv.FormatInt(n, 10)) {
				t.Errorf("%q names %d", answer, n)
			}
		}
	})
}

func TestSearchesAreKeptUnderTheLearntLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	c, m := rental(t)
	cut := 0
	for _, v := range writings {
		x := New(c, m, with(v.change))
		for range 60 {
			query := randomQuery(rng, 0)
			free := v.expanded(t, x, query)
			limit := 1 + rng.IntN(40)
			x.Refused("docs", fmt.Appendf(nil, `maxClauseCount is set to %d"`, limit))
			body := v.expanded(t, x, query)
			x.limits.clauses.Store(0)
			if string(body) != string(free) {
				cut++
			}
			for _, member := range []string{"query", "rescore"} {
				if member == "rescore" && !strings.Contains(string(body), `"rescore"`) {
					continue
				}
				e := &engine{tb: t, cluster: c}
				e.search(body, member)
				o := &engine{tb: t, cluster: c}
				o.search([]byte(`{"query":`+query+`}`), "query")
				if e.leaves > max(limit, o.leaves) {
					t.Fatalf("%s: %d leaves, limit %d, original %d:\n%s", v.name, e.leaves, limit, o.leaves, body)
				}
			}
		}
	}
	if cut == 0 {
		t.Error("no search was cut")
	}
}

func TestWeakestTermsOfTheFieldWithTheMostAreCutFirst(t *testing.T) {
	body := `{"query":{"bool":{"must":[{"match":{"body":"rental"}},{"match":{"body":"cheap"}},{"match":{"body":"car"}}]}}}`
	var s scanner
	if err := s.run([]byte(body)); err != nil {
		t.Fatal(err)
	}
	words := 3 + s.scan.leaves
	for added, want := range map[int][]string{
		5: {"hire lease", "hire", "automobile lease"},
		4: {"hire lease", "hire", "automobile"},
		3: {"hire", "hire", "automobile"},
		2: {"hire", "hire", ""},
		1: {"hire", "", ""},
		0: nil,
	} {
		limit := words + added
		t.Run(strconv.Itoa(added), func(t *testing.T) {
			c, m := rental(t)
			e := New(c, m, with(func(o *Options) { o.Scoring = FormLinear }))
			e.Refused("docs", fmt.Appendf(nil, `maxClauseCount is set to %d"`, limit))
			r, err := e.Expand(t.Context(), &Request{Body: []byte(body)})
			if err != nil {
				t.Fatal(err)
			}
			if r.Rewritten != (want != nil) {
				t.Errorf("rewritten: %t", r.Rewritten)
			}
			for i, c := range r.Clauses {
				var got []string
				for _, a := range c.Added {
					got = append(got, a.Term)
				}
				if want != nil && strings.Join(got, " ") != want[i] {
					t.Errorf("clause %d: added %q, want %q", i, got, want[i])
				}
				if (len(got) == 0) != (c.Reason == ReasonTermLimit) {
					t.Errorf("clause %d: %d added, reason %q", i, len(got), c.Reason)
				}
			}
		})
	}
}

// TestDeepClausesTakeFlatterForms goes down level by level, for clauses that
// need few levels and many.
func TestDeepClausesTakeFlatterForms(t *testing.T) {
	c, m := rental(t)
	for name, clause := range map[string]string{
		"one field":       `{"match":{"body":"car rental"}}`,
		"counted":         `{"match":{"body":{"query":"car rental","operator":"and"}}}`,
		"fields":          `{"multi_match":{"query":"car rental","fields":["body","title"]}}`,
		"fields, counted": `{"multi_match":{"query":"car rental","fields":["body","title"],"operator":"and"}}`,
		"termwise":        `{"multi_match":{"query":"car rental","fields":["body","title"],"type":"cross_fields","operator":"and"}}`,
	} {
		for _, matching := range []Matching{MatchingWiden, MatchingSame} {
			t.Run(fmt.Sprintf("%s, matching %d", name, matching), func(t *testing.T) {
				var forms []string
				for depth := range 20 {
					query := strings.Repeat(`{"bool":{"must":`, depth) + clause + strings.Repeat(`}}`, depth)
					r, err := New(c, m, with(func(o *Options) { o.Matching, o.Phase = matching, PhaseQuery })).
						Expand(t.Context(), &Request{Body: []byte(`{"query":` + query + `}`)})
					if err != nil {
						t.Fatal(err)
					}
					form := r.Clauses[0].Form
					if len(forms) == 0 || forms[len(forms)-1] != form {
						forms = append(forms, form)
					}
					if (form != "saturated" && name != "termwise" || form == "") && r.Clauses[0].Reason != ReasonTooDeep {
						t.Errorf("depth %d: form %q, reason %q", depth, form, r.Clauses[0].Reason)
					}
					if r.Rewritten {
						e := &engine{tb: t, cluster: c}
						if e.search(r.Body, "query"); e.depth > maxLevels {
							t.Errorf("depth %d: %d levels", depth, e.depth)
						}
					}
				}
				if last := forms[len(forms)-1]; last != "" || len(forms) < 2 {
					t.Errorf("forms %q, want the last to be none", forms)
				}
			})
		}
	}
}
