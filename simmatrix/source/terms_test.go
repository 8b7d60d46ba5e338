package source

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

func TestReadTermsReadsTermsAndDocumentFrequencies(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []simmatrix.Term
	}{
		{"terms", "car\nbus\n", []simmatrix.Term{{Text: "car", DocFreq: 0}, {Text: "bus", DocFreq: 0}}},
		{"document frequencies", "car\t12\nbus\t 4294967295 \ntram\t0", []simmatrix.Term{{Text: "car", DocFreq: 12}, {Text: "bus", DocFreq: 4294967295}, {Text: "tram", DocFreq: 0}}},
		{"blank lines", "\n \t\ncar\n\n\r\n", []simmatrix.Term{{Text: "car", DocFreq: 0}}},
		{"blanks and signs are parts of terms", "#1\n new york \t2\n", []simmatrix.Term{{Text: "#1", DocFreq: 0}, {Text: " new york ", DocFreq: 2}}},
		{"the longest", strings.Repeat("a", simmatrix.MaxTermBytes), []simmatrix.Term{{Text: strings.Repeat("a", simmatrix.MaxTermBytes), DocFreq: 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := check.Got(ReadTerms(iotest.OneByteReader(strings.NewReader(tt.text))))(t)
			check.Equal(t, tt.want, got)
		})
	}
}

func TestReadTermsNamesTheBadLine(t *testing.T) {
	for _, tt := range []struct{ name, text, message string }{
		{"no term before the tab", "a\n\t1\n", `line 2: term ""`},
		{"not UTF-8", "a\n\xff\n", "line 2: term"},
		{"too long", "a\n" + strings.Repeat("a", simmatrix.MaxTermBytes+1), "line 2: term"},
		{"twice", "b\na\n\nb\t2\n", `line 4: term "b" is on line 1, too`},
		{"negative", "a\t-1\n", `line 1: document frequency "-1"`},
		{"fraction", "a\t1.5\n", `line 1: document frequency "1.5"`},
		{"more than 32 bits", "a\t4294967296\n", "line 1: document frequency"},
		{"nothing behind the tab", "a\t\n", `line 1: document frequency ""`},
		{"a second tab", "a\t1\t2\n", "line 1: document frequency"},
		{"a carriage return inside", "a\rb\n", "line 1: term"},
		{"nothing", "", "the list is empty"},
		{"only blank lines", "\n \n", "the list is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			terms, err := ReadTerms(strings.NewReader(tt.text))
			if terms != nil || !errors.Is(err, ErrTerms) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %.200v, want ErrTerms with %q", err, tt.message)
			}
		})
	}
	check.Error(t, simmatrix.ErrNoVocabulary, check.ErrOf(ReadTerms(strings.NewReader(""))))
}

func FuzzReadTerms(f *testing.F) {
	f.Add([]byte("car\t12\nbus\n"))
	f.Add([]byte("\xef\xbb\xbfa b\t0\r\n\r\n#\n"))
	f.Add([]byte(gzipped(f, "a\t1\n")))
	f.Fuzz(func(t *testing.T, file []byte) {
		terms, err := ReadTerms(bytes.NewReader(file))
		if err != nil {
			check.Must(t, terms == nil && errors.Is(err, ErrTerms), "%v, %v", terms, err)
			return
		}
		// They can be terms of a matrix, and come back from a plain list.
		rows := make([]simmatrix.TermRow, len(terms))
		var list strings.Builder
		list.WriteString(lines.ByteOrderMark) // the first term may begin with one
		for i, term := range terms {
			rows[i] = simmatrix.TermRow{Term: term.Text, DocFreq: term.DocFreq}
			fmt.Fprintf(&list, "%s\t%d\n", term.Text, term.DocFreq)
		}
		matrixtest.New(t, simmatrix.Meta{}, rows)
		again, err := ReadTerms(strings.NewReader(list.String()))
		check.OK(t, err)
		check.Equal(t, terms, again)
	})
}
