package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/internal/jsonspan"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

const (
	// maxShadowed is the longest answer that is compared: 1000 hits of 1 KiB.
	maxShadowed = 1 << 20
	// overlapDepth is the number of hits that are compared, what most pages show.
	overlapDepth = 10
)

// errUnreadable says that an answer shows no hits to compare.
var errUnreadable = errors.New("no hits to compare")

// shadowOutcome returns what an error of reading an answer means.
func shadowOutcome(err error) string {
	switch {
	case errors.Is(err, limits.ErrNoRoom):
		return report.ShadowDropped
	case errors.Is(err, errUnreadable), errors.Is(err, limits.ErrTooLarge):
		return report.ShadowUnreadable
	}
	return report.ShadowUnanswered
}

// topHits are what is compared of an answer.
type topHits struct {
	total int64 // 0 where the answer does not say, as by -1 with track_total_hits=false
	first []hitID
	// failures are those of shards that count, nil where there are none.
	failures *answer.Failure
}

// A hitID names a document.
type hitID struct {
	Index string `json:"_index"`
	ID    string `json:"_id"`
}

// readTopHits reads an answer, decompressed into memory of hold. It returns
// [errUnreadable] where it lists no hits, and [limits.ErrNoRoom].
func readTopHits(h http.Header, body []byte, hold *limits.Hold) (hits topHits, err error) {
	switch coding, known := answer.ContentEncoding(h); {
	case !known:
		return hits, errUnreadable
	case coding != "":
		if body, err = new(limits.Gunzip).Read(body, hold, maxShadowed); errors.Is(err, limits.ErrNoRoom) {
			return hits, err
		} else if err != nil {
			return hits, errUnreadable
		}
	}
	if !hold.Take(int64(len(body))) { // what is decoded are parts of it
		return hits, limits.ErrNoRoom
	}
	var page struct {
		Hits *struct {
			Total json.RawMessage `json:"total"`
			Hits  firstHits       `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Hits == nil || page.Hits.Hits == nil {
		return hits, errUnreadable
	}
	hits.first = page.Hits.Hits
	hits.failures, _, _ = answer.ReadSearch(bytes.NewReader(body)) // it is JSON
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
func overlap(a, b topHits) (share float64, ok bool) {
	both := 0
	for _, id := range b.first {
		if slices.Contains(a.first, id) {
			both++
		}
	}
	longer := max(len(a.first), len(b.first))
	return float64(both) / float64(max(longer, 1)), longer > 0
}

// compareHits notes how two answers differ.
func compareHits(m *report.Shadows, original, expanded topHits, originalTook, expandedTook time.Duration) {
	noteAnswer(m, report.ShadowOriginal, original, originalTook)
	noteAnswer(m, report.ShadowExpanded, expanded, expandedTook)
	if share, ok := overlap(original, expanded); ok {
		m.Overlap.Observe(share)
	}
}

func noteAnswer(m *report.Shadows, search string, hits topHits, took time.Duration) {
	m.Took.WithLabelValues(search).Observe(took.Seconds())
	m.Hits.WithLabelValues(search).Add(float64(hits.total))
	if len(hits.first) == 0 {
		m.Empty.WithLabelValues(search).Inc()
	}
}
