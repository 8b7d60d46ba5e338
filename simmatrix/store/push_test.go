package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestPushWritesTheDocumentedKeys(t *testing.T) {
	s, a, _ := setup(t)
	m := newMatrix(t, "one", 500)
	v := check.Got(a.Push(t.Context(), "main", m, "käthe@host", nil))(t)
	keys := s.keys(t)
	slices.Sort(keys)
	want := []string{"akin:{main}:forms:" + v.ID, "akin:{main}:meta:" + v.ID, "akin:{main}:rows:" + v.ID, "akin:{main}:versions", "akin:{main}:words:" + v.ID}
	check.Equal(t, want, keys)
	checkComplete(t, s, v, m)
	got := check.Got(a.Versions(t.Context(), "main"))(t)
	check.Equal(t, []Version{v}, got)
	if v.Checksum != m.Checksum() || !cmp.Equal(v.Meta, m.Meta()) || v.By != "käthe@host" {
		t.Errorf("pushed %+v, want checksum %s and %+v", v, m.Checksum(), m.Meta())
	}
}

func TestPushRefusesBeforeRedisIsAsked(t *testing.T) {
	a := adminAt(t, Redis{URL: "unix:///nonexistent/redis.sock"}) // asking it would be another error
	empty := check.Got(simmatrix.New(simmatrix.Meta{}, nil))(t)
	long := make([]simmatrix.TermRow, 40) // 39 neighbors of 32,000 bytes in the first row
	for i := range long {
		long[i].Term = fmt.Sprintf("%05d", i) + strings.Repeat("x", 32_000)
		if i > 0 {
			long[0].Neighbors = append(long[0].Neighbors, simmatrix.Neighbor{Term: long[i].Term, Similarity: 1})
		}
	}
	wide := check.Got(simmatrix.New(simmatrix.Meta{}, long))(t)
	one := newMatrix(t, "one", 1)
	for _, tt := range []struct {
		what, name, by string
		m              *simmatrix.Matrix
		want           error
	}{
		{"no terms", "main", "", empty, ErrBadMatrix},
		{"a row of over 1 MiB", "main", "", wide, ErrBadMatrix},
		{"a name with a brace", "ma{in", "", one, ErrName},
		{"a line break in who pushes", "main", "a\nb", one, ErrName},
		{"an escape in who pushes", "main", "\x1b[2J", one, ErrName},
		{"no UTF-8 in who pushes", "main", "\xff", one, ErrName},
		{"who pushes is too long", "main", strings.Repeat("a", maxByBytes+1), one, ErrName},
	} {
		check.Error(t, tt.want, check.ErrOf(a.Push(t.Context(), tt.name, tt.m, tt.by, nil)), tt.what)
	}
	start := time.Now()
	_, err := a.Push(t.Context(), "main", one, "", nil)
	check.That(t, err != nil && time.Since(start) <= patience/2, "a good one without Redis: %v after %v", err, time.Since(start))
}

// during returns a progress that calls f once, after the first batch.
func during(f func()) simmatrix.Progress {
	var once sync.Once
	return inRounds(func(string) { once.Do(f) })
}

// inRounds returns a progress that calls f in every round of a push, after its
// first batch, with the stage.
func inRounds(f func(stage string)) simmatrix.Progress {
	reported := make(map[string]bool)
	return func(stage string, done, total int) {
		if strings.HasPrefix(stage, "push") && done < total && !reported[stage] {
			reported[stage] = true
			f(stage)
		}
	}
}

// many is so many terms that they are pushed in several batches.
const many = 40_000

func TestUnfinishedVersionExpiresAndIsNotListedOrActivated(t *testing.T) {
	t.Parallel()
	s, a, c := setup(t)
	called := false
	_, err := a.Push(t.Context(), "main", newMatrix(t, "one", many), "", during(func() {
		called = true
		for _, key := range s.keys(t) {
			ttl := c.PTTL(t.Context(), key).Val()
			check.That(t, ttl >= unfinishedFor-time.Minute && ttl <= unfinishedFor, "%s expires in %v, want about %v", key, ttl, unfinishedFor)
			_, id, ok := strings.Cut(key, "rows:")
			check.That(t, !ok || errors.Is(a.Activate(t.Context(), "main", id), ErrUnknownVersion), "%s was activated", id)
		}
		versions, err := a.Versions(t.Context(), "main")
		check.That(t, err == nil && len(versions) == 0, "versions %+v, %v", versions, err)
	}))
	if err != nil || !called {
		t.Fatal(err, called)
	}
}

