package store

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// inFiles returns a store with a matrix in memory for each name of bindings;
// the file of "unread" cannot be read.
func inFiles(t *testing.T, bindings ...Binding) *Store {
	t.Helper()
	files := make(map[string]Loader)
	for _, b := range bindings {
		files[b.Name] = InMemory(newMatrix(t, b.Name, 3))
	}
	files["unread"] = func(context.Context) (*simmatrix.Matrix, time.Time, error) {
		return nil, time.Time{}, errors.New("no file")
	}
	return open(t, Options{Bindings: bindings, Files: files})
}

// nameOf returns the name of the matrix that rows are of, "" for none.
func nameOf(rows *Rows) string {
	if rows == nil {
		return ""
	}
	name, _, _ := strings.Cut(rows.Version(), "@")
	return name
}

func TestFirstBindingThatMatchesDecides(t *testing.T) {
	all := []string{"*"}
	shop := inFiles(
		t,
		Binding{Name: "titles", Indices: []string{"shop", "shop-*"}, Fields: []string{"title", "*.title"}},
		Binding{Name: "unread", Indices: []string{"shop*"}, Fields: []string{"notes"}},
		Binding{Name: "shop", Indices: []string{"shop*"}, Fields: all},
		Binding{Name: "titles", Indices: all, Fields: []string{"headline"}},
	)
	languages := inFiles( // the example of docs/config.md
		t,
		Binding{Name: "german", Indices: all, Fields: []string{"title.de", "body.de"}},
		Binding{Name: "french", Indices: all, Fields: []string{"*.fr"}},
		Binding{Name: "catalogue", Indices: []string{"catalogue", "products-*"}, Fields: all},
		Binding{Name: "main", Indices: all, Fields: all},
	)
	for _, tt := range []struct {
		name, index, field string
		of                 *Store
		want               string
	}{
		{"first", "shop", "title", shop, "titles"},
		{"a field below", "shop-1", "de.title", shop, "titles"},
		{"every index of a list", "shop,shop-1", "title", shop, "titles"},
		{"one of a list goes elsewhere", "shop,shops", "title", shop, "shop"},
		{"second", "shop-1", "body", shop, "shop"},
		{"no version: not the next binding", "shop", "notes", shop, ""},
		{"all indices", "", "headline", shop, "titles"},
		{"all indices by name", "_all", "headline", shop, "titles"},
		{"all indices are no shop", "", "title", shop, ""},
		{"unbound index", "logs", "title", shop, ""},
		{"a field above an index", "products-1", "title.de", languages, "german"},
		{"the second field of a list", "products-1", "body.de", languages, "german"},
		{"a field that no pattern has", "products-1", "text.de", languages, "catalogue"},
		{"a field by a pattern", "products-1", "title.fr", languages, "french"},
		{"a field two below", "logs", "a.b.fr", languages, "french"},
		{"all fields of an index", "products-1", "title", languages, "catalogue"},
		{"a list of two patterns", "catalogue,products-2", "title", languages, "catalogue"},
		{"a list that is not all bound", "catalogue,logs", "title", languages, "main"},
		{"all indices go to the last", "", "title", languages, "main"},
		{"the rest", "logs", "title.en", languages, "main"},
	} {
		check.Equal(t, tt.want, nameOf(tt.of.Pin().For(tt.index, tt.field)), tt.name, tt.index, tt.field)
	}
}

func TestRowsAmongSomeMatricesAreOfTheFirstBoundThatFits(t *testing.T) {
	all := []string{"*"}
	s := inFiles(
		t,
		Binding{Name: "narrow", Indices: all, Fields: []string{"title"}},
		Binding{Name: "wide", Indices: all, Fields: all},
		Binding{Name: "last", Indices: []string{"logs"}, Fields: all},
		Binding{Name: "unread", Indices: all, Fields: all},
	)
	for _, tt := range []struct {
		names              []string
		index, field, want string
	}{
		{[]string{"wide", "narrow"}, "a", "title", "narrow"}, // in the order of the bindings
		{[]string{"wide"}, "a", "title", "wide"},
		{[]string{"narrow"}, "a", "body", ""},
		{[]string{"narrow", "last"}, "logs", "body", "last"},
		{[]string{"last"}, "a", "title", ""},
		{[]string{"unread", "unknown"}, "logs", "title", ""},
		{[]string{}, "logs", "title", ""},
		{nil, "logs", "title", "narrow"},
	} {
		m, err := s.Pin().Match(tt.index, tt.field, tt.names, func() ([]string, error) { return nil, nil })
		got := nameOf(m.Rows)
		check.That(t, err == nil && got == tt.want, "%v, %s, %s: rows of %q, %v; want %q", tt.names, tt.index, tt.field, got, err, tt.want)
	}
}

func TestBindingMatchesWhatAnExpressionStandsFor(t *testing.T) {
	s := inFiles(
		t,
		Binding{Name: "titles", Indices: []string{"shop*"}, Fields: []string{"title", "*.title"}},
		Binding{Name: "docs", Indices: []string{"docs*", "-tenant-*"}, Fields: []string{"*"}},
		Binding{Name: "unread", Indices: []string{"empty"}, Fields: []string{"*"}},
		Binding{Name: "all", Indices: []string{"*"}, Fields: []string{"body"}},
	)
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
		asked := 0
		m, err := s.Pin().Match(tt.index, tt.field, nil, func() ([]string, error) {
			asked++
			if tt.index == "away" {
				return nil, away
			}
			return resolve[tt.index], nil
		})
		got := nameOf(m.Rows)
		if got != tt.want || m.Named != tt.named && got != "" || errors.Is(err, away) != (tt.index == "away") {
			t.Errorf("%s: index %q, field %q: matrix %q, named %v, %v; want %q, %v", tt.name, tt.index, tt.field, got, m.Named, err, tt.want, tt.named)
		}
		check.Equal(t, map[bool]int{true: 1}[tt.asks], asked, tt.name)
	}
}

