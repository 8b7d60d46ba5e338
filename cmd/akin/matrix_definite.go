package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/softcosine"
)

// Bounds of "matrix check --definite". A processor makes some 10⁹ products a
// second.
const (
	definiteGiB      = 4
	definiteProducts = 100_000_000_000
	// S takes this much while its factor is made, which has 12 bytes an entry.
	definiteEntryBytes, definiteTermBytes = 100, 500
)

// A definiteness says whether ½(S + Sᵀ) is positive definite.
type definiteness struct {
	Answer string `json:"answer"`         // yes, no, or unknown within the bounds
	Term   string `json:"term,omitempty"` // no: at which the factor fails
	Terms  int    `json:"terms"`          // of the factor until then: ½(S + Sᵀ) is positive definite for these
	// Fill is the number of entries of the factor over those of the lower half of
	// ½(S + Sᵀ), the diagonal counted in both; only for yes.
	Fill float64 `json:"fill,omitempty"`
}

// definiteOf makes the factor of a matrix within bounds of memory, in bytes,
// and of products.
func definiteOf(ctx context.Context, m *simmatrix.Matrix, bytes, products int) (*definiteness, error) {
	meta := m.Meta()
	entries := (bytes - definiteEntryBytes*int(meta.NonZeros) - definiteTermBytes*m.Len()) / 12 //nolint:gosec // a matrix in memory
	if entries < m.Len() {
		return &definiteness{Answer: "unknown"}, nil
	}
	vocabulary, s := softcosine.FromMatrix(m)
	s = s.Symmetrized()
	space, err := softcosine.NewSpace(slices.Repeat([]float64{1}, s.Len()), s)
	if err != nil {
		return nil, err
	}
	basis, err := softcosine.NewBasis(ctx, space, softcosine.Limits{Entries: entries, Products: products})
	var pivot *softcosine.PivotError
	var limit *softcosine.LimitError
	switch {
	case errors.As(err, &pivot):
		return &definiteness{Answer: "no", Term: vocabulary.Term(pivot.Term), Terms: pivot.Done}, nil
	case errors.As(err, &limit):
		return &definiteness{Answer: "unknown", Terms: limit.Done}, nil
	case err != nil:
		return nil, err
	}
	half := s.NonZeros()/2 + s.Len()
	return &definiteness{Answer: "yes", Terms: s.Len(), Fill: float64(basis.NonZeros()) / float64(max(half, 1))}, nil
}

// report prints the answer, terms being those of the matrix.
func (d *definiteness) report(out io.Writer, terms uint64) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\npositive definite\t%s", d.Answer)
	switch d.Answer {
	case "yes":
		fmt.Fprintf(w, "\nfactor\t%.4g entries for each of S\n", d.Fill)
	case "no":
		fmt.Fprintf(w, "\nfails at\t%s, after %d of %d terms\n", cli.Visible(d.Term), d.Terms, terms)
	default:
		fmt.Fprintf(w, ": not within %d GiB and %d billion multiplications\nfactor\t%d of %d terms\n", definiteGiB, definiteProducts/1_000_000_000, d.Terms, terms)
	}
	return w.Flush()
}
