package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForwardedRequestsAnswerAsWithoutAkin runs the table twice directly and
// once through akin, each time from a clean slate. The two direct runs have
// to agree, which shows that the comparison is fair; the third has to agree
// with them.
func TestForwardedRequestsAnswerAsWithoutAkin(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engine) {
		steps := forwardSteps(t)
		a := setup(t, e, section{"matrices": matrices("main", relatedFile(t, "car 1 0\nautomobile 0.9 0.1\nnumber -0.1 0.9\n"))})
		first, second, through := runSteps(t, e, e.url, steps), runSteps(t, e, e.url, steps), runSteps(t, e, a.url, steps)
		for i, s := range steps {
			t.Run(s.name, func(t *testing.T) {
				want := first[i].stable(t)
				if diff := cmp.Diff(want, second[i].stable(t)); diff != "" {
					t.Fatalf("%s %s: two direct calls differ (-first +second):\n%s", s.method, s.target, diff)
				}
				if diff := cmp.Diff(want, through[i].stable(t)); diff != "" {
					t.Errorf("%s %s (-direct +through akin):\n%s", s.method, s.target, diff)
				}
			})
		}
	})
}

var scrollID = regexp.MustCompile(`"_scroll_id":"([^"]*)"`)

// runSteps sends the steps to base, one after the other, on an engine that
// has none of the indices that they make.
func runSteps(t *testing.T, e *engine, base string, steps []forwardStep) []rawResponse {
	t.Helper()
	e.dropIndex("akin-e2e-fwd")
	t.Cleanup(func() { e.dropIndex("akin-e2e-fwd") })
	answers := make([]rawResponse, 0, len(steps))
	scroll := ""
	for _, s := range steps {
		s.body = strings.ReplaceAll(s.body, "SCROLL", scroll) // of the last answer that had one
		answer := exchange(t, base, s.rawRequest)
		if m := scrollID.FindStringSubmatch(answer.body); m != nil {
			scroll = m[1]
		}
		answers = append(answers, answer)
	}
	return answers
}

// A forwardStep is one request of the forwarding test. The steps run in
// order, for later ones look at what earlier ones wrote.
type forwardStep struct {
	name string
	rawRequest
}

func jsonStep(name, method, target, body string) forwardStep {
	return forwardStep{name, rawRequest{method: method, target: target, header: []string{jsonType}, body: body}}
}

func plainStep(name, method, target string, header ...string) forwardStep {
	return forwardStep{name, rawRequest{method: method, target: target, header: header}}
}

// linesStep is a POST of lines of JSON with more lines of the header.
func linesStep(name, target, body string, header ...string) forwardStep {
	return forwardStep{name, rawRequest{method: http.MethodPost, target: target, header: append([]string{ndjsonType}, header...), body: body}}
}

// forwardSteps is the table of the forwarding test. The matrix of the test
// has neighbors for "car"; what is not a search must not notice.
func forwardSteps(t *testing.T) []forwardStep {
	t.Helper()
	steps := writeSteps()
	steps = append(steps, readSteps()...)
	steps = append(steps, searchSteps()...)
	steps = append(steps, oddSteps()...)
	return append(steps, encodedSteps(t)...)
}

