package main

import (
	"fmt"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/shape"
)

// filterFlags say which terms a matrix is to have.
type filterFlags struct {
	shape.TermFilter

	keep, drop string
}

func (f *filterFlags) register(flags *pflag.FlagSet) {
	flags.Uint32Var(&f.MinDocFreq, "min-df", 0, "leave out terms in fewer documents; default 3 with --from-index")
	flags.Float64Var(&f.MaxDocShare, "max-df-share", 0, "leave out terms in more than this share of the documents")
	flags.IntVar(&f.MinRunes, "min-runes", 0, "leave out shorter terms")
	flags.IntVar(&f.MaxRunes, "max-runes", 0, "leave out longer terms")
	flags.BoolVar(&f.NoDigits, "no-digits", false, "leave out terms that start with a digit")
	flags.StringVar(&f.keep, "keep", "", "leave out terms that this regular expression does not match")
	flags.StringVar(&f.drop, "drop", "", "leave out terms that this regular expression matches")
}

// parse reads the regular expressions and returns all that is wrong.
func (f *filterFlags) parse() []error {
	errs := []error{f.Validate()}
	for _, x := range []struct {
		flag, text string
		to         **regexp.Regexp
	}{{"keep", f.keep, &f.Keep}, {"drop", f.drop, &f.Drop}} {
		if x.text == "" {
			continue
		}
		parsed, err := regexp.Compile(x.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", x.flag, err))
		}
		*x.to = parsed
	}
	return errs
}

// matchWord reports whether a word, whose document frequency nobody knows
// yet, passes the rules on shape.
func (f *filterFlags) matchWord(word string) bool { return f.Match(word, 0, 0) }

// matchFound reports whether the index term of a word passes. Words without one
// pass, too: that they go is told later.
func (f *filterFlags) matchFound(word string, found *shape.ProjectOptions) bool {
	terms := found.IndexTerms[word]
	return len(terms) != 1 || f.Match(terms[0], found.DocFreqs[terms[0]], found.Docs)
}

// inDocuments reports whether a document has the index term of the word.
func inDocuments(word string, found *shape.ProjectOptions) bool {
	terms := found.IndexTerms[word]
	return len(terms) == 1 && found.DocFreqs[terms[0]] > 0
}

// apply leaves the terms out of m.
func (f *filterFlags) apply(m *simmatrix.Matrix, report *terminal.Progress) (*simmatrix.Matrix, error) {
	if f.MaxDocShare > 0 && m.Meta().Docs == 0 {
		report.Tell("--max-df-share: nobody knows the number of documents, so that it leaves nothing out")
	}
	filtered, dropped, err := f.Apply(m)
	if err == nil && dropped > 0 {
		report.Tell("%d terms are left out by the filters", dropped)
	}
	return filtered, err
}
