package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/playground"
	"github.com/akin-search/akin/proxy/report"
)

const (
	// Paths of the admin port: what a search becomes, of the kind that
	// endpointParameter names, and the last explanations.
	expandPath        = "/_akin/expand"
	endpointParameter = "akin_endpoint"
	explanationsPath  = "/_akin/explanations"
	searchesPath      = "/_akin/searches"
	// shownExplanations and shownSearches are how many are listed by default,
	// maxShownSearches how many at most.
	shownExplanations = 20
	shownSearches     = 100
	maxShownSearches  = 10_000
	// showBudget limits an expansion that is only shown, with cold caches, too.
	showBudget = 2 * time.Second
	// readyTimeout limits the readiness check; Kubernetes gives up after 1 s.
	readyTimeout = 900 * time.Millisecond
)

// adminEngine returns the handler of the admin port.
func (s *Server) adminEngine() *gin.Engine {
	e := newEngine()
	e.GET("/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, status{Status: "ok"}) })
	e.GET("/readyz", s.ready)
	e.GET("/metrics", gin.WrapH(promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})))
	shows := e.Group("", s.letIn)
	shows.GET("/", func(c *gin.Context) { c.Redirect(http.StatusSeeOther, strings.TrimPrefix(playground.Page, "/")) })
	page := playground.Options{
		Search: s.proxy, Explained: s.explanation, Matrices: s.opts.Matrices,
		Searches: s.collected, Suggestions: s.opts.Suggestions, Writable: s.opts.Gate.Token != "",
	}
	for route, h := range playground.Routes(page) {
		method, path, _ := strings.Cut(route, " ")
		shows.Handle(method, path, gin.WrapF(h))
	}
	shows.POST(expandPath, s.show)
	shows.POST(expandPath+"/*index", s.show)
	shows.GET(searchesPath, s.listSearches)
	shows.GET(explanationsPath, s.listExplanations)
	shows.GET(explanationsPath+"/:id", s.showExplanation)
	return e
}

// letIn refuses callers who may not see texts of searches, and keeps browsers
// from caching them.
func (s *Server) letIn(c *gin.Context) {
	playground.GuardHeaders(c.Writer.Header())
	if status, why := s.opts.Gate.Refuses(c.Request, c.Writer.Header()); status != 0 {
		if status == http.StatusUnauthorized && c.Request.Header.Get("Authorization") != "" {
			s.tokens.note(c.Request.RemoteAddr)
		}
		refuse(c.Writer, status, why)
		c.Abort()
	}
}

// status is the answer of /healthz and /readyz.
type status struct {
	Status  string   `json:"status"`
	Reasons []string `json:"reasons,omitempty"`
	// Remembered and Embedded are those of [report.Condition].
	Remembered []report.Remembered `json:"remembered,omitempty"`
	Embedded   []report.Remembered `json:"embeddings,omitempty"`
}

// ready answers 200 if requests are forwarded, else 503.
func (s *Server) ready(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	state := s.condition(ctx)
	said, code := status{Status: "ok", Reasons: state.NotReady, Remembered: state.Remembered, Embedded: state.Embedded}, http.StatusOK
	for _, d := range state.Degraded {
		said.Status = "degraded"
		said.Reasons = append(said.Reasons, d.Reason+": "+d.Detail)
	}
	if len(state.NotReady) > 0 {
		said.Status, code = "not ready", http.StatusServiceUnavailable
	}
	c.JSON(code, said)
}

// condition returns and reports the state; not ready if ctx ends first.
func (s *Server) condition(ctx context.Context) (c report.Condition) {
	if s.opts.Check != nil {
		c = s.opts.Check(ctx)
	}
	if s.draining.Load() {
		c.NotReady = append([]string{"shutting down"}, c.NotReady...)
	}
	if s.pause.holds() {
		c.Degraded = append(c.Degraded, report.Degradation{
			Reason: report.Paused, Detail: "the cluster refuses rewritten searches with 429, 503 or the like: all are sent as they came",
		})
	}
	c.Degraded = s.health.Report(ctx, c.Degraded)
	return c
}

