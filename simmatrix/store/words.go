package store

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/spelling"
)

const (
	// chunkWords is the words per chunk: some 20 KiB, inflated at most
	// maxWordChunk.
	chunkWords   = 4096
	maxWordChunk = chunkWords * (spelling.MaxWordBytes + 3*binary.MaxVarintLen32)
	// pollWords is the chunks read per poll, which also has to notice switches.
	pollWords = 32
)

var errWords = errors.New("not a chunk of words")

// noDocFreqs is why nothing is near any word.
const noDocFreqs = "the matrix has no document frequencies"

// Words are the number of known words of a version in Redis, and their bytes.
type Words struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// size is about what they take in memory.
func (w *Words) size() uint64 {
	return min(w.Count, simmatrix.MaxTerms) * (spelling.WordBytes + min(w.Bytes/max(w.Count, 1), spelling.MaxWordBytes) + 1)
}

func (w *Words) chunks() int {
	return int((min(w.Count, simmatrix.MaxTerms) + chunkWords - 1) / chunkWords)
}

func wordsOf(m *simmatrix.Matrix) *Words {
	w, t := new(Words), m.Table()
	for i, term := range t.Terms {
		if spelling.IsWord(term, t.DocFreqs[i]) {
			w.Count++
			w.Bytes += uint64(len(term))
		}
	}
	return w
}

// chunksOfWords yields the fields of the hash of words. A word is the number of
// bytes it shares with the one before it in its chunk, the number of other
// bytes, these, and its document frequency; all of it deflated.
func chunksOfWords(id string, m *simmatrix.Matrix) iter.Seq2[string, string] {
	return func(yield func(field, value string) bool) {
		t := m.Table()
		var plain []byte
		n, before := 0, ""
		flush := func() bool {
			field, chunk := strconv.Itoa((n-1)/chunkWords), deflated(string(plain))
			plain, before = plain[:0], ""
			return yield(field, seal(wordsOwner(id, field), chunk))
		}
		for i, term := range t.Terms {
			if !spelling.IsWord(term, t.DocFreqs[i]) {
				continue
			}
			shared := 0
			for shared < len(before) && shared < len(term) && before[shared] == term[shared] {
				shared++
			}
			plain = binary.AppendUvarint(plain, uint64(shared))
			plain = binary.AppendUvarint(plain, uint64(len(term[shared:])))
			plain = append(plain, term[shared:]...)
			plain = binary.AppendUvarint(plain, uint64(t.DocFreqs[i]))
			before = term
			if n++; n%chunkWords == 0 && !flush() {
				return
			}
		}
		if len(plain) > 0 {
			flush()
		}
	}
}

func deflated(plain string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // fails only for unknown levels
	_, _ = io.WriteString(w, plain)                       // a buffer never fails
	_ = w.Close()
	return b.String()
}

// wordsOwner is included in the checksum of a chunk.
func wordsOwner(id, field string) string { return id + " words " + field }

// A wordReader reads the known words of a version, over several polls.
type wordReader struct {
	version  *version // nil if there is nothing to read
	next     int      // chunk to read next
	terms    []string
	docFreqs []uint32
}

func (w *wordReader) open(field, sealed string) error {
	chunk, err := unseal(wordsOwner(w.version.ID, field), sealed)
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(strings.NewReader(chunk)), maxWordChunk+1))
	if err != nil || len(plain) > maxWordChunk {
		return errWords
	}
	number := func(most uint64) (v uint64, ok bool) {
		v, size := binary.Uvarint(plain)
		if size <= 0 || v > most {
			return 0, false
		}
		plain = plain[size:]
		return v, true
	}
	before := ""
	for count := 0; len(plain) > 0; count++ {
		shared, ok := number(uint64(len(before)))
		own, alsoOK := number(spelling.MaxWordBytes)
		if !ok || !alsoOK || own > uint64(len(plain)) || count == chunkWords || uint64(len(w.terms)) == w.version.Words.Count {
			return errWords
		}
		word := before[:shared] + string(plain[:own])
		plain = plain[own:]
		docFreq, ok := number(math.MaxUint32)
		inOrder := len(w.terms) == 0 || word > w.terms[len(w.terms)-1]
		if !ok || !inOrder || len(word) > spelling.MaxWordBytes || simmatrix.CheckTerm(word) != nil {
			return errWords
		}
		w.terms = append(w.terms, word)
		w.docFreqs = append(w.docFreqs, uint32(docFreq)) //nolint:gosec // number has checked that it is at most MaxUint32
		before = word
	}
	w.next++
	return nil
}

// readWords continues to read the words of a followed matrix, and serves them
// when all are there. If they are damaged or lost, nothing is near any word,
// and the state says so.
func (r *remote) readWords(ctx context.Context, f *followed) {
	w := &f.words
	v := w.version
	if v == nil {
		return
	}
	for range pollWords {
		if uint64(len(w.terms)) == v.Words.Count {
			v.words.Store(spelling.NewWords(w.terms, w.docFreqs))
			*w = wordReader{}
			r.boundRows()
			return
		}
		field := strconv.Itoa(w.next)
		sealed, err := r.field(ctx, wordsKey(v.name, v.ID), field)
		if errors.Is(err, ErrUnavailable) {
			return // the next poll continues
		}
		if err == nil {
			err = w.open(field, sealed)
		}
		if err != nil {
			r.badRows.Add(1)
			v.noWords.Store(new("Redis has lost words of it, or they are damaged: push it once more"))
			*w = wordReader{}
			r.boundRows()
			return
		}
	}
}

// boundRows gives rows the memory that words, also those being read, leave.
func (r *remote) boundRows() {
	size := uint64(0)
	for _, f := range r.names {
		if f.words.version != nil || f.version != nil && f.version.words.Load() != nil {
			size += f.version.Words.size()
		}
	}
	r.cache.kept.Bound(r.cache.bytes - size)
}

// whyNoWords returns why nothing is near any word in a version, or "" if
// something may be, or nobody asks.
func (r *remote) whyNoWords(v *Version) string {
	switch {
	case r.mostWords == 0:
		return ""
	case v.Words == nil:
		return "an earlier akin has pushed it: push it once more"
	case v.Words.Count == 0:
		return noDocFreqs
	case v.Words.size() > r.mostWords:
		return fmt.Sprintf("%d words take %d KiB, and half of the cache of rows (caches.size), shared by the matrices in Redis, is %d KiB",
			v.Words.Count, v.Words.size()>>10, r.mostWords>>10)
	}
	return ""
}
