package combine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/akin-search/akin/internal/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// settingsOf returns the claims on settings by name.
func settingsOf(r *Inspection) map[string]Claim {
	settings := map[string]Claim{}
	for _, c := range r.Claims {
		if name, ok := strings.CutPrefix(c.Name, "sparsify_"); ok {
			settings[name] = c
		}
	}
	return settings
}

// The longest row of handMade has two entries, the smallest similarity is 0.1,
// and it is neither symmetric nor dominant.
func TestInspectFindsSettingsThatDoNotHold(t *testing.T) {
	for _, tt := range []struct {
		name, claimed, counted string
		holds                  bool
	}{
		{"neighbors", "2", "3", false},
		{"neighbors", "3", "3", true},
		{"neighbors", "many", "3", false},
		{"threshold", "0.1", "0.1", false},
		{"threshold", "0.09", "0.1", true},
		{"threshold", "0x0p0", "0.1", false},
		{"symmetric", "true", "false", false},
		{"dominant", "true", "false", false},
	} {
		m := parse(t, handMade)
		m.Table().Meta.Params = map[string]string{"sparsify_" + tt.name: tt.claimed, "overrides": "none"}
		r := Inspect(m, InspectOptions{})
		c := settingsOf(r)[tt.name]
		if holds(r) != tt.holds || c.Holds != tt.holds || c.Claimed != tt.claimed || c.Counted != tt.counted || c.Note != "" {
			t.Errorf("%s %s: %+v", tt.name, tt.claimed, c)
		}
	}
}

// sparsified returns a matrix that all settings hold for.
func sparsified(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	m := matrixtest.Random(t, rand.New(rand.NewPCG(3, 3)), 40)
	m = sparsifyOrFail(t, m, SparsifyOptions{Neighbors: 3, Threshold: 0.05, Symmetric: true, Dominant: true})
	if r := Inspect(m, InspectOptions{}); !holds(r) || len(settingsOf(r)) != 4 {
		t.Fatalf("%+v", r.Claims)
	}
	return m
}

