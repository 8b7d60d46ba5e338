package reweigh

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
)

// An Impression is a page that a user was shown.
type Impression struct {
	QueryID string   `json:"query_id"`
	Query   string   `json:"query"`
	Shown   []string `json:"shown"` // ids of documents, best first
	Clicked []string `json:"clicked"`
}

// A ClickLog is impressions with clicks on what was shown, each once.
type ClickLog struct {
	Impressions []Impression
	NotShown    []string // the documents of other clicks, which do not count
}

const maxLine = 1 << 20

// ErrEmpty says that a log has no line, or no impression.
var ErrEmpty = errors.New("nothing is in it")

// ReadClicks reads a log that has an [Impression] a line, as JSON whose other
// members do not matter. The error names the line, or wraps [ErrEmpty].
func ReadClicks(r io.Reader) (*ClickLog, error) {
	log := &ClickLog{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if n++; n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // a byte order mark
		}
		if len(line) == 0 {
			continue
		}
		var i Impression
		err := json.Unmarshal(line, &i)
		if err == nil && (i.Query == "" || len(i.Shown) == 0) {
			err = errors.New(`an impression has a "query" and what was "shown"`)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		log.add(i)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(log.Impressions) == 0 {
		return nil, ErrEmpty
	}
	return log, nil
}

// add adds an impression without the clicks that do not count, and without
// what was shown farther up already, such as on the page before.
func (l *ClickLog) add(i Impression) {
	clicks := i.Clicked
	i.Shown, i.Clicked = once(i.Shown), nil
	for _, id := range once(clicks) {
		if slices.Contains(i.Shown, id) {
			i.Clicked = append(i.Clicked, id)
		} else {
			l.NotShown = append(l.NotShown, id)
		}
	}
	l.Impressions = append(l.Impressions, i)
}

// once returns each of the ids where it comes first.
func once(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}

// Searches returns the texts in the order in which they come first, with an
// opinion on all that was shown. The gain is how often a user who looks at the
// document clicks, in [0, 1): its clicks by the sum of the propensities of the
// ranks at which it was shown, and one look more without a click. The
// propensity of a rank is (1/rank)^bias.
func (l *ClickLog) Searches(bias float64) []Search {
	var searches []Search
	at := map[string]int{}
	for _, i := range l.Impressions {
		k, ok := at[i.Query]
		if !ok {
			k, at[i.Query] = len(searches), len(searches)
			searches = append(searches, Search{Text: i.Query, Documents: map[string]Opinion{}})
		}
		for rank, id := range i.Shown {
			o := searches[k].Documents[id]
			o.Gain += math.Pow(float64(rank+1), -bias) // how often it was looked at, so far
			if slices.Contains(i.Clicked, id) {
				o.Count++
			}
			searches[k].Documents[id] = o
		}
	}
	for _, s := range searches {
		for id, o := range s.Documents {
			o.Gain = min(1, float64(o.Count)/(o.Gain+1))
			s.Documents[id] = o
		}
	}
	return searches
}

// ReadUBI reads a log from documents of the indices ubi_queries and ubi_events
// of OpenSearch's User Behavior Insights, specification 1. sources calls f with
// the sources of the documents of an index, of which some members are wanted.
// Further pages of a query have its id, too. A click of a query that is not
// there is one on what was not shown. The error wraps [ErrEmpty] where no query
// has a text and hits.
func ReadUBI(sources func(index string, members []string, f func(source []byte) error) error) (*ClickLog, error) {
	shown := map[string]*Impression{} // by query id
	err := sources("ubi_queries", []string{"query_id", "user_query", "query_response_hit_ids"}, func(source []byte) error {
		var q struct {
			ID   string   `json:"query_id"`
			Text string   `json:"user_query"`
			Hits []string `json:"query_response_hit_ids"`
		}
		if err := json.Unmarshal(source, &q); err != nil {
			return fmt.Errorf("ubi_queries: %w", err)
		}
		if q.ID == "" || q.Text == "" || len(q.Hits) == 0 {
			return nil
		}
		if shown[q.ID] == nil {
			shown[q.ID] = &Impression{QueryID: q.ID, Query: q.Text}
		}
		shown[q.ID].Shown = append(shown[q.ID].Shown, q.Hits...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	log := &ClickLog{}
	err = sources("ubi_events", []string{"action_name", "query_id", "event_attributes.object.object_id"}, func(source []byte) error {
		var e struct {
			Action     string `json:"action_name"`
			Query      string `json:"query_id"`
			Attributes struct {
				Object struct {
					ID string `json:"object_id"`
				} `json:"object"`
			} `json:"event_attributes"`
		}
		if err := json.Unmarshal(source, &e); err != nil {
			return fmt.Errorf("ubi_events: %w", err)
		}
		if e.Action != "click" || e.Query == "" {
			return nil
		}
		if i := shown[e.Query]; i != nil {
			i.Clicked = append(i.Clicked, e.Attributes.Object.ID)
		} else {
			log.NotShown = append(log.NotShown, e.Attributes.Object.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(shown)) {
		log.add(*shown[id])
	}
	if len(log.Impressions) == 0 {
		return nil, fmt.Errorf("ubi_queries: %w", ErrEmpty)
	}
	return log, nil
}
