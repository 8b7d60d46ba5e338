package esclient

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/esclient/mapping"
)

// A key is a question to the cluster. All questions have keys of one type, so
// that the compiler makes the cache once.
type key struct {
	// generation makes the key unreachable when its indices are forgotten.
	generation uint32
	Indices
	// field is a field or a pattern of fields; for the terms of a text, the
	// index that analyzes it; for a limit, the setting.
	field string
	// analyzer is as the caller names it, and text is what is analyzed, or what
	// else the question is about.
	analyzer, text string
}

// clone returns a key that does not keep the memory of the request that it
// came in.
func (k key) clone() key {
	k.Expression, k.Options = strings.Clone(k.Expression), strings.Clone(k.Options)
	k.field, k.analyzer, k.text = strings.Clone(k.field), strings.Clone(k.analyzer), strings.Clone(k.text)
	return k
}

// ofIndices returns the key of what is asked about the indices only.
func (k key) ofIndices() key { return key{generation: k.generation, Indices: k.Indices} }

// ofField returns the key of the field of an analysis.
func (k key) ofField() key {
	k.analyzer, k.text = "", ""
	return k
}

// ofText returns the key of the terms of a text in a field of s.
func (k key) ofText(s *mapping.Schema, analyzer string) key {
	k.field, k.analyzer = s.Targets[0].Index, analyzer
	return k
}

// String implements [memory.Key].
func (k key) String() string {
	return fmt.Sprintf("%d %q %q %q %q %q", k.generation, k.Expression, k.Options, k.field, k.analyzer, k.text)
}

// Bytes is what a [memory.Memo] weighs the key by.
func (k key) Bytes() int {
	return len(k.Expression) + len(k.Options) + len(k.field) + len(k.analyzer) + len(k.text)
}

// Owner implements [memory.Key]: loads count for the index expression.
func (k key) Owner() string { return "index " + k.Expression }

const (
	// slots is the number of counters that [Cached.Forget] has. Index expressions
	// that share one are forgotten together.
	slots = 256
	// forgetPause is the time between two times that an expression is forgotten.
	forgetPause = time.Second
)

// generations count how often index expressions were forgotten. The counts are
// parts of the keys.
type generations struct {
	seed  maphash.Seed
	start time.Time
	count [slots]atomic.Uint32
	// forgot is when each was last raised, in nanoseconds since start.
	forgot [slots]atomic.Int64
}

func (g *generations) slot(index string) uint64 { return maphash.String(g.seed, index) % slots }

// forget raises the count of an expression, at most once a second.
func (g *generations) forget(index string) bool {
	slot := g.slot(index)
	now, last := int64(time.Since(g.start))+1, g.forgot[slot].Load() // 0 is never
	if last != 0 && now-last < int64(forgetPause) || !g.forgot[slot].CompareAndSwap(last, now) {
		return false
	}
	g.count[slot].Add(1)
	return true
}
