package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

func TestFirstBindingThatMatchesDecides(t *testing.T) {
	s := open(t, Options{
		Bindings: []Binding{
			{Name: "titles", Indices: []string{"shop", "shop-*"}, Fields: []string{"title", "*.title"}},
			{Name: "unread", Indices: []string{"shop*"}, Fields: []string{"notes"}},
			{Name: "shop", Indices: []string{"shop*"}, Fields: []string{"*"}},
			{Name: "titles", Indices: []string{"*"}, Fields: []string{"headline"}},
		},
		Files: map[string]Loader{
			"titles": InMemory(newMatrix(t, "titles", 3)),
			"shop":   InMemory(newMatrix(t, "shop", 3)),
			"unread": func(context.Context) (*simmatrix.Matrix, time.Time, error) {
				return nil, time.Time{}, errors.New("no file")
			},
		},
	})
	for _, tt := range []struct{ name, index, field, want string }{
		{"first", "shop", "title", "titles"},
		{"a field below", "shop-1", "de.title", "titles"},
		{"every index of a list", "shop,shop-1", "title", "titles"},
		{"one of a list goes elsewhere", "shop,shops", "title", "shop"},
		{"second", "shop-1", "body", "shop"},
		{"no version: not the next binding", "shop", "notes", ""},
		{"all indices", "", "headline", "titles"},
		{"all indices by name", "_all", "headline", "titles"},
		{"all indices are no shop", "", "title", ""},
		{"unbound index", "logs", "title", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if rows := s.Pin().For(tt.index, tt.field); rows != nil {
				got, _, _ = strings.Cut(rows.Version(), "@")
			}
			if got != tt.want {
				t.Errorf("index %q, field %q: matrix %q, want %q", tt.index, tt.field, got, tt.want)
			}
		})
	}
}

// TestOneMatrixForEachLanguage has the example of docs/config.md.
func TestOneMatrixForEachLanguage(t *testing.T) {
	all := []string{"*"}
	bindings := []Binding{
		{Name: "german", Indices: all, Fields: []string{"title.de", "body.de"}},
		{Name: "french", Indices: all, Fields: []string{"*.fr"}},
		{Name: "catalogue", Indices: []string{"catalogue", "products-*"}, Fields: all},
		{Name: "main", Indices: all, Fields: all},
	}
	r := startRedis(t)
	a := r.admin(t)
	for _, b := range bindings[:3] {
		v, err := a.Push(t.Context(), b.Name, newMatrix(t, b.Name, 5), "", nil)
		must(t, err)
		must(t, a.Activate(t.Context(), b.Name, v.ID))
	}
	s := open(t, Options{Bindings: bindings, Redis: r.at(), Files: map[string]Loader{"main": InMemory(newMatrix(t, "main", 5))}})
	waitFor(t, 10*time.Second, "all versions", func() bool {
		for _, state := range s.State() {
			if state.Version == "" {
				return false
			}
		}
		return true
	})
	for _, tt := range []struct{ index, field, want string }{
		{"products-1", "title.de", "german"}, // a field goes before an index, where it stands above it
		{"products-1", "body.de", "german"},
		{"products-1", "text.de", "catalogue"},
		{"products-1", "title.fr", "french"},
		{"logs", "a.b.fr", "french"},
		{"products-1", "title", "catalogue"},
		{"catalogue,products-2", "title", "catalogue"},
		{"catalogue,logs", "title", "main"}, // not all of it is of the catalogue
		{"", "title", "main"},
		{"logs", "title.en", "main"},
	} {
		rows, err := rowsOfVersion(t, s.Pin().For(tt.index, tt.field), term(1), "unknown")
		if err != nil || markOf(rows[0]) != tt.want || !rows[1].IsZero() {
			t.Errorf("index %q, field %q: rows of %q, %v; want %q", tt.index, tt.field, markOf(rows[0]), err, tt.want)
		}
	}
	// What one of them does leaves the others.
	if _, err := a.Push(t.Context(), "german", newMatrix(t, "new", 5), "", nil); err != nil {
		t.Fatal(err)
	}
	versions, err := a.Versions(t.Context(), "french")
	if err != nil || len(versions) != 1 {
		t.Errorf("versions of french: %+v, %v", versions, err)
	}
}

