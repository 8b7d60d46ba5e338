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
	return log, log.check()
}

func (l *ClickLog) check() error {
	if len(l.Impressions) == 0 {
		return ErrEmpty
	}
	return nil
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

// A Document is what clicks tell of a document for a query.
type Document struct {
	// Gain is how often a user who looks at it clicks, in [0, 1): its clicks by the
	// sum of the propensities of the ranks at which it was shown, and one look more
	// without a click.
	Gain   float64
	Clicks int
}

// A Query is one text with all that was shown for it, by id.
type Query struct {
	Text      string
	Documents map[string]Document
}

// Queries returns the texts in the order in which they come first. The
// propensity of a rank is (1/rank)^bias.
func (l *ClickLog) Queries(bias float64) []Query {
	var queries []Query
	at := map[string]int{}
	for _, i := range l.Impressions {
		k, ok := at[i.Query]
		if !ok {
			k, at[i.Query] = len(queries), len(queries)
			queries = append(queries, Query{i.Query, map[string]Document{}})
		}
		for rank, id := range i.Shown {
			d := queries[k].Documents[id]
			d.Gain += math.Pow(float64(rank+1), -bias) // how often it was looked at, so far
			if slices.Contains(i.Clicked, id) {
				d.Clicks++
			}
			queries[k].Documents[id] = d
		}
	}
	for _, q := range queries {
		for id, d := range q.Documents {
			d.Gain = min(1, float64(d.Clicks)/(d.Gain+1))
			q.Documents[id] = d
		}
	}
	return queries
}

// A UBI collects a log from documents of the indices ubi_queries and
// ubi_events of OpenSearch's User Behavior Insights, specification 1.
type UBI struct {
	shown  map[string]*Impression // by query id
	clicks [][2]string            // query id and document
}

// AddQuery adds a document of ubi_queries, given its source. Further pages
// of a query have its id, too. One without a text or hits is left out.
func (u *UBI) AddQuery(source []byte) error {
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
	if u.shown == nil {
		u.shown = map[string]*Impression{}
	}
	if u.shown[q.ID] == nil {
		u.shown[q.ID] = &Impression{QueryID: q.ID, Query: q.Text}
	}
	u.shown[q.ID].Shown = append(u.shown[q.ID].Shown, q.Hits...)
	return nil
}

// AddEvent adds a document of ubi_events, given its source. It counts where
// its action is a click.
func (u *UBI) AddEvent(source []byte) error {
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
	if e.Action == "click" && e.Query != "" {
		u.clicks = append(u.clicks, [2]string{e.Query, e.Attributes.Object.ID})
	}
	return nil
}

// Log returns what was collected, by query id. Clicks of a query that is not
// there are clicks on what was not shown. The error wraps [ErrEmpty].
func (u *UBI) Log() (*ClickLog, error) {
	log := &ClickLog{}
	for _, c := range u.clicks {
		if i := u.shown[c[0]]; i != nil {
			i.Clicked = append(i.Clicked, c[1])
		} else {
			log.NotShown = append(log.NotShown, c[1])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(u.shown)) {
		log.add(*u.shown[id])
	}
	return log, log.check()
}
