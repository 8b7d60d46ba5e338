// Package clicks holds logs of what users were shown and what of it they
// clicked, and says what that tells of the documents. It is pure.
//
// Users look at the first hits more often than at later ones, so that a
// click on a later hit says more. How often a rank is looked at is its
// propensity, 1 for the first; clicks are weighed by its inverse (Joachims,
// Swaminathan and Schnabel, Unbiased Learning-to-Rank with Biased Feedback,
// 2017).
package clicks

import (
	"bufio"
	"bytes"
	"cmp"
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
	// Trial is the name of a trial, Between those of its two arms, and Arms that of
	// the one that each of Shown counts for, "" for neither; all are empty where the
	// page is not interleaved.
	Trial   string   `json:"trial,omitempty"`
	Between []string `json:"between,omitempty"`
	Arms    []string `json:"arms,omitempty"`
}

// A Log is impressions with clicks on what was shown, each once.
type Log struct {
	Impressions []Impression
	// NotShown is how many clicks were on something else; they do not count.
	NotShown int
}

// maxLine is how long a line of a log may be, in bytes.
const maxLine = 1 << 20

// ErrEmpty says that a log has no impressions.
var ErrEmpty = errors.New("no impressions")

// Read reads a log that has an [Impression] a line, as JSON whose other
// members do not matter. The error names the line, or wraps [ErrEmpty].
func Read(r io.Reader) (*Log, error) {
	log := &Log{}
	if err := eachLine(r, func(i *Impression) error {
		if i.Query == "" || len(i.Shown) == 0 {
			return errors.New(`an impression has a "query" and what was "shown"`)
		}
		log.add(*i)
		return nil
	}, func(err error) error { return err }); err != nil {
		return nil, err
	}
	if len(log.Impressions) == 0 {
		return nil, ErrEmpty
	}
	return log, nil
}

