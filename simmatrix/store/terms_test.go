package store

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// TestALostRowIsNoticedWhereTheNumberOfRowsIsRight: no search is answered as if
// the matrix lacked the term, whoever asks first.
func TestALostRowIsNoticedWhereTheNumberOfRowsIsRight(t *testing.T) {
	t.Parallel()
	r, a, c := setup(t)
	one, two := publish(t, a, "one", 5000), publish(t, a, "two", 5000) // several chunks
	var log logbook
	running := open(t, Options{Redis: r.at(), OnState: log.add})
	key := rowsKey("main", two)
	repair := wholeHash(t, c, key)
	check.OK(t, c.HDel(t.Context(), key, term(4321)).Err())
	check.OK(t, c.HSet(t.Context(), key, "foreign", "x").Err())
	started := open(t, Options{Redis: r.at()})
	for name, s := range map[string]*Store{"running": running, "started": started} {
		rows, err := rowsOf(t, s, term(1), "unknown")
		check.That(t, err == nil && served(s) == two, "%s: other terms: %v, %v", name, rows, err)
		for _, terms := range [][]string{{term(4321)}, {term(4321)}, {term(1)}} {
			if _, err := rowsOf(t, s, terms...); !errors.Is(err, ErrMissingRows) && served(s) != one || err != nil && strings.Contains(err.Error(), terms[0]) {
				t.Errorf("%s: %q of %s: %v", name, terms, served(s), err)
			}
		}
		awaitServed(t, s, one)
		wantMark(t, s, "one", term(4321))
		n := s.Stats().BadRows
		check.That(t, n != 0, "%s: no bad answer is counted", name)
	}
	time.Sleep(3 * followEvery) // Some polls must not take it up, and none has an event.
	check.That(t, served(running) == one && served(started) == one, "taken up again before the repair")
	repair()
	for _, s := range []*Store{running, started} {
		awaitServed(t, s, two)
		awaitProblem(t, s, nil)
		wantMark(t, s, "two", term(4321))
	}
	check.Equal(t, []string{"B", "A " + ErrMissingRows.Error(), "B"}, log.lines(one, two))
}

func TestTermSetHasItsTermsAndNoOthers(t *testing.T) {
	for _, n := range []int{1, chunkTerms, 3*chunkTerms + 1} {
		m := newMatrix(t, "one", n-1)
		v := &Version{ID: "id", Meta: m.Meta()}
		chunks := termChunks(m, v)
		check.Equal(t, (n+chunkTerms-1)/chunkTerms, len(chunks), n)
		var reader termReader
		asked := 0
		get := func(field string) (string, error) {
			if asked++; asked == len(chunks) { // the last chunk, when it is asked for first
				return "", ErrUnavailable
			}
			k := check.Got(strconv.Atoi(strings.TrimPrefix(field, chunkField)))(t)
			return seal("id"+field, string(chunks[k])), nil
		}
		check.Error(t, ErrUnavailable, reader.read(v, get))
		check.OK(t, reader.read(v, get))
		check.Equal(t, len(chunks)+1, asked, "after a failure it goes on where it was")
		set := reader.set
		for i := range n - 1 {
			check.Must(t, set.has("id", term(i)) && !set.has("id", term(i)+"x") && !set.has("di", term(i)), "%d terms: wrong about %s", n, term(i))
		}
	}
	check.Equal(t, 0, (&Version{Meta: simmatrix.Meta{Terms: maxSetTerms + 1}}).chunks())
}
