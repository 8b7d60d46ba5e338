package expand

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
)

// How [ModeSoft] works: the first hits, as many as the window, are found by
// the linear form, or as in [ModeBM25] where the engine's scores count, and come
// back with their sequence numbers. Whoever passes the answer on orders them by
// what [Part.Rerank] says and cuts the client's page out of them. A page that
// ends behind the window has what is behind in the engine's order, and one that
// is wholly behind is searched for by the same query, so that all pages are one
// list.

const (
	// maxBehind is how many hits behind the window a page that begins in it may
	// have: they all are kept until the first of them are in order.
	maxBehind = 1000
	// maxReranked is how many searches one request may have whose hits are
	// reranked, at the same time: the answers to all are kept, of up to 8 MiB.
	maxReranked = 16
)

// reranking returns how the hits are reranked, or why they are not.
func (a *asker) reranking() (*Rerank, reason.Reason) {
	if why := a.s.noRerank(); why != "" {
		return nil, why
	}
	page, ok := a.s.Page(&a.s.parameters)
	if !ok {
		return nil, reason.Answer
	}
	r := &Rerank{From: page.From, Size: page.Size, EngineWeight: 1 - a.s.profile.SoftWeight, KeepSeqNo: page.SeqNo, KeepVersion: page.Version}
	var why reason.Reason
	if r.Fields, why = rerankFields(a.clauses, a.targets); why != "" {
		return nil, why
	}
	// In this order: a page is behind the window only of what is reranked.
	r.Window = a.s.profile.RerankWindow
	if limit := a.limits.of(LimitResults, a.s.req.Index); limit > 0 {
		r.Window = int(min(limit, int64(r.Window)))
	}
	if r.From >= r.Window || r.Size > r.Window+maxBehind-r.From {
		return nil, reason.Window
	}
	return r, ""
}

// noRerank returns why the request does not let them be reranked, or "".
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
	case s.Hits.Bare || s.Hits.Ext:
		return reason.Answer
	}
	return ""
}

// rerankFields returns what the hits are compared with, or why they are not. A
// field that several clauses look into has the sum of their terms.
func rerankFields(clauses []form.Clause, targets []target) ([]RerankField, reason.Reason) {
	var out []RerankField
	for i := range clauses {
		c := &clauses[i]
		if c.Note {
			continue
		}
		if !compared(c.Reason) {
			return nil, reason.OtherScores
		}
		for k := range c.Fields {
			f := &c.Fields[k]
			boost := c.Parsed.Boost * f.Boost
			switch {
			case !compared(f.Reason):
				return nil, reason.OtherScores
			case f.Analysis == nil || boost == 0: // no term, or none that counts
				continue
			}
			t := &targets[slices.IndexFunc(targets, func(t target) bool { return t.Field == f })]
			if t.weights == nil && t.rows.Docs() <= 0 {
				return nil, reason.NoWeights
			}
			at := slices.IndexFunc(out, func(r RerankField) bool { return r.Field == f.Name })
			if at < 0 {
				at = len(out)
				out = append(out, RerankField{Field: f.Name, Similarities: t.rows, Weights: t.weights})
			}
			out[at].add(f, boost)
		}
	}
	if len(out) == 0 {
		return nil, reason.NoTerms
	}
	return out, ""
}

// compared reports whether a text left alone for a reason is compared anyway.
func compared(why reason.Reason) bool {
	return why == "" || why == reason.NoNeighbors || why == reason.NeighborsTooFrequent || why == reason.TermLimit || why == reason.NoTerms
}

// add adds the terms of a field, which count boost times.
func (r *RerankField) add(f *form.Field, boost float64) {
	if boost > r.Boost { // b is the largest, and the others are shares of it
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

// pageEdits has the body ask for the first hits with sequence numbers and
// versions. What it does not say yet goes before its first member; it has one.
func pageEdits(s *search, size int) []jsonspan.Edit {
	start := bytes.IndexByte(s.Body, '{') + 1
	edits := []jsonspan.Edit{{At: jsonspan.Span{Start: start, End: start}}}
	for _, m := range []struct {
		name, value string
		at          jsonspan.Span
	}{
		{"from", "0", s.Hits.From},
		{"size", strconv.Itoa(size), s.Hits.Size},
		{"seq_no_primary_term", "true", s.Hits.SeqNo},
		{"version", "true", s.Hits.Version},
	} {
		if m.at.IsZero() {
			edits[0].Text += `"` + m.name + `":` + m.value + `,`
		} else {
			edits = append(edits, jsonspan.Edit{At: m.at, Text: m.value})
		}
	}
	slices.SortFunc(edits, func(a, b jsonspan.Edit) int { return a.At.Start - b.At.Start })
	return edits
}
