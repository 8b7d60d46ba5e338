package soft

import (
	"math"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// The best hit is about cats and tails, so that a fish with a tail has a sum.
// The figures were computed by hand from [terms.Feedback] and
// [terms.SettleFeedback]: f is 2/3.2 and 1/2.2 at the mean length, idf is
// ln(101/10.5) and ln(101/5.5), and the two terms count for .3 of the text's
// own 2.
func TestFeedbackAddsTheTermsOfTheBestHits(t *testing.T) {
	v, fields, hits := pets(t)
	matrixIn(fields).set(t, "tail", 5, nil)
	v.docs[docName{"i", "2"}]["body"]["tail"] = 1
	v.docs[docName{"i", "3"}]["body"]["tail"] = 1
	r := newReranker(t, v)
	scores := func(documents int, share float64) []expand.HitScore {
		t.Helper()
		got, err := r.Scores(t.Context(), &expand.Rerank{
			Fields: fields, Sums: petSums, MaxDocShare: share, Feedback: expand.FeedbackOptions{Documents: documents, Terms: 2, Weight: .3},
		}, hits)
		check.OK(t, err)
		return got
	}
	cat, tail := 2/3.2*math.Log(101/10.5), 1/2.2*math.Log(101/5.5)
	plain := scores(0, 1)
	for name, c := range map[string]struct {
		share    float64
		ofTheCat float64 // what the cat counts for
		ofTails  float64
	}{
		"both terms":            {1, .6 * cat / (cat + tail), .6 * tail / (cat + tail)},
		"a cat is too frequent": {.05, 0, .6},
		"both are in too many":  {.01, 0, 0},
	} {
		got := scores(1, c.share)
		// Lengths are 1, 3 and 2, at a mean of 2.
		added := []float64{
			0,
			c.ofTheCat*2/(2+1.2*(.25+.75*1.5)) + c.ofTails/(1+1.2*(.25+.75*1.5)),
			c.ofTails / (1 + 1.2),
		}
		for k := range hits {
			want := plain[k].Sum + added[k]
			check.That(t, math.Abs(got[k].Sum-want) <= 1e-9 && got[k].Soft == plain[k].Soft, "%s: hit %d has %+v, want the sum %v", name, k, got[k], want)
		}
	}
}
