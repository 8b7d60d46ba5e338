package expand

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// How akin reranks: in [ModeSoft] a few terms in the linear form find the
// first hits, as many as the window; with [ByEmbeddings] that search or the one
// of [ModeBM25] does. Only their names and scores come back. The caller reranks
// them as [Part.Rerank] says, fetches those on the client's page, and inserts
// them. A page that ends after the window continues in the engine's
// order. A page entirely after the window is searched with the same query,
// so that all pages form one list.

const (
	// maxBehind is how many hits after the window a page that begins in it may
	// have. All of them must be identified before the first can be sent.
	maxBehind = 1000
	// maxClauses is how many clauses the search for a page may have, with three
	// for each hit that is fetched by id and number. Engines accept 1,024.
	maxClauses = 1000
	// maxReranked is how many searches of one request may be reranked. All
	// answers, of up to 8 MiB each, are held at the same time.
	maxReranked = 16
)

// sameQuery are the reasons for which hits keep the order of the query that
// finds the hits to rerank. For other reasons the engine's scores matter, and
// the search is written as in [ModeBM25].
var sameQuery = []reason.Reason{
	reason.Window, reason.Sort, reason.Scroll, reason.Collapse, reason.SearchAfter, reason.PointInTime, reason.NoScores,
}

// reranking returns how to rerank the hits by the soft cosine, or why they are
// not reranked.
func (a *expansion) reranking(choice *chosen) (*Rerank, reason.Reason) {
	r, why := a.rerankPage(choice)
	if why != "" {
		return nil, why
	}
	r.SoftWeight, r.Key = a.s.profile.SoftWeight, a.key
	if documents := a.s.profile.Feedback.documents(a.s.req.Feedback); documents > 0 {
		r.Feedback, r.MaxDocShare = a.s.profile.Feedback, a.s.profile.MaxDocShare
		r.Feedback.Documents = documents
	}
	if why := r.compare(choice, form.LambdaOf(a.s.profile.Strength).Saturated); why != "" {
		return nil, why
	}
	// The order matters: a page can be after the window only if the search is
	// reranked.
	if !a.inWindow(choice, r) {
		return nil, reason.Window
	}
	return r, ""
}

// byEmbeddings returns how to rerank the hits of the clauses as they are
// written by vectors, or why they are not reranked.
func (a *expansion) byEmbeddings(choice *chosen, clauses []form.Clause) (*Rerank, reason.Reason) {
	r, why := a.rerankPage(choice)
	if why != "" {
		return nil, why
	}
	if slices.ContainsFunc(clauses, func(c form.Clause) bool { return c.AsTypedFirst && c.Changed() }) {
		return nil, reason.AsTyped
	}
	r.Text, r.TextWeight = a.embedded(clauses), a.s.profile.EmbeddingsWeight
	if r.Text == "" {
		return nil, reason.NoEmbeddings
	}
	if !a.inWindow(choice, r) {
		return nil, reason.Window
	}
	return r, ""
}

// rerankPage returns a Rerank with the client's page, or why hits are not
// reranked whatever by.
func (a *expansion) rerankPage(choice *chosen) (*Rerank, reason.Reason) {
	if why := a.s.noRerank(); why != "" {
		return nil, why
	}
	page, ok := a.s.Page(&a.s.parameters)
	piped := func(t target) bool { return t.Analysis != nil && len(t.Analysis.Pipelines) > 0 } // it would run on each of the answers
	if !ok || slices.ContainsFunc(choice.targets, piped) {
		return nil, reason.Answer
	}
	return &Rerank{From: page.From, Size: page.Size}, ""
}

// maxEmbedded limits in bytes the text whose vector is asked for. Models
// read some hundred words.
const maxEmbedded = 2000

// embedded returns the texts of the clauses that search what vectors are
// made of, each once.
func (a *expansion) embedded(clauses []form.Clause) string {
	if a.documents == nil {
		return ""
	}
	var texts []string
	size := 0
	for i := range clauses {
		c := &clauses[i]
		known := func(f form.Field) bool { return a.documents.Knows(f.Name) }
		if c.Parsed.Role != dsl.Ranks || slices.Contains(texts, c.Parsed.Text) || !slices.ContainsFunc(c.Fields, known) {
			continue
		}
		texts = append(texts, c.Parsed.Text)
		size += len(c.Parsed.Text) + 1
		if size > maxEmbedded {
			break
		}
	}
	text := strings.Join(texts, " ")
	return strings.ToValidUTF8(strings.TrimSpace(text[:min(len(text), maxEmbedded)]), "")
}

// inWindow sets the window and whether numbers name its hits, and reports
// whether the client's page is in it or ends not far behind it.
func (a *expansion) inWindow(choice *chosen, r *Rerank) bool {
	r.Window = a.s.profile.RerankWindow
	if limit := a.limits.of(LimitResults, a.s.req.Index); limit > 0 {
		r.Window = int(min(limit, int64(r.Window)))
	}
	// Hits after the window need ids, and so do hits with inner hits, which are
	// read by them. Without _shards the answer does not show the number of shards.
	r.BySeqNo = r.From+r.Size <= r.Window && !namesQueries(a.s.Body) && a.s.parameters.Get("filter_path") == ""
	for i := range choice.targets {
		analysis := choice.targets[i].Analysis
		r.BySeqNo = r.BySeqNo && analysis != nil && analysis.Shards == 1
	}
	return r.From < r.Window && r.Size <= r.Window+maxBehind-r.From
}

