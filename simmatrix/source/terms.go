// Package source reads matrices and terms of other programs: lists of terms and
// similarities, thesauri in Solr's and WordNet's formats, and word vectors. It
// also writes lists.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// Errors in files. Errors that wrap them name the line or, in a binary file,
// the word and its offset.
var (
	ErrTerms     = errors.New("bad list of terms")
	ErrList      = errors.New("bad list of similarities") // of [ReadTSV]
	ErrThesaurus = errors.New("bad thesaurus")
	ErrVectors   = errors.New("bad vectors file")
)

// ReadTerms reads a list of terms, plain or gzip-compressed: lines of
//
//	term TAB document frequency
//
// in UTF-8, in any order. The tab and the frequency are optional. Blank lines
// and a byte order mark are ignored. Terms are taken as written.
//
// Errors wrap [ErrTerms] and name the line: a term that cannot have a row, is
// repeated or has a carriage return, a document frequency that is not a whole
// number up to 4294967295, a second tab, a line over 1 MiB; or
// [simmatrix.ErrNoVocabulary].
func ReadTerms(r io.Reader) ([]simmatrix.Term, error) {
	var terms []simmatrix.Term
	first := make(map[string]int) // by term: its line
	_, err := lines.Each(r, func(line []byte, number int) error {
		if len(bytes.Trim(line, " \t")) == 0 {
			return nil
		}
		t, err := parseTerm(line)
		switch {
		case err != nil:
			return err
		case first[t.Text] > 0:
			return fmt.Errorf("term %.40q is on line %d, too", t.Text, first[t.Text])
		case len(terms) == simmatrix.MaxTerms:
			return fmt.Errorf("more than %d terms", simmatrix.MaxTerms)
		}
		first[t.Text] = number
		terms = append(terms, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if len(terms) == 0 {
		return nil, fmt.Errorf("%w: %w: the list is empty", ErrTerms, simmatrix.ErrNoVocabulary)
	}
	return terms, nil
}

func parseTerm(line []byte) (simmatrix.Term, error) {
	text, docFreq, counted := bytes.Cut(line, []byte("\t"))
	t := simmatrix.Term{Text: string(text)}
	if err := simmatrix.CheckTerm(t.Text); err != nil {
		return simmatrix.Term{}, err
	}
	if bytes.ContainsRune(text, '\r') {
		return simmatrix.Term{}, fmt.Errorf("term %.40q holds a carriage return", t.Text)
	}
	if !counted {
		return t, nil
	}
	field := string(bytes.Trim(docFreq, " "))
	n, err := strconv.ParseUint(field, 10, 32)
	if err != nil {
		return simmatrix.Term{}, fmt.Errorf("document frequency %.40q is no whole number from 0 to 4294967295", field)
	}
	t.DocFreq = uint32(n)
	return t, nil
}
