package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient/documents"
)

// A scanPlan says how the documents of an index are read. It is stored with
// what has been read of them.
type scanPlan struct {
	Index   string                    `json:"index"`
	Fields  []string                  `json:"fields"`
	Query   string                    `json:"query,omitempty"`
	Seed    int                       `json:"seed"`
	MaxDocs int                       `json:"max_docs,omitempty"`
	Terms   bool                      `json:"terms,omitempty"`
	Indices []documents.ConcreteIndex `json:"indices"` // the concrete ones
	Docs    int64                     `json:"docs"`    // to be read when the scan began
	Share   float64                   `json:"share"`   // as in documents.ScanOptions, like Slices
	Slices  int                       `json:"slices"`
}

// docsPerSlice is small enough that little is read twice where a scan is
// interrupted, and large enough that finding the documents of a slice, for
// which the cluster goes through all ids, costs less than reading them.
const docsPerSlice, maxSlices = 25_000, 128

// newScanPlan plans to read count documents, of which at most maxDocs are
// wanted if that is not 0.
func newScanPlan(scan documents.ScanOptions, indices []documents.ConcreteIndex, count int64, maxDocs int, terms bool) scanPlan {
	p := scanPlan{
		Index: scan.Index, Fields: scan.Fields, Query: string(scan.Query), Seed: scan.Seed, MaxDocs: maxDocs, Terms: terms,
		Indices: indices, Docs: count,
	}
	if maxDocs > 0 && count > int64(maxDocs) {
		// Four standard deviations more than wanted, so that there are enough
		// to choose from: whether a document is taken is left to chance.
		wanted := float64(maxDocs)
		if p.Share = (wanted + 4*math.Sqrt(wanted)) / float64(count); p.Share >= 1 {
			p.Share = 0 // all
		} else {
			p.Docs = int64(p.Share * float64(count))
		}
	}
	p.Slices = int(max(1, min((p.Docs+docsPerSlice-1)/docsPerSlice, maxSlices)))
	return p
}

func (p *scanPlan) slice(k int) documents.ScanOptions {
	o := documents.ScanOptions{Index: p.Index, Fields: p.Fields, Share: p.Share, Seed: p.Seed, Slices: p.Slices, Slice: k}
	if p.Query != "" {
		o.Query = []byte(p.Query)
	}
	return o
}

// sideBySide returns how many slices are read at once. Each has one search a
// shard open, of which a node keeps 500 by default.
func (p *scanPlan) sideBySide() int {
	const most, open = 4, 400
	shards := 0
	for _, index := range p.Indices {
		shards += index.Shards
	}
	return max(1, min(most, open/max(shards, 1)))
}

// differences names what the plan asks for and another one, which was begun
// before, does not.
func (p *scanPlan) differences(before *scanPlan) []string {
	var out []string
	compare := func(name string, now, then any) {
		if a, b := fmt.Sprint(now), fmt.Sprint(then); a != b {
			out = append(out, fmt.Sprintf("%s was %s, is %s", name, cmp.Or(b, "none"), cmp.Or(a, "none")))
		}
	}
	compare("index", p.Index, before.Index)
	compare("field", strings.Join(p.Fields, ","), strings.Join(before.Fields, ","))
	compare("query", p.Query, before.Query)
	compare("max-docs", p.MaxDocs, before.MaxDocs)
	compare("exact-analysis", p.Terms, before.Terms)
	if p.MaxDocs > 0 {
		compare("seed", p.Seed, before.Seed)
	}
	if !slices.Equal(p.Indices, before.Indices) {
		out = append(out, "the index stands for other indices now, or was created again")
	}
	return out
}
