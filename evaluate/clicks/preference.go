package clicks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

var errNoID = errors.New("no query_id")

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

// add adds a search with clicks on documents of the two arms.
func (p *Preference) add(first, second int) {
	p.Searches++
	switch {
	case first > second:
		p.Wins[0]++
	case second > first:
		p.Wins[1]++
	case first > 0:
		p.Ties++
	}
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
	// Unknown has the query ids of clicks for searches that are not in the log, and
	// NotShown the documents of those that were not on the pages of their search.
	// Unreadable counts lines.
	Unknown    []string `json:"clicks_of_unknown_searches"`
	NotShown   []string `json:"clicks_on_documents_not_shown"`
	Unreadable int      `json:"unreadable_lines"`
}

// Pages are those of searches, read by [ReadPages].
type Pages struct {
	searches map[string]*search
	judgment Judgment
}

// A search is what was shown for one search, on one page or several.
type search struct {
	of      [3]string         // the trial and its arms, empty where the pages are of one arm
	arms    map[string]string // by document
	clicked map[string]bool
}

// ReadPages reads impressions, lines of JSON of which each has a query_id and
// may have clicks. It returns an error where none of them can be read, and
// [ErrEmpty] where there are none.
func ReadPages(r io.Reader) (*Pages, error) {
	p := &Pages{searches: map[string]*search{}, judgment: Judgment{Preferences: []Preference{}, Unknown: []string{}, NotShown: []string{}}}
	err := p.eachLine(r, func(i *Impression) error {
		if len(i.Arms) > 0 && (len(i.Arms) != len(i.Shown) || len(i.Between) != 2) {
			return fmt.Errorf("%d documents have %d arms, between %d", len(i.Shown), len(i.Arms), len(i.Between))
		}
		if p.searches[i.QueryID] == nil {
			p.searches[i.QueryID] = &search{arms: map[string]string{}, clicked: map[string]bool{}}
		}
		p.searches[i.QueryID].show(i)
		return p.click(i)
	})
	return p, err
}

// Judge reads clicks, lines of JSON with query_id and clicked, and says what
// they prefer. A document of a search that is clicked twice counts once. It
// returns an error where none of them can be read, and [ErrEmpty] where there
// are none.
func (p *Pages) Judge(clicks io.Reader) (*Judgment, error) {
	err := p.eachLine(clicks, p.click)
	p.count()
	return &p.judgment, err
}

// click takes in what was clicked.
func (p *Pages) click(i *Impression) error {
	s := p.searches[i.QueryID]
	for _, id := range i.Clicked {
		if s == nil {
			p.judgment.Unknown = append(p.judgment.Unknown, i.QueryID)
		} else if _, shown := s.arms[id]; shown {
			s.clicked[id] = true
		} else {
			p.judgment.NotShown = append(p.judgment.NotShown, id)
		}
	}
	return nil
}

// eachLine calls f with each line, and counts those that it cannot take: a file
// on a full disk, or of an akin that was killed, has some.
func (p *Pages) eachLine(r io.Reader, f func(*Impression) error) error {
	good, first := false, error(nil)
	err := eachLine(r, func(i *Impression) (err error) {
		if err = errNoID; i.QueryID != "" {
			err = f(i)
		}
		good = good || err == nil
		return err
	}, func(err error) error {
		p.judgment.Unreadable++
		first = cmp.Or(first, err)
		return nil
	})
	if !good {
		err = cmp.Or(err, first, ErrEmpty)
	}
	return err
}

// show takes in a page.
func (s *search) show(i *Impression) {
	arms := i.Arms
	if len(arms) == 0 {
		arms = make([]string, len(i.Shown))
	} else {
		s.of = [3]string{i.Trial, i.Between[0], i.Between[1]}
	}
	for k, id := range i.Shown {
		if before, known := s.arms[id]; !known {
			s.arms[id] = arms[k]
		} else if before != arms[k] && slices.Contains(i.Shown[:k], id) { // of two indices: which is clicked nobody knows
			s.arms[id] = ""
		}
	}
}

// count counts the searches of each trial.
func (p *Pages) count() {
	all := map[[3]string]*Preference{}
	for _, s := range p.searches {
		if s.of == [3]string{} {
			continue
		}
		if all[s.of] == nil {
			all[s.of] = &Preference{Trial: s.of[0], Arms: [2]string(s.of[1:])}
		}
		clicks := map[string]int{}
		for id := range s.clicked {
			clicks[s.arms[id]]++
		}
		all[s.of].add(clicks[s.of[1]], clicks[s.of[2]])
	}
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		all[key].settle()
		p.judgment.Preferences = append(p.judgment.Preferences, *all[key])
	}
}
