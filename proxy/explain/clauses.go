package explain

import (
	"slices"
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

// Bounds of what is kept of clauses: a client can search for a word of a
// megabyte, or in thousands of fields.
const (
	// maxText is longer than words and names of fields are.
	maxText = 256
	// maxClauseBytes: a clause with 30 added terms takes about 4 KiB.
	maxClauseBytes = 64 << 10
	// Memory of a clause, a term of its text and an added term, without the texts:
	// the sizes of the structs, for a clause twice, since lists grow by up to that.
	clauseBytes = 368
	termBytes   = 16
	addedBytes  = 64
	// cutMark stands where the rest of a text was.
	cutMark = "…"
)

// clipped returns the text that is kept of s.
func clipped(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-len(cutMark)], "") + cutMark
}

// eachText replaces each text of a clause by what f makes of it.
func eachText(c *expand.Clause, f func(s string) string) {
	c.Path, c.Field, c.Matrix, c.Form, c.Phase = f(c.Path), f(c.Field), f(c.Matrix), f(c.Form), f(c.Phase)
	c.Reason = reason.Reason(f(string(c.Reason)))
	for k := range c.Terms {
		c.Terms[k] = f(c.Terms[k])
	}
	for k := range c.Indices {
		c.Indices[k] = f(c.Indices[k])
	}
	for k := range c.Added {
		c.Added[k].Term, c.Added[k].From = f(c.Added[k].Term), f(c.Added[k].From)
	}
}

// keepClause returns a copy of a clause with lists of its own, its size and
// that of its texts. Lists that take more than all clauses may are not copied.
func keepClause(c expand.Clause) (kept expand.Clause, size, texts int) {
	size = clauseBytes + termBytes*(len(c.Terms)+len(c.Indices)) + addedBytes*len(c.Added)
	if size > maxClauseBytes {
		return c, size, 0
	}
	c.Terms, c.Indices, c.Added = slices.Clone(c.Terms), slices.Clone(c.Indices), slices.Clone(c.Added)
	eachText(&c, func(s string) string {
		texts += min(len(s), maxText)
		return s
	})
	return c, size + texts, texts
}

// keepClauses returns copies of clauses that keep nothing else alive, their
// size, at most maxClauseBytes, and how many are not there, or without terms.
func keepClauses(clauses []expand.Clause) (kept []expand.Clause, size, cut int) {
	texts := 0
	for i := range clauses {
		c, n, t := keepClause(clauses[i])
		if size+n > maxClauseBytes {
			cut++
			c.Terms, c.Added = nil, nil
			c, n, t = keepClause(c)
		}
		if size+n > maxClauseBytes {
			cut += len(clauses) - i - 1
			break
		}
		size += n
		texts += t
		kept = append(kept, c)
	}
	var all strings.Builder // one piece of memory for all texts
	all.Grow(texts)
	for i := range kept {
		eachText(&kept[i], func(s string) string {
			at := all.Len()
			all.WriteString(clipped(s))
			return all.String()[at:]
		})
	}
	return kept, size, cut
}
