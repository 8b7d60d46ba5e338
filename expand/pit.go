package expand

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// maxPITBytes is about how much memory the searches take that are remembered
	// for points in time: some thousands of them.
	maxPITBytes = 16 << 20
	// pitTime is how long they are remembered after their last use. Clients
	// renew a point in time with every page, mostly for some minutes.
	pitTime = 30 * time.Minute
)

// A pitKey names a search on a point in time. The hash is of all that the
// choice of its terms depends on, and wide enough for no two to be the same.
type pitKey struct {
	expander *Expander
	search   [sha256.Size]byte
}

// A firstPage is what became of a search when it was seen first on its point in
// time, for the pages that follow. It is not modified once it is remembered.
type firstPage struct {
	// alone says that the search went on as it came, because something failed.
	alone bool
	// clauseLimit is the cluster's limit as it was known, 0 where it was not.
	clauseLimit int
	// clauses are those that are no notes, in the order of their paths.
	clauses []firstClause
}

// A firstClause is what the cluster and the matrices made of a clause.
type firstClause struct {
	reason Reason
	// single, plain and same are settled by the analyses, see [job.weigh].
	single, plain, same bool
	// exact and modeReason are settled for all clauses, see [job.hard].
	exact      bool
	modeReason Reason
	targets    []target
}

// pits remembers for each search on a point in time the terms that were added
// to its first page: scores then stay what they were, whatever becomes of the
// matrix and of the statistics meanwhile, so that search_after finds the place
// again. The fields that patterns stood for are remembered with them, and where
// the first page failed, that all pages are left alone.
type pits struct {
	cache *otter.Cache[pitKey, *firstPage]
}

func newPITs() *pits {
	return &pits{otter.Must(&otter.Options[pitKey, *firstPage]{
		MaximumWeight:    maxPITBytes,
		Weigher:          func(_ pitKey, p *firstPage) uint32 { return p.weight() },
		ExpiryCalculator: otter.ExpiryAccessing[pitKey, *firstPage](pitTime),
	})}
}

// usePIT takes the indices from the point in time of the request and reports
// whether it knows them. The engines allow no index expression beside it.
func (j *job) usePIT() bool {
	p := readPIT(j.scanner.scan.pit)
	if p == nil || j.req.Index != "" {
		return false
	}
	names := p.names()
	j.indices, j.pitShards = Indices{Expression: strings.Join(names, ",")}, p.shards
	return len(names) > 0
}

// collectPage collects for a search with a point in time what the first page
// got, and for any other what there is. It returns the reason to leave the page
// alone, as the first one was, or "".
func (j *job) collectPage() (Reason, error) {
	if j.scanner.scan.pit == "" {
		return "", j.collect()
	}
	key := j.pitKey()
	first, known := j.pits.cache.GetIfPresent(key)
	var err error
	if !known {
		if err = j.collect(); err != nil && errors.Is(j.ctx.Err(), context.Canceled) {
			return "", err // nobody waits for this page
		}
		if j.req.Preview {
			return "", err
		}
		// Slices of a search may come at the same time: one of them is the first.
		first, _ = j.pits.cache.SetIfAbsent(key, j.firstPage(err))
	}
	if first.alone {
		return ReasonPITFirstPage, err
	}
	j.restore(first)
	return "", nil
}

// pitClauses returns the clauses of the search in the order of their paths,
// which are different: the members of an object may change their order from one
// page to the next.
func (j *job) pitClauses() []*clause {
	var out []*clause
	scan := &j.scanner.scan
	for i := range scan.clauses {
		if c := &scan.clauses[i]; !c.note {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *clause) int { return strings.Compare(a.path, b.path) })
	return out
}

// pitKey names the search before anything is collected for it. What acts on a
// clause by way of its writing alone, such as a boost, has no part in it.
func (j *job) pitKey() pitKey {
	scan := &j.scanner.scan
	var raw []byte
	add := func(s string) { raw = append(binary.AppendUvarint(raw, uint64(len(s))), s...) }
	add(scan.pit)
	add(string(scan.runtimeMappings.of(j.body)))
	for _, c := range j.pitClauses() {
		add(c.path)
		add(c.text)
		add(c.analyzer)
		add(string(c.reason))
		for _, flag := range []bool{c.plain, c.same, c.termwise, c.prefix} {
			raw = append(raw, '0')
			if flag {
				raw[len(raw)-1] = '1'
			}
		}
		raw = binary.AppendUvarint(raw, uint64(len(c.targets)))
		for i := range c.targets {
			add(c.targets[i].field)
			raw = binary.AppendUvarint(raw, math.Float64bits(c.targets[i].boost))
		}
	}
	return pitKey{j.Expander, sha256.Sum256(raw)}
}

