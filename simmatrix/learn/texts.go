package learn

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"

	"github.com/akin-search/akin/simmatrix"
)

// maxWordBytes is the longest word that [Texts.Add] takes. Lucene's standard
// tokenizer cuts at 255 characters; nothing that long is a word.
const maxWordBytes = 255

// Texts collects documents as sequences of surface words, so that an analyzer
// sees each distinct word once. It is not safe for concurrent use.
type Texts struct {
	ids   map[string]int32
	words []string
	// sequence has ids, endOfText between the texts of a document, and
	// endOfDocument after each document. No text or document is empty.
	sequence []int32
	docs     int
	bytes    int64 // of the words with all that is kept of each
	acronyms acronyms
}

// NewTexts returns empty Texts.
func NewTexts() *Texts {
	return &Texts{ids: make(map[string]int32), acronyms: acronyms{docs: make(map[definition]int), most: maxAcronyms}}
}

// Add adds a document, given as the values of its fields, in order. It splits
// at Unicode's word boundaries (UAX #29), like Lucene's standard tokenizer, and
// keeps words with a letter or digit. It counts the acronyms that a document
// defines, see [Texts.Acronyms].
func (t *Texts) Add(texts ...string) {
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	t.add(len(texts), func(k int) {
		for tokens := words.FromString(texts[k]); tokens.Next(); {
			if word := tokens.Value(); len(word) <= maxWordBytes && strings.IndexFunc(word, isWord) >= 0 {
				t.sequence = append(t.sequence, t.id(word))
			}
		}
	})
	t.acronyms.addDocument(texts)
}

// AddTerms is Add for texts of index terms. It skips terms that are empty or
// longer than [simmatrix.MaxTermBytes].
func (t *Texts) AddTerms(texts ...[]string) {
	t.add(len(texts), func(k int) {
		for _, term := range texts[k] {
			if term != "" && len(term) <= simmatrix.MaxTermBytes {
				t.sequence = append(t.sequence, t.id(term))
			}
		}
	})
}

// add adds a document of texts whose words appendWords appends.
func (t *Texts) add(texts int, appendWords func(k int)) {
	start, end := len(t.sequence), len(t.sequence) // end of the last text with a word
	for k := range texts {
		if end > start {
			t.sequence = append(t.sequence[:end], endOfText)
		}
		before := len(t.sequence)
		appendWords(k)
		if len(t.sequence) > before {
			end = len(t.sequence)
		}
	}
	t.sequence = t.sequence[:end]
	if end > start {
		t.sequence = append(t.sequence, endOfDocument)
		t.docs++
	}
}

func (t *Texts) id(word string) int32 {
	id, ok := t.ids[word]
	if !ok {
		word = strings.Clone(word)                   // else the whole text would stay in memory
		id = int32(min(len(t.words), math.MaxInt32)) // memory ends long before
		t.ids[word] = id
		t.words = append(t.words, word)
		t.bytes += stringBytes(word)
	}
	return id
}

// Words returns the distinct words in order of appearance, read-only.
func (t *Texts) Words() []string { return t.words }

// Docs returns the number of documents with at least one word.
func (t *Texts) Docs() int { return t.docs }

// Bytes returns the approximate memory of the texts.
func (t *Texts) Bytes() int64 { return t.bytes + t.acronyms.bytes + 4*int64(cap(t.sequence)) }

// Append appends the documents of other.
func (t *Texts) Append(other *Texts) {
	ids := make([]int32, len(other.words))
	for k, word := range other.words {
		ids[k] = t.id(word)
	}
	t.sequence = slices.Grow(t.sequence, len(other.sequence))
	for _, id := range other.sequence {
		if id >= 0 {
			id = ids[id]
		}
		t.sequence = append(t.sequence, id)
	}
	t.docs += other.docs
	for _, a := range other.Acronyms() {
		t.acronyms.add(definition{a.Short, a.Long}, a.Docs)
	}
}

// Limit keeps at most docs documents, chosen pseudo-randomly by their content,
// not their order. Words stay.
func (t *Texts) Limit(docs int) {
	if docs < 0 || t.docs <= docs {
		return
	}
	hashes := t.hashes()
	sorted := slices.Sorted(slices.Values(hashes))
	first := sorted[docs] // the lowest hash that is dropped
	below, _ := slices.BinarySearch(sorted, first)
	equal := docs - below // documents with one hash are the same: the first of them stay
	var kept, start, doc int
	for p, id := range t.sequence {
		if id != endOfDocument {
			continue
		}
		stays := hashes[doc] < first
		if hashes[doc] == first && equal > 0 {
			stays, equal = true, equal-1
		}
		if stays {
			kept += copy(t.sequence[kept:], t.sequence[start:p+1])
		}
		start, doc = p+1, doc+1
	}
	t.sequence, t.docs = t.sequence[:kept], docs
}

func (t *Texts) hashes() []uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // of FNV-1a
	ofWord := make([]uint64, len(t.words))
	for k, word := range t.words {
		h := uint64(offset)
		for _, b := range []byte(word) {
			h = (h ^ uint64(b)) * prime
		}
		ofWord[k] = h
	}
	hashes := make([]uint64, 0, t.docs)
	h := uint64(offset)
	for _, id := range t.sequence {
		switch {
		case id >= 0:
			h = (h ^ ofWord[id]) * prime
		case id == endOfText:
			h *= prime
		default:
			// Spread the bits as in SplitMix64 (Steele, Lea and Flood, 2014).
			h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
			h = (h ^ h>>27) * 0x94d049bb133111eb
			hashes, h = append(hashes, h^h>>31), offset
		}
	}
	return hashes
}

