package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/budget"
)

// Bounds of the answers that are looked at before they are passed on.
const (
	// maxHeldAnswer is the length up to which an answer is looked at. Larger ones
	// stream through: hundreds of searches of ten hits of 1 KiB fit in.
	maxHeldAnswer = 8 << 20
	// maxDrained is how much of a refusal is read so that its connection can be
	// used again.
	maxDrained = 64 << 10
)

var (
	// errShape says that JSON is not what it has to be there.
	errShape = errors.New("unexpected JSON")
	// errUnchecked says that an answer cannot be looked at.
	errUnchecked = errors.New("no JSON, or too long")
)

// failurePaths lead to where the answers of endpoints tell that a search failed
// and the others did not. Where nothing failed nothing stands there, so that
// filter_path can name it too and the answer is the same.
var failurePaths = map[expand.Endpoint]string{
	expand.EndpointMultiSearch: "responses.error.type,responses._shards.failures.reason.type",
	expand.EndpointRankEval:    "failures.*.error.type",
}

// filterPath returns the value of the parameter filter_path; of several the
// last counts.
func filterPath(rawQuery string) (filter string) {
	cutParameters(rawQuery, func(name, value string) bool {
		if name == "filter_path" {
			filter = value
		}
		return false
	})
	return filter
}

// showsFailures reports whether the answer to a search with the given query
// string tells of its failure, or can be made to.
func showsFailures(endpoint expand.Endpoint, rawQuery string) bool {
	if failurePaths[endpoint] == "" && endpoint != expand.EndpointValidate {
		return true // by its status
	}
	filter := filterPath(rawQuery)
	// "valid" is always there, hence cannot be asked for on top, and an exclusion
	// makes what stands beside it an exception of it.
	return filter == "" || endpoint != expand.EndpointValidate && !strings.HasPrefix(filter, "-") && !strings.Contains(filter, ",-")
}

// showFailures returns a query string with which the answer tells of failures,
// and whether it had to be changed for that.
func showFailures(endpoint expand.Endpoint, rawQuery string) (changed string, filtered bool) {
	path := failurePaths[endpoint]
	if path == "" {
		return rawQuery, false
	}
	filter := filterPath(rawQuery)
	if filter == "" {
		return rawQuery, false
	}
	return rawQuery + "&filter_path=" + url.QueryEscape(filter+","+path), true
}

// failure returns what an answer with a good status says of a rewritten search
// that failed, wholly or on some shards, nil where it says nothing. It reads
// the answer, up to bounds, and puts it back. An error says that it could not
// be looked at.
func (t *searchTransport) failure(ex *exchange, res *http.Response) (*refusal, error) {
	switch {
	case ex.strict:
		return nil, nil
	case ex.endpoint == expand.EndpointSearch, ex.endpoint == expand.EndpointCount:
		refused, scroll, err := t.partial(ex, res)
		ex.scrollID = scroll
		return refused, err
	}
	if failurePaths[ex.endpoint] == "" && ex.endpoint != expand.EndpointValidate {
		return nil, nil
	}
	encoding, known := contentEncoding(res.Header["Content-Encoding"])
	if !known || !isJSON(res.Header["Content-Type"]) {
		return nil, errUnchecked
	}
	answer, err := t.server.hold(ex, res)
	if err != nil {
		return nil, err
	}
	if encoding == "gzip" {
		gz := t.server.gzipReader()
		defer t.server.putGzip(gz)
		if err := gz.Reset(bytes.NewReader(answer)); err != nil {
			return nil, err
		}
		return ex.failed(io.LimitReader(gz, maxHeldAnswer))
	}
	if ex.endpoint == expand.EndpointMultiSearch && !bytes.Contains(answer, []byte(`"error"`)) && !bytes.Contains(answer, []byte(`"failures"`)) {
		return nil, nil // the usual case, without reading a token
	}
	return ex.failed(bytes.NewReader(answer))
}

