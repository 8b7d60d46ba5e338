package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestVersionSurvivesItsHeader(t *testing.T) {
	want := Version{
		ID: "20261121T081300.123456-0a1b2c3d",
		Meta: simmatrix.Meta{
			Source: "index help, field body", Params: map[string]string{"top": "200"},
			Docs: 5, Terms: 3, NonZeros: 4, MaxNeighbors: 2, Symmetric: true, Dominant: true,
		},
		Checksum: "abc",
		Pushed:   time.Date(2026, 11, 21, 8, 13, 0, 123456000, time.UTC),
		By:       "akin@host",
		Format:   metaFormat, Frequent: []string{"b", "a"},
	}
	text, err := encodeVersion(want)
	check.OK(t, err)
	got, err := parseVersion(want.ID, text)
	check.OK(t, err)
	check.Equal(t, want, got)
}

func TestParseVersionRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           ``,
		"a later format":    sealHeader(`{"format":5,"terms":1,"checksum":"a"}`),
		"no own checksum":   `{"format":4,"terms":1,"checksum":"a"}`,
		"a bit flipped":     strings.Replace(sealHeader(`{"format":4,"docs":1000,"terms":1,"checksum":"a"}`), "1000", "1008", 1),
		"something behind":  sealHeader(`{"format":4,"terms":1,"checksum":"a"}`) + " ",
		"no JSON":           sealHeader(`{"format":4`),
		"another format":    sealHeader(`{"format":3,"terms":1,"checksum":"a"}`),
		"no format":         sealHeader(`{"terms":1,"checksum":"a"}`),
		"no terms":          sealHeader(`{"format":4,"checksum":"a"}`),
		"no checksum":       sealHeader(`{"format":4,"terms":1}`),
		"too many terms":    sealHeader(`{"format":4,"terms":2147483648,"checksum":"a"}`),
		"a negative number": sealHeader(`{"format":4,"terms":-1,"checksum":"a"}`),
	} {
		if v, err := parseVersion("id", text); !errors.Is(err, ErrBadVersion) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add(sealHeader(`{"format":4,"source":"s","params":{"a":"b"},"docs":5,"terms":3,"checksum":"a","pushed":"2026-11-21T08:13:00Z"}`))
	f.Add(sealHeader(`{"format":4,"params":{},"terms":1,"checksum":"a"}`))
	f.Add(`{"format":1}`)
	f.Add(sealHeader(`{"format":4,"terms":1,"checksum":"a","frequent":["b"]}`))
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseVersion("id", text)
		if err != nil {
			check.Error(t, ErrBadVersion, err)
			return
		}
		again, err := encodeVersion(v)
		if err != nil {
			t.Skip("a year that RFC 3339 cannot write")
		}
		if w, err := parseVersion("id", again); err != nil || !cmp.Equal(v, w, cmpopts.EquateEmpty()) {
			t.Errorf("%q parses to %+v, and again to %+v, %v", text, v, w, err)
		}
	})
}

func TestVersionIDsSortByTimeAndAreUnique(t *testing.T) {
	now := time.Date(2026, 11, 21, 23, 59, 59, 999_999_000, time.FixedZone("", 3600))
	var ids []string
	for i := range 50 {
		ids = append(ids, newID(now.Add(time.Duration(i)*time.Microsecond)))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("not in order: %q", ids)
	}
	if a, b := newID(now), newID(now); a == b {
		t.Errorf("two pushes at one time share %s", a)
	}
	if err := checkName("version", ids[0]); err != nil {
		t.Error(err)
	}
}

func TestCheckName(t *testing.T) {
	long := string(slices.Repeat([]byte("a"), maxNameBytes))
	for name, ok := range map[string]bool{
		"main": true, "a": true, "Z-9_x.y": true, long: true,
		"": false, long + "a": false, "a b": false, "a{b}": false, "a:b": false, "a*": false, "é": false, "a\n": false,
		"@": false, "[": false, "`": false, // neighbors of the letters in ASCII
	} {
		if err := checkName("matrix", name); (err == nil) != ok || (err != nil && !errors.Is(err, ErrName)) {
			t.Errorf("%q: %v, want ok %v", name, err, ok)
		}
	}
}
