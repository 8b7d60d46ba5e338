package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// searchers search side by side, each for some clauses in a request: so many
// look-ups may still be of a version that another has replaced.
const searchers, clauses = 2, 2

// A searcher looks terms up as clients do, until the test ends, and checks that
// each answer is the rows of the version that was pinned, or an error that may be.
type searcher struct {
	stop    func()
	store   *Store
	mayBe   []error
	longest time.Duration

	mu     sync.Mutex
	marks  map[string]string // of versions
	served map[string]int    // look-ups by version
	failed int
}

// search starts searches for terms of newMatrix; marks has those of versions.
func search(t *testing.T, s *Store, terms int, marks map[string]string, mayBe ...error) *searcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	c := &searcher{store: s, mayBe: mayBe, marks: marks, served: make(map[string]int), stop: func() { cancel(); done.Wait() }}
	for reader := range searchers {
		rng := rand.New(rand.NewPCG(7, uint64(reader)))
		done.Go(func() {
			for ctx.Err() == nil {
				c.request(ctx, t, rng, terms)
				time.Sleep(time.Millisecond) // Other tests and Redis want the processor, too.
			}
		})
	}
	t.Cleanup(c.stop)
	return c
}

// failures returns how many look-ups failed so far.
func (c *searcher) failures() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// knows says which mark the rows of a version have.
func (c *searcher) knows(version, mark string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks[version] = mark
}

// request looks terms up for two clauses of one request.
func (c *searcher) request(ctx context.Context, t *testing.T, rng *rand.Rand, terms int) {
	t.Helper()
	pinned, versions := c.store.Pin(), []string(nil)
	for range clauses {
		rows := pinned.For("i", "f")
		if rows == nil {
			return
		}
		asked := []string{term(rng.IntN(terms)), term(rng.IntN(terms)), "unknown"}
		got := make([]simmatrix.Row, len(asked))
		start := time.Now()
		err := rows.Rows(ctx, asked, got)
		version := rows.Version()[len("main@"):]
		versions = append(versions, version)
		c.mu.Lock()
		c.longest = max(c.longest, time.Since(start))
		mark, known := c.marks[version]
		switch {
		case err != nil && ctx.Err() != nil: // the test has ended
		case err != nil && !slices.ContainsFunc(c.mayBe, func(e error) bool { return errors.Is(err, e) }):
			t.Error(err)
		case err != nil:
			c.failed++
		case !known || fmt.Sprint(markOf(got[0]), markOf(got[1]), markOf(got[2])) != mark+mark:
			t.Errorf("wrong: %q of %s are %q, %q, %q", asked, version, markOf(got[0]), markOf(got[1]), markOf(got[2]))
		default:
			c.served[version]++
		}
		c.mu.Unlock()
	}
	check.Equal(t, versions[1], versions[0], versions)
}

// count returns how many look-ups have found rows of a version.
func (c *searcher) count(version string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served[version]
}
