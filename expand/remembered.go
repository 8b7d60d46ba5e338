package expand

import (
	"errors"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
)

// How [ModeAuto] works: akin can put hits in order by the soft cosine only if it
// remembers what their documents hold. Whether it does is known when they have
// been found, so what the same search or the last searches in the same
// fields of the same indices found decides: if nearly all of the hits were
// remembered, a search is written as in [ModeSoft], and hits that are not
// remembered keep their places. Otherwise it is written as in [ModeBM25], and the
// caller may find out, after the client has its answer, what [Part.FollowUp]
// would have needed.

// A HitsKey names searches by what hits they find.
type HitsKey struct {
	// Kind has the index expression and the fields, Search is a hash of these and
	// the query.
	Kind   string
	Search uint64
}

// A HitMemory knows how much of the hits of the last searches was remembered.
type HitMemory interface {
	// Remembers reports whether nearly all hits of a search were remembered the
	// last time, or those of the last searches of its kind. It is fast and makes no
	// call.
	Remembers(key HitsKey) bool
}

// ErrNotRemembered says that too few hits are remembered to put them in order.
var ErrNotRemembered = errors.New("too few hits are remembered")

// settleMode chooses between the modes soft and bm25 in [ModeAuto].
func (a *expansion) settleMode() {
	if a.s.mode != ModeAuto {
		return
	}
	a.s.mode = ModeBM25
	warm, waits := a.s.req.Warm, a.s.profile.Waits
	if a.hits == nil && !warm && !waits || !a.reorders() {
		return
	}
	if waits {
		a.s.mode, a.onlyIfAdded = ModeSoft, true
		return
	}
	key := a.hitsKey()
	if warm || a.hits.Remembers(key) {
		a.s.mode, a.onlyIfAdded = ModeSoft, true
		a.key = key
		return
	}
	again := *a.s.req
	again.Warm = true
	a.followUp = &again
}

// reorders reports whether the soft cosine may order the hits of a search with
// what the mode bm25 adds.
func (a *expansion) reorders() bool {
	if a.s.noRerank() != "" || a.s.Hybrid || a.s.nested || len(a.open) == 0 {
		return false
	}
	return !slices.ContainsFunc(a.clauses, func(c form.Clause) bool {
		// Parts of a query string stand beside it. Neither has the words of a
		// more_like_this alone. The hits of a search for all words stay as they are.
		return !c.Parsed.Whole.IsZero() || c.Parsed.Like != nil || c.Parsed.Role == dsl.InSegments || a.s.asTyped(&c)
	})
}

func (a *expansion) hitsKey() HitsKey {
	fields := make([]string, 0, len(a.open))
	for _, t := range a.open {
		fields = append(fields, t.Name)
	}
	slices.Sort(fields)
	kind := a.s.req.Index + "\n" + strings.Join(slices.Compact(fields), "\n")
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(kind)) // it never fails
	_, _ = hash.Write(a.s.Query.Of(a.s.Body))
	return HitsKey{kind, hash.Sum64()}
}
