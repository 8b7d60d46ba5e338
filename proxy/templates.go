package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
)

const (
	// maxTemplates limits the templates of one _msearch/template: each takes a
	// call.
	maxTemplates = 64
	// templatesSideBySide limits how many of them are rendered at a time.
	templatesSideBySide = 8
	// sealed is the template that a rewritten search is sent as: it inserts its
	// parameter byte for byte. It never changes, so the cluster compiles it once.
	sealed = `{{{akin}}}`
)

// parameters are those of search templates that work as with _search. Templates
// ignore most others, such as q and size, but the expander does not.
var parameters = []string{
	"allow_no_indices", "allow_partial_search_results", "batched_reduce_size", "ccs_minimize_roundtrips",
	"error_trace", "expand_wildcards", "filter_path", "human", "ignore_throttled", "ignore_unavailable",
	"max_concurrent_searches", "preference", "pretty", "request_cache", "rest_total_hits_as_int", "routing", "scroll",
	"search_type", "typed_keys",
}

// A templateRendering has one template, or several with a header before each.
type templateRendering struct {
	// rendered is the request body with the resulting searches.
	rendered []byte
	// headers is nil if there is one template.
	headers, templates [][]byte
}

// render has the cluster render the templates in the body of in for a client,
// or returns why not, e.g. because the client may search none of the indices.
// An error means that the cluster did not answer.
func render(ctx context.Context, in *expand.Request, guard *recovery.Guard, ask sender) (t *templateRendering, why string, err error) {
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
	if why, err := mayRender(ctx, in, indices); why != "" || err != nil {
		return nil, why, err
	}
	searches, why, err := renderAll(ctx, t.templates, guard, ask)
	if why != "" || err != nil {
		return nil, why, err
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

// mayRender returns why not to render if the client may search none of indices.
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

// indicesOf returns the distinct index expressions of headers. A header without
// a string or a list of strings has that of the path.
func indicesOf(headers [][]byte, path string) (indices []string) {
	for _, line := range headers {
		var header struct {
			Index json.RawMessage `json:"index"`
		}
		var one string
		var several []string
		index := path
		_ = json.Unmarshal(line, &header) // the cluster refuses what cannot be read
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

// renderAll renders all templates. One that the cluster does not render becomes
// a search without a query; if none is rendered, or the client may not render,
// renderAll returns why.
func renderAll(ctx context.Context, templates [][]byte, guard *recovery.Guard, ask sender) (searches [][]byte, why string, err error) {
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
		if err != nil || reasons[k] == string(reason.NotAuthorized) {
			ended.Store(true)
		}
		return err
	})
	switch {
	case slices.Contains(reasons, string(reason.NotAuthorized)):
		return nil, string(reason.NotAuthorized), err
	case !slices.Contains(reasons, ""):
		return nil, reasons[0], err
	}
	for k := range searches {
		if reasons[k] != "" {
			searches[k] = []byte("{}")
		}
	}
	return searches, "", err
}

// renderOne has one template rendered.
func renderOne(ctx context.Context, template []byte, ask sender) (search []byte, why string, err error) {
	if _, ok := templateOptions(template); !ok {
		return nil, reasonBody, nil
	}
	status, body, err := ask(ctx, esapi.RenderSearchTemplateRequest{Body: bytes.NewReader(template)})
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Output json.RawMessage `json:"template_output"`
	}
	if answer.IsDenied(status) {
		return nil, string(reason.NotAuthorized), nil
	}
	if status == http.StatusOK && json.Unmarshal(body, &page) == nil && len(page.Output) > 0 {
		return page.Output, "", nil
	}
	return nil, reasonNotRendered, nil
}

// templateOptions returns the members "explain" and "profile" of a template
// request as they are. It returns false for anything else.
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

// errSeal says that the expander's result does not fit the templates.
var errSeal = errors.New("the rewritten searches do not fit to the templates")

// seal returns the body that makes the cluster run rewritten searches in place
// of the templates; where rewrote is false, the template stays. It stays a
// template request, because those have other answers and parameters than
// searches.
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

// sealOne appends the request that runs search with the options of template.
func sealOne(body, template, search []byte) ([]byte, error) {
	body = append(body, `{"source":"`+sealed+`","params":{"akin":`...)
	body, err := jsontext.AppendQuote(body, search)
	if err != nil {
		return nil, err
	}
	options, _ := templateOptions(template)
	return append(append(append(body, '}'), options...), '}'), nil
}

// splitLines returns the headers among the lines of body and the line after
// each. It returns nil if the last line has no newline or the first one is
// empty, on which the engines disagree.
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
