package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
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

// A guard is a proxy before a cluster with security, which knows who may search.
type guard struct {
	*rig

	questions, searches, rewritten atomic.Int64
	// decide returns the status for a client, and the body for its question.
	decide atomic.Value
}

type decision func(r *http.Request) (status int, answer string)

const anAccess = `{"_shards":{"total":3}}`

// startGuard starts one with o, whose expander is guarded unless it says
// otherwise, and which has much time unless it says otherwise.
func startGuard(t *testing.T, o Options, decide decision, change ...func(*Server)) *guard {
	t.Helper()
	g := &guard{}
	g.decide.Store(decide)
	node := startNode(t, func(w http.ResponseWriter, r *http.Request) {
		question := r.Method == http.MethodGet && r.URL.Query().Get("filter_path") == "_shards.total"
		if question {
			g.questions.Add(1)
			check.That(t, r.ContentLength <= 0 && r.Header.Get("Content-Encoding") == "" && r.URL.Query().Get("ignore_unavailable") != "", "question %s %v", r.URL, r.Header)
		} else {
			g.searches.Add(1)
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "rewritten") {
				g.rewritten.Add(1)
			}
		}
		status, answer := g.decide.Load().(decision)(r)
		if !question && strings.HasSuffix(r.URL.Path, "/_search") {
			answer = "{}"
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, answer)
	})
	o.Nodes, o.Budget = nodesAt(node), cmp.Or(o.Budget, patience)
	if o.Expander == nil {
		o.Expander = expander(guarded)
	}
	g.rig = start(t, o, nil, change...)
	return g
}

// expect compares what arrived at the cluster.
func (g *guard) expect(t *testing.T, questions, searches, rewritten int64) {
	t.Helper()
	q, s, r := g.questions.Load(), g.searches.Load(), g.rewritten.Load()
	check.That(t, q == questions && s == searches && r == rewritten, "%d questions, %d searches, %d of them rewritten; want %d, %d, %d", q, s, r, questions, searches, rewritten)
}

func always(status int, answer string) decision {
	return func(*http.Request) (int, string) { return status, answer }
}

// searchAs searches as the client with a value of Authorization and returns the
// status. Parameters may stand behind the index.
func (g *guard) searchAs(t *testing.T, who, index string) (status int) {
	t.Helper()
	index, query, _ := strings.Cut(index, "?")
	header := jsonType
	if who != "" {
		header += "Authorization: " + who + "\n"
	}
	_, _ = fmt.Sscanf(g.post(t, "/"+index+"/_search?"+query, header, `{"original":1}`), "HTTP/1.1 %d", &status)
	return status
}

func TestDeniedClientCostsOneQuestion(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		g := startGuard(t, Options{Secured: true}, always(status, `{"error":{}}`))
		for range 50 {
			got := g.searchAs(t, "someone", "docs")
			check.Must(t, got == status, "the client got %d, want %d", got, status)
		}
		g.expect(t, 1, 50, 0)
		g.counted(t, 50, "akin_requests_total", "reason", "not_authorized")
		g.counted(t, 1, "akin_authorization_checks_total", "result", "denied")
	}
}

// TestClientIsKnownByAParameterOfTheURL has the check carry the parameters that
// no search has, and only these, and a verdict hold for them.
func TestClientIsKnownByAParameterOfTheURL(t *testing.T) {
	g := startGuard(t, Options{Secured: true}, func(r *http.Request) (int, string) {
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
		check.Equal(t, tt.status, g.searchAs(t, "", "docs?"+tt.query), tt.query, "the client")
	}
	g.expect(t, 4, 5, 2)
	g.counted(t, 1, "akin_requests_total", "reason", "unknown_to_cluster")
}

// indexBlock is what engines answer about an index with index.blocks.read.
const indexBlock = `{"error":{"root_cause":[{"type":"cluster_block_exception","reason":"index [docs] blocked by: [FORBIDDEN/7/index read (api)];"}],` +
	`"type":"cluster_block_exception","reason":"index [docs] blocked by: [FORBIDDEN/7/index read (api)];"},"status":403}`

// TestAnyDeniedRequestShowsSecurity takes a 401 of a request that is no search
// for what it is, and a 403 unless an index is blocked. Without one the cluster
// is not asked.
func TestAnyDeniedRequestShowsSecurity(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		asks   int64
	}{
		{http.StatusUnauthorized, `{"error":{}}`, 1},
		{http.StatusForbidden, `{"error":{"type":"security_exception"},"status":403}`, 1},
		{http.StatusForbidden, indexBlock, 0},
		{http.StatusNotFound, `{"error":{}}`, 0},
	} {
		g := startGuard(t, Options{}, func(r *http.Request) (int, string) {
			if strings.HasSuffix(r.URL.Path, "/_search") {
				return http.StatusOK, anAccess
			}
			return tt.status, tt.body
		})
		check.Equal(t, tt.body, bodyOf(exchangeRaw(t, g.addr, "GET /_cat/indices HTTP/1.1\nHost: a\nConnection: close\n\n")), "the client")
		g.searchAs(t, "", "docs")
		g.expect(t, tt.asks, 2, 1)
	}
}

