// Package suggest proposes what would help searches that find nothing or
// little, and keeps what people decide about it.
//
// suggest.go finds proposals for a search, near.go words like another, and
// record.go has the accepted and dismissed pairs in a file of overrides. What
// is asked of a cluster or a language model goes through [Cluster] and
// [Finder.Model], at most a few dozen questions a search.
package suggest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/simmatrix"
)

// Where a [Proposal] comes from.
const (
	Spelling = "spelling"        // a word of the index is spelled alike
	Plural   = "plural"          // or is its singular or plural
	OneWord  = "one word"        // the index writes two words as one
	TwoWords = "two words"       // or one as two
	Acronym  = "acronym"         // a short form for a long one, or the other way
	Matrix   = "matrix"          // a neighbor in the matrix
	Builtin  = "built-in words"  // near in meaning by the words that akin contains
	Model    = "language model"  // near in meaning by the language model
	Without  = "a word too many" // what the search finds without it
)

// A Search is a text that somebody searched for, in fields of an index.
type Search struct {
	Index  string
	Fields []string
	Text   string
}

// A Proposal is a pair that would help a search: To, a word or words of the
// index, for Word, as it stands in the text. To is "" for [Without], which
// nobody can accept.
type Proposal struct {
	Word string `json:"word"`
	To   string `json:"to,omitempty"`
	From string `json:"from"` // where it comes from
	// Similarity is what accepting writes: 1 for what is as good as the word.
	Similarity float64 `json:"similarity,omitempty"`
	// Found is how many documents have To and the search's other words, but for
	// those in Beside, which no document has. Titles are three of them.
	Found  int64    `json:"found"`
	Titles []string `json:"titles"`
	Beside []string `json:"beside,omitempty"`

	score float64
}

// A Cluster answers about an index.
type Cluster interface {
	// Tokens returns what the analyzer of a field makes of a text.
	Tokens(ctx context.Context, index, field, text string) ([]esclient.Token, error)
	// Find answers searches for documents that have all of some words, each in any
	// of the fields; several words in one are a phrase. At most [MostQueries].
	Find(ctx context.Context, index string, fields []string, words [][]string) ([]Found, error)
}

// MostQueries limits the searches of one [Cluster.Find].
const MostQueries = 64

// Found is what a search finds: how many, and three titles.
type Found struct {
	Total  int64
	Titles []string
}

// Limits of what is proposed.
const (
	mostTyped   = 12 // words of a text that are looked at
	mostMissing = 3  // of which something is proposed for
	mostTried   = 14 // proposals for one word that are asked about
	mostKept    = 5  // proposals for a search
	// few is how many documents are enough: nothing is proposed then.
	few = 10
)

// A Finder finds proposals for the searches of one matrix. It reads the
// vocabulary once, and is not safe for concurrent use.
type Finder struct {
	Cluster Cluster
	Matrix  *simmatrix.Matrix
	// Vector returns the vector of a word at unit length, nil for none, and Knows
	// whether that is a word of the language; both are nil without built-in words.
	Vector func(word string) []float32
	Knows  func(word string) bool
	// Model returns the vectors of texts by a language model; nil without one.
	Model func(ctx context.Context, texts []string) ([][]float32, error)

	read *vocabulary
}

// typed is a word of a search.
type typed struct {
	text, term string
	at         int   // its position
	alone      int64 // documents with it
	without    Found // what the search finds without it
}

// Propose returns what would help a search, best first, and nothing if it finds
// enough now, or nothing is known that would help. An error of the model comes
// with the proposals that need none.
func (f *Finder) Propose(ctx context.Context, s Search) ([]Proposal, error) {
	words, err := f.words(ctx, s)
	if err != nil || len(words) == 0 {
		return nil, err
	}
	whole, err := f.count(ctx, s, words)
	if err != nil || whole.Total >= few {
		return nil, err
	}
	if f.read == nil {
		f.read = newVocabulary(f.Matrix)
	}
	missing, unknown := missingOf(words, whole.Total)
	var all []Proposal
	var failed error
	for _, w := range missing {
		found, err := f.candidates(ctx, words, w)
		if err != nil {
			failed = err
		}
		all = append(all, found...)
	}
	if err := f.ask(ctx, s, words, unknown, all); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(p Proposal) bool { return p.Found > whole.Total }) {
		all = slices.DeleteFunc(all, func(p Proposal) bool { return p.Found <= whole.Total && p.From != Spelling })
	}
	rank(all)
	all = all[:min(len(all), mostKept)]
	if len(words) > 1 {
		if best := slices.MaxFunc(words, func(a, b typed) int { return cmp.Compare(a.without.Total, b.without.Total) }); best.without.Total > whole.Total {
			all = append(all, Proposal{Word: best.text, From: Without, Found: best.without.Total, Titles: best.without.Titles})
		}
	}
	return all, failed
}

