package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

const (
	maxThesaurusPairs = 20_000_000 // at 16 bytes each; WordNet has under a million
	maxSenses         = 2_000_000  // words, or sets of synonyms; WordNet 3.0 has 206,941 and 117,659
	maxExamples       = 5
)

// A ThesaurusFormat is named as in the synonym filters of the engines.
type ThesaurusFormat string

// The formats.
const (
	// ThesaurusDetect takes a file whose first line, blank lines and comments
	// apart, begins with "s(" and a digit for WordNet's, others for Solr's.
	ThesaurusDetect ThesaurusFormat = ""
	// ThesaurusSolr is that of Solr, Elasticsearch and OpenSearch.
	ThesaurusSolr ThesaurusFormat = "solr"
	// ThesaurusWordNet is the file wn_s.pl of WordNet in Prolog.
	ThesaurusWordNet ThesaurusFormat = "wordnet"
)

// MultiWord says how to treat an entry of several words.
type MultiWord string

// The ways to treat entries of several words.
const (
	MultiWordSkip MultiWord = "skip" // leave out and count: an index of single words has no term for it
	MultiWordJoin MultiWord = "join" // make one term of it
)

// ThesaurusOptions are the settings of [ReadThesaurus].
type ThesaurusOptions struct {
	Source     string          // becomes Meta.Source: in words, where the synonyms come from
	Format     ThesaurusFormat // of the file
	Similarity float64         // s_ij of synonyms, in (0, 1], where the file says nothing else
	// Expand makes the terms of a group neighbors of each other. Without it the
	// first that is not skipped is the only neighbor of the others, and has
	// none of them as its neighbor.
	Expand    bool
	MultiWord MultiWord // how to treat an entry of several words
	Joiner    string    // between the words that MultiWordJoin joins
	Neighbors int       // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
}

// DefaultThesaurusOptions returns settings for a file of an engine's synonym
// filter. Similarity 0.2 is that of a near neighbor in a matrix learned from
// documents, a cosine of 0.58 to the third power; with 0.5 synonyms made the
// ranking of judged collections worse. Joiner is the token_separator of the
// engines' shingle filter.
func DefaultThesaurusOptions() ThesaurusOptions {
	return ThesaurusOptions{
		Source: "thesaurus", Similarity: 0.2, Expand: true,
		MultiWord: MultiWordSkip, Joiner: " ", Neighbors: 200,
	}
}

// Validate reports every setting that is out of range.
func (o *ThesaurusOptions) Validate() error {
	var errs []error
	if !slices.Contains([]ThesaurusFormat{ThesaurusDetect, ThesaurusSolr, ThesaurusWordNet}, o.Format) {
		errs = append(errs, fmt.Errorf("format: %q is neither %s nor %s", o.Format, ThesaurusSolr, ThesaurusWordNet))
	}
	errs = append(errs, settings.InUnit("similarity", o.Similarity, "(0, 1]"))
	if o.MultiWord != MultiWordSkip && o.MultiWord != MultiWordJoin {
		errs = append(errs, fmt.Errorf("multi-word entries: %q is neither %s nor %s", o.MultiWord, MultiWordSkip, MultiWordJoin))
	}
	if !utf8.ValidString(o.Joiner) {
		errs = append(errs, fmt.Errorf("joiner: %q is not UTF-8", o.Joiner))
	}
	return errors.Join(append(errs, settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors))...)
}

func (o *ThesaurusOptions) params() map[string]string {
	p := map[string]string{
		"format":     string(o.Format),
		"similarity": settings.FormatFloat(o.Similarity),
		"expand":     strconv.FormatBool(o.Expand),
		"multi_word": string(o.MultiWord),
		"neighbors":  strconv.Itoa(o.Neighbors),
	}
	if o.MultiWord == MultiWordJoin {
		p["joiner"] = o.Joiner
	}
	return p
}

