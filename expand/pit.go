package expand

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/jsonspan"
)

// How points in time work: what was written for the first page is written for
// all that follow, whatever becomes of the matrix and of the statistics
// meanwhile. Their scores then stay what they were, so that search_after finds
// the place again. Where the first page failed and went out as it came, all
// pages are left alone.

const (
	// maxPITBytes is about how much memory the searches take that are remembered
	// for points in time: some thousands of them.
	maxPITBytes = 16 << 20
	// pitTime is how long they are remembered after their last use. Clients
	// renew a point in time with every page, mostly for some minutes.
	pitTime = 30 * time.Minute
)

// A pitKey names a search on a point in time by a hash of the members of its
// body that are rewritten. Pages differ in others, such as search_after.
type pitKey struct {
	expander any
	search   [sha256.Size]byte
	// feedback says that the first hits were known.
	feedback bool
}

// A firstPage is what became of a search when it was seen first on its point
// in time. It is not modified, and holds on to nothing of that request.
type firstPage struct {
	// failed says that the search went on as it came, because something failed.
	failed bool
	// members are the rewritten ones of the body by name, nil where nothing was
	// rewritten, and reason is why.
	members map[string]string
	reason  reason.Reason
	// needsDFS says that the statistics of all shards count, and filtered that the
	// client searches an alias that shows it only some documents.
	needsDFS, filtered bool
	clauseCount        int
	// clauses is the JSON of the explanations.
	clauses []byte
}

// newPITs returns the memory of first pages.
func newPITs() *cache.Cache[pitKey] {
	return cache.New(cache.Options[pitKey]{
		Bytes: maxPITBytes,
		Cost: func(_ pitKey, page any) int {
			p := page.(*firstPage)
			n := len(p.clauses)
			for name, text := range p.members {
				n += len(name) + len(text)
			}
			return n
		},
		Idle: func(any) time.Duration { return pitTime },
	})
}

// A member is one of the top of a body.
type member struct {
	name string
	at   jsonspan.Span
}

// membersOf returns the members of a body, which was read before.
func membersOf(body []byte) (members []member) {
	var r jsonspan.Reader
	r.Reset(body)
	_ = r.Object(func(name []byte) error {
		m := member{name: string(name)}
		var err error
		m.at, err = r.Value()
		members = append(members, m)
		return err
	})
	return members
}

// pageKey names a search by what its rewriting depends on. Spaces and the order
// of members do not count. With feedback each slice is a search by itself: they
// come at the same time, and the first pass of one may fail.
func pageKey(expander any, s *search, feedback bool) pitKey {
	rewritten := func(at jsonspan.Span) bool {
		for i := range s.Clauses {
			if at.Holds(s.Clauses[i].At) && !s.Clauses[i].Note {
				return true
			}
		}
		for i := range s.Highlights {
			if h := s.Highlights[i].At; at.Start < h && h <= at.End {
				return true
			}
		}
		return false
	}
	members := membersOf(s.Body)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	var raw []byte
	add := func(text []byte) { raw = append(binary.AppendUvarint(raw, uint64(len(text))), text...) }
	add([]byte(s.PIT.ID))
	for _, m := range members {
		if m.name == "runtime_mappings" || m.name == "slice" && feedback || rewritten(m.at) {
			value := jsontext.Value(slices.Clone(m.at.Of(s.Body)))
			_ = value.Canonicalize() // else it counts as it is written
			add([]byte(m.name))
			add(value)
		}
	}
	for _, flag := range []bool{s.unscored, s.Scores.Min, s.OwnRescore, s.named} {
		if flag {
			raw = append(raw, '1')
		} else {
			raw = append(raw, '0')
		}
	}
	return pitKey{expander: expander, search: sha256.Sum256(raw), feedback: feedback}
}

// newPage returns what is remembered of a search and what became of it.
func newPage(s *search, res *Result, needsDFS, filtered bool) *firstPage {
	p := &firstPage{reason: res.Reason, needsDFS: needsDFS, filtered: filtered, clauseCount: res.ClauseCount}
	p.clauses, _ = json.Marshal(res.Clauses) // numbers, strings and lists of them
	if !res.Rewritten {
		return p
	}
	p.members = map[string]string{}
	for _, m := range membersOf(res.Body) { // those of the search, rewritten or not
		p.members[m.name] = string(m.at.Of(res.Body))
	}
	for _, m := range membersOf(s.Body) {
		if p.members[m.name] == string(m.at.Of(s.Body)) {
			delete(p.members, m.name)
		}
	}
	return p
}

// result returns what becomes of a page.
func (p *firstPage) result(s *search) *Result {
	res := &Result{Rewritten: p.members != nil, Parts: []Part{{Index: s.req.Index}}, Reason: p.reason, ClauseCount: p.clauseCount}
	_ = json.Unmarshal(p.clauses, &res.Clauses)
	if !res.Rewritten {
		return res
	}
	var edits []jsonspan.Edit
	for _, m := range membersOf(s.Body) {
		if text, ok := p.members[m.name]; ok {
			edits = append(edits, jsonspan.Edit{At: m.at, Text: text})
		}
	}
	res.Body = jsonspan.AppendEdited(nil, s.Body, 0, len(s.Body), edits)
	res.RawQuery = s.rawQuery(p.needsDFS, false)
	return res
}
