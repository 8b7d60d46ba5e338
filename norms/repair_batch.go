package norms

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// errNoWeights says that norms have to wait for their weights.
var errNoWeights = errors.New("the weights that are bound to a field are not there")

// A repairing document is one under way.
type repairing struct {
	at     int // in the batch
	doc    Stored
	fields []plannedField
	terms  map[string][]TermFreq
}

// repair returns what becomes of each document, "" for one to try again. The
// error is the last one met.
func (r *Repairer) repair(ctx context.Context, batch []waiting) (results []string, err error) {
	results = make([]string, len(batch))
	var under []repairing
	var asked []Doc
	plans := map[string]*plan{}
	for i, w := range batch {
		p := plans[w.Index]
		if p == nil {
			target, failure := r.targets.Target(ctx, w.Index)
			if failure != nil && !errors.Is(failure, ErrNoTarget) {
				err = failure
				continue
			}
			p = r.plan(w.Index, target)
			plans[w.Index] = p
		}
		if len(p.fields) == 0 {
			results[i] = RepairUnchanged
			continue
		}
		if p.waits() {
			err = errNoWeights
			continue
		}
		doc := Doc{Index: p.target.Index, ID: w.ID, Routing: w.Routing}
		if doc.Routing == "" {
			doc.Routing = p.target.Routing
		}
		under = append(under, repairing{at: i, fields: p.fields})
		asked = append(asked, doc)
	}
	if len(under) == 0 {
		return results, err
	}
	stored, failure := r.documents.Read(ctx, asked)
	if failure != nil {
		return results, failure
	}
	for i := range under {
		under[i].doc = stored[i]
	}
	if failure := r.finish(ctx, under, results); failure != nil {
		err = failure
	}
	return results, err
}

// plan returns what is to be done with documents written by a name, whose
// target is nil where nothing is.
func (r *Repairer) plan(name string, target *Target) *plan {
	p := &plan{target: target}
	if target != nil && !target.PartialSource {
		p.fields = planned(r.weights, name, target)
	}
	return p
}

// waits reports whether the weights of a field are not there.
func (p *plan) waits() bool {
	return slices.ContainsFunc(p.fields, func(f plannedField) bool { return f.weights == nil })
}

// finish computes the norms of documents that were read and writes them.
func (r *Repairer) finish(ctx context.Context, under []repairing, results []string) error {
	byField := map[string][]int{}
	for i := range under {
		if !under[i].doc.Found {
			results[under[i].at] = RepairGone
			continue
		}
		under[i].terms = map[string][]TermFreq{}
		for _, f := range under[i].fields {
			byField[f.Name] = append(byField[f.Name], i)
		}
	}
	var last error
	weigher := weigher{}
	for field, list := range byField {
		docs := make([]Doc, len(list))
		for k, i := range list {
			docs[k] = under[i].doc.Doc
		}
		terms, err := r.documents.FieldTerms(ctx, field, docs)
		if err != nil {
			return err
		}
		for k, i := range list {
			u := &under[i]
			switch {
			case terms[k].Err != nil:
				results[u.at], last = RepairFailed, terms[k].Err
			case !terms[k].Found:
				results[u.at] = RepairGone
			case terms[k].Version != u.doc.Version:
				u.terms = nil // somebody else is writing it: once more, later
			case u.terms != nil:
				u.terms[field] = terms[k].Terms
				weigher.note(u.weights(field), terms[k].Terms)
			}
		}
	}
	if err := weigher.load(ctx); err != nil {
		return err
	}
	if err := r.update(ctx, under, weigher, results); err != nil {
		return err
	}
	return last
}

// weights returns those of a field.
func (u *repairing) weights(field string) FrozenWeights {
	for _, f := range u.fields {
		if f.Name == field {
			return f.weights
		}
	}
	return nil
}

// update writes the norms of those documents whose are not right.
func (r *Repairer) update(ctx context.Context, under []repairing, weigher weigher, results []string) error {
	var updates []Update
	var of []int
	for i := range under {
		u := &under[i]
		if results[u.at] != "" || u.terms == nil {
			continue
		}
		part, err := u.part(weigher)
		switch {
		case err != nil:
			results[u.at] = RepairFailed
		case part == nil:
			results[u.at] = RepairUnchanged
		default:
			updates = append(updates, Update{Doc: u.doc.Doc, Part: part})
			of = append(of, u.at)
		}
	}
	if len(updates) == 0 {
		return nil
	}
	outcomes, err := r.documents.Update(ctx, updates)
	if err != nil {
		return err
	}
	for i, outcome := range outcomes {
		switch outcome.Status {
		case StatusWritten:
			results[of[i]] = RepairWritten
		case StatusUnchanged:
			results[of[i]] = RepairUnchanged
		case StatusGone:
			results[of[i]] = RepairGone
		case StatusRefused:
			results[of[i]], err = RepairFailed, outcome.Err
		case StatusConflict, StatusBusy: // once more, later
		}
	}
	return err
}

// part returns what to merge into the document, nil where its norms are
// right. A document without terms in a field is left without an id, unless
// it has a norm that has to go.
func (u *repairing) part(weigher weigher) ([]byte, error) {
	members := u.doc.Members
	if len(members) == 0 {
		members = jsontext.Value("{}")
	}
	whole := span{0, len(members)}
	t, err := readTree(members, whole)
	if err != nil {
		return nil, err
	}
	stored := func(object, field string) (string, error) {
		texts, _, err := t.read(members, object+"."+Name(field), true)
		if err != nil || len(texts) != 1 {
			return "", err
		}
		text, _ := scalar(texts[0])
		return text, nil
	}
	var values []value
	for _, f := range u.fields {
		norm, err := stored(Object, f.Name)
		if err != nil {
			return nil, err
		}
		id, err := stored(WeightsObject, f.Name)
		if err != nil {
			return nil, err
		}
		v := value{field: f.Name, norm: weigher.norm(f.weights, u.terms[f.Name]), id: f.weights.ID()}
		switch {
		case v.norm > 0 && norm == FormatNorm(v.norm) && id == v.id:
		case v.norm == 0 && norm == "" && (id == "" || id == v.id):
		default:
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	empty := tree{at: span{0, 2}}
	edits, err := empty.put([]byte("{}"), values, true)
	if err != nil {
		return nil, err
	}
	out := splicer{body: []byte("{}")}
	out.add(edits)
	return out.end(), nil
}
