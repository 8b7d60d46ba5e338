package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
)

// Items of the answers of _msearch, as Elasticsearch 8.19 writes them.
const (
	goodItem = `{"took":1,"hits":{"hits":[{"_source":{"error":"none"}}]},"status":200}`
	badItem  = `{"error":{"root_cause":[],"type":"too_many_clauses","reason":"maxClauseCount is set to 1024"},"status":400}`
)

func responses(items ...string) string {
	return `{"took":3,"responses":[` + strings.Join(items, ",") + `]}`
}

// A rewritten search that fails inside of an answer with a good status is
// followed by the original, like one that is refused; in all other cases the
// client gets the answer byte for byte.
func TestFailureInsideAnAnswerIsFollowedByTheOriginal(t *testing.T) {
	const (
		rank       = "/a/_rank_eval"
		validate   = "/_validate/query"
		validQuery = `{"_shards":{"total":1},"valid":true,"explanations":[{"valid":false}]}`
	)
	tests := []struct {
		name, target, answer string
		followed             bool
		unchecked            bool
	}{
		{"all well", "/_msearch", responses(goodItem, goodItem, goodItem), false, false},
		{"the first failed", "/_msearch", responses(badItem, goodItem, goodItem), true, false},
		{"the last failed", "/a/_msearch", responses(goodItem, goodItem, badItem), true, false},
		{"one that was left alone failed", "/_msearch", responses(goodItem, badItem, goodItem), false, false},
		{"two failed", "/_msearch", responses(goodItem, badItem, badItem), true, false},
		{"pretty", "/_msearch?pretty", "{\n  \"responses\" : [\n    " + badItem + "\n  ]\n}\n", true, false},
		{"an item too many failed", "/_msearch", responses(goodItem, goodItem, goodItem, badItem), false, false},
		{"no items", "/_msearch", responses(), false, false},
		{"no list", "/_msearch", `{"responses":{"error":{}}}`, false, true},
		{"no object", "/_msearch", `["error"]`, false, true},
		{"items are no objects", "/_msearch", `{"responses":[1,"error"]}`, false, true},
		{"half", "/_msearch", responses(goodItem, badItem)[:90] + `"error":`, false, true},
		{"nothing", "/_msearch", "", false, false},
		{"filtered", "/_msearch?filter_path=responses.hits", responses(goodItem), false, false},
		{"filtered, failed", "/_msearch?filter_path=responses.hits", responses(goodItem, `{"error":{"type":"x"}}`), true, false},
		{"valid", validate, validQuery, false, false},
		{"not valid", validate, `{"valid":false}`, true, false},
		{"not valid, with reasons", validate + "?explain", `{"_shards":{},"valid":false,"explanations":[]}`, true, false},
		{"valid is no truth value", validate, `{"valid":"false"}`, false, false},
		{"evaluated", rank, `{"metric_score":1,"details":{"failures":{"a":{}}},"failures":{}}`, false, false},
		{"not all evaluated", rank, `{"metric_score":1,"details":{},"failures":{"b":` + badItem + `}}`, true, false},
		{"failures are none", rank, `{"failures":null}`, false, false},
		{"a search is not looked into", "/_search", badItem, false, false},
		{"a count is not looked into", "/_count", badItem, false, false},
	}
	for _, tt := range tests {
		for _, encoding := range []string{"", "gzip"} {
			t.Run(tt.name+" "+encoding, func(t *testing.T) {
				unchecked := tt.unchecked || tt.name == "nothing" && encoding != ""
				checkFollowed(t, tt.target, tt.answer, encoding, tt.followed, unchecked)
			})
		}
	}
}

// checkFollowed has a rewritten search answered and checks whether the original
// follows, what the client gets, and what is counted.
func checkFollowed(t *testing.T, target, first, encoding string, followed, unchecked bool) {
	t.Helper()
	body, header := first, jsonType
	if encoding != "" {
		body, header = pack(t, first), header+"Content-Encoding: gzip\n"
	}
	node := startRawNode(t, func(n int, _ rawRequest) string {
		if n == 1 {
			return answerWith(200, header, body)
		}
		return answerWith(200, jsonType, `{"of":"the original"}`)
	})
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
	got := exchangeRaw(t, addr, searchOf(target, jsonType, lines))
	want, requests := body, 1
	if followed {
		want, requests = `{"of":"the original"}`, 2
	}
	if _, got, _ := strings.Cut(got, "\r\n\r\n"); got != want {
		t.Errorf("the client got %q, want %q", got, want)
	}
	arrived := slices.DeleteFunc(node.all(), func(r rawRequest) bool { return strings.HasPrefix(r.line, "DELETE ") }) // of a scroll
	if len(arrived) != requests || arrived[0].body != rewrittenLines || arrived[requests-1].body != lines && followed {
		t.Errorf("the node got %q", arrived)
	}
	if last := arrived[len(arrived)-1].line; followed && last != "POST "+target+" HTTP/1.1" {
		t.Errorf("the original went to %q", last)
	}
	if n := counter(t, registry, "akin_rejected_searches_total", "original", "accepted"); (n == 1) != followed {
		t.Errorf("%v refusals are counted", n)
	}
	if n := counter(t, registry, "akin_unchecked_responses_total"); encoding == "" && (n == 1) != unchecked {
		t.Errorf("%v answers are counted as unchecked", n)
	}
}

