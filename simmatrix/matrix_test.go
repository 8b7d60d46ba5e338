package simmatrix

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
)

// vehicles are the rows of a small matrix, in no order.
func vehicles() []TermRow {
	return []TermRow{
		{Term: "hire", DocFreq: 4, Neighbors: []Neighbor{{Term: "rental", Similarity: 0.9}}},
		{Term: "car", DocFreq: 12, Neighbors: []Neighbor{
			{Term: "lorry", Similarity: 0.25}, {Term: "automobile", Similarity: 0.5}, {Term: "bus", Similarity: 0.25},
		}},
		{Term: "automobile", DocFreq: 3, Neighbors: []Neighbor{{Term: "car", Similarity: 0.5}}},
		{Term: "lorry", DocFreq: 5},
		{Term: "bus", DocFreq: 6},
		{Term: "rental", DocFreq: 2},
	}
}

func mustNew(tb testing.TB, meta Meta, rows []TermRow) *Matrix {
	tb.Helper()
	return check.Got(New(meta, rows))(tb)
}

// randomRows returns rows with random neighbors, for property tests.
func randomRows(random *rand.Rand, terms int) []TermRow {
	rows := make([]TermRow, terms)
	for i := range rows {
		rows[i].Term, rows[i].DocFreq = fmt.Sprintf("t%d", i), random.Uint32N(1000)
	}
	for i := range rows {
		for _, j := range random.Perm(terms)[:random.IntN(terms)] {
			if j != i {
				s := float32(1+random.IntN(9)) / 9 // few values, so that there are ties
				rows[i].Neighbors = append(rows[i].Neighbors, Neighbor{Term: rows[j].Term, Similarity: s})
			}
		}
	}
	random.Shuffle(terms, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

func TestNewSortsAndCounts(t *testing.T) {
	m := mustNew(t, Meta{Source: "by hand", Params: map[string]string{"a": "1"}, Docs: 20, Terms: 99, Dominant: true}, vehicles())
	want := Meta{
		Source: "by hand", Params: map[string]string{"a": "1"}, Docs: 20,
		Terms: 6, NonZeros: 5, MaxNeighbors: 3,
		Dominant: false, // 0.25 + 0.5 + 0.25 rounds to 65536/65535
	}
	check.Equal(t, want, m.Meta())
	got := slices.Collect(m.Terms())
	check.That(t, slices.Equal(got, []string{"automobile", "bus", "car", "hire", "lorry", "rental"}) && m.Len() == 6, "terms %q", got)
	// 0.5·65535 = 32767.5 rounds to 32768, 0.25·65535 = 16383.75 to 16384.
	wantCar := []Neighbor{
		{Term: "automobile", Similarity: 32768.0 / 65535, DocFreq: 3},
		{Term: "bus", Similarity: 16384.0 / 65535, DocFreq: 6},
		{Term: "lorry", Similarity: 16384.0 / 65535, DocFreq: 5},
	}
	check.Equal(t, wantCar, neighborsOf(m.Row("car")))
	r := m.Row("car")
	check.That(t, r.DocFreq() == 12, "df of car %d", r.DocFreq())
	r = m.Row("bus")
	check.That(t, !r.IsZero() && r.Len() == 0 && r.DocFreq() == 6, "bus has %d neighbors, df %d", r.Len(), r.DocFreq())
	for _, unknown := range []string{"", "aardvark", "ca", "cars", "zebra"} {
		check.That(t, m.Row(unknown).IsZero(), "%q has a row", unknown)
	}
}

func TestMetaSaysSymmetricAndDominantTruly(t *testing.T) {
	pair := func(ab, ba float32) []TermRow {
		rows := []TermRow{{Term: "a"}, {Term: "b"}}
		if ab > 0 {
			rows[0].Neighbors = []Neighbor{{Term: "b", Similarity: ab}}
		}
		if ba > 0 {
			rows[1].Neighbors = []Neighbor{{Term: "a", Similarity: ba}}
		}
		return rows
	}
	for _, tt := range []struct {
		name                string
		rows                []TermRow
		symmetric, dominant bool
	}{
		{"no terms", nil, true, true},
		{"no neighbors", pair(0, 0), true, true},
		{"both ways", pair(0.5, 0.5), true, true},
		{"one way", pair(0.5, 0), false, true},
		{"the other way", pair(0, 0.5), false, true},
		{"unequal", pair(0.5, 0.4), false, true},
		{"a row sum of 1", pair(1, 1), true, false},
		{"a row sum just under 1", pair(65534.0/65535, 65534.0/65535), true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			meta := mustNew(t, Meta{}, tt.rows).Meta()
			check.That(t, meta.Symmetric == tt.symmetric && meta.Dominant == tt.dominant, "symmetric %v, dominant %v", meta.Symmetric, meta.Dominant)
		})
	}
}

func TestNewRefuses(t *testing.T) {
	one := func(n ...Neighbor) []TermRow { return []TermRow{{Term: "a", Neighbors: n}, {Term: "b"}} }
	many := make([]TermRow, MaxNeighbors+2)
	for i := range many {
		many[i].Term = fmt.Sprintf("t%05d", i)
		if i > 0 {
			many[0].Neighbors = append(many[0].Neighbors, Neighbor{Term: many[i].Term, Similarity: 0.1})
		}
	}
	for _, tt := range []struct {
		name, message string
		rows          []TermRow
	}{
		{"a term twice", `"a" occurs twice`, []TermRow{{Term: "a"}, {Term: "b"}, {Term: "a"}}},
		{"an empty term", `term ""`, []TermRow{{Term: ""}}},
		{"a term that is not UTF-8", `term "\xff"`, []TermRow{{Term: "\xff"}}},
		{"too long a term", "too long", []TermRow{{Term: strings.Repeat("a", MaxTermBytes+1)}}},
		{"a neighbor without a row", `"c" of "a" has no row`, one(Neighbor{Term: "c", Similarity: 1})},
		{"its own neighbor", `row of "a": is its own neighbor`, one(Neighbor{Term: "a", Similarity: 1})},
		{"a neighbor twice", `"b" occurs twice`, one(Neighbor{Term: "b", Similarity: 1}, Neighbor{Term: "b", Similarity: 0.5})},
		{"similarity 0", "similarity 0", one(Neighbor{Term: "b"})},
		{"similarity above 1", "similarity 1.5", one(Neighbor{Term: "b", Similarity: 1.5})},
		{"NaN", "similarity NaN", one(Neighbor{Term: "b", Similarity: float32(math.NaN())})},
		{"too many neighbors", "10001 neighbors", many},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(Meta{}, tt.rows)
			check.That(t, errors.Is(err, ErrInvalid) && strings.Contains(err.Error(), tt.message), "error %v, want ErrInvalid with %q", err, tt.message)
		})
	}
}