// newDecoder returns a decoder of an answer, which need not be perfect JSON.
func newDecoder(answer io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(answer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// failed returns what an answer says of a rewritten search that failed, nil
// where it says nothing. An error says that it is not the answer of the
// endpoint.
func (ex *exchange) failed(answer io.Reader) (first *refusal, err error) {
	d := newDecoder(answer)
	err = eachMember(d, func(name string) error {
		if first != nil {
			return d.SkipValue()
		}
		var err error
		switch {
		case ex.endpoint == expand.EndpointMultiSearch && name == "responses":
			first, err = ex.failedItem(d)
		case ex.endpoint == expand.EndpointRankEval && name == "failures" && d.PeekKind() == '{':
			first, err = rankFailures(d)
		case ex.endpoint == expand.EndpointValidate && name == "valid" && d.PeekKind() == 'f':
			first = &refusal{search: unknownSearch}
			err = d.SkipValue()
		default:
			err = d.SkipValue()
		}
		return err
	})
	return first, err
}

// failedItem returns the error of the first rewritten search in the list of
// answers that d is before, or the failures of its shards; one that the search
// is the reason of goes before those of a busy cluster. filter_path takes items
// away, so that those behind them no longer stand in their places.
func (ex *exchange) failedItem(d *jsontext.Decoder) (first *refusal, err error) {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, errShape
	}
	for k := 0; d.PeekKind() != ']'; k++ {
		if first != nil && !first.busy || !ex.filtered && ex.rewritten != nil && !rewroteSearch(ex.rewritten, k) {
			err = eachMember(d, func(string) error { return d.SkipValue() })
		} else {
			var r *refusal
			if r, err = itemFailure(d); r != nil && (first == nil || !r.busy) {
				if first = r; !ex.filtered {
					first.search = k
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = d.ReadToken()
	return first, err
}

// itemFailure returns the error of the one search whose answer d is before, or
// the failures of its shards, nil where it has none, or the client may not make
// that search.
func itemFailure(d *jsontext.Decoder) (shards *refusal, err error) {
	causes, failed, status := causeReader{d: d}, false, 0
	err = eachMember(d, func(name string) error {
		var err error
		switch kind := d.PeekKind(); {
		case name == "error":
			failed = true
			_, err = causes.read(0)
		case name == "status" && kind == '0':
			var t jsontext.Token
			if t, err = d.ReadToken(); err == nil {
				status, _ = strconv.Atoi(t.String())
			}
		case name == "_shards" && kind == '{' && !failed && shards == nil:
			shards, err = shardFailures(d)
		default:
			err = d.SkipValue()
		}
		return err
	})
	switch {
	case !failed:
		return shards, err
	case isDenied(status):
		return nil, err
	}
	return &refusal{causes: causes.all, busy: isBusy(status, causes.all), search: unknownSearch}, err
}

// indexOf returns the index expression of the search that a refusal is about.
// Where it is not known which of several, and they have not all the same, that
// is "": a search of all indices goes to that one, too.
func (ex *exchange) indexOf(r *refusal) string {
	all := ex.rewritten.Indices
	switch {
	case len(all) == 0:
		return ex.index
	case r.search >= 0 && r.search < len(all):
		return all[r.search]
	case slices.ContainsFunc(all, func(other string) bool { return other != all[0] }):
		return ""
	default:
		return all[0]
	}
}

// rewroteSearch reports whether the k-th search of a request that holds several
// is another than the client's: something was added, or it asks for other hits.
func rewroteSearch(res *expand.Result, k int) bool {
	if k < len(res.Reranks) && res.Reranks[k] != nil {
		return true
	}
	prefix := "[" + strconv.Itoa(k) + "]"
	for i := range res.Clauses {
		if res.Clauses[i].Form != "" && strings.HasPrefix(res.Clauses[i].Path, prefix) {
			return true
		}
	}
	return false
}

// eachMember calls f with the name of each member of the object that d is
// before. f has to read the value.
func eachMember(d *jsontext.Decoder, f func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return errShape
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return fmt.Errorf("%w: %w", errShape, err)
		}
		if err := f(t.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// rankFailures returns the errors in the object that d is before, by the names
// of the searches that are rated, nil where it is empty.
func rankFailures(d *jsontext.Decoder) (r *refusal, err error) {
	causes := causeReader{d: d}
	err = eachMember(d, func(string) error {
		r = &refusal{search: unknownSearch}
		if d.PeekKind() != '{' {
			return d.SkipValue()
		}
		return eachMember(d, func(name string) error {
			if name != "error" {
				return d.SkipValue()
			}
			_, err := causes.read(0)
			return err
		})
	})
	if r != nil {
		r.causes, r.busy = causes.all, isBusy(0, causes.all)
	}
	return r, err
}

// hold reads an answer and puts it back; its memory is held until the client
// has it. It returns [errUnchecked] where the answer is too long, [errNoRoom]
// where too much is held, and the error with which the answer breaks off; then
// what was read, and then the rest, is what a reader of the answer gets. An
// answer that was held before, or could not be, and is unread since, is not
// read again.
func (s *Server) hold(ex *exchange, res *http.Response) (answer []byte, err error) {
	if b, ok := res.Body.(*heldBody); ok {
		return b.whole, b.failure
	}
	if res.ContentLength > maxHeldAnswer {
		return nil, errUnchecked
	}
	b := s.newHeldBody(ex, res.Body)
	b.rest = res.Body
	answer, err = readHeld(res.Body, b.held, res.ContentLength, maxHeldAnswer+1)
	switch {
	case errors.Is(err, errNoRoom):
		b.failure = err
	case err != nil:
		b.failure, b.rest = err, broken{err}
	case len(answer) > maxHeldAnswer:
		b.failure = errUnchecked
	default:
		b.whole = answer
	}
	b.first = answer
	res.Body = b
	return b.whole, b.failure
}

// replace lets go of an answer that is held as a whole and holds another in its
// place.
func (s *Server) replace(ex *exchange, res *http.Response, answer []byte) {
	old := io.Closer(res.Body)
	if b, ok := old.(*heldBody); ok {
		old = b.Closer
		b.held.Release()
	}
	b := s.newHeldBody(ex, old)
	b.held.Add(int64(cap(answer)))
	b.first, b.rest, b.whole = answer, broken{io.EOF}, answer
	res.Body = b
}

// newHeldBody returns an answer that holds nothing yet.
func (s *Server) newHeldBody(ex *exchange, body io.Closer) *heldBody {
	return &heldBody{
		putBack: putBack{held: s.opts.Memory.Hold(budget.Answer, ex.client), Closer: body},
		leaving: leaving{conn: ex.conn, pace: pace{stretch: s.answerGrace, rate: answerRate}},
		cutOff:  s.metrics.cutOff.WithLabelValues(cutAnswer),
	}
}

// broken is what follows where an answer broke off, or has ended.
type broken struct{ err error }

// Read returns the error with which reading ended.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// heldBody is an answer of which the first bytes are held.
type heldBody struct {
	putBack
	leaving

	// whole is what is held where that is all of the answer, failure why it is
	// not.
	whole   []byte
	failure error
	cutOff  prometheus.Counter
}

// Read reads.
func (b *heldBody) Read(p []byte) (int, error) {
	b.whole = nil // so that first is all that keeps it
	if len(b.first) == 0 {
		b.end()
		return b.rest.Read(p)
	}
	n, err := b.putBack.Read(p)
	b.next(n)
	return n, err
}

// Close closes the answer and lets go of what is held.
func (b *heldBody) Close() error {
	if b.end() {
		b.cutOff.Inc()
	}
	b.first = nil
	b.held.Release()
	return b.putBack.Close()
}
