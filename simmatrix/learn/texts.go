package learn

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"

	"github.com/akin-search/akin/simmatrix"
)

// maxWordBytes is the longest word that [Texts.Add] takes in. Lucene's standard
// tokenizer cuts at 255 characters; nothing that long is a word.
const maxWordBytes = 255

// Texts collects documents as sequences of surface words, so that an analyzer
// sees each distinct word once. It is not safe for use by several goroutines.
type Texts struct {
	ids   map[string]int32
	words []string
	// sequence has ids, endOfText between the texts of a document and
	// endOfDocument after each document. No text and no document is empty.
	sequence []int32
	docs     int
	bytes    int64 // of the words, with what is kept of each
}

// NewTexts returns no texts.
func NewTexts() *Texts { return &Texts{ids: make(map[string]int32)} }

// Add adds one document, given as the values of its fields, in order. It splits
// them at Unicode's word boundaries (UAX #29), as Lucene's standard tokenizer
// does, and keeps words with a letter or digit.
func (t *Texts) Add(texts ...string) {
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	t.add(len(texts), func(k int) {
		for tokens := words.FromString(texts[k]); tokens.Next(); {
			if word := tokens.Value(); len(word) <= maxWordBytes && strings.IndexFunc(word, isWord) >= 0 {
				t.sequence = append(t.sequence, t.id(word))
			}
		}
	})
}

// AddTerms is Add for texts that are index terms already. Terms that are empty
// or longer than [simmatrix.MaxTermBytes] are skipped.
func (t *Texts) AddTerms(texts ...[]string) {
	t.add(len(texts), func(k int) {
		for _, term := range texts[k] {
			if term != "" && len(term) <= simmatrix.MaxTermBytes {
				t.sequence = append(t.sequence, t.id(term))
			}
		}
	})
}

// add adds a document of texts whose words the function appends.
func (t *Texts) add(texts int, appendWords func(k int)) {
	start, end := len(t.sequence), len(t.sequence) // end of the last text with a word
	for k := range texts {
		if end > start {
			t.sequence = append(t.sequence[:end], endOfText)
		}
		before := len(t.sequence)
		if appendWords(k); len(t.sequence) > before {
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
		id = t.addWord(strings.Clone(word)) // else it would keep the whole text alive
	}
	return id
}

func (t *Texts) addWord(word string) int32 {
	id := int32(min(len(t.words), math.MaxInt32)) // memory ends long before
	t.ids[word] = id
	t.words = append(t.words, word)
	t.bytes += stringBytes(word)
	return id
}

// Words returns the distinct words in order of appearance, not to be modified.
func (t *Texts) Words() []string { return t.words }

// Docs returns the number of documents with at least one word.
func (t *Texts) Docs() int { return t.docs }

// Bytes returns about how much memory the texts take.
func (t *Texts) Bytes() int64 { return t.bytes + 4*int64(cap(t.sequence)) }

// Append adds the documents of other after those of t.
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
}

// Limit keeps at most docs documents, a random choice that depends on the
// documents and not on their order. Words stay.
func (t *Texts) Limit(docs int) {
	if docs < 0 || t.docs <= docs {
		return
	}
	hashes := t.hashes()
	sorted := slices.Sorted(slices.Values(hashes))
	first := sorted[docs] // the lowest of those that go
	below, _ := slices.BinarySearch(sorted, first)
	equal := docs - below // documents of one hash are the same: the first of them stay
	kept, start, doc := 0, 0, 0
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
			// Spread the bits as SplitMix64 does (Steele, Lea and Flood, 2014).
			h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
			h = (h ^ h>>27) * 0x94d049bb133111eb
			hashes, h = append(hashes, h^h>>31), offset
		}
	}
	return hashes
}

// Corpus returns the documents as sequences of index terms, where terms[k] are
// the analyzer's terms of Words()[k]. With nil every word is its own term.
func (t *Texts) Corpus(terms [][]string) *Corpus {
	c := NewCorpus()
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
	return c
}

// The format of a file of texts, numbers as varints unless said otherwise:
//
//	content
//	magic "akin-T\r\n"
//	format version, 1
//	number of words, then for each its length in bytes, 1 to 32766, and itself
//	number of elements of the sequence, then each: 0 between two texts of a
//	document, 1 behind a document, k+2 for word k
//	SHA-256 of everything before it, 32 bytes
const (
	textsMagic   = "akin-T\r\n"
	textsVersion = 1
	textsShift   = -endOfText // added to an element of the sequence, so that none is negative
	textsChunk   = 1 << 16    // how much is read or written at a time
)

// ErrTexts says that the input is no file of texts, cut short, or damaged.
var ErrTexts = errors.New("not a whole file of texts")

