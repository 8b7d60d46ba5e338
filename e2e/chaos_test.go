package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The fault tests do something bad to akin, or to what it talks to, while
// clients search through it, and count what the clients notice. `make chaos`
// runs them for longer and writes what it saw into testdata/faults.md, and the
// worst of it into docs/operations.md.

// longChaos reports whether this is the long form.
func longChaos() bool { return os.Getenv("AKIN_CHAOS") == "long" }

// chaosPhase is how long a fault lasts, and about how long the clients search
// before it and after it.
func chaosPhase() time.Duration {
	if longChaos() {
		return 10 * time.Second
	}
	return 1500 * time.Millisecond
}

// chaosPause is what a client waits between two searches: the load is that of
// people, not as much as two processors can take. The short form leaves more of
// these to the tests that run at the same time.
func chaosPause() time.Duration {
	if longChaos() {
		return 15 * time.Millisecond
	}
	return 50 * time.Millisecond
}

const (
	// chaosClients search at the same time.
	chaosClients = 6
	// chaosPatience is what a client waits for an answer.
	chaosPatience = 5 * time.Second
	// recoverWithin bounds the time from the end of a fault until searches are
	// expanded again.
	recoverWithin = 30 * time.Second
	// slowSearch is what a client calls slow.
	slowSearch = time.Second
)

// A fault is one row of the table in testdata/faults.md.
type fault struct {
	name string
	// config is laid over akin's configuration.
	config section
	// start breaks something; what it returns mends it.
	start func(t *testing.T, s *stage) (mend func())
	// lost is how many searches may fail: those that were on their way to what
	// was killed and cannot be sent twice. Most faults lose none.
	lost int
	// plain says that searches must not be expanded while the fault lasts: the
	// test would else not see that it did anything.
	plain bool
	// after is checked at the end, nil for nothing.
	after func(t *testing.T, s *stage)
}

// A stage is what a fault has to play with: akin before two nodes, with its
// matrix in a Redis of its own.
type stage struct {
	engine *engine
	nodes  []*frontNode
	redis  *redisServer
	akin   *akin
	// target is where clients go, akin where a fault says nothing else.
	target atomic.Pointer[cluster]
}

const chaosIndex = "akin-e2e-chaos"

// TestChaos runs every fault, some of them at the same time.
func TestChaos(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	e.makeIndex(t, chaosIndex, relatedDefinition)
	e.index(t, chaosIndex, relatedDocuments())
	file := relatedFile(t, vectorsA)
	rows := make([]string, len(faults))
	t.Run("faults", func(t *testing.T) {
		for i, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				rows[i] = runFault(t, e, file, f)
				t.Log(rows[i])
			})
		}
	})
	if !t.Failed() {
		checkReliabilityTable(t, rows)
	}
}

// runFault returns the row of the table.
func runFault(t *testing.T, e *engine, file string, f fault) string {
	t.Helper()
	s := setStage(t, e, file, f.config)
	load := startLoad(t, s)
	time.Sleep(chaosPhase() / 3)
	mend := f.start(t, s)
	broken := time.Now()
	time.Sleep(chaosPhase())
	load.awaitAnswer(t, broken)
	if mend != nil {
		mend()
	}
	mended := time.Now()
	load.awaitExpanded(t)
	time.Sleep(chaosPhase() / 3)
	seen := load.stop()

	sum := summarize(seen, broken, mended)
	if sum.failed > f.lost {
		t.Errorf("%d searches failed, at most %d may: %v", sum.failed, f.lost, sum.errors)
	}
	if sum.wrong > 0 {
		t.Errorf("%d searches were answered with wrong hits: %v", sum.wrong, sum.errors)
	}
	if sum.during == 0 {
		t.Error("no search was answered while the fault lasted")
	}
	if f.plain && sum.plain == 0 {
		t.Error("the fault was not felt: every search was expanded")
	}
	if f.after != nil {
		f.after(t, s)
	}
	return sum.row(f.name)
}

