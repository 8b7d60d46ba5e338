package learn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
)

// Separators in a sequence; ids of terms are not negative.
const (
	endOfDocument = -1
	endOfText     = -2 // in a document, between texts with terms
)

// absent is the index of a term outside the vocabulary.
const absent = math.MinInt32

// A Corpus is documents as sequences of index terms, four bytes per term.
// [Texts.Corpus] makes it.
type Corpus struct {
	ids      map[string]int32
	terms    []string // by id
	docFreqs []uint32
	lastDoc  []uint64 // last document with the term, from 1
	sequence []int32  // ids, with endOfDocument before the first and after each document
	docs     uint64
	forms    map[string][]Form // words that people write for terms, most frequent first
	contexts map[string]bool   // terms that are only contexts of others
	bytes    int64             // of the terms with all that is kept of each
}

func newCorpus() *Corpus {
	return &Corpus{ids: make(map[string]int32), sequence: []int32{endOfDocument}}
}

// add adds a document: the term ids of each of its texts, such as fields, in
// order. Windows do not cross texts. Documents without terms are skipped.
func (c *Corpus) add(texts [][]int32) {
	before := len(c.sequence)
	for _, ids := range texts {
		if len(ids) > 0 && len(c.sequence) > before {
			c.sequence = append(c.sequence, endOfText)
		}
		c.sequence = append(c.sequence, ids...)
		for _, id := range ids {
			if c.lastDoc[id] != c.docs+1 {
				c.lastDoc[id] = c.docs + 1
				c.docFreqs[id]++
			}
		}
	}
	if len(c.sequence) > before {
		c.sequence = append(c.sequence, endOfDocument)
		c.docs++
	}
}

// termIDs appends the ids of terms that can have a row.
func (c *Corpus) termIDs(dst []int32, terms []string) []int32 {
	for _, t := range terms {
		id, ok := c.ids[t]
		if !ok {
			if t == "" || len(t) > simmatrix.MaxTermBytes || !utf8.ValidString(t) {
				continue
			}
			t = strings.Clone(t)
			id = int32(min(len(c.terms), math.MaxInt32)) // FromCorpus refuses a corpus that large
			c.ids[t] = id
			c.terms = append(c.terms, t)
			c.docFreqs = append(c.docFreqs, 0)
			c.lastDoc = append(c.lastDoc, 0)
			c.bytes += stringBytes(t) + 12
		}
		dst = append(dst, id)
	}
	return dst
}

// TakeForms copies the forms of terms from another corpus.
func (c *Corpus) TakeForms(other *Corpus) { c.setForms(other.forms) }

func (c *Corpus) setForms(forms map[string][]Form) {
	c.forms = forms
	for _, all := range forms {
		for _, form := range all {
			c.bytes += stringBytes(form.Text)
		}
	}
}

// A Form is a word that people write for a term, in lower case, and its count.
type Form struct {
	Text  string
	Count int
}

// Forms returns the words that people write for a term, most frequent first, or
// the term itself if none are known.
func (c *Corpus) Forms(term string) []Form {
	if forms := c.forms[term]; len(forms) > 0 {
		return forms
	}
	return []Form{{term, 1}}
}

// inflection is how many letters an inflected word is longer than its term at
// most. What is longer still may be another word of the same term.
const inflection = 3

// written returns the word to show for a term: its most frequent form, but the
// term itself if people write that and the form may be another word, as of
// excel and excellent.
func (c *Corpus) written(term string) string {
	forms := c.Forms(term)
	if len(forms[0].Text) > len(term)+inflection && slices.ContainsFunc(forms, func(f Form) bool { return f.Text == term }) {
		return term
	}
	return forms[0].Text
}

// form returns the form of a term in a matrix.
func (c *Corpus) form(term string) string {
	forms := c.Forms(term)
	all := make([]string, 0, len(forms))
	for _, f := range forms {
		all = append(all, f.Text)
	}
	return simmatrix.WithForms(term, c.written(term), all...)
}

// Share returns the share of the words of the documents for which is reports
// true, without those for which except does, and without numbers.
func (c *Corpus) Share(is, except func(word string) bool) float64 {
	counts := make([]int, len(c.terms))
	for _, id := range c.sequence {
		if id >= 0 {
			counts[id]++
		}
	}
	such, all := 0.0, 0.0
	for id, term := range c.terms {
		if c.isContext(term) {
			continue
		}
		forms, total := c.Forms(term), 0
		for _, form := range forms {
			total += form.Count
		}
		for _, form := range forms {
			words := float64(counts[id]) * float64(form.Count) / float64(total)
			switch {
			case except(form.Text):
			case is(form.Text):
				such, all = such+words, all+words
			default:
				all += words
			}
		}
	}
	return such / max(all, 1)
}

// MeanLength returns the mean number of index terms in a document.
func (c *Corpus) MeanLength() float64 {
	terms := 0
	for _, id := range c.sequence {
		if id >= 0 {
			terms++
		}
	}
	return float64(terms) / float64(max(c.docs, 1))
}

// Bytes returns the approximate memory of the corpus.
func (c *Corpus) Bytes() int64 { return c.bytes + 4*int64(cap(c.sequence)) }

// stringBytes is about the size of a string in a slice and as a map key.
func stringBytes(s string) int64 {
	const inSlice, inMap = 16, 40 // a map is half full on average
	return int64(len(s)) + inSlice + inMap
}

