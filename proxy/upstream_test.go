package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
)

func TestCertificatesAreVerified(t *testing.T) {
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") }))
	node.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	node.StartTLS()
	defer node.Close()
	roots := x509.NewCertPool()
	roots.AddCert(node.Certificate())
	for name, tt := range map[string]struct {
		config *tls.Config
		want   int
	}{
		"by default":   {nil, http.StatusBadGateway},
		"with a root":  {&tls.Config{RootCAs: roots}, http.StatusOK},
		"switched off": {&tls.Config{InsecureSkipVerify: true}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := startProxy(t, Options{Nodes: poolOf(nodes.Options{URLs: []string{node.URL}, TLS: tt.config})})
			res, err := client.Get("http://" + addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != tt.want {
				t.Errorf("status %d, want %d", res.StatusCode, tt.want)
			}
		})
	}
}

// A search, expanded or not, that a node leaves unanswered is sent to the other
// one; what changes something, or leaves something behind, is not.
func TestWhatIsSentToAnotherNodeWhereOneBreaksOff(t *testing.T) {
	search := `{"query":{"match":{"body":"car"}}}`
	for name, tt := range map[string]struct {
		request string
		again   bool
	}{
		"search":                 {"POST /i/_search", true},
		"several searches":       {"POST /i/_msearch", true},
		"count":                  {"POST /i/_count", true},
		"document":               {"GET /i/_doc/1", true},
		"write":                  {"POST /i/_doc", false},
		"bulk":                   {"POST /_bulk", false},
		"search for a scroll":    {"POST /i/_search?scroll=1m", false},
		"in an escaped form":     {"POST /i/_search?%73croll=1m", false},
		"page of a scroll":       {"GET /_search/scroll?scroll_id=x", false},
		"asynchronous search":    {"POST /i/_async_search", false},
		"point in time, to open": {"POST /i/_pit?keep_alive=1m", false},
	} {
		t.Run(name, func(t *testing.T) {
			var arrived atomic.Int32
			breaks := func(int, rawRequest) string { arrived.Add(1); return hangUp }
			addr, _ := startProxy(t, Options{
				Nodes:    nodesAt(startRawNode(t, breaks).URL, startRawNode(t, breaks).URL),
				Expander: expander(leaveAlone),
			})
			method, target, _ := strings.Cut(tt.request, " ")
			body := io.Reader(http.NoBody)
			if method == http.MethodPost {
				body = strings.NewReader(search)
			}
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+target, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			want := int32(1)
			if tt.again {
				want = 2
			}
			if n := arrived.Load(); n != want || res.StatusCode != http.StatusBadGateway {
				t.Errorf("it arrived %d times, want %d; status %d", n, want, res.StatusCode)
			}
		})
	}
}

// A small body that akin has no need to read is kept for that, too.
func TestSearchesThatAreLeftAloneAreSentToAnotherNode(t *testing.T) {
	const large = maxKeptBody + 1
	for name, tt := range map[string]struct {
		target, header string
		size           int
		o              Options
		again          bool
	}{
		"off":                {"/i/_search?akin=off", jsonType, 20, Options{Expander: expander(leaveAlone)}, true},
		"no matrices":        {"/i/_search", jsonType, 20, Options{}, true},
		"another media type": {"/i/_search", "Content-Type: application/smile\n", 20, Options{Expander: expander(leaveAlone)}, true},
		"not sampled":        {"/i/_search", jsonType, 20, Options{Expander: expander(leaveAlone), Shadow: 1e-12}, true},
		"several":            {"/i/_msearch?akin=off", jsonType, 20, Options{}, true},
		"large":              {"/i/_search?akin=off", jsonType, large, Options{}, false},
		"for a scroll":       {"/i/_search?akin=off&scroll=1m", jsonType, 20, Options{}, false},
		"no memory":          {"/i/_search?akin=off", jsonType, 20, Options{Memory: limits.New(10)}, false},
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
			addr, _ := startProxy(t, tt.o)
			exchangeRaw(t, addr, searchOf(tt.target, tt.header, strings.Repeat("x", tt.size)))
			want := int32(1)
			if tt.again {
				want = 2
			}
			if n := arrived.Load(); n != want {
				t.Errorf("it arrived %d times, want %d", n, want)
			}
			if tt.o.Memory != nil && heldBytes(tt.o.Memory) != 0 {
				t.Errorf("%d bytes are held", heldBytes(tt.o.Memory))
			}
		})
	}
}
