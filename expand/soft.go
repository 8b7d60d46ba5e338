package expand

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// How [ModeSoft] works: the first hits, as many as the window, are found by
// the linear form, as those that a rescore orders anew. They come back with
// their sequence numbers, and whoever passes the answer on orders them by
// what [Result.Reranks] says and cuts the client's page out of them. Every
// page in the window is cut out of the same hits. A page that begins in it
// and ends behind it has what is behind in the engine's order, and one that is
// wholly behind is searched for by the same query, so that all pages are one
// list. Searches that come in one request are ordered each for itself.

// phaseRerank is the phase of what finds the hits that are ordered anew.
const phaseRerank = "rerank"

// maxBehind is how many hits behind the window a page that begins in it may
// have: they all are held until the first of them are in order.
const maxBehind = 1000

// maxReranked is how many searches one request may hold whose hits are ordered
// anew. Each of them asks for a window of hits, and whoever orders them holds
// the answers to all at once, of up to 8 MiB together, and works on all of them
// at the same time.
const maxReranked = 16

// defaultSize is how many hits the engines return where nobody says.
const defaultSize = 10

// A page says which hits of a search come back, and with what. The spans are
// zero where the body says nothing.
type page struct {
	from, size, seqNo, version span
	// hides says that hits may come back without what they are ordered by.
	hides bool
}

// option takes a member of the body that is about the answer.
func (p *page) option(name []byte, at span, raw []byte) {
	switch string(name) {
	case "from":
		p.from = at
	case "seq_no_primary_term":
		p.seqNo = at
	case "version":
		p.version = at
	case "stored_fields": // with "_none_" there are no ids
		p.hides = p.hides || bytes.Contains(raw, []byte("_none_"))
	case "search_pipeline", "ext": // of OpenSearch, which may do anything
		p.hides = true
	}
}

// An edit is what takes the place of a piece of the body, which is empty
// where something is put in.
type edit struct {
	at   span
	text string
}

// isOne reports whether a boost changes nothing.
func isOne(raw []byte) bool {
	v, err := number(raw)
	return err == nil && v == 1
}

// planRerank decides whether the hits are ordered anew.
func (j *job) planRerank() {
	if j.options.Mode != ModeSoft {
		return
	}
	r, bar := j.rerankable()
	if bar == "" {
		j.rerank, j.findsOrdered, j.params.paged = r, true, true
		j.editPage()
		return
	}
	j.findsOrdered = bar == ReasonWindow
	scan := &j.scanner.scan
	for i := range scan.clauses {
		scan.clauses[i].modeReason = bar
	}
}

// reranks returns what [Result.Reranks] is for this one search.
func (j *job) reranks() []*Rerank {
	if j.rerank == nil {
		return nil
	}
	return []*Rerank{j.rerank}
}

// rerankable returns how the hits are ordered anew, or the reason why they
// cannot be.
func (j *job) rerankable() (*Rerank, Reason) {
	if bar := j.rerankBar(); bar != "" {
		return nil, bar
	}
	r, ok := j.page()
	if !ok {
		return nil, ReasonAnswer
	}
	var bar Reason
	if r.Fields, bar = j.rerankFields(); bar != "" {
		return nil, bar
	}
	// In this order: a page is behind the window only of what is ordered anew.
	if r.Window = j.window(); r.From >= r.Window || r.Size > r.Window+maxBehind-r.From {
		return nil, ReasonWindow
	}
	return r, ""
}

// rerankBar returns why the hits cannot be ordered anew, as far as the
// request says, "" where they can.
func (j *job) rerankBar() Reason {
	scan := &j.scanner.scan
	switch {
	case j.req.Endpoint != EndpointSearch:
		return ReasonEndpoint
	case j.req.Fixed != "":
		return j.req.Fixed
	case scan.hasPIT:
		return ReasonPointInTime
	case scan.bar != "":
		return scan.bar
	case scan.minScore:
		return ReasonMinScore
	case scan.noHits:
		return ReasonNoScores
	case scan.otherScores:
		return ReasonOtherScores
	case scan.page.hides || j.params.hides():
		return ReasonAnswer
	}
	return ""
}

// hides reports whether the parameters may take from the hits what they are
// ordered by.
func (p *parameters) hides() bool {
	return strings.Contains(p.storedFields, "_none_") || p.searchPipeline != "" || !keepsHits(p.filterPath)
}

// keepsHits reports whether the value of filter_path leaves all of the hits
// in the answer, for certain.
func keepsHits(filter string) bool {
	some, kept := false, false
	for pattern := range strings.SplitSeq(filter, ",") {
		pattern, excludes := strings.CutPrefix(strings.TrimSpace(pattern), "-")
		first, _, _ := strings.Cut(pattern, ".")
		switch {
		case excludes && (first == "hits" || strings.Contains(first, "*")):
			return false
		case excludes || pattern == "":
			continue
		}
		some = true
		switch pattern {
		case "*", "**", "hits", "hits.*", "hits.**", "hits.hits", "hits.hits.*", "hits.hits.**":
			kept = true
		}
	}
	return kept || !some
}

