package enrich

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
)

// Bounds of backfill.go.
const (
	normsBatchDocs, normsTermsAtOnce = 500, 100
	normsMaxRounds, normsMaxFailures = 5, 1000
	normsFirstPause                  = time.Second
	normsLastCallTime                = 5 * time.Second
	normsMaxBackoff                  = 5 * time.Minute
)

// A stored document of a fake cluster.
type stored struct {
	documents.DocRef

	text string
	norm float64
	id   string // of the weights
	soft float64
	of   string // the id of weights and matrix
}

// terms returns the words between blanks, and how many different ones there are.
func (s *stored) terms() (terms []documents.TermFreq, different int) {
	freqs := map[string]int64{}
	for word := range strings.FieldsSeq(s.text) {
		freqs[word]++
	}
	for term, freq := range freqs {
		terms = append(terms, documents.TermFreq{Term: term, Freq: freq})
	}
	return terms, len(terms)
}

// A fakeIndex keeps documents in memory and fails as it is told.
type fakeIndex struct {
	mu     sync.Mutex
	docs   map[string]*stored
	seqNo  int64
	writes int

	// before is called before each call, by its name, with what it is about; its
	// error is the call's.
	before func(call string, docs []documents.DocRef) error
	// outcome may make another of an update, ok false leaves it.
	outcome func(d documents.DocRef) (o documents.UpdateResult, ok bool)
	// tooMany is the number of different terms that an answer cannot hold, 0 for
	// none, and largest the largest number of terms returned at once.
	tooMany, largest int
	// terms may spoil the terms of a document.
	terms func(d documents.DocRef, terms *documents.DocTerms)
}

func newFakeIndex(texts ...string) *fakeIndex {
	x := &fakeIndex{docs: map[string]*stored{}}
	for i, text := range texts {
		x.put(strconv.Itoa(i), text)
	}
	return x
}

// put writes a document as a whole.
func (x *fakeIndex) put(id, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	version := int64(1)
	if old := x.docs[id]; old != nil {
		version = old.Version + 1
	}
	x.seqNo++
	x.docs[id] = &stored{DocRef: documents.DocRef{Index: "i", ID: id, SeqNo: x.seqNo, PrimaryTerm: 1, Version: version}, text: text}
}

func (x *fakeIndex) remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.docs, id)
}

func (x *fakeIndex) hook(call string, docs []documents.DocRef) error {
	x.mu.Lock()
	before := x.before
	x.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(call, docs)
}

// Count implements [Cluster].
func (x *fakeIndex) Count(context.Context, string, []byte) (int64, error) {
	return int64(len(x.docs)), nil
}

// A filter is one of those of a document that is done.
type filter struct {
	Term   map[string]struct{ Value string }
	Exists struct{ Field string }
}

func (s *stored) passes(f *filter) bool {
	for keyword, want := range f.Term {
		return want.Value == map[string]string{esclient.NormWeightsPath("body"): s.id, esclient.SoftNormMatrixPath("body"): s.of}[keyword]
	}
	return map[string]float64{esclient.NormPath("body"): s.norm, esclient.SoftNormPath("body"): s.soft}[f.Exists.Field] != 0
}

// ScanRefs implements [Cluster] for the queries of this package.
func (x *fakeIndex) ScanRefs(ctx context.Context, o documents.RefOptions, fn func([]documents.DocRef) error) error {
	if err := x.hook("docs", nil); err != nil {
		return err
	}
	var q struct {
		Bool struct {
			MustNot []struct {
				Bool struct{ Filter []filter }
			} `json:"must_not"`
		}
		IDs struct{ Values []string }
	}
	if err := json.Unmarshal(o.Query, &q); err != nil {
		return err
	}
	x.mu.Lock()
	var found []documents.DocRef
	for id, d := range x.docs {
		switch {
		case len(q.IDs.Values) > 0 && !slices.Contains(q.IDs.Values, id):
		case len(q.Bool.MustNot) > 0 && !slices.ContainsFunc(q.Bool.MustNot[0].Bool.Filter, func(f filter) bool { return !d.passes(&f) }):
		default:
			found = append(found, d.DocRef)
		}
	}
	x.mu.Unlock()
	slices.SortFunc(found, func(a, b documents.DocRef) int { return cmp.Compare(a.SeqNo, b.SeqNo) })
	for part := range slices.Chunk(found, 100) {
		if err := cmp.Or(fn(slices.Clone(part)), ctx.Err(), x.hook("page", nil)); err != nil {
			return err
		}
	}
	return nil
}

