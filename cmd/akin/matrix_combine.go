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
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/source"
)

type combineFlags struct {
	paths   []string
	names   []string // file names without extension, if there are several
	rule    string   // with its argument after a colon
	weights []float64
	options combine.Options
}

func (c *combineFlags) register(flags *pflag.FlagSet) {
	c.options = combine.DefaultOptions()
	flags.StringSliceVar(&c.paths, "from-matrices", nil, "these matrix files: one to change, several to combine")
	flags.StringVar(&c.rule, "combine", string(c.options.Rule),
		"average, minimum, maximum, median, percentile:P, weighted:W,W with one number for each matrix, "+
			"or regression:FILE, fitted to a synonym file or a matrix file")
}

// relations returns the file for fitting a regression, "" for none.
func (c *combineFlags) relations() string {
	path, _ := strings.CutPrefix(c.rule, string(combine.RuleRegression)+":")
	if path == c.rule {
		return ""
	}
	return path
}

// check returns everything wrong with the flags. They do not go with a single
// matrix, which is checked elsewhere.
func (c *combineFlags) check(all *matrixFlags) error {
	c.options.Neighbors = all.rows.Neighbors
	if len(c.paths) < 2 {
		return nil
	}
	rule, argument, given := strings.Cut(c.rule, ":")
	c.options.Rule = combine.Rule(rule)
	var errs []error
	for _, path := range c.paths {
		base := filepath.Base(path)
		name := cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base)
		if len(c.paths) > 1 && (name == simmatrix.OriginOverrides || slices.Contains(c.names, name)) {
			errs = append(errs, fmt.Errorf("--from-matrices: %s would be called %q, as another source is: rename it", path, name))
		}
		c.names = append(c.names, name)
	}
	switch c.options.Rule {
	case combine.RuleWeighted:
		for text := range strings.SplitSeq(argument, ",") {
			w, err := strconv.ParseFloat(text, 64)
			if err != nil || !(w > 0) || math.IsInf(w, 1) {
				errs = append(errs, fmt.Errorf("--combine weighted: %q is not a number above 0", text))
			}
			c.weights = append(c.weights, w)
		}
		if len(c.weights) != len(c.paths) {
			errs = append(errs, fmt.Errorf("--combine weighted: %d numbers for %d matrices", len(c.weights), len(c.paths)))
		}
	case combine.RulePercentile:
		p, err := strconv.ParseFloat(argument, 64)
		c.options.Percentile = p
		if err != nil || c.options.Validate() != nil {
			errs = append(errs, fmt.Errorf("--combine percentile:P: %q is not a number from 0 to 100: write percentile:90, or median for percentile:50", argument))
		}
	case combine.RuleRegression: // validated once it is fitted
		if argument == "" {
			errs = append(errs, errors.New("--combine regression:FILE: name a synonym file or a matrix file"))
		}
	default:
		err := c.options.Validate()
		if err == nil && given {
			err = fmt.Errorf("--combine: %s takes nothing after it", rule)
		}
		errs = append(errs, err)
	}
	if len(c.paths) > simmatrix.MaxOrigins {
		errs = append(errs, fmt.Errorf("--from-matrices: %d, at most %d", len(c.paths), simmatrix.MaxOrigins))
	}
	return errors.Join(errs...)
}

// build combines the matrices, or returns a single one unchanged. It applies
// filters and bans before it cuts the rows, so that other neighbors move up,
// and keeps pinned entries.
func (c *combineFlags) build(ctx context.Context, f *matrixFlags, report *cli.Progress) (*simmatrix.Matrix, error) {
	inputs, err := c.read(ctx, report)
	if err != nil || len(inputs) == 1 {
		return inputs[0].Matrix, err
	}
	if !f.field.projects { // otherwise the rules are for index terms
		for k := range inputs {
			if f.rows.rules, _, err = f.rows.rules.Resolve(inputs[k].Matrix, nil); err != nil {
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
	if path := c.relations(); path != "" {
		relations, err := readRelations(ctx, path)
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

// readRelations reads a synonym file or a matrix file. A matrix file allows
// synonyms that are already index terms.
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
