package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

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
		row, err := simmatrix.PackRow(7, neighbors)
		must(tb, err)
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
			if _, err := openRow(&codec, term, stored); err != nil {
				t.Fatal(err)
			}
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
				if row, err := openRow(&codec, term, value); !errors.Is(err, simmatrix.ErrRow) {
					t.Errorf("%s: row %v, error %v", what, row, err)
				}
			}
		})
	}
}

func FuzzDamagedRowIsFound(f *testing.F) {
	for term, stored := range storedRows(f) {
		f.Add(term, stored, 5)
	}
	f.Fuzz(func(t *testing.T, term, encoded string, bit int) {
		var codec simmatrix.RowCodec
		row, err := codec.Decode(encoded, maxRowBytes)
		if err != nil || row.IsZero() {
			t.Skip("not a row")
		}
		stored := seal(term, encoded)
		if got, err := openRow(&codec, term, stored); err != nil || got != row {
			t.Errorf("sealed and opened: %v, %v", got, err)
		}
		if bit = max(bit, 0) % (8 * len(stored)); bit >= 0 {
			if _, err := openRow(&codec, term, flip(stored, bit)); err == nil {
				t.Errorf("bit %d flipped: no error", bit)
			}
		}
	})
}

func TestAnswerThatIsNoRowIsRefused(t *testing.T) {
	good, row := storedRows(t)["one"], simmatrix.Row{}
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
			rows, _, err := (&answer{redis.NewIntResult(tt.fields, nil), redis.NewCmdResult(tt.values, nil)}).rows(new(simmatrix.RowCodec), v, nil, []string{"one", "other"})
			if (err == nil) != tt.ok {
				t.Errorf("error %v", err)
			}
			if tt.ok && (rows[0].Len() != 1 || rows[1] != row) {
				t.Errorf("rows %+v", rows)
			}
		})
	}
}

// damages are what can happen to the rows of a version in Redis. Their repair is
// that all fields are what they were.
func damages() map[string]func(ctx context.Context, c *redis.Client, key string) {
	return map[string]func(ctx context.Context, c *redis.Client, key string){
		"rows deleted": func(ctx context.Context, c *redis.Client, key string) { c.HDel(ctx, key, term(1), term(2), term(3)) },
		"a row deleted and a field added": func(ctx context.Context, c *redis.Client, key string) {
			c.HDel(ctx, key, term(1))
			c.HSet(ctx, key, "x", "y")
		},
		"a row deleted and a good one of another term added": func(ctx context.Context, c *redis.Client, key string) {
			row := c.HGet(ctx, key, term(1)).Val()
			c.HDel(ctx, key, term(1))
			c.HSet(ctx, key, "x", seal("x", row[:len(row)-checksumBytes]))
		},
		"a bit flipped": func(ctx context.Context, c *redis.Client, key string) {
			c.HSet(ctx, key, term(1), flip(c.HGet(ctx, key, term(1)).Val(), 20))
		},
		"a row cut": func(ctx context.Context, c *redis.Client, key string) {
			row := c.HGet(ctx, key, term(1)).Val()
			c.HSet(ctx, key, term(1), row[:len(row)-1])
		},
		"a row empty": func(ctx context.Context, c *redis.Client, key string) { c.HSet(ctx, key, term(1), "") },
		"a row under another term": func(ctx context.Context, c *redis.Client, key string) {
			c.HSet(ctx, key, term(1), c.HGet(ctx, key, term(5)).Val())
		},
		"junk": func(ctx context.Context, c *redis.Client, key string) {
			c.HSet(ctx, key, term(1), "junk", term(2), "\x83junk")
		},
		"a field too many":           func(ctx context.Context, c *redis.Client, key string) { c.HSet(ctx, key, "x", "y") },
		"the mark deleted":           func(ctx context.Context, c *redis.Client, key string) { c.HDel(ctx, key, completeField) },
		"the mark of another":        func(ctx context.Context, c *redis.Client, key string) { c.HSet(ctx, key, completeField, "x") },
		"all rows deleted":           func(ctx context.Context, c *redis.Client, key string) { c.Del(ctx, key) },
		"a string instead of a hash": func(ctx context.Context, c *redis.Client, key string) { c.Set(ctx, key, "x", 0) },
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
		must(t, err)
	}
}

