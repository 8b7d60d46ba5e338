package expand

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/jsonspan"
)

const (
	// maxPITBytes is about how much memory the searches take that are remembered
	// for points in time: some thousands of them.
	maxPITBytes = 16 << 20
	// pitTime is how long they are remembered after their last use. Clients
	// renew a point in time with every page, mostly for some minutes.
	pitTime = 30 * time.Minute
	// About how many bytes the parts of a first page take without their texts,
	// the page with its key.
	pageBytes   = 304
	clauseBytes = 128
	targetBytes = 384
	termBytes   = 144
	entryBytes  = 24
)

// A pitKey names a search on a point in time by a hash of all that the choice
// of its terms depends on.
type pitKey struct {
	expander *Expander
	search   [sha256.Size]byte
	// feedback says that the first hits were known.
	feedback bool
}

// A firstPage is what became of a search when it was seen first on its point
// in time, for the pages that follow. It is not modified.
type firstPage struct {
	// failed says that the search went on as it came, because something failed.
	failed bool
	// clauseLimit is the cluster's limit as it was known, 0 where it was not.
	clauseLimit int
	// clauses are those that are no notes, in the order of their paths, without
	// what was read of them.
	clauses []form.Clause
}

// newPITs returns the memory that has for each search on a point in time the
// terms that were added to its first page, and the fields that patterns stood
// for: scores then stay what they were, whatever becomes of the matrix and of
// the statistics, so that search_after finds the place again. Where the first
// page failed, all pages are left alone.
func newPITs() *cache.Cache[pitKey] {
	return cache.New(cache.Options[pitKey]{
		Bytes: maxPITBytes,
		Cost:  func(_ pitKey, page any) int { return page.(*firstPage).cost() },
		Idle:  func(any) time.Duration { return pitTime },
	})
}

// askPage gives a page of a point in time what the first page got, and asks for
// any other search. It returns the reason to leave the page alone, as the first
// one was, or "".
func (a *asker) askPage(ctx context.Context) (reason.Reason, error) {
	a.start()
	if a.s.PIT.ID == "" {
		return "", a.ask(ctx)
	}
	wanted, second := a.e.options.Feedback.documents(a.s.req.Feedback) > 0, len(a.s.firstHits()) > 0
	key := pageKey(a.e, a.s.Search, wanted)
	key.feedback = wanted
	first, known, _ := cache.Peek[*firstPage](a.e.pits, key)
	if !known && !second {
		key.feedback = false
		first, known, _ = cache.Peek[*firstPage](a.e.pits, key)
	}
	a.later = known
	var err error
	if !known {
		if err = a.ask(ctx); err != nil && (second || errors.Is(ctx.Err(), context.Canceled)) {
			return "", err // nobody waits for this page, or it goes out without feedback
		}
		if a.s.req.Preview || len(a.s.req.Adjusted) > 0 { // terms of the first hits may be those of an adjusted search
			return "", err
		}
		page := &firstPage{failed: err != nil, clauseLimit: a.clauseLimit}
		if err == nil {
			page.clauses = remembered(a.clauses)
		}
		// Slices of a search may come at the same time: one of them is the first.
		first = cache.PutIfAbsent(a.e.pits, key, page, pitTime)
	}
	if first.failed {
		return reason.PITFirstPage, err
	}
	a.restore(first)
	return "", nil
}

// byPath returns those of n clauses that are no notes in the order of their
// paths: the members of an object may change their order between pages.
func byPath(n int, clause func(i int) *dsl.Clause) []int {
	var out []int
	for i := range n {
		if !clause(i).Note {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return strings.Compare(clause(a).Path, clause(b).Path) })
	return out
}

