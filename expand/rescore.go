package expand

import "bytes"

// A rescore was tried on OpenSearch 2.19 and Elasticsearch 7.10 and 8.19, with
// query_weight 0 and the saturated form as the rescore query:
//
//   - In every shard the window_size best hits get the score of the rescore query
//     alone. A hit beyond the window keeps its place behind them with a score of 0,
//     in the order of the index. So no page may reach beyond the window, and
//     pages agree with each other as long as the window is the same.
//   - Totals, aggregations and their buckets are those of the query, and a script
//     that reads _score sees the query's; but top_hits orders by the rescore.
//   - min_score cuts by the scores of the query, post_filter works before the
//     window, terminate_after and timeout limit what is found. Highlights and
//     inner hits are those of the query; explain and profile show both.
//   - dfs_query_then_fetch gathers the statistics of the rescore's terms, too.
//   - indices_boost multiplies the query's scores alone. A knn beside the query is
//     rescored with it and would lose its score.
//   - The engines refuse it with a scroll, a collapse, a sort but by _score, in
//     a retriever, and windows above index.max_rescore_window (10,000).

const (
	// rescoreWindow is how many of the best hits are ordered anew. For pages
	// that reach further it is wideWindow, so that pages agree except where one
	// goes over from one to the other.
	rescoreWindow = 100
	wideWindow    = 200
	// defaultSize is how many hits the engines return where nothing is said.
	defaultSize = 10
)

// What a rescored search looks for, and what orders its best hits. Measured on
// five judged collections and 200,000 documents (docs/performance.md).
const (
	// foundTerms is how many added terms such a search looks for. As many as
	// are looked for where the same search cannot be rescored, is only counted,
	// or reaches further down, so that totals agree.
	foundTerms = 8
	// candidateStrength is λ of these terms in the query. It only chooses the
	// hits that are ordered anew.
	candidateStrength = 0.8
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
		for k := range c.targets {
			t := &c.targets[k]
			switch sel := &t.sel; {
			case j.rescore || bar == ReasonEndpoint && !scan.unscored:
				// Scores of one document or of ratings are those of the rescore.
				t.dropRare()
			case !j.same(c):
				sel.candidates = sel.candidates[:min(t.found, len(sel.candidates))]
			}
		}
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

// lastHit returns how many hits the page reaches down to.
func (s *scan) lastHit() int {
	from, size := s.from, s.size
	if from < 0 {
		from = 0
	}
	if size < 0 {
		size = defaultSize
	}
	return from + size
}

// rescoreBar returns why the best hits of the search cannot be ordered anew, ""
// where they can.
func (j *job) rescoreBar() Reason {
	scan := &j.scanner.scan
	query := scan.query.of(j.body)
	switch {
	case j.req.Endpoint != EndpointSearch && j.req.Endpoint != EndpointMultiSearch:
		return ReasonEndpoint
	case scan.bar != "":
		return scan.bar
	case scan.minScore:
		return ReasonMinScore
	case scan.size == 0:
		return ReasonNoScores
	case scan.lastHit() > wideWindow:
		return ReasonDeepPage
	case names(query):
		return ReasonNamed
	}
	return ""
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
	window := rescoreWindow
	if scan.lastHit() > window {
		window = wideWindow
	}
	w.number(float64(window))
	w.raw(`,"query":{"query_weight":0,"rescore_query_weight":1,"rescore_query":`)
	j.copy(w, scan.query.start, scan.query.end)
	w.raw(`}}`)
}