const damagedTerms = 20

// searchThroughout looks all terms up again and again, until the test ends, and
// wants each answer to be the rows of the version that was pinned, or an error.
func searchThroughout(t *testing.T, s *Store, marks map[string]string) (stop func() (answers, failed int)) {
	t.Helper()
	var done sync.WaitGroup
	answers, failed := 0, 0
	end := make(chan struct{})
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			terms := []string{term(i % damagedTerms), "unknown", term((i + 1) % damagedTerms)}
			rows := s.Pin().For("i", "f")
			got, err := rowsOfVersion(t, rows, terms...)
			answers++
			time.Sleep(time.Millisecond)
			if err != nil {
				failed++
				continue
			}
			mark := marks[rows.Version()]
			if markOf(got[0]) != mark || !got[1].IsZero() || markOf(got[2]) != mark {
				t.Errorf("wrong: %q of %s are %q, %q, %q", terms, rows.Version(), markOf(got[0]), markOf(got[1]), markOf(got[2]))
				return
			}
		}
	})
	return func() (int, int) { close(end); done.Wait(); return answers, failed }
}

// TestADamagedVersionIsLeftForTheLastGoodOne damages the active version, with
// rows in the cache and without, and repairs it: no answer is wrong, the version
// before is served meanwhile, and all of it is reported.
func TestADamagedVersionIsLeftForTheLastGoodOne(t *testing.T) {
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRedis(t)
			a, c := r.admin(t), r.client(t)
			one := publish(t, a, newMatrix(t, "one", damagedTerms))
			two := publish(t, a, newMatrix(t, "two", damagedTerms))
			repair := wholeHash(t, c, rowsKey("main", two))
			var log logbook
			s := open(t, Options{Redis: r.at(), OnState: log.add})
			stop := searchThroughout(t, s, map[string]string{"main@" + one: "one", "main@" + two: "two"})
			waitFor(t, 10*time.Second, "some searches", func() bool { return s.Stats().Cache.Hits > 100 })

			damage(t.Context(), c, rowsKey("main", two))
			if strings.Contains(name, "row") || name == "junk" || strings.Contains(name, "bit") { // cached rows show nothing
				s.cache.kept.Close()
			}
			waitFor(t, 10*time.Second, "the version before", func() bool { return served(s) == one })
			if state := s.State()[0]; state.Version != one || state.Problem == "" {
				t.Errorf("state %+v", state)
			}
			time.Sleep(3 * followEvery) // it is not taken up again before it is repaired
			if got := served(s); got != one {
				t.Errorf("version %s before the repair", got)
			}
			repair()
			waitFor(t, 10*time.Second, "the repaired version", func() bool { return served(s) == two })
			for k := range damagedTerms {
				if rows, err := rowsOf(t, s, term(k)); err != nil || markOf(rows[0]) != "two" {
					t.Errorf("%s after the repair: %q, %v", term(k), markOf(rows[0]), err)
				}
			}
			if answers, failed := stop(); failed > answers/2 {
				t.Errorf("%d of %d answers failed", failed, answers)
			}
			lines := log.lines(one, two)
			if len(lines) != 3 || lines[0] != "B" || !strings.HasPrefix(lines[1], "A the ") || lines[2] != "B" {
				t.Errorf("states %q", lines)
			}
		})
	}
}