// page returns what the client asks for, false where akin does not know it for
// sure: the engines refuse some values, and take others for something else.
func (j *job) page() (r *Rerank, ok bool) {
	p, body := &j.params, &j.scanner.scan.page
	if p.oddPage {
		return nil, false
	}
	r = new(Rerank)
	for _, m := range []struct {
		parameter string
		at        span
		otherwise string
		into      *int
	}{
		{p.from, body.from, "0", &r.From},
		{p.size, body.size, strconv.Itoa(defaultSize), &r.Size},
	} {
		text, plain := said(m.parameter, m.at, j.body, m.otherwise)
		n, err := strconv.Atoi(text)
		if !plain || !isCount(text) || err != nil {
			return nil, false
		}
		*m.into = n
	}
	for _, m := range []struct {
		parameter string
		at        span
		into      *bool
	}{
		{p.seqNo, body.seqNo, &r.KeepSeqNo},
		{p.version, body.version, &r.KeepVersion},
	} {
		text, plain := said(m.parameter, m.at, j.body, isFalse)
		if !plain || !isBoolean(text) {
			return nil, false
		}
		*m.into = text == isTrue
	}
	return r, r.Size > 0
}

// said returns what a parameter, which goes first, or the member of the body
// says, without quotes, or else otherwise. It reports false for a string that
// is not closed by one quote.
func said(parameter string, at span, body []byte, otherwise string) (text string, plain bool) {
	switch {
	case parameter != "":
		return parameter, true
	case at.isZero():
		return otherwise, true
	}
	text = string(at.of(body))
	bare, opened := strings.CutPrefix(text, `"`)
	bare, closed := strings.CutSuffix(bare, `"`)
	return bare, opened == closed
}

// The values of a switch. The engines take them in quotes, too.
const (
	isTrue  = "true"
	isFalse = "false"
)

func isBoolean(text string) bool { return text == isTrue || text == isFalse }

// isCount reports whether text is a number of digits alone.
func isCount(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// window returns how many hits are ordered anew: not more than the indices let
// be asked for.
func (j *job) window() int {
	window := j.options.RerankWindow
	if limit := j.limits.of(LimitResults, j.req.Index); limit > 0 && limit < int64(window) {
		return int(limit)
	}
	return window
}

// rerankFields returns what the hits are compared with, or the reason why
// they cannot be. A field that several clauses look into has the sum of
// their terms: it is one space, however many texts are looked for there.
func (j *job) rerankFields() ([]RerankField, Reason) {
	var out []RerankField
	scan := &j.scanner.scan
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.note {
			continue
		}
		if !compared(c.reason) {
			return nil, ReasonOtherScores
		}
		for k := range c.targets {
			t := &c.targets[k]
			switch {
			case !compared(t.reason):
				return nil, ReasonOtherScores
			case t.analysis == nil || c.boost*t.boost == 0: // no term, or none that counts
				continue
			}
			if t.weights == nil && t.rows.Docs() <= 0 {
				return nil, ReasonNoWeights
			}
			at := slices.IndexFunc(out, func(f RerankField) bool { return f.Field == t.field })
			if at < 0 {
				at = len(out)
				out = append(out, RerankField{Field: t.field, Similarities: t.rows, Weights: t.weights})
			}
			out[at].add(t, c.boost*t.boost)
		}
	}
	if len(out) == 0 {
		return nil, ReasonNoTerms
	}
	return out, ""
}

// compared reports whether a text that was left alone for the reason given
// is compared with the hits all the same.
func compared(reason Reason) bool {
	return reason == "" || reason == ReasonNoNeighbors || reason == ReasonTermLimit || reason == ReasonNoTerms
}

// add adds the terms of a target, which count boost times.
func (f *RerankField) add(t *target, boost float64) {
	if boost > f.Boost { // b is the largest, and the others are shares of it
		for k := range f.Freqs {
			f.Freqs[k] *= f.Boost / boost
		}
		f.Boost = boost
	}
	for _, o := range t.sel.origins {
		at := slices.Index(f.Terms, o.term)
		if at < 0 {
			at = len(f.Terms)
			f.Terms, f.Freqs = append(f.Terms, o.term), append(f.Freqs, 0)
		}
		f.Freqs[at] += o.x * boost / f.Boost
	}
}

// editPage has the body ask for the whole window, and for the page, with
// sequence numbers and versions. What it does not say yet goes before its first
// member; it has one.
func (j *job) editPage() {
	body := &j.scanner.scan.page
	start := bytes.IndexByte(j.body, '{') + 1
	added := edit{at: span{start, start}}
	for _, m := range []struct {
		name, value string
		at          span
	}{
		{"from", "0", body.from},
		{"size", strconv.Itoa(j.rerank.Asked()), body.size},
		{"seq_no_primary_term", isTrue, body.seqNo},
		{"version", isTrue, body.version},
	} {
		if m.at.isZero() {
			added.text += `"` + m.name + `":` + m.value + `,`
		} else {
			j.edits = append(j.edits, edit{m.at, m.value})
		}
	}
	j.edits = append(j.edits, added)
	slices.SortFunc(j.edits, func(a, b edit) int { return a.at.start - b.at.start })
}

// copyEdited copies the bytes of the body from start to end, with what is
// changed of the page in them.
func (j *job) copyEdited(w *writer, start, end int) {
	for _, e := range j.edits {
		if (span{start, end}).holds(e.at) {
			w.out = append(append(w.out, j.body[start:e.at.start]...), e.text...)
			start = e.at.end
		}
	}
	w.out = append(w.out, j.body[start:end]...)
}

// findCandidates keeps of the terms of a clause those that a search looks
// for whose hits are ordered anew.
func (c *clause) findCandidates() {
	for k := range c.targets {
		t := &c.targets[k]
		t.sel.candidates = t.sel.candidates[:min(t.found, len(t.sel.candidates))]
	}
}
