package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

// damageAt deletes the row of a term and adds a field, so that the number of
// fields stays what it was, and returns the repair.
func damageAt(t *testing.T, c *redis.Client, key, term string) (repair func()) {
	t.Helper()
	row := c.HGet(t.Context(), key, term).Val()
	must(t, c.HDel(t.Context(), key, term).Err())
	must(t, c.HSet(t.Context(), key, "foreign", "x").Err())
	return func() {
		c.HDel(t.Context(), key, "foreign")
		c.HSet(t.Context(), key, term, row)
	}
}

// TestALostRowIsNoticedWhereTheNumberOfRowsIsRight: no search is answered as if
// the matrix lacked the term, whoever asks first.
func TestALostRowIsNoticedWhereTheNumberOfRowsIsRight(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	one := publish(t, a, newMatrix(t, "one", 5000)) // several chunks
	two := publish(t, a, newMatrix(t, "two", 5000))
	var log logbook
	running := open(t, Options{Redis: r.at(), OnState: log.add})
	repair := damageAt(t, c, rowsKey("main", two), term(4321))
	started := open(t, Options{Redis: r.at()})
	for name, s := range map[string]*Store{"running": running, "started": started} {
		if rows, err := rowsOf(t, s, term(1), "unknown"); err != nil || served(s) != two {
			t.Errorf("%s: other terms: %v, %v", name, rows, err)
		}
		for _, terms := range [][]string{{term(4321)}, {term(4321)}, {term(1)}} {
			if _, err := rowsOf(t, s, terms...); !errors.Is(err, ErrMissingRows) && served(s) != one || err != nil && strings.Contains(err.Error(), terms[0]) {
				t.Errorf("%s: %q of %s: %v", name, terms, served(s), err)
			}
		}
		waitFor(t, 10*time.Second, "the version before", func() bool { return served(s) == one })
		if rows, err := rowsOf(t, s, term(4321)); err != nil || markOf(rows[0]) != "one" {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
		if n := s.Stats().BadRows; n == 0 {
			t.Errorf("%s: no bad answer is counted", name)
		}
	}
	time.Sleep(3 * followEvery)
	if served(running) != one || served(started) != one {
		t.Error("taken up again before the repair")
	}
	repair()
	for _, s := range []*Store{running, started} {
		waitFor(t, 10*time.Second, "the repaired version", func() bool { return served(s) == two && s.State()[0].Problem == "" })
		if rows, err := rowsOf(t, s, term(4321)); err != nil || markOf(rows[0]) != "two" {
			t.Errorf("after the repair: %v, %v", rows, err)
		}
	}
	if lines := log.lines(one, two); fmt.Sprint(lines) != fmt.Sprint([]string{"B", "A " + ErrMissingRows.Error(), "B"}) {
		t.Errorf("states %q", lines)
	}
}

func TestUnknownTermsAreNoDamage(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	id := publish(t, r.admin(t), newMatrix(t, "one", 20_000))
	s := open(t, Options{Redis: r.at()})
	const together = 500
	terms, rows := make([]string, together), make([]simmatrix.Row, together)
	for i := 0; i < 100_000; i += together {
		for k := range terms {
			terms[k] = fmt.Sprint("unknown", i+k)
		}
		if err := s.Pin().For("i", "f").Rows(t.Context(), terms, rows); err != nil {
			t.Fatal(err)
		}
	}
	if state := s.State()[0]; served(s) != id || state.Problem != "" || s.Stats().BadRows != 0 {
		t.Errorf("%+v, %+v", state, s.Stats())
	}
}

// TestAVersionWhoseSetOfTermsIsDamagedIsNotTakenUp, with the right number of
// fields.
func TestAVersionWhoseSetOfTermsIsDamagedIsNotTakenUp(t *testing.T) {
	t.Parallel()
	for name, damaged := range map[string]func(string) string{
		"cut": func(s string) string { return s[:len(s)-9] }, "flipped": func(s string) string { return flip(s, 77) },
		"empty": func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := startRedis(t)
			a, c := r.admin(t), r.client(t)
			one := publish(t, a, newMatrix(t, "one", 10))
			two := publish(t, a, newMatrix(t, "two", 5000))
			key, field := rowsKey("main", two), chunkField+"1"
			chunk := c.HGet(t.Context(), key, field).Val()
			must(t, c.HSet(t.Context(), key, field, damaged(chunk)).Err())
			s := open(t, Options{Redis: r.at()})
			if state := s.State()[0]; served(s) != one || !strings.HasPrefix(state.Problem, ErrBadRow.Error()) {
				t.Errorf("version %q, %+v", served(s), state)
			}
			must(t, c.HSet(t.Context(), key, field, chunk).Err())
			waitFor(t, 10*time.Second, "the repaired version", func() bool { return served(s) == two })
		})
	}
}

func TestTermSetHasItsTermsAndNoOthers(t *testing.T) {
	for _, n := range []int{1, chunkTerms, 3*chunkTerms + 1} {
		m := newMatrix(t, "one", n-1)
		v := &Version{ID: "id", Meta: m.Meta()}
		set := newTermSet(m, v)
		if want := (n + chunkTerms - 1) / chunkTerms; len(set) != want {
			t.Errorf("%d terms: %d chunks, want %d", n, len(set), want)
		}
		for i := range n - 1 {
			if !set.has("id", term(i)) || set.has("id", term(i)+"x") || set.has("di", term(i)) {
				t.Fatalf("%d terms: wrong about %s", n, term(i))
			}
		}
	}
	if (&Version{Meta: simmatrix.Meta{Terms: maxSetTerms + 1}}).chunks() != 0 {
		t.Error("too many terms for a set have one")
	}
}
