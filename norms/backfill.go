package norms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/akin-search/akin/simmatrix"
)

// An Update changes a part of a document, on the condition that it is still as
// it was found.
type Update struct {
	// Doc is the document.
	Doc Doc
	// Part is one JSON object, to be merged into the document.
	Part []byte

	empty bool // the document has no terms
}

// A Status is what has become of an [Update].
type Status uint8

// What becomes of an update.
const (
	// StatusWritten says that the document was written.
	StatusWritten Status = iota
	// StatusUnchanged says that it held all of it already, so that nothing was
	// written.
	StatusUnchanged
	// StatusConflict says that it was written by somebody else meanwhile.
	StatusConflict
	// StatusGone says that it is not there any more.
	StatusGone
	// StatusBusy says that the cluster may do it later.
	StatusBusy
	// StatusRefused says that the cluster does not do it.
	StatusRefused
)

// An Outcome is what has become of an [Update].
type Outcome struct {
	// Status says it in a word, and Err is the reason where that is StatusBusy or
	// StatusRefused.
	Status Status
	Err    error
}

// An Updater writes the documents of an index.
type Updater interface {
	// Refresh makes what has been written visible to [Reader.Docs].
	Refresh(ctx context.Context) error
	// Update makes updates and returns what has become of each, in their order.
	// After an error nobody knows which have been made.
	Update(ctx context.Context, updates []Update) ([]Outcome, error)
}

const (
	// maxRounds is how often a backfill goes through the documents that others
	// write meanwhile, and roundPause what it leaves them between two rounds.
	maxRounds  = 5
	roundPause = 2 * firstPause
	// maxFailures ends a backfill: what so many documents do not allow, no
	// document does.
	maxFailures = 1000
	// maxRemembered bounds the documents that wait for another round of All.
	maxRemembered = 10_000
	// lastCallTime is how long a call that writes may go on after the backfill
	// was interrupted.
	lastCallTime = 5 * time.Second
)

// Errors of [Backfill].
var (
	// ErrFailed says that some documents could not be given a norm.
	ErrFailed = errors.New("documents failed")
	// ErrConflicts says that some documents were written by others in every round.
	ErrConflicts = errors.New("documents were written by others meanwhile: start again")
)

// BackfillOptions say what [Backfill] does.
type BackfillOptions struct {
	// Field is the full name of the text field.
	Field string
	// All computes the norm of every document again, and not only of those that
	// have none of the weights.
	All bool
	// Workers is how many batches are under way at the same time; 0 is
	// [DefaultWorkers].
	Workers int
	// Docs is how many documents there are to do, for the progress; 0 is
	// unknown.
	Docs int
	// Progress, OnFailure and OnRound may be nil. OnFailure is told of each
	// document that fails, and OnRound of what ends a round that is not the last:
	// documents that were written by others, or an error that may pass. Calls of
	// the three do not overlap.
	Progress  simmatrix.Progress
	OnFailure func(doc Doc, err error)
	OnRound   func(conflicts int, err error)
}

// BackfillCounts tell what a backfill has done.
type BackfillCounts struct {
	// Written is the number of documents written, Empty of those among them that
	// have no terms, and Unchanged of those that held all already.
	Written, Empty, Unchanged int
	// Gone is the number of documents deleted meanwhile.
	Gone int
	// Conflicts is the number that others wrote in the last round, and Failed
	// the number that could not be written.
	Conflicts, Failed int
	// Unanswered is the number of documents in calls that had come to no answer
	// when the backfill was interrupted: each may be written or not.
	Unanswered int
	// Rounds is how often the index was searched for documents to do.
	Rounds int
}

