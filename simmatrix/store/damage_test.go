package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// storedRows returns what Redis would hold for rows of every kind, by term.
func storedRows(tb testing.TB) map[string]string {
	tb.Helper()
	wide := make([]simmatrix.Neighbor, 40)
	for k := range wide {
		wide[k] = simmatrix.Neighbor{Term: fmt.Sprintf("neighbor%02d", k), Similarity: 0.5, DocFreq: uint32(k)}
	}
	var codec simmatrix.RowCodec
	stored := make(map[string]string)
	for term, neighbors := range map[string][]simmatrix.Neighbor{
		"none":     nil,
		"one":      {{Term: "b", Similarity: 1}},
		"origins":  {{Term: "b", Similarity: 1, Origins: 1}, {Term: "ü", Similarity: 0.25, Origins: 3}},
		"deflated": wide,
	} {
		row := check.Got(simmatrix.PackRow(7, neighbors))(tb)
		stored[term] = seal(term, codec.Encode(row))
	}
	return stored
}

// flip returns s with its i-th bit flipped.
func flip(s string, i int) string {
	b := []byte(s)
	b[i/8] ^= 1 << (i % 8)
	return string(b)
}

func TestEveryDamagedRowIsFound(t *testing.T) {
	var codec simmatrix.RowCodec
	rows := storedRows(t)
	for term, stored := range rows {
		t.Run(term, func(t *testing.T) {
			check.OK(t, check.ErrOf(openRow(&codec, term, stored)))
			damaged := map[string]string{"junk": "junk", "something behind": stored + "\x00", "twice": stored + stored}
			for i := range 8 * len(stored) {
				damaged[fmt.Sprint("bit ", i)] = flip(stored, i)
			}
			for n := range stored {
				damaged[fmt.Sprint("cut to ", n)] = stored[:n]
			}
			for other, row := range rows {
				if other != term {
					damaged["that of "+other] = row
				}
			}
			for what, value := range damaged {
				check.Error(t, simmatrix.ErrRow, check.ErrOf(openRow(&codec, term, value)), what)
			}
		})
	}
}

func TestAnswerThatIsNoRowIsRefused(t *testing.T) {
	good := storedRows(t)["one"]
	for _, tt := range []struct {
		name   string
		values []any
		fields int64
		ok     bool
	}{
		{"good", []any{"id", good, nil}, 4, true},
		{"rows are missing", []any{"id", good, nil}, 3, false},
		{"fields too many", []any{"id", good, nil}, 5, false},
		{"no fields", []any{"id", good, nil}, 0, false},
		{"too few", []any{"id", good}, 4, false},
		{"too many", []any{"id", good, nil, nil}, 4, false},
		{"none", nil, 4, false},
		{"no mark", []any{nil, good, nil}, 4, false},
		{"another mark", []any{"di", good, nil}, 4, false},
		{"a number as mark", []any{int64(1), good, nil}, 4, false},
		{"an empty row", []any{"id", "", nil}, 4, false},
		{"a cut row", []any{"id", good[:len(good)-1], nil}, 4, false},
		{"a number", []any{"id", good, int64(1)}, 4, false},
		{"an error", []any{"id", good, errors.New("x")}, 4, false},
		{"a nested array", []any{"id", []any{good}, nil}, 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &Version{ID: "id", Meta: simmatrix.Meta{Terms: 2}} // and the mark and a chunk
			rows, _, err := (&answer{redis.NewIntResult(tt.fields, nil), redis.NewCmdResult(tt.values, nil)}).rows(new(simmatrix.RowCodec), v, []string{"one", "other"}, new(version).has)
			check.That(t, (err == nil) == tt.ok && (!tt.ok || rows[0].Len() == 1 && rows[1].IsZero()), "rows %+v, %v", rows, err)
		})
	}
}

