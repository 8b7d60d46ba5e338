package norms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/simmatrix"
)

// A Write is a request that writes documents. Fields that say nothing are
// "".
type Write struct {
	// Bulk says that Body is the lines of a bulk request, Update that it is an
	// update; else it is a document.
	Bulk, Update bool
	// Index is the name of an index or an alias, ID and Routing are the
	// document's; with Bulk they are for those lines that do not say their own.
	Index, ID, Routing string
	// Pipeline and VersionType are the parameters of the request.
	Pipeline, VersionType string
	// Body is the body, nil where it was not read. It must not be modified while
	// the write is under way.
	Body []byte
}

// What becomes of a document, keys of [Kept.Documents].
const (
	// DocumentAdded says that it got its norms.
	DocumentAdded = "added"
	// DocumentBehind says that it gets its norms behind the answer.
	DocumentBehind = "behind"
	// DocumentNoNorms says that no norms are kept in its index.
	DocumentNoNorms = "no_norms"
	// DocumentNoField says that it does not have a field with norms.
	DocumentNoField = "no_field"
	// DocumentInvalid says that the cluster will not take it, or that it has
	// something else than norms under their names.
	DocumentInvalid = "invalid"
	// DocumentLeft says that its norms could not be computed on the way, and that
	// it cannot be written once more: its id is not known, its versions are the
	// client's, or nothing repairs. The next backfill brings them.
	DocumentLeft = "left"
)

// Kept is what becomes of a [Write].
type Kept struct {
	// Body is the new body, nil where the write goes on as it came.
	Body []byte
	// Documents are the numbers of documents by what becomes of them.
	Documents map[string]int
	// Done, unless nil, has to be called once with the status of the cluster's
	// answer.
	Done func(status int)
}

// A TextField is a text field of an index that norms can be stored for.
type TextField struct {
	// Name is its full name.
	Name string
	// Source is the path of its text in a document: for a multi-field that of
	// the field it belongs to.
	Source string
}

// A Target is the index that writes by a name go to.
type Target struct {
	// Index is the concrete index, Routing what the name adds to writes without a
	// routing.
	Index, Routing string
	// Pipelines says that the index has an ingest pipeline of its own.
	Pipelines bool
	// PartialSource says that an update would lose something of a document.
	PartialSource bool
	// Fields are the text fields whose norm and id are mapped, by name. Those in
	// nested objects and those filled by copy_to are not among them.
	Fields []TextField
}

// An Unstored is the part of a document that the terms of fields are made
// of.
type Unstored struct {
	// Index is the concrete index, Routing the document's.
	Index, Routing string
	// Texts are JSON strings, numbers and booleans by [TextField.Source].
	Texts map[string][]jsontext.Value
	// Fields are the fields whose terms are asked for.
	Fields []string
}

// UnstoredTerms are the terms of an [Unstored].
type UnstoredTerms struct {
	// Fields are the terms by field, each once.
	Fields map[string][]TermFreq
	// Err is why there are none.
	Err error
}

// Errors of a [Targets] that say how the cluster is.
var (
	// ErrNoTarget says that a name does not stand for one index to write to.
	ErrNoTarget = errors.New("not the name of one index to write to")
	// ErrNoIndex says that nothing has the name. A write by it makes an index.
	ErrNoIndex = errors.New("no such index")
)

// Targets know what index documents are written to.
type Targets interface {
	// Target returns the index that writes by a name go to. Its error wraps
	// [ErrNoTarget] or [ErrNoIndex] where that is how it is.
	Target(ctx context.Context, name string) (*Target, error)
	// Forget drops what is remembered of a name.
	Forget(name string)
}

// An Analyzer makes terms of documents that are not stored.
type Analyzer interface {
	// Unstored returns the terms that the index analyzers make of documents, in
	// their order.
	Unstored(ctx context.Context, docs []Unstored) ([]UnstoredTerms, error)
}

