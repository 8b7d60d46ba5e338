package combine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// carMatrix is a small matrix to try overrides on.
func carMatrix(t *testing.T, meta simmatrix.Meta, origins uint8) *simmatrix.Matrix {
	t.Helper()
	m := check.Got(simmatrix.New(meta, []simmatrix.TermRow{
		{Term: "car", DocFreq: 9, Neighbors: []simmatrix.Neighbor{
			{Term: "jaguar", Similarity: 0.8, Origins: origins},
			{Term: "van", Similarity: 0.5, Origins: origins},
		}},
		{Term: "jaguar", DocFreq: 4, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.8, Origins: origins}}},
		{Term: "van", DocFreq: 7},
	}))(t)
	return m
}

// shown returns the rows of a matrix as lines.
func shown(m *simmatrix.Matrix) []string {
	var lines []string
	for term, row := range m.Rows() {
		line := []string{fmt.Sprintf("%s/%d:", term, row.DocFreq())}
		for n := range row.All() {
			entry := fmt.Sprintf("%s=%.3f", n.Term, n.Similarity)
			if n.Origins != 0 {
				entry = fmt.Sprintf("%s(%b)", entry, n.Origins)
			}
			line = append(line, entry)
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

func TestOverridesWithNothingToDoLeaveTheMatrixAsItIs(t *testing.T) {
	m := carMatrix(t, simmatrix.Meta{Source: "vectors"}, 0)
	for _, file := range []string{"", "# nothing\n", "pin car boat\nban car ship\nban x y\n"} {
		got, counts, err := mustParseOverrides(t, file).Apply(m)
		check.That(t, err == nil && got.Checksum() == m.Checksum() && got.Meta().Origins == nil, "%q: %+v, %v", file, counts, err)
	}
}

func TestOnlyBansNameNoOrigins(t *testing.T) {
	m, _, err := mustParseOverrides(t, "ban car jaguar\n").Apply(carMatrix(t, simmatrix.Meta{Source: "vectors"}, 0))
	check.That(t, err == nil && m.Meta().Origins == nil && m.Meta().NonZeros == 1, "%+v, %v", m.Meta(), err)
}

func TestOriginsOfOverriddenEntries(t *testing.T) {
	set := mustParseOverrides(t, "set car van 0.5\n") // what the source says of one way already
	for name, tt := range map[string]struct {
		meta    simmatrix.Meta
		origins uint8
		want    []string
		row     string
	}{
		"a source":           {simmatrix.Meta{Source: "index docs"}, 0, []string{"index docs", "overrides"}, "car/9: jaguar=0.800(1) van=0.500(10)"},
		"no source":          {simmatrix.Meta{}, 0, []string{"source", "overrides"}, "car/9: jaguar=0.800(1) van=0.500(10)"},
		"a confusing source": {simmatrix.Meta{Source: "overrides"}, 0, []string{"source", "overrides"}, "car/9: jaguar=0.800(1) van=0.500(10)"},
		"an ensemble":        {simmatrix.Meta{Origins: []string{"x", "y"}}, 2, []string{"x", "y", "overrides"}, "car/9: jaguar=0.800(10) van=0.500(100)"},
		"applied before":     {simmatrix.Meta{Origins: []string{"overrides", "y"}}, 3, []string{"overrides", "y"}, "car/9: jaguar=0.800(11) van=0.500(1)"},
	} {
		t.Run(name, func(t *testing.T) {
			m, counts, err := set.Apply(carMatrix(t, tt.meta, tt.origins))
			check.OK(t, err)
			diff := cmp.Diff(tt.want, m.Meta().Origins)
			check.That(t, diff == "" && counts.Set == 2, "%+v, %s", counts, diff)
			check.Equal(t, tt.row, shown(m)[0])
			again, counts, err := set.Apply(m)
			check.That(t, err == nil && again == m && counts.NoEffect == 2, "applied twice: %+v, %v", counts, err)
		})
	}
}

func TestOverridesNeedAnOriginToMarkWhatTheySet(t *testing.T) {
	names := strings.Split("abcdefgh", "")
	m := carMatrix(t, simmatrix.Meta{Origins: names}, 128)
	_, _, err := mustParseOverrides(t, "set car van 0.9").Apply(m)
	check.Message(t, "8 origins", err)
	got, _, err := mustParseOverrides(t, "ban car van").Apply(m)
	check.That(t, err == nil && got.Meta().NonZeros == 2, "a ban needs none: %v", err)
}

// randomMatrix has n terms a0, a1, … and rows of up to neighbors entries; with
// origins each has some of three.
func randomMatrix(t *testing.T, r *rand.Rand, n, neighbors int, withOrigins bool) *simmatrix.Matrix {
	t.Helper()
	meta := simmatrix.Meta{Source: "random"}
	if withOrigins {
		meta.Origins = []string{"x", "y", "z"}
	}
	var rows []simmatrix.TermRow
	for i := range n {
		row := simmatrix.TermRow{Term: fmt.Sprintf("a%d", i), DocFreq: r.Uint32N(9)}
		for _, j := range r.Perm(n)[:r.IntN(min(neighbors, n)+1)] {
			if j == i {
				continue
			}
			e := simmatrix.Neighbor{Term: fmt.Sprintf("a%d", j), Similarity: float32(1+r.IntN(20)) / 20}
			if withOrigins {
				e.Origins = uint8(1 + r.IntN(7))
			}
			row.Neighbors = append(row.Neighbors, e)
		}
		rows = append(rows, row)
	}
	return check.Got(simmatrix.New(meta, rows))(t)
}

// similarities returns all entries of a matrix.
func similarities(m *simmatrix.Matrix) map[direction]simmatrix.Neighbor {
	all := map[direction]simmatrix.Neighbor{}
	for term, row := range m.Rows() {
		for n := range row.All() {
			all[direction{term, n.Term}] = n
		}
	}
	return all
}

func TestOverridesDoWhatTheySayToEveryEntry(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := randomMatrix(t, r, 12, 6, seed%2 == 0)
		o := &Overrides{}
		for range r.IntN(40) {
			term, neighbor := fmt.Sprintf("a%d", r.IntN(15)), fmt.Sprintf("a%d", r.IntN(15)) // some unknown
			oneWay := r.IntN(2) == 0
			switch r.IntN(3) {
			case 0:
				_ = o.Set(term, neighbor, float64(1+r.IntN(20))/20, oneWay)
			case 1:
				_ = o.Pin(term, neighbor, oneWay)
			case 2:
				_ = o.Ban(term, neighbor, oneWay)
			}
		}
		got, counts, err := o.Apply(m)
		check.OK(t, err)
		want, ruled := similarities(m), entriesRuled(o)
		for d, rule := range ruled {
			switch rule.Action {
			case ActionSet:
				want[d] = simmatrix.Neighbor{Term: d.neighbor, Similarity: simmatrix.QuantizeSimilarity(rule.Similarity), DocFreq: got.Row(d.neighbor).DocFreq()}
			case ActionBan:
				delete(want, d)
			case ActionPin:
			}
		}
		entries := similarities(got)
		own := uint8(1) << max(0, len(got.Table().Meta.Origins)-1)
		for d, n := range entries {
			switch before, was := similarities(m)[d]; {
			case ruled[d].Action == ActionSet && n.Origins != own:
				t.Errorf("seed %d: origins %b of %v", seed, n.Origins, d)
			case ruled[d].Action != ActionSet && was && before.Origins != 0 && n.Origins != before.Origins:
				t.Errorf("seed %d: origins %b of %v, were %b", seed, n.Origins, d, before.Origins)
			}
			n.Origins = want[d].Origins
			entries[d] = n
		}
		check.Equal(t, want, entries, seed)
		check.Equal(t, len(ruled), counts.Set+counts.Banned+counts.Pinned+len(counts.Unmet)+counts.NoEffect, seed, counts)
		check.Equal(t, m.Len()+counts.TermsAdded, got.Len(), seed, counts)
		if again, counts, err := o.Apply(got); err != nil || again != got || counts.Set+counts.Banned+counts.TermsAdded != 0 {
			t.Errorf("seed %d: applied twice: %+v, %v", seed, counts, err)
		}
		var file strings.Builder
		for r := range o.All() {
			fmt.Fprintln(&file, r.String())
		}
		if twin, _, err := mustParseOverrides(t, file.String()).Apply(m); err != nil || twin.Checksum() != got.Checksum() {
			t.Errorf("seed %d: another run gives another matrix: %v", seed, err)
		}
	}
}

func TestParamsNameTheOverridesApplied(t *testing.T) {
	m := carMatrix(t, simmatrix.Meta{Source: "vectors", Params: map[string]string{"power": "3"}}, 0)
	param := func(m *simmatrix.Matrix, file string) (*simmatrix.Matrix, string) {
		out, _, err := mustParseOverrides(t, file).Apply(m)
		check.OK(t, err)
		check.That(t, out.Meta().Params["power"] == "3" && m.Meta().Params["power"] == "3", "%q: %v", file, out.Meta().Params)
		return out, out.Meta().Params["overrides"]
	}
	set, first := param(m, "set car bus 0.5\nban car jaguar\n")
	check.That(t, strings.HasPrefix(first, "2 rules, sha256 ") && len(first) == len("2 rules, sha256 ")+12, "%q", first)
	check.Equal(t, "", m.Meta().Params["overrides"])
	_, same := param(m, "# the same rules\nban jaguar car\nset bus car .50\n")
	check.That(t, same == first, "%q and %q", first, same)
	_, other := param(m, "set car bus 0.6\nban car jaguar\n")
	check.That(t, other != first, "other rules, the same sum")
	pinned, pin := param(m, "pin car van\n")
	if !strings.HasPrefix(pin, "1 rules") || pinned.Meta().NonZeros != m.Meta().NonZeros || pinned.Meta().Origins != nil {
		t.Errorf("only a pin: %+v", pinned.Meta())
	}
	again, _ := param(pinned, "pin car van\n")
	check.That(t, again == pinned, "pinned twice")
	both, two := param(set, "ban van car\nban car van\n"[:12])
	check.That(t, two == first+"; "+strings.Split(two, "; ")[1], "%q of %+v", two, both.Meta())
}

func TestAPinBothWaysIsMetByOneDirection(t *testing.T) {
	m := carMatrix(t, simmatrix.Meta{Source: "vectors"}, 0) // van is in the row of car, and not the other way
	for file, unmet := range map[string]int{"pin car van": 0, "pin van car": 0, "pin van -> car": 1, "pin van jaguar": 2} {
		_, counts, err := mustParseOverrides(t, file).Apply(m)
		check.That(t, err == nil && len(counts.Unmet) == unmet, "%s: %+v, %v", file, counts, err)
	}
}

func TestMoreSetsThanARowHoldsAreRefused(t *testing.T) {
	var file strings.Builder
	for k := range simmatrix.MaxNeighbors + 1 {
		fmt.Fprintf(&file, "set a -> b%d 1\n", k)
	}
	o := mustParseOverrides(t, file.String())
	m := carMatrix(t, simmatrix.Meta{}, 0)
	_, _, err := o.Apply(m)
	check.That(t, err != nil && strings.Contains(err.Error(), `row of "a": 10001 neighbors, at most 10000`), "%v", err)
	_, fewer, _ := strings.Cut(file.String(), "\n")
	out, _, err := mustParseOverrides(t, fewer).Apply(m)
	check.That(t, err == nil && out.Meta().MaxNeighbors == simmatrix.MaxNeighbors, "as many as a row holds: %v", err)
}
