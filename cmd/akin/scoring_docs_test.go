package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// docTable returns the rows of the table of a document whose first line is
// head, without their blanks.
func docTable(t *testing.T, text, head string) (rows [][]string) {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+head+"\n")
	check.Must(t, found, "no table with the head %s", head)
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// A handExample is the search that docs/scoring.md computes by hand.
type handExample struct {
	page  string
	docs  [][]string // number and text
	query []string
}

// frequency is how often a document contains a term.
func (e *handExample) frequency(doc int, term string) (n float64) {
	for word := range strings.FieldsSeq(e.docs[doc][1]) {
		if word == term {
			n++
		}
	}
	return n
}

func (e *handExample) docFreq(term string) (n int64) {
	for d := range e.docs {
		if e.frequency(d, term) > 0 {
			n++
		}
	}
	return n
}

// selection is what akin chooses for the query with the pairs of the page.
func (e *handExample) selection(t *testing.T) *terms.Selection {
	t.Helper()
	var sel terms.Selection
	sel.Start(terms.Read(e.query, []int{0, 1}))
	for i := range sel.Origins {
		pair := regexp.MustCompile(`\n    ` + sel.Origins[i].Term + `\t(\w+)\t([0-9.]+)`).FindStringSubmatch(e.page)
		if pair == nil {
			t.Fatalf("no pair of %s", sel.Origins[i].Term)
		}
		similarity, _ := strconv.ParseFloat(pair[2], 32)
		row, err := simmatrix.PackRow(0, []simmatrix.Neighbor{{Term: pair[1], Similarity: float32(similarity)}})
		check.OK(t, err)
		sel.Origins[i].Row = row
	}
	e.choose(&sel, 0.1)
	return &sel
}

// choose chooses terms in at most a share of the documents.
func (e *handExample) choose(sel *terms.Selection, share float64) {
	sel.Propose(terms.SqrtIDF, 0, 1, share, 30)
	var freqs []int64
	for _, term := range sel.Terms() {
		freqs = append(freqs, e.docFreq(term))
	}
	sel.Settle(terms.SqrtIDF, int64(len(e.docs)), freqs, share)
	sel.Choose(30)
}

// withoutFit returns x' of the query, in words, if its two terms have a
// similarity.
func (e *handExample) withoutFit(t *testing.T, similarity float32) (counts []string) {
	t.Helper()
	sel := terms.Selection{NoFit: true}
	sel.Start(terms.Read(e.query, []int{0, 1}))
	for i := range sel.Origins {
		row, err := simmatrix.PackRow(0, []simmatrix.Neighbor{{Term: e.query[1-i], Similarity: similarity}})
		check.OK(t, err)
		sel.Origins[i].Row = row
	}
	e.choose(&sel, 1)
	for i, word := range e.query {
		for _, c := range sel.Candidates {
			if c.Term == word {
				counts = append(counts, fmt.Sprintf("%.2f times *%s*", 1+c.V/sel.Origins[i].IDF, word))
			}
		}
	}
	return counts
}

// lengthFactor is K of BM25 for a document.
func (e *handExample) lengthFactor(doc int) float64 {
	sum, length := 0, 0
	for d := range e.docs {
		n := len(strings.Fields(e.docs[d][1]))
		sum += n
		if d == doc {
			length = n
		}
	}
	return 1.2 * (0.25 + 0.75*float64(length*len(e.docs))/float64(sum))
}

// bm25 is what tf occurrences of a term with this idf add to a score.
func (e *handExample) bm25(doc int, idf, tf float64) float64 {
	return 2.2 * idf * tf / (tf + e.lengthFactor(doc))
}

// TestScoresByHandAreThoseOfTheFormulas computes every number in the tables of
// docs/scoring.md from the texts and the pairs that the page gives.
func TestScoresByHandAreThoseOfTheFormulas(t *testing.T) {
	e := &handExample{page: userTexts(t)["scoring.md"], query: []string{"car", "hire"}}
	e.docs = docTable(t, e.page, "| document | text | length |")
	sel := e.selection(t)
	four := func(v float64) string { return fmt.Sprintf("%.4f", v) }

	var rarity, plain, added, scores [][]string
	var all, product float64 // Σ v and Σ v·fit
	var formula []string     // Δ_j without the fit
	for _, word := range []string{"car", "hire", "rental", "automobile"} {
		df := e.docFreq(word)
		rarity = append(rarity, []string{word, strconv.FormatInt(df, 10), four(simmatrix.IDF(df, int64(len(e.docs))))})
	}
	for _, c := range sel.Candidates {
		o := sel.Origins[c.Origin]
		idf := simmatrix.IDF(c.DocFreq, int64(len(e.docs)))
		v := math.Sqrt(o.IDF*idf) * c.Similarity
		all, product = all+v, product+v*c.Fit
		formula = append(formula, four(0.2*v/idf))
		added = append(added, []string{
			c.Term, o.Term, strconv.FormatFloat(math.Round(c.Similarity*1e4)/1e4, 'f', -1, 64), four(v), four(c.Fit), four(c.V),
			four(0.2 * c.V / idf), four(0.25 * c.V / o.IDF),
		})
	}
	for d, doc := range e.docs {
		if want := strconv.Itoa(len(strings.Fields(doc[1]))); doc[2] != want {
			t.Errorf("document %s has %s words, not %s", doc[0], want, doc[2])
		}
		row := []string{doc[0], four(e.lengthFactor(d))}
		direct, saturated := 0.0, 0.0
		for i, o := range sel.Origins {
			own := e.bm25(d, o.IDF, e.frequency(d, o.Term))
			row = append(row, four(own))
			direct += own
			tf := e.frequency(d, o.Term)
			for _, c := range sel.Candidates {
				if c.Origin == i {
					tf += 0.25 * c.V / o.IDF * e.frequency(d, c.Term)
				}
			}
			saturated += e.bm25(d, o.IDF, tf)
		}
		linear := direct
		for _, c := range sel.Candidates {
			idf := simmatrix.IDF(c.DocFreq, int64(len(e.docs)))
			linear += 0.2 * c.V / idf * e.bm25(d, idf, e.frequency(d, c.Term))
		}
		plain = append(plain, append(row, four(direct)))
		scores = append(scores, []string{doc[0], four(direct), four(linear), four(saturated)})
	}
	for head, want := range map[string][][]string{
		"| word | df | idf |": rarity,
		"| document | K | *car* adds | *hire* adds | score |":                                plain,
		"| neighbor | of | similarity | v | fit | weight | boost (linear) | β (saturated) |": added,
		scoresByHand: scores,
	} {
		check.Equal(t, want, docTable(t, e.page, head), head, "the formulas (want) and the page")
	}
	contains(t, "the page", e.page, "*rental* and *automobile* have "+added[0][6]+" and "+added[1][6], "gives "+strings.Join(formula, " and "),
		"similarity of 0.5 between *car* and *hire*, x' of *car hire* has "+strings.Join(e.withoutFit(t, 0.5), " and "))
	contains(t, "the page", e.page, "1.2040 · 0.8 / √(0.6931² + 1.2040²) = "+added[0][4], "number, "+four(all)+" / "+four(product),
		"0.6465 + 0.2015 · 2.2 · 1.2040 / (1 + 1.3588) = "+scores[0][2], "0.6465 + 2.2 · 1.2040 · 0.2519 / (0.2519 + 1.3588) = "+scores[0][3])
}

const scoresByHand = "| document | without akin | linear | saturated |"
