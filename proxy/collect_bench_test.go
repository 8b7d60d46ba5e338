package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/searches"
)

// BenchmarkCollecting compares the median time of searches with collecting on
// and off, turn by turn, before a node that answers at once. Nothing else takes
// time, so that a real cluster shows less of a difference.
func BenchmarkCollecting(b *testing.B) {
	answer := `{"took":1,"_shards":{"failed":0},"hits":{"total":{"value":0,"relation":"eq"},"hits":[` + strings.Repeat(`{"hit":1},`, 600) + `{}]}}`
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer node.Close()
	kept := check.Got(searches.Open(b.Context(), searches.Options{Keep: 1}))(b)
	defer kept.Close()
	options := []Options{{}, {Collect: Collecting{Searches: kept, Below: 5, Covers: func(string) bool { return true }}}}
	var proxies []*httptest.Server
	for _, o := range options {
		o.Nodes, o.Expander = nodesAt(node.URL), expander(leaveAlone)
		proxies = append(proxies, httptest.NewServer(newServer(b, o).proxy))
		defer proxies[len(proxies)-1].Close()
	}
	took := make([][]time.Duration, len(proxies))
	for i := 0; b.Loop(); i++ {
		for turn := range proxies {
			at := (i + turn) % len(proxies)
			body := strings.NewReader(fmt.Sprintf(`{"query":{"multi_match":{"query":"what people type %d","fields":["title^2","body"]}}}`, i))
			began := time.Now()
			res, err := client.Post(proxies[at].URL+"/shop/_search", "application/json", body)
			check.OK(b, err)
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			took[at] = append(took[at], time.Since(began))
		}
	}
	check.ReportMedians(b, took[0], took[1])
}
