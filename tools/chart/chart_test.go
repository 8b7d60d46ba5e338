package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func sample() *Chart {
	return &Chart{
		X: "density in %", Y: "MAP in %", Log: true,
		Curves: []Curve{
			{Name: "soft <&>", Points: []Point{{0.01, 72, "C = 1"}, {0.3, 74, "C = 10"}, {2, 73, ""}}},
			{Name: "hard", Color: 5, Dashed: true, Points: []Point{{0.01, 71, ""}, {2, 71, ""}}},
		},
		Levels: []Level{{"cosine", 1, 70}},
	}
}

func TestAChartShowsItsNamesLabelsAndPoints(t *testing.T) {
	c := sample()
	drawn, err := c.SVG()
	check.OK(t, err)
	var texts strings.Builder
	for decoder := xml.NewDecoder(bytes.NewReader(drawn)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		check.OK(t, err)
		if text, ok := token.(xml.CharData); ok {
			texts.WriteString(string(text))
		}
	}
	for _, want := range []string{"density in %", "MAP in %", "soft <&>", "hard", "cosine", "C = 1", "C = 10", "0.01", "0.1"} {
		check.That(t, strings.Contains(texts.String(), want), "%q is not in the picture: %s", want, texts.String())
	}
	check.Equal(t, 5*2, bytes.Count(drawn, []byte("A3,3 "))) // a dot is two arcs
	again, err := c.SVG()
	check.OK(t, err)
	check.That(t, bytes.Equal(drawn, again), "other bytes")
}

func TestAChartOfOnePlaceIsDrawn(t *testing.T) {
	for _, log := range []bool{true, false} {
		for _, at := range []Point{{1e-9, 0, ""}, {1, 1, "x"}, {1e12, -5, ""}} {
			c := Chart{Log: log, Curves: []Curve{{Points: []Point{at, at}}}}
			drawn, err := c.SVG()
			check.OK(t, err)
			check.That(t, !bytes.Contains(drawn, []byte("NaN")) && !bytes.Contains(drawn, []byte("Inf")), "log %t, %v: %s", log, at, drawn)
		}
	}
}

func TestAChartRefusesWhatCannotBeDrawn(t *testing.T) {
	for _, test := range []struct {
		name string
		of   Chart
	}{
		{"no points", Chart{Levels: []Level{{"cosine", 0, 1}}}},
		{"a curve without points", Chart{Curves: []Curve{{Name: "soft"}}}},
		{"0 on a logarithmic axis", Chart{Log: true, Curves: []Curve{{Points: []Point{{0, 1, ""}}}}}},
		{"NaN", Chart{Curves: []Curve{{Points: []Point{{1, math.NaN(), ""}}}}}},
		{"infinity", Chart{Curves: []Curve{{Points: []Point{{math.Inf(1), 1, ""}}}}}},
		{"a level that is NaN", Chart{Curves: []Curve{{Points: []Point{{1, 1, ""}}}}, Levels: []Level{{"cosine", 0, math.NaN()}}}},
	} {
		if _, err := test.of.SVG(); !errors.Is(err, ErrPoints) {
			t.Errorf("%s: error %v, want %v", test.name, err, ErrPoints)
		}
	}
}
