package answer

import (
	"encoding/json"
	"errors"

	"github.com/akin-search/akin/expand"
)

// HitsPath is a filter_path of all that [ReadHits] reads: without inner hits.
const HitsPath = "timed_out,_shards.failed,hits.hits._index,hits.hits._id,hits.hits._routing," +
	"hits.hits._score,hits.hits._seq_no,hits.hits._primary_term,hits.hits._version"

// ErrPartial says that a search has not looked everywhere: its time was over,
// or a shard failed.
var ErrPartial = errors.New("some of the index was not searched")

// ReadHits returns the hits of the answer to a search, of which it has most at
// most, and their scores. It returns an error where that is not such an answer,
// or where a hit is not named, and [ErrPartial] where other hits may be
// missing.
func ReadHits(answer []byte, most int) ([]expand.Hit, []float64, error) {
	var page struct {
		TimedOut bool `json:"timed_out"`
		Shards   struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
		Hits struct {
			Hits []struct {
				Index       string   `json:"_index"`
				ID          string   `json:"_id"`
				Routing     string   `json:"_routing"`
				Score       *float64 `json:"_score"`
				SeqNo       *int64   `json:"_seq_no"`
				PrimaryTerm int64    `json:"_primary_term"`
				Version     int64    `json:"_version"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return nil, nil, ErrShape
	}
	if page.TimedOut || page.Shards.Failed > 0 {
		return nil, nil, ErrPartial
	}
	list := page.Hits.Hits
	hits, scores := make([]expand.Hit, len(list)), make([]float64, len(list))
	for i, h := range list {
		if h.Index == "" || h.ID == "" || h.Score == nil || h.SeqNo == nil || i == most {
			return nil, nil, ErrShape
		}
		hits[i] = expand.Hit{Index: h.Index, ID: h.ID, Routing: h.Routing, SeqNo: *h.SeqNo, PrimaryTerm: h.PrimaryTerm, Version: h.Version}
		scores[i] = *h.Score
	}
	return hits, scores, nil
}
