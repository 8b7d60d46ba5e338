package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/source"
)

type combineFlags struct {
	paths     []string
	names     []string // of the files without extension, where there are several
	weights   []float64
	relations string
	options   combine.Options
}

func (c *combineFlags) register(flags *pflag.FlagSet) {
	c.options = combine.DefaultOptions()
	flags.StringSliceVar(&c.paths, "from-matrices", nil, "these matrix files: one to work over, several to combine")
	flags.StringVar((*string)(&c.options.Rule), "combine", string(c.options.Rule), "average, minimum, maximum, weighted or regression")
	flags.Float64SliceVar(&c.weights, "weights", nil, "with --combine weighted, one for each matrix")
	flags.StringVar(&c.relations, "relations", "", "with --combine regression, synonym file or matrix file that the regression is fitted to")
}

// check returns all that is wrong with the flags. None of them goes with a
// single matrix, which is for others to say.
func (c *combineFlags) check(all *matrixFlags) error {
	c.options.Neighbors = all.rows.Neighbors
	if len(c.paths) < 2 {
		return nil
	}
	weighted, fitted := c.options.Rule == combine.RuleWeighted, c.options.Rule == combine.RuleRegression
	var errs []error
	for _, path := range c.paths {
		base := filepath.Base(path)
		name := cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base)
		if len(c.paths) > 1 && (name == simmatrix.OriginOverrides || slices.Contains(c.names, name)) {
			errs = append(errs, fmt.Errorf("--from-matrices: %s would be called %q, as another source is: rename it", path, name))
		}
		c.names = append(c.names, name)
	}
	switch {
	case weighted && len(c.weights) != len(c.paths):
		errs = append(errs, fmt.Errorf("--weights: %d for %d matrices", len(c.weights), len(c.paths)))
	case !weighted && len(c.weights) > 0:
		errs = append(errs, errors.New("--weights goes with --combine weighted"))
	}
	for _, w := range c.weights {
		if !(w > 0) || math.IsInf(w, 1) {
			errs = append(errs, fmt.Errorf("--weights: %v is not above 0 and finite", w))
		}
	}
	if fitted != (c.relations != "") {
		errs = append(errs, errors.New("--relations FILE and --combine regression go together"))
	}
	if len(c.paths) > simmatrix.MaxOrigins {
		errs = append(errs, fmt.Errorf("--from-matrices: %d, at most %d", len(c.paths), simmatrix.MaxOrigins))
	}
	if !fitted { // which is validated when there is one
		errs = append(errs, c.options.Validate())
	}
	return errors.Join(errs...)
}

// build combines the matrices. A single one is taken as it is. What the
// filters leave out and the overrides ban goes before the rows are cut, so that
// others take its place, and what they pin has a place.
func (c *combineFlags) build(ctx context.Context, f *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error) {
	inputs, err := c.read(ctx, report)
	if err != nil || len(inputs) == 1 {
		return inputs[0].Matrix, err
	}
	if f.field.URL == "" { // else the rules are for the index terms
		for k := range inputs {
			if f.rows.rules, _, err = f.rows.rules.Resolve(inputs[k].Matrix); err != nil {
				return nil, cli.Usage(err)
			}
		}
		bans := &combine.Overrides{}
		for rule := range f.rows.rules.All() {
			if rule.Action == combine.ActionBan {
				if err := bans.Add(rule); err != nil {
					return nil, err
				}
			}
		}
		for k := range inputs {
			m, _, err := f.terms.Apply(inputs[k].Matrix)
			if err == nil {
				inputs[k].Matrix, _, err = bans.Apply(m)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.paths[k], err)
			}
		}
	}
	options := c.options
	options.Protect = f.rows.rules.Protects
	options.Source = "ensemble (" + string(c.options.Rule) + ") of " + strings.Join(c.names, ", ")
	if c.relations != "" {
		relations, err := readRelations(ctx, c.relations)
		if err != nil {
			return nil, err
		}
		report.Step("fitting the regression", 0, 0)
		if options.Regression, err = combine.FitRegression(ctx, inputs, relations); err != nil {
			return nil, err
		}
		report.Tell("%v", options.Regression)
	}
	return combine.Combine(ctx, inputs, options, report.Step)
}

func (c *combineFlags) read(ctx context.Context, report *cli.Progress) (inputs []combine.Input, err error) {
	inputs = make([]combine.Input, len(c.paths))
	for k, path := range c.paths {
		report.Step("reading matrices", k, len(c.paths))
		if inputs[k].Matrix, err = cli.ReadMatrix(ctx, path); err != nil {
			return inputs, err
		}
		if len(c.names) > 0 {
			inputs[k].Name = c.names[k]
		}
		if len(c.weights) > 0 {
			inputs[k].Weight = c.weights[k]
		}
	}
	return inputs, nil
}

// readRelations reads a synonym file, or a matrix file: one of a synonym file
// whose words are index terms by now.
func readRelations(ctx context.Context, path string) (*simmatrix.Matrix, error) {
	return cli.Read(ctx, path, func(r io.Reader) (*simmatrix.Matrix, error) {
		in := bufio.NewReaderSize(r, 1<<20)
		if simmatrix.IsEncoded(in) {
			return simmatrix.Decode(in)
		}
		m, _, err := source.ReadThesaurus(in, source.DefaultThesaurusOptions())
		return m, err
	})
}