func TestWithoutALastGoodVersionNothingIsServed(t *testing.T) {
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRedis(t)
			a, c := r.admin(t), r.client(t)
			id := publish(t, a, newMatrix(t, "one", damagedTerms))
			repair := wholeHash(t, c, rowsKey("main", id))
			var log logbook
			s := open(t, Options{Redis: r.at(), OnState: log.add})
			must(t, s.Pin().For("i", "f").Rows(t.Context(), []string{term(9)}, make([]simmatrix.Row, 1)))
			damage(t.Context(), c, rowsKey("main", id))
			waitFor(t, 10*time.Second, "the damage to be reported", func() bool {
				rowsOf(t, s, term(1))
				return s.State()[0].Problem != ""
			})
			if state := s.State()[0]; state.Version != "" || state.Terms != 0 {
				t.Errorf("state %+v", state)
			}
			for range 3 {
				if rows, err := rowsOf(t, s, term(1), term(9), "unknown"); err == nil || errors.Is(err, ErrUnavailable) {
					t.Errorf("rows %v, %v", rows, err)
				}
				time.Sleep(followEvery)
			}
			repair()
			waitFor(t, 10*time.Second, "the repaired version", func() bool { return s.State()[0].Problem == "" })
			if rows, err := rowsOf(t, s, term(1), term(9), "unknown"); err != nil || markOf(rows[0]) != "one" || !rows[2].IsZero() {
				t.Errorf("after the repair: %v, %v", rows, err)
			}
			lines := log.lines(id)
			if len(lines) != 3 || lines[0] != "A" || !strings.HasPrefix(lines[1], "none the ") || lines[2] != "A" {
				t.Errorf("states %q", lines)
			}
		})
	}
}

// TestMissingRowsAreNotTakenForUnknownTerms looks rows up while they are missing
// and after the repair: they are not remembered as terms without neighbors.
func TestMissingRowsAreNotTakenForUnknownTerms(t *testing.T) {
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	id := publish(t, a, newMatrix(t, "one", damagedTerms))
	s := open(t, Options{Redis: r.at()})
	repair := wholeHash(t, c, rowsKey("main", id))
	for k := range damagedTerms / 2 {
		c.HDel(t.Context(), rowsKey("main", id), term(k))
	}
	for range 5 {
		for k := range damagedTerms {
			_, err := rowsOf(t, s, term(k), "unknown")
			if !errors.Is(err, ErrMissingRows) || strings.Contains(err.Error(), term(k)) {
				t.Fatalf("%s: error %v, want that rows are missing, and no term of a search", term(k), err)
			}
		}
	}
	if got := s.Stats(); got.BadRows == 0 || got.Breaker != "closed" {
		t.Errorf("%d bad rows, breaker %s", got.BadRows, got.Breaker)
	}
	repair()
	waitFor(t, 10*time.Second, "the repaired version", func() bool { _, err := rowsOf(t, s, term(1)); return err == nil })
	for k := range damagedTerms {
		if rows, err := rowsOf(t, s, term(k), "unknown"); err != nil || markOf(rows[0]) != "one" || !rows[1].IsZero() {
			t.Errorf("%s after the repair: %v, %v", term(k), rows, err)
		}
	}
}

// TestARepairedVersionHasNoneOfItsCachedEntries: one may say that a term has no
// row because it was read in the moment of the damage.
func TestARepairedVersionHasNoneOfItsCachedEntries(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	id := publish(t, a, newMatrix(t, "one", damagedTerms))
	s := open(t, Options{Redis: r.at()})
	repair := wholeHash(t, c, rowsKey("main", id))
	s.cache.add(s.Pin().For("i", "f").version, []string{term(1)}, make([]simmatrix.Row, 1))
	c.HDel(t.Context(), rowsKey("main", id), term(1))
	waitFor(t, 10*time.Second, "the damage to be reported", func() bool { return s.State()[0].Problem != "" })
	repair()
	waitFor(t, 10*time.Second, "health", func() bool { return s.State()[0].Problem == "" })
	if rows, err := rowsOf(t, s, term(1)); err != nil || markOf(rows[0]) != "one" {
		t.Errorf("rows %v, %v", rows, err)
	}
}

