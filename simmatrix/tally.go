package simmatrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Tally is what became of the expressions of one kind when a matrix was made.
type Tally struct {
	Kind    string // in the plural, such as acronyms
	Kept    Counted
	LeftOut []Counted // by reason
}

// Counted is a number of expressions.
type Counted struct {
	N    int
	Why  string   // they are left out; "" to say nothing
	Some []string // the first three, as people read them
}

func (c *Counted) count(example string) {
	const most = 3
	c.N++
	if len(c.Some) < most {
		c.Some = append(c.Some, example)
	}
}

// Keep counts an expression that is kept.
func (t *Tally) Keep(example string) { t.Kept.count(example) }

// LeaveOut counts an expression that is left out for a reason, "" to say
// nothing of that.
func (t *Tally) LeaveOut(why, example string) {
	at := slices.IndexFunc(t.LeftOut, func(c Counted) bool { return c.Why == why })
	if at < 0 {
		at = len(t.LeftOut)
		t.LeftOut = append(t.LeftOut, Counted{Why: why})
	}
	t.LeftOut[at].count(example)
}

// Empty reports whether nothing was counted.
func (t *Tally) Empty() bool { return t.Kept.N == 0 && len(t.LeftOut) == 0 }

// String describes the tally in a line.
func (t *Tally) String() string {
	part := func(c Counted, what string) string {
		s := fmt.Sprintf("%d %s", c.N, what)
		if c.Why != "" {
			s += " (" + c.Why + ")"
		}
		if len(c.Some) > 0 {
			s += ", such as " + strings.Join(c.Some, ", ")
		}
		return s
	}
	parts := []string{part(t.Kept, "kept")}
	for _, c := range t.LeftOut {
		parts = append(parts, part(c, "left out"))
	}
	if len(t.LeftOut) == 0 {
		parts = append(parts, part(Counted{}, "left out"))
	}
	return t.Kind + ": " + strings.Join(parts, "; ")
}

// tallyParam begins the names of parameters with a tally.
const tallyParam = "tally_"

// AddTo adds the tally to the parameters of a matrix.
func (t *Tally) AddTo(params map[string]string) {
	params[tallyParam+strings.ReplaceAll(t.Kind, " ", "_")] = t.String()
}

// Tallies returns the tallies that the parameters of a matrix have, as lines;
// of an ensemble those of all inputs.
func Tallies(params map[string]string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if strings.HasPrefix(name[strings.LastIndexByte(name, '.')+1:], tallyParam) {
			lines = append(lines, params[name])
		}
	}
	return lines
}