// What shows that the cluster has security outlives a reload.
func TestDeniedSearchShowsSecurity(t *testing.T) {
	g := startGuard(t, Options{}, always(http.StatusOK, anAccess))
	g.searchAs(t, "known", "docs")
	g.expect(t, 0, 1, 1)
	g.decide.Store(always(http.StatusUnauthorized, ""))
	g.searchAs(t, "unknown", "docs")
	g.decide.Store(always(http.StatusOK, anAccess))
	before := g.questions.Load()
	o := g.server.opts
	o.Previous = g.server
	again := &guard{rig: start(t, o, nil)}
	for _, p := range []*guard{g, again} {
		p.searchAs(t, "known", "docs")
	}
	after := g.questions.Load()
	check.That(t, before == 0 && after == 2, "%d questions before the cluster denied a search, %d after it, want 0 and 2", before, after)
}

func TestAcceptedClientIsExpandedFromItsFirstSearch(t *testing.T) {
	g := startGuard(t, Options{Secured: true}, func(r *http.Request) (int, string) {
		if r.Header.Get("Authorization") != "known" || !strings.HasPrefix(r.URL.Path, "/docs,more/") {
			return http.StatusForbidden, ""
		}
		return http.StatusOK, anAccess
	})
	var clients sync.WaitGroup
	for range 20 { // side by side they share a question
		clients.Go(func() { g.searchAs(t, "known", "docs,more") })
	}
	clients.Wait()
	g.expect(t, 1, 20, 20)
	g.searchAs(t, "known", "other")
	g.searchAs(t, "unknown", "docs,more")
	g.expect(t, 3, 22, 20)
}

// A cluster that judges clients by the headers that akin adds of them is asked
// with these.
func TestQuestionHasTheForwardedHeadersOfTheSearch(t *testing.T) {
	g := startGuard(t, Options{Secured: true, ForwardedHeaders: true}, func(r *http.Request) (int, string) {
		if r.Header.Get("X-Forwarded-For") != "127.0.0.1" {
			return http.StatusForbidden, "{}"
		}
		return http.StatusOK, anAccess
	})
	g.searchAs(t, "", "a")
	g.expect(t, 1, 1, 1)
}

// A block by a setting of the index says nothing of the client's rights, and of
// the cluster's security.
func TestBlockedIndexIsNotALackOfRights(t *testing.T) {
	for _, secured := range []bool{false, true} {
		p := start(t, Options{Expander: expander(guarded), Budget: patience, Secured: secured}, inTurn(answerWith(http.StatusForbidden, jsonType, indexBlock)))
		for range 3 {
			got := bodyOf(p.post(t, "/docs/_search", jsonType, original))
			check.Must(t, got == indexBlock, "the client got %q", got)
		}
		check.Equal(t, secured, p.server.calls.secured.Load(), "counts as secured after a block")
		p.counted(t, 0, "akin_authorization_checks_total", "result", "denied")
		p.counted(t, 0, "akin_requests_total", "outcome", report.FailedOpen)
		p.counted(t, 0, "akin_requests_total", "reason", "not_authorized")
	}
}

func TestDeniedSearchEndsAcceptance(t *testing.T) {
	g := startGuard(t, Options{Secured: true}, always(http.StatusOK, anAccess))
	g.searchAs(t, "known", "docs")
	g.expect(t, 1, 1, 1)
	g.decide.Store(always(http.StatusForbidden, ""))
	g.searchAs(t, "known", "docs")
	rewritten := g.rewritten.Load()
	g.searchAs(t, "known", "docs")
	g.expect(t, 1, 3, rewritten)
}

