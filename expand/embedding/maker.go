package embedding

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
)

// A Store keeps values by key, for the next process and for others. A key
// has 32 bytes.
type Store interface {
	// Get returns the value of each key, nil for none. Put stores values.
	Get(ctx context.Context, keys []string) (values [][]byte, err error)
	Put(ctx context.Context, keys []string, values [][]byte) error
}

// A Maker makes the vectors of documents' texts, each once if there is a
// store. Its methods may be called concurrently.
type Maker struct {
	// Name identifies the model, and all that its vectors depend on.
	Name string
	// Documents returns the vectors of texts. Refused reports whether an error
	// of it may mean that the model rejects the texts, such as one that is too
	// long.
	Documents func(ctx context.Context, texts []string) ([][]float32, error)
	Refused   func(error) bool
	// Store may be nil.
	Store Store

	opening sync.Mutex // of the store, while another goroutine compares

	mu      sync.Mutex // never held during a call
	known   identity
	kept    string // part of the keys in the store, "" until it is known
	problem error  // of the last call to the store
}

// An identity tells which model answers under the name: the vector of the
// probe and the number of such vectors so far.
type identity struct {
	number uint64
	probe  []float32
}

const (
	// probe is a text whose vector tells whether a model is the same one.
	probe = "Which model answers here? Seventeen grey herons wait by the old mill."
	// sameModel is the least cosine of two vectors of the probe by one model.
	// Other hardware, or another batch, changes the last digits.
	sameModel = 0.99
	// markBytes is the length of what tells models under one name apart.
	markBytes = 16
)

func (m *Maker) model() identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// Identify asks the model for the vector of the probe. It returns its
// dimension, whether vectors made before must be dropped, and whether
// another model answered under the name before, now or in the store. Make
// needs it first.
func (m *Maker) Identify(ctx context.Context) (dim int, replaced, changed bool, err error) {
	vectors, err := m.Documents(ctx, []string{probe})
	if err == nil && len(vectors) != 1 {
		err = fmt.Errorf("%d vectors for a text", len(vectors))
	}
	if err == nil {
		err = normalize(vectors[0])
	}
	if err != nil {
		return 0, false, false, fmt.Errorf("%w: %w", ErrModel, err)
	}
	m.mu.Lock()
	first := m.known.probe == nil
	replaced = !alike(m.known.probe, vectors[0])
	if replaced {
		m.known = identity{m.known.number + 1, vectors[0]}
		m.kept = ""
	}
	m.mu.Unlock()
	other := m.open(ctx)
	return len(vectors[0]), replaced, replaced && !first || other, nil
}

// Problem returns the error of the last call to the store, which vectors are
// made without.
func (m *Maker) Problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problem
}

// open opens the store unless it is open, and returns whether it has vectors of
// another model under this name.
func (m *Maker) open(ctx context.Context) (other bool) {
	m.opening.Lock()
	defer m.opening.Unlock()
	m.mu.Lock()
	known, kept := m.known, m.kept
	m.mu.Unlock()
	if m.Store == nil || kept != "" {
		return false
	}
	mark, other, err := m.compare(ctx, known.probe)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problem = err
	if err == nil && m.known.number == known.number {
		m.kept = m.Name + "\x00" + string(mark)
	}
	return other
}

// compare returns the mark under which the store has the vectors of the model
// with a vector of the probe, and whether another one was there. The mark is
// random: where the store has lost it, all vectors are made again, and those
// that a model left under another mark are not taken.
func (m *Maker) compare(ctx context.Context, now []float32) (mark []byte, other bool, err error) {
	key := keyOf("model", m.Name)
	values, err := m.Store.Get(ctx, []string{key})
	if err != nil {
		return nil, false, err
	}
	var before []float32
	if v := values[0]; len(v) > markBytes && len(v)%4 == 0 {
		mark = v[:markBytes]
		before = make([]float32, (len(v)-markBytes)/4)
		for i := range before {
			before[i] = math.Float32frombits(binary.LittleEndian.Uint32(v[markBytes+4*i:]))
		}
	}
	if alike(before, now) {
		return mark, false, nil
	}
	mark = make([]byte, markBytes)
	_, _ = rand.Read(mark) // never fails
	value := slices.Clone(mark)
	for _, x := range now {
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(x))
	}
	return mark, before != nil, m.Store.Put(ctx, []string{key}, [][]byte{value})
}

