package norms

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/internal/recovery"
)

const (
	// actionsAtOnce is how many actions of a bulk request are held at once.
	actionsAtOnce = 2000
	// maxActions is how many actions a bulk request may have.
	maxActions = 100_000
	// maxLeft bounds the actions that are read to be left to repairs, which takes
	// time that nobody has set aside. No more repairs can wait.
	maxLeft = DefaultRepairs
)

// A Keeper puts norms into documents on their way to the cluster. Its
// methods may be called at the same time.
type Keeper struct {
	targets  Targets
	analyzer Analyzer
	weights  WeightsFor
	repairs  *Repairer
	guard    *recovery.Guard
}

// NewKeeper returns a keeper. What it cannot do it leaves to repairs, unless
// that is nil. guard recovers what panics in goroutines.
func NewKeeper(targets Targets, analyzer Analyzer, weights WeightsFor, repairs *Repairer, guard *recovery.Guard) *Keeper {
	return &Keeper{targets: targets, analyzer: analyzer, weights: weights, repairs: repairs, guard: guard}
}

// Write computes the norms of the documents of a write and puts them into
// its body. All other bytes stay as they are, except for norms and ids that
// the documents brought along. What it cannot understand it leaves to the
// cluster to refuse, and to repairs where the cluster does not. With an error,
// or when ctx ends, norms are in a part of the documents at most; what is
// returned beside it is as good as without.
func (k *Keeper) Write(ctx context.Context, in *Write) (*Kept, error) {
	j := &job{keeper: k, in: in, plans: map[string]*plan{}, counts: map[string]int{}}
	j.out.body = in.Body
	err := j.run(ctx)
	j.actions, j.parts, j.edits = nil, nil, nil
	kept := &Kept{Body: j.out.end(), Documents: j.counts}
	if len(j.behind) > 0 || j.doubtful > 0 || kept.Body != nil {
		changed := kept.Body != nil
		kept.Done = func(a Answer) map[string]int { return j.done(changed, a) }
	}
	return kept, err
}

// A plan is what is to be done with the documents of a name.
type plan struct {
	target *Target
	fields []plannedField
	// unknown says that the cluster knows of no index yet.
	unknown bool
}

// A plannedField is a field whose norms are kept. Its weights are nil while
// they are not there.
type plannedField struct {
	TextField

	weights FrozenWeights
}

// planned returns the fields of a target whose norms are kept, as weights
// are bound to the name that is written by, to the index, or to another name
// of it.
func planned(weights WeightsFor, name string, target *Target) []plannedField {
	names := append([]string{name, target.Index}, target.Aliases...)
	var fields []plannedField
	for _, f := range target.Fields {
		for _, name := range names {
			w, bound := weights(name, f.Name)
			if !bound {
				continue
			}
			if w == nil || w.Docs() > 0 {
				fields = append(fields, plannedField{f, w})
			}
			break
		}
	}
	return fields
}

// A job is one call of [Keeper.Write].
type job struct {
	keeper *Keeper
	in     *Write
	plans  map[string]*plan
	// actions are some of those of the request, parts what norms are computed for,
	// edits what comes of it.
	actions []action
	parts   []part
	edits   []edit
	out     splicer
	behind  []Repair
	// doubtful is the number of documents that count as invalid.
	doubtful int
	counts   map[string]int
}

// A part is a document in the body, or what stands for a part of one.
type part struct {
	tree

	action *action
	plan   *plan
	// update says that it is merged over a document, so that only the fields
	// that it has count.
	update bool
	// fields are those whose norms are computed, from texts.
	fields []plannedField
	texts  map[string][]jsontext.Value
	values []value
	failed bool
}

// run does all but to write the end of the body.
func (j *job) run(ctx context.Context) error {
	if j.in.Bulk && (j.in.Body == nil || bytes.Count(j.in.Body, []byte{'\n'}) > 2*maxActions) {
		j.counts[DocumentUnread]++
		return nil
	}
	r := actionReader{write: j.in}
	for !r.ended {
		from, counts, behind, doubtful := r, maps.Clone(j.counts), len(j.behind), j.doubtful
		if err := j.slice(ctx, &r); err != nil {
			j.counts, j.behind, j.doubtful = counts, j.behind[:behind], doubtful
			j.leaveRest(from)
			return err
		}
	}
	return nil
}

// slice does all for the next actions of a request.
func (j *job) slice(ctx context.Context, r *actionReader) error {
	clear(j.parts) // what they refer to
	j.parts, j.edits = j.parts[:0], j.edits[:0]
	var err error
	if j.actions, err = r.next(j.actions[:0], ctx.Err); errors.Is(err, errAction) {
		j.doubt() // the rest of the request
	} else if err != nil {
		return err
	}
	for i := range j.actions {
		if err := j.look(ctx, &j.actions[i]); err != nil {
			return err
		}
	}
	if err := j.compute(ctx); err != nil {
		return err
	}
	j.put()
	j.out.add(j.edits)
	return nil
}

