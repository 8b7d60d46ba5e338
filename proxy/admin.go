package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/akin-search/akin/expand"
)

const (
	// expandPath is where the admin port shows what becomes of a search.
	expandPath = "/_akin/expand"
	// showBudget bounds an expansion that is only shown: nobody's search waits
	// for it, and with cold caches it is to succeed all the same.
	showBudget = 2 * time.Second
	// readyTimeout bounds the readiness check. Kubernetes gives up after 1 s by
	// default.
	readyTimeout = 900 * time.Millisecond
)

func (s *Server) newAdminEngine() *gin.Engine {
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.GET("/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, status{Status: "ok"}) })
	e.GET("/readyz", s.ready)
	e.GET("/metrics", gin.WrapH(promhttp.HandlerFor(s.opts.Registry, promhttp.HandlerOpts{})))
	e.POST(expandPath, s.show)
	e.POST(expandPath+"/*index", s.show)
	return e
}

// status is the answer of /healthz and /readyz.
type status struct {
	Status  string   `json:"status"`
	Reasons []string `json:"reasons,omitempty"`
}

// ready answers 200, or 503 with the reasons.
func (s *Server) ready(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	var reasons []string
	if s.draining.Load() {
		reasons = append(reasons, "shutting down")
	}
	if s.opts.Ready != nil {
		reasons = append(reasons, s.opts.Ready(ctx)...)
	}
	if len(reasons) > 0 {
		c.JSON(http.StatusServiceUnavailable, status{Status: "not ready", Reasons: reasons})
		return
	}
	c.JSON(http.StatusOK, status{Status: "ok"})
}

// explanation is the answer of POST /_akin/expand/{index}.
type explanation struct {
	Rewritten bool            `json:"rewritten"`
	Reason    expand.Reason   `json:"reason,omitempty"`
	Cause     string          `json:"cause,omitempty"` // of a failure, as in the metrics
	Error     string          `json:"error,omitempty"`
	RawQuery  string          `json:"raw_query"`
	Body      json.RawMessage `json:"body,omitempty"`
	Clauses   []expand.Clause `json:"clauses"`
}

// show answers with what would be sent for a search, and why. It does not
// search.
func (s *Server) show(c *gin.Context) {
	if s.opts.Expander == nil {
		writeError(c.Writer, http.StatusNotFound, "akin_request_exception", "expansion is switched off")
		return
	}
	r := c.Request
	index, err := url.PathUnescape(strings.Trim(strings.TrimPrefix(r.URL.EscapedPath(), expandPath), "/"))
	if err != nil {
		writeError(c.Writer, http.StatusBadRequest, "akin_request_exception", "the index is not escaped properly")
		return
	}
	body, err := readUpTo(r.Body, min(r.ContentLength, firstRead), s.opts.MaxBody+1)
	switch {
	case err != nil:
		writeError(c.Writer, http.StatusBadRequest, "akin_request_exception", "the body of the request broke off")
		return
	case int64(len(body)) > s.opts.MaxBody:
		writeError(c.Writer, http.StatusRequestEntityTooLarge, "akin_request_exception", "the body is larger than max_body")
		return
	}
	query, _ := cutControl(r.URL.RawQuery, r.Header)
	ctx, cancel := context.WithTimeout(r.Context(), showBudget)
	defer cancel()
	in := &expand.Request{Endpoint: expand.EndpointSearch, Index: index, RawQuery: query, Body: body}
	res, err := s.callExpander(ctx, in)
	answer := explanation{RawQuery: query, Clauses: []expand.Clause{}}
	if err != nil {
		answer.Cause, answer.Error = s.cause(err), err.Error()
	} else {
		answer = explain(answer, res)
	}
	writeExplanation(c.Writer, answer)
}

// explain returns answer with what res says.
func explain(answer explanation, res *expand.Result) explanation {
	answer.Clauses = append(answer.Clauses, res.Clauses...)
	if !res.Rewritten {
		answer.Reason = expand.Reason(reasonOf(res))
	} else {
		answer.Rewritten = true
		answer.RawQuery, answer.Body = res.RawQuery, res.Body
	}
	return answer
}

// writeExplanation encodes without HTML escapes, which would change the bytes
// of the rewritten body inside.
func writeExplanation(w http.ResponseWriter, answer explanation) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil { // the rewritten body is no JSON
		writeError(w, http.StatusInternalServerError, "akin_expand_exception", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(buf.Bytes()) // nobody is left to tell
}
