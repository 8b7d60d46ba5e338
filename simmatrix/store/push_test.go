package store

import (
	"bytes"
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

	"github.com/akin-search/akin/simmatrix"
)

func TestPushWritesTheDocumentedKeys(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	m := newMatrix(t, "one", 500)
	v, err := a.Push(t.Context(), "main", m, "käthe@host", nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := s.keys(t)
	slices.Sort(keys)
	want := []string{"akin:{main}:forms:" + v.ID, "akin:{main}:meta:" + v.ID, "akin:{main}:rows:" + v.ID, "akin:{main}:versions", "akin:{main}:words:" + v.ID}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	checkComplete(t, s, v, m)
	got, err := a.Versions(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Version{v}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if v.Checksum != m.Checksum() || !cmp.Equal(v.Meta, m.Meta()) || v.By != "käthe@host" {
		t.Errorf("pushed %+v, want checksum %s and %+v", v, m.Checksum(), m.Meta())
	}
}

func TestPushRefusesABadMatrixBeforeRedisIsAsked(t *testing.T) {
	a, err := OpenAdmin(Redis{URL: "unix:///nonexistent/redis.sock"}) // asking it would be another error
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	empty, err := simmatrix.New(simmatrix.Meta{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	long := make([]simmatrix.TermRow, 40) // 39 neighbors of 32,000 bytes in the first row
	for i := range long {
		long[i].Term = fmt.Sprintf("%05d", i) + strings.Repeat("x", 32_000)
		if i > 0 {
			long[0].Neighbors = append(long[0].Neighbors, simmatrix.Neighbor{Term: long[i].Term, Similarity: 1})
		}
	}
	wide, err := simmatrix.New(simmatrix.Meta{}, long)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Push(t.Context(), "main", empty, "", nil); !errors.Is(err, ErrBadMatrix) {
		t.Errorf("no terms: %v", err)
	}
	if _, err := a.Push(t.Context(), "main", wide, "", nil); !errors.Is(err, ErrBadMatrix) {
		t.Errorf("a row of over 1 MiB: %v", err)
	}
	if _, err := a.Push(t.Context(), "ma{in", newMatrix(t, "one", 1), "", nil); !errors.Is(err, ErrName) {
		t.Errorf("a name with a brace: %v", err)
	}
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

// manyBatches is large enough for a push in several batches.
func manyBatches(tb testing.TB, mark string) *simmatrix.Matrix {
	tb.Helper()
	return newMatrix(tb, mark, 40_000)
}

func TestUnfinishedPushExpiresAndIsNotListed(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	a, c := s.admin(t), s.client(t)
	called := false
	_, err := a.Push(t.Context(), "main", manyBatches(t, "one"), "", during(func() {
		called = true
		for _, key := range s.keys(t) {
			ttl := c.PTTL(t.Context(), key).Val()
			if ttl < unfinishedFor-time.Minute || ttl > unfinishedFor {
				t.Errorf("%s expires in %v, want about %v", key, ttl, unfinishedFor)
			}
		}
		versions, err := a.Versions(t.Context(), "main")
		if err != nil || len(versions) != 0 {
			t.Errorf("versions %+v, %v", versions, err)
		}
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
		name string
		// spoil makes the push fail. It is called in every round.
		spoil func(t *testing.T, s *server, cancel context.CancelFunc)
		want  func(error) bool
	}{
		{
			"interrupted",
			func(_ *testing.T, _ *server, cancel context.CancelFunc) { cancel() },
			func(err error) bool { return errors.Is(err, context.Canceled) },
		},
		{
			"out of memory",
			func(t *testing.T, s *server, _ context.CancelFunc) {
				t.Helper()
				if err := s.client(t).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
					t.Error(err)
				}
			},
			func(err error) bool { return errors.Is(err, ErrNoMemory) && strings.Contains(err.Error(), "OOM") },
		},
		{
			"rows lost again and again",
			func(t *testing.T, s *server, _ context.CancelFunc) { t.Helper(); loseRow(t, s) },
			func(err error) bool { return errors.Is(err, errIncomplete) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startRedis(t)
			a := s.admin(t)
			id := publish(t, a, newMatrix(t, "old", 100))
			before := dump(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := a.Push(ctx, "main", manyBatches(t, "new"), "", inRounds(func(string) { tt.spoil(t, s, cancel) }))
			if err == nil || !tt.want(err) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(before, dump(t, s)); diff != "" {
				t.Errorf("Redis has changed (-before +after):\n%s", diff)
			}
			got, rows, err := a.Rows(t.Context(), "main", "", []string{term(3)})
			if err != nil || got != id || markOf(rows[0]) != "old" {
				t.Errorf("active is %s, row %v, %v; want %s", got, markOf(rows[0]), err, id)
			}
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
			s := startRedis(t)
			m := manyBatches(t, "one")
			var stages []string
			v, err := s.admin(t).Push(t.Context(), "main", m, "", inRounds(func(stage string) {
				if stages = append(stages, stage); len(stages) == 1 {
					spoil(t, s)
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"push", "push again"}; !slices.Equal(stages, want) {
				t.Errorf("stages %q, want %q", stages, want)
			}
			checkComplete(t, s, v, m)
		})
	}
}

// checkComplete wants Redis to hold the version and nothing that expires.
func checkComplete(t *testing.T, s *server, v Version, m *simmatrix.Matrix) {
	t.Helper()
	c := s.client(t)
	for _, key := range s.keys(t) {
		if ttl := c.PTTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("%s expires in %v", key, ttl)
		}
	}
	fields := c.HGetAll(t.Context(), rowsKey("main", v.ID)).Val()
	if fields[completeField] != v.ID {
		t.Errorf("marked as %q, want %q", fields[completeField], v.ID)
	}
	delete(fields, completeField)
	if diff := cmp.Diff(maps.Collect(m.Forms()), c.HGetAll(t.Context(), formsKey("main", v.ID)).Val()); diff != "" {
		t.Errorf("forms (-want +got):\n%s", diff)
	}
	if len(fields) != m.Len()+v.chunks() {
		t.Errorf("%d rows, want %d", len(fields), m.Len())
	}
	var codec simmatrix.RowCodec
	for term, row := range m.Rows() {
		if got, err := openRow(&codec, term, fields[term]); err != nil || got != row {
			t.Fatalf("row of %s is %q, %v; want %q", term, got.Packed(), err, row.Packed())
		}
	}
}

// dump returns the serialized value of every key.
func dump(t *testing.T, s *server) map[string]string {
	t.Helper()
	values := make(map[string]string)
	for _, key := range s.keys(t) {
		value, err := s.client(t).Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		values[key] = value
	}
	return values
}

func TestPushGivesUpWhenRedisStaysAwayAndSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	a := s.admin(t)
	a.patience = 2 * retryAfter
	waited := false
	push := during(s.kill)
	progress := func(stage string, done, total int) {
		waited = waited || stage == "wait for Redis" && done > 0 && done < total
		push(stage, done, total)
	}
	_, err := a.Push(t.Context(), "main", manyBatches(t, "one"), "", progress)
	if err == nil || !strings.Contains(err.Error(), unfinishedFor.String()) || !strings.Contains(err.Error(), "tried again for") || !waited {
		t.Errorf("error %v, waited %v", err, waited)
	}
}

func TestPushWithoutRedisFailsAtOnce(t *testing.T) {
	a := adminAt(t, Redis{URL: "unix:///nonexistent/redis.sock"})
	start := time.Now()
	if _, err := a.Push(t.Context(), "main", newMatrix(t, "one", 5), "", nil); err == nil {
		t.Error("no error")
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("after %v", took)
	}
}

func TestPushGoesOnWhenRedisComesBack(t *testing.T) {
	t.Parallel()
	s := startRedis(t, "--appendonly", "yes", "--appendfsync", "always") // to survive the kill
	m := manyBatches(t, "one")
	v, err := s.admin(t).Push(t.Context(), "main", m, "", during(func() { s.kill(); s.start(t) }))
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := a.Push(t.Context(), "main", m, "", nil); err == nil {
			t.Errorf("before %s %d: no error", cut.before, cut.nth)
		}
		keys := s.keys(t)
		if len(keys) != cut.keys {
			t.Errorf("before %s %d: keys %q, want %d", cut.before, cut.nth, keys, cut.keys)
		}
		for _, key := range keys {
			if ttl := s.client(t).PTTL(t.Context(), key).Val(); ttl < 0 || ttl > unfinishedFor {
				t.Errorf("before %s %d: %s expires in %v", cut.before, cut.nth, key, ttl)
			}
		}
	}
}

// cutOff returns the address of a relay to s that ends every connection, the
// first one right before the name of a command comes for the nth time.
func cutOff(t *testing.T, s *server, before string, nth int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
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
				relayUntil(behind, conn, fmt.Appendf(nil, "$%d\r\n%s\r\n", len(before), before), nth)
			}()
		}
	}()
	return l.Addr().String()
}

// relayUntil copies until the mark is about to come for the nth time.
func relayUntil(to io.Writer, from io.Reader, mark []byte, nth int) {
	var held []byte // which a mark may begin in
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		held = append(held, buf[:n]...)
		for {
			i := bytes.Index(held, mark)
			if i < 0 {
				break
			}
			if nth--; nth == 0 {
				to.Write(held[:i])
				return
			}
			to.Write(held[:i+len(mark)])
			held = held[i+len(mark):]
		}
		tail := min(len(held), len(mark)-1)
		for !bytes.HasSuffix(held, mark[:tail]) {
			tail--
		}
		to.Write(held[:len(held)-tail])
		held = held[len(held)-tail:]
		if err != nil {
			return
		}
	}
}

func TestWhoPushesIsChecked(t *testing.T) {
	a := adminAt(t, Redis{URL: "unix:///nonexistent/redis.sock"})
	for _, by := range []string{"a\nb", "\x1b[2J", "\xff", strings.Repeat("a", maxByBytes+1)} {
		if _, err := a.Push(t.Context(), "main", newMatrix(t, "one", 1), by, nil); !errors.Is(err, ErrName) {
			t.Errorf("%.20q: %v", by, err)
		}
	}
}

func TestTwoPushesAtOnceDoNotMix(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	a := s.admin(t)
	marks := []string{"one", "two", "three"}
	ids := make([]string, len(marks))
	var done sync.WaitGroup
	for i, mark := range marks {
		m := manyBatches(t, mark)
		done.Go(func() {
			v, err := a.Push(t.Context(), "main", m, "", nil)
			if err != nil {
				t.Error(err)
			}
			ids[i] = v.ID
		})
	}
	done.Wait()
	c := s.client(t)
	for i, mark := range marks {
		fields := c.HGetAll(t.Context(), rowsKey("main", ids[i])).Val()
		if len(fields) != 1+20+1+40_000 { // mark of completeness, set of terms, mark's own row
			t.Errorf("%s has %d fields", mark, len(fields))
		}
		delete(fields, completeField)
		delete(fields, mark)
		maps.DeleteFunc(fields, func(field, _ string) bool { return strings.HasPrefix(field, chunkField) })
		var codec simmatrix.RowCodec
		for term, sealed := range fields {
			if row, err := openRow(&codec, term, sealed); err != nil || markOf(row) != mark {
				t.Fatalf("%s of %s: mark %q, %v", term, mark, markOf(row), err)
			}
		}
	}
	versions, err := a.Versions(t.Context(), "main")
	if err != nil || len(versions) != len(marks) {
		t.Errorf("versions %+v, %v", versions, err)
	}
}
