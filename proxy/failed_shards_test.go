package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/answer"
)

// Values of "_shards" as OpenSearch 2.19 and Elasticsearch 8.19 write them, the
// failures shortened.
const (
	wholeShards  = `{"total":2,"successful":2,"skipped":0,"failed":0}`
	shardFailure = `{"shard":0,"index":"b","node":"n","reason":{"type":"illegal_argument_exception","reason":"Rescore window [100] is too large. It must be less than [10]."}}`
	unservedOne  = `{"shard":1,"index":"r","node":null,"reason":{"type":"no_shard_available_action_exception","reason":null}}`
)

func failedShards(failures ...string) string {
	return `{"total":2,"successful":1,"skipped":0,"failed":1,"failures":[` + strings.Join(failures, ",") + `]}`
}

// searchAnswer is the answer to a search with the value of "_shards".
func searchAnswer(shards string) string {
	return `{"took":3,"timed_out":false,"_shards":` + shards + `,"hits":{"total":{"value":1,"relation":"eq"},"hits":[{"_id":"a","_source":{"_shards":{"failed":1}}}]}}`
}

// A search that fails in its rewritten form on some shards is followed by the
// original; in all other cases the client gets the answer byte for byte.
func TestFailedShardsAreFollowedByTheOriginal(t *testing.T) {
	partial, whole, async := searchAnswer(failedShards(shardFailure)), searchAnswer(wholeShards), `{"id":"x","is_partial":true,"is_running":false,"start_time_in_millis":1,"response":%}`
	long := func(n int, rest string) string { return `{"_scroll_id":"` + strings.Repeat("x", n) + `",` + rest[1:] }
	item := func(shards string) string {
		return searchAnswer(shards)[:len(searchAnswer(shards))-1] + `,"status":200}`
	}
	tests := []struct {
		name, target, answer string
		followed             bool
		unchecked            bool
	}{
		{"whole", "/_search", whole, false, false},
		{"partial", "/a/_search", partial, true, false},
		{"pretty", "/_search?pretty", "{\n  \"took\" : 3,\n  \"_shards\" : {\n    \"failed\" : 12,\n    \"failures\" : [\n      " + shardFailure + "\n    ]\n  }\n}\n", true, false},
		{"failures not shown", "/_search?filter_path=_shards.failed,hits", `{"_shards":{"failed":1},"hits":{}}`, true, false},
		{"count not shown", "/_search?filter_path=_shards.failures", `{"_shards":{"failures":[{"index":"b"}]}}`, true, false},
		{"shards not shown", "/_search?filter_path=hits", `{"hits":{"hits":[]},"_shards":` + failedShards(shardFailure) + `}`, false, false},
		{"nothing shown", "/_search?filter_path=nope", `{}`, false, false},
		{"other things shown", "/_search?filter_path=suggest", `{"suggest":[],"_shards":1}`, false, false},
		{"a shard without a node", "/_search", searchAnswer(failedShards(unservedOne)), false, false},
		{"one without a node, one that failed", "/_search", searchAnswer(failedShards(unservedOne, shardFailure)), true, false},
		{"phases", "/_search?phase_took", `{"took":1,"phase_took":{"query":1},` + partial[len(`{"took":3,`):], true, false},
		{"scroll", "/_search?scroll=1m", long(30<<10, partial), true, false},
		{"a scroll beyond the bound", "/_search?scroll=1m", long(maxLooked, partial), false, true},
		{"failure beyond the bound", "/_search", searchAnswer(failedShards(`{"reason":"` + strings.Repeat("x", maxLooked) + `"}`)), true, false},
		{"count", "/_count", `{"count":1,"_shards":` + failedShards(shardFailure) + `}`, true, false},
		{"count, whole", "/a/_count", `{"count":1,"_shards":` + wholeShards + `}`, false, false},
		{"async", "/_async_search", strings.Replace(async, "%", partial, 1), true, false},
		{"async, whole", "/_async_search", strings.Replace(async, "%", whole, 1), false, false},
		{"async, nothing yet", "/_async_search", strings.Replace(async, "%", "null", 1), false, false},
		{"async, no response", "/_async_search", `{"id":"x","is_running":true}`, false, false},
		{"odd values", "/_search", searchAnswer(`{"failed":"1","failures":{}}`), false, false},
		{"shards are no object", "/_search", searchAnswer(`[]`), false, true},
		{"no object", "/_search", `["_shards"]`, false, true},
		{"broken before", "/_search", `{"took":3,"timed_out":fal`, false, true},
		{"broken inside", "/_search", `{"took":3,"_shards":{"total":2,`, false, true},
		{"broken behind", "/_search", searchAnswer(wholeShards)[:90], false, false},
		{"broken in the failures", "/_search", `{"took":3,"_shards":{"failed":1,"failures":[{`, true, false},

		{"items", "/_msearch", responses(item(wholeShards), item(failedShards(shardFailure)), item(failedShards(shardFailure))), true, false},
		{"one that was left alone", "/_msearch", responses(item(wholeShards), item(failedShards(shardFailure)), item(wholeShards)), false, false},
		{"item without a node", "/_msearch", responses(item(failedShards(unservedOne))), false, false},
		{"failures among the hits", "/_msearch", responses(`{"_shards":` + wholeShards + `,"hits":{"hits":[{"_source":{"failures":[1]}}]},"status":200}`), false, false},
		{"filtered items", "/_msearch?filter_path=responses.hits", responses(`{"_shards":{"failures":[{"reason":{"type":"x"}}]},"hits":{}}`), true, false},
		{"an item's shards are no object", "/_msearch", responses(`{"_shards":1,"failures":[]}`), false, false},
	}
	for _, tt := range tests {
		for _, encoding := range []string{"", "gzip"} {
			t.Run(tt.name+" "+encoding, func(t *testing.T) {
				checkFollowed(t, tt.target, tt.answer, encoding, tt.followed, tt.unchecked)
			})
		}
	}
}

