package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// ReadThesaurus reads a file of synonyms in UTF-8, plain or gzip-compressed, as
// in Elasticsearch, OpenSearch and Solr.
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
// A backslash escapes the next character: \, is a comma in an entry, \=> an
// arrow. Blanks around an entry and empty entries are ignored. Unlike in the
// engines' filters, the left side of a rule keeps its own row.
//
// A file whose first line begins with "s(" and a digit is WordNet's wn_s.pl.
// Only the number of the set of synonyms and the word are used:
//
//	s(104167661,1,'car',n,1,71).
//	s(104167661,2,'o''clock',r,1,2).
//
// Comments work as in Solr's format. A set has the similarity in force at the
// first of its words that is not skipped.
//
// Terms are surface words with their case, and entries of several words are
// expressions of them ([simmatrix.Expression]); [combine.Project] analyzes
// both. A term without a pair gets no row. Document frequencies are unknown.
// After
//
//	# akin: exact
//
// the entries of lines that follow are as good as the word itself: their
// similarity is 1.
//
// Errors wrap [ErrThesaurus] and name the line that is malformed, too long, or
// not UTF-8; or they say that the file has over 20 million pairs, over 2
// million words of WordNet, or no pair ([simmatrix.ErrNoVocabulary]).
func ReadThesaurus(r io.Reader, opts ThesaurusOptions) (*simmatrix.Matrix, ThesaurusCounts, error) {
	if err := opts.Validate(); err != nil {
		return nil, ThesaurusCounts{}, err
	}
	t := newThesaurus(opts, maxThesaurusPairs, maxSenses)
	err := t.read(r)
	if err == nil && t.added == 0 {
		err = fmt.Errorf("%w: no two terms are synonyms", simmatrix.ErrNoVocabulary)
		if t.counts.Skipped > 0 {
			err = fmt.Errorf("%w: %d entries of too many words were skipped", err, t.counts.Skipped)
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
	if _, err := lines.Each(r, func(line []byte, number int) error { t.line = number; return t.addLine(line) }); err != nil {
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
	if at := bytes.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' }); at >= 0 {
		return fmt.Errorf("the control character %U", line[at])
	}
	text := string(line)
	if text[0] == '#' { // after blanks it begins an entry, as in the engines
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
		return errors.New("one side of => is empty") // the engines would take it for a group with the => in an entry
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

// addComment applies a comment meant for akin.
func (t *thesaurus) addComment(comment string) error {
	directive, ok := strings.CutPrefix(strings.TrimSpace(comment), thesaurusDirective)
	if !ok {
		return nil
	}
	words := strings.Fields(directive)
	if len(words) == 1 && words[0] == "exact" {
		t.units = simmatrix.UnitsOfOne
		return nil
	}
	if len(words) != 2 || words[0] != "similarity" {
		return fmt.Errorf("%.60q: want exact, or similarity and a number in (0, 1], after %s", directive, thesaurusDirective)
	}
	s, ok := lines.ParseDecimal(words[1], 64)
	if !ok || !(s > 0 && s <= 1) {
		return fmt.Errorf("similarity %.40q is no number in (0, 1]", words[1])
	}
	t.units = simmatrix.ToUnits(s)
	t.named[t.units] = true
	return nil
}

// solrSides returns the nonblank entries on each side of =>, at least one side.
// Like Lucene's SolrSynonymParser, a backslash escapes the next character, and
// stands for itself at the end of the line.
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

// senseForm is a line of WordNet such as
//
//	s(100001740,1,'entity',n,1,11).
//
// Quotes in the word are doubled. Older versions lack the last field.
var senseForm = regexp.MustCompile(`^s\(([^,]*),\d+,'((?:[^']|'')*)',[nvars],\d+(?:,\d+)?\)\.$`)

func (t *thesaurus) addSense(line string) error {
	fields := senseForm.FindStringSubmatch(strings.TrimSpace(line))
	if fields == nil {
		return errors.New("want s(SYNSET,NUMBER,'WORD',TYPE,SENSE,COUNT). and nothing else")
	}
	number, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return fmt.Errorf("the number of a set of synonyms: %w", err)
	}
	word := strings.ReplaceAll(fields[2], "''", "'")
	if strings.TrimSpace(word) == "" {
		return errors.New("the word is empty")
	}
	term, err := t.term(word)
	if err != nil {
		return err
	}
	set := t.synsets[number]
	if term != "" {
		if len(set.terms) == 0 {
			set.units = t.units
		}
		set.terms = append(set.terms, strings.Clone(term))
		t.senses++
	}
	t.synsets[number] = set
	if max(len(t.synsets), t.senses) > t.maxSenses {
		return fmt.Errorf("more than %d words or sets of synonyms: split the file", t.maxSenses)
	}
	return nil
}

// addSenses adds the sets of synonyms as groups, by number. The lines of a set
// need not be adjacent.
func (t *thesaurus) addSenses() error {
	t.counts.Groups += len(t.synsets)
	for _, number := range slices.Sorted(maps.Keys(t.synsets)) {
		set := t.synsets[number]
		t.units = set.units
		if err := t.addRule(set.terms, set.terms); err != nil {
			return fmt.Errorf("set of synonyms %d: %w", number, err)
		}
	}
	t.synsets = nil
	return nil
}

const (
	maxThesaurusPairs = 20_000_000 // WordNet has under a million
	maxSenses         = 2_000_000  // words, or sets of synonyms; WordNet 3.0 has 206,941 and 117,659
	maxExamples       = 3
	// expressionSimilarity is that of entries of several words, where neither the
	// file nor the options say more: what stands for several words is seldom
	// ambiguous.
	expressionSimilarity = 0.5
)

// Formats, named as in the engines' synonym filters.
const (
	formatSolr    = "solr"
	formatWordNet = "wordnet"
)

// ThesaurusOptions are the settings of [ReadThesaurus].
type ThesaurusOptions struct {
	Source     string  // becomes Meta.Source: in words, the origin of the synonyms
	File       string  // its name in notes on expressions
	Similarity float64 // s_ij of synonyms, in (0, 1], unless the file says otherwise
	Neighbors  int     // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
	// Splits returns of which of the file's terms the field's analyzer makes
	// expressions; nil for none.
	Splits func(terms []string) (splits func(term string) bool, err error)
}

// DefaultThesaurusOptions returns settings for an engine's synonym file.
// Similarity 0.2 is that of a near neighbor in a matrix learned from documents,
// a cosine of 0.58 to the third power; with 0.5 synonyms made the ranking of
// judged collections worse.
func DefaultThesaurusOptions() ThesaurusOptions {
	return ThesaurusOptions{Source: "thesaurus", File: "thesaurus", Similarity: 0.2, Neighbors: 200}
}

// Validate returns all errors in the settings.
func (o *ThesaurusOptions) Validate() error {
	return errors.Join(settings.InUnit("similarity", o.Similarity, "(0, 1]"), settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors))
}

// ThesaurusCounts are what [ReadThesaurus] found.
type ThesaurusCounts struct {
	Format      string   // of the file: solr or wordnet
	Groups      int      // lists of synonyms: lines without =>, or WordNet's sets
	Rules       int      // lines with =>
	Terms       int      // rows: terms in a pair, even a cut one
	Pairs       int      // similarities in the matrix, s_ij and s_ji count as two
	Duplicates  int      // repeated in the file; the largest similarity counts
	Expressions int      // entries of several words
	Skipped     int      // entries of more than eight words, left out
	Examples    []string // the first three of them, with their lines
}

type thesaurus struct {
	opts      ThesaurusOptions
	maxPairs  int
	maxSenses int
	pairs     *pairs
	line      int
	lines     map[string]int // the first of each expression
	added     int            // pairs, including repeated ones
	counts    ThesaurusCounts
	units     uint16            // similarity for the lines that follow; 0 where the file says none
	named     map[uint16]bool   // similarities that the file says
	synsets   map[uint64]synset // WordNet's sets of synonyms, by number
	senses    int               // words in them
}

// A synset has the similarity in force at its first word's line.
type synset struct {
	terms []string
	units uint16
}

func newThesaurus(opts ThesaurusOptions, maxPairs, maxSenses int) *thesaurus {
	return &thesaurus{
		opts: opts, maxPairs: maxPairs, maxSenses: maxSenses, pairs: newPairs(), lines: make(map[string]int), synsets: make(map[uint64]synset), named: make(map[uint16]bool),
	}
}

// term returns the term of an entry, or "" if it has none or too many words.
func (t *thesaurus) term(entry string) (string, error) {
	words := strings.Fields(entry)
	switch {
	case len(words) == 0:
		return "", nil
	case len(words) == 1:
		return words[0], simmatrix.CheckTerm(words[0])
	case len(words) > simmatrix.MaxExpressionTerms:
		if len(t.counts.Examples) < maxExamples {
			t.counts.Examples = append(t.counts.Examples, fmt.Sprintf("line %d: %.100q", t.line, strings.Join(words, " ")))
		}
		t.counts.Skipped++
		return "", nil
	}
	positions := make([]int, len(words))
	for k := range positions {
		positions[k] = k
	}
	t.counts.Expressions++
	expression, err := simmatrix.Expression(words, positions)
	if _, known := t.lines[expression]; !known {
		t.lines[expression] = t.line
	}
	return expression, err
}

// addRule makes the terms on the right neighbors of those on the left. Of all
// with the same similarity, a row can keep only the first Neighbors.
func (t *thesaurus) addRule(left, right []string) error {
	left, right = sortedTerms(left), sortedTerms(right)
	total := 0
	for _, term := range left {
		total += min(countOthers(right, term), t.opts.Neighbors)
	}
	if total > t.maxPairs-t.added {
		return fmt.Errorf("a group of %d terms makes %d pairs, %d with those before it, at most %d: allow fewer neighbors or make the group smaller",
			max(len(left), len(right)), total, t.added+total, t.maxPairs)
	}
	t.added += total
	for _, term := range left {
		kept := min(countOthers(right, term), t.opts.Neighbors)
		if kept == 0 {
			continue
		}
		i, err := t.pairs.term(term)
		for k := 0; err == nil && kept > 0; k++ {
			if right[k] != term {
				var j uint32
				j, err = t.pairs.term(right[k])
				if err == nil {
					t.pairs.keep(i, j, t.similarity(term, right[k]))
				}
				kept--
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// similarity returns that of two terms, in units: what the file says, else that
// of words or of expressions.
func (t *thesaurus) similarity(a, b string) uint16 {
	switch {
	case t.units > 0:
		return t.units
	case simmatrix.IsExpression(a) || simmatrix.IsExpression(b):
		return simmatrix.ToUnits(max(t.opts.Similarity, expressionSimilarity))
	}
	return simmatrix.ToUnits(t.opts.Similarity)
}

// raise gives words that become expressions the similarity of these, unless the
// file itself names that of words.
func (t *thesaurus) raise() error {
	words := simmatrix.ToUnits(t.opts.Similarity)
	if t.opts.Splits == nil || t.named[words] {
		return nil
	}
	splits, err := t.opts.Splits(t.pairs.terms)
	if err != nil {
		return err
	}
	for i, row := range t.pairs.rows {
		for j, units := range row {
			if units == words && (splits(t.pairs.terms[i]) || splits(t.pairs.terms[j])) {
				row[j] = max(units, simmatrix.ToUnits(expressionSimilarity))
			}
		}
	}
	return nil
}

func countOthers(terms []string, term string) int {
	if _, ok := slices.BinarySearch(terms, term); ok {
		return len(terms) - 1
	}
	return len(terms)
}

// sortedTerms returns the distinct terms in ascending byte order, without "".
func sortedTerms(terms []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(terms)))
	if len(sorted) > 0 && sorted[0] == "" {
		sorted = sorted[1:]
	}
	return sorted
}

func (t *thesaurus) matrix() (*simmatrix.Matrix, error) {
	t.counts.Duplicates = t.added
	for _, row := range t.pairs.rows {
		t.counts.Duplicates -= len(row)
	}
	if err := t.raise(); err != nil {
		return nil, err
	}
	params := map[string]string{
		"format": t.counts.Format, "similarity": settings.FormatFloat(t.opts.Similarity), "neighbors": strconv.Itoa(t.opts.Neighbors),
	}
	m, err := t.pairs.matrix(simmatrix.Meta{Source: t.opts.Source, Params: params}, t.opts.Neighbors)
	if err == nil && len(t.lines) > 0 {
		noted := *m.Table()
		noted.TakeForms(func(i int) string {
			if line := t.lines[noted.Terms[i]]; line > 0 {
				return simmatrix.WithNote("", fmt.Sprintf("%s:%d", t.opts.File, line))
			}
			return ""
		})
		m, err = noted.Matrix()
	}
	if err != nil {
		return nil, err
	}
	t.counts.Terms, t.counts.Pairs = m.Len(), len(m.Table().Cols)
	return m, nil
}
