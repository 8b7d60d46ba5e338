package form

import (
	"slices"

	"github.com/akin-search/akin/expand/terms"
)

// hostedBy calls visit for each alternative that stands for origin k, unless it
// has the origin itself: then each of its occurrences is already one of that.
func (f *Field) hostedBy(k int, visit func(a *terms.Alternative)) {
	if f.Reason != "" {
		return
	}
	for n := range f.Alternatives {
		if a := &f.Alternatives[n]; slices.Contains(a.Hosts, k) && !slices.Contains(a.Terms, f.Terms.Origins[k].Term) {
			visit(a)
		}
	}
}

// A hosted is the alternatives that stand for the same words.
type hosted struct {
	hosts []*terms.Origin // without those that are words of the alternatives
	by    []*terms.Alternative
}

// hosted groups the alternatives of a field.
func (f *Field) hosted() (groups []hosted) {
	for n := range f.Alternatives {
		a := &f.Alternatives[n]
		var hosts []*terms.Origin
		for _, k := range a.Hosts {
			if o := &f.Terms.Origins[k]; !slices.Contains(a.Terms, o.Term) {
				hosts = append(hosts, o)
			}
		}
		at := slices.IndexFunc(groups, func(g hosted) bool { return slices.Equal(g.hosts, hosts) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, hosted{hosts: hosts})
		}
		groups[at].by = append(groups[at].by, a)
	}
	return groups
}

// isHost reports whether an alternative stands for origin k.
func (f *Field) isHost(k int) bool {
	host := false
	f.hostedBy(k, func(*terms.Alternative) { host = true })
	return host
}

// weight returns the factor of a term or phrase in the engine's score: its idf,
// or 1 with the boolean similarity.
func (f *Field) weight(idf float64) float64 {
	if f.Weighting() == terms.One {
		return 1
	}
	return idf
}