// damages are what can happen to the rows of a version in Redis. Their repair is
// that all fields are what they were.
func damages(ctx context.Context, c *redis.Client, key string) map[string]func() {
	get := func(term string) string { return c.HGet(ctx, key, term).Val() }
	set := func(values ...any) { c.HSet(ctx, key, values...) }
	del := func(terms ...string) { c.HDel(ctx, key, terms...) }
	return map[string]func(){
		"rows deleted":                    func() { del(term(1), term(2), term(3)) },
		"a row deleted and a field added": func() { del(term(1)); set("x", "y") },
		"a row deleted and a good one of another term added": func() {
			row := get(term(1))
			del(term(1))
			set("x", seal("x", row[:len(row)-checksumBytes]))
		},
		"a bit flipped":              func() { set(term(1), flip(get(term(1)), 20)) },
		"a row cut":                  func() { row := get(term(1)); set(term(1), row[:len(row)-1]) },
		"a row empty":                func() { set(term(1), "") },
		"a row under another term":   func() { set(term(1), get(term(5))) },
		"junk in rows":               func() { set(term(1), "junk", term(2), "\x83junk") },
		"a field too many":           func() { set("x", "y") },
		"the mark deleted":           func() { del(completeField) },
		"the mark of another":        func() { set(completeField, "x") },
		"all rows deleted":           func() { c.Del(ctx, key) },
		"a string instead of a hash": func() { c.Set(ctx, key, "x", 0) },
	}
}

// wholeHash returns what repairs the hash at key: it becomes what it is now.
func wholeHash(t *testing.T, c *redis.Client, key string) (repair func()) {
	t.Helper()
	fields := c.HGetAll(t.Context(), key).Val()
	return func() {
		pipe := c.TxPipeline()
		pipe.Del(t.Context(), key)
		pipe.HSet(t.Context(), key, fields)
		_, err := pipe.Exec(t.Context())
		check.OK(t, err)
	}
}

const damagedTerms = 20

// TestADamagedVersionIsLeftForTheLastGoodOne damages the active version, with
// rows in the cache and without, and repairs it: no answer is wrong, the version
// before is served meanwhile, and all of it is reported.
func TestADamagedVersionIsLeftForTheLastGoodOne(t *testing.T) {
	for name := range damages(t.Context(), nil, "") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, a, c := setup(t)
			one, two := publish(t, a, "one", damagedTerms), publish(t, a, "two", damagedTerms)
			key := rowsKey("main", two)
			repair := wholeHash(t, c, key)
			var log logbook
			s := open(t, Options{Redis: r.at(), OnState: log.add})
			searches := search(t, s, damagedTerms, map[string]string{one: "one", two: "two"}, ErrGone, ErrMissingRows, ErrBadRow)
			waitFor(t, "some searches", func() bool { return s.Stats().Cache.Hits > 100 })

			damages(t.Context(), c, key)[name]()
			if strings.Contains(name, "row") || strings.Contains(name, "bit") { // cached rows show nothing
				s.cache.kept.Close()
			}
			awaitServed(t, s, one)
			failed := searches.failures()
			state := s.State()[0]
			check.That(t, state.Version == one && state.Problem != "", "state %+v", state)
			time.Sleep(3 * followEvery) // Some polls must not take it up again, and none has an event.
			check.Equal(t, one, served(s))
			repair()
			awaitServed(t, s, two)
			for k := range damagedTerms {
				wantMark(t, s, "two", term(k))
			}
			searches.stop()
			late := searches.failures() - failed
			check.That(t, late <= searchers*clauses, "%d look-ups failed while another version was served, others gave rows of %v", late, searches.served)
			lines := log.lines(one, two)
			check.That(t, len(lines) == 3 && lines[0] == "B" && strings.HasPrefix(lines[1], "A the ") && lines[2] == "B", "states %q", lines)
		})
	}
}

