package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/answer"
)

// Items of the answers of _msearch, as Elasticsearch 8.19 writes them, and
// values of "_shards".
const (
	goodItem     = `{"took":1,"hits":{"hits":[{"_source":{"error":"none"}}]},"status":200}`
	badItem      = `{"error":{"root_cause":[],"type":"too_many_clauses","reason":"maxClauseCount is set to 1024"},"status":400}`
	wholeShards  = `{"total":2,"successful":2,"skipped":0,"failed":0}`
	shardFailure = `{"shard":0,"index":"b","node":"n","reason":{"type":"illegal_argument_exception","reason":"Rescore window [100] is too large. It must be less than [10]."}}`
	unservedOne  = `{"shard":1,"index":"r","node":null,"reason":{"type":"no_shard_available_action_exception","reason":null}}`
)

func responses(items ...string) string {
	return `{"took":3,"responses":[` + strings.Join(items, ",") + `]}`
}

func failedShards(failures ...string) string {
	return `{"total":2,"successful":1,"skipped":0,"failed":1,"failures":[` + strings.Join(failures, ",") + `]}`
}

// searchAnswer is the answer to a search with the value of "_shards".
func searchAnswer(shards string) string {
	return `{"took":3,"timed_out":false,"_shards":` + shards + `,"hits":{"total":{"value":1,"relation":"eq"},"hits":[{"_id":"a","_source":{"_shards":{"failed":1}}}]}}`
}

// A rewritten search that fails inside of an answer with a good status is
// followed by the original, like one that is refused; in all other cases the
// client gets the answer byte for byte. What tells of a failure is tested in
// package answer.
func TestFailureInsideAnAnswerIsFollowedByTheOriginal(t *testing.T) {
	partial, ofOriginal := searchAnswer(failedShards(shardFailure)), `{"of":"the original"}`
	scroll := func(n int) string { return `{"_scroll_id":"` + strings.Repeat("x", n) + `",` + partial[1:] }
	for _, tt := range []struct {
		name, target, answer string
		followed, unchecked  bool
	}{
		{"a search", "/_search", searchAnswer(wholeShards), false, false},
		{"a search on some shards", "/a/_search", partial, true, false},
		{"what cannot be read", "/_search", `["_shards"]`, false, true},
		{"a search with a scroll", "/_search?scroll=1m", scroll(30 << 10), true, false},
		{"a scroll beyond the bound", "/_search?scroll=1m", scroll(maxLooked), false, true},
		{"a failure beyond the bound", "/_search", searchAnswer(failedShards(`{"reason":"` + strings.Repeat("x", maxLooked) + `"}`)), true, false},
		{"a count", "/_count", `{"count":1,"_shards":` + failedShards(shardFailure) + `}`, true, false},
		{"async", "/_async_search", `{"id":"x","response":` + partial + `}`, true, false},
		{"several", "/_msearch", responses(goodItem, goodItem, badItem), true, false},
		{"shards of several, behind one that was left alone", "/_msearch", responses(goodItem, badItem, partial), true, false},
		{"several, none of them", "/_msearch", responses(goodItem, badItem, goodItem), false, false},
		{"several, no list", "/_msearch", `{"responses":{"error":{}}}`, false, true},
		{"several, filtered", "/_msearch?filter_path=responses.hits", responses(goodItem, `{"error":{"type":"x"}}`), true, false},
		{"rated searches", "/a/_rank_eval", `{"failures":{"b":` + badItem + `}}`, true, false},
		{"a validation", "/_validate/query", `{"valid":false}`, true, false},
		{"an error in an answer to one search", "/_search", badItem, false, false},
	} {
		for _, packed := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				body, header := tt.answer, jsonType
				if packed {
					body, header = pack(t, tt.answer), header+gzipCoding
				}
				p := start(t, Options{Expander: expander(rewriteFirstAndLast)}, inTurn(answerWith(200, header, body), answerWith(200, jsonType, ofOriginal)))
				got, want := bodyOf(p.post(t, tt.target, jsonType, lines)), body
				if refused := 0.0; tt.followed {
					want, refused = ofOriginal, 1
					p.arrived(t, rewrittenLines, lines)
					p.counted(t, refused, "akin_rejected_searches_total", "original", "accepted")
				} else {
					p.arrived(t, rewrittenLines)
					p.counted(t, refused, "akin_rejected_searches_total")
				}
				check.Equal(t, want, got, "the client")
				n := p.value(t, "akin_unchecked_responses_total")
				check.That(t, packed || (n == 1) == tt.unchecked, "%v answers are counted as unchecked", n)
			})
		}
	}
}

