package expand

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// maxPITs is the number of targets, fields with a text, that are remembered
	// for points in time.
	maxPITs = 4096
	// pitTime is how long they are remembered after their last use. Clients
	// renew a point in time with every page, mostly for some minutes.
	pitTime = 30 * time.Minute
)

// A pitKey names a target of the searches on one point in time.
type pitKey struct {
	expander              *Expander
	pit                   string
	field, analyzer, text string
	prefix, termwise      bool
}

// A pitTarget is what the first page of a point in time made of a target, for
// the pages that follow.
type pitTarget struct {
	reason   Reason
	analysis *Analysis
	rows     Rows
	stats    Statistics
	sel      selection
}

// pits remembers for each point in time the terms that were added to its first
// page: scores then stay what they were, whatever becomes of the matrix and of
// the statistics meanwhile, so that search_after finds the place again.
type pits struct {
	cache *otter.Cache[pitKey, *pitTarget]
}

func newPITs() *pits {
	return &pits{otter.Must(&otter.Options[pitKey, *pitTarget]{
		MaximumSize:      maxPITs,
		ExpiryCalculator: otter.ExpiryAccessing[pitKey, *pitTarget](pitTime),
	})}
}

// usePIT takes the indices from the point in time of the request and reports
// whether it knows them. The engines allow no index expression beside it.
func (j *job) usePIT() bool {
	names := indicesOfPIT(j.scanner.scan.pit)
	if names == nil || j.req.Index != "" {
		return false
	}
	j.indices = Indices{Expression: strings.Join(names, ",")}
	return true
}

func (j *job) pitKey(t clauseTarget) pitKey {
	c := t.clause
	return pitKey{j.Expander, j.scanner.scan.pit, t.field, c.analyzer, c.text, c.prefix, c.termwise}
}

// recall sets all targets as they were on the first page of the request's point
// in time, and reports whether there was one.
func (j *job) recall(targets []clauseTarget) bool {
	if j.scanner.scan.pit == "" || len(targets) == 0 {
		return false
	}
	known := make([]*pitTarget, len(targets))
	for i, t := range targets {
		var ok bool
		if known[i], ok = j.pits.cache.GetIfPresent(j.pitKey(t)); !ok {
			return false
		}
	}
	for i, t := range targets {
		t.analysis, t.rows, t.stats = known[i].analysis, known[i].rows, known[i].stats
		t.sel.copy(&known[i].sel)
		t.reason = known[i].reason
	}
	j.weigh()
	return true
}

// remember keeps the targets for the next page of the request's point in time.
func (j *job) remember(targets []clauseTarget) {
	if j.scanner.scan.pit == "" {
		return
	}
	for _, t := range targets {
		p := &pitTarget{reason: t.reason, analysis: t.analysis, rows: t.rows, stats: t.stats}
		p.sel.copy(&t.sel)
		key := j.pitKey(t)
		key.pit, key.field = strings.Clone(key.pit), strings.Clone(key.field)
		key.analyzer, key.text = strings.Clone(key.analyzer), strings.Clone(key.text)
		j.pits.cache.SetIfAbsent(key, p)
	}
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

// indicesOfPIT returns the indices that a point in time was opened on, sorted;
// nil where its id is not understood or names another cluster.
//
// An id is the base64 of the engine's SearchContextId: the version, a map from
// shards (index name and id, number) to contexts on nodes, and a map of alias
// filters. The engines' versions differ in which fields of a context may be
// missing, so each possibility is tried and what can be read in two ways is
// not believed. Seen in Elasticsearch 8 and 9, OpenSearch 2 and 3.
func indicesOfPIT(id string) []string {
	raw, err := base64.URLEncoding.DecodeString(id)
	if err != nil {
		raw, err = base64.RawURLEncoding.DecodeString(id)
	}
	if err != nil {
		return nil
	}
	var found []string
	for form := range pitForm(1 << 4) {
		r := pitReader{rest: raw, form: form}
		names := r.indices()
		switch {
		case r.failed || len(names) == 0:
		case found == nil:
			found = names
		case !slices.Equal(found, names):
			return nil
		}
	}
	return found
}

// A pitForm is a set of the parts by which the engines' versions differ.
type pitForm uint8

const (
	pitPartial     pitForm = 1 << iota // a flag behind the version
	pitMayLackNode                     // a flag before the node
	pitMayLackID                       // a flag before the id of the context
	pitHasSearcher                     // an optional searcher behind it
)

// A pitReader reads the engines' stream format. After a failure it returns
// zeros.
type pitReader struct {
	rest   []byte
	form   pitForm
	failed bool
}

// indices reads the version and the map of shards.
func (r *pitReader) indices() []string {
	r.number()
	if r.form&pitPartial != 0 {
		r.flag()
	}
	shards := r.number()
	var names []string
	for i := uint64(0); i < shards && !r.failed; i++ {
		name := r.string()
		if id := r.string(); r.failed || len(id) != 22 || !isIndexName(name) {
			r.failed = true
			return nil
		}
		r.number()
		r.context()
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// context reads the context of a shard: node, cluster, number and session.
func (r *pitReader) context() {
	if r.form&pitMayLackNode == 0 || r.flag() {
		r.string()
	}
	if r.flag() { // another cluster
		r.failed = true
	}
	if r.form&pitMayLackID == 0 || r.flag() {
		r.skip(8)
		r.string()
		if r.form&pitHasSearcher != 0 && r.flag() {
			r.string()
		}
	}
}

// number reads a number in groups of seven bits, the lowest first.
func (r *pitReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.failed, size = true, 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *pitReader) flag() bool {
	if len(r.rest) == 0 || r.rest[0] > 1 {
		r.failed = true
		return false
	}
	set := r.rest[0] == 1
	r.rest = r.rest[1:]
	return set
}

// string reads a text of ASCII characters, which the names in question are. All
// others make the lengths differ, and the reading fail.
func (r *pitReader) string() string {
	n := r.number()
	if r.failed || n > uint64(len(r.rest)) {
		r.failed = true
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *pitReader) skip(n int) {
	if n > len(r.rest) {
		r.failed, n = true, 0
	}
	r.rest = r.rest[n:]
}

// isIndexName reports whether s can be the name of an index, of ASCII alone.
func isIndexName(s string) bool {
	if s == "" || len(s) > 255 || s[0] == '-' || s[0] == '_' || s[0] == '+' {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || strings.IndexByte(`\/*?"<>|,#:`, s[i]) >= 0 || s[i] >= 'A' && s[i] <= 'Z' {
			return false
		}
	}
	return true
}