// An Expansion is what a search becomes: the answer of POST
// /_akin/expand/{index}.
type Expansion struct {
	Rewritten bool   `json:"rewritten"`
	Reason    string `json:"reason,omitempty"`
	// Hint says in a sentence which indices are expanded if no matrix is bound.
	Hint     string               `json:"hint,omitempty"`
	Cause    string               `json:"cause,omitempty"` // of a failure, as in the metrics
	Error    string               `json:"error,omitempty"`
	RawQuery string               `json:"raw_query"`
	Body     json.RawMessage      `json:"body,omitempty"`
	Failures []string             `json:"failures,omitempty"`
	Clauses  []expand.Explanation `json:"clauses"`
}

// show answers with what would be sent for a search, and why.
func (s *Server) show(c *gin.Context) {
	in, e, status, why := s.shownRequest(c.Request)
	if why != "" {
		refuse(c.Writer, status, why)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), showBudget)
	defer cancel()
	writeJSON(c.Writer, s.expansion(ctx, e, in))
}

// Expand returns what would be sent for a search with a profile, or without one
// for "". It is an error if the profile is unknown or switched off.
func (s *Server) Expand(ctx context.Context, profile string, in *expand.Request) (Expansion, error) {
	e, why := s.expanderFor(profile)
	if why != "" {
		return Expansion{}, fmt.Errorf("searches are not expanded: %s", why)
	}
	return s.expansion(ctx, e, in), nil
}

func (s *Server) expansion(ctx context.Context, e Expander, in *expand.Request) Expansion {
	var res *expand.Result
	err := s.guard.Do("expanding", func() (err error) {
		res, err = e.Expand(ctx, in)
		return err
	})
	shown := Expansion{RawQuery: in.RawQuery, Clauses: []expand.Explanation{}}
	switch {
	case err != nil:
		shown.Cause, shown.Error = s.cause(err), err.Error()
		return shown
	case !res.Rewritten:
		shown.Reason = reasonOf(res)
		if shown.Reason == string(reason.NoMatrix) && s.opts.Unbound != nil {
			shown.Hint = s.opts.Unbound(ctx, in.Index)
		}
	default:
		shown.Rewritten = true
		shown.RawQuery = res.RawQuery
		shown.Body = res.Body
		if in.Endpoint == expand.EndpointMultiSearch {
			shown.Body = report.Body(res.Body) // lines of JSON are not JSON
		}
	}
	for _, failure := range res.Failures() {
		shown.Failures = append(shown.Failures, failure.Error())
	}
	shown.Clauses = report.Show(ctx, res.Clauses, s.opts.Forms)
	return shown
}

// shownRequest returns the search to show and its expander, or the status and
// reason of a refusal.
func (s *Server) shownRequest(r *http.Request) (in *expand.Request, e Expander, status int, why string) {
	query, control := cutControl(r.URL.RawQuery, r.Header)
	kind := ""
	query = answer.CutParameters(query, func(name, value string) bool {
		if name == endpointParameter {
			kind = value
		}
		return name == endpointParameter
	})
	endpoint, known := report.Endpoint(kind)
	e, why = s.expanderFor(control.profile)
	index, err := url.PathUnescape(strings.Trim(strings.TrimPrefix(r.URL.EscapedPath(), expandPath), "/"))
	switch {
	case why == reasonUnknownProfile:
		return nil, nil, http.StatusNotFound, "no profile has that name"
	case why != "":
		return nil, nil, http.StatusNotFound, "expansion is switched off"
	case !known:
		return nil, nil, http.StatusBadRequest, "akin_endpoint is none of search, msearch, count, validate, explain, rank_eval"
	case err != nil:
		return nil, nil, http.StatusBadRequest, "the index is not escaped properly"
	}
	in = &expand.Request{Endpoint: endpoint, Index: index, RawQuery: query, Preview: true}
	in.Body, status, why = s.shownRequestBody(r)
	return in, e, status, why
}

