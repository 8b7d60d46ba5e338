package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/proxy/report"
)

// guarded expands a search where the client is allowed to, as the real expander
// does.
func guarded(ctx context.Context, r *expand.Request) (*expand.Result, error) {
	if r.Allowed == nil {
		return rewriteTo(`{"rewritten":1}`)(ctx, r)
	}
	err := r.Allowed(ctx, esclient.Indices{Expression: r.Index, Options: "ignore_unavailable=true"})
	switch {
	case errors.Is(err, expand.ErrNotAuthorized):
		return &expand.Result{Reason: reason.NotAuthorized}, nil
	case errors.Is(err, expand.ErrUnknown):
		return &expand.Result{Reason: reason.UnknownToCluster}, nil
	case err != nil:
		return nil, err
	}
	return rewriteTo(`{"rewritten":1}`)(ctx, r)
}

// A guard is a cluster with security: it knows who may search.
type guard struct {
	*httptest.Server
	questions, searches, rewritten atomic.Int64
	// decide returns the status for a client, and the body for its question.
	mu     sync.Mutex
	decide func(r *http.Request) (status int, answer string)
}

const anAccess = `{"_shards":{"total":3}}`

func startGuard(t *testing.T, decide func(r *http.Request) (int, string)) *guard {
	t.Helper()
	g := &guard{decide: decide}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question := r.Method == http.MethodGet && r.URL.Query().Get("filter_path") == "_shards.total"
		if question {
			g.questions.Add(1)
			if r.ContentLength > 0 || r.Header.Get("Content-Encoding") != "" || r.URL.Query().Get("ignore_unavailable") == "" {
				t.Errorf("question %s %v", r.URL, r.Header)
			}
		} else {
			g.searches.Add(1)
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "rewritten") {
				g.rewritten.Add(1)
			}
		}
		g.mu.Lock()
		decide := g.decide
		g.mu.Unlock()
		status, answer := decide(r)
		if !question && strings.HasSuffix(r.URL.Path, "/_search") {
			answer = "{}"
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	t.Cleanup(g.Close)
	return g
}

// change replaces what the cluster decides.
func (g *guard) change(decide func(r *http.Request) (int, string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decide = decide
}

// expect compares what arrived at the cluster.
func (g *guard) expect(t *testing.T, questions, searches, rewritten int64) {
	t.Helper()
	if q, s, r := g.questions.Load(), g.searches.Load(), g.rewritten.Load(); q != questions || s != searches || r != rewritten {
		t.Errorf("%d questions, %d searches, %d of them rewritten; want %d, %d, %d", q, s, r, questions, searches, rewritten)
	}
}

func always(status int, answer string) func(*http.Request) (int, string) {
	return func(*http.Request) (int, string) { return status, answer }
}

// searchAs searches as the client with a value of Authorization. Parameters may
// stand behind the index.
func searchAs(t *testing.T, addr, who, index string) int {
	t.Helper()
	index, query, _ := strings.Cut(index, "?")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/"+index+"/_search?"+query, strings.NewReader(`{"original":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if who != "" {
		r.Header.Set("Authorization", who)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func TestDeniedClientCostsOneQuestion(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		g := startGuard(t, always(status, `{"error":{}}`))
		addr, registry := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: patience})
		for range 50 {
			if got := searchAs(t, addr, "someone", "docs"); got != status {
				t.Fatalf("the client got %d, want %d", got, status)
			}
		}
		g.expect(t, 1, 50, 0)
		if n := counter(t, registry, "akin_requests_total", "reason", "not_authorized"); n != 50 {
			t.Errorf("%v searches were not authorized, want 50", n)
		}
		if n := counter(t, registry, "akin_authorization_checks_total", "result", "denied"); n != 1 {
			t.Errorf("%v questions were denied, want 1", n)
		}
	}
}

