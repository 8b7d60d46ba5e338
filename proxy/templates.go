package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
)

const (
	// renderPath is where the cluster renders templates.
	renderPath = "/_render/template"
	// maxTemplates bounds the templates of one _msearch/template, of which each
	// takes a call.
	maxTemplates = 64
	// templatesSideBySide is how many of them are rendered at a time.
	templatesSideBySide = 8
	// sealed is the template that a rewritten search is sent as: its parameter,
	// byte for byte. It is always the same, so that the cluster compiles it once.
	sealed = `{{{akin}}}`
)

// parameters are those of search templates that work as with _search. Most
// others of _search, such as q and size, are ignored there, but not by the
// expander.
var parameters = []string{
	"allow_no_indices", "allow_partial_search_results", "batched_reduce_size", "ccs_minimize_roundtrips",
	"error_trace", "expand_wildcards", "filter_path", "human", "ignore_throttled", "ignore_unavailable",
	"max_concurrent_searches", "preference", "pretty", "request_cache", "rest_total_hits_as_int", "routing", "scroll",
	"search_type", "typed_keys",
}

// A templateRendering is of one template, or of several with a header
// before each.
type templateRendering struct {
	// rendered is the body of the request for the searches that come out.
	rendered []byte
	// headers are nil where there is one template.
	headers, templates [][]byte
}

// render has the cluster render the templates in the body of in for a client,
// or returns the reason why not, such as a client that may search none of the
// indices. An error says that the cluster did not answer.
func render(ctx context.Context, in *expand.Request, guard *recovery.Guard, ask sender) (t *templateRendering, reason string, err error) {
	known := true
	answer.EachParameter(answer.Known(in.RawQuery), func(name, _ string) { // the rest may be the client's credentials
		known = known && (name == "" || slices.Contains(parameters, name))
	})
	if !known {
		return nil, reasonParameters, nil
	}
	t = &templateRendering{templates: [][]byte{in.Body}}
	indices := []string{in.Index}
	if in.Endpoint == expand.EndpointMultiSearch {
		t.headers, t.templates = splitLines(in.Body)
		indices = indicesOf(t.headers, in.Index)
	}
	switch {
	case len(t.templates) == 0:
		return nil, reasonBody, nil
	case len(t.templates) > maxTemplates:
		return nil, reasonTooMany, nil
	}
	if reason, err := mayRender(ctx, in, indices); reason != "" || err != nil {
		return nil, reason, err
	}
	searches, reason, err := renderAll(ctx, t.templates, guard, ask)
	if reason != "" || err != nil {
		return nil, reason, err
	}
	if t.headers == nil {
		t.rendered = searches[0]
		return t, "", nil
	}
	var all bytes.Buffer
	for k, search := range searches {
		all.Write(t.headers[k])
		all.WriteByte('\n')
		_ = json.Compact(&all, search) // on one line; it was decoded, so that it is valid
		all.WriteByte('\n')
	}
	t.rendered = all.Bytes()
	return t, "", nil
}

// mayRender returns the reason to have nothing rendered where the client may
// search none of the indices.
func mayRender(ctx context.Context, in *expand.Request, indices []string) (why string, err error) {
	if in.Allowed == nil {
		return "", nil
	}
	for _, index := range indices {
		err := in.Allowed(ctx, esclient.Indices{Expression: index})
		switch {
		case err == nil || errors.Is(err, expand.ErrUnknown):
			return "", nil
		case !errors.Is(err, expand.ErrNotAuthorized):
			return "", &expand.StageError{Stage: expand.StageAccess, Err: err}
		}
	}
	return string(reason.NotAuthorized), nil
}

// indicesOf returns the index expressions of headers, each once. Where a header
// has no text or list of texts it is that of the path.
func indicesOf(headers [][]byte, path string) (indices []string) {
	for _, line := range headers {
		var header struct {
			Index json.RawMessage `json:"index"`
		}
		var one string
		var several []string
		index := path
		_ = json.Unmarshal(line, &header) // what cannot be read is for the cluster to refuse
		switch {
		case json.Unmarshal(header.Index, &one) == nil && one != "":
			index = one
		case json.Unmarshal(header.Index, &several) == nil && len(several) > 0:
			index = strings.Join(several, ",")
		}
		if !slices.Contains(indices, index) {
			indices = append(indices, index)
		}
	}
	return indices
}

