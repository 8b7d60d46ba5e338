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
)

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
		check.Error(t, ErrBadVersion, check.ErrOf(parseVersion("id", text)), name)
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
	check.That(t, slices.IsSorted(ids), "not in order: %q", ids)
	a, b := newID(now), newID(now)
	check.That(t, a != b, "two pushes at one time share %s", a)
	check.OK(t, checkName("version", ids[0]))
}

func TestCheckName(t *testing.T) {
	long := string(slices.Repeat([]byte("a"), maxNameBytes))
	for name, ok := range map[string]bool{
		"main": true, "a": true, "Z-9_x.y": true, long: true,
		"": false, long + "a": false, "a b": false, "a{b}": false, "a:b": false, "a*": false, "é": false, "a\n": false,
		"@": false, "[": false, "`": false, // neighbors of the letters in ASCII
	} {
		err := checkName("matrix", name)
		check.That(t, (err == nil) == ok && (err == nil || errors.Is(err, ErrName)), "%q: %v, want ok %v", name, err, ok)
	}
}
