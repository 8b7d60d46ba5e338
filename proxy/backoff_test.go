package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// A backoff holds for a minute, for twice as long each further time, and is
// forgotten ten minutes after that.
func TestBackoffsTakeLongerWhereTheyBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newBackoffs(1)
		for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
			m.failed(7)
			m.failed(7) // at the same time
			check.Elapse(want - time.Second)
			check.That(t, m.has(7) && !m.has(8), "it does not hold for %v, or for others", want)
			check.Elapse(time.Second)
			check.That(t, !m.has(7), "it holds for longer than %v", want)
		}
		check.Elapse(maxBackoffTime + backoffTime)
		check.That(t, !m.has(7) && m.empty(), "it is still there")
		m.failed(7)
		if check.Elapse(backoffTime); m.has(7) {
			t.Error("it does not begin again with a minute")
		}
	})
}

// Where there are too many the oldest go, not all: one client could make all
// others' searches run twice again.
func TestBackoffsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newBackoffs(1)
		for n := range uint64(3 * maxBackoffs) {
			m.failed(n)
			m.failed(n) // not in the place of another
			for k := n - min(n, maxBackoffs-1); k <= n; k += maxBackoffs / 4 {
				check.Must(t, m.has(k) && len(m.made) <= maxBackoffs, "%d of %d are held, or %d is not", len(m.made), n+1, k)
			}
			check.Elapse(time.Millisecond)
		}
	})
}

// A search of one client that is refused says nothing of those of others: it
// may be made to be refused.
func TestShapesDifferByClient(t *testing.T) {
	s := newServer(t, Options{})
	shape := func(client string) uint64 {
		x := searchFor(expand.EndpointSearch, "a", "", `{"query":{"match":{"a":"b"}}}`)
		x.client.Name = client
		return s.shapes.shapeOf(x)
	}
	one, again, other := shape("127.0.0.1"), shape("127.0.0.1"), shape("127.0.0.2")
	check.That(t, one == again && one != other, "shapes do not tell clients apart")
}

func TestShapesDifferByMembersAndNotByValues(t *testing.T) {
	s := newServer(t, Options{})
	shape := func(endpoint expand.Endpoint, query, body string) uint64 {
		return s.shapes.shapeOf(searchFor(endpoint, "a", query, body))
	}
	base := shape(expand.EndpointSearch, "pretty", `{"query":{"terms":{"n":[1,2,3]}},"size":10}`)
	for name, tt := range map[string]struct {
		endpoint    expand.Endpoint
		query, body string
		same        bool
	}{
		"other values":       {expand.EndpointSearch, "pretty=true", ` {"query": {"terms": {"n": [7]}}, "size": 3}`, true},
		"another endpoint":   {expand.EndpointCount, "pretty", `{"query":{"terms":{"n":[1,2,3]}},"size":10}`, false},
		"another parameter":  {expand.EndpointSearch, "q", `{"query":{"terms":{"n":[1,2,3]}},"size":10}`, false},
		"a parameter more":   {expand.EndpointSearch, "pretty&q", `{"query":{"terms":{"n":[1,2,3]}},"size":10}`, false},
		"a value for a list": {expand.EndpointSearch, "pretty", `{"query":{"terms":{"n":1}},"size":10}`, false},
		"another kind":       {expand.EndpointSearch, "pretty", `{"query":{"terms":{"n":["1"]}},"size":10}`, false},
		"another member":     {expand.EndpointSearch, "pretty", `{"query":{"terms":{"m":[1,2,3]}},"size":10}`, false},
		"at another depth":   {expand.EndpointSearch, "pretty", `{"query":{"terms":{"n":[1,2,3]},"size":10}}`, false},
		"a search more":      {expand.EndpointSearch, "pretty", `{"query":{"terms":{"n":[1,2,3]}},"size":10}{}`, false},
	} {
		check.Equal(t, tt.same, shape(tt.endpoint, tt.query, tt.body) == base, name)
	}
}
