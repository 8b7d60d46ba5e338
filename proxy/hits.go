package proxy

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
)

// A Hit names one state of a document, as the answer to a search tells of
// it.
type Hit struct {
	// Index is the concrete index, ID the document's, and Routing what it was
	// written with, "" for none.
	Index, ID, Routing string
	// SeqNo and PrimaryTerm name the write that made the state, and Version
	// counts those of the document.
	SeqNo, PrimaryTerm, Version int64
}

// A piece is the range [start, end) of bytes of an answer.
type piece struct{ start, end int }

func (p piece) of(answer []byte) []byte { return answer[p.start:p.end] }

func (p piece) isZero() bool { return p.end == 0 }

// A hitPage is where the parts of an answer stand that change when its hits
// are ordered anew and cut.
type hitPage struct {
	// r says which of the hits the client asked for, and with what.
	r *expand.Rerank
	// maxScore is the value of hits.max_score, zero where that is no number, and
	// list the value of hits.hits.
	maxScore, list piece
	hits           []foundHit
	// cuts are members outside of the hits that the client has not asked for.
	cuts []piece
	// scores are the new ones of the first hits, nil where all hits stay in the
	// engine's order.
	scores []float32
}

// A foundHit is a hit in an answer.
type foundHit struct {
	Hit

	at    piece
	score piece // zero where there is none
	// seen are the members that the hit was found to have.
	seen uint8
	// cuts are the members that the client has not asked for, each with the comma
	// before it, in their order.
	cuts []piece
}

// The members of a hit that are looked at.
const (
	seenIndex = 1 << iota
	seenID
	seenRouting
	seenSeqNo
	seenPrimaryTerm
	seenVersion
	seenScore

	// identifying are those that name a state of a document.
	identifying = seenIndex | seenID | seenSeqNo | seenPrimaryTerm | seenVersion
)

var hitMembers = map[string]uint8{
	"_index": seenIndex, "_id": seenID, "_routing": seenRouting, "_seq_no": seenSeqNo,
	"_primary_term": seenPrimaryTerm, "_version": seenVersion, "_score": seenScore,
}

// A pageReader reads the answer to a search whose hits are ordered anew.
type pageReader struct {
	d      *jsontext.Decoder
	answer []byte
	hitPage
}

// readPages reads the answer to a request of which reranks says how the hits
// are ordered anew: for each of its searches the page, nil where nothing is
// said. It returns [errShape] where that is not such an answer, or names
// something twice that is to be changed.
func readPages(answer []byte, endpoint expand.Endpoint, reranks []*expand.Rerank) (pages []*hitPage, err error) {
	d := newDecoder(bytes.NewBuffer(answer))
	if endpoint == expand.EndpointMultiSearch {
		pages, err = readResponses(d, answer, reranks)
	} else {
		pages = make([]*hitPage, 1)
		pages[0], err = readPage(d, answer, reranks[0])
	}
	if err != nil || len(bytes.TrimSpace(answer[d.InputOffset():])) > 0 {
		return nil, errShape
	}
	return pages, nil
}

// readResponses reads the answer to _msearch that d is before: it has an item
// for each search.
func readResponses(d *jsontext.Decoder, answer []byte, reranks []*expand.Rerank) ([]*hitPage, error) {
	pages := make([]*hitPage, 0, len(reranks))
	lists := 0
	err := eachMember(d, func(name string) error {
		if name != "responses" {
			return d.SkipValue()
		}
		lists++
		if t, err := d.ReadToken(); err != nil || t.Kind() != '[' || lists > 1 {
			return errShape
		}
		for d.PeekKind() != ']' {
			if len(pages) == len(reranks) {
				return errShape
			}
			p, err := readItem(d, answer, reranks[len(pages)])
			if err != nil {
				return err
			}
			pages = append(pages, p)
		}
		_, err := d.ReadToken()
		return err
	})
	if err != nil || len(pages) != len(reranks) {
		return nil, errShape
	}
	return pages, nil
}

// readItem reads the page of one search, or nothing of what stays as it is.
func readItem(d *jsontext.Decoder, answer []byte, r *expand.Rerank) (*hitPage, error) {
	if r == nil {
		return nil, d.SkipValue()
	}
	return readPage(d, answer, r)
}

// readPage reads the answer to one search, which d is before. It returns nil
// for one that failed, which stays as it is.
func readPage(d *jsontext.Decoder, answer []byte, r *expand.Rerank) (*hitPage, error) {
	p := &pageReader{d: d, answer: answer, hitPage: hitPage{r: r}}
	lists, failed := 0, false
	err := p.members(func(name string, _ piece) error {
		switch name {
		case "error":
			failed = true
		case "hits":
			lists++
			return p.members(p.listMember)
		case "aggregations":
			v, err := p.value()
			p.cuts = append(p.cuts, p.within(v)...)
			return err
		case "suggest":
			v, err := p.value()
			p.cuts = append(p.cuts, p.suggested(v)...)
			return err
		}
		return p.d.SkipValue()
	})
	if err == nil && failed && lists == 0 {
		return nil, nil //nolint:nilnil // there are no hits to order
	}
	if err != nil || lists != 1 || p.list.isZero() || len(p.hits) > r.Asked() {
		return nil, errShape
	}
	return &p.hitPage, nil
}

