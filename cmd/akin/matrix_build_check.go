package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/source"
	"github.com/akin-search/akin/simmatrix/spelling"
)

// checkEmpty names the flags that are given with nothing in them, as by a
// variable of a script that is not set.
func checkEmpty(flags *pflag.FlagSet) []error {
	var errs []error
	flags.Visit(func(flag *pflag.Flag) {
		empty := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0
		}
		if empty && flag.Name != "joiner" && flag.Name != "out" { // words may be joined by nothing; --out is told of anyway
			errs = append(errs, fmt.Errorf("--%s is empty", flag.Name))
		}
	})
	return errs
}

// checkIdle names the flags that go with the source and do nothing for want of
// another.
func (f *buildFlags) checkIdle(from matrixSource, flags *pflag.FlagSet) []error {
	var errs []error
	for _, rule := range []struct {
		source string // "" is any
		flags  []string
		met    bool
		needs  string
	}{
		{"from-edit-distance", []string{"theta1", "theta2"}, f.formula == string(spelling.Power), "--formula power"},
		{"from-thesaurus", []string{"joiner"}, f.multiWord == string(source.MultiWordJoin), "--multi-word join"},
		{"from-matrices", []string{"combine", "weights", "relations"}, len(f.combine.paths) > 1, "several matrices"},
		{"", []string{"ca-file"}, f.target.cluster != "" || f.docs.url != "", "--cluster or --from-index"},
	} {
		for _, name := range rule.flags {
			if flags.Changed(name) && !rule.met && (rule.source == "" || rule.source == from.flag) {
				errs = append(errs, fmt.Errorf("--%s does nothing without %s", name, rule.needs))
			}
		}
	}
	return errs
}

// checkInputs names the files to read that are not there and those that --out
// would take the place of. It may take the place of a matrix to work over,
// which has been read when it is written.
func (f *buildFlags) checkInputs() []error {
	var errs []error
	check := func(flag, path string) {
		switch info, err := os.Stat(path); {
		case path == "":
			errs = append(errs, fmt.Errorf("--%s: the name of a file is empty", flag))
		case err != nil:
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		case info.IsDir():
			errs = append(errs, fmt.Errorf("--%s: %s is a folder", flag, path))
		case f.out != "" && flag != "from-matrices" && files.Same(f.out, path):
			errs = append(errs, fmt.Errorf("--out: %s is the file of --%s: name another", f.out, flag))
		}
	}
	for _, input := range []struct{ flag, path string }{
		{"from-vectors", f.paths.vectors},
		{"from-edit-distance", f.paths.edit},
		{"from-thesaurus", f.paths.thesaurus},
		{"from-tsv", f.paths.tsv},
		{"from-matrix-market", f.paths.market},
		{"vocabulary", f.paths.vocabulary},
		{"relations", f.combine.relations},
		{"overrides", f.overrides},
		{"ca-file", f.target.caFile},
	} {
		if input.path != "" {
			check(input.flag, input.path)
		}
	}
	for _, path := range f.combine.paths {
		check("from-matrices", path)
	}
	return errs
}

// checkRows checks the flags on the rows. It sets right what is wrong, so that
// the sources, which get them too, do not say it again.
func (f *buildFlags) checkRows() []error {
	var errs []error
	if s := &f.sparsify; s.Neighbors < 1 || s.Neighbors > simmatrix.MaxNeighbors {
		errs = append(errs, fmt.Errorf("--top: %d not in [1, %d]", s.Neighbors, simmatrix.MaxNeighbors))
		s.Neighbors = learn.DefaultVectorOptions().Neighbors
	}
	if s := &f.sparsify; !(s.Threshold >= 0 && s.Threshold < 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("--min-similarity: %v not in [0, 1)", s.Threshold))
	}
	return errs
}
