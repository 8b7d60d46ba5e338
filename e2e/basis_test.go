package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// The file with the accepted densities of E.
const basisFile = "testdata/basis.json"

// What densities are measured of: collections, and the most neighbors of a term
// after they were made symmetric and dominant.
var (
	basisCollections = []string{"med", "cran"}
	basisNeighbors   = []int{2, 3, 5}
)

// asBuilt is S as it was built, symmetrized, with 100 neighbors of a term.
const asBuilt = "100, as built"

// basisDensity is the mean number of entries in a row of E, 0 if S is not
// positive definite, by collection, matrix and neighbors of a term.
type basisDensity map[string]map[string]map[string]float64

// TestBasisDensity answers an open question of the thesis (4.9): how dense is
// E, with S = EEᵀ, for the matrices of section 4.5?
func TestBasisDensity(t *testing.T) {
	long(t)
	t.Parallel()
	got, tokenize := basisDensity{}, newForumTokenizer()
	for _, name := range basisCollections {
		f := &forum{}
		eachLine(t, filepath.Join(check.Data(t, name), "corpus.jsonl"), func(line string) error {
			var d forumThread
			if err := json.Unmarshal([]byte(line), &d); err != nil {
				return err
			}
			f.texts = append(f.texts, [][]string{tokenize(d.Title), tokenize(d.Text)})
			return nil
		})
		got[name] = map[string]map[string]float64{}
		for matrix, m := range newForumMatrices(f).ofTheThesis(t) {
			got[name][matrix] = map[string]float64{asBuilt: rowsOfE(t, m)}
			for _, c := range basisNeighbors {
				cut, err := combine.Sparsify(m, combine.SparsifyOptions{Neighbors: c, Symmetric: true, Dominant: true})
				if err != nil {
					t.Fatal(err)
				}
				got[name][matrix][strconv.Itoa(c)] = rowsOfE(t, cut)
			}
		}
	}
	if *update {
		text, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(basisFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, matrices := range acceptedBasis(t) {
		for matrix, densities := range matrices {
			for c, was := range densities {
				// A rounding of a similarity makes another order, with more or fewer entries.
				if is := got[name][matrix][c]; !(math.Abs(is-was) <= was/10) {
					t.Errorf("%s, %s, %s: %.2f entries in a row of E were accepted, there are %.2f (-update accepts them)", name, matrix, c, was, is)
				}
			}
		}
	}
}

// rowsOfE returns the mean number of entries in a row of E, 0 if there is no E.
func rowsOfE(t *testing.T, m *simmatrix.Matrix) float64 {
	t.Helper()
	_, s := softcosine.FromMatrix(m)
	space, err := softcosine.NewSpace(slices.Repeat([]float64{1}, s.Len()), s.Symmetrized())
	if err != nil {
		t.Fatal(err)
	}
	basis, err := softcosine.NewBasis(t.Context(), space, softcosine.Limits{Entries: 100_000_000, Products: 100_000_000_000})
	if errors.Is(err, softcosine.ErrNotDefinite) {
		return 0
	} else if err != nil {
		t.Fatal(err)
	}
	return math.Round(100*float64(basis.NonZeros())/float64(s.Len())) / 100
}

func acceptedBasis(tb testing.TB) (all basisDensity) {
	tb.Helper()
	if err := json.Unmarshal([]byte(readFile(tb, basisFile)), &all); err != nil {
		tb.Fatalf("%s: %v", basisFile, err)
	}
	return all
}

func TestBasisDocShowsTheAcceptedDensities(t *testing.T) {
	all := acceptedBasis(t)
	var b strings.Builder
	b.WriteString("| neighbors of a term |")
	for _, name := range basisCollections {
		for _, matrix := range []string{relMatrix, levMatrix, avgMatrix} {
			fmt.Fprintf(&b, " %s, %s |", name, matrix)
		}
	}
	b.WriteString("\n|---|---|---|---|---|---|---|\n")
	for _, c := range []string{"2", "3", "5", asBuilt} {
		fmt.Fprintf(&b, "| %s |", c)
		for _, name := range basisCollections {
			for _, matrix := range []string{relMatrix, levMatrix, avgMatrix} {
				switch v := all[name][matrix][c]; {
				case v == 0:
					b.WriteString(" none |")
				case v < 100:
					fmt.Fprintf(&b, " %.1f |", v)
				default:
					fmt.Fprintf(&b, " %.0f |", v)
				}
			}
		}
		b.WriteString("\n")
	}
	checkDocShows(t, reproductionDoc, basisFile, b.String())
}
