// Package enrich adds to documents what they lack: norms for the modes hard and
// softcosine, vectors, segments of long texts. A [Task] says which documents
// lack something, and what to write into them. [Run] writes it by partial
// updates, in rounds, until the query finds no more documents. It updates a
// document only if nobody has written it meanwhile.
//
// A norm is ‖Wy‖, the length of a document's weighted vector of term
// frequencies, stored as a doc value for the length-normalized soft cosine
//
//	(Wx)ᵀS(Wy) / (‖Wx‖·‖Wy‖).
//
// S may change without new norms. W is frozen in a matrix file whose document
// frequencies are the weights ([Snapshot] counts them). Each document stores
// the id of its weights next to its norm. A soft norm is √((Wy)ᵀS(Wy)), for the
// soft cosine; it is another for another S, whose id is stored with it.
//
// Vectors are made by a model. [LearnVectors] makes that for dense ones.
//
// Segments are nested documents in addition to the text, each with its position
// and its share of the text.
package enrich

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// maxRounds is how many times a backfill goes through documents that others
	// write meanwhile. roundPause is the pause between rounds.
	maxRounds  = 5
	roundPause = 2 * FirstPause
	// maxFailures ends a backfill: then probably all documents fail.
	maxFailures = 1000
	// maxRemembered is how many conflicting documents a round of all can select by
	// id. If there are more, it covers all documents again.
	maxRemembered = 10_000
	// lastCallTime is how long a writing call may continue after an interrupt.
	lastCallTime = 5 * time.Second
)

// Errors of [Run].
var (
	// ErrFailed means that some documents could not be written.
	ErrFailed = errors.New("documents failed")
	// ErrConflicts means that others wrote some documents in every round.
	ErrConflicts = errors.New("documents were written by others meanwhile: start again")
)

// A Task says which documents lack something, and what to write.
type Task struct {
	// Stage names the work in progress reports, such as "computing norms".
	Stage string
	// Field is the text field of the documents. Done are queries for documents
	// that lack nothing; a written document matches one. Stale, which may be nil,
	// is a query for documents without the field that still have data for it.
	Field string
	Done  []object
	Stale object
	// Scan says what to read of each document; [Run] sets Index and Query.
	Scan documents.RefOptions
	Fill Fill
}

// Query returns the JSON query for the documents that lack something, or for
// all that can have it.
func (t *Task) Query(all bool) ([]byte, error) {
	has := esclient.ExistsQuery(t.Field)
	switch {
	case !all:
		return encode(object{"bool": object{"filter": []object{has}, "must_not": t.Done}})
	case t.Stale != nil:
		return encode(object{"bool": object{"should": []object{has, t.Stale}}})
	default:
		return encode(has)
	}
}

// Stamped returns the query for documents with an id in a keyword field.
func Stamped(keyword, id string) map[string]any {
	return object{"term": object{keyword: object{"value": id}}}
}

type object = map[string]any

func encode(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }

// A Fill returns what to write into documents, a part for each in order. It is
// called with some hundred documents, by several goroutines. Its error ends the
// round, and also the backfill unless it is temporary
// ([documents.Interrupted]).
type Fill func(ctx context.Context, docs []documents.DocRef) ([]Part, error)

// A Part is what to write into a document.
type Part struct {
	// JSON is the object to merge into the document. If nil, nothing is written,
	// and Result says how to count the document: unchanged, gone, in conflict, or
	// refused with an error, which skips it.
	JSON   []byte
	Result documents.UpdateResult
	// Empty says that the document also counts as empty when it is written.
	Empty bool
}

func newPart(members object, empty bool) Part {
	b, err := encode(members)
	if err != nil {
		return Part{Result: documents.UpdateResult{Status: documents.Refused, Err: err}}
	}
	return Part{JSON: b, Empty: empty}
}