func TestMatrixIsImmutable(t *testing.T) {
	rows, params := vehicles(), map[string]string{"a": "1"}
	m := mustNew(t, Meta{Params: params}, rows)
	sum, car := m.Checksum(), m.Row("car")
	params["a"] = "2"
	m.Meta().Params["a"] = "3"
	rows[1].Neighbors[0].Similarity = 1
	check.Equal(t, "hire", rows[0].Term)
	check.That(t, m.Meta().Params["a"] == "1" && m.Row("car") == car && m.Checksum() == sum, "the matrix has changed")
}

func TestRowsOfRandomMatricesKeepTheirPromises(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		in := randomRows(random, 1+random.IntN(30))
		m := mustNew(t, Meta{}, in)
		byTerm := map[string]TermRow{}
		for _, r := range in {
			byTerm[r.Term] = r
		}
		last := ""
		for term, row := range m.Rows() {
			check.Must(t, term > last, "%q after %q", term, last)
			last = term
			check.Must(t, row == m.Row(term), "Rows and Row differ for %q", term)
			want := expectedRow(byTerm, term)
			packed := check.Got(PackRow(byTerm[term].DocFreq, want))(t)
			check.Must(t, packed == row, "row of %q: %v, want %v", term, neighborsOf(row), want)
			parsed, err := ParseRow(row.Packed())
			check.Must(t, err == nil && parsed == row, "row of %q does not parse: %v", term, err)
		}
	}
}

