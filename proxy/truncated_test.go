package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// An answer that breaks off does so for the client as well, also where its
// beginning was looked at for failures of shards.
func TestTruncatedAnswersAreNotTakenForWholeOnes(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, answer := range map[string]string{
		"chunks": head + "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"took\":\r\n",
		"length": head + "Content-Length: 99\r\n\r\n{\"took\":",
	} {
		for _, path := range []string{"/_search", "/_msearch", "/_count", "/_cat/health"} {
			node := startRawNode(t, func(int, rawRequest) string { return answer + hangUp })
			addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: rewriteTo(`{"query":{}}`)})
			res, err := client.Post("http://"+addr+path, "application/json", strings.NewReader(`{"query":{"match":{"body":"x"}}}`))
			if err != nil {
				continue
			}
			if body, err := io.ReadAll(res.Body); err == nil && res.StatusCode == http.StatusOK {
				t.Errorf("%s, %s: the client takes %q for the whole answer", path, name, body)
			}
			res.Body.Close()
		}
	}
}
