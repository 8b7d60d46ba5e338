package expand

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// pitIDs are points in time that the engines opened: on an index of one shard,
// on one of two, on both, and on an alias of both that has a filter.
var pitIDs = func() (all []pitID) {
	text, err := os.ReadFile("testdata/points_in_time.txt")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			all = append(all, pitID{f[0], f[2], f[1]})
		}
	}
	return all
}()

type pitID struct{ name, id, indices string }

func TestIndicesOfAPointInTime(t *testing.T) {
	for _, tt := range pitIDs {
		t.Run(tt.name, func(t *testing.T) {
			check.Equal(t, tt.indices, strings.Join(indicesOf(tt.id), ","), "indices")
			shards := map[string]int{"pit-one": 1, "pit-two": 2, "pit-one,pit-two": 3}[tt.indices]
			got := readPIT(tt.id)
			check.Equal(t, shards, got.shards, "shards")
			filtered := strings.Contains(tt.name, "filter")
			check.That(t, got.filtered == filtered && filtered == slices.Equal(got.aliases, []string{"pit-some"}), "filtered %v by %q, want %v", got.filtered, got.aliases, filtered)
		})
	}
}

// In one of some ten thousand ids of Elasticsearch 8, random bytes can also be
// read as a filter of no alias.
func TestAFilterWithoutAliasIsNoReading(t *testing.T) {
	got := readPIT("iM-bBAIQYWtpbi1lMmUtcmVsYXRlZBZtS1lJN3ZrLVBtQm9PSGFOSjAycjRKAAEWaDg5c09nMDB1X3dXVE5peEQ3ckU0ZQABAAAAAAAASxgWVTRGUGdpelVTdUk3UFE0OX" +
		"Z0V0ZsegAQYWtpbi1lMmUtcmVsYXRlZBZNVGhvRU5WNWpxeU8xdG90Y1lNdkZyAQEWSmw1RTlQYmlsUGtTVjc4bV92b29CRwABAAAAAAAAAAIWMVlKT2RWVHZDWW45MXd2TXFqQkhN" +
		"RQABFjloaGgtaVFkV09yZ3d5dkpTYUYxOTkBEWFraW4tZTJlLXRlbmFudC1iAQVyYW5nZT-AAAAAAW7_AQAAABQBAQAAAA==")
	check.That(t, got != nil && slices.Equal(got.names(), []string{"akin-e2e-tenant-b"}), "%+v", got)
}

// TestWhatIsNoPointInTimeHasNoIndices alters an id in ways after which nobody
// can tell what it was opened on.
func TestWhatIsNoPointInTimeHasNoIndices(t *testing.T) {
	id := pitIDs[0].id
	raw, err := base64.URLEncoding.DecodeString(id)
	check.OK(t, err)
	encode := base64.URLEncoding.EncodeToString
	tests := map[string]string{
		"empty":               "",
		"no base64":           "a b",
		"a word":              "pit-one",
		"version alone":       encode(raw[:4]),
		"cut in a name":       encode(raw[:9]),
		"cut in a context":    encode(raw[:len(raw)/2]),
		"no shards":           encode(append(slices.Clone(raw[:4]), 0)),
		"more shards than id": encode(bytes.Replace(raw, []byte("\x01\x07pit-one"), []byte("\x7f\x07pit-one"), 1)),
		"another cluster":     encode(bytes.Replace(raw, []byte("\x00\x01\x00\x00"), []byte("\x01\x01\x00\x00"), 1)),
		"no index's name":     encode(bytes.Replace(raw, []byte("pit-one"), []byte("Pit-one"), 1)),
		"a pattern":           encode(bytes.Replace(raw, []byte("pit-one"), []byte("pit-on*"), 1)),
		"two names in one":    encode(bytes.Replace(raw, []byte("pit-one"), []byte("pi,-one"), 1)),
		"of another endpoint": encode(bytes.Replace(raw, []byte("pit-one"), []byte("_search"), 1)),
	}
	for name, id := range tests {
		t.Run(name, func(t *testing.T) {
			got := indicesOf(id)
			check.That(t, got == nil, "indices %q, want none", got)
		})
	}
}

// An id of two megabytes, which anybody may send, takes some hundredths of a
// second to read.
func TestAnIDThatNamesVeryManyIndicesIsReadInTime(t *testing.T) {
	const indices = 40_000
	id := binary.AppendUvarint([]byte{1}, indices)
	for i := range indices {
		id = fmt.Appendf(id, "\x05%05d\x16%022d", i, i)
		id = append(id, make([]byte, 1+1+1+8+1)...) // number, node, cluster, context
	}
	id = append(id, 0) // no aliases
	began := time.Now()
	got := indicesOf(base64.URLEncoding.EncodeToString(id))
	check.That(t, len(got) == indices, "%d indices", len(got))
	took := time.Since(began)
	check.That(t, took <= 2*time.Second, "it takes %v", took)
}

// FuzzIndicesOfPIT reads ids that anybody may send: what comes out is a list of
// names that can stand in an index expression, each of which the id holds.
func FuzzIndicesOfPIT(f *testing.F) {
	for _, tt := range pitIDs {
		raw, err := base64.URLEncoding.DecodeString(tt.id)
		check.OK(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		names := indicesOf(base64.URLEncoding.EncodeToString(raw))
		p := readPIT(base64.URLEncoding.EncodeToString(raw))
		check.That(t, p == nil || !slices.ContainsFunc(p.aliases, func(a string) bool { return !isIndexName(a) }), "no names of aliases: %+v", p)
		unpadded := indicesOf(base64.RawURLEncoding.EncodeToString(raw))
		check.That(t, slices.Equal(names, unpadded), "%q, without padding %q", names, unpadded)
		check.That(t, slices.IsSorted(names) && len(slices.Compact(slices.Clone(names))) == len(names), "not sorted, or a name twice: %q", names)
		for _, name := range names {
			check.That(t, bytes.Contains(raw, []byte(name)) && !strings.ContainsAny(name, `,*/\?#"<>| `) && strings.IndexAny(name, "_-+") != 0, "no name of an index, or not in the id: %q", name)
		}
	})
}

// indicesOf returns the indices that an id names, nil where it is not understood.
func indicesOf(id string) []string {
	if p := readPIT(id); p != nil {
		return p.indices
	}
	return nil
}

func TestAPointInTimeOfSomeShardsIsScoredWithoutScripts(t *testing.T) {
	for shards, want := range map[int]reason.Reason{1: reason.PointInTime, 3: reason.PointInTime, 4: reason.Routing} {
		pit := pitIDs[0]
		for _, p := range pitIDs {
			if p.indices == "pit-one,pit-two" && !strings.Contains(p.name, "filter") { // three shards
				pit = p
			}
		}
		r := expandRequest(t, &Request{Body: []byte(`{"pit":{"id":"` + pit.id + `"},"query":{"match":{"body":"car rental"}}}`)}, func(c *fakeCluster, o *Profile) {
			c.shards, o.Scoring, o.NoRescore = shards, form.Auto, false
		})
		got := r.Clauses[0]
		check.That(t, got.Reason == want && (got.Form == "grouped") == (want == reason.Routing), "%d shards: form %q, reason %q, want %q", shards, got.Form, got.Reason, want)
	}
}
