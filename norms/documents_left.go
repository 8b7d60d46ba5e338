package norms

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Statuses of answers.
const (
	statusBadRequest = 400
	statusNotFound   = 404
)

// leave leaves a document to a repair.
func (j *job) leave(a *action) {
	if !j.leaveBehind(a) {
		j.counts[DocumentLeft]++
	}
}

// leaveUnreadable leaves a document that cannot be understood here to a
// repair. The engines take comments and more.
func (j *job) leaveUnreadable(a *action) {
	if !j.leaveBehind(a) {
		j.doubt()
	}
}

// doubt counts a document that the cluster is likely to refuse.
func (j *job) doubt() {
	j.counts[DocumentInvalid]++
	j.doubtful++
}

// leaveBehind leaves a document to a repair, and reports whether one can
// help.
func (j *job) leaveBehind(a *action) bool {
	p := j.plans[a.index]
	bare := p != nil && p.target != nil && p.target.PartialSource
	if j.keeper.repairs == nil || a.id == "" || a.external() || bare {
		return false
	}
	j.counts[DocumentBehind]++
	j.behind = append(j.behind, Repair{Index: a.index, ID: a.id, Routing: a.routing})
	return true
}

// leaveRest leaves all documents from a place of the request on to repairs of
// which it is not known that they need none. Those behind the first maxLeft
// are counted by their lines.
func (j *job) leaveRest(r actionReader) {
	actions := j.actions
	for n := 0; !r.ended && n < maxLeft; n += len(actions) {
		var err error
		if actions, err = r.next(actions[:0], func() error { return nil }); err != nil {
			j.doubt()
		}
		for i := range actions {
			a := &actions[i]
			if p := j.plans[a.index]; p != nil && !p.unknown && len(p.fields) == 0 {
				j.counts[DocumentNoNorms]++
				continue
			}
			j.leave(a)
		}
	}
	if !r.ended {
		j.counts[DocumentLeft] += (bytes.Count(j.in.Body[r.at:], []byte{'\n'}) + 1) / 2
	}
}

// done does what is left to do when the cluster has answered, and returns what
// became of documents beside what was counted.
func (j *job) done(changed bool, a Answer) map[string]int {
	if a.Status >= statusBadRequest { // nothing was written
		if changed && !a.Original && (a.Status == statusBadRequest || a.Status == statusNotFound) {
			j.forget()
		}
		return nil
	}
	j.counts = map[string]int{}
	moved, refused, hidden := a.Original, 0, false
	if changed && j.in.Bulk && !moved {
		moved, refused, hidden = j.readAnswer(a.Beginning)
	}
	if changed && (moved || refused > 0 || hidden) {
		j.forget()
	}
	if changed && (moved || refused > 0) {
		j.behind, j.doubtful = nil, 0
		j.leaveRest(actionReader{write: j.in})
		delete(j.counts, DocumentInvalid)
	}
	if j.doubtful > 0 { // not refused
		j.counts[DocumentLeft] += j.doubtful
	}
	if refused > 0 {
		j.counts[DocumentRefused] = refused
	}
	for i := range j.behind {
		j.keeper.repairs.Add(j.behind[i])
	}
	return j.counts
}

// forget has the targets looked up anew: they map their fields in another way
// by now, or their names stand for other indices.
func (j *job) forget() {
	for name := range j.plans {
		j.keeper.targets.Forget(name)
	}
}

// readAnswer reads what the answer to a bulk request begins with. It reports
// whether a document went to another index than its norms were computed for,
// how many documents were refused for their norms, and whether some were
// refused of which it does not show why.
func (j *job) readAnswer(beginning []byte) (moved bool, refused int, hidden bool) {
	indices := map[string]bool{}
	for _, p := range j.plans {
		if p.target == nil {
			indices = nil // there is no telling them apart
			break
		}
		indices[p.target.Index] = true
	}
	d := jsontext.NewDecoder(bytes.NewReader(beginning), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	found, failures := seekItems(d)
	if !found {
		return false, 0, failures
	}
	for d.PeekKind() == jsontext.KindBeginObject {
		item, err := d.ReadValue()
		if err != nil {
			break // the beginning ends here
		}
		_ = eachMember(item, func(operation string, about jsontext.Value) error {
			if operation == "delete" || about.Kind() != jsontext.KindBeginObject {
				return nil
			}
			return eachMember(about, func(name string, v jsontext.Value) error {
				switch {
				case name == "_index" && indices != nil:
					index, ok := scalar(v)
					moved = moved || ok && !indices[index]
				case name == "error" && bytes.Contains(v, []byte(Object)):
					refused++
				}
				return nil
			})
		})
	}
	return moved, refused, failures && d.PeekKind() != jsontext.KindEndArray
}

// seekItems goes to the first element of the list "items" of the object that
// d is before. It reports whether there is one, and whether the object says
// before it that there are failures.
func seekItems(d *jsontext.Decoder) (found, failures bool) {
	if d.PeekKind() != jsontext.KindBeginObject {
		return false, false
	}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() == jsontext.KindString {
		var token jsontext.Token
		if token, err = d.ReadToken(); err != nil {
			return false, failures
		}
		name := token.String() // the token does not outlive the next
		if name == "items" && d.PeekKind() == jsontext.KindBeginArray {
			_, err = d.ReadToken()
			return err == nil, failures
		}
		failures = failures || name == "errors" && d.PeekKind() == jsontext.KindTrue
		err = d.SkipValue()
	}
	return false, failures
}