// Backfill gives each document that has the field its norm by w and the id of
// w, unless it has that id. It knows by that what is left to do, so that one
// that was interrupted is just begun again.
//
// A document that somebody else writes meanwhile is not written over: it is
// left to another round, of which there are five at most. Documents that fail
// are passed over. The error wraps [ErrFailed] or [ErrConflicts] where some
// documents are left for these reasons; it is another where the backfill ended
// early. Where a call that writes has come to no answer, its documents may be
// written and not be counted, or counted as unchanged or in conflict
// afterwards.
//
// When ctx ends no call begins any more. Those that write are given some
// seconds to end, so that what they have written is counted.
//
// At the end it makes visible to searches what it has written.
func Backfill(ctx context.Context, r Reader, u Updater, weights *Weights, o BackfillOptions) (BackfillCounts, error) {
	b := &backfill{terms: termReader{read: r.Terms}, reader: r, updater: u, weights: weights, o: o, failed: map[docKey]bool{}}
	b.meter = meter{progress: o.Progress, stage: "computing norms", total: o.Docs}
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

// A docKey is a document's name.
type docKey struct{ index, id string }

func (d *Doc) key() docKey { return docKey{d.Index, d.ID} }

// A backfill is one under way.
type backfill struct {
	reader  Reader
	terms   termReader
	updater Updater
	weights *Weights
	o       BackfillOptions
	meter   meter

	mu        sync.Mutex
	counts    BackfillCounts
	failed    map[docKey]bool
	conflicts []string // the ids of this round's, the first maxRemembered
	forgotten int      // how many more there have been, of which no later round knows
}

// run goes through the documents in rounds.
func (b *backfill) run(ctx context.Context) error {
	query := b.query()
	for rounds, interruptions := 0, 0; ; {
		if err := b.refresh(ctx); err != nil {
			return err
		}
		b.counts.Rounds++
		b.counts.Conflicts, b.conflicts = b.forgotten, nil
		written := b.counts.Written
		err := eachBatch(ctx, b.reader, query, b.o.Workers, b.batch)
		if b.counts.Written > written {
			interruptions = 0
		}
		if err == nil {
			rounds++
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrInterrupted) && interruptions < maxTries:
			interruptions++ // the same query again
		case err != nil:
			return err
		case b.counts.Conflicts == b.forgotten || rounds == maxRounds:
			return b.refresh(ctx)
		default:
			query = b.left()
		}
		if b.o.OnRound != nil {
			b.o.OnRound(b.counts.Conflicts, err)
		}
		if err := pause(ctx, roundPause); err != nil {
			return err
		}
	}
}

// refresh makes what was written visible.
func (b *backfill) refresh(ctx context.Context) error {
	return again(ctx, func() error { return b.updater.Refresh(ctx) })
}

// query is for the documents of the first round.
func (b *backfill) query() []byte {
	if b.o.All {
		return Missing(b.o.Field, "")
	}
	return Missing(b.o.Field, b.weights.ID())
}

// left is for the documents of a later round: those that the first query finds
// still, or with All those that were not written.
func (b *backfill) left() []byte {
	if !b.o.All {
		return b.query()
	}
	b.forgotten = b.counts.Conflicts - len(b.conflicts)
	ids, err := json.Marshal(b.conflicts)
	if err != nil {
		return b.query() // strings can always be marshaled
	}
	return fmt.Appendf(nil, `{"ids":{"values":%s}}`, ids)
}

// batch gives documents their norms.
func (b *backfill) batch(ctx context.Context, docs []Doc) error {
	all, unanswered := len(docs), 0
	var lastBusy error
	err := again(ctx, func() error {
		left, err := b.try(ctx, docs)
		if err != nil {
			lastBusy, unanswered = nil, max(unanswered, left.unanswered)
			return err
		}
		docs, lastBusy, unanswered = left.docs, left.err, 0
		if len(docs) > 0 {
			return fmt.Errorf("%w: %w", ErrInterrupted, lastBusy)
		}
		return nil
	})
	if err != nil && lastBusy != nil && ctx.Err() == nil {
		for i := range docs { // the cluster has answered every call, and never had time for these
			if err := b.fail(&docs[i], lastBusy); err != nil {
				return err
			}
		}
		err = nil
	}
	b.count(func() {
		switch {
		case err == nil:
			b.meter.add(all)
		case ctx.Err() != nil:
			b.counts.Unanswered += unanswered
		}
	})
	return err
}

// A remainder is what the cluster was too busy to write, or how many documents
// it may have written in a call that came to no answer.
type remainder struct {
	docs       []Doc
	err        error
	unanswered int
}

