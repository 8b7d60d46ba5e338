package soft

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
)

// Errors of [Reranker.Scores]. Others are from internal/cache, a port, or the
// context.
var (
	// ErrMissing says that a hit's terms are not available as the search found
	// them: it was deleted or changed since, or another copy of its shard
	// answered.
	ErrMissing = errors.New("a hit is no longer as it was found")
	// ErrNoTerms says that the cluster may return no terms of a field, such as an
	// alias or a target of copy_to, and that no document of the index was ever
	// seen with some.
	ErrNoTerms = errors.New("the cluster reports no terms of a field")
	// ErrTooLarge says that hits have more terms than are read at a time.
	ErrTooLarge = errors.New("the hits have too many terms")
)

// TermVectors returns the terms of documents.
type TermVectors interface {
	// Named returns the documents of a concrete index with these sequence numbers,
	// unordered, without deleted and changed ones.
	Named(ctx context.Context, index string, seqNos []int64) ([]documents.DocRef, error)
	// DocVectors returns the terms of each of docs, as a search sees them. If its
	// error wraps [esclient.ErrTooLarge], fewer documents may work.
	DocVectors(ctx context.Context, docs []documents.VectorRequest) ([]documents.DocTerms, error)
	// UUIDs sets ids[k] to what distinguishes a concrete index from earlier and
	// later ones of its name; "" if unknown.
	UUIDs(ctx context.Context, indices, ids []string) error
	// Readable reports whether the cluster returns all terms of a concrete index's
	// documents in a field. If not, it may still return some.
	Readable(ctx context.Context, index, field string) (bool, error)
}

const (
	// docsAtOnce is the number of documents per call: the usual window. The
	// answers of concurrent searches must fit in memory.
	docsAtOnce = 100
	// maxTerms limits the terms of hits that a search asks for: a hundred
	// documents of 10,000 distinct words each.
	maxTerms = 1_000_000
	// maxReturned limits the terms that [Reranker.Terms] returns.
	maxReturned = 100_000
)

// A window is the hits of a search, and what their scores need.
type window struct {
	memory *store
	hits   []expand.Hit
	// uuids are those of the hits' indices.
	uuids  []string
	fields []column
	// terms counts the hits' terms that were asked for.
	terms int
	// termsOnly drops hits without available terms and scores nothing.
	termsOnly bool
	// settled says which doubtful fields are readable.
	settled map[fieldKey]bool
}

