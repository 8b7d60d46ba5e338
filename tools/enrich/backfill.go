// Package enrich gives documents what they lack: norms for the mode hard,
// vectors, segments of long texts. A [Task] says which documents lack
// something, and what to write into them; [Run] does that by partial updates,
// in rounds, until its query finds none. A document is updated only where
// nobody has written it meanwhile.
//
// A norm is ‖Wy‖, the length of a document's weighted vector of term
// frequencies, kept as a doc value for the length-normalized soft cosine
//
//	(Wx)ᵀS(Wy) / (‖Wx‖·‖Wy‖).
//
// S may change without new norms. W is frozen in a matrix file whose document
// frequencies make the weights ([Snapshot] counts them), and each document has,
// next to its norm, the id of its weights.
//
// Segments are nested documents beside the text, each with its place and its
// share of the text.
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
	// maxRounds is how often a backfill goes through the documents that others
	// write meanwhile, and roundPause the time between two rounds.
	maxRounds  = 5
	roundPause = 2 * FirstPause
	// maxFailures ends a backfill: what so many documents do not allow, no
	// document does.
	maxFailures = 1000
	// maxRemembered bounds the documents that another round of all may be about
	// alone. Where there are more, it is about all again.
	maxRemembered = 10_000
	// lastCallTime is how long a call that writes may go on after the backfill
	// was interrupted.
	lastCallTime = 5 * time.Second
)

// Errors of [Run].
var (
	// ErrFailed says that some documents could not be given what they lack.
	ErrFailed = errors.New("documents failed")
	// ErrConflicts says that some documents were written by others in every round.
	ErrConflicts = errors.New("documents were written by others meanwhile: start again")
)

// A Task says which documents lack something, and what to give them.
type Task struct {
	// Stage names the work in its progress, such as "computing norms".
	Stage string
	// Field is the text field of the documents. Those that match one of the queries
	// Done lack nothing: one that was written is not found again. Stale, which may
	// be nil, finds documents without the field that have something of it.
	Field string
	Done  []object
	Stale object
	// Scan says what is asked for of each document; [Run] sets Index and Query.
	Scan documents.RefOptions
	Fill Fill
}

// Query returns the query for the documents that lack something, or for all
// that could have it, as JSON.
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

// Stamped returns the query for the documents that have an id in a keyword.
func Stamped(keyword, id string) map[string]any {
	return object{"term": object{keyword: object{"value": id}}}
}

type object = map[string]any

func encode(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }

// A Fill returns what to write into documents, a part for each in their order.
// It is called with some hundred, by several goroutines at once. Its error ends
// the round, and the backfill unless it passes ([documents.Interrupted]).
type Fill func(ctx context.Context, docs []documents.DocRef) ([]Part, error)

// A Part is what a document is given.
type Part struct {
	// JSON is the object to merge into the document. Without it nothing is written,
	// and the document counts by Result: as unchanged, gone, in conflict, or
	// refused with an error, which passes it over.
	JSON   []byte
	Result documents.UpdateResult
	// Empty says that the document is counted as empty, too, when it is written.
	Empty bool
}

func newPart(members object, empty bool) Part {
	b, err := encode(members)
	if err != nil {
		return Part{Result: documents.UpdateResult{Status: documents.Refused, Err: err}}
	}
	return Part{JSON: b, Empty: empty}
}

// Options say what [Run] does.
type Options struct {
	// Index is an index expression.
	Index string
	// All does every document again, and not only those that lack something.
	All bool
	// Workers is how many batches are under way at the same time; 0 is
	// [defaultWorkers]. Docs is how many documents there are to do, for the
	// progress; 0 is unknown.
	Workers, Docs int
	// Progress, OnFailure and OnRound may be nil. OnFailure is called with each
	// document that fails, and OnRound with what ends a round that is not the
	// last: documents that were written by others, or an error that may pass.
	// Calls of the three do not overlap.
	Progress  simmatrix.Progress
	OnFailure func(doc documents.DocRef, err error)
	OnRound   func(conflicts int, err error)
}

// Counts count documents, and what a backfill has done with them.
type Counts struct {
	Written   int // the empty ones among them
	Empty     int // written, see [Part]
	Unchanged int // had all already
	Gone      int // deleted meanwhile
	Conflicts int // that others wrote in the last round
	Failed    int // that could not be written
	Rounds    int // how often the index was searched for documents to do
}

// Run gives each document of a task what it lacks, and at the end makes visible
// to searches what it has written. One that was interrupted is just begun
// again.
//
// A document that somebody else writes meanwhile is left to another round, of
// which there are five at most, and one that fails is passed over. The error
// wraps [ErrConflicts] or [ErrFailed] then. Documents of a call that came to no
// answer may be written without being counted.
//
// When ctx ends no call begins any more. Those that write get some seconds to
// end, so that they are counted.
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
	conflicts []string           // the ids of this round's, the first maxRemembered
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
			interruptions++ // the same query again
		case err != nil:
			return err
		case b.counts.Conflicts == 0 || rounds == maxRounds:
			return Refresh(ctx, b.cluster, b.o.Index)
		case b.o.All && b.counts.Conflicts == len(b.conflicts): // only what lacks something is found again
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

// Refresh makes what was written to indices visible to searches, unless the
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

// batch gives documents what they lack, without those that failed in an earlier
// round.
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

// write makes updates, and those again that the cluster had no time for. They
// fail where it never has.
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
	if busy != nil && errors.Is(err, busy) && ctx.Err() == nil { // it has answered every call
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

// call makes updates in one call, which has some time left after ctx has ended.
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

// note counts what has become of a document. empty says how it is counted when
// it was written.
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

// fail counts a document that fails. Its error says that there are too many.
func (b *backfill) fail(doc *documents.DocRef, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed[[2]string{doc.Index, doc.ID}] = true
	if b.o.OnFailure != nil {
		b.o.OnFailure(*doc, err)
	}
	if len(b.failed) >= maxFailures {
		return fmt.Errorf("%d %w, the last one, %q of index %q, with: %w", len(b.failed), ErrFailed, doc.ID, doc.Index, err)
	}
	return nil
}
