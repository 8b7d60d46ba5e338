package store

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// A version with expressions has a format that earlier programs do not serve,
// and one without is as before. Readers know without a call which it has; a
// rollback leads back to a version without.
func TestVersionsWithExpressionsHaveAFormatOfTheirOwn(t *testing.T) {
	r, a, c := setup(t)
	attack := check.Got(simmatrix.Expression([]string{"heart", "attack"}, []int{0, 1}))(t)
	m := check.Got(simmatrix.New(simmatrix.Meta{Source: "test"}, []simmatrix.TermRow{
		{Term: attack, Form: simmatrix.WithNote("heart attack", "s.txt:2"), Neighbors: []simmatrix.Neighbor{{Term: "infarct", Similarity: 1}}}, {Term: "infarct"},
	}))(t)
	plain := publish(t, a, "one", 10)
	s := open(t, Options{Redis: r.at()})
	check.That(t, s.Pin().For("i", "f").Expressions() == nil, "a matrix without expressions has some")
	id := publishMatrix(t, a, m)
	awaitServed(t, s, id)
	for version, want := range map[string]string{plain: `"format":4,`, id: `"format":5,`} {
		header := check.Got(c.Get(t.Context(), metaKey("main", version)).Result())(t)
		check.That(t, strings.Contains(header, want), "%s: no %s in %s", version, want, header)
	}
	rows := s.Pin().For("i", "f")
	has := rows.Expressions()
	check.Must(t, has != nil, "no expressions")
	check.That(t, has(attack) && !has("\x1fother\x1fattack") && !has("heart attack"), "of another expression, or not of its own")
	found := check.Got(rowsOfVersion(t, rows, attack))(t)
	check.Equal(t, "infarct", markOf(found[0]))
	words, notes := s.Forms(t.Context(), rows.Version(), []string{attack})
	check.Equal(t, map[string]string{attack: "heart attack"}, words)
	check.Equal(t, map[string]string{attack: "s.txt:2"}, notes)
	check.Equal(t, map[string]string{attack: simmatrix.WithNote("heart attack", "s.txt:2")}, check.Got(a.AllForms(t.Context(), "main", id))(t))
	check.OK(t, check.ErrOf(a.Rollback(t.Context(), "main")))
	awaitServed(t, s, plain)
	// An akin that reads another format than the header says serves nothing of it.
	c.Set(t.Context(), metaKey("main", id), sealHeader(`{"format":4,"source":"","docs":0,"terms":2,"expressions":1,"non_zeros":1,"checksum":"x"}`), 0)
	c.Set(t.Context(), activeKey("main"), id, 0)
	awaitProblem(t, s, ErrBadVersion)
	check.Equal(t, plain, served(s))
}
