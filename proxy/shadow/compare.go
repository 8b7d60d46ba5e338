package shadow

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/held"
	"github.com/akin-search/akin/proxy/wire"
)

// overlapDepth is the number of hits that are compared, what most pages show.
const overlapDepth = 10

// The searches that are compared, values of the label "search".
const (
	Original = "original"
	Expanded = "expanded"
)

// What became of a search to be shadowed, values of the label "outcome".
const (
	Compared   = "compared"
	Dropped    = "dropped"     // all slots or all memory was taken, or the body is too long
	ClientGone = "client_gone" // the client did not read the original's answer to its end
	Unchanged  = "unchanged"   // nothing would have been added
	Failed     = "failed"      // the expansion failed, or took too long
	Rejected   = "rejected"    // the cluster refused the original or the shadow, wholly or on some shards
	Unanswered = "unanswered"  // no node answered, or not in time
	Unreadable = "unreadable"  // an answer is too long, or shows no hits
)

// Outcomes are all of them.
var Outcomes = []string{Compared, Dropped, ClientGone, Unchanged, Failed, Rejected, Unanswered, Unreadable}

// ErrUnreadable says that an answer shows no hits to compare.
var ErrUnreadable = errors.New("no hits to compare")

// OutcomeOf returns what an error of reading an answer means.
func OutcomeOf(err error) string {
	switch {
	case errors.Is(err, held.ErrNoRoom):
		return Dropped
	case errors.Is(err, ErrUnreadable), errors.Is(err, held.ErrTooLarge):
		return Unreadable
	}
	return Unanswered
}

// TopHits are what is compared of an answer.
type TopHits struct {
	total int64 // 0 where the answer does not say, as by -1 with track_total_hits=false
	first []hitID
	// Failures are those of shards that count, nil where there are none.
	Failures *answer.Failure
}

// A hitID names a document.
type hitID struct {
	Index string `json:"_index"`
	ID    string `json:"_id"`
}

// ReadHits reads an answer, decompressed into memory of hold. It returns
// [ErrUnreadable] where it lists no hits, and [held.ErrNoRoom].
func ReadHits(h http.Header, body []byte, hold *budget.Hold) (hits TopHits, err error) {
	switch coding, known := wire.ContentEncoding(h); {
	case !known:
		return hits, ErrUnreadable
	case coding != "":
		if body, err = new(held.Gunzip).Read(body, hold, MaxAnswer); errors.Is(err, held.ErrNoRoom) {
			return hits, err
		} else if err != nil {
			return hits, ErrUnreadable
		}
	}
	if !hold.Take(int64(len(body))) { // what is decoded are parts of it
		return hits, held.ErrNoRoom
	}
	var page struct {
		Hits *struct {
			Total json.RawMessage `json:"total"`
			Hits  firstHits       `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Hits == nil || page.Hits.Hits == nil {
		return hits, ErrUnreadable
	}
	hits.first = page.Hits.Hits
	hits.Failures, _, _ = answer.ReadSearch(bytes.NewReader(body)) // it is JSON
	var total struct {
		Value int64 `json:"value"`
	}
	// A number with rest_total_hits_as_int, else an object, or left out.
	if json.Unmarshal(page.Hits.Total, &hits.total) != nil && json.Unmarshal(page.Hits.Total, &total) == nil {
		hits.total = total.Value
	}
	hits.total = max(hits.total, 0)
	return hits, nil
}

// firstHits are the first overlapDepth: all could take much more than their
// text.
type firstHits []hitID

// UnmarshalJSON implements [json.Unmarshaler].
func (f *firstHits) UnmarshalJSON(list []byte) error {
	*f = firstHits{}
	var r jsonspan.Reader
	r.Reset(list, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return r.List(func(int) error {
		hit, err := r.Value()
		if err != nil || len(*f) == overlapDepth {
			return err
		}
		*f = append(*f, hitID{})
		return json.Unmarshal(hit.Of(list), &(*f)[len(*f)-1])
	})
}

// overlap returns the share of common hits in the longer list, false for none.
func overlap(a, b TopHits) (share float64, ok bool) {
	both := 0
	for _, id := range b.first {
		if slices.Contains(a.first, id) {
			both++
		}
	}
	longer := max(len(a.first), len(b.first))
	return float64(both) / float64(max(longer, 1)), longer > 0
}

// Metrics tell how expanded searches differ from the original ones.
type Metrics struct {
	Searches *prometheus.CounterVec // by outcome
	// By search: original or expanded.
	Hits, Empty *prometheus.CounterVec
	Took        *prometheus.HistogramVec
	Overlap     prometheus.Observer
}

// Count counts what became of a search.
func (m *Metrics) Count(outcome string) { m.Searches.WithLabelValues(outcome).Inc() }

// Compare notes how two answers differ.
func (m *Metrics) Compare(original, expanded TopHits, originalTook, expandedTook time.Duration) {
	m.note(Original, original, originalTook)
	m.note(Expanded, expanded, expandedTook)
	if share, ok := overlap(original, expanded); ok {
		m.Overlap.Observe(share)
	}
	m.Count(Compared)
}

func (m *Metrics) note(search string, hits TopHits, took time.Duration) {
	m.Took.WithLabelValues(search).Observe(took.Seconds())
	m.Hits.WithLabelValues(search).Add(float64(hits.total))
	if len(hits.first) == 0 {
		m.Empty.WithLabelValues(search).Inc()
	}
}
