package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The fault tests do something bad to akin, or to what it talks to, while
// clients search through it, and count what the clients notice. `make chaos`
// runs them for longer and writes what it saw into testdata/faults.md, and the
// worst of it into docs/operations.md.

// longChaos reports whether this is the long form.
func longChaos() bool { return os.Getenv("AKIN_CHAOS") == "long" }

// chaosTimes returns how long a fault lasts, about how long the clients search
// before it and after it, and what a client waits between two searches: the load
// is that of people. The short form leaves more of the processors to the tests
// that run at the same time.
func chaosTimes() (phase, pause time.Duration) {
	if longChaos() {
		return 10 * time.Second, 15 * time.Millisecond
	}
	return 1500 * time.Millisecond, 50 * time.Millisecond
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
	// with adds to the stage, and to the configuration of its akin, before that
	// starts; nil for nothing.
	with func(t *testing.T, s *stage, config section)
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
	// index is what clients search, and model a language model that orders their
	// hits, nil for none.
	index string
	model *textModel
	// target is where clients go, akin where a fault says nothing else.
	target atomic.Pointer[cluster]
}

const chaosIndex = "akin-e2e-chaos"

// TestChaos runs every fault, some of them at the same time.
func TestChaos(t *testing.T) {
	long(t)
	t.Parallel()
	e := oneEngine(t)
	e.makeIndex(t, chaosIndex, relatedDefinition)
	e.index(t, chaosIndex, relatedDocuments())
	rows := make([]string, len(faults))
	t.Run("faults", func(t *testing.T) {
		for i, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				rows[i] = runFault(t, e, f)
				t.Log(rows[i])
			})
		}
	})
	if !t.Failed() {
		checkReliabilityTable(t, rows)
	}
}

// runFault returns the row of the table.
func runFault(t *testing.T, e *engine, f fault) string {
	t.Helper()
	s := setStage(t, e, f.with)
	phase, pause := chaosTimes()
	clients := startLoad(t, chaosClients, pause, chaosPatience, func() cluster { return *s.target.Load() }, s.index,
		func(client, n int) string { return fmt.Sprintf("car unseen%dx%d", client, n) }) // a text that akin has not seen
	time.Sleep(phase / 3) // The clients search in peace.
	mend := f.start(t, s)
	broken := time.Now()
	time.Sleep(phase)                                                                                    // The fault lasts.
	waitFor(t, 2*chaosPatience, "an answer to a search that began while the fault lasts", func() error { // the one before it may take as long
		if !slices.ContainsFunc(clients.last(-1), func(o observation) bool { return o.start.After(broken) }) {
			return fmt.Errorf("none")
		}
		return nil
	})
	if mend != nil {
		mend()
	}
	mended := time.Now()
	waitFor(t, recoverWithin, "expanded searches after the fault", func() error {
		for _, o := range clients.last(4 * chaosClients) {
			if o.start.Before(mended) || o.ids != expandedHits {
				return fmt.Errorf("not yet: %q, %w", o.ids, o.err)
			}
		}
		return nil
	})
	time.Sleep(phase / 3) // The clients search in peace again.
	sum := summarize(clients.stop(), broken, mended)
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

// last returns the last n observations so far, all of them for -1.
func (l *load) last(n int) []observation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 {
		n = len(l.seen)
	}
	return slices.Clone(l.seen[max(0, len(l.seen)-n):])
}

func setStage(t *testing.T, e *engine, with func(*testing.T, *stage, section)) *stage {
	t.Helper()
	s := &stage{engine: e, redis: ownRedis(t), index: chaosIndex}
	var urls []string
	for range 2 {
		n := startFrontNode(t, e)
		s.nodes = append(s.nodes, n)
		urls = append(urls, "http://"+n.address)
	}
	pushMatrix(t, s.redis, "main", relatedFile(t, vectorsA))
	config := section{
		"cluster":   section{"urls": urls},
		"expansion": section{"budget": "500ms"}, // the machine runs other faults at the same time
		"matrices":  []section{{"name": "main"}},
		"redis":     section{"url": s.redis.url},
	}
	if with != nil {
		with(t, s, config)
	}
	s.akin = setupWide(t, e, config)
	s.target.Store(&s.akin.cluster)
	return s
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

func summarize(seen []observation, broken, mended time.Time) summary {
	sum := summary{sent: len(seen), errors: map[string]int{}}
	for _, o := range seen {
		took := o.end.Sub(o.start)
		sum.slowest = max(sum.slowest, took)
		expanded := o.ids == expandedHits
		problem := ""
		switch {
		case o.err != nil:
			sum.failed++
			problem = o.err.Error()
		case !expanded && o.ids != plainHits:
			sum.wrong++
			problem = "hits " + o.ids
		}
		if problem != "" && len(sum.errors) < 10 {
			sum.errors[problem]++
		}
		if o.end.After(broken) && o.end.Before(mended) {
			sum.during++
			if !expanded {
				sum.plain++
			}
		}
		if o.end.After(mended) && (problem != "" || !expanded || took > slowSearch) {
			sum.recovered = max(sum.recovered, o.end.Sub(mended))
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
	table := readFile(t, reliabilityFile)
	for _, f := range faults {
		if !strings.Contains(table, "| "+f.name+" |") {
			t.Errorf("the table in %s has no row %q; write it by make chaos", reliabilityFile, f.name)
		}
	}
	if got, want := strings.Count(table, "\n"), len(faults)+2; got != want {
		t.Errorf("the table in %s has %d lines, want %d: rows of faults that are no longer tried?", reliabilityFile, got, want)
	}
}

// readOperationsDoc returns the document, the table in it by itself.
func readOperationsDoc(t *testing.T) (before, table, after string) {
	t.Helper()
	before, rest, ok := strings.Cut(readFile(t, operationsDoc), reliabilityBegin)
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
	if want := worstFaults(t, readFile(t, reliabilityFile)); table != want {
		t.Errorf("%s has\n%s\nwant, of %s,\n%s", operationsDoc, table, reliabilityFile, want)
	}
}
