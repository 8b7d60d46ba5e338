package proxy

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// Paths of both engines' REST interfaces, with the methods that they are used
// with: everything that looks like a search and is none, writes by query, and
// one path at least of every other family. All pass unread.
func TestOtherRequestsAreNotRecognized(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(`
HEAD /_search /help/_search /help/_count
PUT /help/_search /_scripts/_search /_scripts/shop/_search /_watcher/watch/_search /_plugins/_ml/_search /_search/pipeline/shop /help/_doc/_search
PUT /help/_doc/_count
DELETE /help/_search /_async_search/FmRl= /_search/scroll /_search/point_in_time /_pit /help/_doc/_search
get /help/_search
GET /help/_async_search /_async_search /_async_search/FmRl= /_async_search/status/FmRl= /_search/scroll /_search/scroll/DXF1== /_search_shards
GET /help/_mvt/geometry/13/4207/2692 /help/_graph/explore /_render/template/shop /_all/a,b/_search /_alias/_search /_mapping/_search /_cat/_search
GET /_nodes/_search /_snapshot/_search /_tasks/_search /_template/_search /_security/_search /help/_source/_search /help/_termvectors/_search /help/_mget
GET /help/_doc/_search/template /help/_termvectors/1 /help/type/_percolate/count /_cat/count /_cat/count/help / /help
POST /_plugins/_asynchronous_search /_search/scroll /help/_search/point_in_time /_search/point_in_time/_all /help/_pit /help/_knn_search
POST /help/_search_shards /help/_eql/search /_sql /_sql/translate /_query /_query/async /_esql/query /_plugins/_sql /_plugins/_ppl
POST /help/_fleet/_fleet_search /help/_fleet/_fleet_msearch /help/_rollup_search /_application/search_application/shop/_search /_query_rules/_search
POST /_render/template /help/_delete_by_query /help/type/_delete_by_query /help/type/_search /help/_update_by_query /_reindex
POST /_reindex/r1A2:36619/_rethrottle /_update_by_query/r1A2:36619/_rethrottle /_scripts/_search /_scripts/_count /_scripts/_msearch /%5Fscripts/_search
POST /_ingest/_search /_security/_query/api_key /_security/role/_search /_ml/datafeeds/_search /_ml/anomaly_detectors/_search /_plugins/_ml/models/_search
POST /_plugins/_alerting/monitors/_search /_search/_search /_search/pipeline/_search /help/%5Fsearch /help/_doc/%5Fsearch /help/_doc/1 /help/_doc
POST /help/_create/_search /help/_doc/_search /help/_doc/_count /help/_doc/_msearch /help/_doc/_validate/query /help/_doc/1/_explain /help/_update/_search
POST /help/_update/_count /help/_mapping/_search /help/_alias/_search /help/_bulk /help/_doc/_bulk /_bulk /help/_mget /help/_mtermvectors /help/_field_caps
POST /help/_terms_enum /help/_percolate /help/_validate /_validate/_search /help/_explain /help/_explain/ /_explain/1 /help/_explain/1/_source //_search
POST /help//_search /help//_explain/1 /_search%2F /%zz/_search /help/%zz/_search _search _search/0
OPTIONS *
`), "\n") {
		fields := strings.Fields(line)
		for _, path := range fields[1:] {
			m, ok := recognize(fields[0], path)
			check.That(t, !ok, "%s %s is recognized, %+v", fields[0], path, m)
		}
	}
	if _, ok := recognize(http.MethodConnect, ""); ok {
		t.Error("CONNECT is recognized")
	}
}

// A request must fit one row at most, whatever stands for the names in it.
func TestRoutesDoNotOverlap(t *testing.T) {
	names := strings.NewReplacer("{index}", "a", "{id}", "_search")
	for i, a := range routes {
		path := names.Replace(a.shape)
		for k, b := range routes {
			_, fits := b.fit(path)
			fits = fits && strings.Count(b.shape, "/") == strings.Count(path, "/")
			both := slices.ContainsFunc(a.methods, func(m string) bool { return slices.Contains(b.methods, m) })
			check.That(t, (i == k) == (fits && both), "%s fits %s: %v", path, b.shape, fits)
		}
	}
}
