package source

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// A reader reads files of such lines. Its errors wrap is.
type reader struct {
	line string
	read func(io.Reader) error
	is   error
}

func readers() map[string]reader {
	return map[string]reader{
		"terms":     {"car\t3", func(r io.Reader) error { _, err := ReadTerms(r); return err }, ErrTerms},
		"TSV":       {"car\tbus\t1", func(r io.Reader) error { _, err := ReadTSV(r, ""); return err }, ErrList},
		"thesaurus": {"car, bus", func(r io.Reader) error { _, _, err := ReadThesaurus(r, DefaultThesaurusOptions()); return err }, ErrThesaurus},
		"vectors":   {"car 1", func(r io.Reader) error { _, err := ReadVectors(r, ReadVectorsOptions{}); return err }, ErrVectors},
	}
}

func TestEveryReaderTakesFilesAsSystemsWriteThem(t *testing.T) {
	for name, r := range readers() {
		for what, file := range map[string]string{
			"gzip": gzipped(t, r.line+"\n"), "Windows": lines.ByteOrderMark + r.line + "\r\n", "no end": r.line,
		} {
			err := r.read(iotest.OneByteReader(strings.NewReader(file)))
			check.That(t, err == nil, "%s, %s: %v", name, what, err)
		}
	}
}

func TestEveryReaderSaysWhereAFileIsBroken(t *testing.T) {
	broken := errors.New("disk on fire")
	for name, r := range readers() {
		for what, tt := range map[string]struct {
			file io.Reader
			want string
			is   error
		}{
			"line too long":  {strings.NewReader(r.line + "\n" + strings.Repeat("a", lines.MaxBytes+1)), "line 2: longer than", r.is},
			"no gzip":        {strings.NewReader("\x1f\x8bx"), "line 1: gzip", r.is},
			"gzip cut short": {strings.NewReader(gzipped(t, r.line+"\n")[:20]), "after line", r.is},
			"broken":         {io.MultiReader(strings.NewReader(r.line+"\n"), iotest.ErrReader(broken)), "after line 1", broken},
		} {
			err := r.read(tt.file)
			check.That(t, errors.Is(err, tt.is) && strings.Contains(err.Error(), tt.want), "%s, %s: error %.200v, want %v, %s", name, what, err, tt.is, tt.want)
		}
	}
	for _, name := range []string{"TSV", "thesaurus"} {
		r := readers()[name]
		for _, file := range []string{"\xff\xfea\x00\t\x00", gzipped(t, "\xfe\xff\x00a\x00\t")} {
			err := r.read(strings.NewReader(file))
			check.That(t, errors.Is(err, r.is) && strings.Contains(err.Error(), "line 1: the file looks like UTF-16"), "%s: error %v", name, err)
		}
	}
}

func TestOptionsReportEveryBadSetting(t *testing.T) {
	_, vectors := ReadVectors(strings.NewReader("a 1\n"), ReadVectorsOptions{MaxWords: -1})
	_, _, thesaurus := ReadThesaurus(strings.NewReader("a, b\n"), ThesaurusOptions{Similarity: 1.1, Neighbors: -1})
	for want, err := range map[string]error{
		"max words: -1": vectors, "similarity: 1.1": thesaurus, "neighbors: -1": thesaurus,
	} {
		check.Message(t, want, err)
	}
	defaults := DefaultThesaurusOptions()
	check.OK(t, defaults.Validate())
}