// TestClientIsKnownByAParameterOfTheURL has the check carry the parameters that
// no search has, and only these, and a verdict hold for them.
func TestClientIsKnownByAParameterOfTheURL(t *testing.T) {
	g := startGuard(t, func(r *http.Request) (int, string) {
		asked := r.URL.Query()
		question := asked.Get("filter_path") == "_shards.total"
		switch {
		case question && (asked.Get("size") != "0" || asked.Has("routing") || asked.Has("akin")):
			t.Errorf("question %s", r.URL)
		case asked.Has("unheard_of"):
			return http.StatusBadRequest, `{"error":{}}`
		case asked.Get("jwt_token") != "good":
			return http.StatusUnauthorized, `{"error":{}}`
		}
		return http.StatusOK, anAccess
	})
	addr, registry := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: patience})
	for _, tt := range []struct {
		query  string
		status int
	}{
		{"size=3&jwt_token=good&routing=x&akin=explain", http.StatusOK},
		{"jwt_token=bad", http.StatusUnauthorized},
		{"size=3", http.StatusUnauthorized},
		{"routing=y&jwt_token=good", http.StatusOK}, // known already
		{"jwt_token=good&unheard_of=1", http.StatusBadRequest},
	} {
		if got := searchAs(t, addr, "", "docs?"+tt.query); got != tt.status {
			t.Errorf("%s: the client got %d, want %d", tt.query, got, tt.status)
		}
	}
	g.expect(t, 4, 5, 2)
	if n := counter(t, registry, "akin_requests_total", "reason", "unknown_to_cluster"); n != 1 {
		t.Errorf("%v searches that the cluster does not know, want the one with a parameter that it does not", n)
	}
}

// TestAnyDeniedRequestShowsSecurity takes a 401 of a request that is no search
// for what it is, and a 403 unless an index is blocked.
func TestAnyDeniedRequestShowsSecurity(t *testing.T) {
	const blocked = `{"error":{"type":"cluster_block_exception"},"status":403}`
	for _, tt := range []struct {
		status int
		body   string
		shows  bool
	}{
		{http.StatusUnauthorized, `{"error":{}}`, true},
		{http.StatusForbidden, `{"error":{"type":"security_exception"},"status":403}`, true},
		{http.StatusForbidden, blocked, false},
		{http.StatusNotFound, `{"error":{}}`, false},
	} {
		g := startGuard(t, func(r *http.Request) (int, string) {
			if strings.HasSuffix(r.URL.Path, "/_search") {
				return http.StatusOK, anAccess
			}
			return tt.status, tt.body
		})
		addr, _ := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Budget: patience})
		res, err := client.Get("http://" + addr + "/_cat/indices")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); string(got) != tt.body || err != nil {
			t.Errorf("the client gets %q (%v), want %q", got, err, tt.body)
		}
		res.Body.Close()
		searchAs(t, addr, "", "docs")
		if asked := g.questions.Load() > 0; asked != tt.shows {
			t.Errorf("after a %d with %q akin asks whether the client may search: %v", tt.status, tt.body, asked)
		}
	}
}

func TestAcceptedClientIsExpandedFromItsFirstSearch(t *testing.T) {
	g := startGuard(t, func(r *http.Request) (int, string) {
		if r.Header.Get("Authorization") != "known" || !strings.HasPrefix(r.URL.Path, "/docs,more/") {
			return http.StatusForbidden, ""
		}
		return http.StatusOK, anAccess
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: patience})
	var clients sync.WaitGroup
	for range 20 { // side by side they share a question
		clients.Go(func() { searchAs(t, addr, "known", "docs,more") })
	}
	clients.Wait()
	g.expect(t, 1, 20, 20)
	searchAs(t, addr, "known", "other")
	searchAs(t, addr, "unknown", "docs,more")
	g.expect(t, 3, 22, 20)
}

// A cluster that judges clients by the headers that akin adds of them is asked
// with these.
func TestQuestionHasTheForwardedHeadersOfTheSearch(t *testing.T) {
	g := startGuard(t, func(r *http.Request) (int, string) {
		if r.Header.Get("X-Forwarded-For") != "127.0.0.1" {
			return http.StatusForbidden, "{}"
		}
		return http.StatusOK, anAccess
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, ForwardedHeaders: true})
	exchangeRaw(t, addr, searchOf("/a/_search", jsonType, original))
	if n := g.rewritten.Load(); n != 1 {
		t.Errorf("%d searches were expanded after %d questions, want 1", n, g.questions.Load())
	}
}

