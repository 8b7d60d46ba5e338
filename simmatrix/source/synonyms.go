package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// ReadThesaurus reads a file of synonyms, plain or compressed by gzip, in
// UTF-8, as Elasticsearch, OpenSearch and Solr take it.
//
// In Solr's format a line is a group or a rule:
//
//	# A comment begins in the first column.
//	car, automobile, motor car          each is a neighbor of the others
//	jag, beemer => car, automobile      those on the right become neighbors of
//	                                    those on the left, not the other way
//	# akin: similarity 0.8
//	hire, rental                        0.8, as are the lines that follow
//
// A backslash takes its meaning from the character behind it: \, is a comma in
// an entry, \=> an arrow. Blanks around an entry do not count. An empty one, as
// behind a last comma, is ignored, and so is one of blanks, which the engines
// refuse. Their filters replace a term by the right side of its rule, and not
// here.
//
// A file whose first line begins with "s(" and a digit is in the format of
// WordNet's wn_s.pl. The number of the set of
// synonyms and the word are read:
//
//	s(104167661,1,'car',n,1,71).
//	s(104167661,2,'o''clock',r,1,2).
//
// Comments work as in Solr's format. A set has the similarity of the first of
// its words that is not skipped.
//
// Terms are surface words with their case; [combine.Project] analyzes them. One
// without a pair gets no row. Document frequencies are unknown.
//
// Errors wrap [ErrThesaurus] and name the line: a line that is not of the
// format, a rule with an empty side or a second =>, a comment that begins with
// "akin:" and is not such a similarity in (0, 1], a term longer than
// [simmatrix.MaxTermBytes], what is not UTF-8, a carriage return inside of a
// line, a line over 1 MiB, a file of over 20 million pairs, not counting those
// of one line that no row could keep, or of over 2 million words of WordNet's;
// or [simmatrix.ErrNoVocabulary].
func ReadThesaurus(r io.Reader, opts ThesaurusOptions) (*simmatrix.Matrix, ThesaurusCounts, error) {
	if err := opts.Validate(); err != nil {
		return nil, ThesaurusCounts{}, err
	}
	t := newThesaurus(opts, maxThesaurusPairs, maxSenses)
	err := t.read(r)
	if err == nil && len(t.pairs.list) == 0 {
		err = fmt.Errorf("%w: no two terms are synonyms", simmatrix.ErrNoVocabulary)
		if t.counts.Skipped > 0 {
			err = fmt.Errorf("%w: %d entries of several words were skipped", err, t.counts.Skipped)
		}
	}
	if err != nil {
		return nil, ThesaurusCounts{}, fmt.Errorf("%w: %w", ErrThesaurus, err)
	}
	m, err := t.matrix()
	if err != nil {
		return nil, ThesaurusCounts{}, err
	}
	return m, t.counts, nil
}

func (t *thesaurus) read(r io.Reader) error {
	if _, err := lines.Each(r, func(line []byte, _ int) error { return t.addLine(line) }); err != nil {
		return err
	}
	return t.addSenses()
}

func (t *thesaurus) addLine(line []byte) error {
	switch {
	case !utf8.Valid(line):
		return errors.New("not UTF-8")
	case bytes.ContainsRune(line, '\r'):
		return errors.New("a carriage return inside of the line: end lines by LF or CRLF")
	case len(bytes.TrimSpace(line)) == 0:
		return nil
	}
	text := string(line)
	if text[0] == '#' { // behind blanks it begins an entry, as in the engines
		return t.addComment(text[1:])
	}
	if t.counts.Format == "" {
		t.counts.Format = formatSolr
		if rest, ok := strings.CutPrefix(text, "s("); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			t.counts.Format = formatWordNet
		}
	}
	if t.counts.Format == formatWordNet {
		return t.addSense(text)
	}
	return t.addSolrLine(text)
}

const thesaurusDirective = "akin:"

// addSolrLine adds a line of Solr's format that is neither blank nor a comment.
func (t *thesaurus) addSolrLine(line string) error {
	sides := solrSides(line)
	switch {
	case len(sides) > 2:
		return errors.New("more than one =>")
	case len(sides) == 2 && (len(sides[0]) == 0 || len(sides[1]) == 0):
		return errors.New("one side of => is empty") // the engines take such a line for a group, with the => in an entry
	case len(sides[0]) == 0: // only commas
		return nil
	}
	for _, side := range sides {
		for k, entry := range side {
			term, err := t.term(entry)
			if err != nil {
				return err
			}
			side[k] = term
		}
	}
	if len(sides) == 1 {
		t.counts.Groups++
		return t.addRule(sides[0], sides[0])
	}
	t.counts.Rules++
	return t.addRule(sides[0], sides[1])
}