// unfinished returns the keys that expire and hold part.
func unfinished(t *testing.T, s *server, part string) []string {
	t.Helper()
	var keys []string
	for _, key := range s.keys(t) {
		if strings.Contains(key, part) && s.client(t).TTL(t.Context(), key).Val() > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// loseRow takes a row away from the version that is being pushed.
func loseRow(t *testing.T, s *server) {
	t.Helper()
	for _, key := range unfinished(t, s, ":rows:") {
		s.client(t).HDel(t.Context(), key, term(0))
	}
}

func TestPushThatEndsEarlyLeavesRedisAsItWas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, s *server, cancel context.CancelFunc) // called in every round
		want  error
		says  string
	}{
		{"interrupted", func(_ *testing.T, _ *server, cancel context.CancelFunc) { cancel() }, context.Canceled, ""},
		{"out of memory", func(t *testing.T, s *server, _ context.CancelFunc) {
			t.Helper()
			check.OK(t, s.client(t).ConfigSet(t.Context(), "maxmemory", "1").Err())
		}, ErrNoMemory, "OOM"},
		{"rows lost again and again", func(t *testing.T, s *server, _ context.CancelFunc) { t.Helper(); loseRow(t, s) }, errIncomplete, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, a, _ := setup(t)
			id := publish(t, a, "old", 100)
			before := dump(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := a.Push(ctx, "main", newMatrix(t, "new", many), "", inRounds(func(string) { tt.spoil(t, s, cancel) }))
			check.Must(t, errors.Is(err, tt.want) && strings.Contains(err.Error(), tt.says), "error %v", err)
			check.Equal(t, before, dump(t, s))
			got, rows, err := a.Rows(t.Context(), "main", "", []string{term(3)})
			check.That(t, err == nil && got == id && markOf(rows[0]) == "old", "active is %s, row %v, %v; want %s", got, markOf(rows[0]), err, id)
		})
	}
}

func TestWhatIsLostOnTheWayIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, s *server){
		"a row": loseRow,
		"the header": func(t *testing.T, s *server) {
			t.Helper()
			s.client(t).Del(t.Context(), unfinished(t, s, ":meta:")...)
		},
		"everything": func(t *testing.T, s *server) { t.Helper(); s.client(t).FlushAll(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, a, _ := setup(t)
			m := newMatrix(t, "one", many)
			var stages []string
			v := check.Got(a.Push(t.Context(), "main", m, "", inRounds(func(stage string) {
				if stages = append(stages, stage); len(stages) == 1 {
					spoil(t, s)
				}
			})))(t)
			check.Equal(t, []string{"push", "push again"}, stages, "stages")
			checkComplete(t, s, v, m)
		})
	}
}

// checkComplete wants Redis to hold the version and nothing that expires.
func checkComplete(t *testing.T, s *server, v Version, m *simmatrix.Matrix) {
	t.Helper()
	c := s.client(t)
	for _, key := range s.keys(t) {
		check.Equal(t, -1, c.PTTL(t.Context(), key).Val(), key)
	}
	fields := c.HGetAll(t.Context(), rowsKey("main", v.ID)).Val()
	check.Equal(t, v.ID, fields[completeField])
	delete(fields, completeField)
	check.Equal(t, maps.Collect(m.Forms()), c.HGetAll(t.Context(), formsKey("main", v.ID)).Val())
	check.That(t, len(fields) == m.Len()+v.chunks(), "%d rows, want %d", len(fields), m.Len())
	var codec simmatrix.RowCodec
	for term, row := range m.Rows() {
		got, err := openRow(&codec, term, fields[term])
		check.Must(t, err == nil && got == row, "row of %s is %q, %v; want %q", term, got.Packed(), err, row.Packed())
	}
}

// dump returns the serialized value of every key.
func dump(t *testing.T, s *server) map[string]string {
	t.Helper()
	values := make(map[string]string)
	for _, key := range s.keys(t) {
		values[key] = s.client(t).Dump(t.Context(), key).Val()
	}
	return values
}

