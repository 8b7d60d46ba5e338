package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// A feedbackChoice is how feedback is configured.
type feedbackChoice struct {
	documents, terms int
	tenths           int // of the weight
}

func (f feedbackChoice) String() string {
	return fmt.Sprintf("%d, %d, 0.%d", f.documents, f.terms, f.tenths)
}

// feedbackDefaults is what akin does with expansion.feedback.documents: 10.
var feedbackDefaults = feedbackChoice{10, 20, 3}

// TestFeedbackGrid shows how the defaults of feedback were chosen, where
// AKIN_E2E_FEEDBACK_GRID=1 asks for it, for it takes half an hour: it tries them
// and others on all collections but one, takes what gains most nDCG@10 there in
// the mean of full queries and their three rarest terms, and prints what that
// gains on the one.
func TestFeedbackGrid(t *testing.T) {
	if os.Getenv("AKIN_E2E_FEEDBACK_GRID") != "1" {
		t.Skip("takes half an hour; asked for with AKIN_E2E_FEEDBACK_GRID=1")
	}
	var choices []feedbackChoice
	profiles := section{}
	for _, documents := range []int{5, 10, 20} {
		for _, terms := range []int{10, 15, 20, 30} {
			for tenths := 1; tenths <= 5; tenths++ {
				c := feedbackChoice{documents, terms, tenths}
				profiles[fmt.Sprintf("c%d", len(choices))] = section{"feedback": section{
					"documents": documents, "terms": terms, "weight": float64(tenths) / 10,
				}}
				choices = append(choices, c)
			}
		}
	}
	redis := commonRedis(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		if e.name != qualityEngine {
			return
		}
		var full, three []*collection
		for _, name := range tunedCollections {
			c := loadCollection(t, name)
			e.makeJudged(t, c, redis)
			full, three = append(full, c), append(three, e.threeTerms(t, c))
		}
		config := relevanceConfig(t, e, redis, full, rankings(e)[0], embeddings{})
		config["profiles"] = profiles
		a := startAkin(t, config)
		gains := map[feedbackChoice][]float64{} // full queries, then three terms
		for _, c := range slices.Concat(full, three) {
			a.awaitMatrix(t, matrixName(e, judgedIndexName(c)))
			base := meanMeasures(rankQueries(t, e.cluster, "", listOf(10), c)).NDCG10
			for i, choice := range choices {
				m := meanMeasures(rankQueries(t, a.cluster, fmt.Sprintf("&akin_profile=c%d", i), listOf(10), c))
				gains[choice] = append(gains[choice], gainOver(m.NDCG10, base))
				t.Logf("%s: %v: nDCG@10 %+.2f", c.name, choice, gains[choice][len(gains[choice])-1])
			}
		}
		fmt.Fprintf(os.Stdout, "\n%s", gridTable(gains))
	})
}

// gridTable writes for each collection what is chosen on the others, and what
// that and the defaults gain on this one.
func gridTable(gains map[feedbackChoice][]float64) string {
	n := len(tunedCollections)
	var b strings.Builder
	b.WriteString("| left out | chosen: documents, terms, weight | gain there, full | three terms | of the defaults, full | three terms |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	// best returns the choice with the largest sum of gains on all but one.
	best := func(without int) feedbackChoice {
		sum := func(c feedbackChoice) (s float64) {
			for i, gain := range gains[c] {
				if i%n != without {
					s += gain
				}
			}
			return s
		}
		return slices.MaxFunc(slices.SortedFunc(maps.Keys(gains), func(a, b feedbackChoice) int {
			return cmp.Or(a.documents-b.documents, a.terms-b.terms, a.tenths-b.tenths)
		}), func(a, b feedbackChoice) int {
			return cmp.Compare(sum(a), sum(b))
		})
	}
	var chosen, defaults [2]float64
	for i, name := range tunedCollections {
		c := best(i)
		fmt.Fprintf(&b, "| %s | %v | %+.1f | %+.1f | %+.1f | %+.1f |\n", name, c, gains[c][i], gains[c][n+i],
			gains[feedbackDefaults][i], gains[feedbackDefaults][n+i])
		for k := range chosen {
			chosen[k] += gains[c][k*n+i] / float64(n)
			defaults[k] += gains[feedbackDefaults][k*n+i] / float64(n)
		}
	}
	fmt.Fprintf(&b, "| mean | with none left out: %v | %+.2f | %+.2f | %+.2f | %+.2f |\n", best(n), chosen[0], chosen[1], defaults[0], defaults[1])
	return b.String()
}