// Corpus returns the documents as sequences of index terms, with the most
// frequent forms of each term. terms[k] are the analyzer's terms of Words()[k];
// nil means that every word is its own term.
func (t *Texts) Corpus(terms [][]string) *Corpus {
	c := newCorpus()
	known := make([][]int32, len(t.words)) // ids in c of the words seen so far
	var texts [][]int32
	var text []int32
	for _, word := range t.sequence {
		if word >= 0 {
			if known[word] == nil {
				one := t.words[word : word+1]
				if terms != nil {
					one = terms[word]
				}
				known[word] = c.termIDs(make([]int32, 0, len(one)), one)
			}
			text = append(text, known[word]...)
			continue
		}
		texts = append(texts, slices.Clone(text))
		text = text[:0]
		if word == endOfDocument {
			c.add(texts)
			texts = texts[:0]
		}
	}
	if terms != nil {
		c.setForms(t.forms(terms))
	}
	return c
}

// maxForms limits the forms kept for a term.
const maxForms = 3

// forms returns, by term, the most frequent lower-case words that the analyzer
// maps to only that term, at most maxForms, ties in alphabetical order.
func (t *Texts) forms(terms [][]string) map[string][]Form {
	counts := make([]int, len(t.words))
	for _, id := range t.sequence {
		if id >= 0 {
			counts[id]++
		}
	}
	var single []int32 // words with a single term, by term and form
	for k := range t.words {
		if counts[k] > 0 && len(terms[k]) == 1 && simmatrix.CheckForm(strings.ToLower(t.words[k])) == nil {
			single = append(single, int32(k))
		}
	}
	lower := func(k int32) string { return strings.ToLower(t.words[k]) }
	slices.SortFunc(single, func(a, b int32) int {
		return cmp.Or(cmp.Compare(terms[a][0], terms[b][0]), cmp.Compare(lower(a), lower(b)))
	})
	forms := make(map[string][]Form)
	var all []Form // of one term
	for len(single) > 0 {
		term := terms[single[0]][0]
		all = all[:0]
		for ; len(single) > 0 && terms[single[0]][0] == term; single = single[1:] {
			text, count := lower(single[0]), counts[single[0]]
			if n := len(all); n > 0 && all[n-1].Text == text {
				all[n-1].Count += count
			} else {
				all = append(all, Form{text, count})
			}
		}
		slices.SortStableFunc(all, func(a, b Form) int { return cmp.Compare(b.Count, a.Count) })
		forms[term] = slices.Clone(all[:min(len(all), maxForms)])
	}
	return forms
}

// ErrTexts says that the input is not a complete and sound file of texts.
var ErrTexts = errors.New("not a whole file of texts")

// EncodeTexts writes t to w, gzip-compressed and so with a checksum: a line of
// JSON per document, an array of the arrays of words of its texts, and one per
// acronym, an object. Equal texts give equal bytes.
func EncodeTexts(w io.Writer, t *Texts) error {
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // fails only for unknown levels
	lines := json.NewEncoder(z)
	document, text := [][]string(nil), []string(nil)
	for _, id := range t.sequence {
		if id >= 0 {
			text = append(text, t.words[id])
			continue
		}
		document, text = append(document, text), nil
		if id == endOfDocument {
			if err := lines.Encode(document); err != nil {
				return fmt.Errorf("writing texts: %w", err)
			}
			document = nil
		}
	}
	for _, a := range t.Acronyms() {
		if err := lines.Encode(a); err != nil {
			return fmt.Errorf("writing texts: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("writing texts: %w", err)
	}
	return nil
}

// DecodeTexts reads what [EncodeTexts] has written, to its end. Errors wrap
// [ErrTexts] or that of r.
func DecodeTexts(r io.Reader) (*Texts, error) {
	in := &watchedReader{Reader: r}
	t := NewTexts()
	z, err := gzip.NewReader(in)
	if err == nil {
		for lines := json.NewDecoder(z); err == nil; {
			var line json.RawMessage
			if err = lines.Decode(&line); err == nil {
				err = t.decode(line)
			}
		}
	}
	switch {
	case in.err != nil:
		return nil, fmt.Errorf("reading texts: %w", in.err)
	case z == nil || !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %w", ErrTexts, err)
	}
	return t, nil
}

// decode adds what a line of [EncodeTexts] has.
func (t *Texts) decode(line []byte) error {
	if line[0] == '{' {
		var a Acronym
		err := json.Unmarshal(line, &a)
		if err == nil && a.Docs < 1 {
			err = fmt.Errorf("acronym %.40q of %d documents", a.Short, a.Docs)
		}
		if err == nil {
			t.acronyms.add(definition{a.Short, a.Long}, a.Docs)
		}
		return err
	}
	var document [][]string
	err := json.Unmarshal(line, &document)
	if err == nil {
		t.AddTerms(document...)
	}
	return err
}

// A watchedReader keeps its own read error, apart from errors in the content.
type watchedReader struct {
	io.Reader

	err error
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