// writeSteps make an index and fill it.
func writeSteps() []forwardStep {
	bulk := &strings.Builder{}
	for i := range 30 {
		fmt.Fprintf(bulk, `{"index":{"_index":"akin-e2e-fwd","_id":"%d"}}`+"\n"+
			`{"body":"car number %d of thirty","n":%d,"raw":{"big":12345678901234567890,"f":1.10}}`+"\n", i, i, i)
	}
	bulk.WriteString(`{"delete":{"_index":"akin-e2e-fwd","_id":"none"}}` + "\n" + `{"create":{"_index":"akin-e2e-fwd","_id":"1"}}` + "\n" + `{"body":"twice"}` + "\n")
	return []forwardStep{
		jsonStep("create index", http.MethodPut, "/akin-e2e-fwd",
			`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"},"n":{"type":"integer"},"raw":{"type":"object","enabled":false}}}}`),
		jsonStep("create it again", http.MethodPut, "/akin-e2e-fwd", `{}`),
		linesStep("bulk", "/_bulk?refresh=true", bulk.String()),
		{"bulk in chunks", rawRequest{method: http.MethodPost, target: "/akin-e2e-fwd/_bulk?refresh=true", header: []string{ndjsonType}, body: `{"index":{"_id":"c"}}` + "\n" + `{"body":"chunked"}` + "\n", chunked: true}},
		linesStep("broken bulk", "/_bulk", "no json\n"),
		linesStep("20 MB bulk", "/akin-e2e-fwd/_bulk", largeBulk(20<<20)),
		jsonStep("delete what the large one wrote", http.MethodDelete, "/akin-e2e-fwd/_doc/large", ""),
		jsonStep("put mapping", http.MethodPut, "/akin-e2e-fwd/_mapping", `{"properties":{"later":{"type":"keyword"}}}`),
		jsonStep("put settings", http.MethodPut, "/akin-e2e-fwd/_settings", `{"index":{"refresh_interval":"1s"}}`),
		jsonStep("alias", http.MethodPost, "/_aliases", `{"actions":[{"add":{"index":"akin-e2e-fwd","alias":"akin-e2e-fwda"}}]}`),
		jsonStep("put document", http.MethodPut, "/akin-e2e-fwd/_doc/x%2Fy?refresh=true", `{"body":"a slash in the id"}`),
		jsonStep("create document", http.MethodPut, "/akin-e2e-fwd/_create/1", `{"body":"conflict"}`),
		jsonStep("update document", http.MethodPost, "/akin-e2e-fwd/_update/2?refresh=true", `{"doc":{"body":"updated car"}}`),
		jsonStep("delete document", http.MethodDelete, "/akin-e2e-fwd/_doc/3?refresh=true", ""),
		jsonStep("delete by query", http.MethodPost, "/akin-e2e-fwd/_delete_by_query?refresh=true", `{"query":{"match":{"body":"updated"}}}`),
		plainStep("refresh without a body", http.MethodPost, "/akin-e2e-fwd/_refresh"),
		jsonStep("flush", http.MethodPost, "/akin-e2e-fwd/_flush?wait_if_ongoing=true", ""),
	}
}

// readSteps read what is there by other ways than searching.
func readSteps() []forwardStep {
	return []forwardStep{
		plainStep("root", http.MethodGet, "/"),
		plainStep("document", http.MethodGet, "/akin-e2e-fwd/_doc/1"),
		plainStep("document with a slash", http.MethodGet, "/akin-e2e-fwd/_doc/x%2Fy"),
		plainStep("document with a slash, lower case", http.MethodGet, "/akin-e2e-fwd/_doc/x%2fy"),
		plainStep("no document", http.MethodGet, "/akin-e2e-fwd/_doc/none"),
		plainStep("source", http.MethodGet, "/akin-e2e-fwd/_source/1"),
		plainStep("HEAD of a document", http.MethodHead, "/akin-e2e-fwd/_doc/1"),
		plainStep("HEAD of none", http.MethodHead, "/akin-e2e-fwd/_doc/none"),
		plainStep("HEAD of an index", http.MethodHead, "/akin-e2e-fwd"),
		plainStep("HEAD of the root", http.MethodHead, "/"),
		plainStep("mapping", http.MethodGet, "/akin-e2e-fwd/_mapping"),
		plainStep("settings", http.MethodGet, "/akin-e2e-fwd/_settings?flat_settings=true"),
		plainStep("index", http.MethodGet, "/akin-e2e-fwda?pretty"),
		plainStep("cat indices", http.MethodGet, "/_cat/indices/akin-e2e-fwd?v&h=health,index,docs.count"),
		plainStep("cat count as JSON", http.MethodGet, "/_cat/aliases/akin-e2e-fwda?format=json"),
		plainStep("cat help", http.MethodGet, "/_cat"),
		jsonStep("mget", http.MethodPost, "/akin-e2e-fwd/_mget", `{"ids":["1","none"]}`),
		jsonStep("count all", http.MethodGet, "/akin-e2e-fwd/_count", ""),
		jsonStep("count by term", http.MethodPost, "/akin-e2e-fwd/_count", `{"query":{"term":{"body":"car"}}}`),
		jsonStep("termvectors", http.MethodPost, "/akin-e2e-fwd/_termvectors/1", `{"fields":["body"],"term_statistics":true,"offsets":false}`),
		jsonStep("analyze", http.MethodPost, "/akin-e2e-fwd/_analyze", `{"field":"body","text":"car rental"}`),
		jsonStep("field caps", http.MethodGet, "/akin-e2e-fwd/_field_caps?fields=body", ""),
		jsonStep("no index", http.MethodGet, "/akin-e2e-none/_mapping", ""),
		jsonStep("bad index name", http.MethodPut, "/AKIN-UPPER", "{}"),
		jsonStep("wrong method", http.MethodPost, "/akin-e2e-fwd/_mapping/x/y/z", "{}"),
		jsonStep("unknown method", "PATCH", "/akin-e2e-fwd", "{}"),
		plainStep("unknown endpoint", http.MethodGet, "/_no_such_thing"),
		plainStep("options", http.MethodOptions, "/akin-e2e-fwd"),
		{"no content type", rawRequest{method: http.MethodPost, target: "/akin-e2e-fwd/_count", header: []string{}, body: `{}`}},
		{"wrong content type", rawRequest{method: http.MethodPost, target: "/akin-e2e-fwd/_search", header: []string{"Content-Type: text/csv"}, body: `a,b`}},
		{"YAML body and answer", rawRequest{method: http.MethodPost, target: "/akin-e2e-fwd/_search?format=yaml&size=1", header: []string{"Content-Type: application/yaml"}, body: "query:\n  match:\n    body: car\n"}},
	}
}

