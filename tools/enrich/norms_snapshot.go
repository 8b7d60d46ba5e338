package enrich

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

// ErrNoTerms says that there is nothing to make weights of.
var ErrNoTerms = errors.New("no document has terms in the field")

// SnapshotOptions say what [Snapshot] makes.
type SnapshotOptions struct {
	// Source says in words where the documents come from, for the artifact.
	Source string
	// MinDocFreq leaves out the terms of fewer documents. Up to 2 changes no
	// weight, for a term without a row counts as in one document.
	MinDocFreq uint32
	// MaxMemory bounds the bytes that the terms may take while they are counted;
	// about three times as much is taken to make the artifact. 0 is no bound.
	MaxMemory int64
}

// Snapshot counts the documents of each term of a field, and returns a matrix
// that has a row for each and no neighbors; its Docs is the number of documents
// that have terms in the field. The same documents make the same matrix. The
// error wraps [simmatrix.ErrMemory] where the bound is too small, and
// [ErrNoTerms] where no document has any.
func Snapshot(ctx context.Context, r *Reading, o SnapshotOptions) (*simmatrix.Matrix, error) {
	var s *snapshot
	err := Retry(ctx, func() error { // a scan that is interrupted begins again, and so do the counts
		s = &snapshot{o: o, docFreqs: map[string]uint32{}}
		return r.Each(ctx, "counting terms", nil, s.count)
	})
	if err != nil {
		return nil, err
	}
	return s.matrix(r.Field)
}

type snapshot struct {
	o        SnapshotOptions
	mu       sync.Mutex
	docs     uint64
	docFreqs map[string]uint32
	bytes    int64
}

// termBytes is about what a counted term takes besides its text.
const termBytes = 56

func (s *snapshot) count(_ *documents.DocRef, terms []documents.TermFreq) error {
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

func (s *snapshot) matrix(field string) (*simmatrix.Matrix, error) {
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
	params := map[string]string{"kind": "weights", "field": field}
	if s.o.MinDocFreq > 1 {
		params["min_df"] = strconv.FormatUint(uint64(s.o.MinDocFreq), 10)
	}
	return simmatrix.New(simmatrix.Meta{Source: s.o.Source, Params: params, Docs: s.docs}, rows)
}