// firstPage returns what was collected for the search, or that it is left alone
// where that failed. It holds on to nothing of the request, and not to the
// rows: a matrix in memory would stay there for as long as the page is
// remembered.
func (j *job) firstPage(err error) *firstPage {
	p := &firstPage{alone: err != nil, clauseLimit: int(j.limits.of(LimitClauses, j.req.Index))}
	if p.alone {
		return p
	}
	for _, c := range j.pitClauses() {
		first := firstClause{
			reason: c.reason, single: c.single(), plain: c.plain, same: c.same,
			exact: c.exact, modeReason: c.modeReason,
			targets: make([]target, 0, len(c.targets)),
		}
		for i := range c.targets {
			t := &c.targets[i]
			kept := target{
				field: strings.Clone(t.field), boost: t.boost, matrix: t.matrix, reason: t.reason, resolved: t.resolved,
				analysis: t.analysis.clone(), stats: t.stats, exact: t.exact,
			}
			kept.sel.copy(&t.sel)
			if t.exact != nil { // it looks for all neighbors of a term
				kept.sel.entries = slices.Clone(t.sel.entries)
			}
			kept.sel.ownTerms()
			first.targets = append(first.targets, kept)
		}
		p.clauses = append(p.clauses, first)
	}
	return p
}

// restore makes the search what it was on the first page.
func (j *job) restore(p *firstPage) {
	j.first = p
	for i, c := range j.pitClauses() {
		first := &p.clauses[i]
		c.reason, c.plain, c.same = first.reason, first.plain, first.same
		c.exact, c.modeReason = first.exact, first.modeReason
		if first.single {
			c.every, c.minimum = false, nil
		}
		c.targets = slices.Clone(first.targets)
		for k := range c.targets {
			t := &c.targets[k]
			t.sel = selection{}
			j.lend(t)
			t.sel.copy(&first.targets[k].sel)
			t.sel.entries = append(t.sel.entries, first.targets[k].sel.entries...)
		}
	}
}

// clauseLimit returns how many clauses the indices are known to take in a
// query, 0 where that is not known. For the pages of a point in time it is what
// it was for the first of them: fewer terms would be other scores.
func (j *job) clauseLimit() int {
	if j.first != nil {
		return j.first.clauseLimit
	}
	return int(j.limits.of(LimitClauses, j.req.Index))
}

// clone returns a copy of a that shares no memory with it; nil for nil.
func (a *Analysis) clone() *Analysis {
	if a == nil {
		return nil
	}
	own := *a
	own.Terms, own.Positions = slices.Clone(a.Terms), slices.Clone(a.Positions)
	for k := range own.Terms {
		own.Terms[k] = strings.Clone(own.Terms[k])
	}
	return &own
}

// copy makes sel what was chosen in from, for reading alone: the rows and
// entries that led to the choice stay behind.
func (sel *selection) copy(from *selection) {
	sel.entries = sel.entries[:0]
	sel.candidates = append(sel.candidates[:0], from.candidates...)
	sel.origins = append(sel.origins[:0], from.origins...)
	for i := range sel.origins {
		sel.origins[i].row = simmatrix.Row{}
	}
}

// ownTerms copies the terms, which are parts of larger texts: of the rows and
// of what the cluster answered.
func (sel *selection) ownTerms() {
	for i := range sel.origins {
		sel.origins[i].term = strings.Clone(sel.origins[i].term)
	}
	for k := range sel.candidates {
		sel.candidates[k].term = strings.Clone(sel.candidates[k].term)
	}
}

// About how many bytes the parts of a first page take beside their texts, the
// page with its key and its place in the memory.
const (
	pageBytes   = 512
	clauseBytes = 128
	targetBytes = 384
	termBytes   = 144
	entryBytes  = 24
)

// weight returns about how many bytes p takes.
func (p *firstPage) weight() uint32 {
	n := pageBytes
	for i := range p.clauses {
		n += clauseBytes
		for k := range p.clauses[i].targets {
			n += p.clauses[i].targets[k].weight()
		}
	}
	return uint32(min(n, math.MaxUint32))
}

// weight returns about how many bytes t takes.
func (t *target) weight() int {
	n := targetBytes + len(t.field) + entryBytes*len(t.sel.entries)
	if t.analysis != nil {
		for _, term := range t.analysis.Terms {
			n += termBytes + len(term)
		}
	}
	for i := range t.sel.origins {
		n += termBytes + len(t.sel.origins[i].term)
	}
	for k := range t.sel.candidates {
		c := &t.sel.candidates[k]
		n += termBytes + len(c.term) + 8*len(c.fieldIDFs)
	}
	return n
}
