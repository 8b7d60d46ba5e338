package expand

import (
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// A target is a field of a clause that terms may be added for, with what that
// takes.
type target struct {
	clause *form.Clause
	*form.Field
	// terms is memory for the selection.
	terms *terms.Selection
	rows  Rows
	// named says that a matrix is bound to the field by its full name.
	named bool
	// weights are set in the modes that need them, nil where none are bound.
	weights Weights
	// unknown are words that no document has and that have no row.
	unknown []string
	// docFreqs are the live document frequencies of the selection's terms.
	docFreqs []int64
	// exact is what the mode hard needs, and vector what the mode vectors needs; nil
	// if the field cannot have it.
	exact  *exactField
	vector *vectorField
}

// exactField is what the mode hard asks of a target.
type exactField struct {
	linear  esclient.Linear
	reason  reason.Reason // why there is no linear field to score by
	failure error         // why that is not known
}

// A vectorField is what [ModeVectors] asks of a target.
type vectorField struct {
	model  *vectors.Model
	mixed  bool          // some documents have vectors by another
	reason reason.Reason // why there is no query in its vectors
	query  form.Vector
}

// leave notes why the target is left out.
func (t *target) leave(why reason.Reason) { t.clause.LeaveField(t.Field, why) }

// follows reports whether it uses the selection of the first field.
func (t *target) follows() bool { return t.clause.TermCentric && t.Field != &t.clause.Fields[0] }

func stillOpen(targets []*target) []*target {
	return slices.DeleteFunc(targets, func(t *target) bool { return t.Reason != "" || t.clause.Reason != "" })
}

// lead returns the field whose selection it uses.
func (t *target) lead() *form.Field {
	if t.clause.TermCentric {
		return &t.clause.Fields[0]
	}
	return t.Field
}

// leading returns the targets that have a selection of their own.
func leading(targets []*target) []*target {
	if !slices.ContainsFunc(targets, (*target).follows) {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), (*target).follows)
}

// sideBySide bounds the questions that one search asks at a time. OpenSearch
// queues 16 analyses on one thread and refuses the next.
const sideBySide = 8

// each calls f for every target, several at the same time.
func each(targets []*target, f func(t *target) error) error {
	return recovery.InParallel(len(targets), sideBySide, func(i int) error { return f(targets[i]) })
}

// memory is what one expansion leaves to the next.
type memory struct {
	parser     dsl.Parser
	clauses    []form.Clause
	targets    []target
	plan       []form.ClausePlan
	selections []*terms.Selection
	used       int // of the selections
	weighing
}

// weighing is memory for the terms of one question.
type weighing struct {
	terms    []string
	rows     []simmatrix.Row
	docFreqs []int64
}

func (m *memory) selection() *terms.Selection {
	if m.used == len(m.selections) {
		m.selections = append(m.selections, new(terms.Selection))
	}
	m.used++
	return m.selections[m.used-1]
}

func (m *memory) release() {
	const keep = 16
	if len(m.selections) > keep {
		clear(m.selections[keep:])
		m.selections = m.selections[:keep]
	}
	for _, sel := range m.selections {
		sel.Context = nil
	}
	m.used = 0
	clear(m.clauses)
	clear(m.targets)
	clear(m.plan)
	clear(m.terms[:cap(m.terms)])
	clear(m.rows[:cap(m.rows)])
	m.parser.Release()
}

// sized returns s with length n, all zero.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