// pageKey names the search by what the choice of its terms depends on: not by
// what acts only on how a clause is written, such as its boost. With feedback
// each slice is a search by itself: they come at the same time, and the first
// pass of one may fail.
func pageKey(e *Expander, s *dsl.Search, feedback bool) pitKey {
	var raw []byte
	add := func(s string) { raw = append(binary.AppendUvarint(raw, uint64(len(s))), s...) }
	add(s.PIT.ID)
	add(string(s.RuntimeMappings.Of(s.Body)))
	if feedback {
		_ = jsonspan.Members(s.Body, func(name, value []byte) error {
			if string(name) == "slice" {
				add(string(value))
			}
			return nil
		})
	}
	for _, i := range byPath(len(s.Clauses), func(i int) *dsl.Clause { return &s.Clauses[i] }) {
		c := &s.Clauses[i]
		add(c.Path)
		add(c.Text)
		add(c.Analyzer)
		add(string(c.Reason))
		for _, flag := range []bool{c.Additive, c.SameMatches, c.TermCentric, c.Prefix} {
			raw = strconv.AppendBool(raw, flag)
		}
		raw = binary.AppendUvarint(raw, uint64(len(c.Fields)))
		for _, f := range c.Fields {
			add(f.Name)
			raw = binary.AppendUvarint(raw, math.Float64bits(f.Boost))
		}
	}
	return pitKey{expander: e, search: sha256.Sum256(raw)}
}

// remembered returns copies of clauses that hold on to nothing of the
// request, and not to the rows, which may be a matrix in memory.
func remembered(clauses []form.Clause) []form.Clause {
	out := make([]form.Clause, 0, len(clauses))
	for _, i := range byPath(len(clauses), func(i int) *dsl.Clause { return clauses[i].Parsed }) {
		c := clauses[i]
		c.Parsed, c.Fields = nil, slices.Clone(c.Fields)
		for k := range c.Fields {
			f := &c.Fields[k]
			f.Name, f.Added = strings.Clone(f.Name), slices.Clone(f.Added)
			if f.Analysis != nil {
				own := *f.Analysis
				own.Written = nil // an explanation can do without
				own.Terms, own.Positions = slices.Clone(own.Terms), slices.Clone(own.Positions)
				for n, term := range own.Terms {
					own.Terms[n] = strings.Clone(term)
				}
				f.Analysis = &own
				f.Terms = f.Terms.Own(f.Exact != nil) // the form hard looks for all neighbors of a term
			}
			for n := range f.Added {
				f.Added[n].Term = strings.Clone(f.Added[n].Term)
			}
			f.Feedback = slices.Clone(f.Feedback)
			for n := range f.Feedback {
				f.Feedback[n].Term = strings.Clone(f.Feedback[n].Term)
			}
		}
		out = append(out, c)
	}
	return out
}

// restore makes the search what it was on the first page, with the same scores.
func (a *asker) restore(p *firstPage) {
	a.clauseLimit = p.clauseLimit
	for n, i := range byPath(len(a.clauses), func(i int) *dsl.Clause { return a.clauses[i].Parsed }) {
		parsed, c := a.clauses[i].Parsed, p.clauses[n]
		additive, same := c.Additive, c.SameMatches
		c.Parsed, c.Traits = parsed, parsed.Traits
		c.Additive, c.SameMatches = additive, same
		c.Fields = slices.Clone(c.Fields) // the terms may be adjusted
		a.clauses[i] = c
	}
}

// cost returns about the bytes that a page takes.
func (p *firstPage) cost() int {
	n := pageBytes + clauseBytes*len(p.clauses)
	for _, f := range form.Fields(p.clauses) {
		n += targetBytes + len(f.Name)
		if f.Analysis != nil {
			n += entryBytes * f.Terms.Entries()
			for _, term := range f.Analysis.Terms {
				n += termBytes + len(term)
			}
			for i := range f.Terms.LeftOut {
				n += termBytes + len(f.Terms.LeftOut[i].Term)
			}
			for i := range f.Terms.Origins {
				n += termBytes + len(f.Terms.Origins[i].Term)
			}
		}
		for k := range f.Added {
			n += termBytes + len(f.Added[k].Term) + 8*len(f.Added[k].FieldIDFs)
		}
		for k := range f.Feedback {
			n += termBytes + len(f.Feedback[k].Term) + 8*len(f.Feedback[k].Hits)
		}
	}
	return n
}