// TermFreqs implements [Cluster]: words between blanks.
func (x *fakeIndex) TermFreqs(_ context.Context, fields []string, docs []documents.DocRef) ([]documents.DocTerms, error) {
	if err := x.hook("terms", docs); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]documents.DocTerms, len(docs))
	n := 0
	defer func() { x.largest = max(x.largest, n) }()
	for i, d := range docs {
		s := x.docs[d.ID]
		if s == nil {
			continue
		}
		terms, different := s.terms()
		all[i] = documents.DocTerms{Found: true, Version: s.Version, Fields: map[string][]documents.TermFreq{}}
		if different > 0 {
			all[i].Fields[fields[0]] = terms
		}
		if n += different; x.tooMany > 0 && n >= x.tooMany {
			n = 0
			return nil, fmt.Errorf("%d documents: %w", len(docs), esclient.ErrTooLarge)
		}
		if x.terms != nil {
			x.terms(d, &all[i])
		}
	}
	return all, nil
}

// Refresh implements [Cluster].
func (x *fakeIndex) Refresh(context.Context, string) error { return x.hook("refresh", nil) }

// UpdateDocs implements [Cluster].
func (x *fakeIndex) UpdateDocs(_ context.Context, updates []documents.DocUpdate) ([]documents.UpdateResult, error) {
	docs := make([]documents.DocRef, len(updates))
	for i := range updates {
		docs[i] = updates[i].Doc
	}
	if err := x.hook("update", docs); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	results := make([]documents.UpdateResult, len(updates))
	for i, u := range updates {
		if x.outcome != nil {
			if o, ok := x.outcome(u.Doc); ok {
				results[i] = o
				continue
			}
		}
		results[i] = x.write(u)
	}
	return results, nil
}

func (x *fakeIndex) write(u documents.DocUpdate) documents.UpdateResult {
	s := x.docs[u.Doc.ID]
	if s == nil {
		return documents.UpdateResult{Status: documents.Gone}
	}
	if s.SeqNo != u.Doc.SeqNo {
		return documents.UpdateResult{Status: documents.Conflict}
	}
	var part struct {
		Norm    map[string]*float64 `json:"akin_norm"`
		Weights map[string]string   `json:"akin_norm_weights"`
		Soft    map[string]*float64 `json:"akin_soft_norm"`
		Matrix  map[string]string   `json:"akin_soft_norm_matrix"`
	}
	if err := json.Unmarshal(u.Part, &part); err != nil {
		return documents.UpdateResult{Status: documents.Refused}
	}
	merged := func(old float64, part map[string]*float64) float64 {
		v, ok := part["body"]
		switch {
		case !ok:
			return old
		case v == nil:
			return 0
		}
		return *v
	}
	norm, soft, of := merged(s.norm, part.Norm), merged(s.soft, part.Soft), cmp.Or(part.Matrix["body"], s.of)
	if norm == s.norm && s.id == part.Weights["body"] && soft == s.soft && of == s.of {
		return documents.UpdateResult{Status: documents.Unchanged}
	}
	x.seqNo++
	x.writes++
	s.norm, s.id, s.SeqNo, s.HasValue = norm, part.Weights["body"], x.seqNo, norm != 0
	s.soft, s.of = soft, of
	s.Version++
	return documents.UpdateResult{Status: documents.Updated}
}