func TestClusterWithoutSecurityIsNotAsked(t *testing.T) {
	g := startGuard(t, always(http.StatusOK, anAccess))
	addr, _ := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Budget: patience})
	searchAs(t, addr, "known", "docs")
	g.expect(t, 0, 1, 1)

	// Once it denies a search it has security.
	g.change(always(http.StatusUnauthorized, ""))
	searchAs(t, addr, "unknown", "docs")
	g.change(always(http.StatusOK, anAccess))
	before := g.questions.Load()
	searchAs(t, addr, "known", "docs")
	if after := g.questions.Load(); before != 0 || after != 1 {
		t.Errorf("%d questions before the cluster denied a search, %d after it, want 0 and 1", before, after)
	}
}

// indexBlock is what engines answer about an index with index.blocks.read.
const indexBlock = `{"error":{"root_cause":[{"type":"cluster_block_exception","reason":"index [docs] blocked by: [FORBIDDEN/7/index read (api)];"}],` +
	`"type":"cluster_block_exception","reason":"index [docs] blocked by: [FORBIDDEN/7/index read (api)];"},"status":403}`

// A block by a setting of the index says nothing of the client's rights, and of
// the cluster's security.
func TestBlockedIndexIsNotALackOfRights(t *testing.T) {
	node := startRawNode(t, func(_ int, r rawRequest) string {
		if strings.Contains(r.line, "/docs/") {
			return answerWith(http.StatusForbidden, jsonType, indexBlock)
		}
		return answerWith(200, jsonType, anAccess)
	})
	for _, secured := range []bool{false, true} {
		s := newServer(t, Options{Nodes: nodesAt(node.URL), Expander: expander(guarded), Budget: patience, Secured: secured})
		addr := startServer(t, s)
		for range 3 {
			if got := exchangeRaw(t, addr, searchOf("/docs/_search", jsonType, original)); !strings.HasSuffix(got, "\r\n\r\n"+indexBlock) {
				t.Fatalf("the client got %q", got)
			}
		}
		if s.calls.secured.Load() != secured {
			t.Error("a block has the cluster count as secured")
		}
		if n := counter(t, s.registry, "akin_authorization_checks_total", "result", "denied"); n != 0 {
			t.Errorf("%v checks were denied", n)
		}
		if n := counter(t, s.registry, "akin_requests_total", "outcome", report.FailedOpen) + counter(t, s.registry, "akin_requests_total", "reason", "not_authorized"); n != 0 {
			t.Errorf("%v searches failed open, or were not authorized", n)
		}
	}
}

func TestDeniedSearchEndsAcceptance(t *testing.T) {
	g := startGuard(t, always(http.StatusOK, anAccess))
	addr, _ := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: patience})
	searchAs(t, addr, "known", "docs")
	g.expect(t, 1, 1, 1)
	g.change(always(http.StatusForbidden, ""))
	searchAs(t, addr, "known", "docs")
	rewritten := g.rewritten.Load()
	searchAs(t, addr, "known", "docs")
	if got := g.rewritten.Load(); got != rewritten || g.questions.Load() != 1 {
		t.Errorf("%d rewritten searches after the denial, %d questions", got-rewritten, g.questions.Load())
	}
}

func TestUnclearVerdictsLeaveTheSearchAlone(t *testing.T) {
	tests := []struct {
		name     string
		question int
		answer   string
		outcome  string
	}{
		{"no index", http.StatusNotFound, `{"error":{}}`, "no_index"},
		{"no shards, as for a pattern of hidden indices", http.StatusOK, `{"_shards":{"total":0}}`, "no_index"},
		{"overload", http.StatusTooManyRequests, `{}`, "failed"},
		{"unavailable", http.StatusServiceUnavailable, `{}`, "failed"},
		{"redirection", http.StatusFound, ``, "failed"},
		{"no JSON", http.StatusOK, `<html>`, "failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := startGuard(t, func(r *http.Request) (int, string) {
				if r.Method == http.MethodGet {
					return tt.question, tt.answer
				}
				return http.StatusOK, ""
			})
			addr, registry := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: patience})
			if got := searchAs(t, addr, "known", "docs"); got != http.StatusOK {
				t.Errorf("the client got %d", got)
			}
			g.expect(t, 1, 1, 0)
			if n := counter(t, registry, "akin_authorization_checks_total", "result", tt.outcome); n != 1 {
				t.Errorf("%v questions %s, want 1", n, tt.outcome)
			}
		})
	}
}

