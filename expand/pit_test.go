package expand

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// pitIDs are points in time that the engines opened: on an index of one shard,
// on one of two, on both, and on an alias of both that has a filter.
var pitIDs = []struct{ name, id, indices string }{
	{
		"Elasticsearch 8.19.21, one shard",
		"iM-bBAEHcGl0LW9uZRZyUXN0Vm5Ja1RpNkpuMGJnV2JFd3pnAAEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAAAAAAEWS2huZTJoQ05RNE" +
			"9LWDlHN3hQUUs2QQABFnJRc3RWbklrVGk2Sm4wYmdXYkV3emcAAA==",
		"pit-one",
	},
	{
		"Elasticsearch 8.19.21, two shards",
		"iM-bBAIHcGl0LXR3bxZvMGhERjQwUVF2LUNHNFhZM3NuMDN3AAEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAAAAAAIWS2huZTJoQ05RNE" +
			"9LWDlHN3hQUUs2QQAHcGl0LXR3bxZvMGhERjQwUVF2LUNHNFhZM3NuMDN3AQEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAAAAAAMWS2hu" +
			"ZTJoQ05RNE9LWDlHN3hQUUs2QQABFm8waERGNDBRUXYtQ0c0WFkzc24wM3cAAA==",
		"pit-two",
	},
	{
		"Elasticsearch 8.19.21, two indices",
		"iM-bBAMHcGl0LW9uZRZyUXN0Vm5Ja1RpNkpuMGJnV2JFd3pnAAEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAAAAAAQWS2huZTJoQ05RNE" +
			"9LWDlHN3hQUUs2QQAHcGl0LXR3bxZvMGhERjQwUVF2LUNHNFhZM3NuMDN3AAEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAAAAAAUWS2hu" +
			"ZTJoQ05RNE9LWDlHN3hQUUs2QQAHcGl0LXR3bxZvMGhERjQwUVF2LUNHNFhZM3NuMDN3AQEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAA" +
			"AAAAYWS2huZTJoQ05RNE9LWDlHN3hQUUs2QQACFnJRc3RWbklrVGk2Sm4wYmdXYkV3emcAABZvMGhERjQwUVF2LUNHNFhZM3NuMDN3AAA=",
		"pit-one,pit-two",
	},
	{
		"Elasticsearch 8.19.21, an alias with a filter",
		"iM-bBAMHcGl0LW9uZRZyUXN0Vm5Ja1RpNkpuMGJnV2JFd3pnAAEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAAAAAAcWS2huZTJoQ05RNE" +
			"9LWDlHN3hQUUs2QQAHcGl0LXR3bxZvMGhERjQwUVF2LUNHNFhZM3NuMDN3AAEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAAAAAAgWS2hu" +
			"ZTJoQ05RNE9LWDlHN3hQUUs2QQAHcGl0LXR3bxZvMGhERjQwUVF2LUNHNFhZM3NuMDN3AQEWakk3MXp2Tm5Sbi1RNEx0czJmWUZ0QQABAAAAAA" +
			"AAAAkWS2huZTJoQ05RNE9LWDlHN3hQUUs2QQACFnJRc3RWbklrVGk2Sm4wYmdXYkV3emcBCHBpdC1zb21lAQR0ZXJtP4AAAAABYRUBeAAWbzBo" +
			"REY0MFFRdi1DRzRYWTNzbjAzdwEIcGl0LXNvbWUBBHRlcm0_gAAAAAFhFQF4AA==",
		"pit-one,pit-two",
	},
	{
		"Elasticsearch 9.5.3, one shard",
		"16LBBAEHcGl0LW9uZRZRa3N6bHZXNlRBbWhwbDZaOGZMUG9nAAEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAAAAAAEWMVk3dDVINy1UNS" +
			"1rN251WXFWVHBTUQABFlFrc3psdlc2VEFtaHBsNlo4ZkxQb2cAAA==",
		"pit-one",
	},
	{
		"Elasticsearch 9.5.3, two shards",
		"16LBBAIHcGl0LXR3bxZPdHJOTlBNdFI3U2FjRnJnVm03NzJRAQEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAAAAAAMWMVk3dDVINy1UNS" +
			"1rN251WXFWVHBTUQAHcGl0LXR3bxZPdHJOTlBNdFI3U2FjRnJnVm03NzJRAAEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAAAAAAIWMVk3" +
			"dDVINy1UNS1rN251WXFWVHBTUQABFk90ck5OUE10UjdTYWNGcmdWbTc3MlEAAA==",
		"pit-two",
	},
	{
		"Elasticsearch 9.5.3, two indices",
		"16LBBAMHcGl0LXR3bxZPdHJOTlBNdFI3U2FjRnJnVm03NzJRAQEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAAAAAAYWMVk3dDVINy1UNS" +
			"1rN251WXFWVHBTUQAHcGl0LW9uZRZRa3N6bHZXNlRBbWhwbDZaOGZMUG9nAAEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAAAAAAQWMVk3" +
			"dDVINy1UNS1rN251WXFWVHBTUQAHcGl0LXR3bxZPdHJOTlBNdFI3U2FjRnJnVm03NzJRAAEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAA" +
			"AAAAUWMVk3dDVINy1UNS1rN251WXFWVHBTUQACFlFrc3psdlc2VEFtaHBsNlo4ZkxQb2cAABZPdHJOTlBNdFI3U2FjRnJnVm03NzJRAAA=",
		"pit-one,pit-two",
	},
	{
		"Elasticsearch 9.5.3, an alias with a filter",
		"16LBBAMHcGl0LXR3bxZPdHJOTlBNdFI3U2FjRnJnVm03NzJRAQEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAAAAAAkWMVk3dDVINy1UNS" +
			"1rN251WXFWVHBTUQAHcGl0LW9uZRZRa3N6bHZXNlRBbWhwbDZaOGZMUG9nAAEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAAAAAAcWMVk3" +
			"dDVINy1UNS1rN251WXFWVHBTUQAHcGl0LXR3bxZPdHJOTlBNdFI3U2FjRnJnVm03NzJRAAEWSDJZMG84bEJTZGF3MW9ySUc1Vk1IZwABAAAAAA" +
			"AAAAgWMVk3dDVINy1UNS1rN251WXFWVHBTUQACFlFrc3psdlc2VEFtaHBsNlo4ZkxQb2cBCHBpdC1zb21lAQR0ZXJtP4AAAAABYRUBeAAWT3Ry" +
			"Tk5QTXRSN1NhY0ZyZ1ZtNzcyUQEIcGl0LXNvbWUBBHRlcm0_gAAAAAFhFQF4AA==",
		"pit-one,pit-two",
	},
	{
		"OpenSearch 2.19.1, one shard",
		"99aFQQEHcGl0LW9uZRYyWHFZakNQS1JfT3ZYVnBXQjNHT09BABZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAAA6FllDLTZCMlcxUnBpYU" +
			"NiV0k0UjFHcFEBFjJYcVlqQ1BLUl9PdlhWcFdCM0dPT0EAAA==",
		"pit-one",
	},
	{
		"OpenSearch 2.19.1, two shards",
		"99aFQQIHcGl0LXR3bxZTeUEtZmpWWVFrMnFCcEZtZFNZcnRnARZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAAA8FllDLTZCMlcxUnBpYU" +
			"NiV0k0UjFHcFEHcGl0LXR3bxZTeUEtZmpWWVFrMnFCcEZtZFNZcnRnABZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAAA7FllDLTZCMlcx" +
			"UnBpYUNiV0k0UjFHcFEBFlN5QS1malZZUWsycUJwRm1kU1lydGcAAA==",
		"pit-two",
	},
	{
		"OpenSearch 2.19.1, two indices",
		"99aFQQMHcGl0LW9uZRYyWHFZakNQS1JfT3ZYVnBXQjNHT09BABZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAAA9FllDLTZCMlcxUnBpYU" +
			"NiV0k0UjFHcFEHcGl0LXR3bxZTeUEtZmpWWVFrMnFCcEZtZFNZcnRnARZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAAA_FllDLTZCMlcx" +
			"UnBpYUNiV0k0UjFHcFEHcGl0LXR3bxZTeUEtZmpWWVFrMnFCcEZtZFNZcnRnABZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAAA-FllDLT" +
			"ZCMlcxUnBpYUNiV0k0UjFHcFECFlN5QS1malZZUWsycUJwRm1kU1lydGcAABYyWHFZakNQS1JfT3ZYVnBXQjNHT09BAAA=",
		"pit-one,pit-two",
	},
	{
		"OpenSearch 2.19.1, an alias with a filter",
		"99aFQQMHcGl0LW9uZRYyWHFZakNQS1JfT3ZYVnBXQjNHT09BABZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAABAFllDLTZCMlcxUnBpYU" +
			"NiV0k0UjFHcFEHcGl0LXR3bxZTeUEtZmpWWVFrMnFCcEZtZFNZcnRnARZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAABCFllDLTZCMlcx" +
			"UnBpYUNiV0k0UjFHcFEHcGl0LXR3bxZTeUEtZmpWWVFrMnFCcEZtZFNZcnRnABZ2dGpicXlfalFsNnhfd0lldW5ybGF3AAAAAAAAAABBFllDLT" +
			"ZCMlcxUnBpYUNiV0k0UjFHcFECFlN5QS1malZZUWsycUJwRm1kU1lydGcBCHBpdC1zb21lAQR0ZXJtP4AAAAABYRUBeAAWMlhxWWpDUEtSX092" +
			"WFZwV0IzR09PQQEIcGl0LXNvbWUBBHRlcm0_gAAAAAFhFQF4AA==",
		"pit-one,pit-two",
	},
	{
		"OpenSearch 3.8.0, one shard",
		"o_-7QQEHcGl0LW9uZRZzUEo3aUZTT1RsbUhVTHE1MnV3WG9nABZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAABFkdYRE85RV9zU0ItaD" +
			"dQSWdBZVRsYWcBFnNQSjdpRlNPVGxtSFVMcTUydXdYb2cAAA==",
		"pit-one",
	},
	{
		"OpenSearch 3.8.0, two shards",
		"o_-7QQIHcGl0LXR3bxZtTnFwaVRWM1NiYUZJZUdqOTVWTU1nABZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAACFkdYRE85RV9zU0ItaD" +
			"dQSWdBZVRsYWcHcGl0LXR3bxZtTnFwaVRWM1NiYUZJZUdqOTVWTU1nARZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAADFkdYRE85RV9z" +
			"U0ItaDdQSWdBZVRsYWcBFm1OcXBpVFYzU2JhRkllR2o5NVZNTWcAAA==",
		"pit-two",
	},
	{
		"OpenSearch 3.8.0, two indices",
		"o_-7QQMHcGl0LXR3bxZtTnFwaVRWM1NiYUZJZUdqOTVWTU1nABZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAAFFkdYRE85RV9zU0ItaD" +
			"dQSWdBZVRsYWcHcGl0LXR3bxZtTnFwaVRWM1NiYUZJZUdqOTVWTU1nARZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAAGFkdYRE85RV9z" +
			"U0ItaDdQSWdBZVRsYWcHcGl0LW9uZRZzUEo3aUZTT1RsbUhVTHE1MnV3WG9nABZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAAEFkdYRE" +
			"85RV9zU0ItaDdQSWdBZVRsYWcCFm1OcXBpVFYzU2JhRkllR2o5NVZNTWcAABZzUEo3aUZTT1RsbUhVTHE1MnV3WG9nAAA=",
		"pit-one,pit-two",
	},
	{
		"OpenSearch 3.8.0, an alias with a filter",
		"o_-7QQMHcGl0LXR3bxZtTnFwaVRWM1NiYUZJZUdqOTVWTU1nABZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAAIFkdYRE85RV9zU0ItaD" +
			"dQSWdBZVRsYWcHcGl0LXR3bxZtTnFwaVRWM1NiYUZJZUdqOTVWTU1nARZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAAJFkdYRE85RV9z" +
			"U0ItaDdQSWdBZVRsYWcHcGl0LW9uZRZzUEo3aUZTT1RsbUhVTHE1MnV3WG9nABZRMHhHTjB6cVJfZWlqQllsN0FyOGh3AAAAAAAAAAAHFkdYRE" +
			"85RV9zU0ItaDdQSWdBZVRsYWcCFm1OcXBpVFYzU2JhRkllR2o5NVZNTWcBCHBpdC1zb21lAQR0ZXJtP4AAAAABYRUBeAAWc1BKN2lGU09UbG1I" +
			"VUxxNTJ1d1hvZwEIcGl0LXNvbWUBBHRlcm0_gAAAAAFhFQF4AA==",
		"pit-one,pit-two",
	},
}