// searchSteps are searches with nothing that could be expanded.
func searchSteps() []forwardStep {
	return []forwardStep{
		jsonStep("search all", http.MethodGet, "/akin-e2e-fwd/_search", ""),
		jsonStep("search by term", http.MethodPost, "/akin-e2e-fwd/_search", `{"query":{"term":{"body":"car"}},"size":3,"track_total_hits":true}`),
		jsonStep("phrase", http.MethodPost, "/akin-e2e-fwd/_search?size=2", `{"query":{"match_phrase":{"body":"car number"}}}`),
		jsonStep("match without neighbors", http.MethodPost, "/akin-e2e-fwd/_search", `{ "query" : {"match":{"body":"thirty"}} , "size":2.0e0 }`),
		jsonStep("filter", http.MethodPost, "/akin-e2e-fwd/_search", `{"query":{"bool":{"filter":[{"match":{"body":"car"}}]}},"sort":["n"],"size":2}`),
		jsonStep("aggregation", http.MethodPost, "/akin-e2e-fwd/_search", `{"size":0,"aggs":{"m":{"max":{"field":"n"}}}}`),
		jsonStep("search a missing index", http.MethodPost, "/akin-e2e-none/_search", `{"query":{"match":{"body":"car"}}}`),
		jsonStep("search an unknown field", http.MethodPost, "/akin-e2e-fwd/_search", `{"query":{"match":{"nothing":"car"}}}`),
		jsonStep("unknown query", http.MethodPost, "/akin-e2e-fwd/_search", `{"query":{"mtch":{"body":"car"}}}`),
		jsonStep("broken JSON", http.MethodPost, "/akin-e2e-fwd/_search", `{"query":{"match":{"body":"car"}`),
		jsonStep("not an object", http.MethodPost, "/akin-e2e-fwd/_search", `[1]`),
		jsonStep("duplicate key", http.MethodPost, "/akin-e2e-fwd/_search", `{"query":{"match":{"body":"car"}},"query":{"match_all":{}}}`),
		plainStep("empty POST", http.MethodPost, "/akin-e2e-fwd/_search"),
		plainStep("bad parameter", http.MethodGet, "/akin-e2e-fwd/_search?nosuch=1"),
		plainStep("q with syntax", http.MethodGet, "/akin-e2e-fwd/_search?q=body:(car+AND+number)&size=1"),
		jsonStep("scroll", http.MethodPost, "/akin-e2e-fwd/_search?scroll=1m&size=10", `{"sort":["n"]}`),
		jsonStep("scroll on", http.MethodPost, "/_search/scroll", `{"scroll":"1m","scroll_id":"SCROLL"}`),
		jsonStep("end the scroll", http.MethodDelete, "/_search/scroll", `{"scroll_id":["SCROLL"]}`),
		linesStep("msearch", "/_msearch", `{"index":"akin-e2e-fwd"}`+"\n"+`{"size":1,"query":{"term":{"n":4}}}`+"\n"+`{"index":"akin-e2e-none"}`+"\n"+`{}`+"\n"),
		linesStep("msearch without its last newline", "/akin-e2e-fwd/_msearch", "{}\n{}"),
		jsonStep("validate", http.MethodPost, "/akin-e2e-fwd/_validate/query", `{"query":{"term":{"n":"x"}}}`),
		jsonStep("explain", http.MethodPost, "/akin-e2e-fwd/_explain/1", `{"query":{"term":{"n":1}}}`),
	}
}