// addComment applies a comment that is meant for akin.
func (t *thesaurus) addComment(comment string) error {
	directive, ok := strings.CutPrefix(strings.TrimSpace(comment), thesaurusDirective)
	if !ok {
		return nil
	}
	words := strings.Fields(directive)
	if len(words) != 2 || words[0] != "similarity" {
		return fmt.Errorf("%.60q: want similarity and a number in (0, 1] after %s", directive, thesaurusDirective)
	}
	s, ok := lines.ParseDecimal(words[1], 64)
	if !ok || !(s > 0 && s <= 1) {
		return fmt.Errorf("similarity %.40q is no number in (0, 1]", words[1])
	}
	t.units = simmatrix.ToUnits(s)
	return nil
}

// solrSides returns the entries of a line that are not blank, those on each
// side of =>, at least one side. The rules are those of Lucene's
// SolrSynonymParser: a backslash escapes the next character, and is itself at
// the end of the line.
func solrSides(line string) [][]string {
	sides := [][]string{nil}
	var entry strings.Builder
	end := func() {
		if e := entry.String(); strings.TrimSpace(e) != "" {
			sides[len(sides)-1] = append(sides[len(sides)-1], e)
		}
		entry.Reset()
	}
	for at := 0; at < len(line); at++ {
		switch c := line[at]; {
		case c == '\\' && at+1 < len(line):
			at++
			entry.WriteByte(line[at])
		case c == ',':
			end()
		case c == '=' && strings.HasPrefix(line[at:], "=>"):
			end()
			sides = append(sides, nil)
			at++
		default:
			entry.WriteByte(c)
		}
	}
	end()
	return sides
}

var errNoSense = errors.New("want s(SYNSET,NUMBER,'WORD',TYPE,SENSE,COUNT). and nothing else")

func (t *thesaurus) addSense(line string) error {
	synset, word, err := parseSense(line)
	if err != nil {
		return err
	}
	term, err := t.term(word)
	if err != nil {
		return err
	}
	t.synsets[synset] = struct{}{}
	if term != "" {
		t.senses = append(t.senses, sense{synset: synset, term: strings.Clone(term), units: t.units})
	}
	if max(len(t.synsets), len(t.senses)) > t.maxSenses {
		return fmt.Errorf("more than %d words or sets of synonyms: split the file", t.maxSenses)
	}
	return nil
}

// parseSense reads the number of the set and the word of a line such as
//
//	s(100001740,1,'entity',n,1,11).
//
// Quotes in the word are doubled. Files of older versions lack the last field.
func parseSense(line string) (synset uint64, word string, err error) {
	rest, begins := strings.CutPrefix(strings.TrimSpace(line), "s(")
	rest, ends := strings.CutSuffix(rest, ").")
	if !begins || !ends {
		return 0, "", errNoSense
	}
	number, rest, _ := strings.Cut(rest, ",")
	if synset, err = strconv.ParseUint(number, 10, 64); err != nil {
		return 0, "", fmt.Errorf("the number of a set of synonyms: %w", err)
	}
	place, rest, _ := strings.Cut(rest, ",")
	word, rest, ok := cutQuoted(rest)
	fields := strings.Split(rest, ",")
	if !ok || !isWhole(place) || fields[0] != "" || len(fields) < 3 || len(fields) > 4 ||
		!slices.Contains([]string{"n", "v", "a", "r", "s"}, fields[1]) ||
		!isWhole(fields[2]) || !isWhole(fields[len(fields)-1]) {
		return 0, "", errNoSense
	}
	if strings.TrimSpace(word) == "" {
		return 0, "", errors.New("the word is empty")
	}
	return synset, word, nil
}

func isWhole(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// cutQuoted splits s behind the quoted text that begins it; quotes are doubled.
func cutQuoted(s string) (text, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "'")
	end := strings.IndexByte(strings.ReplaceAll(s, "''", "__"), '\'') // of the same length
	if !ok || end < 0 {
		return "", "", false
	}
	return strings.ReplaceAll(s[:end], "''", "'"), s[end+1:], true
}

// addSenses adds the sets of synonyms as groups, in the order of their numbers,
// words in that of the file. The lines of a set need not follow each other; the
// similarity is that of the first.
func (t *thesaurus) addSenses() error {
	slices.SortStableFunc(t.senses, func(a, b sense) int { return cmp.Compare(a.synset, b.synset) })
	t.counts.Groups += len(t.synsets)
	var terms []string
	for k, s := range t.senses {
		if len(terms) == 0 {
			t.units = s.units
		}
		terms = append(terms, s.term)
		if k+1 < len(t.senses) && t.senses[k+1].synset == s.synset {
			continue
		}
		if err := t.addRule(terms, terms); err != nil {
			return fmt.Errorf("set of synonyms %d: %w", s.synset, err)
		}
		terms = terms[:0]
	}
	t.senses, t.synsets = nil, nil
	return nil
}
