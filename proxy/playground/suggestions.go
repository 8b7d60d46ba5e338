package playground

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/searches"
)

// SuggestionsPage is the path of the page "Searches without hits", and
// suggesting begins those of its requests.
const (
	SuggestionsPage = "/suggestions"
	suggesting      = "/_akin/suggestions/"
)

// Suggestions say what would help searches that find nothing, and keep what
// people decide about it. Their answers are what the page gets as JSON.
type Suggestions interface {
	// List returns those of the searches that nobody helped yet, and the pairs that
	// people accepted or dismissed with what they brought.
	List(ctx context.Context, all []searches.Search) (any, error)
	// Propose returns what would help a search.
	Propose(ctx context.Context, s searches.Search) (any, error)
	// Decide accepts, dismisses or takes back a pair. It wraps [ErrUndecidable] with
	// a sentence about why if that cannot be.
	Decide(ctx context.Context, d Decision) error
}

// ErrUndecidable says that a pair cannot be accepted, dismissed or taken back.
var ErrUndecidable = errors.New("not decided")

// A SuggestedSearch is a search without hits.
type SuggestedSearch struct {
	Index  string `json:"index"`
	Fields string `json:"fields"`
	Text   string `json:"text"`
}

// A Decision is what a person decides about a pair of words, and for which
// search.
type Decision struct {
	SuggestedSearch

	Action     string  `json:"action"` // accept, dismiss or undo
	Word       string  `json:"word"`
	To         string  `json:"to"`
	Similarity float64 `json:"similarity"` // to accept: above 0, at most 1
	By         string  `json:"by"`         // the name that the person typed
}

// Limits of the requests of the page. Proposals and decisions read a whole
// matrix, so one is worked on at a time.
const (
	maxListed      = 5000
	maxText        = 1000
	maxBy          = 100
	suggestTimeout = 2 * time.Minute
)

// suggestionRoutes returns the handlers of the page. The caller guards them,
// and lets only those who have a token decide.
func suggestionRoutes(o *Options) map[string]http.HandlerFunc {
	s, one := o.Suggestions, limits.NewPlaces(1)
	alone := func(ctx context.Context, f func(ctx context.Context) (any, error)) (any, error) {
		if s == nil || o.Searches == nil {
			return nil, &refusal{http.StatusNotFound, "this akin makes no suggestions"}
		}
		ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
		defer cancel()
		if err := one.Wait(ctx); err != nil {
			return nil, &refusal{http.StatusServiceUnavailable, "others are being answered: try again"}
		}
		defer one.Give()
		return f(ctx)
	}
	return map[string]http.HandlerFunc{
		"GET " + SuggestionsPage:         asset("suggestions.html", "text/html; charset=utf-8"),
		"GET " + SuggestionsPage + ".js": asset("suggestions.js", "text/javascript; charset=utf-8"),
		"GET " + suggesting + "list": func(w http.ResponseWriter, r *http.Request) {
			list, err := alone(r.Context(), func(ctx context.Context) (any, error) {
				all, err := o.Searches(ctx, "", maxListed)
				if err != nil {
					return nil, err
				}
				return s.List(ctx, all)
			})
			writeJSON(w, map[string]any{"list": list, "writable": o.Writable}, err)
		},
		"POST " + suggesting + "propose": post(func(r *http.Request, asked *SuggestedSearch) (any, error) {
			if err := asked.check(); err != nil {
				return nil, err
			}
			// The documents are found with akin's own rights, so only for texts that
			// somebody searched for.
			return alone(r.Context(), func(ctx context.Context) (any, error) {
				all, err := o.Searches(ctx, asked.Index, maxListed)
				if err != nil {
					return nil, err
				}
				k := slices.IndexFunc(all, func(s searches.Search) bool { return SuggestedSearch{s.Index, s.Fields, s.Text} == *asked })
				if k < 0 {
					return nil, &refusal{http.StatusNotFound, "the search is not in the list any more"}
				}
				return s.Propose(ctx, all[k])
			})
		}),
		"POST " + suggesting + "decide": post(func(r *http.Request, d *Decision) (any, error) {
			if err := d.check(o.Writable); err != nil {
				return nil, err
			}
			return alone(r.Context(), func(ctx context.Context) (any, error) {
				err := s.Decide(ctx, *d)
				if errors.Is(err, ErrUndecidable) {
					err = &refusal{http.StatusConflict, err.Error()}
				}
				return map[string]bool{"done": err == nil}, err
			})
		}),
	}
}

func (s *SuggestedSearch) check() error {
	if s.Text == "" || max(len(s.Text), len(s.Index), len(s.Fields)) > maxText {
		return bad("the text is empty, or longer than %d bytes", maxText)
	}
	return nil
}

func (d *Decision) check(writable bool) error {
	switch {
	case !writable:
		return &refusal{http.StatusForbidden, "to decide needs a token, on this machine as well: set AKIN_ADMIN_TOKEN or admin.token_file"}
	case d.Action != "accept" && d.Action != "dismiss" && d.Action != "undo":
		return bad("the action is none of accept, dismiss, undo")
	case d.Word == "" || d.To == "" || max(len(d.Word), len(d.To)) > maxTerm:
		return bad("a word is empty, or longer than %d bytes", maxTerm)
	case d.Action == "accept" && !(d.Similarity > 0 && d.Similarity <= 1):
		return bad("the similarity is not above 0 and at most 1")
	case d.By == "" || len(d.By) > maxBy:
		return bad("type who decides, in at most %d bytes", maxBy)
	}
	return d.SuggestedSearch.check()
}