func TestOnRefusedGetsWhatFailedInsideAnAnswer(t *testing.T) {
	clauses := []expand.Cause{{Type: "too_many_clauses"}}
	tests := []struct {
		target, answer string
		want           []expand.Cause
	}{
		{"/a/_msearch", responses(goodItem, goodItem, badItem), clauses},
		{"/a/_rank_eval", `{"failures":{"q":` + badItem + `}}`, clauses},
		{"/a/_validate/query", `{"valid":false}`, nil},
		{"/a/_msearch", responses(`{"error":"` + strings.Repeat("x", 3<<20) + `"}`), nil},
	}
	for _, tt := range tests {
		node := startRawNode(t, func(n int, _ rawRequest) string {
			if n == 1 {
				return answerWith(200, jsonType, tt.answer)
			}
			return emptyAnswer
		})
		told := make(chan []expand.Cause, 2)
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast), OnRefused: func(r *expand.Refusal) bool {
			for i := range r.Causes {
				r.Causes[i].Reason = ""
			}
			told <- r.Causes
			return false
		}})
		exchangeRaw(t, addr, searchOf(tt.target, jsonType, lines))
		if diff := cmp.Diff(tt.want, receive(t, "the refusal", told)); diff != "" {
			t.Errorf("%s: reported (-want +got):\n%s", tt.target, diff)
		}
	}
}

// Each search is refused under its own index expression; where that is not
// known for certain, under that of all indices.
func TestOnRefusedGetsTheIndexOfTheSearchThatFailed(t *testing.T) {
	const (
		results = `{"error":{"type":"illegal_argument_exception","reason":"Result window is too large, from + size must be less than or equal to: [50]"},"status":400}`
		rescore = `{"shard":0,"index":"b","reason":{"type":"illegal_argument_exception","reason":"Rescore window [100] is too large. It must be less than [10]."}}`
	)
	narrow := searchAnswer(failedShards(rescore))
	several, same := []string{"a", "b", "c,d"}, []string{"b", "b", "b"}
	for _, tt := range []struct {
		name, target, answer string
		status               int
		indices              []string
		want                 string
	}{
		{"the first", "/p/_msearch", responses(results, goodItem, goodItem), 200, several, "a"},
		{"the last", "/_msearch", responses(goodItem, goodItem, results), 200, several, "c,d"},
		{"one on a shard", "/_msearch", responses(goodItem, goodItem, narrow), 200, several, "c,d"},
		{"behind one that was left alone", "/_msearch", responses(goodItem, results, narrow), 200, several, "c,d"},
		{"two", "/_msearch", responses(narrow, goodItem, results), 200, several, "a"},
		{"one of a filtered answer", "/_msearch?filter_path=responses.error", responses(results), 200, several, ""},
		{"one of the same index", "/_msearch?filter_path=responses.error", responses(results), 200, same, "b"},
		{"all", "/_msearch", "{}", 400, several, ""},
		{"all of an index", "/_msearch", "{}", 400, same, "b"},
		{"a single search", "/p/_search", "{}", 400, nil, "p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, func(n int, _ rawRequest) string {
				if n == 1 {
					return answerWith(tt.status, jsonType, tt.answer)
				}
				return emptyAnswer
			})
			told := "none"
			addr, registry := startProxy(t, Options{
				Nodes: nodesAt(node.URL), OnRefused: func(r *expand.Refusal) bool { told = r.Index; return false },
				Expander: expander(func(ctx context.Context, r *expand.Request) (*expand.Result, error) {
					res, err := rewriteFirstAndLast(ctx, r)
					for _, index := range tt.indices {
						res.Parts = append(res.Parts, expand.Part{Index: index})
					}
					return res, err
				}),
			})
			exchangeRaw(t, addr, searchOf(tt.target, jsonType, lines))
			if told != tt.want || counter(t, registry, "akin_rejected_searches_total", "original", "accepted") != 1 {
				t.Errorf("reported %q, want %q", told, tt.want)
			}
		})
	}
}