// recall reads the caches and reports whether they have all it needs.
func (w *window) recall(ctx context.Context) (bool, error) {
	if len(w.recallUUIDs()) > 0 {
		return false, nil
	}
	if w.fields[0].vectors == nil && w.recallVectors() > 0 { // else divide has recalled them all
		return false, ctx.Err()
	}
	for i := range w.fields {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if len(w.memory.recallRows(&w.fields[i])) > 0 {
			return false, ctx.Err()
		}
	}
	for field := range w.doubts() {
		if _, known := w.readable(field); !known {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}

func (w *window) fetch(ctx context.Context, vectors TermVectors) error {
	if err := w.fetchTerms(ctx, vectors); err != nil {
		return err
	}
	for i := range w.fields {
		if err := w.memory.fetchRows(ctx, &w.fields[i]); err != nil {
			return err
		}
	}
	return w.settle(ctx, vectors)
}

// divide recalls the vectors, and divides the hits into those that have all of
// theirs and the others.
func (w *window) divide() (known, unknown []expand.Hit) {
	if len(w.recallUUIDs()) == 0 {
		w.recallVectors()
	}
	for k, hit := range w.hits {
		if slices.ContainsFunc(w.fields, func(c column) bool { return c.vectors == nil || c.vectors[k] == nil }) {
			unknown = append(unknown, hit)
		} else {
			known = append(known, hit)
		}
	}
	return known, unknown
}

// fetchTerms asks for missing vectors.
func (w *window) fetchTerms(ctx context.Context, vectors TermVectors) error {
	if w.fields[0].vectors == nil { // the indices' UUIDs are not known yet
		if err := w.fetchUUIDs(ctx, vectors); err != nil {
			return err
		}
		w.recallVectors()
	}
	return w.fetchVectors(ctx, vectors)
}

// docTerms returns the terms of the hits by field, nil for a hit without a
// field, without terms, or that would make more than maxReturned.
func (w *window) docTerms() []map[string]expand.FieldTerms {
	out := make([]map[string]expand.FieldTerms, len(w.hits))
	left := maxReturned
	for k := range w.hits {
		n := 0
		for i := range w.fields {
			v := w.fields[i].vectors[k]
			if v == nil {
				n = 0
				break
			}
			n += len(v.terms)
		}
		if n == 0 || n > left {
			continue
		}
		left -= n
		out[k] = make(map[string]expand.FieldTerms, len(w.fields))
		for i := range w.fields {
			v := w.fields[i].vectors[k]
			out[k][w.fields[i].Field] = expand.FieldTerms{Terms: w.memory.terms.texts(v.terms), Freqs: v.freqs}
		}
	}
	return out
}

// recallUUIDs returns the indices whose UUIDs are not cached.
func (w *window) recallUUIDs() (missing []string) {
	for k := range w.hits {
		index := w.hits[k].Index
		if k > 0 && index == w.hits[k-1].Index {
			w.uuids[k] = w.uuids[k-1]
			continue
		}
		uuid, ok, _ := cache.Peek[string](w.memory.facts, fact{uuidOfIndex, fieldKey{index: index}})
		w.uuids[k] = uuid
		if !ok && !slices.Contains(missing, index) {
			missing = append(missing, index)
		}
	}
	return missing
}

func (w *window) fetchUUIDs(ctx context.Context, vectors TermVectors) error {
	missing := w.recallUUIDs()
	if len(missing) == 0 {
		return nil
	}
	ids := make([]string, len(missing))
	if err := vectors.UUIDs(ctx, missing, ids); err != nil {
		return fmt.Errorf("indices of hits: %w", err)
	}
	for k := range w.hits {
		if i := slices.Index(missing, w.hits[k].Index); i >= 0 {
			w.uuids[k] = ids[i]
		}
	}
	for i, index := range missing {
		w.memory.learn(uuidOfIndex, fieldKey{index: index}, ids[i])
	}
	return nil
}

// recallVectors returns how many vectors are missing.
func (w *window) recallVectors() (missing int) {
	for i := range w.fields {
		missing += w.recallColumn(i)
	}
	lookups := len(w.fields) * len(w.hits)
	w.memory.counts.hits.Add(uint64(lookups - missing))
	w.memory.counts.misses.Add(uint64(missing))
	return missing
}

// recallColumn returns how many vectors of field i are missing. A hit with an
// id may be in an index of one shard, whose documents are cached by number.
func (w *window) recallColumn(i int) (missing int) {
	c := &w.fields[i]
	c.keys = make([]docKey, len(w.hits))
	var named []int
	for k := range w.hits {
		c.keys[k] = w.memory.docKey(w.key(i, k))
	}
	c.vectors = w.memory.vectors.get(c.keys)
	for k, v := range c.vectors {
		if v != nil && w.hits[k].ID != "" && v.id != w.hits[k].ID { // two states rarely share a number
			c.vectors[k] = nil
		}
		if c.vectors[k] == nil && w.hits[k].ID != "" {
			named = append(named, k)
		} else if c.vectors[k] == nil {
			missing++
		}
	}
	numbers := make([]docKey, len(named))
	for n, k := range named {
		numbers[n] = docKey{field: c.keys[k].field, seqNo: c.keys[k].seqNo}
	}
	for n, v := range w.memory.vectors.get(numbers) {
		if k := named[n]; v != nil && v.id == w.hits[k].ID {
			c.vectors[k], c.keys[k] = v, numbers[n]
		} else {
			missing++
		}
	}
	return missing
}

// key returns the key of field i of hit k.
func (w *window) key(i, k int) vectorKey { return vectorKey{w.hits[k], w.uuids[k], w.fields[i].Field} }

// fetchVectors asks for missing vectors, some documents at a time.
func (w *window) fetchVectors(ctx context.Context, vectors TermVectors) error {
	var lacking []int // of hits
	for k := range w.hits {
		if slices.ContainsFunc(w.fields, func(c column) bool { return c.vectors[k] == nil }) {
			lacking = append(lacking, k)
		}
	}
	for some := range slices.Chunk(lacking, docsAtOnce) {
		if err := w.fetchSome(ctx, vectors, some); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(w.fields, func(c column) bool { return slices.Contains(c.vectors, nil) }) {
		return ErrMissing
	}
	return nil
}

func (w *window) fetchSome(ctx context.Context, vectors TermVectors, hits []int) error {
	var keys []vectorKey
	var to []**vector
	place := map[vectorKey]int{}
	for _, k := range hits {
		for i := range w.fields {
			if v := &w.fields[i].vectors[k]; *v == nil {
				key := w.key(i, k).clone()
				place[key] = len(keys)
				keys, to = append(keys, key), append(to, v)
			}
		}
	}
	found, err := cache.GetAll(ctx, w.memory.calls, keys, func(ctx context.Context, keys []vectorKey) (map[vectorKey]*vector, error) {
		slices.SortFunc(keys, func(a, b vectorKey) int { return place[a] - place[b] })
		loaded := make(map[vectorKey]*vector, len(keys))
		return loaded, w.loadVectors(ctx, vectors, keys, loaded)
	})
	for n, v := range to {
		*v = found[keys[n]]
	}
	return err
}

// loadVectors asks for the terms of hits in one call, or more if that is too
// large, and loads those of the state that the search found. The keys of a
// document are adjacent. Documents with only a number are looked up first.
func (w *window) loadVectors(ctx context.Context, vectors TermVectors, keys []vectorKey, loaded map[vectorKey]*vector) error {
	named, err := w.named(ctx, vectors, keys)
	if err != nil {
		return err
	}
	var docs []documents.VectorRequest
	var first []int // first key of each of docs
	for n, key := range keys {
		hit, known := key.Hit, true
		if key.ID == "" {
			hit, known = named[key.SeqNo]
		}
		if !known {
			continue // it was deleted or changed
		}
		if n == 0 || len(first) == 0 || key.Hit != keys[first[len(first)-1]].Hit {
			docs, first = append(docs, documents.VectorRequest{Index: hit.Index, ID: hit.ID, Routing: hit.Routing}), append(first, n)
		}
		last := &docs[len(docs)-1]
		last.Fields = append(last.Fields, key.field)
	}
	if len(docs) == 0 {
		return nil
	}
	answer, err := vectors.DocVectors(ctx, docs)
	if half := len(docs) / 2; half > 0 && errors.Is(err, esclient.ErrTooLarge) {
		if err := w.loadVectors(ctx, vectors, keys[:first[half]], loaded); err != nil {
			return err
		}
		return w.loadVectors(ctx, vectors, keys[first[half]:], loaded)
	}
	switch {
	case errors.Is(err, esclient.ErrTooLarge):
		return w.required(fmt.Errorf("%w: %w", ErrTooLarge, err))
	case err != nil:
		return fmt.Errorf("terms of hits: %w", err)
	case len(answer) != len(docs):
		return fmt.Errorf("terms of hits: %d answers for %d", len(answer), len(docs))
	}
	for d := range docs {
		if err := w.required(answer[d].Err); err != nil {
			return err
		}
		for i, field := range docs[d].Fields {
			key := keys[first[d]+i]
			version := key.Version
			if key.ID == "" {
				version = named[key.SeqNo].Version
			}
			if answer[d].Found && answer[d].Version == version {
				terms := answer[d].Fields[field]
				w.terms += len(terms)
				loaded[key] = w.memory.remember(key, docs[d].ID, terms)
				if mean := answer[d].MeanLengths[field]; mean > 0 {
					w.memory.facts.Put(fact{meanLength, fieldKey{key.Index, key.uuid, field}}, mean, nil, 2*vectorLife)
				}
			}
		}
	}
	if w.terms > maxTerms {
		return ErrTooLarge
	}
	return nil
}

// named returns the hits of keys without an id, by number. All are in one
// index, because one shard was searched.
func (*window) named(ctx context.Context, vectors TermVectors, keys []vectorKey) (map[int64]expand.Hit, error) {
	var numbers []int64
	for _, key := range keys {
		if key.ID == "" && !slices.Contains(numbers, key.SeqNo) {
			numbers = append(numbers, key.SeqNo)
		}
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	docs, err := vectors.Named(ctx, keys[0].Index, numbers)
	if err != nil {
		return nil, fmt.Errorf("ids of hits: %w", err)
	}
	named := make(map[int64]expand.Hit, len(docs))
	for _, d := range docs {
		named[d.SeqNo] = expand.Hit{Index: d.Index, ID: d.ID, Routing: d.Routing, SeqNo: d.SeqNo, PrimaryTerm: d.PrimaryTerm, Version: d.Version}
	}
	return named, nil
}

// required returns a document's error, or nil if it can be left out.
func (w *window) required(err error) error {
	if w.termsOnly {
		return nil
	}
	return err
}

// readable reports whether a field is readable, and whether that is known.
func (w *window) readable(field fieldKey) (readable, known bool) {
	if readable, known = w.settled[field]; !known {
		readable, known, _ = cache.Peek[bool](w.memory.facts, fact{fieldIsReadable, field})
	}
	return readable, known
}

func (w *window) settle(ctx context.Context, vectors TermVectors) error {
	w.settled = map[fieldKey]bool{}
	for field := range w.doubts() {
		if _, known := w.readable(field); known {
			continue
		}
		readable, err := vectors.Readable(ctx, field.index, field.field)
		if err != nil {
			return fmt.Errorf("field %s of %s: %w", field.field, field.index, err)
		}
		w.settled[field] = readable
		w.memory.learn(fieldIsReadable, field, readable)
	}
	return nil
}

// doubts returns the fields in which no hit of an index has terms, and none
// ever had: the cluster may return none for them.
func (w *window) doubts() map[fieldKey]struct{} {
	var doubts, sure map[fieldKey]struct{}
	for i := range w.fields {
		c := &w.fields[i]
		if !slices.ContainsFunc(c.vectors, (*vector).isEmpty) {
			continue
		}
		if doubts == nil {
			doubts, sure = map[fieldKey]struct{}{}, map[fieldKey]struct{}{}
		}
		for k, v := range c.vectors {
			of := sure
			if v.isEmpty() {
				of = doubts
			}
			of[fieldKey{w.hits[k].Index, w.uuids[k], c.Field}] = struct{}{}
		}
	}
	for field := range doubts {
		_, has := sure[field]
		if _, had, _ := cache.Peek[bool](w.memory.facts, fact{fieldHadTerms, field}); has || had {
			delete(doubts, field)
		}
	}
	return doubts
}

func (w *window) scores(ctx context.Context, s *scratch, by *expand.Rerank) ([]expand.HitScore, error) {
	for field := range w.doubts() {
		if readable, _ := w.readable(field); !readable {
			return nil, fmt.Errorf("%w: %s in %s", ErrNoTerms, field.field, field.index)
		}
	}
	terms, _ := w.memory.terms.size()
	for i := range w.fields {
		c := &w.fields[i]
		c.w = w.memory.weights.learn(c.number, c.w, terms, c.terms, c.rows)
	}
	s.grow(terms)
	query := 0.0 // squared norms
	products, squares := make([]float64, len(w.hits)), make([]float64, len(w.hits))
	for i := range w.fields {
		c := &w.fields[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		square, err := c.compare(ctx, s, products, squares)
		if err != nil {
			return nil, err
		}
		query += c.Boost * square
		for k := range c.vectors {
			if c.fresh[k] { // it does not depend on the search
				w.memory.vectors.settle(c.keys[k], c.number, c.squares[k])
			}
		}
	}
	scores := make([]expand.HitScore, len(w.hits))
	for k, product := range products {
		if query > 0 && squares[k] > 0 {
			scores[k].Soft = product / math.Sqrt(query) / math.Sqrt(squares[k])
		}
	}
	for i := range by.Sums {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.sum(s, &by.Sums[i], scores)
	}
	for _, sum := range w.feedback(by, scores) {
		w.sum(s, &sum, scores)
	}
	return scores, nil
}

// sum adds the score of a clause to the hits' scores.
func (w *window) sum(s *scratch, sum *expand.Sum, scores []expand.HitScore) {
	best, all := make([]float64, len(w.hits)), make([]float64, len(w.hits))
	for i := range sum.Fields {
		f := &sum.Fields[i]
		c := &w.fields[f.Field]
		for k, score := range c.saturated(s, f, w.memory.terms.number, w.lengths(c)) {
			best[k] = max(best[k], score)
			all[k] += score
		}
	}
	for k := range scores {
		scores[k].Sum += best[k] + sum.TieBreaker*(all[k]-best[k])
	}
}

// lengths returns the field length of each hit relative to the mean of its
// index, or of the hits if that is unknown.
func (w *window) lengths(c *column) []float64 {
	lengths, sum := make([]float64, len(c.vectors)), 0.0
	for k, v := range c.vectors {
		lengths[k] = v.length()
		sum += lengths[k]
	}
	for k := range lengths {
		mean, known, _ := cache.Peek[float64](w.memory.facts, fact{meanLength, fieldKey{w.hits[k].Index, w.uuids[k], c.Field}})
		if !known {
			mean = sum / float64(len(lengths))
		}
		if mean > 0 {
			lengths[k] /= mean
		}
	}
	return lengths
}
