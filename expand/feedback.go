package expand

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/simmatrix"
)

// How feedback works: [Expander.Expand] returns the search expanded by S, and a
// first pass that asks for its first hits. The caller sends the first pass and
// gives the terms of its hits to [Expander.WithFirstHits], which chooses and
// writes again, with the best of them. These terms change the order of the hits
// and find none. All pages of a search have the same first pass, so that they
// get the same terms. [ModeSoft] needs no first pass: the hits and their terms
// are known when they are reranked (package soft).

// documents returns how many first hits are read for a request.
func (f FeedbackOptions) documents(wish FeedbackWish) int {
	switch {
	case wish == FeedbackOff:
		return 0
	case wish == FeedbackOn && f.Documents == 0:
		return 5
	}
	return f.Documents
}

// feedbackPool is how many terms of hits are looked up in the statistics for
// every feedback term that may be added.
const feedbackPool = 10

// kept are the body members that decide which hits are first. search_after and
// slice are not among them, because all pages and slices of a search share one
// first pass.
var kept = []string{
	"query", "rescore", "post_filter", "indices_boost", "runtime_mappings", "pit", "collapse", "timeout", "terminate_after",
}

// onlyHits makes a first pass return only names, states and scores.
const onlyHits = `"from":0,"_source":false,"track_total_hits":false,"seq_no_primary_term":true,"version":true,"size":`

// firstPass returns the search for the first hits, or nil if scores do not
// order the hits, or no field can give terms.
func (a *expansion) firstPass(res *Result, plan *form.Plan) *FirstPass {
	s, o := a.s, a.s.profile
	documents := o.Feedback.documents(s.req.Feedback)
	if documents == 0 || s.mode != ModeBM25 || len(a.first) > 0 || s.req.Endpoint != EndpointSearch ||
		s.unscored || s.Hits.None || s.Scores.Sorted || s.Query.IsZero() ||
		s.Scores.Min || // the added scores would change which hits reach min_score
		s.req.Allowed != nil && s.discloses != 0 { // the cluster may hide fields of the documents from the client
		return nil
	}
	// The first pass has no knn, so it needs the search_type.
	rawQuery, body := s.parameters.Rewritten(s.req.RawQuery, res.Rewritten && plan.NeedsDFS(), false), s.Body
	if res.Rewritten {
		body = res.Body
	}
	p := &FirstPass{SideSearch: SideSearch{Index: s.req.Index, RawQuery: dsl.FirstPass(rawQuery)}, Documents: documents}
	for c, f := range form.Fields(plan.Clauses) {
		if c.Reason == "" && c.Parsed.Unrelated() == "" && f.Terms != nil && f.Analysis.Nested == "" { // engines report no terms of nested documents
			p.Fields = append(p.Fields, f.Name)
		}
	}
	slices.Sort(p.Fields)
	p.Fields = slices.Compact(p.Fields)
	p.Body = append(append(p.Body, '{'), onlyHits+strconv.Itoa(p.Documents)...)
	err := jsonspan.Members(body, func(name, value []byte) error {
		if plan.Rescore && string(name) == "query" { // finding by added terms too would cost a third more and gain nothing
			value = s.Query.Of(s.Body)
		}
		if s.Hybrid && string(name) == "query" { // hits of a hybrid query have the scores of only one sub-query
			value = s.SubQuery.Of(s.Body)
		}
		if slices.Contains(kept, string(name)) {
			p.Body = fmt.Appendf(p.Body, `,"%s":%s`, name, value)
		}
		return nil
	})
	p.Body = append(p.Body, '}')
	if err != nil || len(p.Fields) == 0 {
		return nil
	}
	return p
}

// settleFeedback returns the feedback terms that are added to one of the given
// number of targets.
func (a *expansion) settleFeedback(ctx context.Context, t *target, targets int) ([]terms.FeedbackTerm, error) {
	o := a.s.profile
	n := max(o.Feedback.Terms/targets, 1)
	found := slices.Clone(t.Feedback[:min(n*feedbackPool, len(t.Feedback))])
	words, docFreqs := make([]string, len(found)), make([]int64, len(found))
	for k := range found {
		words[k] = found[k].Term
	}
	stats, err := a.statistics(ctx, t, t.Name, words, docFreqs)
	if err != nil {
		return nil, err
	}
	for k := range found {
		found[k].DocFreq, found[k].IDF = docFreqs[k], simmatrix.IDF(docFreqs[k], stats.DocCount)
		if t.Weighting() == terms.One {
			found[k].IDF = 1
		}
	}
	own := 0.0
	for _, origin := range t.lead().Terms.Origins {
		own += origin.X * origin.IDF
	}
	return terms.SettleFeedback(found, own, stats.DocCount, o.MaxDocShare, o.Feedback.Weight/float64(targets), n), nil
}