func TestAPinnedVersionThatIsDamagedFails(t *testing.T) {
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	publish(t, a, newMatrix(t, "one", damagedTerms))
	two := publish(t, a, newMatrix(t, "two", damagedTerms))
	s := open(t, Options{Redis: r.at()})
	pinned := s.Pin().For("i", "f")
	if rows, err := rowsOfVersion(t, pinned, term(1)); err != nil || markOf(rows[0]) != "two" {
		t.Fatal(rows, err)
	}
	c.HDel(t.Context(), rowsKey("main", two), term(2))
	waitFor(t, 10*time.Second, "the version before", func() bool { return served(s) != two })
	for _, asked := range []string{term(1), term(2), "unknown"} { // the first is cached
		if rows, err := rowsOfVersion(t, pinned, asked); !errors.Is(err, ErrMissingRows) {
			t.Errorf("%s: %v, %v", asked, rows, err)
		}
	}
}

// TestARowThatWasBadHasToBeGoodAgain repairs another one first.
func TestARowThatWasBadHasToBeGoodAgain(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	one := publish(t, a, newMatrix(t, "one", damagedTerms))
	two := publish(t, a, newMatrix(t, "two", damagedTerms))
	key := rowsKey("main", two)
	first, second := c.HGet(t.Context(), key, term(1)).Val(), c.HGet(t.Context(), key, term(2)).Val()
	s := open(t, Options{Redis: r.at()})
	c.HSet(t.Context(), key, term(1), "junk", term(2), "junk")
	rowsOf(t, s, term(1), term(2))
	waitFor(t, 10*time.Second, "the version before", func() bool { return served(s) == one })
	c.HSet(t.Context(), key, term(1), first)
	time.Sleep(3 * followEvery)
	if got := served(s); got != one {
		t.Errorf("version %s with one of two bad rows repaired", got)
	}
	c.HSet(t.Context(), key, term(2), second)
	waitFor(t, 10*time.Second, "the repaired version", func() bool { return served(s) == two })
}

