package source

import (
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

func TestPairsBecomeSortedRows(t *testing.T) {
	p := newPairs()
	id := func(term string) uint32 {
		t.Helper()
		id, err := p.term(term)
		check.OK(t, err)
		return id
	}
	rental, car, hire := id("rental"), id("car"), id("hire")
	p.keep(car, rental, 500)
	p.keep(car, hire, 900)
	p.keep(car, rental, 700) // the largest stays
	p.keep(car, rental, 600)
	p.keep(hire, car, 0) // no entry
	m, err := p.matrix(simmatrix.Meta{Source: "pairs"}, 2)
	check.OK(t, err)
	want := []simmatrix.Neighbor{
		{Term: "hire", Similarity: 900.0 / 65535},
		{Term: "rental", Similarity: 700.0 / 65535},
	}
	check.Equal(t, want, matrixtest.Of(m.Row("car")))
	if meta := m.Meta(); meta.Terms != 3 || meta.NonZeros != 2 {
		t.Errorf("%+v", meta)
	}
}

func TestPairsKeepTheLargestOfARow(t *testing.T) {
	p := newPairs()
	a, _ := p.term("a")
	for _, n := range []string{"d", "b", "c"} { // all alike: ties go by term
		id, _ := p.term(n)
		p.keep(a, id, 7)
	}
	m, err := p.matrix(simmatrix.Meta{}, 2)
	check.OK(t, err)
	if row := matrixtest.Of(m.Row("a")); len(row) != 2 || row[0].Term != "b" || row[1].Term != "c" {
		t.Errorf("row %+v", row)
	}
}

func TestPairsRefuseTermsThatCannotHaveARow(t *testing.T) {
	p := newPairs()
	for term, message := range map[string]string{
		"":      `term "" is empty`,
		"a\xff": `term "a\xff": not UTF-8`,
		strings.Repeat("a", simmatrix.MaxTermBytes+1): "aaa\": too long, 32767 bytes of at most 32766",
		"\xff\xfec\x00": `term "\xff\xfec\x00": not UTF-8, it looks like UTF-16`,
		"\xfe\xff\x00c": "it looks like UTF-16",
	} {
		if _, err := p.term(term); err == nil || !strings.HasSuffix(err.Error(), message) {
			t.Errorf("%.10q: error %v, want %s", term, err, message)
		}
	}
	check.Error(t, simmatrix.ErrNoVocabulary, check.ErrOf(p.matrix(simmatrix.Meta{}, 1)))
}

func TestSimilaritiesFromOutsideAreRounded(t *testing.T) {
	for in, want := range map[float64]uint16{
		0: 0, 1: 65535, 0.5: 32768, 1e-12: 0,
		0.49 / 65535: 0, // unlike QuantizeSimilarity
		0.51 / 65535: 1,
	} {
		check.Equal(t, want, units(in), in)
	}
}
