package evaluate

import (
	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/measure"
)

// A Comparison is how differently two arms answer what users asked. Means
// and counts are over searches: a query counts as often as the log has it.
type Comparison struct {
	Arms     [2]ComparedArm `json:"arms"`
	Queries  int            `json:"queries"`
	Searches int            `json:"searches"`
	// Overlap is the mean share of documents that the first ten of both arms have
	// in common, and RankBiasedOverlap the mean likeness of the whole rankings if
	// each next rank counts 0.9 times the one before; both in [0, 1].
	Overlap           float64 `json:"overlap_at_10"`
	RankBiasedOverlap float64 `json:"rank_biased_overlap"`
	// ChangedFirst is how many searches have another first hit.
	ChangedFirst int `json:"changed_first_hit"`
	// Gained had no hits of the first arm and have some of the second, Lost the
	// other way round.
	Gained int `json:"gained_hits"`
	Lost   int `json:"lost_hits"`
	// Refused are queries that the cluster refused. They count nowhere else.
	Refused []string        `json:"refused,omitempty"`
	Each    []ComparedQuery `json:"each"`
}

// A ComparedArm is what one arm did.
type ComparedArm struct {
	Name        string  `json:"name"`
	WithoutHits int     `json:"without_hits"` // searches
	FailedOpen  int     `json:"failed_open"`  // queries that akin sent as they came, since something failed
	Latency     Latency `json:"latency"`
}

// A ComparedQuery is how alike the two rankings of a query are.
type ComparedQuery struct {
	judged.LoggedQuery

	Overlap           float64 `json:"overlap_at_10"`
	RankBiasedOverlap float64 `json:"rank_biased_overlap"`
	Hits              [2]int  `json:"hits"` // how many were returned
}

const (
	comparedDepth = 10  // of a page of hits
	persistence   = 0.9 // how sure a user is to look at the next hit
)

// Compare compares the answers of two arms to the queries of a log, which
// are in its order and may be fewer.
func Compare(arms [2]string, log []judged.LoggedQuery, answered []Answered) *Comparison {
	c := &Comparison{Arms: [2]ComparedArm{{Name: arms[0]}, {Name: arms[1]}}, Each: []ComparedQuery{}}
	var took [2][]float64
	for i, a := range answered {
		q := log[i]
		if len(a.Answers) < 2 {
			c.Refused = append(c.Refused, q.ID)
			continue
		}
		c.add(q, [2]Answer(a.Answers))
		for k := range took {
			took[k] = append(took[k], millis(a.Answers[k].Took))
		}
	}
	c.Overlap, c.RankBiasedOverlap = c.Overlap/float64(max(c.Searches, 1)), c.RankBiasedOverlap/float64(max(c.Searches, 1))
	for k := range took {
		c.Arms[k].Latency = latency(took[k])
	}
	return c
}

// add adds a query to the sums.
func (c *Comparison) add(q judged.LoggedQuery, answers [2]Answer) {
	a, b := order(answers[0].Hits), order(answers[1].Hits)
	each := ComparedQuery{
		LoggedQuery: q, Overlap: measure.Overlap(a, b, comparedDepth),
		RankBiasedOverlap: measure.RankBiasedOverlap(a, b, persistence), Hits: [2]int{len(a), len(b)},
	}
	c.Queries++
	c.Searches += q.Count
	c.Overlap += float64(q.Count) * each.Overlap
	c.RankBiasedOverlap += float64(q.Count) * each.RankBiasedOverlap
	switch {
	case len(a) == 0 && len(b) > 0:
		c.Gained += q.Count
	case len(a) > 0 && len(b) == 0:
		c.Lost += q.Count
	case len(a) > 0 && a[0] != b[0]:
		c.ChangedFirst += q.Count
	}
	for k, answer := range answers {
		if len(answer.Hits) == 0 {
			c.Arms[k].WithoutHits += q.Count
		}
		if answer.FailedOpen {
			c.Arms[k].FailedOpen++
		}
	}
	c.Each = append(c.Each, each)
}

// order returns the ids of hits as the engine has them, each once.
func order(hits []Hit) []string {
	ids, seen := make([]string, 0, len(hits)), make(map[string]bool, len(hits))
	for _, h := range hits {
		if !seen[h.ID] {
			seen[h.ID] = true
			ids = append(ids, h.ID)
		}
	}
	return ids
}
