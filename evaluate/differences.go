package evaluate

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"io"
	"slices"
	"strings"

	"github.com/akin-search/akin/evaluate/judged"
	"github.com/akin-search/akin/evaluate/measure"
)

// A Difference is a document that two arms rank differently for a query.
type Difference struct {
	Query    judged.Query
	Document Hit
	// Size is how far apart the ranks are, |1/log2(a+1) − 1/log2(b+1)| in (0, 1],
	// where a document that is not among the first ten has the discount 0.
	Size float64
}

// Differences returns the n largest differences in the answers of two arms
// to the queries of a log, those of frequent queries first where they are as
// large. Their order does not say which arm a document comes from: query by
// query, and in each by a hash, the same every time.
func Differences(log []judged.Query, answered []Answered, n int) []Difference {
	var all []Difference
	for i, a := range answered {
		if len(a.Answers) == 2 {
			all = append(all, differences(log[i], a.Answers[0].Hits, a.Answers[1].Hits)...)
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

// differences returns the documents that do not have the same rank in both.
func differences(q judged.Query, a, b []Hit) []Difference {
	documents, size := map[string]Hit{}, map[string]float64{}
	for k, hits := range [][]Hit{b, a} {
		for _, h := range hits {
			documents[h.ID] = h
		}
		ranking := distinct(hits)
		for i, h := range ranking[:min(comparedDepth, len(ranking))] {
			size[h.ID] += float64(2*k-1) * measure.Discount(i)
		}
	}
	all := make([]Difference, 0, len(size))
	for id, s := range size {
		if s != 0 {
			all = append(all, Difference{Query: q, Document: documents[id], Size: max(s, -s)})
		}
	}
	return all
}

// shuffled is the place of a text in an order that looks random.
func shuffled(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// shownText is how much of a document's text a judge sees, in runes.
const shownText = 300

// WriteDifferences writes a table to be judged by hand: who judges fills in
// the last column, and [judged.Read] reads it. A query whose text is its id
// has no other one there.
func WriteDifferences(w io.Writer, all []Difference) error {
	rows := append(make([][]string, 0, 1+len(all)), []string{"query_id", "query", "document", "text", "grade"})
	for _, d := range all {
		text := []rune(strings.Join(strings.Fields(d.Document.Title), " "))
		if len(text) > shownText {
			text = append(text[:shownText], '…')
		}
		id := judged.Cell(d.Query.ID)
		if d.Query.ID == d.Query.Text {
			id = ""
		}
		rows = append(rows, []string{id, judged.Cell(d.Query.Text), judged.Cell(d.Document.ID), judged.Cell(string(text)), ""})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