// expectedRow returns the neighbors of term as a row has to hold them.
func expectedRow(byTerm map[string]TermRow, term string) []Neighbor {
	row := slices.Clone(byTerm[term].Neighbors)
	for i := range row {
		row[i].Similarity = QuantizeSimilarity(float64(row[i].Similarity))
		row[i].DocFreq = byTerm[row[i].Term].DocFreq
	}
	slices.SortFunc(row, func(a, b Neighbor) int {
		if a.Similarity != b.Similarity {
			if a.Similarity > b.Similarity {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Term, b.Term)
	})
	return row
}

func TestChecksumDistinguishesMatrices(t *testing.T) {
	base := mustNew(t, Meta{Source: "x"}, vehicles())
	shuffled := vehicles()
	slices.Reverse(shuffled)
	check.Equal(t, base.Checksum(), mustNew(t, Meta{Source: "x"}, shuffled).Checksum())
	otherFreq, otherSimilarity := vehicles(), vehicles()
	otherFreq[3].DocFreq++
	otherSimilarity[0].Neighbors[0].Similarity = 0.8
	for name, other := range map[string]*Matrix{
		"source":             mustNew(t, Meta{Source: "y"}, vehicles()),
		"document frequency": mustNew(t, Meta{Source: "x"}, otherFreq),
		"similarity":         mustNew(t, Meta{Source: "x"}, otherSimilarity),
	} {
		check.That(t, other.Checksum() != base.Checksum(), "another %s, the same checksum", name)
	}
}

func TestFromRowsRestoresTheMatrix(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 60))
	meta := Meta{Source: "scattered", Params: map[string]string{"n": "some"}, Docs: 9000}
	two := meta
	two.Origins = []string{"one", "two"}
	for name, m := range map[string]*Matrix{
		"empty":       mustNew(t, Meta{Source: "nothing"}, nil),
		"one origin":  mustNew(t, meta, inForms(randomRows(random, 60))),
		"two origins": mustNew(t, two, inForms(withOrigins(random, randomRows(random, 60), 3))),
	} {
		got, err := FromRows(m.Meta(), maps.Collect(m.Rows()), maps.Collect(m.Forms()))
		check.That(t, err == nil && got.Checksum() == m.Checksum(), "%s: %v, %s", name, err, cmp.Diff(m.Meta(), got.Meta()))
	}
}

func TestFromRowsRefuses(t *testing.T) {
	row := func(docFreq uint32, neighbors ...Neighbor) Row {
		return check.Got(PackRow(docFreq, neighbors))(t)
	}
	b := Neighbor{Term: "b", Similarity: 0.5, DocFreq: 7}
	for name, rows := range map[string]map[string]Row{
		"a neighbor without a row":           {"a": row(1, b)},
		"another document frequency":         {"a": row(1, b), "b": row(8)},
		"origins that are not named":         {"a": row(1, Neighbor{Term: "b", Similarity: 0.5, DocFreq: 7, Origins: 1}), "b": row(7)},
		"its own neighbor":                   {"b": row(7, b)},
		"a neighbor twice":                   {"a": row(1, b, b), "b": row(7)},
		"an empty term":                      {"": row(1)},
		"a term that is not UTF-8":           {"\xff": row(1)},
		"a term that is longer than allowed": {strings.Repeat("a", MaxTermBytes+1): row(1)},
	} {
		m, err := FromRows(Meta{}, rows, nil)
		check.That(t, errors.Is(err, ErrInvalid) && m == nil, "%s: %v", name, err)
	}
}

func asEntries(rows [][]Entry) Entries {
	e := NewEntries(len(rows), 0, false)
	for _, row := range rows {
		e.AppendRow(row)
	}
	return e
}

// TestSymmetricFindsEveryEntryWithoutItsMirror changes one entry of a symmetric
// matrix, whose column 0 is full: its similarity, its column, or that it is there.
func TestSymmetricFindsEveryEntryWithoutItsMirror(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 1))
	for run := range 4000 {
		n := run % 20
		rows := make([][]Entry, n)
		for i := range n {
			for j := range i {
				if j == 0 || random.IntN(3) == 0 {
					sim := uint16(1 + random.IntN(3))
					rows[i] = append(rows[i], Entry{Col: uint32(j), Units: sim})
					rows[j] = append(rows[j], Entry{Col: uint32(i), Units: sim})
				}
			}
		}
		e := asEntries(rows)
		check.Must(t, e.symmetric(), "not symmetric: %v", rows)
		if n < 2 {
			continue
		}
		i := random.IntN(n) // which has an entry, in column 0 or all over
		k := random.IntN(len(rows[i]))
		switch random.IntN(3) {
		case 0:
			rows[i][k].Units += 7
		case 1:
			rows[i] = append(rows[i][:k], rows[i][k+1:]...)
		default: // the number of entries stays the same
			free := uint32(random.IntN(n))
			if free == uint32(i) || slices.ContainsFunc(rows[i], func(e Entry) bool { return e.Col == free }) {
				continue
			}
			rows[i][k].Col = free
		}
		e = asEntries(rows)
		check.Must(t, !e.symmetric(), "entry %d of row %d changed: symmetric: %v", k, i, rows)
	}
}
