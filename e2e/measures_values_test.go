package e2e

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The expected values are worked out by hand in the comments next to them.
func TestMeasuresAgreeWithHandComputedValues(t *testing.T) {
	log2of3 := math.Log2(3)
	for _, test := range []struct {
		name    string
		ranking []string
		grades  map[string]float64
		want    measures
	}{{
		name:    "perfect",
		ranking: []string{"a", "b", "x"},
		grades:  map[string]float64{"a": 2, "b": 1},
		want:    measures{MAP: 1, NDCG10: 1, Recall100: 1, MRR: 1},
	}, {
		name:    "second and third of three relevant are found",
		ranking: []string{"x", "a", "b"},
		grades:  map[string]float64{"a": 1, "b": 1, "c": 1},
		want: measures{
			MAP:       (1./2 + 2./3) / 3,                            // P@2 and P@3
			NDCG10:    (1/log2of3 + 1./2) / (1 + 1/log2of3 + 1./2.), // log2(4) = 2
			Recall100: 2. / 3,
			MRR:       1. / 2,
		},
	}, {
		name:    "grades count only in nDCG",
		ranking: []string{"low", "high"},
		grades:  map[string]float64{"low": 1, "high": 4},
		want: measures{
			MAP: 1, Recall100: 1, MRR: 1,
			NDCG10: (1 + 4/log2of3) / (4 + 1/log2of3),
		},
	}, {
		name:    "a grade of zero or less is not relevant",
		ranking: []string{"zero", "minus", "a"},
		grades:  map[string]float64{"zero": 0, "minus": -1, "a": 1},
		want:    measures{MAP: 1. / 3, NDCG10: 1. / 2, Recall100: 1, MRR: 1. / 3},
	}, {
		name:    "rank 11 counts for average precision and recall only",
		ranking: append(others(10), "a"),
		grades:  map[string]float64{"a": 3},
		want:    measures{MAP: 1. / 11, Recall100: 1},
	}, {
		name:    "rank 101 counts for average precision only",
		ranking: append(others(100), "a"),
		grades:  map[string]float64{"a": 1},
		want:    measures{MAP: 1. / 101},
	}, {
		name:    "more than ten relevant: the ideal has ten",
		ranking: others(12),
		grades: map[string]float64{
			"o0": 1, "o1": 1, "o2": 1, "o3": 1, "o4": 1, "o5": 1,
			"o6": 1, "o7": 1, "o8": 1, "o9": 1, "o10": 1, "o11": 1,
		},
		want: measures{MAP: 1, NDCG10: 1, Recall100: 1, MRR: 1},
	}, {
		name:    "nothing retrieved",
		ranking: nil,
		grades:  map[string]float64{"a": 1},
		want:    measures{},
	}, {
		name:    "nothing relevant",
		ranking: []string{"a"},
		grades:  map[string]float64{"a": 0},
		want:    measures{},
	}} {
		t.Run(test.name, func(t *testing.T) {
			got := judge(test.ranking, test.grades)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
				t.Errorf("judge (-want +got):\n%s", diff)
			}
		})
	}
}

// others returns n ids that no test grades but the one of twelve.
func others(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("o%d", i)
	}
	return ids
}

func TestMeanMeasures(t *testing.T) {
	got := meanMeasures([]measures{{MAP: 1, NDCG10: .5, Recall100: 0, MRR: .25}, {MAP: 0, NDCG10: .5, Recall100: 1, MRR: .75}})
	want := measures{MAP: .5, NDCG10: .5, Recall100: .5, MRR: .5}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("meanMeasures (-want +got):\n%s", diff)
	}
}

func TestGainIsInHundredths(t *testing.T) {
	if got := gainOver(0.6, 0.5); math.Abs(got-20) > 1e-9 {
		t.Errorf("gainOver(0.6, 0.5) = %v, want 20", got)
	}
}

func TestSignificanceIsTheShareOfSignsThatDoAsMuch(t *testing.T) {
	same, better := make([]measures, 10), make([]measures, 10)
	for i := range better {
		better[i] = measures{MAP: .1, NDCG10: .1 * float64(1-i%2*2), MRR: .2}
	}
	got := significance(better, same)
	// All ten signs the same: 2 of 1024.
	if want := 2. / 1024; math.Abs(got.MAP-want) > .001 || got.MAP != got.MRR {
		t.Errorf("p of ten equal differences = %v and %v, want about %v", got.MAP, got.MRR, want)
	}
	if got.NDCG10 != 1 || got.Recall100 != 1 {
		t.Errorf("p of differences that cancel = %v, of none %v; want 1", got.NDCG10, got.Recall100)
	}
	if back := significance(same, better); back != got {
		t.Errorf("p is %+v, the other way round %+v", got, back)
	}
	if alone := significance(better, nil); alone != (measures{}) {
		t.Errorf("p without a base = %+v", alone)
	}
}
