package proxy

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/limits"
)

// A search, expanded or not, that a node leaves unanswered is sent to the other
// one, also where akin has no need to read its body, if that is small; what
// changes something, or leaves something behind, is not.
func TestWhatIsSentToAnotherNodeWhereOneBreaksOff(t *testing.T) {
	leaves := Options{Expander: expander(leaveAlone)}
	for name, tt := range map[string]struct {
		request, header string
		size            int
		o               Options
		again           bool
	}{
		"search":                 {"POST /i/_search", jsonType, 20, leaves, true},
		"several searches":       {"POST /i/_msearch", jsonType, 20, leaves, true},
		"count":                  {"POST /i/_count", jsonType, 20, leaves, true},
		"document":               {"GET /i/_doc/1", "", 0, leaves, true},
		"write":                  {"POST /i/_doc", jsonType, 20, leaves, false},
		"bulk":                   {"POST /_bulk", jsonType, 20, leaves, false},
		"search for a scroll":    {"POST /i/_search?scroll=1m", jsonType, 20, leaves, false},
		"in an escaped form":     {"POST /i/_search?%73croll=1m", jsonType, 20, leaves, false},
		"page of a scroll":       {"GET /_search/scroll?scroll_id=x", "", 0, leaves, false},
		"asynchronous search":    {"POST /i/_async_search", jsonType, 20, leaves, false},
		"point in time, to open": {"POST /i/_pit?keep_alive=1m", jsonType, 20, leaves, false},
		"off":                    {"POST /i/_search?akin=off", jsonType, 20, leaves, true},
		"several, off":           {"POST /i/_msearch?akin=off", jsonType, 20, leaves, true},
		"no matrices":            {"POST /i/_search", jsonType, 20, Options{}, true},
		"another media type":     {"POST /i/_search", "Content-Type: application/smile\n", 20, leaves, true},
		"not sampled":            {"POST /i/_search", jsonType, 20, Options{Expander: expander(leaveAlone), Shadow: 1e-12}, true},
		"off, large":             {"POST /i/_search?akin=off", jsonType, maxKeptBody + 1, leaves, false},
		"off, for a scroll":      {"POST /i/_search?akin=off&scroll=1m", jsonType, 20, leaves, false},
		"no memory":              {"POST /i/_search?akin=off", jsonType, 20, Options{Memory: limits.New(10)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var arrived atomic.Int32
			breaks := func(_ int, r rawRequest) string {
				if len(r.body) == tt.size {
					arrived.Add(1)
				}
				return hangUp
			}
			tt.o.Nodes = nodesAt(startRawNode(t, breaks).URL, startRawNode(t, breaks).URL)
			p := start(t, tt.o, nil)
			method, target, _ := strings.Cut(tt.request, " ")
			got := exchangeRaw(t, p.addr, method+strings.TrimPrefix(searchOf(target, tt.header, strings.Repeat("x", tt.size)), "POST"))
			n := arrived.Load()
			check.That(t, n == map[bool]int32{false: 1, true: 2}[tt.again] && strings.HasPrefix(got, "HTTP/1.1 502 ") && strings.Contains(got, `"reason":"no node of the cluster answered the request"`), "it arrived %d times, the client got %q", n, got)
			if tt.o.Memory != nil {
				check.Equal(t, 0, heldBytes(tt.o.Memory), "bytes are held")
			}
		})
	}
}
