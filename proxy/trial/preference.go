package trial

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxLine is the longest line of a log of impressions or clicks that is read.
const maxLine = 1 << 20

// A Preference is what the clicks on the interleaved pages of a trial say.
type Preference struct {
	Trial string    `json:"trial"`
	Arms  [2]string `json:"arms"`
	// Searches are those with an interleaved page, and Clicked those with a click
	// that counts for an arm: Wins of each arm, which had more of the clicks, and
	// Ties.
	Searches int    `json:"searches"`
	Clicked  int    `json:"clicked"`
	Wins     [2]int `json:"wins"`
	Ties     int    `json:"ties"`
	// Delta is (wins of the second arm + ties/2) / clicked − 1/2, in [−1/2, 1/2]:
	// above zero users prefer the second arm. Low and High are the bounds of its
	// 95 % interval (Wilson 1927, for a share, with ties as half a win, which makes
	// it wider than need be).
	Delta float64 `json:"delta"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Preferred returns the arm that users prefer, "" where that is not known yet.
func (p *Preference) Preferred() string {
	switch {
	case p.Low > 0:
		return p.Arms[1]
	case p.High < 0:
		return p.Arms[0]
	}
	return ""
}

// settle computes the interval from the counts.
func (p *Preference) settle() {
	const z = 1.959964 // of 95 %
	p.Clicked = p.Wins[0] + p.Wins[1] + p.Ties
	n := float64(p.Clicked)
	if n == 0 {
		p.Delta, p.Low, p.High = 0, -.5, .5
		return
	}
	share := (float64(p.Wins[1]) + float64(p.Ties)/2) / n
	middle := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	p.Delta, p.Low, p.High = share-.5, middle-half-.5, middle+half-.5
}

// Judgment is the outcome of all trials in a log.
type Judgment struct {
	Preferences []Preference `json:"preferences"` // by the names of the trials and arms
	// Unknown counts clicks for searches that are not in the log, NotShown those on
	// documents that were not on the pages of their search, and Unreadable lines.
	Unknown    int `json:"clicks_of_unknown_searches"`
	NotShown   int `json:"clicks_on_documents_not_shown"`
	Unreadable int `json:"unreadable_lines"`
}

// A search is what was shown for one search, on one page or several.
type search struct {
	trial   string
	between [2]string         // zero where the pages are of one arm
	arms    map[string]string // by document
	clicks  map[string]int    // by arm
}

// joined is impressions with what was clicked, by query.
type joined struct {
	searches map[string]*search
	clicked  map[[2]string]bool // query and document
}

// Judge reads impressions and clicks, each as lines of JSON with query_id and
// clicked; impressions may have clicks of their own. A document that is clicked
// twice counts once. It returns an error where all of a file cannot be read.
func Judge(impressions, clicks io.Reader) (*Judgment, error) {
	all := &joined{map[string]*search{}, map[[2]string]bool{}}
	j := new(Judgment)
	if err := j.eachLine(impressions, all.show); err != nil {
		return nil, fmt.Errorf("impressions: %w", err)
	}
	if err := j.eachLine(clicks, all.click); err != nil {
		return nil, fmt.Errorf("clicks: %w", err)
	}
	for click := range all.clicked {
		s := all.searches[click[0]]
		if s == nil {
			j.Unknown++
		} else if arm, ok := s.arms[click[1]]; ok {
			s.clicks[arm]++
		} else {
			j.NotShown++
		}
	}
	j.Preferences = preferences(all.searches)
	return j, nil
}

// show takes in a page.
func (all *joined) show(i *Impression) error {
	if len(i.Arms) > 0 && (len(i.Arms) != len(i.Shown) || len(i.Between) != 2) {
		return fmt.Errorf("%d documents have %d arms, between %d", len(i.Shown), len(i.Arms), len(i.Between))
	}
	s := all.searches[i.QueryID]
	if s == nil {
		s = &search{trial: i.Trial, between: [2]string(append(i.Between, "", "")), arms: map[string]string{}, clicks: map[string]int{}}
		all.searches[i.QueryID] = s
	}
	for k, id := range i.Shown {
		if _, before := s.arms[id]; before {
			continue
		}
		if s.arms[id] = ""; len(i.Arms) > 0 {
			s.arms[id] = i.Arms[k]
		}
	}
	return all.click(i)
}

// click takes in what was clicked.
func (all *joined) click(i *Impression) error {
	for _, id := range i.Clicked {
		all.clicked[[2]string{i.QueryID, id}] = true
	}
	return nil
}

// preferences counts the searches of each trial.
func preferences(searches map[string]*search) []Preference {
	type pair struct {
		trial   string
		between [2]string
	}
	all := map[pair]*Preference{}
	for _, s := range searches {
		if s.between == [2]string{} {
			continue
		}
		key := pair{s.trial, s.between}
		p := all[key]
		if p == nil {
			p = &Preference{Trial: s.trial, Arms: s.between}
			all[key] = p
		}
		p.Searches++
		switch first, second := s.clicks[s.between[0]], s.clicks[s.between[1]]; {
		case first > second:
			p.Wins[0]++
		case second > first:
			p.Wins[1]++
		case first > 0:
			p.Ties++
		}
	}
	sorted := make([]Preference, 0, len(all))
	for _, p := range all {
		p.settle()
		sorted = append(sorted, *p)
	}
	slices.SortFunc(sorted, func(a, b Preference) int {
		return cmp.Or(cmp.Compare(a.Trial, b.Trial), slices.Compare(a.Arms[:], b.Arms[:]))
	})
	return sorted
}

// eachLine calls f with each line that is not empty, and counts those that it
// cannot take: a file on a full disk, or of an akin that was killed, has some.
func (j *Judgment) eachLine(r io.Reader, f func(*Impression) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	good, n := 0, 0
	var first error
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
		if err == nil && i.QueryID == "" {
			err = errors.New("no query_id")
		}
		if err == nil {
			err = f(i)
		}
		if err == nil {
			good++
			continue
		}
		j.Unreadable++
		first = cmp.Or(first, fmt.Errorf("line %d: %w", n, err))
	}
	switch err := lines.Err(); {
	case err != nil:
		return fmt.Errorf("line %d: %w", n+1, err)
	case good == 0:
		return first
	}
	return nil
}
