// Package playground is a page on the admin port that shows what akin does to a
// search: the hits without and with it, and the terms that it adds, with their
// weight and origin. This file serves the page (playground.html, .css and .js)
// and its requests; search.go runs its searches. A second page, "Searches
// without hits", is in suggestions.go, .html and .js.
//
// Its searches go the way of clients' searches, with the credentials typed into
// the page, never with akin's own.
package playground

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

//go:embed playground.html playground.css playground.js suggestions.html suggestions.js
var files embed.FS

// contentPolicy allows the page's own script, styles and server, nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Matrices give the page matrices and the fields that they are bound to.
type Matrices interface {
	// Setup returns what the page can choose from.
	Setup(ctx context.Context) (Setup, error)
	// Neighbors returns the neighbors of a word, as people write it or else as an
	// index term, in a version of a matrix, "" for the active one. It wraps
	// [ErrUnknown] if there is none.
	Neighbors(ctx context.Context, matrix, version, word string) (Row, error)
}

// ErrUnknown says that there is no such matrix or version.
var ErrUnknown = errors.New("unknown matrix or version")

// A Setup is what the page can choose from.
type Setup struct {
	Indices  []Index  `json:"indices"`
	Profiles []string `json:"profiles"`
	Matrices []Matrix `json:"matrices"`
	// Cluster is the URL of a node, without credentials.
	Cluster string `json:"cluster"`
}

// An Index is one with a matrix, and its text fields that have one.
type Index struct {
	Name   string   `json:"name"`
	Fields []string `json:"fields"`
}

// A Matrix is one with its versions, newest first.
type Matrix struct {
	Name     string    `json:"name"`
	Versions []Version `json:"versions"`
}

// A Version is one of a matrix; Active says that it is served.
type Version struct {
	ID     string `json:"id"`
	Active bool   `json:"active"`
}

// A Row has the neighbors of a term, most similar first. Word is how people
// write the term, "" if that is the same or unknown. Nearest is the term
// spelled most like a word that is not a term.
type Row struct {
	Version   string     `json:"version"`
	Term      string     `json:"term"`
	Nearest   string     `json:"nearest,omitempty"`
	Word      string     `json:"word,omitempty"`
	DocFreq   uint32     `json:"doc_freq"`
	Neighbors []Neighbor `json:"neighbors"`
}

// A Neighbor is one neighbor, with the number of its documents.
type Neighbor struct {
	Term       string  `json:"term"`
	Word       string  `json:"word,omitempty"`
	Similarity float32 `json:"similarity"`
	DocFreq    uint32  `json:"doc_freq"`
}

// Options configure the page.
type Options struct {
	// Search answers requests as clients of the cluster send them.
	Search http.Handler
	// Explained returns the explanation with the id that an answer names.
	Explained func(ctx context.Context, id string) (report.Explanation, bool)
	// Matrices may be nil.
	Matrices Matrices
	// Searches returns the searches of an index expression that found nothing or
	// little, at most limit.
	Searches func(ctx context.Context, index string, limit int) ([]searches.Search, error)
	// Suggestions may be nil. Writable says that all callers have shown a token, so
	// that they may decide about them.
	Suggestions Suggestions
	Writable    bool
}

// Paths of the page, and the prefix of those of its requests.
const (
	Page     = "/playground"
	endpoint = "/_akin/playground/"
)

// Routes returns the handlers by method and path. The caller guards them.
func Routes(o Options) map[string]http.HandlerFunc {
	s := &searcher{o.Search, o.Explained, limits.NewPlaces(maxSearches)}
	routes := suggestionRoutes(&o)
	maps.Copy(routes, map[string]http.HandlerFunc{
		"GET " + Page:          asset("playground.html", "text/html; charset=utf-8"),
		"GET " + Page + ".js":  asset("playground.js", "text/javascript; charset=utf-8"),
		"GET " + Page + ".css": asset("playground.css", "text/css; charset=utf-8"),
		"GET " + endpoint + "setup": func(w http.ResponseWriter, r *http.Request) { // what to choose from
			out, err := Setup{Indices: []Index{}, Profiles: []string{}, Matrices: []Matrix{}}, error(nil)
			if o.Matrices != nil {
				out, err = o.Matrices.Setup(r.Context())
			}
			writeJSON(w, out, err)
		},
		"POST " + endpoint + "search":    post(s.search),
		"POST " + endpoint + "analysis":  post(s.analyze),
		"POST " + endpoint + "neighbors": post(neighbors(o.Matrices)),
	})
	return routes
}

// asset serves a file of the page.
func asset(name, contentType string) http.HandlerFunc {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		GuardHeaders(w.Header())
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(data) // on error the client is gone
	}
}

// GuardHeaders sets the security headers of the page and forbids caching.
func GuardHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// maxRequest is the largest request of the page, in bytes.
const maxRequest = 256 << 10

// post decodes the JSON of a request and answers with what f returns. Pages of
// other sites cannot send JSON without a CORS preflight.
func post[T any](f func(r *http.Request, asked *T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !answer.IsJSON(r.Header["Content-Type"]) {
			writeJSON(w, nil, &refusal{http.StatusUnsupportedMediaType, "the body is not said to be JSON"})
			return
		}
		asked := new(T)
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(asked)
		if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind it")
		}
		var out any
		switch _, large := errors.AsType[*http.MaxBytesError](err); {
		case large:
			err = &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", maxRequest)}
		case err != nil:
			err = bad("the request is not as the page sends it: %v", err)
		default:
			out, err = f(r, asked)
		}
		writeJSON(w, out, err)
	}
}

// writeJSON writes JSON, or the error.
func writeJSON(w http.ResponseWriter, out any, err error) {
	status := http.StatusOK
	if err != nil {
		refused, ok := errors.AsType[*refusal](err)
		if !ok {
			refused = &refusal{http.StatusBadGateway, err.Error()}
		}
		out, status = refused, refused.Status
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // bodies inside stay as they are
	if err := enc.Encode(out); err != nil {
		http.Error(w, "{}", http.StatusInternalServerError)
		return
	}
	GuardHeaders(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // on error the client is gone
}

// asksNeighbors asks for a row.
type asksNeighbors struct {
	Matrix  string `json:"matrix"`
	Version string `json:"version"`
	Term    string `json:"term"`
}

func neighbors(m Matrices) func(r *http.Request, asked *asksNeighbors) (any, error) {
	return func(r *http.Request, asked *asksNeighbors) (any, error) {
		if asked.Term == "" || len(asked.Term) > maxTerm {
			return nil, bad("the term is empty or longer than %d bytes", maxTerm)
		}
		row, err := Row{}, ErrUnknown
		if m != nil {
			row, err = m.Neighbors(r.Context(), asked.Matrix, asked.Version, asked.Term)
		}
		if errors.Is(err, ErrUnknown) {
			err = &refusal{http.StatusNotFound, err.Error()}
		}
		return row, err
	}
}
