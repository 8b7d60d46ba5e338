package simmatrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Tally is what became of the expressions of one kind when a matrix was made.
type Tally struct {
	Kind          string // in the plural, such as acronyms
	Kept, LeftOut int
	Why           string   // some are left out; "" to say nothing
	Some, Lost    []string // the first three of each, as people read them
}

// Count counts an expression.
func (t *Tally) Count(kept bool, example string) {
	const most = 3
	n, examples := &t.LeftOut, &t.Lost
	if kept {
		n, examples = &t.Kept, &t.Some
	}
	*n++
	if len(*examples) < most {
		*examples = append(*examples, example)
	}
}

// String describes the tally in a line.
func (t *Tally) String() string {
	part := func(n int, what string, examples []string) string {
		s := fmt.Sprintf("%d %s", n, what)
		if len(examples) > 0 {
			s += ", such as " + strings.Join(examples, ", ")
		}
		return s
	}
	out := "left out"
	if t.LeftOut > 0 && t.Why != "" {
		out += " (" + t.Why + ")"
	}
	return t.Kind + ": " + part(t.Kept, "kept", t.Some) + "; " + part(t.LeftOut, out, t.Lost)
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