// oddSteps have paths and queries that a careless proxy tidies.
func oddSteps() []forwardStep {
	return []forwardStep{
		plainStep("double slash", http.MethodGet, "//akin-e2e-fwd//_doc//1"),
		plainStep("trailing slash", http.MethodGet, "/akin-e2e-fwd/_count/"),
		plainStep("trailing slash of a search", http.MethodGet, "/akin-e2e-fwd/_search/?size=1"),
		plainStep("dots", http.MethodGet, "/akin-e2e-fwd/./_count"),
		plainStep("dots up", http.MethodGet, "/akin-e2e-fwd/../akin-e2e-fwd/_count"),
		plainStep("date math", http.MethodGet, "/%3Cakin-e2e-%7Bnow%2Fd%7D%3E/_search"),
		plainStep("escaped star", http.MethodGet, "/akin-e2e-fw%2A/_count"),
		plainStep("escaped letters", http.MethodGet, "/akin-e2e-fwd/%5Fsearch?size=1"),
		plainStep("comma and minus", http.MethodGet, "/akin-e2e-fwd,-akin-e2e-x*/_count"),
		plainStep("semicolon and broken escape", http.MethodGet, "/akin-e2e-fwd/_count?a=b;c=%zz"),
		plainStep("empty parameter names", http.MethodGet, "/akin-e2e-fwd/_count?&&pretty&"),
		plainStep("repeated parameter", http.MethodGet, "/akin-e2e-fwd/_count?pretty=true&pretty=false"),
		plainStep("plus and %20", http.MethodGet, "/akin-e2e-fwd/_search?q=n:1+n:2%20n:4&size=0&filter_path=hits.total"),
		plainStep("UTF-8 id", http.MethodGet, "/akin-e2e-fwd/_doc/%C3%BCber%20alles"),
		plainStep("only a question mark", http.MethodGet, "/akin-e2e-fwd/_count?"),
		plainStep("opaque id and tracing", http.MethodGet, "/akin-e2e-fwd/_count", "X-Opaque-Id: me", "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
		plainStep("two Accept headers", http.MethodGet, "/akin-e2e-fwd/_count", "Accept: application/json", "Accept: application/yaml"),
		plainStep("vendor type", http.MethodGet, "/akin-e2e-fwd/_count", "Accept: application/vnd.elasticsearch+json; compatible-with=8"),
		plainStep("a header of 8,100 bytes", http.MethodGet, "/akin-e2e-fwd/_count", "X-Long: "+strings.Repeat("x", 8100)),
		plainStep("authorization", http.MethodGet, "/akin-e2e-fwd/_count", "Authorization: Basic dTpw"),
	}
}

// encodedSteps have compressed bodies one way or the other.
func encodedSteps(t *testing.T) []forwardStep {
	t.Helper()
	const gzipHeader = "Content-Encoding: gzip"
	return []forwardStep{
		plainStep("gzip answer", http.MethodGet, "/akin-e2e-fwd/_search?size=20", "Accept-Encoding: gzip"),
		plainStep("small answer with gzip accepted", http.MethodGet, "/akin-e2e-fwd/_count", "Accept-Encoding: gzip, deflate"),
		plainStep("refused encoding", http.MethodGet, "/akin-e2e-fwd/_count", "Accept-Encoding: identity"),
		linesStep("gzip bulk", "/akin-e2e-fwd/_bulk?refresh=true", gzipped(t, `{"index":{"_id":"z"}}`+"\n"+`{"body":"zipped"}`+"\n"), gzipHeader),
		{"gzip search", rawRequest{method: http.MethodPost, target: "/akin-e2e-fwd/_search", header: []string{jsonType, gzipHeader}, body: gzipped(t, `{"query":{"term":{"body":"zipped"}}}`)}},
		plainStep("delete the index", http.MethodDelete, "/akin-e2e-fwd"),
		plainStep("delete it again", http.MethodDelete, "/akin-e2e-fwd"),
	}
}

// largeBulk is a bulk body of about size bytes: one document with a field
// that is not indexed, so that the engine has little to do.
func largeBulk(size int) string {
	return `{"index":{"_id":"large"}}` + "\n" + `{"n":1,"raw":{"x":"` + strings.Repeat("0123456789", size/10) + `"}}` + "\n"
}