// members calls f for each member of the object that the decoder is before,
// with the name and where it stands. f has to read the value.
func (p *pageReader) members(f func(name string, at piece) error) error {
	if t, err := p.d.ReadToken(); err != nil || t.Kind() != '{' {
		return errShape
	}
	for p.d.PeekKind() != '}' {
		quoted, err := p.d.ReadValue()
		if err != nil {
			return err
		}
		end := int(p.d.InputOffset())
		at := piece{end - len(quoted), end}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return err
		}
		if err := f(string(name), at); err != nil {
			return err
		}
	}
	_, err := p.d.ReadToken()
	return err
}

// value reads any value and returns where it stands.
func (p *pageReader) value() (piece, error) {
	v, err := p.d.ReadValue()
	end := int(p.d.InputOffset())
	return piece{end - len(v), end}, err
}

// listMember takes a member of the object that holds the list of hits.
func (p *pageReader) listMember(name string, _ piece) error {
	switch name {
	case "max_score":
		number := p.d.PeekKind() == '0'
		at, err := p.value()
		if !p.maxScore.isZero() {
			return errShape
		}
		if number {
			p.maxScore = at
		}
		return err
	case "hits":
		if !p.list.isZero() {
			return errShape
		}
		return p.readList()
	}
	return p.d.SkipValue()
}

func (p *pageReader) readList() error {
	if t, err := p.d.ReadToken(); err != nil || t.Kind() != '[' {
		return errShape
	}
	start := int(p.d.InputOffset()) - 1
	for p.d.PeekKind() != ']' {
		hit, err := p.readHit()
		if err != nil {
			return err
		}
		p.hits = append(p.hits, hit)
	}
	_, err := p.d.ReadToken()
	p.list = piece{start, int(p.d.InputOffset())}
	return err
}

func (p *pageReader) readHit() (hit foundHit, err error) {
	before := 0 // the end of the member before
	err = p.members(func(name string, at piece) error {
		if before == 0 {
			// Between the brace and the first name there is white space at most.
			hit.at.start = bytes.LastIndexByte(p.answer[:at.start], '{')
		}
		kind := p.d.PeekKind()
		v, err := p.value()
		if err != nil {
			return err
		}
		which := hitMembers[name]
		if which&hit.seen != 0 || before == 0 && p.cut(which) {
			return errShape
		}
		if hit.take(which, kind, v, p.answer) {
			hit.seen |= which
		}
		if p.cut(which) {
			hit.cuts = append(hit.cuts, piece{before, v.end})
		}
		if name == "inner_hits" {
			hit.cuts = append(hit.cuts, p.within(v)...)
		}
		before = v.end
		return nil
	})
	hit.at.end = int(p.d.InputOffset())
	if err == nil && before == 0 { // it has no members
		hit.at.start = bytes.LastIndexByte(p.answer[:hit.at.end], '{')
	}
	return hit, err
}

// cut reports whether a member of a hit is there because akin asked for it.
func (p *pageReader) cut(which uint8) bool {
	switch which {
	case seenSeqNo, seenPrimaryTerm:
		return !p.r.KeepSeqNo
	case seenVersion:
		return !p.r.KeepVersion
	}
	return false
}

// within returns what is to be cut of hits that stand in other hits, or in
// aggregations.
func (p *pageReader) within(at piece) []piece {
	if p.r.KeepSeqNo {
		return nil
	}
	return unnumbered(p.answer, at)
}

// suggested returns what is to be cut of the options of suggesters.
func (p *pageReader) suggested(at piece) []piece {
	if p.r.KeepSeqNo && p.r.KeepVersion {
		return nil
	}
	return optionNumbers(p.answer, at, func(name string) bool { return p.cut(hitMembers[name]) })
}

// take takes the value of a member and reports whether it is one.
func (h *foundHit) take(which uint8, kind jsontext.Kind, v piece, answer []byte) (ok bool) {
	switch which {
	case seenIndex:
		h.Index, ok = textOf(kind, v.of(answer))
	case seenID:
		h.ID, ok = textOf(kind, v.of(answer))
	case seenRouting:
		h.Routing, ok = textOf(kind, v.of(answer))
	case seenSeqNo:
		h.SeqNo, ok = numberOf(v.of(answer))
	case seenPrimaryTerm:
		h.PrimaryTerm, ok = numberOf(v.of(answer))
	case seenVersion:
		h.Version, ok = numberOf(v.of(answer))
	case seenScore:
		if ok = kind == '0'; ok {
			h.score = v
		}
	}
	return ok
}