// TestWithoutALastGoodVersionNothingIsServed looks rows up while they are
// damaged and after the repair: those that are missing are not remembered as
// terms without neighbors, and no error names a term of a search.
func TestWithoutALastGoodVersionNothingIsServed(t *testing.T) {
	t.Parallel()
	r, a, c := setup(t)
	id := publish(t, a, "one", damagedTerms)
	key := rowsKey("main", id)
	repair := wholeHash(t, c, key)
	for name, want := range map[string]error{"rows deleted": ErrMissingRows, "a bit flipped": ErrBadRow, "all rows deleted": ErrGone} {
		var log logbook
		s := open(t, Options{Redis: r.at(), OnState: log.add})
		wantMark(t, s, "one", term(9))
		damages(t.Context(), c, key)[name]()
		waitFor(t, "the damage to be reported", func() bool {
			rowsOf(t, s, term(1))
			return s.State()[0].Problem != ""
		})
		state := s.State()[0]
		check.That(t, state.Version == "" && state.Terms == 0, "%s: state %+v", name, state)
		for range 3 {
			for k := range damagedTerms {
				_, err := rowsOf(t, s, term(k), "unknown")
				check.That(t, errors.Is(err, want) && !strings.Contains(err.Error(), term(k)), "%s: error %v, want %v", name, err, want)
			}
			time.Sleep(followEvery) // The next poll must not change anything, and has no event.
		}
		stats := s.Stats()
		check.That(t, (stats.BadRows > 0 || name == "all rows deleted") && stats.Breaker == "closed", "%s: %+v", name, stats)
		repair()
		awaitProblem(t, s, nil)
		for k := range damagedTerms {
			wantMark(t, s, "one", term(k))
		}
		wantMark(t, s, "", "unknown")
		lines := log.lines(id)
		check.That(t, len(lines) == 3 && lines[0] == "A" && strings.HasPrefix(lines[1], "none the ") && lines[2] == "A", "%s: states %q", name, lines)
	}
}

// TestARepairedVersionHasNoneOfItsCachedEntries: one may say that a term has no
// row because it was read in the moment of the damage.
func TestARepairedVersionHasNoneOfItsCachedEntries(t *testing.T) {
	t.Parallel()
	r, a, c := setup(t)
	id := publish(t, a, "one", damagedTerms)
	s := open(t, Options{Redis: r.at()})
	repair := wholeHash(t, c, rowsKey("main", id))
	s.cache.kept.Put(question{s.Pin().For("i", "f").version.number, term(1)}, simmatrix.Row{}, nil, 0)
	c.HDel(t.Context(), rowsKey("main", id), term(1))
	awaitProblem(t, s, ErrMissingRows)
	repair()
	awaitProblem(t, s, nil)
	wantMark(t, s, "one", term(1))
}

func TestAPinnedVersionThatIsDamagedFails(t *testing.T) {
	r, a, c := setup(t)
	one, two := publish(t, a, "one", damagedTerms), publish(t, a, "two", damagedTerms)
	s := open(t, Options{Redis: r.at()})
	pinned := s.Pin().For("i", "f")
	wantMark(t, s, "two", term(1))
	c.HDel(t.Context(), rowsKey("main", two), term(2))
	awaitServed(t, s, one)
	for _, asked := range []string{term(1), term(2), "unknown"} { // the first is cached
		check.Error(t, ErrMissingRows, check.ErrOf(rowsOfVersion(t, pinned, asked)), asked)
	}
}

func TestARowThatWasBadHasToBeGoodAgain(t *testing.T) {
	t.Parallel()
	r, a, c := setup(t)
	one, two := publish(t, a, "one", damagedTerms), publish(t, a, "two", damagedTerms)
	key := rowsKey("main", two)
	first, second := c.HGet(t.Context(), key, term(1)).Val(), c.HGet(t.Context(), key, term(2)).Val()
	s := open(t, Options{Redis: r.at()})
	c.HSet(t.Context(), key, term(1), "junk", term(2), "junk")
	rowsOf(t, s, term(1), term(2))
	awaitServed(t, s, one)
	c.HSet(t.Context(), key, term(1), first)
	time.Sleep(3 * followEvery) // Some polls must not take it up, and none has an event.
	check.Equal(t, one, served(s))
	c.HSet(t.Context(), key, term(2), second)
	awaitServed(t, s, two)
}

