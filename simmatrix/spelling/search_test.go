package spelling

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// levenshtein is the plain dynamic program of Wagner and Fischer (1974).
func levenshtein[T comparable](a, b []T) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			replaced := diagonal
			if x != y {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// allEditRows is what FromTerms computes, by comparing all pairs.
func allEditRows(o Options, words []string) map[string][]simmatrix.Neighbor {
	rows := map[string][]simmatrix.Neighbor{}
	for _, a := range words {
		rows[a] = nil
		for _, b := range words {
			d, m := levenshtein([]rune(a), []rune(b)), max(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
			shorter := min(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
			if a == b || d > o.MaxDistance || float64(m)/float64(shorter) > o.LengthRatio {
				continue
			}
			if u := o.units(d, m); u > 0 {
				rows[a] = append(rows[a], simmatrix.Neighbor{Term: b, Similarity: simmatrix.FromUnits(u)})
			}
		}
		slices.SortFunc(rows[a], func(x, y simmatrix.Neighbor) int {
			return cmp.Or(cmp.Compare(y.Similarity, x.Similarity), cmp.Compare(x.Term, y.Term))
		})
		if len(rows[a]) > o.Neighbors {
			rows[a] = rows[a][:o.Neighbors]
		}
	}
	return rows
}

// randomSpellings returns up to n distinct words of up to length letters.
func randomSpellings(random *rand.Rand, n, length int, letters []rune) []string {
	words := map[string]bool{}
	for range n {
		var b strings.Builder
		for range 1 + random.IntN(length) {
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		words[b.String()] = true
	}
	return slices.Sorted(func(yield func(string) bool) {
		for w := range words {
			if !yield(w) {
				return
			}
		}
	})
}

func TestEditMatrixIsThatOfAllPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alphabets := [][]rune{[]rune("ab"), []rune("abcdef"), []rune("aéè"), []rune("x語言訁𝒳"), {0, 'a', 0x10FFFF}}
	for formula := range formulas {
		for k := range MaxDistance {
			for range 15 {
				o := Options{
					Formula: formula, MaxDistance: k + 1,
					Theta1: 0.5 + random.Float64()*2, Theta2: 0.5 + random.Float64()*6,
					LengthRatio: []float64{1, 1.1, 1.5, 100}[random.IntN(4)],
					Neighbors:   []int{1, 2, 5, 20, 1000}[random.IntN(5)],
				}
				words := randomSpellings(random, 1+random.IntN(80), 1+random.IntN(9), alphabets[random.IntN(len(alphabets))])
				diff := gocmp.Diff(allEditRows(o, words), matrixtest.ByTerm(mustEdit(t, o, words...)))
				check.Must(t, diff == "", "%+v, %q:\n%s", o, words, diff)
			}
		}
	}
}

func TestEditMatrixIsThatOfAllPairsAmongManyChildren(t *testing.T) {
	// A node of the tree has so many children that their letters are looked up:
	// every word of two letters out of twenty, and some besides.
	var words []string
	for a := range 20 {
		for b := range 20 {
			words = append(words, string(rune('A'+a))+"x"+string(rune('A'+b)))
		}
		words = append(words, string(rune('A'+a)), strings.Repeat(string(rune('A'+a)), 4))
	}
	for _, neighbors := range []int{3, 40, 2000} {
		o := wideEdit(2)
		o.Neighbors = neighbors
		check.Equal(t, allEditRows(o, words), matrixtest.ByTerm(mustEdit(t, o, words...)))
	}
}

func TestEditOfLongTerms(t *testing.T) {
	// Terms as long as an index allows them, of one byte and of three a letter,
	// that differ at the beginning, in the middle and at the end.
	for _, letter := range []string{"a", "語"} {
		long := strings.Repeat(letter, simmatrix.MaxTermBytes/len(letter)-3)
		half := long[:len(letter)*(len(long)/len(letter)/2)]
		words := []string{
			long, "x" + long, long + "x", half + "x" + long[len(half):], "x" + long + "x", "xyz" + long,
			"y" + long[len(letter):], long[:len(long)-len(letter)],
		}
		m, letters := mustEdit(t, wideEdit(3), words...), utf8.RuneCountInString
		want := []int{0, 1, 1, 1, 2, 3, 1, 1} // the distances to the first
		for k, d := range want {
			if got := similarityOf(m, words[0], words[k]); k > 0 && got != simmatrix.QuantizeSimilarity(1-float64(d)/float64(max(letters(words[0]), letters(words[k])))) {
				t.Errorf("%s: word %d has %v, want distance %d", letter, k, got, d)
			}
		}
		if got := similarityOf(m, words[5], words[6]); got != simmatrix.QuantizeSimilarity(1-3/float64(letters(words[5]))) { // xyz+long, y+rest: 3
			t.Errorf("%s: %v", letter, got)
		}
	}
}

func TestEditOfTermsThatAllLookAlike(t *testing.T) {
	// Any two of 20,000 terms are a letter or two apart: 400 million pairs. A
	// row is the first of them.
	const n = 20_000
	for _, format := range []string{"warehouse%c", "%cwarehouse"} {
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprintf(format, rune(0x10000+i))
		}
		o := DefaultOptions()
		o.Neighbors = 3
		m := mustEdit(t, o, words...)
		got := slices.Collect(m.Row(words[n-1]).All())
		check.That(t, len(got) == 3 && got[0].Term == words[0] && got[1].Term == words[1] && got[2].Term == words[2], "%s: %+v", format, got)
		check.Equal(t, 3*n, m.Meta().NonZeros, format)
	}
}