func TestSearchDoesNotWaitForASlowQuestion(t *testing.T) {
	release, answered := make(chan struct{}), make(chan struct{}, 1)
	g := startGuard(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			<-release
			answered <- struct{}{}
		}
		return http.StatusOK, anAccess
	})
	s := build(Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: 10 * time.Millisecond})
	t.Cleanup(s.Close)
	server := httptest.NewServer(s.proxy)
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()
	searchAs(t, addr, "known", "docs")
	g.expect(t, 1, 1, 0)
	close(release)
	receive(t, "the answer to the question", answered)
	waitFor(t, "the end of the question", func() bool { return s.access.checks.Taken() == 0 })
	searchAs(t, addr, "known", "docs") // finds the verdict
	g.expect(t, 1, 2, 1)
}

func TestGuessedCredentialsCostFewQuestions(t *testing.T) {
	var book logBook
	g := startGuard(t, always(http.StatusUnauthorized, ""))
	s := newServer(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: 10 * time.Millisecond, Logger: book.logger()})
	s.access.pause = time.Hour
	addr := startServer(t, s)
	for k := range 3 * maxQuestions {
		searchAs(t, addr, fmt.Sprintf("guess %d", k), "docs")
	}
	g.expect(t, maxQuestions/2, 3*maxQuestions, 0)
	if all := s.health.Report(t.Context(), nil); len(all) != 0 || strings.Contains(book.text(), "failing open") {
		t.Errorf("one who guesses has akin fail: %v, %s", all, book.text())
	}
	if n := counter(t, s.registry, "akin_requests_total", "outcome", report.FailedOpen); n != 0 {
		t.Errorf("%v searches of one who guesses are counted as failed open", n)
	}
	undecided := counter(t, s.registry, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonUndecided)
	denied := counter(t, s.registry, "akin_requests_total", "outcome", report.Unchanged, "reason", "not_authorized")
	if undecided+denied != 3*maxQuestions || undecided == 0 {
		t.Errorf("%v searches are counted as undecided, %v as denied", undecided, denied)
	}

	// Clients at other addresses are asked about all the same, one who gets the
	// last place after the other.
	g.change(always(http.StatusOK, anAccess))
	for k := range 50 {
		if err := askAs(t.Context(), s, "elsewhere", fmt.Sprintf("good %d", k)); err != nil {
			t.Fatalf("client %d: %v", k, err)
		}
	}
}

// askAs asks whether the client at an address, with a value of Authorization,
// may search.
func askAs(ctx context.Context, s *Server, address, who string) error {
	x := searchFor(expand.EndpointSearch, "", "", "")
	x.client.Name = address
	ctx = context.WithValue(ctx, clientKey{}, address)
	check := s.access.checker(caller{http.Header{"Authorization": {who}}, x.rawQuery}, x.client.Name, x.asked)
	return check(ctx, esclient.Indices{Expression: "docs", Options: "ignore_unavailable=true"})
}

func TestManyClientsAtOnceWaitForTheirQuestions(t *testing.T) {
	g := startGuard(t, func(*http.Request) (int, string) {
		time.Sleep(3 * time.Millisecond) // a cluster takes some time
		return http.StatusOK, anAccess
	})
	addr, _ := startProxy(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Secured: true, Budget: patience})
	var clients sync.WaitGroup
	for k := range 100 {
		clients.Go(func() { searchAs(t, addr, strconv.Itoa(k), "docs") })
	}
	clients.Wait()
	g.expect(t, 100, 100, 100)
}

func TestQuestionsThatWaitAreBounded(t *testing.T) {
	g := startGuard(t, func(r *http.Request) (int, string) {
		<-r.Context().Done()
		return http.StatusOK, anAccess
	})
	s := newServer(t, Options{Nodes: nodesAt(g.URL), Secured: true})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for k := range maxWaiting {
		if err := askAs(gone, s, "one", strconv.Itoa(k)); !errors.Is(err, errUndecided) {
			t.Fatalf("question %d: %v", k, err)
		}
	}
	waitFor(t, "half of the places", func() bool { return s.access.checks.Taken() == maxWaiting/2 })
	s.Close()
	if n, waiting := s.access.places.Taken(), s.access.checks.Taken(); n != 0 || waiting != 0 {
		t.Errorf("%d questions are under way and %d wait after the end", n, waiting)
	}
}