// TestAVersionFoundDamagedAtStartIsLeftForTheOneBefore: nothing was served
// before, but a version was active before.
func TestAVersionFoundDamagedAtStartIsLeftForTheOneBefore(t *testing.T) {
	t.Parallel()
	const terms = 2500 // two chunks of the set of terms
	chunk := func(change func(string) string) func(ctx context.Context, c *redis.Client, key string) {
		return func(ctx context.Context, c *redis.Client, key string) {
			c.HSet(ctx, key, chunkField+"1", change(c.HGet(ctx, key, chunkField+"1").Val()))
		}
	}
	for name, tt := range map[string]struct {
		damage func(ctx context.Context, c *redis.Client, key string)
		want   error
	}{
		"a row is missing": {func(ctx context.Context, c *redis.Client, key string) { c.HDel(ctx, key, term(1)) }, ErrMissingRows},
		"a field for the row of a frequent term": {func(ctx context.Context, c *redis.Client, key string) {
			c.HDel(ctx, key, term(terms-1))
			c.HSet(ctx, key, "other", "x")
		}, ErrMissingRows},
		"a chunk of the set of terms cut":     {chunk(func(s string) string { return s[:len(s)-9] }), ErrBadRow},
		"a chunk of the set of terms flipped": {chunk(func(s string) string { return flip(s, 77) }), ErrBadRow},
		"a chunk of the set of terms empty":   {chunk(func(string) string { return "" }), ErrBadRow},
	} {
		t.Run(name, func(t *testing.T) {
			r, a, c := setup(t)
			a.frequent = 5
			one, gone, two := publish(t, a, "one", terms), publish(t, a, "gone", 5), publish(t, a, "two", terms)
			c.Del(t.Context(), rowsKey("main", gone))
			repair := wholeHash(t, c, rowsKey("main", two))
			tt.damage(t.Context(), c, rowsKey("main", two))
			s := open(t, Options{Redis: r.at()})
			state := s.State()[0]
			check.That(t, served(s) == one && strings.HasPrefix(state.Problem, tt.want.Error()), "version %q, %+v", served(s), state)
			repair()
			awaitServed(t, s, two)
		})
	}
}

func TestRowsOfFrequentTermsAreReadBeforeAVersionIsServed(t *testing.T) {
	r, a, _ := setup(t)
	a.frequent = 100
	const terms = 300 // the frequency of term i is i
	v := pushed(t, a, newMatrix(t, "one", terms))
	check.That(t, len(v.Frequent) == 100 && v.Frequent[0] == term(terms-1) && v.Frequent[99] == term(terms-100), "frequent terms %q", v.Frequent)
	check.OK(t, a.Activate(t.Context(), "main", v.ID))
	s := open(t, Options{Redis: r.at()})
	r.kill()
	wantMark(t, s, "one", v.Frequent...)
	check.Error(t, ErrUnavailable, check.ErrOf(rowsOf(t, s, term(1))))
}

func TestAVersionIsServedWhereFrequentTermsCannotBeReadInTime(t *testing.T) {
	r, a, _ := setup(t)
	a.frequent = 5
	publish(t, a, "one", damagedTerms)
	s := open(t, Options{Redis: r.at()})
	v := s.Pin().For("i", "f").version
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err := s.remote.warm(late, v)
	check.That(t, err == nil && v.damage.Load() == nil, "error %v", err)
}

func TestFrequentTermsAreThoseOfTheHighestFrequencies(t *testing.T) {
	frequent := func(most int, rows ...simmatrix.TermRow) []string {
		m := check.Got(simmatrix.New(simmatrix.Meta{}, rows))(t)
		return check.Got(checkMatrix(t.Context(), m, most, func(string, int, int) {}))(t)
	}
	var rows, long []simmatrix.TermRow
	for i, df := range []uint32{2, 0, 9, 2, 5, 9, 1} {
		rows = append(rows, simmatrix.TermRow{Term: term(i), DocFreq: df})
	}
	check.Equal(t, []string{term(2), term(5), term(4)}, frequent(3, rows...))
	terms := frequent(0, rows...)
	check.That(t, terms == nil, "none wanted: %q", terms)
	for i := range 10 {
		long = append(long, simmatrix.TermRow{Term: strings.Repeat("x", maxFrequentBytes/4) + term(i), DocFreq: 1})
	}
	check.Equal(t, 3, len(frequent(10, long...)))
}