func TestOnRefusedGetsTheFailuresOfShards(t *testing.T) {
	window := expand.Cause{Type: "illegal_argument_exception", Reason: "Rescore window [100] is too large. It must be less than [10]."}
	script := `{"shard":0,"index":"b","node":"n","reason":{"type":"script_exception","reason":"runtime error","script_stack":["x"],"caused_by":{"type":"x","reason":"y"}}}`
	for _, tt := range []struct {
		target, answer string
		want           []expand.Cause
	}{
		{"/a/_search", searchAnswer(failedShards(shardFailure)), []expand.Cause{window}},
		{"/a/_search", searchAnswer(failedShards(unservedOne, shardFailure, unservedOne)), []expand.Cause{window}},
		{"/a/_search", searchAnswer(failedShards(script, shardFailure)), []expand.Cause{{Type: "script_exception", Reason: "runtime error"}, {Type: "x", Reason: "y"}, window}},
		{"/a/_count", `{"_shards":{"failed":1}}`, nil},
		{"/a/_msearch", responses(searchAnswer(failedShards(shardFailure))), []expand.Cause{window}},
	} {
		node := startRawNode(t, func(n int, _ rawRequest) string {
			if n == 1 {
				return answerWith(200, jsonType, tt.answer)
			}
			return emptyAnswer
		})
		told := make(chan []expand.Cause, 2)
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast), OnRefused: func(r *expand.Refusal) bool {
			told <- r.Causes
			return false
		}})
		exchangeRaw(t, addr, searchOf(tt.target, jsonType, lines))
		if diff := cmp.Diff(tt.want, receive(t, "the refusal", told)); diff != "" {
			t.Errorf("%s: reported (-want +got):\n%s", tt.target, diff)
		}
	}
}

// Shards that fail for the original as well are none of akin's doing.
func TestFailedShardsOfTheOriginalAreTheClientsOwn(t *testing.T) {
	for _, tt := range []struct{ target, answer string }{
		{"/_search", searchAnswer(failedShards(shardFailure))},
		{"/_count", `{"count":1,"_shards":` + failedShards(shardFailure) + `}`},
		{"/_msearch", responses(searchAnswer(failedShards(shardFailure)))},
	} {
		node := startRawNode(t, func(int, rawRequest) string { return answerWith(200, jsonType, tt.answer) })
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast), OnRefused: func(*expand.Refusal) bool {
			t.Error("reported a refusal")
			return false
		}})
		got := exchangeRaw(t, addr, searchOf(tt.target, jsonType, lines))
		if !strings.HasSuffix(got, "\r\n\r\n"+tt.answer) {
			t.Errorf("%s: the client got %q", tt.target, got)
		}
		if n := counter(t, registry, "akin_rejected_searches_total", "original", "rejected"); n != 1 || len(node.all()) != 2 {
			t.Errorf("%s: %v refusals are counted, after %d requests", tt.target, n, len(node.all()))
		}
	}
}

// What cannot be looked at reaches the client as it is, and is counted.
func TestAnswersThatCannotBeReadPassThrough(t *testing.T) {
	packed := pack(t, searchAnswer(failedShards(shardFailure)))
	for name, tt := range map[string]struct{ header, body string }{
		"no gzip":     {jsonType + "Content-Encoding: gzip\n", searchAnswer(failedShards(shardFailure))},
		"half gzip":   {jsonType + "Content-Encoding: gzip\n", packed[:16]},
		"deflate":     {jsonType + "Content-Encoding: deflate\n", packed},
		"no JSON":     {"Content-Type: application/cbor\n", "\xbf\x64took\x01\xff"},
		"not as said": {jsonType, "\xbf\x64took\x01\xff"},
		"nothing":     {jsonType, ""},
	} {
		node := startRawNode(t, func(int, rawRequest) string { return answerWith(200, tt.header, tt.body) })
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
		got := exchangeRaw(t, addr, searchOf("/_search", jsonType, lines))
		if !strings.HasSuffix(got, "\r\n\r\n"+tt.body) || len(node.all()) != 1 {
			t.Errorf("%s: the client got %q after %d requests", name, got, len(node.all()))
		}
		if n := counter(t, registry, "akin_unchecked_responses_total"); n != 1 {
			t.Errorf("%s: counted %v times", name, n)
		}
	}
}