func TestUnclearVerdictsLeaveTheSearchAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		question        int
		answer, outcome string
	}{
		"no index": {http.StatusNotFound, `{"error":{}}`, "no_index"},
		"no shards, as for a pattern of hidden indices": {http.StatusOK, `{"_shards":{"total":0}}`, "no_index"},
		"overload":    {http.StatusTooManyRequests, `{}`, "failed"},
		"unavailable": {http.StatusServiceUnavailable, `{}`, "failed"},
		"redirection": {http.StatusFound, ``, "failed"},
		"no JSON":     {http.StatusOK, `<html>`, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGuard(t, Options{Secured: true}, func(r *http.Request) (int, string) {
				if r.Method == http.MethodGet {
					return tt.question, tt.answer
				}
				return http.StatusOK, ""
			})
			check.Equal(t, http.StatusOK, g.searchAs(t, "known", "docs"), "the client")
			g.expect(t, 1, 1, 0)
			g.counted(t, 1, "akin_authorization_checks_total", "result", tt.outcome)
		})
	}
}

func TestSearchDoesNotWaitForASlowQuestion(t *testing.T) {
	release := make(chan struct{})
	g := startGuard(t, Options{Secured: true, Budget: 10 * time.Millisecond}, func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			<-release
		}
		return http.StatusOK, anAccess
	})
	g.searchAs(t, "known", "docs")
	g.expect(t, 1, 1, 0)
	close(release)
	waitFor(t, "the end of the question", func() bool { return g.server.access.checks.Taken() == 0 })
	g.searchAs(t, "known", "docs") // finds the verdict
	g.expect(t, 1, 2, 1)
}

func TestGuessedCredentialsCostFewQuestions(t *testing.T) {
	var book logBook
	g := startGuard(t, Options{Secured: true, Budget: 10 * time.Millisecond, Logger: book.logger()}, always(http.StatusUnauthorized, ""),
		func(s *Server) { s.access.pause = time.Hour })
	for k := range 3 * maxQuestions {
		g.searchAs(t, fmt.Sprintf("guess %d", k), "docs")
	}
	g.expect(t, maxQuestions/2, 3*maxQuestions, 0)
	all := g.server.health.Report(t.Context(), nil)
	check.That(t, len(all) == 0 && !strings.Contains(book.text(), "failing open"), "one who guesses has akin fail: %v, %s", all, book.text())
	g.counted(t, 0, "akin_requests_total", "outcome", report.FailedOpen)
	undecided := g.value(t, "akin_requests_total", "outcome", report.Unchanged, "reason", reasonUndecided)
	denied := g.value(t, "akin_requests_total", "outcome", report.Unchanged, "reason", "not_authorized")
	check.That(t, undecided+denied == 3*maxQuestions && undecided != 0, "%v searches are counted as undecided, %v as denied", undecided, denied)

	// Clients at other addresses are asked about all the same, one who gets the
	// last place after the other.
	g.decide.Store(always(http.StatusOK, anAccess))
	for k := range 50 {
		err := askAs(t.Context(), g.server, "elsewhere", fmt.Sprintf("good %d", k))
		check.Must(t, err == nil, "client %d: %v", k, err)
	}
}

// askAs asks whether the client at an address, with a value of Authorization,
// may search.
func askAs(ctx context.Context, s *Server, address, who string) error {
	x := searchFor(expand.EndpointSearch, "", "", "")
	x.client.Name = address
	ctx = context.WithValue(ctx, clientKey{}, address)
	may := s.access.checker(caller{http.Header{"Authorization": {who}}, x.rawQuery}, x.client.Name, x.asked)
	return may(ctx, esclient.Indices{Expression: "docs", Options: "ignore_unavailable=true"})
}

func TestManyClientsAtOnceWaitForTheirQuestions(t *testing.T) {
	release := make(chan struct{})
	g := startGuard(t, Options{Secured: true}, func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			<-release
		}
		return http.StatusOK, anAccess
	})
	var clients sync.WaitGroup
	for k := range 100 {
		clients.Go(func() { g.searchAs(t, strconv.Itoa(k), "docs") })
	}
	waitFor(t, "all to wait", func() bool { return g.server.access.checks.Taken() == 100 })
	close(release)
	clients.Wait()
	g.expect(t, 100, 100, 100)
}

