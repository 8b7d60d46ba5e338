package expand

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// TestLinearFormComputesTheSoftInnerProduct holds the written boosts against
// design: with λ = 1 and nothing cut off, Σ_j boost_j·idf_j·tf_j over the added
// terms plus the original's own Σ_i x_i idf_i tf_i is (Wx)ᵀS(Wy), W = √idf,
// y = tf, for documents y that hold no term of the query twice over.
func TestLinearFormComputesTheSoftInnerProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		c := &fakeCluster{docCount: 10_000, docFreqs: map[string]int64{}}
		terms := make([]string, 12)
		for i := range terms {
			terms[i] = fmt.Sprintf("t%02d", i)
			c.docFreqs[terms[i]] = 1 + rng.Int64N(900)
		}
		s := map[[2]string]float64{}
		rows := map[string][]simmatrix.Neighbor{}
		for i := range 3 { // the query's terms are t00 to t02
			for j := 3; j < len(terms); j++ {
				if rng.IntN(2) == 0 {
					continue
				}
				v := simmatrix.QuantizeSimilarity(rng.Float64())
				s[[2]string{terms[i], terms[j]}] = float64(v)
				rows[terms[i]] = append(rows[terms[i]], simmatrix.Neighbor{Term: terms[j], Similarity: v})
			}
		}
		var words []string
		x := map[string]float64{}
		for range 1 + rng.IntN(5) {
			term := terms[rng.IntN(3)]
			words = append(words, term)
			x[term]++
		}
		text := strings.Join(words, " ")
		o := with(func(o *Options) { o.Scoring, o.Strength.Linear, o.MaxDocShare = FormLinear, 1, 1 })
		r, err := New(c, matrixOf(t, c, rows), o).Expand(t.Context(), &Request{Body: []byte(`{"query":{"match":{"f":"` + text + `"}}}`)})
		if err != nil {
			t.Fatal(err)
		}
		y := map[string]float64{}
		for _, term := range terms {
			y[term] = float64(rng.IntN(4))
		}
		idfOf := func(term string) float64 { return idf(c.docFreqs[term], c.docCount) }
		var want, got float64
		for i, xi := range x {
			want += xi * y[i] * idfOf(i)
			got += xi * y[i] * idfOf(i)
			for j, yj := range y {
				want += xi * yj * math.Sqrt(idfOf(i)*idfOf(j)) * s[[2]string{i, j}]
			}
		}
		if len(r.Clauses) > 0 {
			for _, a := range r.Clauses[0].Added {
				got += a.Boost * idfOf(a.Term) * y[a.Term]
			}
		}
		if math.Abs(got-want) > 1e-9*max(1, want) {
			t.Fatalf("case %d: engine's sum %v, (Wx)ᵀS(Wy) = %v", n, got, want)
		}
	}
}

// TestSelectionAgreesWithSortingAll holds the quick selection against a plain
// sort, with many ties.
func TestSelectionAgreesWithSortingAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var sel, all selection
		for k := range rng.IntN(60) {
			c := candidate{term: fmt.Sprint(rng.IntN(1000), k), v: float64(rng.IntN(6))}
			sel.candidates = append(sel.candidates, c)
			all.candidates = append(all.candidates, c)
		}
		n := rng.IntN(40)
		all.keepBest(math.MaxInt)
		sel.keepBest(n)
		want := all.candidates[:min(n, len(all.candidates))]
		if fmt.Sprint(want) != fmt.Sprint(sel.candidates) {
			t.Fatalf("best %d: got %v, want %v", n, sel.candidates, want)
		}
	}
}