func TestSwitchesWhileAVersionIsDamaged(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	one := publish(t, a, newMatrix(t, "one", damagedTerms))
	two := publish(t, a, newMatrix(t, "two", damagedTerms))
	repair := wholeHash(t, c, rowsKey("main", two))
	var log logbook
	s := open(t, Options{Redis: r.at(), OnState: log.add})
	c.HDel(t.Context(), rowsKey("main", two), term(1))
	waitFor(t, 10*time.Second, "the version before", func() bool { return served(s) == one })
	three := publish(t, a, newMatrix(t, "three", damagedTerms))
	waitFor(t, 10*time.Second, "a new version", func() bool { return served(s) == three && s.State()[0].Problem == "" })
	if back, err := a.Rollback(t.Context(), "main"); err != nil || back != two {
		t.Fatalf("rolled back to %s, %v", back, err)
	}
	waitFor(t, 10*time.Second, "the damage to be reported", func() bool { return s.State()[0].Problem != "" })
	if got := served(s); got != three {
		t.Errorf("version %s, want the sound one that was served", got)
	}
	repair()
	waitFor(t, 10*time.Second, "the repaired version", func() bool { return served(s) == two })
	if diff := cmp.Diff([]string{"B", "A " + ErrMissingRows.Error(), "C", "C " + ErrMissingRows.Error(), "B"}, log.lines(one, two, three)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestAFlushedRedisServesNothingUntilTheNextPush(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	publish(t, a, newMatrix(t, "one", damagedTerms))
	s := open(t, Options{Redis: r.at()})
	if rows, err := rowsOf(t, s, term(1)); err != nil || markOf(rows[0]) != "one" {
		t.Fatal(rows, err)
	}
	must(t, c.FlushAll(t.Context()).Err())
	waitFor(t, 10*time.Second, "the loss to be reported", func() bool {
		return strings.HasPrefix(s.State()[0].Problem, ErrNoVersion.Error()) && s.Pin().For("i", "f") == nil
	})
	two := publish(t, a, newMatrix(t, "two", damagedTerms))
	waitFor(t, 10*time.Second, "the next version", func() bool { return served(s) == two })
	if rows, err := rowsOf(t, s, term(1)); err != nil || markOf(rows[0]) != "two" {
		t.Errorf("rows %v, %v", rows, err)
	}
}

// TestTheFirstVersionFoundDamagedIsNotServed: there is nothing that was served
// before, but a version that was active before.
func TestTheFirstVersionFoundDamagedIsNotServed(t *testing.T) {
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	one := publish(t, a, newMatrix(t, "one", damagedTerms))
	gone := publish(t, a, newMatrix(t, "gone", damagedTerms))
	two := publish(t, a, newMatrix(t, "two", damagedTerms))
	c.Del(t.Context(), rowsKey("main", gone))
	c.HDel(t.Context(), rowsKey("main", two), term(1))
	s := open(t, Options{Redis: r.at()})
	if state := s.State()[0]; served(s) != one || !strings.HasPrefix(state.Problem, ErrMissingRows.Error()) {
		t.Errorf("version %q, %+v", served(s), state)
	}
}

func TestRowsOfFrequentTermsAreReadBeforeAVersionIsServed(t *testing.T) {
	r := startRedis(t)
	a := r.admin(t)
	a.frequent = 100
	const terms = 300 // the frequency of term i is i
	v, err := a.Push(t.Context(), "main", newMatrix(t, "one", terms), "", nil)
	must(t, err)
	if len(v.Frequent) != 100 || v.Frequent[0] != term(terms-1) || v.Frequent[99] != term(terms-100) {
		t.Errorf("frequent terms %q", v.Frequent)
	}
	must(t, a.Activate(t.Context(), "main", v.ID))
	s := open(t, Options{Redis: r.at()})
	r.kill()
	rows, err := rowsOf(t, s, v.Frequent...)
	must(t, err)
	for k, row := range rows {
		if markOf(row) != "one" {
			t.Errorf("%s: %q", v.Frequent[k], markOf(row))
		}
	}
	if _, err := rowsOf(t, s, term(1)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a rare term without Redis: %v", err)
	}
}

func TestAVersionIsServedWhereFrequentTermsCannotBeReadInTime(t *testing.T) {
	r := startRedis(t)
	a := r.admin(t)
	a.frequent = 5
	publish(t, a, newMatrix(t, "one", damagedTerms))
	s := open(t, Options{Redis: r.at()})
	v := s.Pin().For("i", "f").version
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := s.remote.warm(late, v); err != nil || v.damage.Load() != nil {
		t.Errorf("error %v", err)
	}
}

// TestARowOfAFrequentTermThatIsMissingIsFoundAtOnce, also where another field
// makes up for it in the number of fields.
func TestARowOfAFrequentTermThatIsMissingIsFoundAtOnce(t *testing.T) {
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	a.frequent = 5
	one := publish(t, a, newMatrix(t, "one", damagedTerms))
	two := publish(t, a, newMatrix(t, "two", damagedTerms))
	c.HDel(t.Context(), rowsKey("main", two), term(damagedTerms-1))
	c.HSet(t.Context(), rowsKey("main", two), "other", "x")
	s := open(t, Options{Redis: r.at()})
	if state := s.State()[0]; served(s) != one || !strings.HasPrefix(state.Problem, ErrMissingRows.Error()) {
		t.Errorf("version %q, %+v", served(s), state)
	}
}

func TestFrequentTermsAreThoseOfTheHighestFrequencies(t *testing.T) {
	frequent := func(most int, rows ...simmatrix.TermRow) []string {
		m, err := simmatrix.New(simmatrix.Meta{}, rows)
		must(t, err)
		terms, err := checkMatrix(t.Context(), m, most, func(string, int, int) {})
		must(t, err)
		return terms
	}
	var rows, long []simmatrix.TermRow
	for i, df := range []uint32{2, 0, 9, 2, 5, 9, 1} {
		rows = append(rows, simmatrix.TermRow{Term: term(i), DocFreq: df})
	}
	if diff := cmp.Diff([]string{term(2), term(5), term(4)}, frequent(3, rows...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if terms := frequent(0, rows...); terms != nil {
		t.Errorf("none wanted: %q", terms)
	}
	for i := range 10 {
		long = append(long, simmatrix.TermRow{Term: strings.Repeat("x", maxFrequentBytes/4) + term(i), DocFreq: 1})
	}
	if n := len(frequent(10, long...)); n != 3 {
		t.Errorf("%d long terms, want those that fit", n)
	}
}

// TestAdminNamesTheRowsThatAreBadOrMissing: for "akin matrix show" and "export".
func TestAdminNamesTheRowsThatAreBadOrMissing(t *testing.T) {
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	id := publish(t, a, newMatrix(t, "one", damagedTerms))
	key := rowsKey("main", id)
	repair := wholeHash(t, c, key)
	for _, tt := range []struct {
		name       string
		damage     func()
		rows, pull []string // parts of the errors
	}{
		{
			"bad", func() {
				for k := range 7 {
					c.HSet(t.Context(), key, term(k), flip(c.HGet(t.Context(), key, term(k)).Val(), 3))
				}
			},
			[]string{ErrBadRow.Error(), `2 terms, `, term(1), term(2)},
			[]string{ErrBadRow.Error(), "7 terms, first ", term(0), term(4)},
		},
		{
			"missing", func() { c.HDel(t.Context(), key, "one", term(1)) },
			[]string{ErrMissingRows.Error(), "19 rows, want 21"},
			[]string{"19 rows, want 21", `without a row: 1 terms, ["one"]`},
		},
		{
			"both", func() { c.HDel(t.Context(), key, "one"); c.HSet(t.Context(), key, term(1), "junk") },
			[]string{ErrMissingRows.Error()},
			[]string{`1 terms, ["t00001"]`, "20 rows, want 21", `without a row: 1 terms, ["one"]`},
		},
		{
			"missing, with another field", func() { c.HDel(t.Context(), key, term(1)); c.HSet(t.Context(), key, "x", "y") },
			[]string{ErrMissingRows.Error(), `1 terms, ["t00001"]`},
			[]string{ErrBadRow.Error(), `1 terms, ["x"]`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.damage()
			_, _, err := a.Rows(t.Context(), "main", "", []string{term(1), term(2), "unknown"})
			_, _, pullErr := a.Pull(t.Context(), "main", "", nil)
			repair()
			for _, of := range []struct {
				err  error
				want []string
			}{{err, tt.rows}, {pullErr, tt.pull}} {
				for _, want := range of.want {
					if of.err == nil || !strings.Contains(of.err.Error(), want) {
						t.Errorf("error %v lacks %q", of.err, want)
					}
				}
			}
		})
	}
}

// TestEveryBitInRedisCounts flips each bit of some rows where they are.
func TestEveryBitInRedisCounts(t *testing.T) {
	r := startRedis(t)
	a, c := r.admin(t), r.client(t)
	id := publish(t, a, newMatrix(t, "one", 3))
	for _, asked := range []string{"one", term(1)} {
		stored := c.HGet(t.Context(), rowsKey("main", id), asked).Val()
		for i := range 8 * len(stored) {
			c.HSet(t.Context(), rowsKey("main", id), asked, flip(stored, i))
			if _, rows, err := a.Rows(t.Context(), "main", "", []string{asked}); !errors.Is(err, ErrBadRow) {
				t.Errorf("bit %d of %s: %v, %v", i, asked, rows, err)
			}
		}
		c.HSet(t.Context(), rowsKey("main", id), asked, stored)
	}
	if _, _, err := a.Rows(t.Context(), "main", "", []string{"one", term(1), "unknown"}); err != nil {
		t.Error(err)
	}
}
