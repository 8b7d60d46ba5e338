package reweigh

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// An Impression is a page of hits shown to a user.
type Impression struct {
	QueryID string   `json:"query_id"`
	Query   string   `json:"query"`
	Shown   []string `json:"shown"` // document ids, best first
	Clicked []string `json:"clicked"`
	// At is when it was shown, the zero time if the log does not say.
	At time.Time `json:"at,omitzero"`
}

// A ClickLog has impressions with clicks on shown documents, each once.
type ClickLog struct {
	Impressions []Impression
	NotShown    []string // documents of other clicks, which do not count
}

const maxLine = 1 << 20

// ErrEmpty means that a log has no impression.
var ErrEmpty = errors.New("it has no impressions")

// ReadClicks reads a log with one [Impression] per line, as JSON whose other
// members are ignored. The error contains the line, or wraps [ErrEmpty].
func ReadClicks(r io.Reader) (*ClickLog, error) {
	log := &ClickLog{}
	if err := EachImpression(r, log.add); err != nil {
		return nil, err
	}
	if len(log.Impressions) == 0 {
		return nil, ErrEmpty
	}
	return log, nil
}

// EachImpression calls f with each impression of a log as [ReadClicks] reads
// it, clicks that do not count among them. The error contains the line.
func EachImpression(r io.Reader, f func(i Impression)) error {
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
			err = errors.New(`an impression needs "query" and "shown"`)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		f(i)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

// add adds an impression. It drops clicks that do not count, and repeated
// documents, such as those of an earlier page.
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

// once removes repeated ids.
func once(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}

// Searches returns the texts in the order of their first impressions, with an
// opinion on all shown documents. The gain estimates how often a user who looks
// at a document clicks, in [0, 1]: the number of clicks divided by the sum of
// the propensities of the ranks where it was shown, plus one look without a
// click. The propensity of a rank is 1/rank.
func (l *ClickLog) Searches() []Search {
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
			o.Gain += 1 / float64(rank+1) // how often it was looked at
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