func TestRowsAmongSomeMatricesAreOfTheFirstBoundThatFits(t *testing.T) {
	all := []string{"*"}
	s := open(t, Options{
		Bindings: []Binding{
			{Name: "narrow", Indices: all, Fields: []string{"title"}},
			{Name: "wide", Indices: all, Fields: all},
			{Name: "last", Indices: []string{"logs"}, Fields: all},
			{Name: "empty", Indices: all, Fields: all},
		},
		Files: map[string]Loader{
			"narrow": InMemory(newMatrix(t, "narrow", 5)), "wide": InMemory(newMatrix(t, "wide", 5)), "last": InMemory(newMatrix(t, "last", 5)),
			"empty": func(context.Context) (*simmatrix.Matrix, time.Time, error) {
				return nil, time.Time{}, errors.New("not there")
			},
		},
	})
	for _, tt := range []struct {
		names              []string
		index, field, want string // "" for no rows
	}{
		{[]string{"wide", "narrow"}, "a", "title", "narrow"}, // in the order of the bindings
		{[]string{"wide"}, "a", "title", "wide"},
		{[]string{"narrow"}, "a", "body", ""},
		{[]string{"narrow", "last"}, "logs", "body", "last"},
		{[]string{"last"}, "a", "title", ""},
		{[]string{"empty", "unknown"}, "logs", "title", ""},
		{[]string{}, "logs", "title", ""},
		{nil, "logs", "title", "narrow"},
	} {
		m, err := s.Pin().Match(tt.index, tt.field, tt.names, func() ([]string, error) { return nil, nil })
		must(t, err)
		rows := m.Rows
		if (rows != nil) != (tt.want != "") {
			t.Errorf("%v, %s, %s: rows %v, want of %q", tt.names, tt.index, tt.field, rows, tt.want)
		} else if rows != nil && !strings.HasPrefix(rows.Version(), tt.want+"@") {
			t.Errorf("%v, %s, %s: rows of %s, want of %q", tt.names, tt.index, tt.field, rows.Version(), tt.want)
		}
	}
}

func TestBindingMatchesWhatAnExpressionStandsFor(t *testing.T) {
	s := open(t, Options{
		Bindings: []Binding{
			{Name: "titles", Indices: []string{"shop*"}, Fields: []string{"title", "*.title"}},
			{Name: "docs", Indices: []string{"docs*", "-tenant-*"}, Fields: []string{"*"}},
			{Name: "unread", Indices: []string{"empty"}, Fields: []string{"*"}},
			{Name: "all", Indices: []string{"*"}, Fields: []string{"body"}},
		},
		Files: map[string]Loader{
			"titles": InMemory(newMatrix(t, "titles", 3)),
			"docs":   InMemory(newMatrix(t, "docs", 3)),
			"all":    InMemory(newMatrix(t, "all", 3)),
			"unread": func(context.Context) (*simmatrix.Matrix, time.Time, error) {
				return nil, time.Time{}, errors.New("no file")
			},
		},
	})
	away := errors.New("the cluster is away")
	resolve := map[string][]string{
		"live": {"docs1", "docs2"}, "tenant-a": {"docs1"}, "sale": {"shop1"}, "both": {"docs1", "shop1"}, "void": {"empty"}, "docs1": {"docs1"}, "logs": {"logs"},
	}
	for _, tt := range []struct {
		name, index, field, want string
		named, asks              bool
	}{
		{"as spelled, first for the field", "docs1", "body", "docs", false, false},
		{"as spelled, not first for the field", "docs1", "title", "docs", false, true},
		{"an alias", "live", "body", "docs", false, true},
		{"an alias, the field named", "sale", "title", "titles", true, true},
		{"an alias, the field by a wildcard", "sale", "de.title", "titles", false, true},
		{"an alias, the next as spelled", "sale", "body", "all", true, true},
		{"no single binding for all indices", "both", "title", "", false, true},
		{"an alias that is kept out", "tenant-a", "n", "", false, true}, // for unread
		{"no version: not the next binding", "void", "body", "", false, true},
		{"an error", "away", "n", "", false, true},
		{"an error, not asked for", "docs*", "n", "docs", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			m, err := s.Pin().Match(tt.index, tt.field, nil, func() ([]string, error) {
				asked++
				if tt.index == "away" {
					return nil, away
				}
				return resolve[tt.index], nil
			})
			got := ""
			if m.Rows != nil {
				got, _, _ = strings.Cut(m.Rows.Version(), "@")
			}
			if got != tt.want || m.Named != tt.named && got != "" || errors.Is(err, away) != (tt.index == "away") {
				t.Errorf("index %q, field %q: matrix %q, named %v, %v; want %q, %v", tt.index, tt.field, got, m.Named, err, tt.want, tt.named)
			}
			if want := map[bool]int{true: 1}[tt.asks]; asked != want {
				t.Errorf("resolved %d times, want %d", asked, want)
			}
		})
	}
}

func TestURLOfRedisIsNotInItsErrors(t *testing.T) {
	_, err := Open(t.Context(), Options{Bindings: everywhere(), Redis: Redis{URL: "redis://u:hunter2@h/x"}, CacheBytes: minCacheBytes})
	if !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("bad URL: %v", err)
	}
}