func TestIndicesOfAPointInTime(t *testing.T) {
	for _, tt := range pitIDs {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(indicesOf(tt.id), ","); got != tt.indices {
				t.Errorf("indices %q, want %q", got, tt.indices)
			}
			shards := map[string]int{"pit-one": 1, "pit-two": 2, "pit-one,pit-two": 3}[tt.indices]
			got := readPIT(tt.id)
			if got.shards != shards {
				t.Errorf("%d shards, want %d", got.shards, shards)
			}
			filtered := strings.Contains(tt.name, "filter")
			if got.filtered != filtered || filtered != slices.Equal(got.aliases, []string{"pit-some"}) {
				t.Errorf("filtered %v by %q, want %v", got.filtered, got.aliases, filtered)
			}
		})
	}
}

// TestWhatIsNoPointInTimeHasNoIndices alters an id in ways after which nobody
// can tell what it was opened on.
func TestWhatIsNoPointInTimeHasNoIndices(t *testing.T) {
	id := pitIDs[0].id
	raw, err := base64.URLEncoding.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
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
			if got := indicesOf(id); got != nil {
				t.Errorf("indices %q, want none", got)
			}
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
	if got := indicesOf(base64.URLEncoding.EncodeToString(id)); len(got) != indices {
		t.Errorf("%d indices", len(got))
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it takes %v", took)
	}
}