func setStage(t *testing.T, e *engine, file string, config section) *stage {
	t.Helper()
	s := &stage{engine: e, redis: ownRedis(t)}
	var urls []string
	for range 2 {
		n := startFrontNode(t, e.url)
		s.nodes = append(s.nodes, n)
		urls = append(urls, n.url())
	}
	pushMatrix(t, s.redis, "main", file)
	full := section{
		"cluster":   section{"urls": urls},
		"expansion": section{"budget": "500ms"}, // the machine runs other faults at the same time
		"matrices":  []section{{"name": "main"}},
		"redis":     section{"url": s.redis.url},
	}
	maps.Copy(full, config)
	s.akin = startAkin(t, full)
	s.target.Store(&s.akin.cluster)
	s.akin.awaitMatrix(t, "main")
	return s
}

// db returns a client of the stage's Redis.
func (s *stage) db(t *testing.T) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(s.redis.url)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(options)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// What a client saw of one search.
type sighting struct {
	start, end time.Time
	expanded   bool
	wrong      bool
	err        error
}

// A load is the clients that search.
type load struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	seen   []sighting
	// inRow counts the expanded searches since the last one that was not.
	inRow int
}

// startLoad lets clients search until the load is stopped.
func startLoad(t *testing.T, s *stage) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	http := &http.Client{Timeout: chaosPatience, Transport: &http.Transport{MaxIdleConnsPerHost: chaosClients}}
	for i := range chaosClients {
		l.wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// A word that no document has makes a text that akin has not seen.
				word := fmt.Sprintf("unseen%dx%d", i, n)
				l.note(searchOnce(context.WithoutCancel(ctx), s.target.Load(), http, word))
				time.Sleep(chaosPause())
			}
		})
	}
	t.Cleanup(func() { cancel(); l.wg.Wait() })
	return l
}

// searchOnce searches for car and a word.
func searchOnce(ctx context.Context, c *cluster, http *http.Client, word string) sighting {
	body := `{"query":{"match":{"body":"car ` + word + `"}},"size":100,"_source":false}`
	seen := sighting{start: time.Now()}
	hits, err := c.searchWith(ctx, http, "/"+chaosIndex+"/_search", body)
	seen.end, seen.err = time.Now(), err
	ids := strings.Join(sortedIDs(hits), " ")
	seen.expanded = ids == expandedHits
	seen.wrong = err == nil && !seen.expanded && ids != plainHits
	if seen.wrong {
		seen.err = fmt.Errorf("hits %q", ids)
	}
	return seen
}

func (l *load) note(s sighting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, s)
	if l.inRow++; !s.expanded {
		l.inRow = 0
	}
}

// awaitExpanded waits until a number of searches in a row are expanded.
func (l *load) awaitExpanded(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	l.inRow = 0
	l.mu.Unlock()
	waitFor(t, recoverWithin, "expanded searches after the fault", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.inRow < 4*chaosClients {
			return fmt.Errorf("%d searches, the last %d of them expanded", len(l.seen), l.inRow)
		}
		return nil
	})
}

// awaitAnswer waits until a search has ended since the fault began: on a busy
// machine that may take longer than the fault is meant to last.
func (l *load) awaitAnswer(t *testing.T, broken time.Time) {
	t.Helper()
	waitFor(t, chaosPatience, "an answer while the fault lasts", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !slices.ContainsFunc(l.seen, func(s sighting) bool { return s.end.After(broken) }) {
			return fmt.Errorf("%d searches, none since", len(l.seen))
		}
		return nil
	})
}

func (l *load) stop() []sighting {
	l.cancel()
	l.wg.Wait()
	return l.seen
}

// A summary is what the clients saw of a fault.
type summary struct {
	sent, failed, wrong int
	// during counts the searches answered while the fault lasted, plain those of
	// them that were not expanded.
	during, plain int
	slowest       time.Duration
	// recovered is the time from the mending to the end of the last search that
	// failed, was slow or was not expanded.
	recovered time.Duration
	errors    map[string]int
}

