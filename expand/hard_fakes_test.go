package expand

import (
	"context"
	"testing"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/simmatrix"
)

// fakeWeights are weights bound to every field but "unweighted", and what the
// indices hold for ModeHard in every field but "crooked" and "bare".
type fakeWeights struct {
	docs     int64
	docFreqs map[string]int64
	scripted bool
	// factor is c without a script.
	factor float64
	// rowsErr and linearErr are what the calls return, unless nil, and before,
	// unless nil, is called before each with its name.
	rowsErr, linearErr error
	before             func(call string)
}

func (f *fakeWeights) Pin() PinnedWeights { return f }

func (f *fakeWeights) Weights(_ context.Context, _ esclient.Indices, field string) (Weights, error) {
	if field == "unweighted" {
		return nil, nil
	}
	return f, nil
}

func (*fakeWeights) ID() string { return "0123456789abcdef" }

func (f *fakeWeights) Docs() int64 { return f.docs }

func (f *fakeWeights) Rows(_ context.Context, terms []string, rows []simmatrix.Row) error {
	f.call("weights")
	for k, t := range terms {
		df, ok := f.docFreqs[t]
		if !ok {
			continue
		}
		var err error
		if rows[k], err = simmatrix.PackRow(uint32(df), nil); err != nil {
			return err
		}
	}
	return f.rowsErr
}

func (f *fakeWeights) Linear(_ context.Context, _ esclient.Indices, field, weights, matrix string) (esclient.Linear, error) {
	f.call("linear")
	switch {
	case f.linearErr != nil:
		return esclient.Linear{}, f.linearErr
	case field == "crooked":
		return esclient.Linear{}, esclient.ErrNoLinear
	case field == "bare" || weights != f.ID():
		return esclient.Linear{}, esclient.ErrNoNorms
	}
	l := linearOf(field, f)
	if matrix != "" {
		l.Norm = "akin_soft_norm." + field
	}
	return l, nil
}

func (f *fakeWeights) call(name string) {
	if f.before != nil {
		f.before(name)
	}
}

// linearOf is what the fake says of a field.
func linearOf(field string, f *fakeWeights) esclient.Linear {
	return esclient.Linear{
		Field: field + ".linear", Scripted: f.scripted, Factor: f.factor,
		Norm: "akin_norm." + field, Missing: 7.5,
	}
}

// rentalWeights are weights for the terms of rental; "gone" and others have
// none.
func rentalWeights() *fakeWeights {
	return &fakeWeights{
		docs: 2000, factor: 1.0001,
		docFreqs: map[string]int64{"car": 120, "rental": 40, "automobile": 25, "hire": 70, "lease": 9},
	}
}

// hardRental returns an expander of rental in ModeHard.
func hardRental(tb testing.TB, change func(c *fakeCluster, f *fakeWeights, o *Profile)) *Expander {
	tb.Helper()
	c, m := rental(tb)
	f := rentalWeights()
	o := with(func(o *Profile) { o.Mode = ModeHard })
	if change != nil {
		change(c, f, &o)
	}
	return New(c, m, o).WithWeights(f)
}
