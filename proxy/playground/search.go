package playground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/report"
)

// Limits of the page's requests and their answers.
const (
	maxSearches    = 4 // in flight, of two requests each
	maxAnswer      = 4 << 20
	maxIndex       = 1000
	maxTerm        = 512
	maxAdjusted    = 400
	maxFactor      = 4
	maxStrength    = 5
	maxCredentials = 8 << 10
	searchTimeout  = 10 * time.Second
)

// A refusal is the answer to a bad request.
type refusal struct {
	Status int    `json:"-"`
	Reason string `json:"error"`
}

func (r *refusal) Error() string { return r.Reason }

func bad(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// A searcher sends the page's requests to the cluster.
type searcher struct {
	handler   http.Handler // answers requests as clients of the cluster send them
	explained func(ctx context.Context, id string) (report.Explanation, bool)
	places    *limits.Places // of searches in flight
}

// asked is the part of each request of the page that goes to the cluster.
type asked struct {
	Index string `json:"index"`
	// Authorization is the header of that name, or "".
	Authorization string `json:"authorization"`
}

// check returns why the request is refused.
func (a *asked) check() error {
	switch {
	case a.Index == "" || a.Index[0] == '_' && a.Index != "_all" || len(a.Index) > maxIndex:
		return bad("the index is missing, begins with _, or is longer than %d bytes", maxIndex)
	case len(a.Authorization) > maxCredentials || strings.ContainsFunc(a.Authorization, func(c rune) bool { return c < ' ' || c > '~' }):
		return bad("the credentials are no header")
	}
	return nil
}

// asksSearch asks for the hits of a search without and with akin.
type asksSearch struct {
	asked

	Body    json.RawMessage `json:"body"`
	Profile string          `json:"profile"`
	// Effort, Matching and Strength replace those of the profile unless they are ""
	// or nil.
	Effort   string              `json:"effort"`
	Matching string              `json:"matching"`
	Strength *float64            `json:"strength"`
	Adjusted []expand.Adjustment `json:"adjusted"`
}

// changes returns what is changed for the search, after check.
func (a *asksSearch) changes() expand.Changes {
	out := expand.Changes{Adjusted: a.Adjusted, Strength: a.Strength}
	for _, matching := range []expand.Matching{expand.Auto, expand.Widen, expand.Same} {
		if a.Matching == matchings()[matching] {
			out.Matching = &matching
		}
	}
	return out
}

// matchings are the words for each [expand.Matching], and efforts those for
// each [expand.Effort].
func matchings() []string { return []string{"auto", "widen", "same"} }

func efforts() (words []string) {
	for _, e := range expand.Efforts {
		words = append(words, e.String())
	}
	return words
}

func (a *asksSearch) check() error {
	if err := a.asked.check(); err != nil {
		return err
	}
	if trimmed := bytes.TrimSpace(a.Body); len(trimmed) == 0 || trimmed[0] != '{' {
		return bad("the search is no JSON object")
	}
	if len(a.Adjusted) > maxAdjusted {
		return bad("more than %d terms are adjusted", maxAdjusted)
	}
	if a.Effort != "" && !slices.Contains(efforts(), a.Effort) || a.Matching != "" && !slices.Contains(matchings(), a.Matching) {
		return bad("the effort is none of %v, or the matching none of %v", efforts(), matchings())
	}
	if a.Strength != nil && !(*a.Strength >= 0 && *a.Strength <= maxStrength) {
		return bad("the strength is not from 0 to %d", maxStrength)
	}
	for _, t := range a.Adjusted {
		if len(t.Term) > maxTerm || !(t.Factor >= 0 && t.Factor <= maxFactor) { // so written that NaN fails
			return bad("a factor is not from 0 to %d, or a term longer than %d bytes", maxFactor, maxTerm)
		}
	}
	return nil
}

// Found is the answer to one search.
type Found struct {
	Status int             `json:"status"`
	Millis float64         `json:"took_ms"`
	Answer json.RawMessage `json:"answer"`
}

// Compared has the hits of a search without and with akin.
type Compared struct {
	Direct Found `json:"direct"`
	Akin   Found `json:"akin"`
	// Explanation says what akin did; nil if it was not kept.
	Explanation *report.Explanation `json:"explanation"`
}

func (s *searcher) search(r *http.Request, a *asksSearch) (any, error) {
	ctx, end, err := s.begin(r.Context(), a.check())
	if err != nil {
		return nil, err
	}
	defer end()
	ctx = context.WithValue(ctx, changesKey{}, a.changes())
	var out Compared
	if out.Direct, _, err = s.ask(ctx, r, &a.asked, "_search?akin=off", a.Body); err != nil {
		return nil, err
	}
	way := "_search?akin=explain"
	if a.Effort != "" {
		way += "," + a.Effort
	}
	if a.Profile != "" {
		way += "&akin_profile=" + url.QueryEscape(a.Profile)
	}
	var h http.Header
	if out.Akin, h, err = s.ask(ctx, r, &a.asked, way, a.Body); err != nil {
		return nil, err
	}
	if e, ok := s.explained(ctx, h.Get("X-Akin-Explanation")); ok {
		out.Explanation = &e
	}
	return out, nil
}

// begin takes a place for a request to the cluster and limits its time; end
// gives the place back. The error is checked, or says that no place is free.
func (s *searcher) begin(parent context.Context, checked error) (ctx context.Context, end func(), err error) {
	if checked != nil {
		return nil, nil, checked
	}
	if !s.places.Take() {
		return nil, nil, errBusy
	}
	ctx, cancel := context.WithTimeout(parent, searchTimeout)
	return ctx, func() { cancel(); s.places.Give() }, nil
}

var errBusy = &refusal{http.StatusServiceUnavailable, fmt.Sprintf("%d searches of playgrounds are under way: try again", maxSearches)}

type changesKey struct{}

// Changes returns what a playground changes for its search; is says whether the
// search comes from one.
func Changes(ctx context.Context) (changes expand.Changes, is bool) {
	changes, is = ctx.Value(changesKey{}).(expand.Changes)
	return changes, is
}

// asksAnalysis asks which terms, and where, a field's analyzer makes of a text.
type asksAnalysis struct {
	asked

	Field string `json:"field"`
	Text  string `json:"text"`
}

func (s *searcher) analyze(r *http.Request, a *asksAnalysis) (any, error) {
	ctx, end, err := s.begin(r.Context(), a.check())
	if err != nil {
		return nil, err
	}
	defer end()
	body, err := json.Marshal(map[string]string{"field": a.Field, "text": a.Text})
	if err != nil {
		return nil, err
	}
	found, _, err := s.ask(ctx, r, &a.asked, "_analyze", body)
	return found, err
}

// ask sends a request as a client would. It omits the page's own headers, which
// are for the admin port.
func (s *searcher) ask(ctx context.Context, r *http.Request, a *asked, what string, body []byte) (Found, http.Header, error) {
	index := strings.ReplaceAll(url.PathEscape(a.Index), "%2C", ",")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://akin/"+index+"/"+what, bytes.NewReader(body))
	if err != nil {
		return Found{}, nil, bad("the index is no name")
	}
	req.RemoteAddr = r.RemoteAddr
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "akin-playground")
	if a.Authorization != "" {
		req.Header.Set("Authorization", a.Authorization)
	}
	kept := &keptAnswer{header: http.Header{}}
	began := time.Now()
	if !kept.take(s.handler, req) {
		return Found{}, nil, fmt.Errorf("the answer broke off, took longer than %v, or has more than %d bytes", searchTimeout, maxAnswer)
	}
	took := float64(time.Since(began).Microseconds()) / 1000
	return Found{kept.status, took, report.Body(kept.body.Bytes())}, kept.header, nil
}

// A keptAnswer keeps an answer in memory.
type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// take has h answer, and reports whether the answer is complete.
func (k *keptAnswer) take(h http.Handler, r *http.Request) (whole bool) {
	defer func() {
		if e := recover(); e != nil && e != http.ErrAbortHandler { //nolint:errorlint // net/http compares it, too
			panic(e)
		}
	}()
	h.ServeHTTP(k, r)
	return true
}

// Header implements [http.ResponseWriter], as do the next two.
func (k *keptAnswer) Header() http.Header { return k.header }

// WriteHeader keeps the last status.
func (k *keptAnswer) WriteHeader(status int) { k.status = status }

// Write keeps bytes of the body, up to maxAnswer.
func (k *keptAnswer) Write(b []byte) (int, error) {
	if k.body.Len()+len(b) > maxAnswer {
		return 0, errTooLarge
	}
	return k.body.Write(b)
}

var errTooLarge = errors.New("the answer is too large")