func summarize(seen []sighting, broken, mended time.Time) summary {
	sum := summary{sent: len(seen), errors: map[string]int{}}
	for _, s := range seen {
		took := s.end.Sub(s.start)
		sum.slowest = max(sum.slowest, took)
		switch {
		case s.wrong:
			sum.wrong++
		case s.err != nil:
			sum.failed++
		}
		if s.err != nil && len(sum.errors) < 10 {
			sum.errors[s.err.Error()]++
		}
		if s.end.After(broken) && s.end.Before(mended) {
			sum.during++
			if !s.expanded {
				sum.plain++
			}
		}
		if s.end.After(mended) && (s.err != nil || !s.expanded || took > slowSearch) {
			sum.recovered = max(sum.recovered, s.end.Sub(mended))
		}
	}
	return sum
}

// row returns the summary as a row of a Markdown table.
func (s summary) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d of %d | %d ms | %.1f s |", name, s.sent, s.failed, s.wrong,
		s.plain, s.during, s.slowest.Milliseconds(), s.recovered.Seconds())
}

const (
	reliabilityFile  = "testdata/faults.md"
	reliabilityHead  = "| what was done | searches | failed | wrong | not expanded meanwhile | slowest | well again after |\n|---|---|---|---|---|---|---|\n"
	operationsDoc    = repository + "/docs/operations.md"
	reliabilityBegin = "<!-- make chaos -->\n"
	reliabilityEnd   = "<!-- end -->\n"
)

// checkReliabilityTable checks that the table has a row for each fault, and
// with -update writes the rows, if there are some, the worst of them into the
// document, too.
func checkReliabilityTable(t *testing.T, rows []string) {
	t.Helper()
	if *update && rows != nil {
		table := reliabilityHead + strings.Join(rows, "\n") + "\n"
		before, _, after := readOperationsDoc(t)
		for file, text := range map[string]string{
			reliabilityFile: table,
			operationsDoc:   before + reliabilityBegin + worstFaults(t, table) + reliabilityEnd + after,
		} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	table := readReliabilityTable(t)
	for _, f := range faults {
		if !strings.Contains(table, "| "+f.name+" |") {
			t.Errorf("the table in %s has no row %q; write it by make chaos", reliabilityFile, f.name)
		}
	}
	if got, want := strings.Count(table, "\n"), len(faults)+2; got != want {
		t.Errorf("the table in %s has %d lines, want %d: rows of faults that are no longer tried?", reliabilityFile, got, want)
	}
}

func readReliabilityTable(t *testing.T) string {
	t.Helper()
	table, err := os.ReadFile(reliabilityFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(table)
}

// readOperationsDoc returns the document, the table in it by itself.
func readOperationsDoc(t *testing.T) (before, table, after string) {
	t.Helper()
	content, err := os.ReadFile(operationsDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(content), reliabilityBegin)
	table, after, ended := strings.Cut(rest, reliabilityEnd)
	if !ok || !ended {
		t.Fatalf("%s lacks the marks of the table", operationsDoc)
	}
	return before, table, after
}

// worstFaults returns, of the table of faults, those by which a search failed or
// had wrong hits, or took over a second, or akin was well only after a second.
func worstFaults(t *testing.T, table string) string {
	t.Helper()
	var worst strings.Builder
	worst.WriteString(reliabilityHead)
	for row := range strings.Lines(strings.TrimPrefix(table, reliabilityHead)) {
		var sent, failed, wrong, plain, during, slowest int
		var recovered float64
		_, figures, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if _, err := fmt.Sscanf(figures, "%d | %d | %d | %d of %d | %d ms | %f s |", &sent, &failed, &wrong, &plain, &during, &slowest, &recovered); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		if failed > 0 || wrong > 0 || slowest > 1000 || recovered > 1 {
			worst.WriteString(row)
		}
	}
	return worst.String()
}

func TestOperationsDocShowsTheWorstFaults(t *testing.T) {
	checkReliabilityTable(t, nil)
	_, table, _ := readOperationsDoc(t)
	if want := worstFaults(t, readReliabilityTable(t)); table != want {
		t.Errorf("%s has\n%s\nwant, of %s,\n%s", operationsDoc, table, reliabilityFile, want)
	}
}
