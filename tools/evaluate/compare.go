package evaluate

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Comparison says how differently two arms answer the queries of a log. Means
// and counts are over searches: a query counts as often as the log has it.
type Comparison struct {
	Arms     [2]ComparedArm `json:"arms"`
	Queries  int            `json:"queries"`
	Searches int            `json:"searches"`
	// Overlap is the mean share of documents, in [0, 1], that the first ten of
	// both arms have in common.
	Overlap float64 `json:"overlap_at_10"`
	// ChangedFirst is how many searches have a different first hit.
	ChangedFirst int `json:"changed_first_hit"`
	// Gained is how many searches have hits only from the second arm, Lost only
	// from the first.
	Gained int `json:"gained_hits"`
	Lost   int `json:"lost_hits"`
	// Refused are queries that the cluster rejected. They count nowhere else.
	Refused []string        `json:"refused,omitempty"`
	Each    []ComparedQuery `json:"each"`
}

// A ComparedArm has the figures of one arm.
type ComparedArm struct {
	Expansion // counts queries

	Name        string  `json:"name"`
	WithoutHits int     `json:"without_hits"` // searches
	Latency     Latency `json:"latency"`
}

// A ComparedQuery says how similar the two rankings of a query are.
type ComparedQuery struct {
	Query

	Overlap float64 `json:"overlap_at_10"`
	Hits    [2]int  `json:"hits"` // of each arm
}

const comparedDepth = 10 // of a page of hits

// Compare compares the answers of two arms to the queries of a log. The answers
// are in the order of the log; later ones may be missing.
func Compare(arms [2]string, log []Query, answered []Answered) *Comparison {
	c := &Comparison{Arms: [2]ComparedArm{{Name: arms[0]}, {Name: arms[1]}}, Each: []ComparedQuery{}}
	var took [2][]float64
	for i, a := range answered {
		q := log[i]
		if len(a.Answers) < 2 {
			c.Refused = append(c.Refused, q.ID)
			continue
		}
		first, second := idsOf(distinct(a.Answers[0].Hits)), idsOf(distinct(a.Answers[1].Hits))
		each := ComparedQuery{Query: q, Overlap: Overlap(first, second, comparedDepth), Hits: [2]int{len(first), len(second)}}
		c.Each = append(c.Each, each)
		c.Queries++
		c.Searches += q.Count
		c.Overlap += float64(q.Count) * each.Overlap
		switch {
		case len(first) > 0 && len(second) > 0:
			if first[0] != second[0] {
				c.ChangedFirst += q.Count
			}
		case len(first) > 0:
			c.Lost += q.Count
		case len(second) > 0:
			c.Gained += q.Count
		}
		for k, answer := range a.Answers {
			if each.Hits[k] == 0 {
				c.Arms[k].WithoutHits += q.Count
			}
			c.Arms[k].Add(answer)
			took[k] = append(took[k], millis(answer.Took))
		}
	}
	c.Overlap /= float64(max(c.Searches, 1))
	for k := range took {
		c.Arms[k].Latency = latency(took[k])
	}
	return c
}

// WriteTable writes the comparison as a table.
func (c *Comparison) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	c.Arms[0].warn(out, c.Arms[0].Name)
	c.Arms[1].warn(out, c.Arms[1].Name)
	of := func(n int) string {
		return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(max(c.Searches, 1)))
	}
	fmt.Fprintf(out, "%d queries, %d searches\twithout hits\texpanded\tp50 ms\tp95 ms\tp99 ms\n", c.Queries, c.Searches)
	for _, a := range c.Arms {
		fmt.Fprintf(out, "%s\t%s\t%s\t%.1f\t%.1f\t%.1f\n", a.Name, of(a.WithoutHits), a.Share(), a.Latency.P50, a.Latency.P95, a.Latency.P99)
	}
	fmt.Fprintf(out, "\n%s against %s\t\n", c.Arms[1].Name, c.Arms[0].Name)
	fmt.Fprintf(out, "the same in the first ten (overlap@10)\t%.1f %%\n", 100*c.Overlap)
	fmt.Fprintf(out, "searches with another first hit\t%s\n", of(c.ChangedFirst))
	fmt.Fprintf(out, "searches that had no hits and get some\t%s\n", of(c.Gained))
	fmt.Fprintf(out, "searches that had hits and get none\t%s\n", of(c.Lost))
	refused := Note{len(c.Refused), "queries are left out because the cluster rejects them", c.Refused}
	writeNotes(out, slices.Concat([]Note{refused}, c.Arms[0].notes(c.Arms[0].Name), c.Arms[1].notes(c.Arms[1].Name)))
	return out.Flush()
}

// A Difference is a document that two arms rank differently for a query.
type Difference struct {
	Query    Query
	Document Hit
	// Size is the difference of the ranks, |1/log2(a+1) − 1/log2(b+1)| in (0, 1].
	// A document after the first ten has the discount 0.
	Size float64
}

// Differences returns the n largest differences in the answers of two arms to
// the queries of a log; of equal ones those of frequent queries come first.
// Their order does not show which arm a document comes from: queries and their
// documents are ordered by a hash, the same every time.
func Differences(log []Query, answered []Answered, n int) []Difference {
	var all []Difference
	for i, a := range answered {
		q := log[i]
		if len(a.Answers) != 2 {
			continue
		}
		documents, size := map[string]Hit{}, map[string]float64{}
		for k, hits := range [][]Hit{a.Answers[1].Hits, a.Answers[0].Hits} {
			for _, h := range hits {
				documents[h.ID] = h
			}
			ranking := distinct(hits)
			for rank, h := range ranking[:min(comparedDepth, len(ranking))] {
				size[h.ID] += float64(2*k-1) * Discount(rank)
			}
		}
		for id, s := range size {
			if s != 0 {
				all = append(all, Difference{Query: q, Document: documents[id], Size: max(s, -s)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(b.Query.Count, a.Query.Count),
			cmp.Compare(a.Query.ID, b.Query.ID), cmp.Compare(a.Document.ID, b.Document.ID))
	})
	all = all[:min(n, len(all))]
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(shuffled(a.Query.ID), shuffled(b.Query.ID)), cmp.Compare(shuffled(a.Document.ID), shuffled(b.Document.ID)))
	})
	return all
}

// shuffled returns a sort key whose order looks random.
func shuffled(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// shownText is how many runes of a document's text a judge sees.
const shownText = 300

// WriteDifferences writes a table for judging by hand: the judge fills in the
// last column, and [ReadJudged] reads it. The id is empty if it equals the text
// of the query.
func WriteDifferences(w io.Writer, all []Difference) error {
	rows := append(make([][]string, 0, 1+len(all)), []string{"query_id", "query", "document", "text", "grade"})
	for _, d := range all {
		text := []rune(strings.Join(strings.Fields(d.Document.Title), " "))
		if len(text) > shownText {
			text = append(text[:shownText], '…')
		}
		id := Cell(d.Query.ID)
		if d.Query.ID == d.Query.Text {
			id = ""
		}
		rows = append(rows, []string{id, Cell(d.Query.Text), Cell(d.Document.ID), Cell(string(text)), ""})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
