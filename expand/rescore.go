package expand

import "bytes"

// A rescore was tried on OpenSearch 2.19 and Elasticsearch 7.10 and 8.19, with
// the saturated form as the rescore query:
//
//   - In every shard the window_size best hits get the score of the rescore query
//     plus query_weight times that of the query; the hits beyond the window get
//     the latter alone, and all are sorted again. So a query_weight that is
//     tiny leaves those in their order behind the window: all pages together
//     are one list, as long as the window is the same for each. With 0 they
//     would come in the order of the index.
//   - Totals, aggregations and their buckets are those of the query, and a script
//     that reads _score sees the query's; but top_hits orders by the rescore.
//   - min_score cuts by the scores of the query, post_filter works before the
//     window, terminate_after and timeout limit what is found. Highlights and
//     inner hits are those of the query; explain and profile show both.
//   - dfs_query_then_fetch gathers the statistics of the rescore's terms, too.
//   - indices_boost multiplies the query's scores alone. A knn beside the query is
//     rescored with it and would lose its score.
//   - The engines refuse it with a scroll, a collapse, a sort but by _score, in
//     a retriever, and windows above index.max_rescore_window (10,000), which is
//     learnt from the first refusal.

const (
	// rescoreWindow is how many of the best hits are ordered anew, on every page
	// of them.
	rescoreWindow = 100
	// queryWeight is what the score of the query counts for: less than the
	// smallest score of the rescore, and enough to order what has none.
	queryWeight = "0.000001"
)

// What a rescored search looks for, and what orders its best hits. Measured on
// five judged collections and 200,000 documents (docs/performance.md).
const (
	// foundTerms is how many added terms such a search looks for. As many as
	// are looked for where the same search cannot be rescored, is only counted,
	// or reaches further down, so that totals agree.
	foundTerms = 8
	// candidateRatio times λ of the saturated form, 0.8 for its default, is λ of
	// these terms in the query. It only chooses the hits that are ordered anew.
	candidateRatio = 3.2
	// For a text of n terms, the rescore takes leastTerms + n·perTerm terms of
	// those that are there; of those not looked for, only terms in at least one
	// of rareShare documents: others are seldom in the window.
	leastTerms = 5
	perTerm    = 5
	rareShare  = 1000
)

// chooseFound shares the terms that a rescored search looks for between the
// fields, as they share all added terms.
func (j *job) chooseFound() {
	scan, all := &j.scanner.scan, j.added()
	for i := range scan.clauses {
		for k := range scan.clauses[i].targets {
			t := &scan.clauses[i].targets[k]
			t.found = len(t.sel.candidates)
			if all > foundTerms {
				t.found = (t.found*foundTerms + all - 1) / all
			}
		}
	}
}

// planPhase decides whether the best hits are ordered anew and takes the terms
// back that are then not written.
func (j *job) planPhase() {
	bar := j.rescoreBar()
	j.rescore = bar == ""
	scan := &j.scanner.scan
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.form != FormSaturated {
			continue
		}
		c.rescored, c.formReason = j.rescore, bar
		// Scores of one document or of ratings are those of the rescore.
		if !j.rescore && (bar != ReasonEndpoint || scan.unscored) {
			j.findLess(c)
			continue
		}
		for k := range c.targets {
			c.targets[k].dropRare()
		}
	}
}

// findLess takes back the terms that a rescored search would not look for, so
// that one that cannot be rescored finds the same. Where the original decides
// what is found, all of them stay.
func (j *job) findLess(c *clause) {
	if j.options.Phase == PhaseQuery || j.same(c) {
		return
	}
	for k := range c.targets {
		t := &c.targets[k]
		t.sel.candidates = t.sel.candidates[:min(t.found, len(t.sel.candidates))]
	}
}

// dropRare drops the terms that are not worth their cost in a rescore.
func (t *target) dropRare() {
	sel := &t.sel
	kept := sel.candidates[:min(t.found, len(sel.candidates))]
	most := min(leastTerms+perTerm*len(sel.origins), len(sel.candidates))
	for k := t.found; k < most; k++ {
		if c := sel.candidates[k]; c.docFreq*rareShare >= t.stats.DocCount {
			kept = append(kept, c)
		}
	}
	sel.candidates = kept
}

// rescoreBar returns why the best hits of the search cannot be ordered anew, ""
// where they can.
func (j *job) rescoreBar() Reason {
	scan := &j.scanner.scan
	query := scan.query.of(j.body)
	switch {
	case j.req.Endpoint != EndpointSearch && j.req.Endpoint != EndpointMultiSearch:
		return ReasonEndpoint
	case scan.hasPIT:
		return ReasonPointInTime // the pages after the first have a search_after
	case scan.bar != "":
		return scan.bar
	case scan.minScore:
		return ReasonMinScore
	case scan.noHits:
		return ReasonNoScores
	case j.windowRefused():
		return ReasonRescoreWindow
	case names(query):
		return ReasonNamed
	}
	return ""
}

// windowRefused reports whether the indices are known to refuse as wide a
// window.
func (j *job) windowRefused() bool {
	limit := j.limits.of(LimitRescore, j.req.Index)
	return limit > 0 && rescoreWindow > limit
}

// names reports whether a query may have named queries or inner hits, whose
// scores the engines take from the query and not from the rescore. A name may
// be written with escapes; those of ASCII letters are used for little else.
func names(query []byte) bool {
	for _, name := range []string{`"_name"`, `"inner_hits"`, `\u004`, `\u005`, `\u006`, `\u007`} {
		if bytes.Contains(query, []byte(name)) {
			return true
		}
	}
	return false
}

// writeRescore writes the member that orders the best hits by the whole query.
func (j *job) writeRescore(w *writer) {
	scan := &j.scanner.scan
	w.raw(`,"rescore":{"window_size":`)
	w.number(rescoreWindow)
	w.raw(`,"query":{"query_weight":` + queryWeight + `,"rescore_query_weight":1,"rescore_query":`)
	j.copy(w, scan.query.start, scan.query.end)
	w.raw(`}}`)
}