// noRerank returns why the request does not allow reranking, or "".
func (s *search) noRerank() reason.Reason {
	switch why := s.fixedOrder(); {
	case s.req.Endpoint != EndpointSearch:
		return reason.Endpoint
	case s.req.Fixed != "":
		return s.req.Fixed
	case why != "":
		return why
	case s.Scores.Others:
		return reason.OtherScores
	case s.Hits.Bare || s.Hits.Ext, s.discloses&DiscloseExplain != 0: // the search for the page would explain other scores
		return reason.Answer
	}
	return ""
}

// compare sets the texts to compare with the hits, or returns why it cannot. A
// field of several clauses gets the sum of their terms.
func (r *Rerank) compare(choice *chosen, lambda float64) reason.Reason {
	summed := r.SoftWeight < 1
	for i := range choice.clauses {
		c := &choice.clauses[i]
		if c.Parsed.Role == dsl.Note || c.Parsed.Role == dsl.InFilter {
			continue
		}
		if !compared(c.Reason) {
			return reason.OtherScores
		}
		sum := Sum{TieBreaker: c.Parsed.TieBreaker}
		for k := range c.Fields {
			f := &c.Fields[k]
			boost := c.Parsed.Boost * f.Boost
			switch {
			case !compared(f.Reason):
				return reason.OtherScores
			case f.Analysis == nil || boost == 0: // no term, or none that counts
				continue
			}
			t := &choice.targets[slices.IndexFunc(choice.targets, func(t target) bool { return t.Field == f })]
			if t.weights == nil && t.rows.Docs() <= 0 {
				return reason.NoWeights
			}
			at := slices.IndexFunc(r.Fields, func(r RerankField) bool { return r.Field == f.Name })
			if at < 0 {
				at = len(r.Fields)
				r.Fields = append(r.Fields, RerankField{Field: f.Name, Similarities: t.rows, Weights: t.weights})
			}
			r.Fields[at].add(f, boost)
			sum.Fields = append(sum.Fields, SumField{Field: at, Boost: boost, Words: words(f, lambda)})
			summed = summed && f.OneTermPerWord()
		}
		r.Sums = append(r.Sums, sum)
		summed = summed && c.Additive && !c.Parsed.TermCentric() && !strings.Contains(c.Parsed.Path, "dis_max")
	}
	if len(r.Fields) == 0 {
		return reason.NoTerms
	}
	if !summed {
		r.Sums, r.Feedback = nil, FeedbackOptions{} // feedback adds to the sums
	}
	return ""
}

// words returns the terms of a field's text with all chosen neighbors, of which
// few are written.
func words(f *form.Field, lambda float64) []SumWord {
	out := make([]SumWord, len(f.Terms.Origins))
	for i, o := range f.Terms.Origins {
		out[i] = SumWord{Weight: o.X * o.IDF, Terms: []string{o.Term}, Boosts: []float64{1}}
	}
	for k := range f.Terms.Candidates {
		if c := &f.Terms.Candidates[k]; f.Reason == "" && c.Word {
			out[f.Terms.Origins.Index(c.Term)].Weight += c.Score(lambda)
		}
	}
	for k := range f.Terms.Candidates {
		c := &f.Terms.Candidates[k]
		if w := &out[c.Origin]; f.Reason == "" && !c.Word && w.Weight > 0 {
			w.Terms, w.Boosts = append(w.Terms, c.Term), append(w.Boosts, c.Score(lambda)/w.Weight)
		}
	}
	for _, a := range f.Alternatives { // an expression is not among the terms of a hit
		for _, i := range a.Hosts {
			if w := &out[i]; f.Reason == "" && !a.Several() && w.Terms[0] != a.Term {
				w.Terms, w.Boosts = append(w.Terms, a.Term), append(w.Boosts, a.Similarity)
			}
		}
	}
	return out
}

// compared reports whether a text that was left alone for a reason is compared
// anyway.
func compared(why reason.Reason) bool {
	return why == "" || why == reason.NoNeighbors || why == reason.NeighborsTooFrequent || why == reason.TermLimit || why == reason.NoTerms
}

// add adds the terms of a field with a boost.
func (r *RerankField) add(f *form.Field, boost float64) {
	if boost > r.Boost { // b is the largest boost; the others are fractions of it
		for k := range r.Freqs {
			r.Freqs[k] *= r.Boost / boost
		}
		r.Boost = boost
	}
	for _, o := range f.Terms.Origins {
		at := slices.Index(r.Terms, o.Term)
		if at < 0 {
			at = len(r.Terms)
			r.Terms, r.Freqs = append(r.Terms, o.Term), append(r.Freqs, 0)
		}
		r.Freqs[at] += o.X * boost / r.Boost
	}
}

