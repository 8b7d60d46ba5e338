package combine

import (
	"maps"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A pairEntry is one direction of a pair.
type pairEntry struct {
	sim     uint16 // 0 where it is missing
	origins uint8
}

// entryMap returns the entries by row and column.
func entryMap(m *simmatrix.Matrix) map[[2]int]pairEntry {
	out := map[[2]int]pairEntry{}
	for i := range m.Table().Terms {
		cols, sims := m.Table().Row(i)
		for k, j := range cols {
			out[[2]int{i, int(j)}] = pairEntry{sim: sims[k], origins: m.Table().OriginsAt(i, k)}
		}
	}
	return out
}

// slowSparsify does what [Sparsify] says, step by step, on a map.
func slowSparsify(m *simmatrix.Matrix, opts SparsifyOptions) map[[2]int]pairEntry {
	s, n, room := entryMap(m), m.Len(), opts.Neighbors
	if room == 0 {
		room = n
	}
	guarded := func(i, j int) bool {
		return opts.Protect != nil && (opts.Protect(m.Table().Terms[i], m.Table().Terms[j]) ||
			(opts.Symmetric && opts.Protect(m.Table().Terms[j], m.Table().Terms[i])))
	}
	maps.DeleteFunc(s, func(at [2]int, e pairEntry) bool {
		return float64(e.sim) <= math.Round(opts.Threshold*65535) && !guarded(at[0], at[1])
	})
	ranked := func(i int) (cols []int) { // protected ones first
		for j := range n {
			if s[[2]int{i, j}].sim > 0 {
				cols = append(cols, j)
			}
		}
		slices.SortStableFunc(cols, func(a, b int) int {
			if guarded(i, a) != guarded(i, b) {
				return map[bool]int{true: -1, false: 1}[guarded(i, a)]
			}
			return int(s[[2]int{i, b}].sim) - int(s[[2]int{i, a}].sim)
		})
		return cols
	}
	if opts.Symmetric {
		for at, e := range maps.Clone(s) {
			back := s[[2]int{at[1], at[0]}]
			e.sim, e.origins = max(e.sim, back.sim), e.origins|back.origins
			s[at], s[[2]int{at[1], at[0]}] = e, e
		}
	}
	return slowFit(m, opts, s, room, guarded, ranked)
}

// slowFit is the last step of [Sparsify].
func slowFit(m *simmatrix.Matrix, opts SparsifyOptions, s map[[2]int]pairEntry, room int, guarded func(i, j int) bool, ranked func(i int) []int) map[[2]int]pairEntry {
	n := m.Len()
	out := map[[2]int]pairEntry{}
	fits := func(i, j int) bool {
		count, sum := 0, 0
		for at, e := range out {
			if at[0] == i {
				count, sum = count+1, sum+int(e.sim)
			}
		}
		e, ok := s[[2]int{i, j}]
		return !ok || (count < room && (!opts.Dominant || sum+int(e.sim) < 65535))
	}
	insert := func(i, j int) {
		if e, ok := s[[2]int{i, j}]; ok {
			out[[2]int{i, j}] = e
		}
	}
	for at := range s {
		if guarded(at[0], at[1]) {
			insert(at[0], at[1])
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := int(m.Table().DocFreqs[a]), int(m.Table().DocFreqs[b])
		if x == 0 {
			x = math.MaxInt
		}
		if y == 0 {
			y = math.MaxInt
		}
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for _, i := range order {
		for _, j := range ranked(i) {
			_, there := out[[2]int{i, j}]
			switch {
			case there || guarded(i, j):
			case !opts.Symmetric && fits(i, j):
				insert(i, j)
			case opts.Symmetric && fits(i, j) && fits(j, i):
				insert(i, j)
				insert(j, i)
			}
		}
	}
	return out
}