func TestReloadKeepsThatTheClusterHasSecurity(t *testing.T) {
	g := startGuard(t, always(http.StatusUnauthorized, ""))
	before := newServer(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Budget: patience})
	searchAs(t, startServer(t, before), "unknown", "docs")
	after := newServer(t, Options{Nodes: nodesAt(g.URL), Expander: expander(guarded), Budget: patience, Previous: before})
	searchAs(t, startServer(t, after), "unknown", "docs")
	if n := g.questions.Load(); n != 1 {
		t.Errorf("%d questions after the reload, want 1", n)
	}
}

func TestCloseEndsQuestions(t *testing.T) {
	asked := make(chan struct{})
	g := startGuard(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			close(asked)
			<-r.Context().Done()
		}
		return http.StatusOK, anAccess
	})
	s := build(Options{Nodes: nodesAt(g.URL), Secured: true})
	check := s.access.checker(caller{header: http.Header{}}, "", new(sync.Map))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- check(ctx, esclient.Indices{Options: "ignore_unavailable=true"}) }()
	receive(t, "the question", asked)
	cancel()
	if err := receive(t, "the search", done); !errors.Is(err, context.Canceled) {
		t.Errorf("the search ends with %v", err)
	}
	s.Close() // waits
	if s.access.places.Taken() != 0 {
		t.Error("a question keeps its place")
	}
	if err := check(t.Context(), esclient.Indices{Expression: "other"}); err == nil {
		t.Error("a question is asked after the end")
	}
}

func TestVerdictsHoldForAWhile(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"accepted", nil, acceptedTime},
		{"denied", expand.ErrNotAuthorized, deniedTime},
		{"no index", expand.ErrUnknown, failedTime},
		{"failed", io.ErrUnexpectedEOF, failedTime},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAccess(&calls{}, nil, nil, nil)
				defer a.close()
				key, x := accessKey{1}, searchFor(expand.EndpointSearch, "", "", "")
				x.asked.Store(key, true)
				_, _ = cache.Get(t.Context(), a.verdicts, key, 0, func(context.Context) (any, error) { return nil, tt.err })
				wait := func(lives float64) (known bool) {
					time.Sleep(time.Duration(lives * float64(tt.want)))
					_, known, err := cache.Peek[any](a.verdicts, key)
					if known && !errors.Is(err, tt.err) {
						t.Errorf("the verdict is %v, want %v", err, tt.err)
					}
					return known
				}
				if !wait(0.9) {
					t.Error("it is forgotten too early")
				}
				// A good answer to a search prolongs a good verdict and changes no other.
				a.learn(t.Context(), x.asked, false, http.StatusOK, false)
				if known := wait(0.3); known != (tt.err == nil) {
					t.Errorf("after a good answer it is known: %v", known)
				}
				if wait(1.2) {
					t.Error("it holds for too long")
				}
			})
		})
	}
}

// TestClientsAreToldApart by every header that clusters know clients by, and by
// none that differs from search to search.
func TestClientsAreToldApart(t *testing.T) {
	s := build(Options{Nodes: nodesAt("http://127.0.0.1:9")})
	t.Cleanup(s.Close)
	key := func(header, value, index, options string) accessKey {
		h := http.Header{"Authorization": {"Basic x"}}
		if header != "" {
			h.Set(header, value)
		}
		return s.access.keyOf(caller{header: h}, esclient.Indices{Expression: index, Options: options})
	}
	plain := key("", "", "docs", "")
	for _, name := range []string{
		"Authorization", "Cookie", "es-security-runas-user", "es-secondary-authorization", "ES-Client-Authentication", "securitytenant",
		"x-proxy-user", "x-proxy-roles", "x-proxy-ext-department", "X-Forwarded-For", "X-Forwarded-User", "Forwarded", "X-Remote-User",
		"opensearch_security_impersonate_as", "opendistro_security_impersonate_as", "X-Api-Key", "X-Auth-Token", "jwt",
	} {
		if a, b := key(name, "a", "docs", ""), key(name, "b", "docs", ""); a == b || a == plain {
			t.Errorf("%s does not tell clients apart", name)
		}
	}
	for _, name := range []string{"User-Agent", "X-Opaque-Id", "Traceparent", "Content-Type", "Accept", "X-Request-Id", "Content-Length"} {
		if key(name, "a", "docs", "") != plain {
			t.Errorf("%s tells clients apart", name)
		}
	}
	if key("", "", "docs2", "") == plain || key("", "", "docs", "x") == plain || key("", "", "", "docs") == plain {
		t.Error("the indices are no part of the key")
	}
	withToken := func(token string) accessKey {
		return s.access.keyOf(caller{http.Header{"Authorization": {"Basic x"}}, "size=3&jwt_token=" + token}, esclient.Indices{Expression: "docs"})
	}
	if a, b := withToken("a"), withToken("b"); a == b || a == plain || withToken("") == plain {
		t.Error("a token in the URL does not tell clients apart")
	}
	other := build(Options{Nodes: nodesAt("http://127.0.0.1:9")})
	t.Cleanup(other.Close)
	if other.access.keyOf(caller{header: http.Header{"Authorization": {"Basic x"}}}, esclient.Indices{Expression: "docs"}) == plain {
		t.Error("the key of a client is the same in every process")
	}
}

