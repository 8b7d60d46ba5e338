package expand

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/reason"
)

// likeRental is a more_like_this with options, in which car stands three times
// and rental twice.
func likeRental(options string) string {
	return `{"more_like_this":{"fields":["body"],"like":["cheap car rental","car rental car"]` + options + `}}`
}

func expandLike(t *testing.T, c *fakeCluster, m *fakeMatrix, query string) *Result {
	t.Helper()
	return expandIn(t, c, m, with(func(o *Profile) { o.MoreLikeThis = true }), `{"query":`+query+`}`)
}

func TestMoreLikeThisIsExpandedByTheWordsThatItSearchesFor(t *testing.T) {
	for options, want := range map[string]string{
		``:                                       "car rental", // twice in the text, in 5 documents
		`,"min_term_freq":1`:                     "cheap car rental",
		`,"min_term_freq":"3"`:                   "car",
		`,"min_term_freq":1,"max_query_terms":2`: "car rental",
		`,"max_query_terms":1`:                   "car", // 3·(1+ln 1001/51) against 2·(1+ln 1001/21)
		`,"min_doc_freq":30`:                     "car",
		`,"max_doc_freq":30`:                     "rental",
		`,"min_word_length":4`:                   "rental",
		`,"max_word_length":5,"min_term_freq":1`: "cheap car",
		`,"stop_words":["car"]`:                  "rental",
		`,"unlike":["car hire","unknown"]`:       "rental",
		`,"unlike":[]`:                           "car rental",
	} {
		c, m := rental(t)
		r := expandLike(t, c, m, likeRental(options))
		check.Equal(t, want, strings.Join(r.Clauses[0].Terms, " "), options)
	}
}

func TestRelatedWordsCountAsThoseOfMoreLikeThis(t *testing.T) {
	c, m := rental(t)
	original := likeRental(`,"min_term_freq":1,"minimum_should_match":"60%","boost":2`)
	words := `{"bool":{"should":[{"bool":{"should":[{"term":{"body":{"value":"cheap"}}}]}},` +
		`{"bool":{"should":[{"terms":{"body":["car","automobile"]}}]}},` +
		`{"bool":{"should":[{"terms":{"body":["rental","hire","lease"]}}]}}],"minimum_should_match":"60%"}}`
	for matching, want := range map[Matching]string{
		Auto: `{"bool":{"must":[` + original + `],"should":[{"term":{"body":{"value":"automobile","boost":0.34456673}}},` +
			`{"term":{"body":{"value":"hire","boost":0.3745147}}},{"term":{"body":{"value":"lease","boost":0.17401406}}}]}}`,
		Widen: `{"bool":{"filter":[{"bool":{"should":[` + original + `,` + words + `]}}],"should":[` + original +
			`,{"term":{"body":{"value":"automobile","boost":0.2756534}}},` +
			`{"term":{"body":{"value":"hire","boost":0.29961178}}},{"term":{"body":{"value":"lease","boost":0.13921125}}}]}}`,
	} {
		r := expandIn(t, c, m, with(func(o *Profile) { o.MoreLikeThis, o.Matching = true, matching }), `{"query":`+original+`}`)
		check.Equal(t, `{"query":`+want+`}`, string(r.Body))
		check.Equal(t, reason.NotAdditive, r.Clauses[0].Reason)
	}
}

// Like the engine, by the frequencies of the field where a word has most.
func TestMoreLikeThisOfSeveralFieldsHasOneChoiceOfWords(t *testing.T) {
	c, m := rental(t)
	c.inTitle = map[string]int64{"car": 1, "rental": 60, "hire": 10}
	query := strings.Replace(likeRental(`,"max_doc_freq":50,"min_term_freq":1`), `"body"`, `"title","body"`, 1)
	r := expandLike(t, c, m, query)
	check.Equal(t, "car", strings.Join(r.Clauses[0].Terms, " "))
}

func TestMoreLikeThisIsLeftAlone(t *testing.T) {
	c, m := rental(t)
	for query, want := range map[string]reason.Reason{
		likeRental(`,"min_term_freq":4`):                                    reason.NoTerms,
		likeRental(`,"unlike":{"_id":"1"}`):                                 reason.LikeDocuments,
		likeRental(`,"boost_terms":-1`):                                     reason.Options,
		likeOf(`{"_id":"unknown"}`):                                         reason.NoTerms,
		likeOf(`{"_index":"i*","_id":"1"}`):                                 reason.LikeDocuments,
		strings.Replace(likeOf(`{"_id":"1"}`), `"fields":["body"],`, "", 1): reason.LikeDocuments,
		likeOf(`{"doc":{"body":"car"},"fields":["body"]}`):                  reason.LikeDocuments,
		likeOf(`{"doc":{"sku":"car"}}`):                                     reason.NotText,
		likeRental(`,"max_query_terms":-1`):                                 reason.Options,
		likeRental(`,"query":"car"`):                                        reason.Options,
		strings.Replace(likeRental(""), `"body"`, `"body","sku"`, 1):        reason.NotText,
		strings.Replace(likeRental(""), `"body"`, `"body","unbound"`, 1):    reason.NoMatrix,
	} {
		r := expandLike(t, c, m, query)
		check.That(t, !r.Rewritten && r.Clauses[0].Reason == want, "%s: rewritten %t, %v", query, r.Rewritten, r.Clauses)
	}
	r := expandIn(t, c, m, widening(), `{"query":`+likeRental("")+`}`)
	check.That(t, !r.Rewritten && r.Clauses[0].Reason == reason.Other, "%v", r.Clauses)
}