// try gives documents their norms and returns those to try again.
func (b *backfill) try(ctx context.Context, docs []Doc) (remainder, error) {
	norms, err := b.norms(ctx, docs)
	if err != nil {
		return remainder{}, err
	}
	var updates []Update
	for i := range docs {
		u, ok, err := b.update(&docs[i], &norms[i])
		if err != nil {
			return remainder{}, err
		}
		if ok {
			updates = append(updates, u)
		}
	}
	if len(updates) == 0 {
		return remainder{}, nil
	}
	if err := ctx.Err(); err != nil {
		return remainder{}, err
	}
	outcomes, err := b.write(ctx, updates)
	if err != nil {
		return remainder{unanswered: len(updates)}, err
	}
	var left remainder
	for i, outcome := range outcomes {
		doc := &updates[i].Doc
		if outcome.Status == StatusBusy {
			left.docs, left.err = append(left.docs, *doc), outcome.Err
			continue
		}
		if err := b.note(doc, outcome); err != nil {
			return remainder{}, err
		}
		if outcome.Status == StatusWritten && updates[i].empty {
			b.count(func() { b.counts.Empty++ })
		}
	}
	return left, nil
}

// write makes updates, and goes on for lastCallTime where ctx ends meanwhile.
func (b *backfill) write(ctx context.Context, updates []Update) ([]Outcome, error) {
	longer, end := outlast(ctx, lastCallTime)
	defer end()
	return b.updater.Update(longer, updates)
}

// A normed document is what is kept of its terms.
type normed struct {
	found   bool
	version int64
	norm    float64
	err     error
}

// norms computes the norms of documents. It counts none of them, for it may be
// called for them again.
func (b *backfill) norms(ctx context.Context, docs []Doc) ([]normed, error) {
	all := make([]normed, len(docs))
	err := b.terms.each(ctx, docs, func(i int, terms *DocTerms) error {
		all[i] = normed{found: terms.Found, version: terms.Version, norm: b.weights.Norm(terms.Terms), err: terms.Err}
		return nil
	})
	return all, err
}

// update returns what to write into a document, ok false if nothing.
func (b *backfill) update(doc *Doc, now *normed) (u Update, ok bool, err error) {
	b.mu.Lock()
	failed := b.failed[doc.key()]
	b.mu.Unlock()
	switch {
	case failed: // in an earlier round
		return u, false, nil
	case now.err != nil:
		return u, false, b.fail(doc, now.err)
	case !now.found:
		return u, false, b.note(doc, Outcome{Status: StatusGone})
	case now.version != doc.Version:
		return u, false, b.note(doc, Outcome{Status: StatusConflict})
	}
	return Update{Doc: *doc, Part: Members(b.o.Field, b.weights.ID(), now.norm, doc.HasNorm), empty: now.norm == 0}, true, nil
}

// note counts what has become of a document.
func (b *backfill) note(doc *Doc, outcome Outcome) error {
	if outcome.Status == StatusRefused {
		return b.fail(doc, outcome.Err)
	}
	b.count(func() {
		switch outcome.Status {
		case StatusWritten:
			b.counts.Written++
		case StatusUnchanged:
			b.counts.Unchanged++
		case StatusGone:
			b.counts.Gone++
		case StatusConflict:
			b.counts.Conflicts++
			if len(b.conflicts) < maxRemembered {
				b.conflicts = append(b.conflicts, doc.ID)
			}
		case StatusBusy, StatusRefused:
		}
	})
	return nil
}

// fail counts a document that fails. Its error says that there are too many.
func (b *backfill) fail(doc *Doc, err error) error {
	var last error
	b.count(func() {
		b.failed[doc.key()] = true
		if len(b.failed) >= maxFailures {
			last = fmt.Errorf("%d %w, the last one, %q of index %q, with: %w", len(b.failed), ErrFailed, doc.ID, doc.Index, err)
		}
		if b.o.OnFailure != nil {
			b.o.OnFailure(*doc, err)
		}
	})
	return last
}

func (b *backfill) count(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}
