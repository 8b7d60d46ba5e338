package enrich

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

// ErrNoTerms says that there is nothing to make weights of.
var ErrNoTerms = errors.New("no document has terms in the field")

// A DocumentReader reads the documents of indices. [documents.API] is one.
type DocumentReader interface {
	Scanner
	TermReader
}

// SnapshotOptions say what [Snapshot] makes.
type SnapshotOptions struct {
	// Index is an index expression, and Field the full name of the text field.
	Index, Field string
	// Source says in words where the documents come from, for the artifact.
	Source string
	// MinDocFreq leaves out the terms of fewer documents. Up to 2 changes no
	// weight, for a term without a row counts as in one document.
	MinDocFreq uint32
	// MaxMemory bounds the bytes that the terms may take while they are counted;
	// about three times as much is taken to make the artifact. 0 is no bound.
	MaxMemory int64
	// Workers is how many batches are under way at the same time; 0 is
	// [DefaultWorkers]. Docs is how many documents there are to read, for the
	// progress; 0 is unknown.
	Workers, Docs int
	// Progress and OnTooLarge may be nil. OnTooLarge is called with each document
	// whose terms are too many to be read, which counts as one without terms. Calls
	// of the two do not overlap.
	Progress   simmatrix.Progress
	OnTooLarge func(doc documents.DocRef, err error)
}

// Snapshot counts the documents of each term of a field, and returns a matrix
// that has a row for each and no neighbors; its Docs is the number of documents
// that have terms in the field. The same documents make the same matrix. The
// error wraps [simmatrix.ErrMemory] where the bound is too small, and
// [ErrNoTerms] where no document has any.
func Snapshot(ctx context.Context, r DocumentReader, o SnapshotOptions) (*simmatrix.Matrix, error) {
	var s *snapshot
	err := Retry(ctx, func() error { // a scan that is interrupted begins again, and so do the counts
		s = &snapshot{
			terms: NewTerms(r, o.Field), o: o, docFreqs: map[string]uint32{},
			meter: &Meter{Progress: o.Progress, Stage: "counting terms", Total: o.Docs},
		}
		return Each(ctx, r, documents.RefOptions{Index: o.Index, Query: WithoutNorms(o.Field, "")}, o.Workers, s.batch)
	})
	if err != nil {
		return nil, err
	}
	return s.matrix()
}

type snapshot struct {
	terms *Terms
	o     SnapshotOptions
	meter *Meter
	told  sync.Mutex // held in calls of Progress and OnTooLarge

	mu       sync.Mutex
	docs     uint64
	docFreqs map[string]uint32
	bytes    int64
}

// termBytes is about what a counted term takes besides its text.
const termBytes = 56

func (s *snapshot) batch(ctx context.Context, docs []documents.DocRef) error {
	err := s.terms.Each(ctx, docs, func(i int, terms *documents.DocTerms) error {
		switch {
		case errors.Is(terms.Err, esclient.ErrTooLarge):
			if s.o.OnTooLarge != nil {
				s.told.Lock()
				defer s.told.Unlock()
				s.o.OnTooLarge(docs[i], terms.Err)
			}
			return nil
		case terms.Err != nil:
			return fmt.Errorf("document %q of index %q: %w", docs[i].ID, docs[i].Index, terms.Err)
		default:
			return s.count(terms.Fields[s.o.Field])
		}
	})
	if err != nil {
		return err
	}
	s.told.Lock()
	defer s.told.Unlock()
	s.meter.Add(len(docs))
	return nil
}

func (s *snapshot) count(terms []documents.TermFreq) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(terms) > 0 {
		s.docs++
	}
	for _, t := range terms {
		n, known := s.docFreqs[t.Term]
		if n == math.MaxUint32 || len(t.Term) > simmatrix.MaxTermBytes {
			continue // no engine has either
		}
		if known {
			s.docFreqs[t.Term] = n + 1
			continue
		}
		s.docFreqs[strings.Clone(t.Term)] = 1
		s.bytes += int64(len(t.Term)) + termBytes
	}
	if s.o.MaxMemory > 0 && s.bytes > s.o.MaxMemory {
		return fmt.Errorf("%w: the %d terms of the first %d documents take %d MB",
			simmatrix.ErrMemory, len(s.docFreqs), s.docs, s.bytes>>20)
	}
	return nil
}

func (s *snapshot) matrix() (*simmatrix.Matrix, error) {
	var rows []simmatrix.TermRow
	for term, docFreq := range s.docFreqs {
		if term != "" && docFreq >= s.o.MinDocFreq {
			rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: docFreq})
		}
	}
	s.docFreqs = nil
	if len(rows) == 0 {
		return nil, ErrNoTerms
	}
	params := map[string]string{"kind": "weights", "field": s.o.Field}
	if s.o.MinDocFreq > 1 {
		params["min_df"] = strconv.FormatUint(uint64(s.o.MinDocFreq), 10)
	}
	return simmatrix.New(simmatrix.Meta{Source: s.o.Source, Params: params, Docs: s.docs}, rows)
}