// likeOf is a more_like_this of texts or documents, in which words count that
// stand in them once.
func likeOf(like string) string {
	return `{"more_like_this":{"fields":["body"],"like":` + like + `,"min_term_freq":1}}`
}

func TestDocumentsInAMoreLikeThisAreExpandedFieldByField(t *testing.T) {
	c, m := rental(t)
	c.stored = map[string]string{"1": "car unknown", "2": "cheap car"}
	for like, want := range map[string]string{
		`{"doc":{"title":["car","rental"],"n":1}}`:                       "title: car rental",
		`[{"doc":{"title":"car"}},{"doc":{"o":{}}}]`:                     "title: car",
		`["cheap",{"doc":{"title":"car"}}]`:                              "body: cheap, title: car",
		`[{"doc":{"body":"car"}},{"doc":{"title":"car"},"routing":"1"}]`: "(like_documents), body: car, title: car",
		`[{"_id":"1"},{"_index":"i","_id":2,"routing":"r"}]`:             "body: car cheap",
		`["rental",{"_id":1}]`:                                           "body: rental, body: car",
		`[{"doc":{"title":"rental"}},{"_id":"2"}]`:                       "title: rental, body: car cheap",
		`["car",{"_id":"1","fields":["body"]}]`:                          "body: car",
	} {
		r := expandLike(t, c, m, likeOf(like))
		var got []string
		for _, e := range r.Clauses {
			switch {
			case e.Field != "":
				got = append(got, e.Field+": "+strings.Join(e.Terms, " "))
			default:
				got = append(got, "("+string(e.Reason)+")")
			}
		}
		check.Equal(t, want, strings.Join(got, ", "), like)
	}
}

// The cluster keeps the documents that it knows out of the hits, and related
// words must not bring them back.
func TestStoredDocumentsOfAMoreLikeThisOnlyPutHitsInOrder(t *testing.T) {
	c, m := rental(t)
	c.stored = map[string]string{"1": "car cheap car"}
	query := strings.Replace(likeOf(`{"_id":"1"}`), `"min_term_freq":1`, `"min_term_freq":2,"min_doc_freq":1`, 1)
	r := expandIn(t, c, m, with(func(o *Profile) { o.MoreLikeThis = true }), `{"query":`+query+`}`)
	check.Equal(t, "car", strings.Join(r.Clauses[0].Terms, " "))
	check.That(t, strings.HasPrefix(string(r.Body), `{"query":{"bool":{"must":[`+query+`],"should":[`), "%s", r.Body)
}

func TestStoredDocumentsThatAClientMayNotSeeAreNotRead(t *testing.T) {
	c, m := rental(t)
	c.stored = map[string]string{"1": "car"}
	r, err := New(c, m, with(func(o *Profile) { o.MoreLikeThis = true })).Expand(t.Context(), &Request{
		Index: "i", Body: []byte(`{"query":` + likeOf(`{"_id":"1"}`) + `}`), Allowed: func(context.Context, esclient.Indices) error { return nil },
	})
	check.OK(t, err)
	check.Equal(t, reason.LikeDocuments, r.Clauses[0].Reason)
}

func TestBoostTermsRaisesRelatedWordsAsTheirWords(t *testing.T) {
	c, m := rental(t)
	boosts := func(options string) map[string]float64 {
		of := map[string]float64{}
		r := expandIn(t, c, m, with(func(o *Profile) { o.MoreLikeThis, o.Fit = true, false }), `{"query":`+likeRental(options)+`}`)
		for _, added := range r.Clauses[0].Added {
			of[added.Term] = added.Boost
		}
		return of
	}
	plain, raised := boosts(""), boosts(`,"boost_terms":2`)
	least := 2 * (1 + math.Log(1001./21)) // tf·idf of rental
	for term, want := range map[string]float64{"hire": 2, "automobile": 2 * 3 * (1 + math.Log(1001./51)) / least} {
		check.Equal(t, fmt.Sprintf("%.5f", want), fmt.Sprintf("%.5f", raised[term]/plain[term]), term)
	}
}