// FrozenWeights are term weights of a moment. The expand package asks for
// the same.
type FrozenWeights interface {
	// ID names them by their content, see [ID].
	ID() string
	// Docs is the number of documents that the frequencies refer to.
	Docs() int64
	// Rows sets rows[k] to a row that has the document frequency of terms[k].
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
}

// WeightsFor returns the weights that are bound to a field of an index, nil
// for none.
type WeightsFor func(index, field string) FrozenWeights

// A Keeper puts norms into documents on their way to the cluster. Its
// methods may be called at the same time.
type Keeper struct {
	targets  Targets
	analyzer Analyzer
	weights  WeightsFor
	repairs  *Repairer
}

// NewKeeper returns a keeper. What it cannot do it leaves to repairs, unless
// that is nil.
func NewKeeper(targets Targets, analyzer Analyzer, weights WeightsFor, repairs *Repairer) *Keeper {
	return &Keeper{targets: targets, analyzer: analyzer, weights: weights, repairs: repairs}
}

// Write computes the norms of the documents of a write and puts them into
// its body. All other bytes stay as they are, except for norms and ids that
// the documents brought along. What it cannot understand it leaves to the
// cluster to refuse. With an error the write has to go on as it came; what
// is returned beside it, unless nil, has no body then.
func (k *Keeper) Write(ctx context.Context, in *Write) (*Kept, error) {
	j := &job{keeper: k, in: in, plans: map[string]*plan{}, counts: map[string]int{}}
	err := j.run(ctx)
	if err != nil {
		j.giveUp()
	}
	out := &Kept{Documents: j.counts}
	if err == nil && len(j.edits) > 0 {
		out.Body = splice(in.Body, j.edits)
	}
	if len(j.behind) > 0 || out.Body != nil {
		out.Done = j.done(out.Body != nil)
	}
	return out, err
}

// A plan is what is to be done with the documents of a name.
type plan struct {
	target *Target
	fields []plannedField
	// unknown says that the cluster knows of no index yet.
	unknown bool
}

// A plannedField is a field whose norms are kept.
type plannedField struct {
	TextField
	weights FrozenWeights
}

// planned returns the fields of a target whose norms are kept, as weights
// are bound to the name that is written by, or to the index.
func planned(weights WeightsFor, name string, target *Target) []plannedField {
	var fields []plannedField
	for _, f := range target.Fields {
		w := weights(name, f.Name)
		if w == nil {
			w = weights(target.Index, f.Name)
		}
		if w != nil && w.Docs() > 0 {
			fields = append(fields, plannedField{f, w})
		}
	}
	return fields
}