// ThesaurusCounts count what [ReadThesaurus] has found.
type ThesaurusCounts struct {
	Format          ThesaurusFormat // of the file
	Groups          int             // lists of terms that mean the same: lines without =>, or WordNet's sets
	Rules           int             // lines with =>
	Terms           int             // rows: of the terms that are in a pair, even a cut one
	Pairs           int             // similarities in the matrix, s_ij and s_ji counted as two
	Duplicates      int             // those that the file repeats; the largest similarity counts
	Skipped, Joined int             // entries of several words left out, and made one term
	Examples        []string        // the first five entries of several words
}

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
// WordNet's format is that of its file wn_s.pl. The number of the set of
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
			err = fmt.Errorf("%w: %d entries of several words were skipped, join their words to keep them", err, t.counts.Skipped)
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

type thesaurus struct {
	opts      ThesaurusOptions
	maxPairs  int
	maxSenses int
	pairs     *pairs
	counts    ThesaurusCounts
	units     uint16              // similarity of the lines to come
	synsets   map[uint64]struct{} // WordNet's sets of synonyms
	senses    []sense
}

func newThesaurus(opts ThesaurusOptions, maxPairs, maxSenses int) *thesaurus {
	return &thesaurus{
		opts: opts, maxPairs: maxPairs, maxSenses: maxSenses, pairs: newPairs(),
		units: simmatrix.ToUnits(opts.Similarity), synsets: make(map[uint64]struct{}),
	}
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
	if t.opts.Format == ThesaurusDetect {
		t.opts.Format = ThesaurusSolr
		if rest, ok := strings.CutPrefix(text, "s("); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			t.opts.Format = ThesaurusWordNet
		}
	}
	if t.opts.Format == ThesaurusWordNet {
		return t.addSense(text)
	}
	return t.addSolrLine(text)
}

// term returns the term of an entry, "" where there is none.
func (t *thesaurus) term(entry string) (string, error) {
	words := strings.Fields(entry)
	if len(words) == 0 {
		return "", nil
	}
	term := words[0]
	if len(words) > 1 {
		if len(t.counts.Examples) < maxExamples {
			t.counts.Examples = append(t.counts.Examples, strings.Join(words, " "))
		}
		if t.opts.MultiWord == MultiWordSkip {
			t.counts.Skipped++
			return "", nil
		}
		t.counts.Joined++
		term = strings.Join(words, t.opts.Joiner)
	}
	return term, simmatrix.CheckTerm(term)
}

// addGroup makes terms neighbors of each other, or of the first; "" is none.
func (t *thesaurus) addGroup(terms []string) error {
	if t.opts.Expand {
		return t.addRule(terms, terms)
	}
	first := slices.IndexFunc(terms, func(term string) bool { return term != "" })
	if first < 0 {
		return nil
	}
	return t.addRule(terms[first+1:], terms[first:first+1])
}

// addRule makes the terms on the right neighbors of those on the left. Of all
// that get one similarity at once, a row can keep only the first Neighbors.
func (t *thesaurus) addRule(left, right []string) error {
	left, right = sortedTerms(left), sortedTerms(right)
	total := 0
	for _, term := range left {
		total += min(countOthers(right, term), t.opts.Neighbors)
	}
	if before := len(t.pairs.list); total > t.maxPairs-before {
		return fmt.Errorf("a group of %d terms makes %d pairs, %d with those before it, at most %d: allow fewer neighbors or make the group smaller",
			max(len(left), len(right)), total, before+total, t.maxPairs)
	}
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
				t.pairs.list = append(t.pairs.list, pair{row: i, col: j, units: t.units})
				kept--
			}
		}
		if err != nil {
			return err
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

// sortedTerms returns the distinct terms in ascending byte order without "".
func sortedTerms(terms []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(terms)))
	if len(sorted) > 0 && sorted[0] == "" {
		sorted = sorted[1:]
	}
	return sorted
}

func (t *thesaurus) matrix() (*simmatrix.Matrix, error) {
	list := t.pairs.list
	slices.SortFunc(list, comparePairs)
	for k := 1; k < len(list); k++ {
		if list[k-1].row == list[k].row && list[k-1].col == list[k].col {
			t.counts.Duplicates++
		}
	}
	m, err := t.pairs.matrix(simmatrix.Meta{Source: t.opts.Source, Params: t.opts.params()}, t.opts.Neighbors)
	if err != nil {
		return nil, err
	}
	t.counts.Format, t.counts.Terms, t.counts.Pairs = t.opts.Format, m.Len(), len(m.Table().Cols)
	return m, nil
}
