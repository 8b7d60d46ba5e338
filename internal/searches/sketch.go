package searches

import (
	"container/heap"
	"iter"
	"slices"
	"strings"
)

// A sketch counts the most frequent searches in bounded memory, by the
// algorithm Space-Saving (Metwally, Agrawal and El Abbadi, 2005): a new one
// takes the place of the least frequent, and its weight. So, of N searches in n
// places, a weight is at most N/n too large, and what was counted at most N/n
// too small.
type sketch struct {
	places int
	at     map[key]*counted
	order  least
}

// A counted search has its weight, which may be too large, and what was
// counted.
type counted struct {
	key    key
	weight int64
	days   byDay
	place  int // in the order
}

func newSketch(places int) *sketch { return &sketch{places: places, at: map[key]*counted{}} }

// add counts n searches.
func (s *sketch) add(k key, day int, found Found, n int64) {
	c := s.at[k]
	if c == nil {
		c = s.take(k)
	}
	c.days.of(day)[found] += n
	if found != Enough {
		c.weight += n
		heap.Fix(&s.order, c.place)
	}
}

// merge counts what was counted elsewhere, or could not be stored.
func (s *sketch) merge(all iter.Seq2[key, byDay]) {
	for k, days := range all {
		for _, d := range days {
			for found, n := range d.n {
				if n > 0 {
					s.add(k, d.day, Found(found), n)
				}
			}
		}
	}
}

// take gives a place to a new search, that of the least frequent if all are
// taken.
func (s *sketch) take(k key) *counted {
	k = key{strings.Clone(k.index), strings.Clone(k.fields), strings.Clone(k.text)} // they may be parts of a large body
	if len(s.order) < s.places {
		c := &counted{key: k, place: len(s.order)}
		s.at[k] = c
		s.order = append(s.order, c)
		heap.Fix(&s.order, c.place)
		return c
	}
	c := s.order[0]
	delete(s.at, c.key)
	c.key, c.days = k, c.days[:0]
	s.at[k] = c
	return c
}

// forget drops the days before the first, and searches of which none is left.
// The weights of the others become what was counted. It makes no copy.
func (s *sketch) forget(first int) {
	s.order = slices.DeleteFunc(s.order, func(c *counted) bool {
		c.days = slices.DeleteFunc(c.days, func(d dayCounts) bool { return d.day < first })
		c.weight = c.days.weight()
		if len(c.days) == 0 {
			delete(s.at, c.key)
		}
		return len(c.days) == 0
	})
	for place, c := range s.order {
		c.place = place
	}
	heap.Init(&s.order)
}

// each returns what is counted, to be read before it changes.
func (s *sketch) each() iter.Seq2[key, byDay] {
	return func(yield func(key, byDay) bool) {
		for _, c := range s.order {
			if !yield(c.key, c.days) {
				return
			}
		}
	}
}

// least is a heap of searches, the least frequent first.
type least []*counted

func (l least) Len() int           { return len(l) }
func (l least) Less(i, j int) bool { return l[i].weight < l[j].weight }

func (l least) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place = i
	l[j].place = j
}

// Push is for [heap.Interface], and not called.
func (least) Push(any) {}

// Pop is for [heap.Interface], and not called.
func (least) Pop() any { return nil }