// eachLine calls f with what each line says that is not empty, and bad with why
// a line cannot be taken, until that returns an error.
func eachLine(r io.Reader, f func(*Impression) error, bad func(error) error) error {
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
		i := new(Impression)
		err := json.Unmarshal(line, i)
		if err == nil {
			err = f(i)
		}
		if err != nil {
			if err = bad(fmt.Errorf("line %d: %w", n, err)); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

// add adds an impression without the clicks that do not count, and without
// what was shown farther up already, such as on the page before.
func (l *Log) add(i Impression) {
	var shown, clicked []string
	seen := make(map[string]bool, len(i.Shown))
	for _, id := range i.Shown {
		if !seen[id] {
			seen[id] = true
			shown = append(shown, id)
		}
	}
	i.Shown = shown
	for _, id := range i.Clicked {
		switch {
		case !seen[id]:
			l.NotShown++
		case !slices.Contains(clicked, id):
			clicked = append(clicked, id)
		}
	}
	i.Clicked = clicked
	l.Impressions = append(l.Impressions, i)
}

// Propensities are those of the ranks, from the first, in (0, 1]; later
// ranks have the last one.
type Propensities []float64

// leastPropensity bounds the weight of a click, so that a single one far
// below does not outweigh all others.
const leastPropensity = 0.1

func (p Propensities) at(rank int) float64 { return max(p[min(rank, len(p)-1)], leastPropensity) }

// Power returns the propensities (1/rank)^eta.
func Power(eta float64) Propensities {
	const ranks = 100
	p := make(Propensities, ranks)
	for k := range p {
		p[k] = math.Pow(float64(k+1), -eta)
	}
	return p
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

// Queries returns the texts in the order in which they come first.
func (l *Log) Queries(p Propensities) []Query {
	var queries []Query
	looks := []map[string]float64{}
	at := map[string]int{}
	for _, i := range l.Impressions {
		k, ok := at[i.Query]
		if !ok {
			k, at[i.Query] = len(queries), len(queries)
			queries, looks = append(queries, Query{i.Query, map[string]Document{}}), append(looks, map[string]float64{})
		}
		for rank, id := range i.Shown {
			d := queries[k].Documents[id]
			if slices.Contains(i.Clicked, id) {
				d.Clicks++
			}
			queries[k].Documents[id] = d
			looks[k][id] += p.at(rank)
		}
	}
	for k, q := range queries {
		for id, d := range q.Documents {
			d.Gain = min(1, float64(d.Clicks)/(looks[k][id]+1))
			q.Documents[id] = d
		}
	}
	return queries
}

// enoughImpressions is how many of a document that is shown at several ranks
// it takes to estimate propensities.
const enoughImpressions = 1000

// Estimate returns the propensities that make the clicks on documents that
// were shown at several ranks of the same query most likely, if a user
// clicks what he looks at and likes (the position-based model, by
// expectation-maximization: Wang and others, Position Bias Estimation for
// Unbiased Learning to Rank in Personal Search, 2018). It returns nil where
// there are too few.
func (l *Log) Estimate() Propensities {
	shown := l.atSeveralRanks()
	if len(shown) < enoughImpressions {
		return nil
	}
	ranks := 0
	liked := map[[2]string]float64{}
	for _, s := range shown {
		ranks, liked[s.pair] = max(ranks, s.rank+1), 0.5
	}
	looked := slices.Repeat([]float64{0.5}, ranks)
	for range 100 {
		looks, seen := make([]float64, ranks), make([]float64, ranks)
		likes, times := map[[2]string]float64{}, map[[2]string]float64{}
		for _, s := range shown {
			look, like := 1.0, 1.0
			if !s.clicked {
				p, q := looked[s.rank], liked[s.pair]
				look, like = p*(1-q)/(1-p*q), q*(1-p)/(1-p*q)
			}
			looks[s.rank] += look
			likes[s.pair] += like
			seen[s.rank]++
			times[s.pair]++
		}
		for k := range looked {
			looked[k] = min((looks[k]+1)/(seen[k]+2), 0.999) // smoothed, so that nothing is divided by 0
		}
		for pair := range maps.Keys(liked) {
			liked[pair] = min(likes[pair]/times[pair], 0.999)
		}
	}
	first := looked[0]
	for k := range looked {
		looked[k] = min(looked[k]/first, 1)
	}
	return looked
}

// A sight is one document of an impression.
type sight struct {
	pair    [2]string // query and document
	rank    int
	clicked bool
}

// atSeveralRanks returns the documents that a query did not always have at
// the same rank.
func (l *Log) atSeveralRanks() []sight {
	var all []sight
	first, moved := map[[2]string]int{}, map[[2]string]bool{}
	for _, i := range l.Impressions {
		for rank, id := range i.Shown {
			s := sight{[2]string{i.Query, id}, rank, slices.Contains(i.Clicked, id)}
			if at, ok := first[s.pair]; ok && at != rank {
				moved[s.pair] = true
			} else {
				first[s.pair] = rank
			}
			all = append(all, s)
		}
	}
	return slices.DeleteFunc(all, func(s sight) bool { return !moved[s.pair] })
}

// A UBI collects a log from documents of the indices ubi_queries and
// ubi_events of OpenSearch's User Behavior Insights, specification 1.
type UBI struct {
	places      map[string]int // of impressions, by query id
	impressions []Impression
	clicks      [][2]string // query id and document
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
	k, ok := u.places[q.ID]
	if !ok {
		if u.places == nil {
			u.places = map[string]int{}
		}
		k, u.places[q.ID] = len(u.impressions), len(u.impressions)
		u.impressions = append(u.impressions, Impression{QueryID: q.ID, Query: q.Text})
	}
	u.impressions[k].Shown = append(u.impressions[k].Shown, q.Hits...)
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

// Log returns what was collected. Clicks of a query that is not there are
// counted as on what was not shown. The error wraps [ErrEmpty].
func (u *UBI) Log() (*Log, error) {
	log := &Log{}
	for _, c := range u.clicks {
		if k, ok := u.places[c[0]]; ok {
			u.impressions[k].Clicked = append(u.impressions[k].Clicked, c[1])
		} else {
			log.NotShown++
		}
	}
	slices.SortStableFunc(u.impressions, func(a, b Impression) int { return cmp.Compare(a.QueryID, b.QueryID) })
	for _, i := range u.impressions {
		log.add(i)
	}
	if len(log.Impressions) == 0 {
		return nil, ErrEmpty
	}
	return log, nil
}
