package evaluate

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

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
	Trouble // counts queries

	Name        string  `json:"name"`
	WithoutHits int     `json:"without_hits"` // searches
	Latency     Latency `json:"latency"`
}

// A ComparedQuery is how alike the two rankings of a query are.
type ComparedQuery struct {
	judged.Query

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
func Compare(arms [2]string, log []judged.Query, answered []Answered) *Comparison {
	c := &Comparison{Arms: [2]ComparedArm{{Name: arms[0]}, {Name: arms[1]}}, Each: []ComparedQuery{}}
	var took [2][]float64
	for i, a := range answered {
		q := log[i]
		if len(a.Answers) < 2 {
			c.Refused = append(c.Refused, q.ID)
			continue
		}
		first, second := idsOf(distinct(a.Answers[0].Hits)), idsOf(distinct(a.Answers[1].Hits))
		each := ComparedQuery{
			Query: q, Overlap: measure.Overlap(first, second, comparedDepth),
			RankBiasedOverlap: measure.RankBiasedOverlap(first, second, persistence), Hits: [2]int{len(first), len(second)},
		}
		c.add(each, len(first) > 0 && len(second) > 0 && first[0] != second[0])
		for k, answer := range a.Answers {
			c.Arms[k].add(answer)
			took[k] = append(took[k], millis(answer.Took))
		}
	}
	c.Overlap, c.RankBiasedOverlap = c.Overlap/float64(max(c.Searches, 1)), c.RankBiasedOverlap/float64(max(c.Searches, 1))
	for k := range took {
		c.Arms[k].Latency = latency(took[k])
	}
	return c
}

// add adds a query to the sums.
func (c *Comparison) add(q ComparedQuery, changedFirst bool) {
	c.Each = append(c.Each, q)
	c.Queries++
	c.Searches += q.Count
	c.Overlap += float64(q.Count) * q.Overlap
	c.RankBiasedOverlap += float64(q.Count) * q.RankBiasedOverlap
	switch none := [2]bool{q.Hits[0] == 0, q.Hits[1] == 0}; none {
	case [2]bool{true, false}:
		c.Gained += q.Count
	case [2]bool{false, true}:
		c.Lost += q.Count
	}
	if changedFirst {
		c.ChangedFirst += q.Count
	}
	for k, hits := range q.Hits {
		if hits == 0 {
			c.Arms[k].WithoutHits += q.Count
		}
	}
}

// WriteTable writes the comparison for people.
func (c *Comparison) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	of := func(n int) string {
		return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(max(c.Searches, 1)))
	}
	fmt.Fprintf(out, "%d queries, %d searches\twithout hits\tp50 ms\tp95 ms\tp99 ms\n", c.Queries, c.Searches)
	for _, a := range c.Arms {
		fmt.Fprintf(out, "%s\t%s\t%.1f\t%.1f\t%.1f\n", a.Name, of(a.WithoutHits), a.Latency.P50, a.Latency.P95, a.Latency.P99)
	}
	fmt.Fprintf(out, "\n%s against %s\t\n", c.Arms[1].Name, c.Arms[0].Name)
	fmt.Fprintf(out, "of the first ten the same (overlap@10)\t%.1f %%\n", 100*c.Overlap)
	fmt.Fprintf(out, "likeness of the order (rank-biased overlap)\t%.3f\n", c.RankBiasedOverlap)
	fmt.Fprintf(out, "searches with another first hit\t%s\n", of(c.ChangedFirst))
	fmt.Fprintf(out, "searches that had no hits and get some\t%s\n", of(c.Gained))
	fmt.Fprintf(out, "searches that had hits and get none\t%s\n", of(c.Lost))
	refused := Note{len(c.Refused), "queries are left out, the cluster refuses them", c.Refused}
	writeNotes(out, slices.Concat([]Note{refused}, c.Arms[0].notes(c.Arms[0].Name), c.Arms[1].notes(c.Arms[1].Name)))
	return out.Flush()
}
