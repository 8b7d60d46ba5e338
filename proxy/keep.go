package proxy

import (
	"strings"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

// Bounds of what is kept of the clauses of a search, and of their texts.
// A client can search for one word of a megabyte, or in thousands of fields.
const (
	// maxExplainedText is longer than words and names of fields are.
	maxExplainedText = 256
	// maxExplainedClauses is that of a body: a clause with 30 added terms takes
	// about 4 KiB.
	maxExplainedClauses = 64 << 10
	// Memory of a clause, a term of its text and a term that was added, beside
	// their texts: the sizes of the structs, for a clause twice, since lists grow
	// by up to that.
	clauseBytes = 368
	termBytes   = 16
	addedBytes  = 64
	// cutMark stands where the rest of a text was.
	cutMark = "…"
)

// clipped returns the text that is kept of s.
func clipped(s string) string {
	if len(s) <= maxExplainedText {
		return s
	}
	return strings.ToValidUTF8(s[:maxExplainedText-len(cutMark)], "") + cutMark
}

// keptLength is the length of clipped(s), or a little more.
func keptLength(s string) int { return min(len(s), maxExplainedText) }

// clauseSize returns the memory that a clause takes once it is kept.
func clauseSize(c *expand.Clause) int {
	return clauseBytes + termBytes*(len(c.Terms)+len(c.Indices)) + addedBytes*len(c.Added) + textSize(c)
}

// textSize returns the length of the texts of a clause that is kept.
func textSize(c *expand.Clause) (n int) {
	for _, s := range [...]string{c.Path, c.Field, c.Matrix, c.Form, c.Phase, string(c.Reason)} {
		n += keptLength(s)
	}
	for _, s := range c.Terms {
		n += keptLength(s)
	}
	for _, s := range c.Indices {
		n += keptLength(s)
	}
	for i := range c.Added {
		n += keptLength(c.Added[i].Term) + keptLength(c.Added[i].From)
	}
	return n
}

// keepClauses returns copies of clauses that keep nothing else alive, their
// size, at most maxExplainedClauses, and how many of them are not here, or
// without their terms, because they would take more.
func keepClauses(clauses []expand.Clause) (kept []expand.Clause, size, cut int) {
	for i := range clauses {
		c := clauses[i]
		n := clauseSize(&c)
		if size+n > maxExplainedClauses {
			cut++
			c.Terms, c.Added = nil, nil
			n = clauseSize(&c)
		}
		if size+n > maxExplainedClauses {
			return ownTexts(kept), size, len(clauses) - len(kept) + cut - 1
		}
		size += n
		kept = append(kept, c)
	}
	return ownTexts(kept), size, cut
}

// ownTexts copies the texts of clauses into one piece of memory.
func ownTexts(clauses []expand.Clause) []expand.Clause {
	size := 0
	for i := range clauses {
		size += textSize(&clauses[i])
	}
	var all strings.Builder
	all.Grow(size)
	own := func(s string) string {
		at := all.Len()
		all.WriteString(clipped(s))
		return all.String()[at:]
	}
	for i := range clauses {
		c := &clauses[i]
		c.Path, c.Field, c.Matrix, c.Form, c.Phase = own(c.Path), own(c.Field), own(c.Matrix), own(c.Form), own(c.Phase)
		c.Reason = reason.Reason(own(string(c.Reason)))
		c.Terms = append([]string(nil), c.Terms...)
		for k := range c.Terms {
			c.Terms[k] = own(c.Terms[k])
		}
		c.Indices = append([]string(nil), c.Indices...)
		for k := range c.Indices {
			c.Indices[k] = own(c.Indices[k])
		}
		c.Added = append([]expand.Added(nil), c.Added...)
		for k := range c.Added {
			c.Added[k].Term, c.Added[k].From = own(c.Added[k].Term), own(c.Added[k].From)
		}
	}
	return clauses
}

// keepErrors returns what is kept of errors, of each of the searches of one
// request at most one.
func keepErrors(errs []error) []string {
	all := make([]string, len(errs))
	for i, err := range errs {
		all[i] = strings.Clone(clipped(err.Error()))
	}
	return all
}