// The server's end is that of the questions that are under way, and that wait.
func TestQuestionsThatWaitAreBounded(t *testing.T) {
	g := startGuard(t, Options{Secured: true}, func(r *http.Request) (int, string) {
		<-r.Context().Done()
		return http.StatusOK, anAccess
	})
	s := g.server
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for k := range maxWaiting {
		err := askAs(gone, s, "one", strconv.Itoa(k))
		check.Must(t, errors.Is(err, errUndecided) && (k >= maxWaiting/2 || errors.Is(err, context.Canceled)), "question %d: %v", k, err)
	}
	waitFor(t, "half of the places", func() bool { return s.access.checks.Taken() == maxWaiting/2 })
	s.Close()
	n, waiting := s.access.places.Taken(), s.access.checks.Taken()
	check.That(t, n == 0 && waiting == 0, "%d questions are under way and %d wait after the end", n, waiting)
	check.That(t, askAs(t.Context(), s, "other", "other") != nil, "a question is asked after the end")
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
					check.Elapse(time.Duration(lives * float64(tt.want)))
					_, known, err := cache.Peek[any](a.verdicts, key)
					check.That(t, !known || errors.Is(err, tt.err), "the verdict is %v, want %v", err, tt.err)
					return known
				}
				check.That(t, wait(0.9), "it is forgotten too early")
				// A good answer to a search prolongs a good verdict and changes no other.
				a.learn(t.Context(), x.asked, false, http.StatusOK, false)
				if known := wait(0.3); known != (tt.err == nil) {
					t.Errorf("after a good answer it is known: %v", known)
				}
				check.That(t, !wait(1.2), "it holds for too long")
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
		a, b := key(name, "a", "docs", ""), key(name, "b", "docs", "")
		check.That(t, a != b && a != plain, "%s does not tell clients apart", name)
	}
	for _, name := range []string{"User-Agent", "X-Opaque-Id", "Traceparent", "Content-Type", "Accept", "X-Request-Id", "Content-Length"} {
		check.Equal(t, plain, key(name, "a", "docs", ""), name, "tells clients apart")
	}
	check.That(t, key("", "", "docs2", "") != plain && key("", "", "docs", "x") != plain && key("", "", "", "docs") != plain, "the indices are no part of the key")
	withToken := func(token string) accessKey {
		return s.access.keyOf(caller{http.Header{"Authorization": {"Basic x"}}, "size=3&jwt_token=" + token}, esclient.Indices{Expression: "docs"})
	}
	if a, b := withToken("a"), withToken("b"); a == b || a == plain || withToken("") == plain {
		t.Error("a token in the URL does not tell clients apart")
	}
	other := build(Options{Nodes: nodesAt("http://127.0.0.1:9")})
	t.Cleanup(other.Close)
	check.That(t, other.access.keyOf(caller{header: http.Header{"Authorization": {"Basic x"}}}, esclient.Indices{Expression: "docs"}) != plain, "the key of a client is the same in every process")
}

// TestDeniedClientHasFewTemplatesRendered of those that it sends many at a
// time.
func TestDeniedClientHasFewTemplatesRendered(t *testing.T) {
	many := strings.Repeat("{\"index\":\"b\"}\n{\"id\":\"a\"}\n{}\n{\"id\":\"a\"}\n{\"index\":[\"b\"]}\n{\"id\":\"a\"}\n", 10)
	for _, tt := range []struct {
		secured            bool
		target, body       string
		renders, questions int // at most, and one for each of the indices
	}{
		{true, "/docs/_search/template", `{"id":"a"}`, 0, 1},
		{true, "/docs/_msearch/template", many, 0, 2},
		{false, "/docs/_msearch/template", many, templatesSideBySide, 2},
	} {
		p := start(t, Options{Expander: expander(guarded), Secured: tt.secured, Templates: true, Budget: patience}, inTurn(answerWith(401, jsonType, "{}")))
		for range 10 {
			p.post(t, tt.target, jsonType, tt.body)
		}
		renders, questions := 0, 0
		for _, r := range p.all() {
			switch {
			case strings.Contains(r.line, "_render"):
				renders++
			case strings.HasPrefix(r.line, "GET"):
				questions++
			}
		}
		if n := len(p.all()) - renders - questions; renders > tt.renders || questions != tt.questions || n != 10 {
			t.Errorf("security known %t: %d templates rendered, %d questions, %d searches; want at most %d, %d, 10", tt.secured, renders, questions, n, tt.renders, tt.questions)
		}
	}
}

func TestClientThatMaySearchOneIndexHasItsTemplatesRendered(t *testing.T) {
	rendered := false
	p := start(t, Options{
		Secured: true, Templates: true, Budget: patience,
		Expander: expander(func(_ context.Context, r *expand.Request) (*expand.Result, error) {
			rendered = strings.Count(string(r.Body), `{"query":{}}`) == 2
			return &expand.Result{}, nil
		}),
	}, func(n int, r rawRequest) string {
		switch {
		case strings.HasPrefix(r.line, "GET /good/"):
			return answerWith(200, jsonType, anAccess)
		case strings.HasPrefix(r.line, "GET"):
			return answerWith(403, jsonType, "{}")
		}
		return renders(`{"query":{}}`)(n, r)
	})
	p.post(t, "/bad/_msearch/template", ndjsonType, "{}\n{\"id\":\"a\"}\n{\"index\":\"good\"}\n{\"id\":\"a\"}\n")
	check.That(t, rendered, "the node got %q", p.all())
}
