package simmatrix

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ErrTerms is wrapped by the errors of [ReadTerms] that are the file's fault.
// They name the line.
var ErrTerms = errors.New("bad list of terms")

// A Term is a term that gets a row.
type Term struct {
	// Text is the term itself.
	Text string
	// DocFreq is the number of documents that hold it, 0 where unknown.
	DocFreq uint32
}

// ReadTerms reads a list of terms, plain or compressed by gzip: lines of
//
//	term TAB document frequency
//
// where the tab and what follows it may be missing, in UTF-8, in any
// order. Lines of nothing but blanks and tabs, the ends of lines of Windows and
// a byte order mark are passed over. There are no comments, since a term may
// begin with #. Terms are taken as they stand, with their blanks, control
// characters and case.
//
// Errors wrap [ErrTerms] and name the line: a term that is empty, not UTF-8,
// longer than [MaxTermBytes], there twice or holds a carriage return, a
// document frequency that is no whole number from 0 to 4294967295, a second
// tab, a line over 1 MiB. The error wraps [ErrNoVocabulary] where there is no
// term.
func ReadTerms(r io.Reader) ([]Term, error) {
	in, err := decompress(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	var terms []Term
	first := make(map[string]int) // the line of each term
	lines := newLineReader(in)
	for line, ok := lines.next(); ok; line, ok = lines.next() {
		if len(bytes.Trim(line, " \t")) == 0 {
			continue
		}
		t, err := parseTerm(line)
		if err == nil && first[t.Text] > 0 {
			err = fmt.Errorf("term %.40q is on line %d, too", t.Text, first[t.Text])
		}
		if err == nil && len(terms) == MaxTerms {
			err = fmt.Errorf("more than %d terms", MaxTerms)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrTerms, lines.number, err)
		}
		first[t.Text] = lines.number
		terms = append(terms, t)
	}
	if err := lines.err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if len(terms) == 0 {
		return nil, fmt.Errorf("%w: %w: the list is empty", ErrTerms, ErrNoVocabulary)
	}
	return terms, nil
}

func parseTerm(line []byte) (Term, error) {
	text, docFreq, counted := bytes.Cut(line, []byte("\t"))
	t := Term{Text: string(text)}
	if err := checkTerm(t.Text); err != nil {
		return Term{}, err
	}
	if bytes.ContainsRune(text, '\r') {
		return Term{}, fmt.Errorf("term %.40q holds a carriage return", t.Text)
	}
	if !counted {
		return t, nil
	}
	field := string(bytes.Trim(docFreq, " "))
	n, err := strconv.ParseUint(field, 10, 32)
	if err != nil {
		return Term{}, fmt.Errorf("document frequency %.40q is no whole number from 0 to 4294967295", field)
	}
	t.DocFreq = uint32(n)
	return t, nil
}
