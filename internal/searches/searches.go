// Package searches counts the texts of searches that find nothing or little,
// so that a person can help them. It keeps the most frequent ones in bounded
// memory, by day, and nothing that may be about a person, see [Text].
package searches

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/akin-search/akin/internal/glob"
)

// A Search is a text that clients searched for, in an index expression and
// fields.
type Search struct {
	Index  string `json:"index"`  // as in the request's path
	Fields string `json:"fields"` // of the clause, as explanations name them, joined by ","
	Text   string `json:"text"`   // as [Text] returns it
	Days   []Day  `json:"days"`   // newest first
}

// A Day counts the searches of a day (UTC) by what they found. Rare searches
// may be counted as fewer than they are.
type Day struct {
	Date    string `json:"date"` // such as 2026-12-01
	None    int64  `json:"none"`
	Few     int64  `json:"few"`     // fewer hits than searches.below
	Related int64  `json:"related"` // only related words found anything
	Enough  int64  `json:"enough"`  // counted only for texts that are already kept
}

// Total returns the sum of all days, without a date.
func (s *Search) Total() Day {
	var sum Day
	for i := range s.Days {
		d := &s.Days[i]
		sum.None += d.None
		sum.Few += d.Few
		sum.Related += d.Related
		sum.Enough += d.Enough
	}
	return sum
}

// A Found is what a search found.
type Found uint8

// What a search found, in the order of [Day].
const (
	None Found = iota
	Few
	Related
	Enough
	kinds // how many there are
)

// String returns the name of what was found, such as "none".
func (f Found) String() string {
	return [kinds]string{None: "none", Few: "few", Related: "related", Enough: "enough"}[f]
}

// AllFound returns what a search can find.
func AllFound() []Found { return []Found{None, Few, Related, Enough} }

// counts are the numbers of a day, by Found.
type counts [kinds]int64

// weight returns how many of the searches need help.
func (c *counts) weight() int64 { return c[None] + c[Few] + c[Related] }

// A key stands for a text in index and fields.
type key struct{ index, fields, text string }

// byDay are the counts of some days, in no order.
type byDay []dayCounts

// dayCounts are those of a day, which is a number of days since 1970.
type dayCounts struct {
	day int
	n   counts
}

// of returns the counts of a day to be changed.
func (b *byDay) of(day int) *counts {
	for i := range *b {
		if (*b)[i].day == day {
			return &(*b)[i].n
		}
	}
	*b = append(*b, dayCounts{day: day})
	return &(*b)[len(*b)-1].n
}

// weight returns how many of the searches need help.
func (b *byDay) weight() (sum int64) {
	for i := range *b {
		sum += (*b)[i].n.weight()
	}
	return sum
}

const hoursOfDay = 24 * time.Hour

// dayOf returns the number of the day of a time.
func dayOf(t time.Time) int { return int(t.Unix() / int64(hoursOfDay/time.Second)) }

func dateOf(day int) string { return time.Unix(0, 0).UTC().AddDate(0, 0, day).Format(time.DateOnly) }

// listed returns the searches of an index expression, in which * is a wildcard
// and which is "" for all, at most limit, 0 for all. Those that most often need
// help come first, and those that never do are left out.
func listed(all iter.Seq2[key, byDay], index string, limit int) []Search {
	type weighed struct {
		key    key
		days   byDay
		weight int64
	}
	var kept []weighed
	for k, days := range all {
		if weight := days.weight(); weight > 0 && (index == "" || glob.Match(index, k.index)) {
			kept = append(kept, weighed{k, days, weight})
		}
	}
	slices.SortFunc(kept, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.key.text, b.key.text), cmp.Compare(a.key.index, b.key.index), cmp.Compare(a.key.fields, b.key.fields))
	})
	if limit > 0 {
		kept = kept[:min(limit, len(kept))]
	}
	list := make([]Search, len(kept))
	for i := range kept {
		list[i] = searchOf(kept[i].key, kept[i].days, make([]Day, 0, len(kept[i].days)))
	}
	return list
}

// searchOf returns what was counted of a search, the days in a slice that may
// be used again. It sorts what was counted.
func searchOf(k key, counted byDay, days []Day) Search {
	slices.SortFunc(counted, func(a, b dayCounts) int { return cmp.Compare(b.day, a.day) })
	for _, d := range counted {
		days = append(days, Day{Date: dateOf(d.day), None: d.n[None], Few: d.n[Few], Related: d.n[Related], Enough: d.n[Enough]})
	}
	return Search{Index: k.index, Fields: k.fields, Text: k.text, Days: days}
}