// wrong returns the ids of the documents that do not have their norm.
func (x *fakeIndex) wrong(w *Weights) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var ids []string
	for id, s := range x.docs {
		terms, _ := s.terms()
		if s.id != w.ID() || float32(s.norm) != float32(w.Norm(terms)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// wrongSoft is wrong for soft norms.
func (x *fakeIndex) wrongSoft(n *SoftNorm) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var ids []string
	for id, s := range x.docs {
		terms, _ := s.terms()
		if s.of != n.ID() || float32(s.soft) != float32(n.Of(terms)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (x *fakeIndex) written() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.writes
}

// manyTexts returns n texts, some of them empty.
func manyTexts(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		if i%10 != 3 {
			texts[i] = fmt.Sprintf("common number%d twice and twice group%d", i, i%7)
		}
	}
	return texts
}

// on has f called before each call of a name.
func (x *fakeIndex) on(call string, f func(docs []documents.DocRef) error) {
	x.before = func(c string, docs []documents.DocRef) error {
		if c == call {
			return f(docs)
		}
		return nil
	}
}

// busyAt has some of the calls of a name fail, from 1.
func (x *fakeIndex) busyAt(call string, numbers ...int) {
	n := 0
	x.on(call, func([]documents.DocRef) error {
		if n++; slices.Contains(numbers, n) {
			return errBusy
		}
		return nil
	})
}

var errBusy = &esclient.Error{Status: http.StatusServiceUnavailable, Reason: "busy"}

// largeTexts returns n texts of so many different terms each.
func largeTexts(n, terms int) []string {
	texts := make([]string, n)
	for i := range texts {
		var text strings.Builder
		for k := range terms {
			fmt.Fprintf(&text, "term%d ", (i*7+k)%(3*terms))
		}
		texts[i] = text.String()
	}
	return texts
}

func TestTermsAreReadInPartsThatFit(t *testing.T) {
	x := newFakeIndex(largeTexts(300, 200)...)
	x.put("huge", largeTexts(1, 5000)[0])
	x.tooMany = 2500 // 12 documents
	var docs []documents.DocRef
	err := x.ScanRefs(t.Context(), documents.RefOptions{Query: []byte(`{}`)}, func(found []documents.DocRef) error {
		docs = append(docs, found...)
		return nil
	})
	check.OK(t, err)
	calls, held := 0, 0
	x.before = func(_ string, docs []documents.DocRef) error {
		calls++
		held = max(held, len(docs))
		return nil
	}
	all, err := readTerms(t.Context(), x, docs)
	check.Must(t, err == nil && len(all) == len(docs), "%d of %d documents, %v", len(all), len(docs), err)
	for i, d := range docs {
		switch {
		case d.ID == "huge":
			check.Error(t, esclient.ErrTooLarge, all[i].Err, d.ID)
		case all[i].Err != nil || len(all[i].Fields["body"]) != 200:
			t.Errorf("%s: %d terms, %v", d.ID, len(all[i].Fields["body"]), all[i].Err)
		}
	}
	check.That(t, x.largest < x.tooMany && held <= normsTermsAtOnce && calls <= len(docs)/4, "%d terms at once, %d documents, %d calls", x.largest, held, calls)
}

func TestTermsOfOtherDocumentsAreRefused(t *testing.T) {
	x := newFakeIndex("one", "two")
	check.That(t, check.ErrOf(readTerms(t.Context(), shortReader{x}, []documents.DocRef{{ID: "0"}, {ID: "1"}})) != nil, "one answer for two documents")
}

// A shortReader leaves out the last document.
type shortReader struct{ Cluster }

func (r shortReader) TermFreqs(ctx context.Context, fields []string, docs []documents.DocRef) ([]documents.DocTerms, error) {
	terms, err := r.Cluster.TermFreqs(ctx, fields, docs)
	return terms[:len(terms)-1], err
}

// readTerms returns the terms of documents, from as many calls as it takes.
func readTerms(ctx context.Context, c Cluster, docs []documents.DocRef) (all []documents.DocTerms, err error) {
	err = NewTerms(c, "body").Each(ctx, docs, func(_ int, terms *documents.DocTerms) error {
		all = append(all, *terms)
		return nil
	})
	return all, err
}
