package backfill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/documents"
)

// A FollowedCluster is a [Cluster] that says how far its indices have been
// written. [documents.API] is one.
type FollowedCluster interface {
	Cluster
	// ShardStates returns the states of the shards of an index expression, by
	// index.
	ShardStates(ctx context.Context, index string) ([]documents.ShardState, error)
}

// FollowOptions say what [Follow] does.
type FollowOptions struct {
	// Options are those of each round. All is for the first one only, and Docs and
	// OnRound mean nothing.
	Options
	// Interval is the time between two rounds, positive. After a round that the
	// cluster has interrupted it is twice as long as before, up to maxBackoff.
	Interval time.Duration
	// Check returns why the documents of a concrete index cannot be given it,
	// nil where they can. It is called for each index that is new, in each round
	// until it returns nil; else OnSkip is called with its error.
	Check  func(ctx context.Context, index string) error
	OnSkip func(index string, err error)
	// AfterRound is called after each round with what that has done and its error,
	// which is one that passes, and the time until the next.
	AfterRound func(counts Counts, err error, wait time.Duration)
}

const (
	// maxBackoff bounds the time between two rounds where the cluster is away or
	// busy, unless the interval is longer.
	maxBackoff = 5 * time.Minute
	// maxWrote bounds the own writes that are remembered. The other documents are
	// looked at once more, and not written.
	maxWrote = 200_000
)

// Follow does what [Run] does, and then goes on: in rounds it does the
// documents that were written since, also in part. It ends with the error of
// ctx, or with one that does not pass.
//
// It knows what was written by sequence numbers, shard by shard, and does not
// look at its own writes again. A document that somebody else writes meanwhile
// has another sequence number then, so that the next round finds it. One that
// fails is passed over until it is written again. An index that is new, or was
// deleted and created again, is looked at as a whole, once Check returns nil.
func Follow(ctx context.Context, c FollowedCluster, t Task, o FollowOptions) error {
	f := &follower{cluster: c, task: t, o: o, marks: map[string]int64{}, own: map[docKey]int64{}}
	wait := o.Interval
	for {
		counts, err := f.round(ctx)
		switch {
		case ctx.Err() != nil:
			o.AfterRound(counts, nil, 0)
			return ctx.Err()
		case err == nil:
			wait, f.o.All = o.Interval, true
		case documents.Interrupted(err):
			wait = max(min(2*wait, maxBackoff), o.Interval)
		default:
			return err
		}
		o.AfterRound(counts, err, wait)
		// Several followers should not ask at the same moments.
		jitter := 0.9 + 0.2*rand.Float64() //nolint:gosec // no secret depends on it
		if err := pause(ctx, time.Duration(jitter*float64(wait))); err != nil {
			return err
		}
	}
}

type follower struct {
	cluster FollowedCluster
	task    Task
	// o.All says whether all documents of an index that is new are looked at.
	o FollowOptions
	// marks are the sequence numbers up to which shards are done, by history.
	marks map[string]int64
	// own are the documents that the last rounds have written, with the sequence
	// numbers that they got by that.
	own map[docKey]int64
}

func (f *follower) round(ctx context.Context) (Counts, error) {
	b := newBackfill(f.cluster, f.task, f.o.Options)
	wrote := map[docKey]int64{}
	b.followed = &ownWrites{before: f.own, now: wrote}
	err := f.shards(ctx, b)
	if err == nil || len(f.own)+len(wrote) > maxWrote {
		f.own = wrote
	} else { // shards that are not done yet may have the writes of both
		maps.Copy(f.own, wrote)
	}
	b.counts.Failed = len(b.failed)
	return b.counts, err
}

func (f *follower) shards(ctx context.Context, b *backfill) error {
	var states []documents.ShardState
	err := Retry(ctx, func() (err error) {
		states, err = f.cluster.ShardStates(ctx, f.o.Index)
		return err
	})
	if err != nil {
		return err
	}
	maps.DeleteFunc(f.marks, func(history string, _ int64) bool {
		return !slices.ContainsFunc(states, func(s documents.ShardState) bool { return s.History == history })
	})
	byIndex := map[string][]documents.ShardState{}
	for _, s := range states {
		if s.Checkpoint > f.mark(&s) {
			byIndex[s.Index] = append(byIndex[s.Index], s)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		if err := f.index(ctx, b, byIndex[index]); err != nil && !isAway(err) {
			return fmt.Errorf("index %q: %w", index, err)
		}
	}
	return nil
}

// mark returns the sequence number up to which a shard is done, -1 for none.
func (f *follower) mark(s *documents.ShardState) int64 {
	if mark, ok := f.marks[s.History]; ok {
		return mark
	}
	return -1
}

// isAway reports whether an index was deleted or closed.
func isAway(err error) bool {
	refusal, ok := errors.AsType[*answers.Error](err)
	return ok && (refusal.Type == "index_not_found_exception" || refusal.Type == "index_closed_exception")
}

func (f *follower) index(ctx context.Context, b *backfill, shards []documents.ShardState) error {
	index := shards[0].Index
	if slices.ContainsFunc(shards, func(s documents.ShardState) bool { return f.mark(&s) < 0 }) {
		switch err := f.o.Check(ctx, index); {
		case err != nil && (documents.Interrupted(err) || ctx.Err() != nil):
			return err
		case err != nil:
			f.o.OnSkip(index, err)
			return nil
		}
	}
	// The states are older, so that searches see all that they speak of.
	err := Retry(ctx, func() error { return f.cluster.Refresh(ctx, index) })
	if hasStatus(err, http.StatusForbidden) {
		return fmt.Errorf("to follow an index needs the right to refresh it: %w", err)
	}
	if err != nil {
		return err
	}
	for i := range shards {
		s := &shards[i]
		o := documents.RefOptions{Index: index, Query: f.query(b, s), Preference: fmt.Sprintf("_shards:%d", s.Shard)}
		if err := b.scan(ctx, o); err != nil {
			return err
		}
		f.marks[s.History] = s.Checkpoint
	}
	return nil
}

func (f *follower) query(b *backfill, s *documents.ShardState) []byte {
	mark := f.mark(s)
	if mark < 0 {
		return b.query()
	}
	return fmt.Appendf(nil, `{"bool":{"filter":[%s,{"range":{"_seq_no":{"gt":%d,"lte":%d}}}]}}`, f.task.Every, mark, s.Checkpoint)
}
