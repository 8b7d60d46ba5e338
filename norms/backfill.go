package norms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// maxRounds is how often a backfill goes through the documents that others
	// write meanwhile, and roundPause the time between two rounds.
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

// BackfillOptions say what [Backfill] and [Follow] do.
type BackfillOptions struct {
	// Index is an index expression, and Field the full name of the text field.
	Index, Field string
	// All computes the norm of every document again, and not only of those that
	// have none of the weights.
	All bool
	// Workers is how many batches are under way at the same time; 0 is
	// [DefaultWorkers]. Docs is how many documents there are to do, for the
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

// BackfillCounts count documents, and what a backfill has done with them.
type BackfillCounts struct {
	Written   int // those without terms among them
	Empty     int // written, without terms
	Unchanged int // had all already
	Gone      int // deleted meanwhile
	Conflicts int // that others wrote in the last round
	Failed    int // that could not be written
	// Unanswered are those in calls that had come to no answer when the backfill
	// was interrupted: each may be written or not.
	Unanswered int
	Rounds     int // how often the index was searched for documents to do
}

// Backfill gives each document that has the field its norm by the weights and
// their id, unless it has that id and a norm. One that was interrupted is just
// begun again. At the end it makes visible to searches what it has written.
//
// A document that somebody else writes meanwhile is left to another round, of
// which there are five at most, and one that fails is passed over. The error
// wraps [ErrConflicts] or [ErrFailed] then; it is another where the backfill
// ended early. Documents of a call that came to no answer may be written and
// not be counted, or counted as unchanged or in conflict afterwards.
//
// When ctx ends no call begins any more. Those that write are given some
// seconds to end, so that what they have written is counted.
func Backfill(ctx context.Context, c Cluster, weights *Weights, o BackfillOptions) (BackfillCounts, error) {
	b := newBackfill(c, weights, o)
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

type docKey struct{ index, id string }

func keyOf(d *documents.DocRef) docKey { return docKey{d.Index, d.ID} }

type backfill struct {
	cluster Cluster
	terms   termReader
	weights *Weights
	o       BackfillOptions
	meter   meter
	// followed is nil unless this is a round of [Follow]: documents that the cluster
	// is too busy for end it with an error that passes.
	followed *ownWrites

	mu        sync.Mutex
	counts    BackfillCounts
	failed    map[docKey]bool
	conflicts []string // the ids of this round's, the first maxRemembered
	forgotten int      // how many more there were, which no later round knows
}

// ownWrites are the sequence numbers of the documents that a follower wrote: in
// rounds before, which are not looked at again, and in this one.
type ownWrites struct{ before, now map[docKey]int64 }

func newBackfill(c Cluster, weights *Weights, o BackfillOptions) *backfill {
	b := &backfill{cluster: c, weights: weights, o: o, failed: map[docKey]bool{}}
	b.meter = meter{progress: o.Progress, stage: "computing norms", total: o.Docs}
	b.terms.read = func(ctx context.Context, docs []documents.DocRef) ([]documents.DocTerms, error) {
		return c.TermFreqs(ctx, o.Field, docs)
	}
	return b
}

func (b *backfill) run(ctx context.Context) error {
	query := b.query()
	for rounds, interruptions := 0, 0; ; {
		if err := b.refresh(ctx); err != nil {
			return err
		}
		b.counts.Rounds++
		b.counts.Conflicts, b.conflicts = b.forgotten, nil
		written := b.counts.Written
		err := b.scan(ctx, documents.RefOptions{Index: b.o.Index, Query: query})
		if b.counts.Written > written {
			interruptions = 0
		}
		if err == nil {
			rounds++
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && documents.Interrupted(err) && interruptions < maxTries:
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

func (b *backfill) scan(ctx context.Context, o documents.RefOptions) error {
	o.Value = NormPath(b.o.Field)
	return eachBatch(ctx, b.cluster, o, b.o.Workers, b.batch)
}

// refresh does without where the client may write but not refresh.
func (b *backfill) refresh(ctx context.Context) error {
	err := retry(ctx, func() error { return b.cluster.Refresh(ctx, b.o.Index) })
	if hasStatus(err, http.StatusForbidden) {
		return nil
	}
	return err
}

func hasStatus(err error, status int) bool {
	refusal, ok := errors.AsType[*answers.Error](err)
	return ok && refusal.Status == status
}

func (b *backfill) query() []byte {
	if b.o.All {
		return Missing(b.o.Field, "")
	}
	return Missing(b.o.Field, b.weights.ID())
}

// left is for the documents of a later round: still found, or not written.
func (b *backfill) left() []byte {
	ids, err := json.Marshal(b.conflicts)
	if !b.o.All || err != nil { // strings can always be marshaled
		return b.query()
	}
	b.forgotten = b.counts.Conflicts - len(b.conflicts)
	return fmt.Appendf(nil, `{"ids":{"values":%s}}`, ids)
}

func (b *backfill) batch(ctx context.Context, docs []documents.DocRef) error {
	if b.followed != nil {
		docs = slices.DeleteFunc(docs, func(d documents.DocRef) bool {
			seqNo, own := b.followed.before[keyOf(&d)]
			return own && seqNo == d.SeqNo
		})
	}
	all, unanswered := len(docs), 0
	var lastBusy error
	err := retry(ctx, func() error {
		left, err := b.try(ctx, docs)
		if err != nil {
			lastBusy, unanswered = nil, max(unanswered, left.unanswered)
			return err
		}
		docs, lastBusy, unanswered = left.docs, left.err, 0
		return lastBusy
	})
	if err != nil && lastBusy != nil && ctx.Err() == nil && b.followed == nil {
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

// A remainder is what the cluster was too busy to write and why, or how many
// documents it may have written in a call that came to no answer.
type remainder struct {
	docs       []documents.DocRef
	err        error
	unanswered int
}

// try gives documents their norms and returns those to try again.
func (b *backfill) try(ctx context.Context, docs []documents.DocRef) (remainder, error) {
	updates, norms, err := b.updates(ctx, docs)
	if err != nil || len(updates) == 0 {
		return remainder{}, err
	}
	if err := ctx.Err(); err != nil {
		return remainder{}, err
	}
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		_ = pause(longer, lastCallTime) // whichever comes first
		end()
	})()
	results, err := b.cluster.UpdateDocs(longer, updates)
	if err != nil {
		return remainder{unanswered: len(updates)}, err
	}
	var left remainder
	for i, result := range results {
		doc := &updates[i].Doc
		if result.Status == documents.Busy {
			left.docs, left.err = append(left.docs, *doc), result.Err
			continue
		}
		if err := b.note(doc, result); err != nil {
			return remainder{}, err
		}
		if result.Status == documents.Updated && norms[i] == 0 {
			b.count(func() { b.counts.Empty++ })
		}
	}
	return left, nil
}

// updates returns what to write, and the norms in that. It counts those not
// written only when the terms of all are there: it may be called again.
func (b *backfill) updates(ctx context.Context, docs []documents.DocRef) (updates []documents.DocUpdate, norms []float64, err error) {
	all, normOf := make([]documents.DocTerms, len(docs)), make([]float64, len(docs))
	deleted := map[string]bool{} // indices
	err = b.terms.each(ctx, docs, func(i int, terms *documents.DocTerms) error {
		all[i], normOf[i] = *terms, b.weights.Norm(terms.Fields[b.o.Field])
		all[i].Fields = nil
		if hasStatus(terms.Err, http.StatusNotFound) {
			deleted[docs[i].Index] = true
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range docs {
		doc, now := &docs[i], &all[i]
		b.mu.Lock()
		failed := b.failed[keyOf(doc)]
		b.mu.Unlock()
		switch {
		case failed: // in an earlier round
		case deleted[doc.Index], now.Err == nil && !now.Found: // an update would make the index again
			err = b.note(doc, documents.UpdateResult{Status: documents.Gone})
		case now.Err != nil:
			err = b.fail(doc, now.Err)
		case now.Version != doc.Version:
			err = b.note(doc, documents.UpdateResult{Status: documents.Conflict})
		default:
			updates = append(updates, documents.DocUpdate{Doc: *doc, Part: Members(b.o.Field, b.weights.ID(), normOf[i], doc.HasValue)})
			norms = append(norms, normOf[i])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return updates, norms, nil
}

func (b *backfill) note(doc *documents.DocRef, result documents.UpdateResult) error {
	if result.Status == documents.Refused {
		return b.fail(doc, result.Err)
	}
	b.count(func() {
		switch result.Status {
		case documents.Updated:
			b.counts.Written++
			if b.followed != nil && len(b.followed.now) < maxWrote {
				b.followed.now[keyOf(doc)] = result.SeqNo
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
	})
	return nil
}

func (b *backfill) fail(doc *documents.DocRef, err error) error {
	var last error
	b.count(func() {
		b.failed[keyOf(doc)] = true
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
