package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

func TestFromVectorsOfAHandComputedToy(t *testing.T) {
	// Angles 0°, 60°, 90°, 180° and no direction; lengths must not matter.
	v := mustRead(t, "east 2 0\nnortheast 0.5 0.8660254\nnorth 0 1e30\nwest -1e-30 0\nnowhere 0 0\n")
	o := DefaultVectorOptions()
	m := check.Got(FromVectors(t.Context(), v, o, nil))(t)
	s30, s60 := simmatrix.QuantizeSimilarity(math.Pow(math.Sqrt(3)/2, 3)), simmatrix.QuantizeSimilarity(0.125)
	want := map[string][]simmatrix.Neighbor{
		"east":      {{Term: "northeast", Similarity: s60}},
		"northeast": {{Term: "north", Similarity: s30}, {Term: "east", Similarity: s60}},
		"north":     {{Term: "northeast", Similarity: s30}},
		"west":      nil,
		"nowhere":   nil,
	}
	got := map[string][]simmatrix.Neighbor{}
	for term, row := range m.Rows() {
		got[term] = slices.Collect(row.All())
	}
	check.Equal(t, want, got)
	meta := m.Meta()
	meta.Terms, meta.NonZeros = 0, 0
	wantMeta := simmatrix.Meta{
		Source: "vectors", MaxNeighbors: 2, Symmetric: true, Dominant: true,
		Params: map[string]string{"dimensions": "2", "neighbors": "200", "power": "3", "threshold": "0"},
	}
	check.Equal(t, wantMeta, meta)
}

func TestFromVectorsOptions(t *testing.T) {
	v := mustRead(t, "a 1 0\nb 0.8 0.6\nc 0.6 0.8\n2d 1 0\n") // cosines ab .8, ac .6, bc .96
	letters := func(w string) bool { return w[0] > '9' }
	for name, tt := range map[string]struct {
		opts VectorOptions
		want map[string]string
	}{
		"kept words":   {VectorOptions{Neighbors: 200, Power: 1, Keep: letters}, map[string]string{"a": "bc", "b": "ca", "c": "ba"}},
		"one neighbor": {VectorOptions{Neighbors: 1, Power: 1, Keep: letters}, map[string]string{"a": "b", "b": "c", "c": "b"}},
		"all words":    {VectorOptions{Neighbors: 1, Power: 1}, map[string]string{"a": "2d", "b": "c", "c": "b", "2d": "a"}},
	} {
		m := check.Got(FromVectors(t.Context(), v, tt.opts, nil))(t)
		got := map[string]string{}
		for term, row := range m.Rows() {
			got[term] = ""
			for n := range row.All() {
				got[term] += n.Term
			}
		}
		check.Equal(t, tt.want, got, name)
	}
}

// crowded returns words whose vectors have that much of one direction in
// common, the rest being random.
func crowded(tb testing.TB, words, dim int, common float64) *source.Vectors {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for i := range words {
		fmt.Fprintf(&text, "w%04d %v", i, common*math.Sqrt(float64(dim)))
		for range dim - 1 {
			fmt.Fprintf(&text, " %v", random.NormFloat64())
		}
		text.WriteByte('\n')
	}
	return mustRead(tb, text.String())
}

func TestPowerIsChosenByHowNearTheWordsAre(t *testing.T) {
	before := 0.0
	for _, tt := range []struct {
		name        string
		dim         int
		common      float64
		least, most float64
	}{
		{"words in all directions", 300, 0, 3, 3}, // where the cosine of the 30th is 0.13
		{"few dimensions", 10, 0, 8, 30},
		{"one direction in common", 10, 1, 15, 60},
		{"nearly one vector", 10, 10, 100, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, opts := crowded(t, 1500, tt.dim, tt.common), DefaultVectorOptions()
			m, err := FromVectors(t.Context(), v, opts, nil)
			check.OK(t, err)
			power, err := strconv.ParseFloat(m.Meta().Params["power"], 64)
			if err != nil || power < tt.least || power > tt.most || power < before {
				t.Errorf("power %v, want %v to %v, and not under %v", power, tt.least, tt.most, before)
			}
			before = power
			if crowd := Crowd(m); tt.least > leastPower && tt.most < largestPower && (crowd > 2*usualCrowd || crowd < usualCrowd/2) {
				t.Errorf("with power %v the 30th neighbors have a similarity of %v", power, crowd)
			}
			opts.Power = 2
			m, err = FromVectors(t.Context(), v, opts, nil)
			check.That(t, err == nil && m.Meta().Params["power"] == "2", "%v; a power that is given became %s", err, m.Meta().Params["power"])
			if crowded := Crowd(m) > LargestCrowd; crowded != (tt.least > leastPower) {
				t.Errorf("with power 2 the 30th neighbors have a similarity of %v", Crowd(m))
			}
		})
	}
}

func TestFromVectorsRefuses(t *testing.T) {
	v := mustRead(t, "a 1\nb 1\n")
	none := DefaultVectorOptions()
	none.Keep = func(string) bool { return false }
	check.Error(t, simmatrix.ErrNoVocabulary, check.ErrOf(FromVectors(t.Context(), v, none, nil)))
	_, err := FromVectors(t.Context(), v, VectorOptions{Recall: 1, Power: -1}, nil)
	for _, name := range []string{"neighbors: 0", "power: -1", "recall: 1"} {
		check.Message(t, name, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := FromVectors(ctx, v, DefaultVectorOptions(), nil); !errors.Is(err, context.Canceled) || m != nil {
		t.Errorf("error %v", err)
	}
}

func mustRead(tb testing.TB, text string) *source.Vectors {
	tb.Helper()
	return check.Got(source.ReadVectors(strings.NewReader(text), source.ReadVectorsOptions{}))(tb)
}