// Options configure [Run].
type Options struct {
	// Index is an index expression.
	Index string
	// All processes every document, not only those that lack something.
	All bool
	// Workers is how many batches are in flight; 0 means [defaultWorkers]. Docs is
	// the number of documents to process, for the progress; 0 means unknown.
	Workers, Docs int
	// Progress, OnFailure and OnRound may be nil. OnFailure is called for each
	// document that fails. OnRound is called after a round that is not the last
	// one, with the conflicts or the temporary error that ended it. Calls of the
	// three do not overlap.
	Progress  simmatrix.Progress
	OnFailure func(doc documents.DocRef, err error)
	OnRound   func(conflicts int, err error)
}

// Counts count documents by result.
type Counts struct {
	Written   int // includes the empty ones
	Empty     int // written as empty, see [Part]
	Unchanged int // already had everything
	Gone      int // deleted meanwhile
	Conflicts int // written by others in the last round
	Failed    int // could not be written
	Rounds    int // how many times the index was searched
}

// Run writes what the documents of a task lack, and at the end refreshes the
// indices. After an interrupt, run it again.
//
// A document that somebody else writes meanwhile is left for another round, of
// at most five, and one that fails is skipped. Then the error wraps
// [ErrConflicts] or [ErrFailed]. If a call gets no answer, its documents may be
// written without being counted.
//
// When ctx ends, no call begins. Writing calls get some more seconds to end, so
// that they are counted.
func Run(ctx context.Context, c Cluster, t Task, o Options) (Counts, error) {
	b := &backfill{
		cluster: c, task: t, o: o, failed: map[[2]string]bool{},
		meter: meter{progress: o.Progress, stage: t.Stage, total: o.Docs},
	}
	err := b.run(ctx)
	b.counts.Failed = len(b.failed)
	switch {
	case err != nil:
	case len(b.failed) > 0:
		err = fmt.Errorf("%d %w", len(b.failed), ErrFailed)
	case b.counts.Conflicts > 0:
		err = fmt.Errorf("%d %w", b.counts.Conflicts, ErrConflicts)
	}
	return b.counts, err
}

type backfill struct {
	cluster   Cluster
	task      Task
	o         Options
	mu        sync.Mutex
	meter     meter
	counts    Counts
	failed    map[[2]string]bool // by index and id
	conflicts []string           // ids in this round, the first maxRemembered
}

func (b *backfill) run(ctx context.Context) error {
	query, err := b.task.Query(b.o.All)
	if err != nil {
		return err
	}
	for rounds, interruptions := 0, 0; ; {
		if err := Refresh(ctx, b.cluster, b.o.Index); err != nil {
			return err
		}
		b.counts.Rounds++
		b.counts.Conflicts, b.conflicts = 0, nil
		written := b.counts.Written
		scan := b.task.Scan
		scan.Index, scan.Query = b.o.Index, query
		err := each(ctx, b.cluster, scan, b.o.Workers, b.batch)
		if b.counts.Written > written {
			interruptions = 0
		}
		if err == nil {
			rounds++
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && documents.Interrupted(err) && interruptions < MaxTries:
			interruptions++ // repeat the same query
		case err != nil:
			return err
		case b.counts.Conflicts == 0 || rounds == maxRounds:
			return Refresh(ctx, b.cluster, b.o.Index)
		case b.o.All && b.counts.Conflicts == len(b.conflicts): // the query for all finds every document again, so select the conflicts
			if query, err = encode(object{"ids": object{"values": b.conflicts}}); err != nil {
				return err
			}
		}
		if b.o.OnRound != nil {
			b.o.OnRound(b.counts.Conflicts, err)
		}
		if err := pause(ctx, roundPause); err != nil {
			return err
		}
	}
}

// Refresh makes writes to indices visible to searches. It ignores that the
// client may write but not refresh.
func Refresh(ctx context.Context, c Cluster, index string) error {
	err := Retry(ctx, func() error { return c.Refresh(ctx, index) })
	if hasStatus(err, http.StatusForbidden) {
		return nil
	}
	return err
}

