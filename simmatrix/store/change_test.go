package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// noted adds a line to the overrides, and a term of that name to the matrix.
func noted(line string) Change {
	return func(overrides string, m *simmatrix.Matrix) (string, *simmatrix.Matrix, error) {
		rows := []simmatrix.TermRow{{Term: line, DocFreq: 1}}
		for term, row := range m.Rows() {
			rows = append(rows, simmatrix.TermRow{Term: term, DocFreq: row.DocFreq()})
		}
		changed, err := simmatrix.New(simmatrix.Meta{Source: "noted"}, rows)
		return overrides + line + "\n", changed, err
	}
}

func TestChangesAtTheSameTimeLoseNothing(t *testing.T) {
	t.Parallel()
	_, a, c := setup(t)
	publish(t, a, "one", 3)
	const people = 6
	var all sync.WaitGroup
	for k := range people {
		all.Go(func() {
			_, err := a.Change(t.Context(), "main", fmt.Sprint("person ", k), noted(fmt.Sprint("pair", k)), nil)
			check.Error(t, nil, err)
		})
	}
	all.Go(func() { publish(t, a, "one", 3) }) // a rebuilt matrix meanwhile, without the pairs
	all.Wait()
	_, err := a.Change(t.Context(), "main", "last", noted("last"), nil)
	check.OK(t, err)
	text := check.Got(a.Overrides(t.Context(), "main"))(t)
	check.Equal(t, people+1, strings.Count(text, "\n"), text)
	m, active, err := a.Pull(t.Context(), "main", "", nil)
	check.OK(t, err)
	check.That(t, m.Has("last") && active.By == "last" && active.Changed, "%+v", active)
	versions := check.Got(a.Versions(t.Context(), "main"))(t)
	check.That(t, len(versions) <= 4, "%d versions are kept", len(versions))
	check.Equal(t, text, c.Get(t.Context(), overridesKey("main")).Val())
}

func TestAChangeThatFailsOrChangesNothingLeavesAllAsItWas(t *testing.T) {
	t.Parallel()
	_, a, _ := setup(t)
	_, err := a.Change(t.Context(), "main", "me", noted("x"), nil)
	check.Error(t, ErrNoVersion, err)
	id := publish(t, a, "one", 3)
	refused := errors.New("refused")
	_, err = a.Change(t.Context(), "main", "me", func(string, *simmatrix.Matrix) (string, *simmatrix.Matrix, error) { return "", nil, refused }, nil)
	check.Error(t, refused, err)
	same := func(text string, m *simmatrix.Matrix) (string, *simmatrix.Matrix, error) { return text, m, nil }
	for _, do := range []Change{same, func(_ string, m *simmatrix.Matrix) (string, *simmatrix.Matrix, error) { return "# noted", m, nil }} {
		v, err := a.Change(t.Context(), "main", "me", do, nil)
		check.OK(t, err)
		check.Equal(t, id, v.ID)
	}
	check.Equal(t, "# noted", check.Got(a.Overrides(t.Context(), "main"))(t))
	_, err = a.Change(t.Context(), "main", "a\nb", same, nil)
	check.Error(t, ErrName, err)
}

func TestARollbackGoesBehindAChange(t *testing.T) {
	t.Parallel()
	_, a, _ := setup(t)
	id := publish(t, a, "one", 3)
	for _, pair := range []string{"x", "y"} {
		_, err := a.Change(t.Context(), "main", "me", noted(pair), nil)
		check.OK(t, err)
	}
	check.Equal(t, id, check.Got(a.Rollback(t.Context(), "main"))(t))
}