// alike reports whether two vectors are of one model.
func alike(a, b []float32) bool {
	sum := float32(0)
	for i := range min(len(a), len(b)) {
		sum += a[i] * b[i]
	}
	return len(a) == len(b) && sum >= sameModel
}

func keyOf(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + text))
	return string(sum[:])
}

// Make returns the packed vectors of texts, nil for a text that is empty or
// that the model rejects, and how many the model has made. It takes those
// that the store has from there.
func (m *Maker) Make(ctx context.Context, texts []string) (vectors [][]byte, made int, err error) {
	m.open(ctx)
	m.mu.Lock()
	kept, dim := m.kept, len(m.known.probe)
	m.mu.Unlock()
	vectors = make([][]byte, len(texts))
	places := map[string][]int{} // of the texts that lack a vector
	var missing, keys []string
	for i, text := range texts {
		if text == "" {
			continue
		}
		if places[text] == nil {
			missing, keys = append(missing, text), append(keys, keyOf(kept, text))
		}
		places[text] = append(places[text], i)
	}
	set := func(text string, packed []byte) {
		for _, i := range places[text] {
			vectors[i] = packed
		}
	}
	if kept != "" && len(missing) > 0 {
		// What is read stays: the mark as long as the vectors.
		values, err := m.Store.Get(ctx, append(slices.Clone(keys), keyOf("model", m.Name)))
		m.note(err)
		if err != nil {
			values = nil
		}
		rest, restKeys := missing[:0:0], keys[:0:0]
		for i := range missing {
			if i < len(values) && len(values[i]) == scaleBytes+dim {
				set(missing[i], values[i])
			} else {
				rest, restKeys = append(rest, missing[i]), append(restKeys, keys[i])
			}
		}
		missing, keys = rest, restKeys
	}
	if len(missing) == 0 {
		return vectors, 0, nil
	}
	packed, err := m.embed(ctx, missing, dim)
	if err != nil {
		return nil, 0, err
	}
	var madeKeys []string
	var madeVectors [][]byte
	for i, v := range packed {
		set(missing[i], v)
		if v != nil {
			madeKeys, madeVectors = append(madeKeys, keys[i]), append(madeVectors, v)
		}
	}
	if kept != "" && len(madeKeys) > 0 {
		m.note(m.Store.Put(ctx, madeKeys, madeVectors))
	}
	return vectors, len(madeKeys), nil
}

func (m *Maker) note(problem error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problem = problem
}

// embed has the model make vectors. It halves what the model rejects; a text
// that it rejects alone, where it does not reject the probe, has none.
func (m *Maker) embed(ctx context.Context, texts []string, dim int) ([][]byte, error) {
	vectors, err := m.Documents(ctx, texts)
	switch half := len(texts) / 2; {
	case err != nil && m.Refused(err) && half > 0:
		first, err := m.embed(ctx, texts[:half], dim)
		if err != nil {
			return nil, err
		}
		second, err := m.embed(ctx, texts[half:], dim)
		return append(first, second...), err
	case err != nil && m.Refused(err):
		if _, err := m.Documents(ctx, []string{probe}); err == nil {
			return make([][]byte, 1), nil
		}
	case err == nil && len(vectors) != len(texts):
		err = fmt.Errorf("%d vectors for %d texts", len(vectors), len(texts))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	packed := make([][]byte, len(vectors))
	for i, v := range vectors {
		if len(v) != dim {
			return nil, fmt.Errorf("%w: vectors of %d and of %d numbers", ErrModel, dim, len(v))
		}
		if normalize(v) == nil {
			packed[i] = pack(v)
		}
	}
	return packed, nil
}
