package form

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// TestTermCentricTermsWeighTheSameInEachField: the engine multiplies by the idf
// of the field, so the boosts differ where the document frequencies do; what
// comes out is λ v_j in each field, with v_j by the largest of them.
func TestTermCentricTermsWeighTheSameInEachField(t *testing.T) {
	row, err := simmatrix.PackRow(1, []simmatrix.Neighbor{{Term: "lease", Similarity: 0.5}, {Term: "automobile", Similarity: 0.25}})
	if err != nil {
		t.Fatal(err)
	}
	a := &esclient.Analysis{Terms: []string{"car"}, Positions: []int{0}, Shards: 1}
	sel := new(terms.Selection)
	sel.Start(terms.Read(a.Terms, a.Positions))
	sel.Origins[0].Row = row
	sel.Propose(terms.SqrtIDF, 0, 1, 1, 10)
	docFreqs := map[string][]int64{"car": {5, 50}, "automobile": {2, 40}, "lease": {0, 7}}
	fields := []terms.FieldCounts{{Docs: 900}, {Docs: 1000}}
	for _, term := range sel.Terms() {
		for i := range fields {
			fields[i].DocFreqs = append(fields[i].DocFreqs, docFreqs[term][i])
		}
	}
	if docs := sel.SettleFields(terms.SqrtIDF, fields, 0.1); sel.Origins[0].IDF != simmatrix.IDF(50, 1000) || docs != 1000 {
		t.Errorf("settled by idf %v of %d documents, want the largest frequency and number", sel.Origins[0].IDF, docs)
	}
	c := &Clause{Parsed: &dsl.Clause{Boost: 2, Across: dsl.ByTerm}, Fields: []Field{
		{Name: "title", Boost: 3, Analysis: a, Terms: sel, Added: sel.Candidates}, {Name: "body", Boost: 1, Analysis: a},
	}}
	p := &Plan{Strength: Lambda{Linear: 0.2}, Recipe: High.Recipe(false, false)}
	for k := range sel.Candidates {
		cand := &sel.Candidates[k]
		for i, df := range docFreqs[cand.Term] {
			if cand.In(i) != (df > 0) {
				t.Errorf("%s in field %d: %t, but %d documents have it", cand.Term, i, cand.In(i), df)
			}
			if df == 0 {
				continue
			}
			if got, want := linearBoost(&c.Fields[i], cand, cand.FieldIDFs[i], p.linearLambda())*simmatrix.IDF(df, fields[i].Docs), 0.2*cand.V; !near(got, want) {
				t.Errorf("%s in field %d scores up to %v, want %v", cand.Term, i, got, want)
			}
		}
	}
	w := builder{Tree: new(query.Tree), plan: p, c: c, divided: []division{{scored: sel.Candidates}}}
	q := w.Bool()
	w.termCentric(q)
	written := string(q.Append(nil))
	if n := strings.Count(written, `"title"`); n != 1 || strings.Contains(written, `"value":"lease","boost":0}`) {
		t.Errorf("the title, which no document with lease has, stands there %d times: %s", n, written)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestRareTermsAreNotWorthARescore(t *testing.T) {
	c := Clause{
		Parsed: &dsl.Clause{}, Fields: []Field{{Stats: esclient.FieldStatistics{DocCount: 10_000}, Analysis: &esclient.Analysis{}}},
		Writing: Writing{Rescored: true, Scoring: Saturated},
	}
	f := &c.Fields[0]
	for i, df := range []int64{1, 19, 20, 21, 18, 500, 1000, 2} {
		f.Added = append(f.Added, terms.Candidate{Term: string(rune('a' + i)), DocFreq: df, V: 1})
	}
	names := func(list []terms.Candidate) string {
		var names strings.Builder
		for _, c := range list {
			names.WriteString(c.Term)
		}
		return names.String()
	}
	d := (&Plan{Recipe: High.Recipe(false, false)}).divisions(nil, &c, len(f.Added))[0]
	// The six that tell most find by their scores, those in at least 20 order.
	if scored, set, order := names(d.scored), names(d.set), names(d.rescored); scored != "gfdcbe" || set != "ha" || order != "cdfg" {
		t.Errorf("scores %q, finds by %q, orders by %q", scored, set, order)
	}
}

func TestEffortDecidesHowManyTermsAreWritten(t *testing.T) {
	var chosen []terms.Candidate
	for i := range 30 { // by falling v, and the later ones are in more documents
		chosen = append(chosen, terms.Candidate{Term: string(rune('A' + i)), DocFreq: int64(100 * (i + 1)), V: 1})
	}
	for _, tt := range []struct {
		effort             Effort
		mixed              bool
		scoring            Scoring
		want               Effort
		added, scored, set int
		order              int
	}{
		{Low, false, Linear, Low, 12, 4, 8, 0},
		{Normal, false, Saturated, Normal, 12, 4, 8, 8},
		{High, true, Saturated, High, 30, 6, 24, 30},
		{ByMatrix, true, Saturated, Normal, 12, 4, 8, 8},
		{ByMatrix, false, Saturated, High, 30, 6, 24, 30},
		{Normal, true, Grouped, Normal, 12, 4, 8, 0},
		{High, true, Grouped, High, 30, 30, 0, 0},
	} {
		r := tt.effort.Recipe(tt.mixed, false)
		if r != &recipes[tt.want] {
			t.Errorf("%v, mixed %t: another recipe than that of %v", tt.effort, tt.mixed, tt.want)
		}
		c := Clause{Parsed: &dsl.Clause{}, Writing: Writing{Scoring: tt.scoring, Rescored: tt.scoring == Saturated}, Fields: []Field{{
			Stats: esclient.FieldStatistics{DocCount: 10_000}, Analysis: &esclient.Analysis{}, Added: r.KeepFew(chosen, len(chosen)),
		}}}
		d := (&Plan{Recipe: r}).divisions(nil, &c, c.Added())[0]
		if added := len(c.Fields[0].Added); added != tt.added || len(d.scored) != tt.scored || len(d.set) != tt.set || len(d.rescored) != tt.order {
			t.Errorf("%v: of %d terms %d are scored, %d find and %d order", tt.effort, added, len(d.scored), len(d.set), len(d.rescored))
		}
		if tt.set > 0 && d.scored[0].Term != "^" { // the last of all, in most documents
			t.Errorf("%v: %q is scored first", tt.effort, d.scored[0].Term)
		}
	}
	for effort, want := range map[Effort][2]int{Low: {8, 50}, Normal: {8, 50}, High: {12, 50}, ByMatrix: {12, 50}} {
		if r := effort.Recipe(false, true); [2]int{r.Order, r.Window} != want {
			t.Errorf("%v with matching same: %d terms order %d hits", effort, r.Order, r.Window)
		}
	}
}

func TestFewTermsAreSharedByTheClauses(t *testing.T) {
	four := []terms.Candidate{{Term: "a", V: 4, DocFreq: 1}, {Term: "b", V: 3, DocFreq: 100}, {Term: "c", V: 2, DocFreq: 1}, {Term: "d", V: 1, DocFreq: 1}}
	for all, want := range map[int]int{4: 4, 12: 4, 16: 3, 24: 2, 1000: 1} {
		kept := Low.Recipe(false, false).KeepFew(four, all)
		if len(kept) != want || kept[min(1, want-1)].Term != "b" {
			t.Errorf("of 4 in a search of %d terms it keeps %v, want %d, b among them and in their order", all, kept, want)
		}
	}
	four[3].Word = true // it costs no match, so that no limit of the effort leaves it out
	if kept := Low.Recipe(false, false).KeepFew(four, 1000); len(kept) != 1 || kept[0].Term != "d" {
		t.Errorf("of 4 with a word of the text it keeps %v", kept)
	}
}