// planFor returns the plan for a name.
func (j *job) planFor(ctx context.Context, name string) (*plan, error) {
	if p := j.plans[name]; p != nil {
		return p, nil
	}
	p := &plan{}
	target, err := j.keeper.targets.Target(ctx, name)
	switch {
	case errors.Is(err, ErrNoIndex):
		p.unknown = true
	case errors.Is(err, ErrNoTarget):
	case err != nil:
		return nil, fmt.Errorf("index %q: %w", name, err)
	default:
		p.target, p.fields = target, planned(j.keeper.weights, name, target)
	}
	j.plans[name] = p
	return p, nil
}

// look decides what becomes of a document.
func (j *job) look(ctx context.Context, a *action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := j.planFor(ctx, a.index)
	switch {
	case err != nil:
		return err
	case p.unknown:
		j.leave(a) // the write makes the index
		return nil
	case len(p.fields) == 0:
		j.counts[DocumentNoNorms]++
		return nil
	case j.in.Body == nil, p.target.Pipelines, a.pipeline != "" && a.pipeline != "_none":
		j.leave(a)
		return nil
	case a.update:
		j.lookAtUpdate(a, p)
		return nil
	}
	t, err := readTree(j.in.Body, a.source)
	if err != nil {
		j.leaveUnreadable(a)
		return nil //nolint:nilerr // The cluster refuses it, or reads it in another way.
	}
	j.add(part{tree: t, action: a, plan: p})
	return nil
}

// lookAtUpdate decides what becomes of an update.
func (j *job) lookAtUpdate(a *action, p *plan) {
	u, err := readUpdate(j.in.Body, a.source)
	if err != nil {
		j.leaveUnreadable(a)
		return
	}
	if u.scripted {
		j.leave(a)
		return
	}
	first := len(j.parts)
	for i, m := range [...]*member{u.doc, u.upsert} {
		if m == nil {
			continue
		}
		t, err := readTree(j.in.Body, m.value)
		if err != nil {
			j.parts = j.parts[:first]
			j.leaveUnreadable(a)
			return
		}
		if !j.add(part{tree: t, action: a, plan: p, update: i == 0}) {
			j.parts = j.parts[:first] // the whole action was settled
			return
		}
	}
	if len(j.parts) == first {
		j.counts[DocumentNoField]++
	}
}

// add adds a part with the texts of its fields, unless it is a part of an
// update without any. It reports false where the norms of the document
// cannot be computed here; what becomes of it is settled then.
func (j *job) add(p part) bool {
	for _, f := range p.plan.fields {
		texts, touched, err := p.read(j.in.Body, f.Source, p.action.update)
		switch {
		case err != nil:
			j.leaveUnreadable(p.action)
			return false
		case touched && f.weights == nil, p.update && touched && isPath(f.Source):
			// The weights are not there yet. Or what the document has beside the text
			// is not known: {"a":{"b":…}} is merged over {"a.b":…}, and the field has
			// the texts of both.
			j.leave(p.action)
			return false
		case !touched && !p.update: // norms that it brings along go
			p.values = append(p.values, value{field: f.Name})
		case touched:
			p.fields = append(p.fields, f)
			if len(texts) == 0 {
				continue
			}
			if p.texts == nil {
				p.texts = map[string][]jsontext.Value{}
			}
			p.texts[f.Source] = texts
		}
	}
	if len(p.fields) > 0 || len(p.values) > 0 {
		j.parts = append(j.parts, p)
	}
	return true
}

// put makes the edits of the body.
func (j *job) put() {
	results := make(map[*action]string, len(j.actions))
	for i := range j.parts {
		p := &j.parts[i]
		edits, err := p.put(j.in.Body, p.values, p.update)
		switch {
		case err != nil || p.failed:
			results[p.action] = DocumentInvalid
			continue
		case results[p.action] == DocumentInvalid:
			continue
		case len(p.fields) > 0:
			results[p.action] = DocumentAdded
		default:
			results[p.action] = cmp.Or(results[p.action], DocumentNoField)
		}
		j.edits = append(j.edits, edits...)
	}
	for i := range j.actions {
		switch result := results[&j.actions[i]]; result {
		case "": // settled before
		case DocumentInvalid:
			j.leaveUnreadable(&j.actions[i])
		default:
			j.counts[result]++
		}
	}
	// An update may have its parts in either order.
	slices.SortStableFunc(j.edits, func(a, b edit) int { return cmp.Compare(a.at.start, b.at.start) })
}
