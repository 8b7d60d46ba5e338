package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

const (
	maxThesaurusPairs = 20_000_000 // at 16 bytes each; WordNet has under a million
	maxSenses         = 2_000_000  // words, or sets of synonyms; WordNet 3.0 has 206,941 and 117,659
	maxExamples       = 5
)

// The formats, named as in the synonym filters of the engines. A file whose
// first line, blank lines and comments apart, begins with "s(" and a digit is
// WordNet's wn_s.pl in Prolog, others are Solr's, Elasticsearch's and
// OpenSearch's.
const (
	formatSolr    = "solr"
	formatWordNet = "wordnet"
)

// ThesaurusOptions are the settings of [ReadThesaurus].
type ThesaurusOptions struct {
	Source     string  // becomes Meta.Source: in words, where the synonyms come from
	Similarity float64 // s_ij of synonyms, in (0, 1], where the file says nothing else
	Neighbors  int     // C, the most neighbors of a term, 1 to [simmatrix.MaxNeighbors]
}

// DefaultThesaurusOptions returns settings for a file of an engine's synonym
// filter. Similarity 0.2 is that of a near neighbor in a matrix learned from
// documents, a cosine of 0.58 to the third power; with 0.5 synonyms made the
// ranking of judged collections worse.
func DefaultThesaurusOptions() ThesaurusOptions {
	return ThesaurusOptions{Source: "thesaurus", Similarity: 0.2, Neighbors: 200}
}

// Validate reports every setting that is out of range.
func (o *ThesaurusOptions) Validate() error {
	return errors.Join(settings.InUnit("similarity", o.Similarity, "(0, 1]"), settings.InRange("neighbors", o.Neighbors, simmatrix.MaxNeighbors))
}

// ThesaurusCounts count what [ReadThesaurus] has found.
type ThesaurusCounts struct {
	Format     string   // of the file: solr or wordnet
	Groups     int      // lists of terms that mean the same: lines without =>, or WordNet's sets
	Rules      int      // lines with =>
	Terms      int      // rows: of the terms that are in a pair, even a cut one
	Pairs      int      // similarities in the matrix, s_ij and s_ji counted as two
	Duplicates int      // those that the file repeats; the largest similarity counts
	Skipped    int      // entries of several words, left out: an index of single words has no term for them
	Examples   []string // the first five entries of several words
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

type sense struct {
	synset uint64
	term   string
	units  uint16 // the similarity that holds at its line
}

func newThesaurus(opts ThesaurusOptions, maxPairs, maxSenses int) *thesaurus {
	return &thesaurus{
		opts: opts, maxPairs: maxPairs, maxSenses: maxSenses, pairs: newPairs(),
		units: simmatrix.ToUnits(opts.Similarity), synsets: make(map[uint64]struct{}),
	}
}

// term returns the term of an entry, "" where there is none and where it has
// several words.
func (t *thesaurus) term(entry string) (string, error) {
	words := strings.Fields(entry)
	if len(words) == 0 {
		return "", nil
	}
	if len(words) > 1 {
		if len(t.counts.Examples) < maxExamples {
			t.counts.Examples = append(t.counts.Examples, strings.Join(words, " "))
		}
		t.counts.Skipped++
		return "", nil
	}
	return words[0], simmatrix.CheckTerm(words[0])
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
	params := map[string]string{
		"format": t.counts.Format, "similarity": settings.FormatFloat(t.opts.Similarity), "neighbors": strconv.Itoa(t.opts.Neighbors),
	}
	m, err := t.pairs.matrix(simmatrix.Meta{Source: t.opts.Source, Params: params}, t.opts.Neighbors)
	if err != nil {
		return nil, err
	}
	t.counts.Terms, t.counts.Pairs = m.Len(), len(m.Table().Cols)
	return m, nil
}