func TestRowsFromMemory(t *testing.T) {
	m := newMatrix(t, "one", 10)
	s := open(t, Options{Files: map[string]Loader{"main": InMemory(m)}})
	rows := s.Pin().For("i", "f")
	check.Equal(t, "main@"+m.Checksum()[:16], rows.Version(), "version")
	check.That(t, rows.Docs() == 1000 && rows.Checksum() == m.Checksum(), "docs %d, checksum %q; want 1000, %q", rows.Docs(), rows.Checksum(), m.Checksum())
	for _, pass := range []string{"cold", "cached"} {
		got := []simmatrix.Row{m.Row("one"), {}, m.Row("one")} // stale, to be overwritten
		if err := rows.Rows(t.Context(), []string{term(1), "unknown", term(2)}, got); err != nil {
			t.Fatal(pass, err)
		}
		check.That(t, got[0] == m.Row(term(1)) && got[1].IsZero() && got[2] == m.Row(term(2)), "%s: %+v", pass, got)
	}
	stats := s.Stats()
	if stats.Cache.Hits != 3 || stats.Cache.Misses != 3 {
		t.Errorf("%d hits, %d misses; want 3 and 3: unknown terms are cached too", stats.Cache.Hits, stats.Cache.Misses)
	}
	err := rows.Rows(t.Context(), []string{"a"}, nil)
	check.That(t, err != nil, "one term and no rows: no error")
}

func TestCachedLookUpAllocatesNothing(t *testing.T) {
	s := open(t, Options{Files: map[string]Loader{"main": InMemory(newMatrix(t, "one", 10))}})
	terms := []string{term(1), term(2), term(3), "unknown"}
	rows := make([]simmatrix.Row, len(terms))
	lookUp := func() {
		check.OK(t, s.Pin().For("i,j-*", "title").Rows(t.Context(), terms, rows))
	}
	lookUp()
	// The cache's own upkeep, spread over many reads, is below one.
	n := testing.AllocsPerRun(1000, lookUp)
	check.That(t, n <= 0, "%v allocations", n)
}

func TestBadNewFileKeepsTheOld(t *testing.T) {
	one, two := newMatrix(t, "one", 10), newMatrix(t, "two", 10)
	var (
		m       *simmatrix.Matrix
		written time.Time
		failure error
		states  []State
	)
	s := open(t, Options{Files: map[string]Loader{"main": InMemory(one)}, OnState: func(s State) { states = append(states, s) }})
	poll := pollFile("main", func(context.Context) (*simmatrix.Matrix, time.Time, error) { return m, written, failure }, s.cache, false)
	state := func(m *simmatrix.Matrix, written time.Time, problem string) State {
		return State{
			Name: "main", Source: SourceFile, Version: m.Checksum()[:checksumDigits], Checksum: m.Checksum(), Written: written,
			Terms: 11, NonZeros: 10, Docs: 1000, Problem: problem,
		}
	}
	begin, later := states[0].Written, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	first, bad, good := state(one, begin, ""), state(one, begin, "the version cannot be served: checksum"), state(two, later, "")
	for _, step := range []struct {
		name     string
		m        *simmatrix.Matrix
		written  time.Time
		failure  error
		reported []State // so far
	}{
		{"unchanged", nil, time.Time{}, nil, []State{first}},
		{"bad", nil, time.Time{}, errors.New("checksum"), []State{first, bad}},
		{"still bad", nil, time.Time{}, errors.New("checksum, as before"), []State{first, bad}},
		{"good again", two, later, nil, []State{first, bad, good}},
		{"the same content", two, later, nil, []State{first, bad, good}},
	} {
		m, written, failure = step.m, step.written, step.failure
		poll(t.Context(), s.report)
		check.Equal(t, step.reported, states, step.name)
		check.Equal(t, step.reported[len(step.reported)-1].Version, served(s), step.name)
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
	waitFor(t, "the new file", func() bool {
		rows, err := rowsOf(t, s, term(1))
		return err == nil && markOf(rows[0]) == "two"
	})
	rows, err := rowsOfVersion(t, pinned.For("i", "f"), term(5))
	check.That(t, err == nil && markOf(rows[0]) == "one", "the pinned version gives %q, %v", markOf(rows[0]), err)
}

func TestCloseEndsEveryGoroutine(t *testing.T) {
	r, a, _ := setup(t)
	publish(t, a, "one", 10)
	openAndClose := func() {
		s := check.Got(Open(t.Context(), Options{
			Bindings:   append(everywhere(), Binding{Name: "file", Indices: []string{"*"}, Fields: []string{"*"}}),
			Files:      map[string]Loader{"file": InMemory(newMatrix(t, "two", 10))},
			Redis:      r.at(),
			CacheBytes: minCacheBytes, RedisTimeout: time.Second,
		}))(t)
		wantMark(t, s, "one", term(1))
		check.OK(t, s.Close())
	}
	before := runtime.NumGoroutine()
	for range 5 {
		openAndClose()
	}
	waitFor(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}
