package main

import (
	"testing"

	"github.com/akin-search/akin/esclient/documents"
)

func TestScanPlans(t *testing.T) {
	for _, tt := range []struct {
		count          int64
		maxDocs        int
		slices         int
		share, ofCount float64
	}{
		{0, 0, 1, 0, 0},
		{100, 0, 1, 0, 1},
		{25_000, 0, 1, 0, 1},
		{25_001, 0, 2, 0, 1},
		{100_000, 0, 4, 0, 1},
		{1e9, 0, 128, 0, 1},
		{100_000, 100_000, 4, 0, 1},
		{100_000, 99_999, 4, 0, 1},                // four standard deviations more are all
		{1e8, 100_000, 5, 0.00101265, 0.00101265}, // (1e5 + 4·√1e5)/1e8
		{300, 10, 1, 0.0754970, 0.075},
	} {
		p := newScanPlan(documents.ScanOptions{}, nil, tt.count, tt.maxDocs, false)
		if d := p.Share - tt.share; p.Slices != tt.slices || d > 1e-6 || d < -1e-6 {
			t.Errorf("%d documents, at most %d: %d slices and a share of %v, want %d and %v",
				tt.count, tt.maxDocs, p.Slices, p.Share, tt.slices, tt.share)
		}
		if want := tt.ofCount * float64(tt.count); float64(p.Docs) < want*0.97 || float64(p.Docs) > want*1.01 {
			t.Errorf("%d documents, at most %d: %d to read, want about %v", tt.count, tt.maxDocs, p.Docs, want)
		}
	}
	for shards, want := range map[int]int{0: 4, 1: 4, 100: 4, 150: 2, 400: 1, 10_000: 1} {
		p := scanPlan{Indices: []documents.ConcreteIndex{{Shards: shards}}}
		if got := p.sideBySide(); got != want {
			t.Errorf("%d shards: %d slices side by side, want %d", shards, got, want)
		}
	}
}