// Each search is refused under its own index expression; where that is not
// known for certain, under that of all indices.
func TestOnRefusedGetsTheIndexOfTheSearchThatFailed(t *testing.T) {
	const window = `{"error":{"type":"illegal_argument_exception","reason":"Result window is too large, from + size must be less than or equal to: [50]"},"status":400}`
	narrow := searchAnswer(failedShards(shardFailure))
	several, same := []string{"a", "b", "c,d"}, []string{"b", "b", "b"}
	for _, tt := range []struct {
		name, target, answer string
		status               int
		indices              []string
		want                 string
	}{
		{"the first", "/p/_msearch", responses(window, goodItem, goodItem), 200, several, "a illegal_argument_exception"},
		{"one on a shard", "/_msearch", responses(goodItem, window, narrow), 200, several, "c,d illegal_argument_exception"},
		{"one of a filtered answer", "/_msearch?filter_path=responses.error", responses(window), 200, several, " illegal_argument_exception"},
		{"one of the same index", "/_msearch?filter_path=responses.error", responses(window), 200, same, "b illegal_argument_exception"},
		{"all", "/_msearch", "{}", 400, several, ""},
		{"all of an index", "/_msearch", "{}", 400, same, "b"},
		{"a single search", "/p/_search", narrow, 200, nil, "p illegal_argument_exception"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told reports
			p := start(t, Options{OnRefused: told.add, Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
				res, err := rewriteFirstAndLast(ctx, r)
				for _, index := range tt.indices {
					res.Parts = append(res.Parts, expand.Part{Index: index})
				}
				return res, err
			})}, inTurn(answerWith(tt.status, jsonType, tt.answer), emptyAnswer))
			p.post(t, tt.target, jsonType, lines)
			told.check(t, tt.want)
			p.counted(t, 1, "akin_rejected_searches_total", "original", "accepted")
		})
	}
}

func TestFailureOfTheOriginalIsTheClientsMistake(t *testing.T) {
	for _, tt := range []struct{ target, first, second string }{
		{"/_search", answerOf(searchAnswer(failedShards(shardFailure))), answerOf(searchAnswer(failedShards(shardFailure)))},
		{"/_msearch", answerOf(responses(badItem, goodItem, goodItem)), answerOf(responses(badItem, goodItem, goodItem))},
		{"/_msearch", answerOf(responses(badItem, goodItem, goodItem)), answerWith(400, jsonType, "{}")},
		{"/_search", answerWith(404, jsonType, "{}"), answerWith(404, jsonType, `{"error":{}}`)},
	} {
		p := start(t, Options{Expander: expander(rewriteFirstAndLast), OnRefused: neverTold(t)}, inTurn(tt.first, tt.second))
		check.Equal(t, bodyOf(tt.second), bodyOf(p.post(t, tt.target, jsonType, lines)), "the client")
		p.arrived(t, rewrittenLines, lines)
		p.counted(t, 1, "akin_rejected_searches_total", "original", "rejected")
	}
}

func TestAnswersThatCannotBeReadPassThrough(t *testing.T) {
	for target, body := range map[string]string{"/_search": searchAnswer(failedShards(shardFailure)), "/_msearch": responses(badItem)} {
		for name, tt := range map[string]struct{ header, body string }{
			"no gzip":     {jsonType + gzipCoding, body},
			"half gzip":   {jsonType + gzipCoding, pack(t, body)[:16]},
			"deflate":     {jsonType + "Content-Encoding: deflate\n", body},
			"no type":     {"", body},
			"no JSON":     {"Content-Type: application/cbor\n", "\xbf\x64took\x01\xff"},
			"not as said": {jsonType, "\xbf\x64error\x01\xff\"error\""},
		} {
			p := start(t, Options{Expander: expander(rewriteFirstAndLast)}, inTurn(answerWith(200, tt.header, tt.body)))
			check.Equal(t, tt.body, bodyOf(p.post(t, target, jsonType, lines)), target, name, "the client")
			p.arrived(t, rewrittenLines)
			p.counted(t, 1, "akin_unchecked_responses_total")
		}
	}
}

// Where the cluster refuses what fails, a good answer needs no look.
func TestAnswerToAStrictSearchIsNotCountedAsUnchecked(t *testing.T) {
	const yaml = "---\nhits: {}\n"
	p := start(t, Options{Expander: expander(rewriteFirstAndLast)}, inTurn(answerWith(200, "Content-Type: application/yaml\n", yaml)))
	check.Equal(t, yaml, bodyOf(p.post(t, "/_search?format=yaml", jsonType, lines)), "the client")
	p.arrived(t, rewrittenLines)
	p.counted(t, 0, "akin_unchecked_responses_total")
}