// renderAll has all templates rendered, or returns why the first one that is
// not is not; then no more are asked for.
func renderAll(ctx context.Context, templates [][]byte, guard *recovery.Guard, ask sender) (searches [][]byte, reason string, err error) {
	searches = make([][]byte, len(templates))
	reasons := make([]string, len(templates))
	var ended atomic.Bool
	err = recovery.InParallel(len(templates), templatesSideBySide, func(k int) error {
		if ended.Load() {
			return nil
		}
		err := guard.Do("rendering", func() (err error) {
			searches[k], reasons[k], err = renderOne(ctx, templates[k], ask)
			return err
		})
		if err != nil || reasons[k] != "" {
			ended.Store(true)
		}
		return err
	})
	return searches, cmp.Or(reasons...), err
}

// renderOne has one template rendered.
func renderOne(ctx context.Context, template []byte, ask sender) (search []byte, reason string, err error) {
	if _, ok := templateOptions(template); !ok {
		return nil, reasonBody, nil
	}
	status, answer, err := ask(ctx, esclient.Call{Method: http.MethodPost, Path: renderPath, Body: template})
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Output json.RawMessage `json:"template_output"`
	}
	if status == http.StatusOK && json.Unmarshal(answer, &page) == nil && len(page.Output) > 0 {
		return page.Output, "", nil
	}
	return nil, reasonNotRendered, nil
}

// templateOptions returns the members "explain" and "profile" of a template
// request as they stand. It reports false for what is not such a request.
func templateOptions(template []byte) (options []byte, ok bool) {
	var r jsonspan.Reader
	r.Reset(template)
	err := r.Object(func(name []byte) error {
		at, err := r.Value()
		switch name := string(name); {
		case err != nil:
			return err
		case name == "explain" || name == "profile":
			options = append(append(options, `,"`+name+`":`...), at.Of(template)...)
		case name == "id" || name == "source" || name == "params":
		default:
			return errSeal
		}
		return nil
	})
	return options, err == nil && r.End()
}

// errSeal says that a result of the expander does not fit to the templates.
var errSeal = errors.New("the rewritten searches do not fit to the templates")

// seal returns the body that has the cluster run rewritten searches in place of
// the templates; one that rewrote does not report stays the client's. It stays
// a template request: those have other answers and parameters than searches.
func (t *templateRendering) seal(searches []byte, rewrote func(k int) bool) (body []byte, err error) {
	if t.headers == nil {
		return sealOne(nil, t.templates[0], searches)
	}
	headers, lines := splitLines(searches)
	if len(lines) != len(t.templates) {
		return nil, errSeal
	}
	for k, line := range lines {
		body = append(append(body, headers[k]...), '\n')
		if !rewrote(k) {
			body = append(body, t.templates[k]...)
		} else if body, err = sealOne(body, t.templates[k], line); err != nil {
			return nil, err
		}
		body = append(body, '\n')
	}
	return body, nil
}

// sealOne appends the request that runs search in place of template, with the
// options of that.
func sealOne(body, template, search []byte) ([]byte, error) {
	body = append(body, `{"source":"`+sealed+`","params":{"akin":`...)
	body, err := jsontext.AppendQuote(body, search)
	if err != nil {
		return nil, err
	}
	options, _ := templateOptions(template)
	return append(append(append(body, '}'), options...), '}'), nil
}

// splitLines returns the headers among the lines of body and what follows each.
// It returns nil where the last line has no end or the first one is empty,
// which the engines do not agree about.
func splitLines(body []byte) (headers, bodies [][]byte) {
	if len(body) < 2 || body[0] == '\n' || body[len(body)-1] != '\n' {
		return nil, nil
	}
	for pair := range slices.Chunk(bytes.Split(body[:len(body)-1], []byte{'\n'}), 2) {
		if len(pair) < 2 {
			return nil, nil
		}
		headers, bodies = append(headers, pair[0]), append(bodies, pair[1])
	}
	return headers, bodies
}