// EncodeTexts writes t to w. The same texts always give the same bytes.
func EncodeTexts(w io.Writer, t *Texts) error {
	h := sha256.New()
	b := bufio.NewWriterSize(io.MultiWriter(w, h), textsChunk)
	var number []byte
	put := func(n uint64) {
		number = binary.AppendUvarint(number[:0], n)
		_, _ = b.Write(number) // a bufio.Writer returns its first error from the last call
	}
	_, _ = b.WriteString(textsMagic)
	put(textsVersion)
	put(uint64(len(t.words)))
	for _, word := range t.words {
		put(uint64(len(word)))
		_, _ = b.WriteString(word)
	}
	put(uint64(len(t.sequence)))
	for _, id := range t.sequence {
		put(uint64(int64(id) + textsShift)) //nolint:gosec // endOfText is the least
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing texts: %w", err)
	}
	if _, err := w.Write(h.Sum(nil)); err != nil {
		return fmt.Errorf("writing texts: %w", err)
	}
	return nil
}

// DecodeTexts reads a file of texts to its end, checks it, and allocates as it
// reads. Errors wrap [ErrTexts] or that of r.
func DecodeTexts(r io.Reader) (*Texts, error) {
	d := &textsDecoder{r: bufio.NewReaderSize(r, textsChunk), hash: sha256.New()}
	t := NewTexts()
	for _, read := range []func(*Texts) error{d.head, d.words, d.sequence, d.end} {
		err := read(t)
		if err = cmp.Or(d.err, err); err != nil {
			return nil, fmt.Errorf("reading texts: %w", err)
		}
	}
	return t, nil
}

type textsDecoder struct {
	r    *bufio.Reader
	hash hash.Hash
	read []byte // not hashed yet
	err  error  // the first of reading, after which all numbers are 0
}

// check adds p to the checksum, or sets the error.
func (d *textsDecoder) check(err error, p ...byte) {
	switch {
	case d.err != nil || err == nil:
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		d.err = fmt.Errorf("%w: it ends too early", ErrTexts)
	default:
		d.err = err
	}
	if d.read = append(d.read, p...); len(d.read) >= textsChunk {
		d.sum()
	}
}

func (d *textsDecoder) sum() {
	d.hash.Write(d.read)
	d.read = d.read[:0]
}

func (d *textsDecoder) full(p []byte) {
	_, err := io.ReadFull(d.r, p)
	d.check(err, p...)
}

// number reads a number of at most highest, which is under 2^63.
func (d *textsDecoder) number(name string, highest uint64) (n uint64) {
	for shift := 0; d.err == nil; shift += 7 {
		b, err := d.r.ReadByte()
		d.check(err, b)
		if n |= uint64(b&0x7f) << shift; d.err == nil && (n > highest || shift > 56) {
			d.err = fmt.Errorf("%w: %s over %d", ErrTexts, name, highest)
		}
		if b < 0x80 && d.err == nil {
			return n
		}
	}
	return 0
}

func (d *textsDecoder) head(*Texts) error {
	head := make([]byte, len(textsMagic))
	if d.full(head); string(head) != textsMagic {
		return fmt.Errorf("%w: it does not begin like one", ErrTexts)
	}
	if version := d.number("format version", math.MaxInt32); version != textsVersion {
		return fmt.Errorf("%w: of format version %d, this program reads %d", ErrTexts, version, textsVersion)
	}
	return nil
}

func (d *textsDecoder) words(t *Texts) error {
	room := make([]byte, simmatrix.MaxTermBytes)
	for count := d.number("number of words", math.MaxInt32); count > 0 && d.err == nil; count-- {
		word := room[:d.number("length of a word", simmatrix.MaxTermBytes)]
		d.full(word)
		if _, twice := t.ids[string(word)]; twice || len(word) == 0 {
			return fmt.Errorf("%w: word %d is empty or repeated", ErrTexts, len(t.words))
		}
		t.addWord(string(word))
	}
	return nil
}

func (d *textsDecoder) sequence(t *Texts) error {
	last := int32(endOfDocument)
	for count := d.number("length of the sequence", 1<<62); count > 0 && d.err == nil; count-- {
		n := d.number("element of the sequence", uint64(len(t.words))+textsShift-1)
		id := int32(n) - textsShift //nolint:gosec // under the number of words
		if id < 0 && last < 0 {
			return fmt.Errorf("%w: an empty text", ErrTexts)
		}
		if id == endOfDocument {
			t.docs++
		}
		t.sequence = append(t.sequence, id)
		last = id
	}
	if last != endOfDocument {
		return fmt.Errorf("%w: a document without an end", ErrTexts)
	}
	return nil
}

func (d *textsDecoder) end(*Texts) error {
	d.sum()
	want := d.hash.Sum(nil)
	got := make([]byte, len(want))
	if d.full(got); !bytes.Equal(got, want) {
		return fmt.Errorf("%w: its checksum does not match", ErrTexts)
	}
	switch _, err := d.r.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: more bytes after the checksum", ErrTexts)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