// shownRequestBody reads and unpacks the body, or returns a status and reason.
func (s *Server) shownRequestBody(r *http.Request) (body []byte, status int, why string) {
	coding, known := answer.ContentEncoding(r.Header)
	if !known {
		return nil, http.StatusUnsupportedMediaType, "the body is neither plain nor gzip"
	}
	hold := s.opts.Memory.Hold(limits.SearchBody, "")
	defer hold.Release()
	body, err := limits.Read(r.Body, hold, r.ContentLength, s.opts.MaxBody)
	broken := "the body of the request broke off"
	if err == nil && coding != "" && len(body) > 0 {
		body, err = s.decompressShown(body)
		broken = "the body is no sound gzip"
	}
	switch {
	case err == nil:
		return body, 0, ""
	case errors.Is(err, limits.ErrTooLarge):
		return nil, http.StatusRequestEntityTooLarge, "the body is larger than max_body"
	case errors.Is(err, limits.ErrNoRoom):
		return nil, http.StatusServiceUnavailable, err.Error()
	}
	return nil, http.StatusBadRequest, broken
}

func (s *Server) decompressShown(body []byte) ([]byte, error) {
	hold := s.opts.Memory.Hold(limits.SearchBody, "")
	defer hold.Release()
	return s.gunzip.Read(body, hold, s.opts.MaxBody)
}

// refuse answers a bad request.
func refuse(w http.ResponseWriter, status int, why string) {
	writeError(w, status, "akin_request_exception", why)
}

// listExplanations answers with the last explanations, shortened.
func (s *Server) listExplanations(c *gin.Context) {
	if limit, ok := limitOf(c, shownExplanations, report.MaxKept); ok {
		writeJSON(c.Writer, map[string]any{"explanations": s.explanations.Last(limit)})
	}
}

// limitOf returns how many are to be listed, or refuses the request.
func limitOf(c *gin.Context, usual, most int) (limit int, ok bool) {
	limit, err := strconv.Atoi(c.DefaultQuery("limit", strconv.Itoa(usual)))
	if ok = err == nil && limit >= 1 && limit <= most; !ok {
		refuse(c.Writer, http.StatusBadRequest, fmt.Sprintf("limit is no number from 1 to %d", most))
	}
	return limit, ok
}

// listSearches answers with the searches that found nothing or little, in the
// form of their file.
func (s *Server) listSearches(c *gin.Context) {
	limit, ok := limitOf(c, shownSearches, maxShownSearches)
	if !ok {
		return
	}
	list, err := s.collected(c.Request.Context(), c.Query("index"), limit)
	switch {
	case errors.Is(err, errNotCollected):
		refuse(c.Writer, http.StatusNotFound, err.Error())
	case errors.Is(err, errHidden):
		refuse(c.Writer, http.StatusForbidden, err.Error())
	case err != nil:
		refuse(c.Writer, http.StatusServiceUnavailable, err.Error())
	default:
		writeJSON(c.Writer, map[string]any{"version": searches.FileVersion, "searches": list})
	}
}

// Errors of the list of searches.
var (
	errNotCollected = errors.New("no searches are collected: searches.collect is off")
	errHidden       = errors.New("the texts of searches are not kept where expansion.hide_from applies, as on a cluster with security")
)

// collected returns the searches that found nothing or little.
func (s *Server) collected(ctx context.Context, index string, limit int) ([]searches.Search, error) {
	switch {
	case s.collecting == nil:
		return nil, errNotCollected
	case s.hides():
		return nil, errHidden
	}
	return s.collecting.Searches.List(ctx, index, limit)
}

// showExplanation answers with one explanation.
func (s *Server) showExplanation(c *gin.Context) {
	shown, ok := s.explanation(c.Request.Context(), c.Param("id"))
	if !ok {
		refuse(c.Writer, http.StatusNotFound, "no explanation with this id; only the last ones are kept")
		return
	}
	writeJSON(c.Writer, shown)
}

// explanation returns one explanation, complete.
func (s *Server) explanation(ctx context.Context, id string) (found report.Explanation, ok bool) {
	found, ok = s.explanations.Find(id, func(packed []byte) []byte {
		plain, _ := s.decompressShown(packed) // left out if it cannot be decompressed
		return plain
	})
	found.Clauses = report.Show(ctx, found.Clauses, s.opts.Forms)
	return found, ok
}

// writeJSON encodes without HTML escapes, which would change bodies inside.
func writeJSON(w http.ResponseWriter, v any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // the rewritten body is not JSON
		writeError(w, http.StatusInternalServerError, "akin_expand_exception", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(buf.Bytes()) // on error the client is gone
}
