package proxy

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestAccessLogHasALineForEachRequest(t *testing.T) {
	const search = "POST /books/_search?q=secret HTTP/1.1\nHost: a\nContent-Type: application/json\nContent-Length: 18\nConnection: close\n"
	const body = `{"query":"secret"}`
	for name, test := range map[string]struct {
		request, answer string
		expander        expander
		want            map[string]any
	}{
		"no search": {
			"GET /books/_doc/a%2Fb?q=secret HTTP/1.1\nHost: a\nX-Opaque-Id: job 7\nTraceparent: " + clientParent + "\nConnection: close\n\n",
			emptyAnswer, leaveAlone,
			map[string]any{
				"client": "127.0.0.1", "method": "GET", "path": "/books/_doc/a%2Fb", "protocol": "HTTP/1.1", "status": 200., "bytes": 2.,
				"outcome": "passed_through", "opaque_id": "job 7", "trace_id": clientTrace,
			},
		},
		"rewritten": {
			search + "\n" + body, emptyAnswer, rewriteTo(`{}`),
			map[string]any{"method": "POST", "path": "/books/_search", "status": 200., "outcome": "rewritten"},
		},
		"left alone": {
			search + "\n" + body, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", leaveAlone,
			map[string]any{"status": 404., "bytes": 0., "outcome": "unchanged", "reason": "left alone"},
		},
		"broken off": {
			"GET /a HTTP/1.1\nHost: a\nConnection: close\n\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" + hangUp, leaveAlone,
			map[string]any{"status": 200., "bytes": 4., "aborted": true},
		},
		"long": {
			"GET /a HTTP/1.1\nHost: a\nX-Long: " + strings.Repeat("x", 9<<10) + "\nX-Opaque-Id: " + strings.Repeat("\xff", 5<<10) + "\nConnection: close\n\n", emptyAnswer, leaveAlone,
			map[string]any{"status": 200.},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var book logBook
			p := start(t, Options{Expander: test.expander, AccessLog: book.logger()}, inTurn(test.answer))
			exchangeRaw(t, p.addr, test.request)
			waitFor(t, "a line", func() bool { return book.text() != "" })
			if text := book.text(); strings.Contains(text, "secret") || len(text) > 2<<10 {
				t.Errorf("the line is long, or has the text of the search: %s", text)
			}
			all := book.lines(t)
			got := all[0]
			check.Equal(t, 1, len(all), all)
			if took, _ := got["duration_ms"].(float64); took <= 0 {
				t.Errorf("took %v ms", got["duration_ms"])
			}
			_, asked := got["upstream_ms"]
			check.That(t, asked, "the cluster took %v", got["upstream_ms"])
			for key := range got {
				if _, wanted := test.want[key]; !wanted {
					delete(got, key)
				}
			}
			check.Equal(t, test.want, got)
		})
	}
}