func hasStatus(err error, status int) bool {
	refusal, ok := errors.AsType[*esclient.Error](err)
	return ok && refusal.Status == status
}

// batch writes into documents, except those that failed in an earlier round.
func (b *backfill) batch(ctx context.Context, docs []documents.DocRef) error {
	b.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(docs), func(d documents.DocRef) bool { return b.failed[[2]string{d.Index, d.ID}] })
	b.mu.Unlock()
	parts, err := b.task.Fill(ctx, left)
	if err != nil {
		return err
	}
	var updates []update
	for i, p := range parts {
		if p.JSON != nil {
			updates = append(updates, update{documents.DocUpdate{Doc: left[i], Part: p.JSON}, p.Empty})
		} else if err := b.note(&left[i], p.Result, false); err != nil {
			return err
		}
	}
	if err := b.write(ctx, updates); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.meter.add(len(docs))
	return nil
}

type update struct {
	documents.DocUpdate

	empty bool // see [Part]
}

// write makes updates, and retries those that the cluster was too busy for.
// They fail if it stays busy.
func (b *backfill) write(ctx context.Context, updates []update) error {
	var busy error // of the last try
	err := Retry(ctx, func() error {
		var again []update
		busy = nil
		for len(updates) > 0 {
			n := fitting(updates)
			results, err := b.call(ctx, updates[:n])
			if err != nil {
				updates = append(updates, again...)
				return err
			}
			for i, result := range results {
				if result.Status == documents.Busy {
					again, busy = append(again, updates[i]), result.Err
				} else if err := b.note(&updates[i].Doc, result, updates[i].empty); err != nil {
					return err
				}
			}
			updates = updates[n:]
		}
		updates = again
		return busy
	})
	if busy != nil && errors.Is(err, busy) && ctx.Err() == nil { // the cluster has answered every call
		err = nil
		for i := 0; i < len(updates) && err == nil; i++ {
			err = b.fail(&updates[i].Doc, busy)
		}
	}
	return err
}

func fitting(updates []update) int {
	size := 0
	for n := range updates {
		if size += len(updates[n].Part); size > batchBytes {
			return max(n, 1)
		}
	}
	return len(updates)
}

// call makes updates in one call, which may continue for some time after ctx
// ends.
func (b *backfill) call(ctx context.Context, updates []update) ([]documents.UpdateResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastCallTime, end) })()
	changes := make([]documents.DocUpdate, len(updates))
	for i := range updates {
		changes[i] = updates[i].DocUpdate
	}
	return b.cluster.UpdateDocs(longer, changes)
}

// note counts the result of a document. empty says how to count it if it was
// written.
func (b *backfill) note(doc *documents.DocRef, result documents.UpdateResult, empty bool) error {
	if result.Status == documents.Refused {
		return b.fail(doc, result.Err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch result.Status {
	case documents.Updated:
		b.counts.Written++
		if empty {
			b.counts.Empty++
		}
	case documents.Unchanged:
		b.counts.Unchanged++
	case documents.Gone:
		b.counts.Gone++
	case documents.Conflict:
		b.counts.Conflicts++
		if len(b.conflicts) < maxRemembered {
			b.conflicts = append(b.conflicts, doc.ID)
		}
	case documents.Busy, documents.Refused:
	}
	return nil
}

// fail counts a failed document. It returns an error if there are too many.
func (b *backfill) fail(doc *documents.DocRef, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed[[2]string{doc.Index, doc.ID}] = true
	if b.o.OnFailure != nil {
		b.o.OnFailure(*doc, err)
	}
	if len(b.failed) >= maxFailures {
		return fmt.Errorf("%d %w; the last one, %q of index %q: %w", len(b.failed), ErrFailed, doc.ID, doc.Index, err)
	}
	return nil
}