// A job is one call of [Keeper.Write].
type job struct {
	keeper *Keeper
	in     *Write
	plans  map[string]*plan
	// actions are those of the request, parts what norms are computed for.
	actions []action
	parts   []part
	edits   []edit
	behind  []Repair
	counts  map[string]int
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

// run does all but to write the body.
func (j *job) run(ctx context.Context) error {
	if j.in.Body == nil && j.in.Bulk {
		return nil // nobody knows what it writes
	}
	var err error
	if j.actions, err = j.in.readActions(); err != nil {
		j.counts[DocumentInvalid]++
		return nil //nolint:nilerr // The cluster refuses it.
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
		return j.lookAtUpdate(a, p)
	}
	t, err := readTree(j.in.Body, a.source)
	if err != nil {
		j.counts[DocumentInvalid]++
		return nil //nolint:nilerr // The cluster refuses it, or takes what is no JSON.
	}
	j.add(part{tree: t, action: a, plan: p})
	return nil
}

// lookAtUpdate decides what becomes of an update.
func (j *job) lookAtUpdate(a *action, p *plan) error {
	u, err := readUpdate(j.in.Body, a.source)
	if err != nil {
		j.counts[DocumentInvalid]++
		return nil //nolint:nilerr // The cluster refuses it.
	}
	if u.scripted {
		j.leave(a)
		return nil
	}
	first := len(j.parts)
	for i, m := range [...]*member{u.doc, u.upsert} {
		if m == nil {
			continue
		}
		t, err := readTree(j.in.Body, m.value)
		if err != nil {
			j.parts = j.parts[:first]
			j.counts[DocumentInvalid]++
			return nil //nolint:nilerr // The cluster refuses it.
		}
		if !j.add(part{tree: t, action: a, plan: p, update: i == 0}) {
			j.parts = j.parts[:first] // the whole action was settled
			return nil
		}
	}
	if len(j.parts) == first {
		j.counts[DocumentNoField]++
	}
	return nil
}

// add adds a part with the texts of its fields, unless it is a part of an
// update without any. It reports false where the norms of the document
// cannot be computed here; what becomes of it is settled then.
func (j *job) add(p part) bool {
	p.texts = map[string][]jsontext.Value{}
	for _, f := range p.plan.fields {
		texts, touched, err := p.read(j.in.Body, f.Source, p.action.update)
		switch {
		case err != nil:
			j.counts[DocumentInvalid]++
			return false
		case p.update && touched && isPath(f.Source):
			// What the document has beside it is not known: {"a":{"b":…}} is
			// merged over {"a.b":…}, and the field has the texts of both.
			j.leave(p.action)
			return false
		case !touched && !p.update: // norms that it brings along go
			p.values = append(p.values, value{field: f.Name})
		case touched:
			p.fields = append(p.fields, f)
			if len(texts) > 0 {
				p.texts[f.Source] = texts
			}
		}
	}
	if len(p.fields) > 0 || len(p.values) > 0 {
		j.parts = append(j.parts, p)
	}
	return true
}

// leave leaves a document to a repair.
func (j *job) leave(a *action) {
	p := j.plans[a.index]
	bare := p != nil && p.target != nil && p.target.PartialSource
	if j.keeper.repairs == nil || a.id == "" || a.external() || bare {
		j.counts[DocumentLeft]++
		return
	}
	j.counts[DocumentBehind]++
	j.behind = append(j.behind, Repair{Index: a.index, ID: a.id, Routing: a.routing})
}

// giveUp leaves all documents to a repair of which it is not known that they
// need none.
func (j *job) giveUp() {
	clear(j.counts)
	j.behind, j.edits = nil, nil
	for i := range j.actions {
		a := &j.actions[i]
		if p := j.plans[a.index]; p != nil && !p.unknown && len(p.fields) == 0 {
			j.counts[DocumentNoNorms]++
			continue
		}
		j.leave(a)
	}
}

// done returns what is to be called when the cluster has answered. The
// changed write of an index that maps its fields in another way by now may
// be refused.
func (j *job) done(changed bool) func(status int) {
	repairs, targets, behind := j.keeper.repairs, j.keeper.targets, j.behind
	var names []string
	if changed {
		for name := range j.plans {
			names = append(names, name)
		}
	}
	return func(status int) {
		if status >= 400 {
			for _, name := range names {
				targets.Forget(name)
			}
			return
		}
		for i := range behind {
			repairs.Add(behind[i])
		}
	}
}

// put makes the edits of the body.
func (j *job) put() {
	results := make(map[*action]string, len(j.actions))
	for i := range j.parts {
		p := &j.parts[i]
		edits, err := p.put(j.in.Body, p.values, p.update)
		switch {
		case err != nil || p.failed:
			results[p.action] = DocumentInvalid // the cluster says what is wrong with it
		case results[p.action] == DocumentInvalid:
		case len(p.fields) > 0:
			results[p.action] = DocumentAdded
			j.edits = append(j.edits, edits...)
		default:
			results[p.action] = cmp.Or(results[p.action], DocumentNoField)
			j.edits = append(j.edits, edits...)
		}
	}
	for _, result := range results {
		j.counts[result]++
	}
	// An update may have its parts in either order.
	slices.SortStableFunc(j.edits, func(a, b edit) int { return cmp.Compare(a.at.start, b.at.start) })
}