// FuzzIndicesOfPIT reads ids that anybody may send: what comes out is a list of
// names that can stand in an index expression, each of which the id holds.
func FuzzIndicesOfPIT(f *testing.F) {
	for _, tt := range pitIDs {
		raw, err := base64.URLEncoding.DecodeString(tt.id)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		names := indicesOf(base64.URLEncoding.EncodeToString(raw))
		if p := readPIT(base64.URLEncoding.EncodeToString(raw)); p != nil && slices.ContainsFunc(p.aliases, func(a string) bool { return !isIndexName(a) }) {
			t.Errorf("no names of aliases: %q", p.aliases)
		}
		if unpadded := indicesOf(base64.RawURLEncoding.EncodeToString(raw)); !slices.Equal(names, unpadded) {
			t.Errorf("%q, without padding %q", names, unpadded)
		}
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("not sorted, or a name twice: %q", names)
		}
		for _, name := range names {
			if !bytes.Contains(raw, []byte(name)) || strings.ContainsAny(name, `,*/\?#"<>| `) || strings.IndexAny(name, "_-+") == 0 {
				t.Errorf("no name of an index, or not in the id: %q", name)
			}
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
		if got := r.Clauses[0]; got.Reason != want || (got.Form == "grouped") != (want == reason.Routing) {
			t.Errorf("%d shards: form %q, reason %q, want %q", shards, got.Form, got.Reason, want)
		}
	}
}
