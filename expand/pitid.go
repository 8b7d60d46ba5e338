package expand

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// A pointInTime is the content of an id: the sorted indices that it was opened
// on, and how many shards they have.
type pointInTime struct {
	indices []string
	shards  int
	// filtered says that an alias has a filter. aliases are the aliases of the
	// first index with one.
	filtered bool
	aliases  []string
}

// readPIT decodes the id of a point in time. It returns nil if it does not
// understand the id or the id names another cluster.
//
// An id is the base64 of the engine's SearchContextId: the version, a map from
// shards (index name and id, number) to contexts on nodes, and a map of alias
// filters. Engine versions differ in which fields of a context are optional, so
// readPIT tries every possibility and rejects ids that can be read in two ways.
// The formats come from Elasticsearch 8 and 9 and OpenSearch 2 and 3.
func readPIT(id string) (found *pointInTime) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(id, "="))
	if err != nil {
		return nil
	}
	for form := range pitForm(1 << 4) {
		r := pitReader{rest: raw, form: form}
		p := r.pointInTime()
		switch {
		case r.failed || len(p.indices) == 0:
		case found == nil:
			found = p
		case !slices.Equal(found.indices, p.indices) || !slices.Equal(found.aliases, p.aliases) || found.filtered != p.filtered:
			return nil
		}
	}
	return found
}

// names returns the names to search by. These are the aliases if one has a
// filter, because their matrix may differ; they are known only if there is one
// index.
func (p *pointInTime) names() []string {
	switch {
	case !p.filtered:
		return p.indices
	case len(p.indices) == 1:
		return p.aliases
	default:
		return nil
	}
}

// A pitForm is a set of format differences between engine versions.
type pitForm uint8

const (
	pitPartial     pitForm = 1 << iota // a flag after the version
	pitMayLackNode                     // a flag before the node
	pitMayLackID                       // a flag before the id of the context
	pitHasSearcher                     // an optional searcher after it
)

// A pitReader reads the engines' stream format. After an error it returns zero
// values.
type pitReader struct {
	rest   []byte
	form   pitForm
	failed bool
}

func (r *pitReader) pointInTime() *pointInTime {
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
		names = append(names, name)
	}
	slices.Sort(names) // sort once: a client can name tens of thousands
	p := &pointInTime{indices: slices.Compact(names), shards: int(min(shards, math.MaxInt32))}
	r.aliases(p)
	return p
}

// aliases reads the map from index ids to aliases and their filters. It stops
// at the first filter, which is a query.
func (r *pitReader) aliases(p *pointInTime) {
	for n := r.number(); n > 0 && !r.failed && !p.filtered; n-- {
		r.string() // the id
		var names []string
		for k := r.number(); k > 0 && !r.failed; k-- {
			name := r.string()
			r.failed = r.failed || !isIndexName(name)
			names = append(names, name)
		}
		if p.filtered = r.flag(); p.filtered { // the filter is that of an alias
			p.aliases, r.failed = names, r.failed || len(names) == 0
		}
	}
	r.failed = r.failed || !p.filtered && len(r.rest) > 0 // bytes are left: the form is wrong
}

// context reads the context of a shard: node, cluster, number and session.
func (r *pitReader) context() {
	if r.form&pitMayLackNode == 0 || r.flag() {
		r.string()
	}
	if r.flag() { // the context is on another cluster
		r.failed = true
	}
	if r.form&pitMayLackID == 0 || r.flag() {
		r.take(8)
		r.string()
		if r.form&pitHasSearcher != 0 && r.flag() {
			r.string()
		}
	}
}

// number reads a variable-length integer: seven bits a byte, the lowest first.
func (r *pitReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.failed, size = true, 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *pitReader) flag() bool {
	b := r.take(1)
	r.failed = r.failed || b[0] > 1
	return !r.failed && b[0] == 1
}

// string reads an ASCII string, as all the names here are. On others the
// lengths do not match, and reading fails.
func (r *pitReader) string() string { return r.take(r.number()) }

func (r *pitReader) take(n uint64) string {
	if r.failed = r.failed || n > uint64(len(r.rest)); r.failed {
		return "\x00"
	}
	taken := string(r.rest[:n])
	r.rest = r.rest[n:]
	return taken
}

// isIndexName reports whether s is a valid ASCII index name.
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