func TestRowsFromMemory(t *testing.T) {
	m := newMatrix(t, "one", 10)
	s := open(t, Options{Files: map[string]Loader{"main": InMemory(m)}})
	rows := s.Pin().For("i", "f")
	if got, want := rows.Version(), "main@"+m.Checksum()[:16]; got != want {
		t.Errorf("version %s, want %s", got, want)
	}
	if rows.Docs() != 1000 {
		t.Errorf("docs %d, want 1000", rows.Docs())
	}
	for _, pass := range []string{"cold", "cached"} {
		got := []simmatrix.Row{m.Row("one"), {}, m.Row("one")} // stale, to be overwritten
		if err := rows.Rows(t.Context(), []string{term(1), "unknown", term(2)}, got); err != nil {
			t.Fatal(pass, err)
		}
		if got[0] != m.Row(term(1)) || !got[1].IsZero() || got[2] != m.Row(term(2)) {
			t.Errorf("%s: %+v", pass, got)
		}
	}
	stats := s.Stats()
	if stats.Cache.Hits != 3 || stats.Cache.Misses != 3 {
		t.Errorf("%d hits, %d misses; want 3 and 3: unknown terms are cached too", stats.Cache.Hits, stats.Cache.Misses)
	}
	if err := rows.Rows(t.Context(), []string{"a"}, nil); err == nil {
		t.Error("one term and no rows: no error")
	}
}