func TestPushGivesUpWhenRedisStaysAwayAndSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	s, a, _ := setup(t)
	a.patience = 2 * retryAfter
	waited := false
	push := during(s.kill)
	progress := func(stage string, done, total int) {
		waited = waited || stage == "wait for Redis" && done > 0 && done < total
		push(stage, done, total)
	}
	_, err := a.Push(t.Context(), "main", newMatrix(t, "one", many), "", progress)
	if err == nil || !strings.Contains(err.Error(), unfinishedFor.String()) || !strings.Contains(err.Error(), "tried again for") || !waited {
		t.Errorf("error %v, waited %v", err, waited)
	}
}

func TestPushGoesOnWhenRedisComesBack(t *testing.T) {
	t.Parallel()
	s, a, _ := setup(t, "--appendonly", "yes", "--appendfsync", "always") // to survive the kill
	m := newMatrix(t, "one", many)
	v := check.Got(a.Push(t.Context(), "main", m, "", during(func() { s.kill(); s.start(t) })))(t)
	checkComplete(t, s, v, m)
}

// TestPushThatIsCutOffLeavesNothingForEver ends the connection in the middle
// of the commands of a batch: what Redis has by then expires.
func TestPushThatIsCutOffLeavesNothingForEver(t *testing.T) {
	t.Parallel()
	m := newMatrix(t, "one", 15_000) // a batch and a half
	for _, cut := range []struct {
		before string
		nth    int
		keys   int // that are left: after the first batch the header and the rows
	}{
		{"hset", 1, 0},
		{"pexpire", 1, 0},
		{"pexpire", 2, 0},
		{"exec", 1, 0},
		{"multi", 2, 2},
		{"hset", 2, 2},
		{"pexpire", 3, 2},
		{"exec", 2, 2},
	} {
		s := startRedis(t)
		a := adminAt(t, Redis{URL: "redis://" + cutOff(t, s, cut.before, cut.nth)})
		a.patience = 0
		check.That(t, check.ErrOf(a.Push(t.Context(), "main", m, "", nil)) != nil, "before %s %d: no error", cut.before, cut.nth)
		keys := s.keys(t)
		check.Equal(t, cut.keys, len(keys), cut.before, cut.nth, keys)
		for _, key := range keys {
			ttl := s.client(t).PTTL(t.Context(), key).Val()
			check.That(t, ttl >= 0 && ttl <= unfinishedFor, "before %s %d: %s expires in %v", cut.before, cut.nth, key, ttl)
		}
	}
}

// cutOff returns the address of a relay to s that ends every connection, the
// first one before the name of a command comes for the nth time.
func cutOff(t *testing.T, s *server, before string, nth int) string {
	t.Helper()
	l := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for first := true; ; first = false {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("unix", s.socket)
			if err != nil || !first {
				conn.Close()
				continue
			}
			go io.Copy(conn, behind)
			go func() {
				defer behind.Close()
				defer conn.Close()
				for r, last := bufio.NewReader(conn), ""; ; {
					line, err := r.ReadString('\n')
					if line == before+"\r\n" && last == fmt.Sprintf("$%d\r\n", len(before)) {
						nth--
					}
					if err != nil || nth == 0 {
						return
					}
					io.WriteString(behind, line)
					last = line
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestTwoPushesAtOnceDoNotMix(t *testing.T) {
	t.Parallel()
	s, a, _ := setup(t)
	matrices := []*simmatrix.Matrix{newMatrix(t, "one", many), newMatrix(t, "two", many), newMatrix(t, "three", many)}
	versions := make([]Version, len(matrices))
	var done sync.WaitGroup
	for i, m := range matrices {
		done.Go(func() {
			var err error
			versions[i], err = a.Push(t.Context(), "main", m, "", nil)
			check.OK(t, err)
		})
	}
	done.Wait()
	for i, m := range matrices {
		checkComplete(t, s, versions[i], m)
	}
	listed, err := a.Versions(t.Context(), "main")
	check.That(t, err == nil && len(listed) == len(versions), "versions %+v, %v", listed, err)
}