// The answer goes on as soon as it was seen that no shard failed.
func TestAnswerStreamsOnceItsShardsAreSeen(t *testing.T) {
	whole := searchAnswer(wholeShards)
	first, rest := whole[:len(whole)-20], whole[len(whole)-20:]
	for _, encoding := range []string{"", "gzip"} {
		proceed := make(chan struct{})
		node := startSlowNode(t, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			body, flush := io.Writer(w), http.NewResponseController(w).Flush
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
				gz := gzip.NewWriter(w)
				body, flush = gz, func() error { gz.Flush(); return http.NewResponseController(w).Flush() }
				defer gz.Close()
			}
			io.WriteString(body, first)
			flush()
			<-proceed
			io.WriteString(body, rest)
		})
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node), Expander: expander(rewriteFirstAndLast)})
		req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/_search", strings.NewReader(lines))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept-Encoding": {"gzip"}}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := io.Reader(res.Body)
		if encoding != "" {
			if body, err = gzip.NewReader(res.Body); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, len(first))
		if _, err := io.ReadFull(body, got); err != nil || string(got) != first {
			t.Fatalf("the client got %q, %v, before the end", got, err)
		}
		close(proceed)
		more, err := io.ReadAll(body)
		res.Body.Close()
		if err != nil || string(more) != rest {
			t.Errorf("then the client got %q, %v", more, err)
		}
	}
}

// Of an answer without end a bounded part is read, packed or not.
func TestLookAtAnAnswerIsBounded(t *testing.T) {
	s := build(Options{Nodes: nodesAt("http://127.0.0.1:1"), Expander: expander(leaveAlone)})
	defer s.Close()
	endless := `{"_scroll_id":"` + strings.Repeat("x", 1<<20)
	for encoding, body := range map[string]string{"": endless, "gzip": pack(t, endless)} {
		source := strings.NewReader(body)
		res := &http.Response{Header: http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {encoding}}, Body: io.NopCloser(source)}
		x := searchFor(expand.EndpointSearch, "", "", "")
		x.rewritten = new(rewrittenSearch)
		v := s.judge.verdict(x.sent(), res)
		said, err := v.refused, v.err
		if read := len(body) - source.Len(); said != nil || err == nil || read > maxLooked {
			t.Errorf("%q: %d bytes are read, %+v, %v", encoding, read, said, err)
		}
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != body {
			t.Errorf("%q: %d bytes are left of %d, %v", encoding, len(got), len(body), err)
		}
	}
}

// Whatever the answer, all of it is there after the look, and of failures no
// more is told than may be.
func FuzzPartial(f *testing.F) {
	for _, seed := range []string{searchAnswer(wholeShards), searchAnswer(failedShards(shardFailure)), searchAnswer(failedShards(unservedOne)), `{"response":` + searchAnswer(failedShards()) + `}`, `{}`, `[]`, ``, `{"_shards":{"failed":1`} {
		f.Add([]byte(seed), false)
	}
	f.Add([]byte(pack(f, searchAnswer(failedShards(shardFailure)))), true)
	s := build(Options{Nodes: nodesAt("http://127.0.0.1:1"), Expander: expander(leaveAlone)})
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, body []byte, packed bool) {
		header := http.Header{"Content-Type": {"application/json"}}
		if packed {
			header["Content-Encoding"] = []string{"gzip"}
		}
		var want *answer.Failure
		for k, source := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body)), iotest.DataErrReader(bytes.NewReader(body))} {
			res := &http.Response{Header: header, Body: io.NopCloser(source)}
			x := searchFor(expand.EndpointSearch, "", "", "")
			x.rewritten = new(rewrittenSearch)
			said := s.judge.verdict(x.sent(), res).refused
			if said != nil && len(said.Causes) > 64 {
				t.Errorf("%q: reported %d causes", body, len(said.Causes))
			}
			if k == 0 {
				want = said
			} else if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("%q: reported, and read in other pieces\n%s", body, diff)
			}
			if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%q: %q is left, %v", body, got, err)
			}
		}
	})
}

func BenchmarkPartial(b *testing.B) {
	s := build(Options{Nodes: nodesAt("http://127.0.0.1:1"), Expander: expander(leaveAlone)})
	defer s.Close()
	body := searchAnswer(wholeShards) + strings.Repeat(" ", 8<<10)
	header := http.Header{"Content-Type": {"application/json"}}
	b.ReportAllocs()
	for b.Loop() {
		res := &http.Response{Header: header, Body: io.NopCloser(strings.NewReader(body))}
		x := searchFor(expand.EndpointSearch, "", "", "")
		x.rewritten = new(rewrittenSearch)
		if v := s.judge.verdict(x.sent(), res); v.refused != nil || v.err != nil {
			b.Fatal(v)
		}
	}
}