// checkSplice reports an error unless out is body with each of the clauses
// replaced by JSON that still holds the clause, and at most a highlight_query
// put in elsewhere.
func checkSplice(body, out []byte) error {
	var s scanner
	if err := s.run(body); err != nil {
		return fmt.Errorf("a rewritten body that does not scan: %w", err)
	}
	if !json.Valid(out) {
		return fmt.Errorf("not JSON")
	}
	var again scanner
	if err := again.run(out); err != nil {
		return fmt.Errorf("the result does not scan: %w", err)
	}
	query, written := s.scan.query, again.scan.query
	// Outside the query all bytes stay, but for the highlight_query.
	inject := `"highlight_query":` + string(query.of(body))
	for _, part := range []struct{ was, is []byte }{
		{body[:query.start], out[:written.start]}, {body[query.end:], out[written.end:]},
	} {
		is := part.is
		if !bytes.Equal(part.was, is) {
			is = bytes.Replace(is, []byte(inject+","), nil, 1)
			if !bytes.Equal(part.was, is) {
				is = bytes.Replace(part.is, []byte(inject), nil, 1)
			}
		}
		if !bytes.Equal(part.was, is) {
			return fmt.Errorf("outside the query %q became %q", part.was, part.is)
		}
	}
	// Inside, the bytes between the clauses stand in their order, and each
	// clause stands between them.
	rest := out[written.start:written.end]
	at := query.start
	for i := range s.scan.clauses {
		c := &s.scan.clauses[i]
		between := body[at:c.at.start]
		k := bytes.Index(rest, between)
		if k < 0 {
			return fmt.Errorf("lost %q", between)
		}
		rest = rest[k+len(between):]
		if k = bytes.Index(rest, c.at.of(body)); k < 0 {
			return fmt.Errorf("lost the clause %q", c.at.of(body))
		}
		rest = rest[k+len(c.at.of(body)):]
		at = c.at.end
	}
	if !bytes.HasSuffix(rest, body[at:query.end]) {
		return fmt.Errorf("lost the end %q", body[at:query.end])
	}
	return nil
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{
		carRental, `{}`, `[]`, ``, `{"query":{"bool":{"must":[{"match":{"body":"car"}},{"multi_match":{"query":"rental","fields":["a^2","b"]}}],"filter":{"match":{"body":"car"}}}},"highlight":{"fields":{}}}`,
		`{"highlight":{},"query":{"nested":{"path":"x","query":{"match":{"b\u006fdy":{"query":"car","operator":"and"}}}}}}`,
		`{"query":{"query_string":{"query":"car rental","default_field":"body"}},"sort":["_score"]}`,
		`{"query":{"match":{"body":{"query":"car rental","minimum_should_match":"2<75%"}}}}`, `{"query":` + strings.Repeat(`{"bool":{"must":`, 35),
	} {
		for form := range 3 {
			f.Add([]byte(seed), uint8(form), true)
			f.Add([]byte(seed), uint8(form), false)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, form uint8, same bool) {
		c, m := rental(t)
		before := string(body)
		o := with(func(o *Options) {
			o.Scoring = FormLinear + Form(form%3)
			if same {
				o.Matching = MatchingSame
			}
		})
		r, err := New(c, m, o).Expand(t.Context(), &Request{Body: body})
		if err != nil {
			t.Fatalf("Expand(%q): %v", body, err)
		}
		if string(body) != before {
			t.Fatalf("the request's body was changed to %q", body)
		}
		if !r.Rewritten {
			return
		}
		if err := checkSplice(body, r.Body); err != nil {
			t.Errorf("Expand(%q) = %q: %v", body, r.Body, err)
		}
	})
}

func FuzzParameters(f *testing.F) {
	for _, seed := range []string{"", "q=car&df=body", "a=b;c=%zz", "q=%ff&size=0", "search_type=dfs_query_then_fetch&q=x", "&&q=a&&"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, reason := readParameters(raw)
		if reason != "" {
			return
		}
		if p.q == "" && p.rewritten(raw, false) != raw {
			t.Errorf("%q became %q without need", raw, p.rewritten(raw, false))
		}
		if !json.Valid(p.body()) {
			t.Errorf("%q: the body %q is not JSON", raw, p.body())
		}
		if again, _ := readParameters(p.rewritten(raw, true)); again.q != "" || again.searchType == "" {
			t.Errorf("%q became %q", raw, p.rewritten(raw, true))
		}
	})
}
