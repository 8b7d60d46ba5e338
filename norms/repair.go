package norms

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/internal/recovery"
)

// A Repair names a document whose norms are to be computed from what is
// stored.
type Repair struct {
	// Index is the name that it was written by, Routing "" for none.
	Index, ID, Routing string
}

// What becomes of a [Repair], for [RepairOptions.OnResult].
const (
	// RepairWritten says that the document was written once more, with its norms.
	RepairWritten = "written"
	// RepairUnchanged says that nothing was to be written: its norms are right, or
	// none are kept in its index.
	RepairUnchanged = "unchanged"
	// RepairGone says that the document is not there.
	RepairGone = "gone"
	// RepairOverflow says that too many repairs were waiting.
	RepairOverflow = "overflow"
	// RepairFailed says that it did not succeed in several tries, or never will.
	RepairFailed = "failed"
	// RepairDropped says that the process ended before.
	RepairDropped = "dropped"
)

// A Stored is a document as it is now.
type Stored struct {
	// Doc names it, with the concrete index; its HasNorm means nothing.
	Doc
	// Found is false where it is not there.
	Found bool
	// Members is a JSON object with those of the members Object and WeightsObject
	// that it has; nil for none.
	Members jsontext.Value
}

// Documents are those of the cluster.
type Documents interface {
	// Read returns documents as they are now, in their order. It reads nothing
	// but index, id and routing.
	Read(ctx context.Context, docs []Doc) ([]Stored, error)
	// FieldTerms returns the terms of a field of documents, in their order.
	FieldTerms(ctx context.Context, field string, docs []Doc) ([]DocTerms, error)
	// Update makes updates and returns what has become of each, in their order.
	Update(ctx context.Context, updates []Update) ([]Outcome, error)
}

const (
	// repairsAtOnce is how many documents are repaired in one go.
	repairsAtOnce = 100
	// DefaultRepairs is the number of documents that may wait.
	DefaultRepairs = 10_000
	// repairTries is how often a document is tried, and repairPause the wait
	// before what has failed is tried again.
	repairTries, repairPause = 3, time.Second
	// repairTimeout bounds one go.
	repairTimeout = time.Minute
)

// RepairOptions say how a [Repairer] works.
type RepairOptions struct {
	// Limit is how many documents may wait; 0 is [DefaultRepairs].
	Limit int
	// OnResult, unless nil, is told what becomes of each repair, and OnError why
	// some did not succeed at a try. They must not block.
	OnResult func(result string)
	OnError  func(err error)
	// Guard recovers what panics; nil does so without a word.
	Guard *recovery.Guard
}

// computing is what the metric of panics says.
const computing = "computing norms"

// A Repairer computes the norms of stored documents, one go after the other,
// and puts them in by a partial update on the condition that nobody else has
// written the document meanwhile. That raises the document's version and
// sequence number once more. Its methods may be called at the same time.
type Repairer struct {
	targets   Targets
	documents Documents
	weights   WeightsFor
	o         RepairOptions

	stop  context.CancelFunc
	ended chan struct{}
	wake  chan struct{}

	mu      sync.Mutex
	closed  bool
	waiting []waiting
	known   map[Repair]bool // the documents in waiting
}

// A waiting repair has been tried some times, for the last time before a
// moment when it may be tried again.
type waiting struct {
	Repair

	tries int
	from  time.Time
}

// NewRepairer returns a repairer at work. [Repairer.Close] ends it.
func NewRepairer(targets Targets, documents Documents, weights WeightsFor, o RepairOptions) *Repairer {
	if o.Limit <= 0 {
		o.Limit = DefaultRepairs
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Repairer{
		targets: targets, documents: documents, weights: weights, o: o,
		stop: stop, ended: make(chan struct{}), wake: make(chan struct{}, 1), known: map[Repair]bool{},
	}
	go r.work(ctx)
	return r
}

// Add has a document repaired soon. It does not wait.
func (r *Repairer) Add(repair Repair) { r.add(waiting{Repair: repair}) }

// Close ends the work and waits for its end. What is waiting is dropped.
func (r *Repairer) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	<-r.ended
}

func (r *Repairer) add(w waiting) {
	r.mu.Lock()
	result := ""
	switch {
	case r.closed:
		result = RepairDropped
	case r.known[w.Repair]: // it is read when it is its turn
	case len(r.waiting) >= r.o.Limit:
		result = RepairOverflow
	default:
		r.known[w.Repair] = true
		r.waiting = append(r.waiting, w)
	}
	r.mu.Unlock()
	if result != "" {
		r.tell(result)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Repairer) tell(result string) {
	if r.o.OnResult != nil {
		r.o.OnResult(result)
	}
}

// work repairs until ctx ends.
func (r *Repairer) work(ctx context.Context) {
	defer close(r.ended)
	defer r.drop()
	for ctx.Err() == nil {
		batch, wait := r.next()
		if len(batch) > 0 {
			r.goThrough(ctx, batch)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// drop counts what is not repaired any more.
func (r *Repairer) drop() {
	r.mu.Lock()
	n := len(r.waiting)
	r.waiting, r.known = nil, map[Repair]bool{}
	r.mu.Unlock()
	for range n {
		r.tell(RepairDropped)
	}
}

// next takes the documents of one go, none where none may be tried yet; then
// wait is how long to wait for one.
func (r *Repairer) next() (batch []waiting, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	wait = time.Hour
	left := r.waiting[:0]
	for _, w := range r.waiting {
		if until := w.from.Sub(now); until > 0 {
			wait = min(wait, until)
		} else if len(batch) < repairsAtOnce {
			batch = append(batch, w)
			delete(r.known, w.Repair) // written again meanwhile, it has to be read again
			continue
		}
		left = append(left, w)
	}
	clear(r.waiting[len(left):])
	r.waiting = left
	return batch, wait
}

// goThrough repairs the documents of one go.
func (r *Repairer) goThrough(ctx context.Context, batch []waiting) {
	bounded, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	results := make([]string, len(batch)) // of a panic: all are to be tried again
	err := r.o.Guard.Do(computing, func() error {
		found, err := r.repair(bounded, batch)
		copy(results, found)
		return err
	})
	if err != nil && r.o.OnError != nil && ctx.Err() == nil {
		r.o.OnError(err)
	}
	for i, w := range batch {
		switch result := results[i]; {
		case result != "":
			r.tell(result)
		case ctx.Err() != nil:
			r.tell(RepairDropped)
		case w.tries+1 >= repairTries:
			r.tell(RepairFailed)
		default:
			w.tries++
			w.from = time.Now().Add(repairPause)
			r.add(w)
		}
	}
}