func TestOverridesExcuseWhatTheyChange(t *testing.T) {
	m := sparsified(t)
	var terms []string
	for term := range m.Terms() {
		terms = append(terms, term)
	}
	set := &Overrides{}
	for _, neighbor := range terms[1:8] {
		if err := set.Add(Override{Action: ActionSet, Term: terms[0], Neighbor: neighbor, Similarity: 0.5, OneWay: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Add(Override{Action: ActionSet, Term: terms[0], Neighbor: terms[9], Similarity: 0.01, OneWay: true}); err != nil {
		t.Fatal(err)
	}
	changed, _, err := set.Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	r := Inspect(changed, InspectOptions{})
	for name, c := range settingsOf(r) {
		if !c.Holds || c.Note != "by overrides: 8 entries are theirs, of 8 rules" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	// What is not theirs is no more excused than there are rules: here none.
	changed.Table().Meta.Params = maps.Clone(changed.Table().Meta.Params)
	delete(changed.Table().Meta.Params, "overrides")
	for name, c := range settingsOf(Inspect(changed, InspectOptions{})) {
		if !c.Holds {
			t.Errorf("%s: entries that are marked need no rules: %+v", name, c)
		}
	}
	changed.Table().Meta.Params["sparsify_neighbors"], changed.Table().Meta.Params["sparsify_threshold"] = "0", "0.9"
	for name, c := range settingsOf(Inspect(changed, InspectOptions{})) {
		if c.Holds != (name == "symmetric" || name == "dominant") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A pin marks no entry and a ban leaves none: as many places as they may have
// changed are excused, and no more.
func TestPinsAndBansExcuseAsMuchAsTheyMayHaveChanged(t *testing.T) {
	m, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "a", Neighbors: []simmatrix.Neighbor{{Term: "b", Similarity: 0.1}, {Term: "c", Similarity: 0.2}, {Term: "d", Similarity: 0.3}, {Term: "e", Similarity: 0.4}}},
		{Term: "b"},
		{Term: "c"},
		{Term: "d"},
		{Term: "e"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for rules, holds := range map[string]bool{"": false, "1 rules, sha256 00": false, "2 rules, sha256 00": true, "1 rules, sha256 00; 1 rules, sha256 01": true} {
		m.Table().Meta.Params = map[string]string{"sparsify_symmetric": "true", "overrides": rules}
		if c := settingsOf(Inspect(m, InspectOptions{}))["symmetric"]; c.Holds != holds || (c.Note != "") != holds {
			t.Errorf("%q: %+v", rules, c)
		}
	}
	o := parseOverridesOrFail(t, "pin a -> b\npin a -> c\n")
	pinned, _, err := o.Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	cut := sparsifyOrFail(t, pinned, SparsifyOptions{Neighbors: 1, Protect: o.Protects})
	if c := settingsOf(Inspect(cut, InspectOptions{}))["neighbors"]; !c.Holds || c.Counted != "2" || c.Note == "" {
		t.Errorf("%+v", c)
	}
}

func TestDecodeNamesTheFieldsOfTheHeaderThatDiffer(t *testing.T) {
	var file bytes.Buffer
	if err := simmatrix.Encode(&file, matrixtest.New(t, simmatrix.Meta{Source: "src", Params: map[string]string{"power": "3"}}, vehicles())); err != nil {
		t.Fatal(err)
	}
	lie := bytes.Replace(file.Bytes(), []byte(`"dominant":false`), []byte(`"dominant":true`), 1)
	if len(lie) == file.Len() {
		lie = bytes.Replace(file.Bytes(), []byte(`"dominant":true`), []byte(`"dominant":false`), 1)
	}
	binary.LittleEndian.PutUint32(lie[12:], binary.LittleEndian.Uint32(lie[12:])+uint32(len(lie)-file.Len()))
	body := lie[:len(lie)-sha256.Size]
	sum := sha256.Sum256(body)
	_, err := simmatrix.Decode(bytes.NewReader(append(bytes.Clone(body), sum[:]...)))
	if !errors.Is(err, simmatrix.ErrFormat) || !strings.Contains(fmt.Sprint(err), "does not describe the matrix") || strings.Contains(fmt.Sprint(err), "src") ||
		!strings.Contains(fmt.Sprint(err), "MaxNeighbors:3") || !strings.Contains(fmt.Sprint(err), "Dominant:true") || !strings.Contains(fmt.Sprint(err), "Dominant:false") {
		t.Errorf("%v", err)
	}
}

// A pair that differs is one pair, whichever direction overrides have set.
func TestAPairIsExcusedByEitherDirection(t *testing.T) {
	for _, origins := range [][2]uint8{{1, 2}, {2, 1}, {1, 1}} {
		m, err := simmatrix.New(simmatrix.Meta{Origins: []string{"x", "overrides"}, Params: map[string]string{"sparsify_symmetric": "true"}}, []simmatrix.TermRow{
			{Term: "a", Neighbors: []simmatrix.Neighbor{{Term: "b", Similarity: 0.1, Origins: origins[0]}}},
			{Term: "b", Neighbors: []simmatrix.Neighbor{{Term: "a", Similarity: 0.2, Origins: origins[1]}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if c := settingsOf(Inspect(m, InspectOptions{}))["symmetric"]; c.Holds != (origins[0] != origins[1]) {
			t.Errorf("%b: %+v", origins, c)
		}
	}
}

func parseOverridesOrFail(t *testing.T, file string) *Overrides {
	t.Helper()
	o, err := ParseOverrides(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func sparsifyOrFail(tb testing.TB, m *simmatrix.Matrix, opts SparsifyOptions) *simmatrix.Matrix {
	tb.Helper()
	out, err := Sparsify(m, opts)
	if err != nil {
		tb.Fatalf("%+v: %v", opts, err)
	}
	return out
}

// claimEntries returns the entries by row and column, in units.
func claimEntries(m *simmatrix.Matrix) map[[2]int]uint16 {
	out := map[[2]int]uint16{}
	for i := range m.Len() {
		cols, sims := m.Table().Row(i)
		for k, j := range cols {
			out[[2]int{i, int(j)}] = sims[k]
		}
	}
	return out
}