// Members of a body by purpose: what comes back of each hit, the page, and what
// concerns all matches.
var (
	ofHits = []string{
		"_source", "fields", "stored_fields", "docvalue_fields", "script_fields", "highlight", "version", "seq_no_primary_term",
		"include_named_queries_score",
	}
	ofPage = []string{"from", "size"}
	ofAll  = []string{"aggs", "aggregations", "suggest", "track_total_hits", "profile"}
	// defining members define fields and belong to every search.
	defining = []string{"runtime_mappings", "derived", "timeout"}
)

// divide splits a rewritten body: it sets the searches for the page, and
// returns the search that finds its hits. needsDFS is that of the body.
func (r *Rerank) divide(s *search, body []byte, needsDFS bool) (frame []byte) {
	r.Page = SideSearch{Index: s.req.Index, RawQuery: dsl.OfHits(s.rawQuery(false, false))}
	r.InOrder = SideSearch{Index: s.req.Index, RawQuery: dsl.OfPage(s.rawQuery(needsDFS, false))}
	names := `"version":true`
	if r.BySeqNo {
		names = `"stored_fields":"_none_"`
	}
	// Elasticsearch 9 adds seq_no_primary_term to hits in aggregations, too, so
	// ask for the doc value instead.
	if s.req.Warm {
		names += `,"track_total_hits":false`
	}
	frame = fmt.Appendf(nil, `{"from":0,"size":%d,"_source":false,"docvalue_fields":["_seq_no"],%s`, r.Asked(), names)
	r.InOrder.Body = append(r.InOrder.Body, `{"track_total_hits":false`...)
	var query []byte
	_ = jsonspan.Members(body, func(name, value []byte) error { // it was read before
		is := func(some []string) bool { return slices.Contains(some, string(name)) }
		add := func(to *[]byte) {
			*to, _ = jsontext.AppendQuote(append(*to, ','), name)
			*to = append(append(*to, ':'), value...)
		}
		if !is(ofHits) && !is(ofPage) && (!s.req.Warm || !is(ofAll)) {
			add(&frame)
		}
		if !is(ofAll) {
			add(&r.InOrder.Body)
		}
		if is(ofHits) || is(defining) || string(name) == "post_filter" && namesQueries(value) {
			add(&r.Page.Body)
		}
		switch string(name) {
		case "query":
			query = value
		case "highlight":
			r.query = s.Query.Of(s.Body)
		}
		return nil
	})
	if namesQueries(query) {
		r.query = query
	}
	r.Page.Body, r.InOrder.Body = append(r.Page.Body, '}'), append(r.InOrder.Body, '}')
	return append(frame, '}')
}

// PageOf returns the search that fetches the given hits as the client wants
// them, in any order, without those that have changed since they were found.
// With [Rerank.BySeqNo] they are sorted by their numbers, so that each has its
// own as its sort value.
func (r *Rerank) PageOf(hits []Hit) SideSearch {
	body := fmt.Appendf(nil, `{"size":%d,"track_total_hits":false,`, len(hits))
	if r.BySeqNo {
		body = append(body, `"sort":["_seq_no"],`...)
	}
	body = append(body, `"query":{"bool":{"filter":[{"terms":{"_seq_no":[`...)
	for i, h := range hits {
		body = fmt.Appendf(body, "%s%d", comma(i), h.SeqNo)
	}
	body = append(body, `]}}`...)
	if !r.BySeqNo { // sequence numbers repeat between shards, and ids between indices
		body = append(body, `,{"bool":{"should":[`...)
		n := 0
		for i, h := range hits {
			same := []Hit{h}
			// A clause takes at least two bytes of query. If there are too many clauses,
			// ask by index; then a changed document may have got another hit's number.
			if 3*len(hits)+len(r.query)/2 > maxClauses {
				if slices.ContainsFunc(hits[:i], func(o Hit) bool { return o.Index == h.Index }) {
					continue
				}
				same = slices.DeleteFunc(slices.Clone(hits), func(o Hit) bool { return o.Index != h.Index })
			}
			index, _ := jsontext.AppendQuote(nil, h.Index)
			body = fmt.Appendf(body, `%s{"bool":{"filter":[{"term":{"_index":%s}},{"ids":{"values":[`, comma(n), index)
			for k, o := range same {
				body, _ = jsontext.AppendQuote(append(body, comma(k)...), o.ID)
			}
			body = append(body, `]}}`...)
			if len(same) == 1 {
				body = fmt.Appendf(body, `,{"term":{"_seq_no":%d}}`, h.SeqNo)
			}
			body = append(body, `]}}`...)
			n++
		}
		body = append(body, `]}}`...)
	}
	body = append(body, ']')
	if r.query != nil {
		body = fmt.Appendf(body, `,"should":[%s]`, r.query)
	}
	body = append(append(body, `}}`...), r.Page.Body...)
	return SideSearch{Index: r.Page.Index, RawQuery: r.Page.RawQuery, Body: body}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}