// textOf returns the text of a JSON string, false for any other value.
func textOf(kind jsontext.Kind, value []byte) (string, bool) {
	if kind != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

// numberOf returns a whole number, false for any other value.
func numberOf(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// named returns the hits in the window, false where one of them lacks what
// names it, or a score.
func (p *hitPage) named() ([]Hit, bool) {
	hits := make([]Hit, min(len(p.hits), p.r.Window))
	for i := range hits {
		if p.hits[i].seen&identifying != identifying || p.hits[i].score.isZero() {
			return nil, false
		}
		hits[i] = p.hits[i].Hit
	}
	return hits, true
}

// order returns the hits from the highest score to the lowest, in the
// engine's order where scores are the same as they are written.
func order(scores []float32) []int {
	places := make([]int, len(scores))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return places
}

// writePages returns an answer with the client's page of the hits in the place
// of each of pages that is not nil.
func writePages(answer []byte, pages []*hitPage) []byte {
	room := len(answer)
	for _, p := range pages {
		if p != nil {
			room += 8*len(p.hits) + 32
		}
	}
	out, at := make([]byte, 0, room), 0
	for _, p := range pages {
		if p != nil {
			out, at = p.write(out, answer, at)
		}
	}
	return append(out, answer[at:]...)
}

// write appends the answer from the place at on, with the client's page of the
// hits, in the order of their new scores, or in the engine's with its scores
// where there are none, and returns the place up to which it did. Hits behind
// those that have a new score stay there as they are, as do all bytes that say
// something else.
func (p *hitPage) write(out, answer []byte, at int) (written []byte, end int) {
	places := make([]int, len(p.hits))
	for i := range places {
		places[i] = i
	}
	maxScore := piece{}
	if p.scores != nil {
		copy(places, order(p.scores))
		maxScore = p.maxScore
	}
	from := min(p.r.From, len(places))
	places = places[from : from+min(p.r.Size, len(places)-from)]
	for _, part := range p.parts(maxScore) {
		out = append(out, answer[at:part.start]...)
		at = part.end
		switch part {
		case p.list:
			out = p.writeList(out, answer, places)
		case maxScore:
			out = appendScore(out, slices.Max(p.scores))
		}
	}
	return out, at
}

// parts returns the list of hits, the best score, unless it is zero, and what
// is cut outside of the hits, in their order.
func (p *hitPage) parts(maxScore piece) []piece {
	all := append(slices.Clone(p.cuts), p.list)
	if !maxScore.isZero() {
		all = append(all, maxScore)
	}
	return inOrder(all)
}

// writeList writes the list of the hits at places, with the white space that
// the engine put around and between them.
func (p *hitPage) writeList(out, answer []byte, places []int) []byte {
	list := p.list.of(answer)
	if len(p.hits) == 0 {
		return append(out, list...)
	}
	first, last := p.hits[0].at, p.hits[len(p.hits)-1].at
	if len(places) == 0 {
		if first.start > p.list.start+1 { // as the engines write it where they indent
			return append(out, "[ ]"...)
		}
		return append(out, "[]"...)
	}
	out = append(out, answer[p.list.start:first.start]...)
	for i, k := range places {
		if i > 0 {
			out = append(out, answer[first.end:p.hits[1].at.start]...)
		}
		h := &p.hits[k]
		at := h.at.start
		for _, cut := range h.edits(k < len(p.scores)) {
			out = append(out, answer[at:cut.start]...)
			at = cut.end
			if cut == h.score {
				out = appendScore(out, p.scores[k])
			}
		}
		out = append(out, answer[at:h.at.end]...)
	}
	return append(out, answer[last.end:p.list.end]...)
}

// edits returns the pieces of a hit that are not copied, in their order.
func (h *foundHit) edits(scored bool) []piece {
	if !scored {
		return h.cuts
	}
	return inOrder(append(slices.Clone(h.cuts), h.score))
}

// inOrder sorts pieces by where they stand.
func inOrder(pieces []piece) []piece {
	slices.SortFunc(pieces, func(a, b piece) int { return a.start - b.start })
	return pieces
}

// appendScore writes a score like the engines do, as the shortest decimal
// that is that 32-bit number, with a point in it.
func appendScore(out []byte, score float32) []byte {
	start := len(out)
	out = strconv.AppendFloat(out, float64(score), 'f', -1, 32)
	if bytes.IndexByte(out[start:], '.') < 0 {
		out = append(out, ".0"...)
	}
	return out
}

// asWritten returns scores as they are written, false where one is no
// number.
func asWritten(scores []float64) ([]float32, bool) {
	out := make([]float32, len(scores))
	for i, s := range scores {
		if math.IsNaN(s) || math.IsInf(float64(float32(s)), 0) {
			return nil, false
		}
		out[i] = float32(s)
	}
	return out, true
}