// A search that fails in both forms is the client's mistake.
func TestFailureOfTheOriginalInsideAnAnswerIsTheClientsMistake(t *testing.T) {
	for _, second := range []string{answerWith(200, jsonType, responses(badItem, goodItem, goodItem)), answerWith(400, jsonType, "{}")} {
		node := startRawNode(t, func(n int, _ rawRequest) string {
			if n == 1 {
				return answerWith(200, jsonType, responses(badItem, goodItem, goodItem))
			}
			return second
		})
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast), OnRefused: func(*expand.Refusal) bool {
			t.Error("reported a refusal")
			return false
		}})
		got := exchangeRaw(t, addr, searchOf("/_msearch", ndjsonType, lines))
		if _, body, _ := strings.Cut(got, "\r\n\r\n"); !strings.HasSuffix(second, "\r\n\r\n"+body) {
			t.Errorf("the client got %q", got)
		}
		if n := counter(t, registry, "akin_rejected_searches_total", "original", "rejected"); n != 1 || len(node.all()) != 2 {
			t.Errorf("%v refusals are counted, after %d requests", n, len(node.all()))
		}
	}
}

// filter_path must not hide what failed, nor show more than was asked for.
func TestFilteredAnswersShowFailures(t *testing.T) {
	node := startRawNode(t, nil)
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
	for _, tt := range []struct{ target, want string }{
		{"/_msearch", ""},
		{"/_msearch?filter_path=", ""},
		{"/_msearch?filter_path=responses.hits,took", "responses.hits,took,responses.error.type,responses._shards.failures.reason.type"},
		{"/_msearch?filter_path=a&filter_path=responses.hits%2Etotal", "responses.hits.total,responses.error.type,responses._shards.failures.reason.type"},
		{"/_rank_eval?pretty&filter_path=metric_score", "metric_score,failures.*.error.type"},
		{"/_search?filter_path=hits", "hits"},
		{"/_count?filter_path=-_shards", "-_shards"},
	} {
		exchangeRaw(t, addr, searchOf(tt.target, jsonType, lines))
		all := node.all()
		_, query, _ := strings.Cut(strings.Fields(all[len(all)-1].line)[1], "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		if paths := values["filter_path"]; len(paths) > 0 {
			last = paths[len(paths)-1] // which counts for the engines
		}
		if last != tt.want {
			t.Errorf("%s: the node got %q", tt.target, query)
		}
	}
}

// Too long an answer is not waited for, be its length announced or not; what is
// there reaches the client, and nothing gets lost.
func TestLongAnswerStreams(t *testing.T) {
	for _, announced := range []bool{true, false} {
		first := `{"responses":[` + strings.Repeat(goodItem+",", 10)
		if !announced {
			first += strings.Repeat(" ", limits.MaxAnswer)
		}
		rest := badItem + "]}" + strings.Repeat(" ", limits.MaxAnswer)
		proceed := make(chan struct{})
		node := startSlowNode(t, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			if announced {
				w.Header().Set("Content-Length", strconv.Itoa(len(first)+len(rest)))
			}
			io.WriteString(w, first)
			if !announced { // enough to see that it is too long
				io.WriteString(w, "  ")
			}
			http.NewResponseController(w).Flush()
			<-proceed
			io.WriteString(w, rest)
		})
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node), Expander: expander(rewriteFirstAndLast)})
		res, err := client.Post("http://"+addr+"/_msearch", "application/json", strings.NewReader(lines))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(first))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != first {
			t.Fatalf("the client got %d bytes, %v, before the end", len(got), err)
		}
		close(proceed)
		more, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || strings.TrimSpace(string(more)) != strings.TrimSpace(rest) {
			t.Errorf("then the client got %d bytes, %v, want %d", len(more), err, len(rest))
		}
		if n := counter(t, registry, "akin_unchecked_responses_total"); n != 1 {
			t.Errorf("counted %v times", n)
		}
	}
}

// An answer that breaks off while it is looked at breaks off for the client.
func TestBrokenAnswerStaysBroken(t *testing.T) {
	node := startRawNode(t, func(int, rawRequest) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"responses\":[" + hangUp
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
	res, err := client.Post("http://"+addr+"/_msearch", "application/json", strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != `{"responses":[` {
		t.Errorf("the client got %q, %v", got, err)
	}
	if n := len(node.all()); n != 1 {
		t.Errorf("the node got %d requests", n)
	}
}

func TestAnswersInOtherFormsAreNotLookedAt(t *testing.T) {
	for _, header := range []string{"Content-Type: application/yaml\n", "", jsonType + "Content-Encoding: deflate\n", jsonType + "Content-Encoding: gzip\n"} {
		node := startRawNode(t, func(int, rawRequest) string { return answerWith(200, header, responses(badItem)) })
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
		got := exchangeRaw(t, addr, searchOf("/_msearch", jsonType, lines))
		if !strings.HasSuffix(got, "\r\n\r\n"+responses(badItem)) || len(node.all()) != 1 {
			t.Errorf("%q: the client got %q", header, got)
		}
		if n := counter(t, registry, "akin_unchecked_responses_total"); n != 1 {
			t.Errorf("%q: counted %v times", header, n)
		}
	}
}
