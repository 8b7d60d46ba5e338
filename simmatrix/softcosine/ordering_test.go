package softcosine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// graphOf returns an S of n terms with small similarities between some.
func graphOf(tb testing.TB, n int, edges ...[2]int) *Similarities {
	tb.Helper()
	pairs := map[[2]int32]float64{}
	for _, e := range edges {
		pairs[[2]int32{int32(max(e[0], e[1])), int32(min(e[0], e[1]))}] = 0.5 / float64(n)
	}
	return symmetricOf(tb, n, pairs)
}

// randomGraph returns a graph of up to 40 terms: sparse, dense, or in parts.
func randomGraph(tb testing.TB, random *rand.Rand) *Similarities {
	tb.Helper()
	n := 1 + random.IntN(40)
	var edges [][2]int
	for range random.IntN(1 + n*(1+random.IntN(5))) {
		if a, b := random.IntN(n), random.IntN(n); a != b {
			edges = append(edges, [2]int{a, b})
		}
	}
	return graphOf(tb, n, edges...)
}

// scrambled returns the graph with its terms renumbered.
func scrambled(tb testing.TB, random *rand.Rand, n int, edges [][2]int) *Similarities {
	tb.Helper()
	to := random.Perm(n)
	moved := slices.Clone(edges)
	for k, e := range moved {
		moved[k] = [2]int{to[e[0]], to[e[1]]}
	}
	return graphOf(tb, n, moved...)
}

// star returns a hub, the first term, with n-1 neighbors.
func star(n int) (edges [][2]int) {
	for i := 1; i < n; i++ {
		edges = append(edges, [2]int{0, i})
	}
	return edges
}

// path returns n terms in a line.
func path(n int) (edges [][2]int) {
	for i := 1; i < n; i++ {
		edges = append(edges, [2]int{i - 1, i})
	}
	return edges
}

// grid returns side² terms in a square.
func grid(side int) (edges [][2]int) {
	for i := range side {
		for j := range side {
			if j > 0 {
				edges = append(edges, [2]int{i*side + j - 1, i*side + j})
			}
			if i > 0 {
				edges = append(edges, [2]int{(i-1)*side + j, i*side + j})
			}
		}
	}
	return edges
}

// eliminated returns the entries of the factor, the diagonal among them, by
// the definition: the neighbors of who is eliminated become each other's.
func eliminated(s *Similarities, order []int32) (entries int, rows [][]int32) {
	n := s.Len()
	adjacent := make([][]bool, n) // by place
	places := inverse(order)
	for k, i := range order {
		adjacent[k] = make([]bool, n)
		cols, _ := s.Row(int(i))
		for _, j := range cols {
			adjacent[k][places[j]] = true
		}
	}
	rows = make([][]int32, n)
	for k := range n {
		entries++
		for a := k + 1; a < n; a++ {
			if !adjacent[k][a] {
				continue
			}
			entries++
			rows[a] = append(rows[a], int32(k))
			for b := k + 1; b < n; b++ {
				adjacent[a][b] = adjacent[a][b] || (a != b && adjacent[k][b])
			}
		}
	}
	return entries, rows
}

// naiveMinimumDegree returns the order of exact degrees by the definition,
// ties to the smaller term.
func naiveMinimumDegree(s *Similarities) []int32 {
	n := s.Len()
	adjacent := make([]map[int]bool, n)
	for i := range n {
		adjacent[i] = map[int]bool{}
		cols, _ := s.Row(i)
		for _, j := range cols {
			adjacent[i][int(j)] = true
		}
	}
	var order []int32
	done := make([]bool, n)
	for range n {
		best := -1
		for i := range n {
			if !done[i] && (best < 0 || len(adjacent[i]) < len(adjacent[best])) {
				best = i
			}
		}
		done[best] = true
		order = append(order, int32(best))
		for a := range adjacent[best] {
			delete(adjacent[a], best)
			for b := range adjacent[best] {
				if a != b {
					adjacent[a][b] = true
				}
			}
		}
	}
	return order
}

func TestOrdersArePermutations(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	for k := range propertyCases {
		s := randomGraph(t, random)
		for ordering, of := range orders() {
			order := of(s)
			sorted := slices.Sorted(slices.Values(order))
			if !slices.Equal(sorted, naturalOrder(s)) {
				t.Fatalf("case %d, %s: %v", k, ordering, order)
			}
			if !slices.Equal(order, of(s)) {
				t.Fatalf("case %d, %s: another order the second time", k, ordering)
			}
			for place, i := range inverse(order) {
				if order[i] != int32(place) {
					t.Fatalf("case %d, %s: no inverse", k, ordering)
				}
			}
		}
	}
}

func TestStructureIsThatOfEliminationByDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 12))
	for k := range propertyCases {
		s := randomGraph(t, random)
		for ordering, of := range orders() {
			order := of(s)
			st := analyze(s, order)
			entries, rows := eliminated(s, order)
			if st.nonZeros != entries {
				t.Fatalf("case %d, %s: %d entries, want %d", k, ordering, st.nonZeros, entries)
			}
			seen, columns := make([]int32, s.Len()), make([]int, s.Len())
			for i := range order {
				row := slices.Sorted(slices.Values(st.row(nil, s, i, seen)))
				if !slices.Equal(row, rows[i]) {
					t.Fatalf("case %d, %s: row %d has columns %v, want %v", k, ordering, i, row, rows[i])
				}
				for _, j := range row {
					columns[j]++
				}
			}
			if !slices.Equal(columns, st.columns) {
				t.Fatalf("case %d, %s: columns of %v entries, want %v", k, ordering, st.columns, columns)
			}
		}
	}
}

func TestMinimumDegreeIsAboutAsGoodAsByExactDegrees(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 13))
	var got, want, natural int
	for range propertyCases {
		s := randomGraph(t, random)
		entries, _ := eliminated(s, naiveMinimumDegree(s))
		want += entries - s.Len() - s.NonZeros()/2
		got += analyze(s, MinimumDegree(s)).nonZeros - s.Len() - s.NonZeros()/2
		natural += analyze(s, naturalOrder(s)).nonZeros - s.Len() - s.NonZeros()/2
	}
	if got > want*103/100 || got > natural/2 {
		t.Errorf("%d new entries, %d by exact degrees, %d in natural order", got, want, natural)
	}
}

func TestTreesFillNothingByMinimumDegree(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 14))
	for k := range propertyCases {
		n := 1 + random.IntN(60)
		var edges [][2]int
		for i := 1; i < n; i++ {
			edges = append(edges, [2]int{i, random.IntN(i)})
		}
		s := scrambled(t, random, n, edges)
		if got := analyze(s, MinimumDegree(s)).nonZeros; got != 2*n-1 {
			t.Fatalf("case %d: %d entries for a tree of %d terms", k, got, n)
		}
	}
}

// A hub has a list of all its neighbors. It takes minutes where that is walked
// for each of them.
func TestMinimumDegreeOfAHub(t *testing.T) {
	const n = 200_000
	s := newSimilarities(n, 2*(n-1)) // a star whose hub is its first term
	s.openRows(0)
	for i := int32(1); i < n; i++ {
		s.add(i, 0.5/n)
	}
	for i := 1; i < n; i++ {
		s.openRows(i)
		s.add(0, 0.5/n)
	}
	s.openRows(n)
	if got := analyze(s, MinimumDegree(s)).nonZeros; got != 2*n-1 {
		t.Errorf("%d entries, want %d", got, 2*n-1)
	}
}

// Chains that hang from a core go first and leave its order as it is.
func TestMinimumDegreePeelsWhatHangsFromACore(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 17))
	for k := range propertyCases {
		const side, chain = 4, 20
		edges := grid(side)
		core := analyze(graphOf(t, side*side, edges...), MinimumDegree(graphOf(t, side*side, edges...))).nonZeros
		for i := side * side; i < side*side+chain; i++ {
			edges = append(edges, [2]int{i, random.IntN(i)})
		}
		s := graphOf(t, side*side+chain, edges...)
		order := MinimumDegree(s)
		if got := analyze(s, order).nonZeros; got != core+2*chain {
			t.Fatalf("case %d: %d entries, want %d and two for each term that hangs from it", k, got, core)
		}
		for place, i := range order {
			if hangs := i >= side*side; hangs != (place < chain) {
				t.Fatalf("case %d: term %d is at place %d of %v", k, i, place, order)
			}
		}
	}
}

func TestFillOfKnownGraphs(t *testing.T) {
	const n = 100
	for name, tt := range map[string]struct {
		s                  *Similarities
		natural, minDegree int // entries at most; in natural order exactly
	}{
		// The arrow: with the hub first everybody becomes everybody's neighbor.
		"star, hub first": {graphOf(t, n, star(n)...), n * (n + 1) / 2, 2*n - 1},
		"path":            {graphOf(t, n, path(n)...), 2*n - 1, 2*n - 1},
		"no edges":        {graphOf(t, n), n, n},
		// Of the first 10 terms each but the first has one entry besides its
		// diagonal; from there on the whole band of 10 fills in: 1 + 9·2 + 90·11.
		"grid": {graphOf(t, n, grid(10)...), 1009, 700},
	} {
		if got := analyze(tt.s, naturalOrder(tt.s)).nonZeros; got != tt.natural {
			t.Errorf("%s, natural order: %d entries, want %d", name, got, tt.natural)
		}
		if got := analyze(tt.s, MinimumDegree(tt.s)).nonZeros; got > tt.minDegree {
			t.Errorf("%s, minimum degree: %d entries, want %d at most", name, got, tt.minDegree)
		}
	}
}

// Big enough for absorbed elements and mass elimination, which a small graph
// may do without.
func TestMinimumDegreeOfLargerGraphs(t *testing.T) {
	random := rand.New(rand.NewPCG(16, 16))
	for _, side := range []int{20, 40} {
		s := scrambled(t, random, side*side, grid(side))
		got, natural := analyze(s, MinimumDegree(s)).nonZeros, analyze(s, naturalOrder(s)).nonZeros
		if got >= natural/4 {
			t.Errorf("grid of %d: %d entries, natural %d", side, got, natural)
		}
	}
}
