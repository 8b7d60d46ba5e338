package simmatrix

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
)

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