func TestDeniedClientHasNoTemplateRendered(t *testing.T) {
	node := startRawNode(t, func(int, rawRequest) string {
		return "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
	})
	addr, registry := startProxy(t, Options{
		Nodes: nodesAt(node.URL), Expander: expander(guarded), Secured: true, Templates: true, Budget: patience,
		Registry: prometheus.NewRegistry(),
	})
	for range 3 {
		exchangeRaw(t, addr, "POST /docs/_search/template HTTP/1.1\nHost: x\nConnection: close\nContent-Type: application/json\nContent-Length: 10\n\n{\"id\":\"a\"}")
	}
	for _, r := range node.all() {
		if strings.Contains(r.line, "_render") {
			t.Errorf("asked for %s", r.line)
		}
	}
	if n := counter(t, registry, "akin_requests_total", "reason", "not_authorized"); len(node.all()) != 4 || n != 3 {
		t.Errorf("%d requests, want one question and 3 searches; %v not authorized", len(node.all()), n)
	}
}

// TestDeniedClientHasFewTemplatesRendered of those that it sends many at a
// time.
func TestDeniedClientHasFewTemplatesRendered(t *testing.T) {
	body := strings.Repeat("{\"index\":\"b\"}\n{\"id\":\"a\"}\n{}\n{\"id\":\"a\"}\n{\"index\":[\"b\"]}\n{\"id\":\"a\"}\n", 10)
	for secured, most := range map[bool]int{true: 0, false: templatesSideBySide} {
		node := startRawNode(t, func(int, rawRequest) string { return answerWith(401, jsonType, "{}") })
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(guarded), Secured: secured, Templates: true, Budget: patience})
		for range 10 {
			exchangeRaw(t, addr, searchOf("/docs/_msearch/template", ndjsonType, body))
		}
		renders, questions, searches := 0, 0, 0
		for _, r := range node.all() {
			switch {
			case strings.Contains(r.line, "_render"):
				renders++
			case strings.HasPrefix(r.line, "GET"):
				questions++
			default:
				searches++
			}
		}
		// One question for each of the indices.
		if renders > most || questions != 2 || searches != 10 {
			t.Errorf("security known %t: %d templates rendered, %d questions, %d searches; want at most %d, 2, 10", secured, renders, questions, searches, most)
		}
	}
}

func TestClientThatMaySearchOneIndexHasItsTemplatesRendered(t *testing.T) {
	node := startRawNode(t, func(_ int, r rawRequest) string {
		switch {
		case strings.Contains(r.line, "_render"):
			return answerWith(200, jsonType, `{"template_output":{"query":{}}}`)
		case strings.HasPrefix(r.line, "GET /good/"):
			return answerWith(200, jsonType, anAccess)
		case strings.HasPrefix(r.line, "GET"):
			return answerWith(403, jsonType, "{}")
		}
		return emptyAnswer
	})
	rendered := false
	addr, _ := startProxy(t, Options{
		Nodes: nodesAt(node.URL), Secured: true, Templates: true, Budget: patience,
		Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			rendered = strings.Count(string(r.Body), `{"query":{}}`) == 2
			return &expand.Result{}, nil
		}),
	})
	exchangeRaw(t, addr, searchOf("/bad/_msearch/template", ndjsonType, "{}\n{\"id\":\"a\"}\n{\"index\":\"good\"}\n{\"id\":\"a\"}\n"))
	if !rendered {
		t.Errorf("the node got %q", node.all())
	}
}
