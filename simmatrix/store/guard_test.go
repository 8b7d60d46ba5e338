package store

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// feed gives the stream to a scanner in pieces of n bytes.
func feed(s *replyScanner, stream string, n int) error {
	for len(stream) > 0 {
		k := min(n, len(stream))
		if err := s.check([]byte(stream[:k])); err != nil {
			return err
		}
		stream = stream[k:]
	}
	return nil
}

func TestReplyScannerRefusesWhatRedisWouldNotClaim(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		refused      bool
	}{
		{"nothing", "", false},
		{"simple replies", "+OK\r\n:42\r\n-ERR no\r\n", false},
		{"null", "$-1\r\n*-1\r\n+OK\r\n", false},
		{"strings", "*2\r\n$3\r\nabc\r\n$0\r\n\r\n", false},
		{"a string that looks like a claim", "$10\r\n$999999999\r\n+OK\r\n", false},
		{"line breaks in a string", "$4\r\n\n\n\r\n\r\n+OK\r\n", false},
		{"the longest string", "$1048576\r\n", false},
		{"a longer string", "$1048577\r\n", true},
		{"an overflowing length", "$9223372036854775807\r\n", true},
		{"a length beyond 64 bits", "$99999999999999999999999999\r\n", true},
		{"a long array", "*65537\r\n", true},
		{"a map of RESP3", "%2\r\n$1\r\na\r\n:1\r\n+b\r\n*1\r\n:1\r\n" + "+OK\r\n", false},
		{"other kinds of RESP3", "_\r\n#t\r\n,1.5\r\n(12345678901234567890\r\n~1\r\n:1\r\n>1\r\n+x\r\n=5\r\ntxt:a\r\n!1\r\n\n\r\n+OK\r\n", false},
		{"a long map", "%65537\r\n", true},
		{"an attribute of RESP3", "|1\r\n", true},
		{"a claim behind a map", "%1\r\n$1\r\na\r\n:1\r\n*99999999\r\n", true},
		{"a number without a kind", "57580233720368\r\n", true},
		{"arrays in arrays", strings.Repeat("*1\r\n", maxDepth) + ":1\r\n" + strings.Repeat("*1\r\n", maxDepth) + "$-1\r\n", false},
		{"too many arrays in arrays", strings.Repeat("*2\r\n:1\r\n", maxDepth+1), true},
		{"many arrays one after the other", "*3\r\n" + strings.Repeat("*2\r\n:1\r\n*0\r\n", 3) + strings.Repeat("*1\r\n*-1\r\n", 3), false},
		{"a claim behind a string", "$3\r\nabc\r\n*99999999\r\n", true},
		{"a claim behind a null", "$-1\r\n*99999999\r\n", true},
		{"no number", "$abc\r\n", true},
		{"a streamed string of RESP3", "$?\r\n", true},
		{"an endless line", "+" + strings.Repeat("a", maxLine+1), true},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", true},
		{"an empty line", "\r\n", true},
	} {
		for _, n := range []int{1, 2, 7, 1 << 20} {
			err := feed(new(replyScanner), tt.stream, n)
			check.That(t, errors.Is(err, errReply) == tt.refused, "%s in pieces of %d: %v, want refused %v", tt.name, n, err, tt.refused)
		}
	}
}

// FuzzAnyAnswerIsSurvived lets the client read what is no Redis. Without the
// guard the lengths claimed in the seeds end the process.
func FuzzAnyAnswerIsSurvived(f *testing.F) {
	for _, answer := range garbageAnswers {
		f.Add([]byte(answer))
	}
	f.Add([]byte("-ERR unknown command\r\n*3\r\n$2\r\nid\r\n$-1\r\n$4\r\n\x03\x00\x00\x00\r\n"))
	f.Add([]byte("-ERR unknown command\r\n*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n")) // slots of a cluster
	f.Add([]byte("-ERR unknown command\r\n-MOVED 1 b:1\r\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		o := options(func(context.Context, string, string) (net.Conn, error) { return pipeThatAnswers(answer), nil }, 20*time.Millisecond)
		o.Addrs, o.MasterName = []string{"a:1"}, "main"
		failover := o.Failover()
		failover.OnConnect = checkSentinel("main")
		for _, c := range []redis.UniversalClient{
			redis.NewClient(o.Simple()), redis.NewClusterClient(o.Cluster()), redis.NewFailoverClient(failover),
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			terms := []string{"a", "b"}
			pipe := c.Pipeline()
			got := ask(ctx, pipe, "k", terms)
			err := failure(pipe.Exec(ctx))
			a := &Admin{client: c}
			if versions, err := a.Versions(ctx, "k"); err == nil && len(versions) > maxElements {
				t.Errorf("%d versions", len(versions))
			}
			v := &Version{ID: "id", Meta: simmatrix.Meta{Terms: 5}}
			if rows, _, err := a.readRows(ctx, "k", v, func(string, int, int) {}); err == nil && len(rows) > 5 {
				t.Errorf("%d rows", len(rows))
			}
			cancel()
			c.Close()
			if err != nil {
				continue
			}
			if rows, _, err := got.rows(new(simmatrix.RowCodec), &Version{ID: "id"}, terms, always); err == nil && len(rows) != len(terms) {
				t.Errorf("%v makes %d rows", got.values, len(rows))
			}
		}
	})
}

// pipeThatAnswers returns a connection on which answer comes, whatever is
// written to it.
func pipeThatAnswers(answer []byte) net.Conn {
	near, far := net.Pipe()
	go func() {
		near.SetDeadline(time.Now().Add(time.Second))
		go func() { near.Write(answer); near.Close() }()
		for b := make([]byte, 4096); ; {
			if _, err := near.Read(b); err != nil {
				return
			}
		}
	}()
	return far
}

// garbageAnswers are what other servers, or a broken one, may send.
var garbageAnswers = map[string]string{
	"HTTP":              "HTTP/1.1 400 Bad Request\r\n\r\n",
	"noise":             "\x00\xff\x13\x37garbage without an end",
	"closed at once":    "",
	"huge greeting":     "%999999999999\r\n",
	"wrong type":        ":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
	"strings, no array": "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
	// The client goes on to its command after an error instead of a greeting.
	"huge string": "-ERR unknown command\r\n*3\r\n$9223372036854775807\r\n",
	"huge array":  "-ERR unknown command\r\n*999999999999\r\n",
	"huge status": "-ERR unknown command\r\n+99999999999\r\n",
	"short array": "-ERR unknown command\r\n*1\r\n$1\r\nx\r\n",
}

func TestURLErrorsKeepTheSecret(t *testing.T) {
	for _, r := range []Redis{
		{},
		{URL: "h:6379"},
		{URL: "redis://u:hunter2@h/x"},
		{URL: "redis+sentinel://u:hunter2@a"},
		{URL: "redis://h?hunter2"},
		{URL: "redis://u:hunter2@h", TLS: new(tls.Config)}, // certificates without TLS
	} {
		_, err := OpenAdmin(r)
		_, ofStore := Open(t.Context(), Options{Bindings: everywhere(), Redis: r, CacheBytes: minCacheBytes})
		for _, err := range []error{err, ofStore} {
			check.That(t, errors.Is(err, ErrURL) && !strings.Contains(err.Error(), "hunter2"), "%s: error %v", r.URL, err)
		}
	}
}