// postLines sends several searches, and returns the answer before its body is
// read.
func (p *rig) postLines(t *testing.T, target string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.addr+target, strings.NewReader(lines))
	check.OK(t, err)
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept-Encoding": {"gzip"}} // so that nothing is decoded here
	res, err := client.Do(req)
	check.OK(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// Too long an answer is not waited for, be its length announced or not; what is
// there reaches the client, and nothing gets lost.
func TestLongAnswerStreams(t *testing.T) {
	for _, announced := range []bool{true, false} {
		first := `{"responses":[` + strings.Repeat(goodItem+",", 10)
		if !announced { // enough to see that it is too long
			first += strings.Repeat(" ", limits.MaxAnswer+2)
		}
		rest := badItem + "]}" + strings.Repeat(" ", limits.MaxAnswer)
		proceed := make(chan struct{})
		node := startSlowNode(t, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			if announced {
				w.Header().Set("Content-Length", strconv.Itoa(len(first)+len(rest)))
			}
			io.WriteString(w, first)
			http.NewResponseController(w).Flush()
			<-proceed
			io.WriteString(w, rest)
		})
		p := start(t, Options{Nodes: nodesAt(node), Expander: expander(rewriteFirstAndLast)}, nil)
		res := p.postLines(t, "/_msearch")
		defer res.Body.Close()
		checkStreams(t, res.Body, first, rest, proceed)
		p.counted(t, 1, "akin_unchecked_responses_total")
	}
}

func TestAnswerStreamsOnceItsShardsAreSeen(t *testing.T) {
	whole := searchAnswer(wholeShards)
	first, rest := whole[:len(whole)-20], whole[len(whole)-20:]
	for _, packed := range []bool{false, true} {
		proceed := make(chan struct{})
		node := startSlowNode(t, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			body, flush := io.Writer(w), http.NewResponseController(w).Flush
			if packed {
				w.Header().Set("Content-Encoding", "gzip")
				gz := gzip.NewWriter(w)
				body, flush = gz, func() error { gz.Flush(); return http.NewResponseController(w).Flush() }
				defer gz.Close()
			}
			io.WriteString(body, first)
			flush()
			<-proceed
			io.WriteString(body, rest)
		})
		res := start(t, Options{Nodes: nodesAt(node), Expander: expander(rewriteFirstAndLast)}, nil).postLines(t, "/_search")
		defer res.Body.Close()
		body := io.Reader(res.Body)
		if packed {
			var err error
			if body, err = gzip.NewReader(res.Body); err != nil {
				t.Fatal(err)
			}
		}
		checkStreams(t, body, first, rest, proceed)
	}
}

// checkStreams reads the first part of an answer before the rest is sent.
func checkStreams(t *testing.T, body io.Reader, first, rest string, proceed chan struct{}) {
	t.Helper()
	got := make([]byte, len(first))
	_, err := io.ReadFull(body, got)
	check.Must(t, err == nil && string(got) == first, "the client got %d bytes, %v, before the end", len(got), err)
	close(proceed)
	more, err := io.ReadAll(body)
	check.That(t, err == nil && string(more) == rest, "then the client got %d bytes, %v, want %d", len(more), err, len(rest))
}

// look has a server judge an answer to a search.
func look(s *Server, res *http.Response) judgment {
	x := searchFor(expand.EndpointSearch, "", "", "")
	x.rewritten = new(rewrittenSearch)
	return s.judge.verdict(x.sent(), res)
}

func TestLookAtAnAnswerIsBounded(t *testing.T) {
	s := newServer(t, Options{})
	endless := `{"_scroll_id":"` + strings.Repeat("x", 1<<20)
	for encoding, body := range map[string]string{"": endless, "gzip": pack(t, endless)} {
		source := strings.NewReader(body)
		res := &http.Response{Header: http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {encoding}}, Body: io.NopCloser(source)}
		v := look(s, res)
		read := len(body) - source.Len()
		check.That(t, v.refused == nil && v.err != nil && read <= maxLooked, "%q: %d bytes are read, %+v", encoding, read, v)
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
	s := newServer(f, Options{})
	f.Fuzz(func(t *testing.T, body []byte, packed bool) {
		header := http.Header{"Content-Type": {"application/json"}}
		if packed {
			header["Content-Encoding"] = []string{"gzip"}
		}
		var want *answer.Failure
		for k, source := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body)), iotest.DataErrReader(bytes.NewReader(body))} {
			res := &http.Response{Header: header, Body: io.NopCloser(source)}
			said := look(s, res).refused
			check.That(t, said == nil || len(said.Causes) <= 64, "%q: reported %+v", body, said)
			if k == 0 {
				want = said
			} else if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("%q: reported, and read in other pieces\n%s", body, diff)
			}
			got, err := io.ReadAll(res.Body)
			check.That(t, err == nil && bytes.Equal(got, body), "%q: %q is left, %v", body, got, err)
		}
	})
}