func TestCachedLookUpAllocatesNothing(t *testing.T) {
	s := open(t, Options{Files: map[string]Loader{"main": InMemory(newMatrix(t, "one", 10))}})
	terms := []string{term(1), term(2), term(3), "unknown"}
	rows := make([]simmatrix.Row, len(terms))
	lookUp := func() {
		if err := s.Pin().For("i,j-*", "title").Rows(t.Context(), terms, rows); err != nil {
			t.Error(err)
		}
	}
	lookUp()
	// The cache's own upkeep, spread over many reads, is below one.
	if n := testing.AllocsPerRun(1000, lookUp); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCacheIsBoundedByBytes(t *testing.T) {
	s := open(t, Options{Files: map[string]Loader{"main": InMemory(newMatrix(t, "one", 20_000))}})
	rows := make([]simmatrix.Row, 1)
	for i := range 20_000 {
		if err := s.Pin().For("i", "f").Rows(t.Context(), []string{term(i)}, rows); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Stats().Cache.Bytes; got > minCacheBytes || got < minCacheBytes/2 {
		t.Errorf("%d bytes cached, want at most %d and about that", got, minCacheBytes)
	}
}

func TestBadNewFileKeepsTheOld(t *testing.T) {
	one, two := newMatrix(t, "one", 10), newMatrix(t, "two", 10)
	var (
		m       *simmatrix.Matrix
		written time.Time
		failure error
	)
	states := make(chan State, 10)
	s := open(t, Options{
		Files:   map[string]Loader{"main": InMemory(one)},
		OnState: func(s State) { states <- s },
	})
	poll := pollFile("main", func(context.Context) (*simmatrix.Matrix, time.Time, error) { return m, written, failure }, s.cache, false)
	sum := func(m *simmatrix.Matrix) string { return m.Checksum()[:checksumDigits] }
	first := <-states
	want := State{
		Name: "main", Source: SourceFile, Version: sum(one), Checksum: one.Checksum(), Written: first.Written,
		Terms: 11, NonZeros: 10, Docs: 1000,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Fatalf("first state (-want +got):\n%s", diff)
	}
	bad := want
	bad.Problem = "the version cannot be served: checksum"
	good := want
	later := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	good.Version, good.Checksum, good.Written = sum(two), two.Checksum(), later
	for _, step := range []struct {
		name     string
		m        *simmatrix.Matrix
		written  time.Time
		failure  error
		version  string
		reported *State
	}{
		{"unchanged", nil, time.Time{}, nil, sum(one), nil},
		{"bad", nil, time.Time{}, errors.New("checksum"), sum(one), &bad},
		{"still bad", nil, time.Time{}, errors.New("checksum, as before"), sum(one), nil},
		{"good again", two, later, nil, sum(two), &good},
		{"the same content", two, later, nil, sum(two), nil},
	} {
		m, written, failure = step.m, step.written, step.failure
		poll(t.Context(), s.report)
		if got := served(s); got != step.version {
			t.Errorf("%s: version %s, want %s", step.name, got, step.version)
		}
		select {
		case got := <-states:
			if step.reported == nil || got != *step.reported {
				t.Errorf("%s: state %+v, want %+v", step.name, got, step.reported)
			}
		default:
			if step.reported != nil {
				t.Errorf("%s: no state, want %+v", step.name, step.reported)
			}
		}
	}
}

func TestChangedFileIsServedWithoutARestart(t *testing.T) {
	t.Parallel()
	matrices := make(chan *simmatrix.Matrix, 1)
	matrices <- newMatrix(t, "one", 10)
	s := open(t, Options{Files: map[string]Loader{"main": func(context.Context) (*simmatrix.Matrix, time.Time, error) {
		select {
		case m := <-matrices:
			return m, time.Now(), nil
		default:
			return nil, time.Time{}, nil
		}
	}}})
	pinned := s.Pin()
	matrices <- newMatrix(t, "two", 10)
	waitFor(t, 10*time.Second, "the new file", func() bool {
		rows, err := rowsOf(t, s, term(1))
		return err == nil && markOf(rows[0]) == "two"
	})
	rows := make([]simmatrix.Row, 1)
	if err := pinned.For("i", "f").Rows(t.Context(), []string{term(5)}, rows); err != nil || markOf(rows[0]) != "one" {
		t.Errorf("the pinned version gives %q, %v", markOf(rows[0]), err)
	}
}

func TestCloseEndsEveryGoroutine(t *testing.T) {
	r := startRedis(t)
	publish(t, r.admin(t), newMatrix(t, "one", 10))
	time.Sleep(20 * time.Millisecond) // for those of the client used so far
	before := runtime.NumGoroutine()
	for range 5 {
		s, err := Open(t.Context(), Options{
			Bindings:   append(everywhere(), Binding{Name: "file", Indices: []string{"*"}, Fields: []string{"*"}}),
			Files:      map[string]Loader{"file": InMemory(newMatrix(t, "two", 10))},
			Redis:      r.at(),
			CacheBytes: minCacheBytes, RedisTimeout: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rowsOf(t, s, term(1)); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, 5*time.Second, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

func ExampleStore() {
	m, err := simmatrix.New(simmatrix.Meta{Source: "by hand", Docs: 100}, []simmatrix.TermRow{
		{Term: "car", DocFreq: 12, Neighbors: []simmatrix.Neighbor{{Term: "automobile", Similarity: 0.75}}},
		{Term: "automobile", DocFreq: 3},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := Open(context.Background(), Options{
		Bindings:   []Binding{{Name: "main", Indices: []string{"*"}, Fields: []string{"title", "body"}}},
		Files:      map[string]Loader{"main": InMemory(m)},
		CacheBytes: 64 << 20,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	pinned := s.Pin() // once per request
	rows := make([]simmatrix.Row, 1)
	if err := pinned.For("shop", "body").Rows(context.Background(), []string{"car"}, rows); err != nil {
		fmt.Println(err)
		return
	}
	for n := range rows[0].All() {
		fmt.Printf("%s %.2f\n", n.Term, n.Similarity)
	}
	// Output: automobile 0.75
}

func TestTermsThatJoinAlikeDoNotShareALookUp(t *testing.T) {
	const rounds = 10 // each of other terms, as those of the last one are in the cache
	lookUps := func(round int) [2][2]string {
		x := term(round)
		return [2][2]string{{x + "\x00b", x + "c"}, {x, "b\x00" + x + "c"}}
	}
	var terms []simmatrix.TermRow
	for i := range rounds {
		for _, lookUp := range lookUps(i) {
			for _, term := range lookUp {
				terms = append(terms, simmatrix.TermRow{Term: "of " + term}, simmatrix.TermRow{
					Term: term, Neighbors: []simmatrix.Neighbor{{Term: "of " + term, Similarity: 0.5}},
				})
			}
		}
	}
	m, err := simmatrix.New(simmatrix.Meta{Source: "test"}, terms)
	must(t, err)
	r := startRedis(t)
	publish(t, r.admin(t), m)
	s := open(t, Options{Redis: r.at(), RedisTimeout: 10 * time.Second})
	for i := range rounds {
		r.hang() // so that the second look-up finds the first under way
		var both sync.WaitGroup
		for _, lookUp := range lookUps(i) {
			started := make(chan struct{})
			both.Go(func() {
				close(started)
				rows, err := rowsOf(t, s, lookUp[0], lookUp[1])
				if err != nil {
					t.Error(err)
					return
				}
				for k, row := range rows {
					if want := "of " + lookUp[k]; markOf(row) != want {
						t.Errorf("row of %q has the neighbor %q, want %q", lookUp[k], markOf(row), want)
					}
				}
			})
			<-started
		}
		r.resume()
		both.Wait()
	}
}