// DocFreq returns the number of documents with a term.
func (c *Corpus) DocFreq(term string) uint32 {
	id, ok := c.ids[term]
	if !ok {
		return 0
	}
	return c.docFreqs[id]
}

// occurrences returns the ascending places of each of n terms in a sequence.
// indices has the number of the term of each id in it, or absent; it is nil
// if the ids are these numbers.
func occurrences(sequence, indices []int32, n int) [][]int32 {
	counts := make([]int, n)
	places := make([][]int32, n)
	for _, id := range sequence {
		if i := indexOf(id, indices); i != absent {
			counts[i]++
		}
	}
	for i, count := range counts {
		places[i] = make([]int32, 0, count)
	}
	for p, id := range sequence {
		if i := indexOf(id, indices); i != absent {
			places[i] = append(places[i], int32(p))
		}
	}
	return places
}

// indexOf returns the number of the term of an id of a sequence, or absent,
// also at the end of a text or document. For indices see [occurrences].
func indexOf(id int32, indices []int32) int32 {
	switch {
	case id < 0:
		return absent
	case indices == nil:
		return id
	}
	return indices[id]
}

// A vocabulary is the learned part of a corpus.
type vocabulary struct {
	corpus *Corpus
	// terms has first the terms with rows, in ascending byte order, then those
	// that are only contexts, likewise.
	terms    []string
	rows     int // number of terms with rows
	docFreqs []uint32
	// sequence is like that of [Corpus], with indices into terms and only the
	// documents that have any, sorted, so that their order does not matter.
	sequence []int32
	docs     uint64  // in the whole corpus
	indices  []int32 // into terms, or absent, by corpus id
	entries  int64   // bytes of the largest sparse matrix so far
}

// vocabulary returns the terms in minDocFreq documents or more, the most
// frequent ones of them if they are more than most. Their sequence is not set.
func (c *Corpus) vocabulary(minDocFreq, most int) (*vocabulary, error) {
	if len(c.sequence) > math.MaxInt32 {
		return nil, fmt.Errorf("a corpus of %d terms, at most %d: leave documents out", len(c.sequence), math.MaxInt32)
	}
	v := &vocabulary{corpus: c, docs: c.docs}
	var ids []int
	for id, df := range c.docFreqs {
		if int(df) >= minDocFreq {
			ids = append(ids, id)
		}
	}
	if len(ids) > most {
		slices.SortFunc(ids, c.byFrequency)
		ids = ids[:most]
	}
	var contexts []string
	for _, id := range ids {
		if t := c.terms[id]; c.isContext(t) {
			contexts = append(contexts, t)
		} else {
			v.terms = append(v.terms, t)
		}
	}
	v.rows = len(v.terms)
	if v.rows == 0 {
		return nil, fmt.Errorf("%w: none of %d occurs in %d of the %d documents and starts with no digit",
			simmatrix.ErrNoVocabulary, len(c.terms), minDocFreq, c.docs)
	}
	slices.Sort(v.terms)
	slices.Sort(contexts)
	v.terms = append(v.terms, contexts...)
	v.indices = slices.Repeat([]int32{absent}, len(c.terms))
	for i, t := range v.terms {
		id := c.ids[t]
		v.indices[id] = int32(i)
		v.docFreqs = append(v.docFreqs, c.docFreqs[id])
	}
	return v, nil
}

// isContext reports whether a term is only a context of others: it begins with
// a digit, or is one of those of [Corpus.OnlyContexts].
func (c *Corpus) isContext(term string) bool {
	first, _ := utf8.DecodeRuneInString(term)
	return unicode.IsDigit(first) || c.contexts[term]
}

// OnlyContexts makes the terms that are mostly written as words for which is
// reports true contexts of others: they have no neighbors and are nobody's.
func (c *Corpus) OnlyContexts(is func(word string) bool) {
	c.contexts = map[string]bool{}
	for _, term := range c.terms {
		such, others := 0, 0
		for _, form := range c.Forms(term) {
			if is(form.Text) {
				such += form.Count
			} else {
				others += form.Count
			}
		}
		if such > others {
			c.contexts[term] = true
		}
	}
}

// byFrequency sorts ids: most frequent first, ties by term.
func (c *Corpus) byFrequency(a, b int) int {
	return cmp.Or(cmp.Compare(c.docFreqs[b], c.docFreqs[a]), cmp.Compare(c.terms[a], c.terms[b]))
}

// order sets the sequence: the documents with indices in place of ids.
func (v *vocabulary) order(sequence []int32) {
	mapped := make([]int32, 0, len(sequence))
	var documents [][]int32
	start, gap := 0, false
	for _, id := range sequence {
		switch {
		case id == endOfText:
			gap = len(mapped) > start
		case id != endOfDocument:
			if i := v.indices[id]; i != absent {
				if gap {
					mapped, gap = append(mapped, endOfText), false
				}
				mapped = append(mapped, i)
			}
		default:
			if len(mapped) > start {
				documents = append(documents, mapped[start:])
			}
			start, gap = len(mapped), false
		}
	}
	slices.SortFunc(documents, slices.Compare[[]int32])
	v.sequence = make([]int32, 1, 1+len(mapped)+len(documents))
	v.sequence[0] = endOfDocument
	for _, d := range documents {
		v.sequence = append(append(v.sequence, d...), endOfDocument)
	}
}