// words returns the words of a text by the field's analyzer, each once.
func (f *Finder) words(ctx context.Context, s Search) (words []typed, err error) {
	tokens, err := f.Cluster.Tokens(ctx, s.Index, s.Fields[0], s.Text)
	if err != nil {
		return nil, err
	}
	units := utf16.Encode([]rune(s.Text))
	for _, t := range tokens {
		if t.Start < 0 || t.Start >= t.End || t.End > len(units) || len(words) == mostTyped {
			continue
		}
		text := strings.ToLower(string(utf16.Decode(units[t.Start:t.End])))
		if !slices.ContainsFunc(words, func(w typed) bool { return w.text == text || w.at == t.Position }) {
			words = append(words, typed{text: text, term: t.Token, at: t.Position})
		}
	}
	return words, nil
}

// count asks what the search finds, what each word finds alone, and what the
// search finds without it.
func (f *Finder) count(ctx context.Context, s Search, words []typed) (whole Found, err error) {
	queries := [][]string{texts(words, nil)}
	for _, w := range words {
		queries = append(queries, []string{w.text})
	}
	for _, w := range words {
		if rest := texts(words, []string{w.text}); len(rest) > 0 {
			queries = append(queries, rest)
		}
	}
	found, err := f.Cluster.Find(ctx, s.Index, s.Fields, queries)
	if err != nil {
		return Found{}, err
	}
	if len(found) != len(queries) {
		return Found{}, fmt.Errorf("%d answers to %d searches", len(found), len(queries))
	}
	for k := range words {
		words[k].alone = found[1+k].Total
		if len(words) > 1 {
			words[k].without = found[1+len(words)+k]
		}
	}
	return found[0], nil
}

// texts returns the texts of words but for some.
func texts(words []typed, without []string) (all []string) {
	for _, w := range words {
		if !slices.Contains(without, w.text) {
			all = append(all, w.text)
		}
	}
	return all
}

// missingOf returns the words for which others are looked for: those that no
// document has, and else those without which the search finds most more. It
// also returns the texts of the former.
func missingOf(words []typed, whole int64) (missing []typed, unknown []string) {
	for _, w := range words {
		if w.alone == 0 {
			missing, unknown = append(missing, w), append(unknown, w.text)
		}
	}
	if missing == nil {
		missing = slices.DeleteFunc(slices.Clone(words), func(w typed) bool { return len(words) > 1 && w.without.Total <= whole })
		slices.SortStableFunc(missing, func(a, b typed) int { return cmp.Compare(b.without.Total, a.without.Total) })
	}
	return missing[:min(len(missing), mostMissing)], unknown
}

// ask asks what the search finds with each proposal in the place of its word.
func (f *Finder) ask(ctx context.Context, s Search, words []typed, unknown []string, all []Proposal) error {
	for batch := range slices.Chunk(all, MostQueries) {
		queries := make([][]string, len(batch))
		for k := range batch {
			p := &batch[k]
			replaced := strings.Fields(p.Word) // two, where the index writes one
			for _, word := range unknown {
				if !slices.Contains(replaced, word) {
					p.Beside = append(p.Beside, word)
				}
			}
			queries[k] = append([]string{p.To}, texts(words, append(replaced, p.Beside...))...)
		}
		found, err := f.Cluster.Find(ctx, s.Index, s.Fields, queries)
		if err != nil {
			return err
		}
		if len(found) != len(queries) {
			return fmt.Errorf("%d answers to %d searches", len(found), len(queries))
		}
		for k := range batch {
			batch[k].Found, batch[k].Titles = found[k].Total, found[k].Titles
		}
	}
	return nil
}

// helps is what a proposal with which the search finds something is worth more.
const helps = 0.15

// rank puts the best first.
func rank(all []Proposal) {
	worth := func(p *Proposal) float64 {
		if p.Found > 0 {
			return p.score + helps
		}
		return p.score
	}
	slices.SortStableFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(worth(&b), worth(&a)), cmp.Compare(b.Found, a.Found), cmp.Compare(a.To, b.To))
	})
}
