package answer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A HitList has the places of what changes when an answer is reranked and cut.
type HitList struct {
	// Rerank says which of the hits the client asked for, and with what.
	Rerank *expand.Rerank
	// Scores are the new ones of the first hits, nil for the engine's order.
	Scores []float32

	blended        []float64     // what orders the first hits instead of Scores, nil where those do
	maxScore, list jsonspan.Span // hits.max_score, zero where that is no number, and hits.hits
	hits           []foundHit
	cuts           []jsonspan.Edit // members outside of the hits that the client has not asked for
	answer         []byte
}

// A foundHit is a hit in an answer.
type foundHit struct {
	expand.Hit

	at, score jsonspan.Span   // score is zero where there is none
	engine    float64         // the score
	seen      uint8           // the members that it has
	cuts      []jsonspan.Edit // members that the client has not asked for
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

// ReadHitLists reads the answer to a request: for each of its searches the
// hits, nil where reranks is nil or the search failed. It returns an error
// where that is not such an answer, or names something twice that is to be
// changed.
func ReadHitLists(answer []byte, endpoint expand.Endpoint, reranks []*expand.Rerank) (pages []*HitList, err error) {
	r := newPartReader(answer, 0)
	pages = make([]*HitList, 0, len(reranks))
	next := func() (err error) {
		if len(pages) == len(reranks) {
			return ErrShape
		}
		var p *HitList
		if rerank := reranks[len(pages)]; rerank == nil {
			err = r.Skip()
		} else {
			p, err = r.page(rerank)
		}
		pages = append(pages, p)
		return err
	}
	lists := 0
	if endpoint != expand.EndpointMultiSearch {
		err = next()
	} else {
		err = r.Object(func(name []byte) error {
			if string(name) != "responses" {
				return r.Skip()
			}
			if lists++; lists > 1 {
				return ErrShape
			}
			return r.List(func(int) error { return next() })
		})
	}
	if err != nil || len(pages) != len(reranks) || !r.End() {
		return nil, ErrShape
	}
	return pages, nil
}

// page reads the answer to one search, nil for one that failed.
func (r *partReader) page(rerank *expand.Rerank) (*HitList, error) {
	p := &HitList{Rerank: rerank, answer: r.text}
	lists, failed := 0, false
	err := r.Object(func(name []byte) error {
		var inner func(text []byte, at jsonspan.Span, r *expand.Rerank) []jsonspan.Edit
		switch string(name) {
		case "error":
			failed = true
		case "hits":
			lists++
			return r.Object(func(name []byte) error { return r.listMember(p, name) })
		case "aggregations":
			inner = withoutNumbers
		case "suggest":
			inner = withoutVersions
		}
		at, err := r.Value()
		if inner != nil && err == nil {
			p.cuts = append(p.cuts, inner(r.text, at, rerank)...)
		}
		return err
	})
	if err == nil && failed && lists == 0 {
		return nil, nil //nolint:nilnil // there are no hits to rerank
	}
	if err != nil || lists != 1 || p.list.IsZero() || len(p.hits) > rerank.Asked() {
		return nil, ErrShape
	}
	return p, nil
}

// listMember takes a member of the object that holds the list of hits.
func (r *partReader) listMember(p *HitList, name []byte) (err error) {
	switch string(name) {
	case "max_score":
		number := r.Kind() == '0'
		at, err := r.Value()
		if !p.maxScore.IsZero() {
			return ErrShape
		}
		if number {
			p.maxScore = at
		}
		return err
	case "hits":
		if !p.list.IsZero() {
			return ErrShape
		}
		p.list, err = r.Place(func() error {
			return r.List(func(int) error {
				hit, err := r.hit(p.Rerank)
				p.hits = append(p.hits, hit)
				return err
			})
		})
		return err
	}
	return r.Skip()
}

func (r *partReader) hit(rerank *expand.Rerank) (h foundHit, err error) {
	r.cuts = nil
	h.at, err = r.Place(func() error {
		first := true
		return r.members(func(name []byte) (cut bool, err error) {
			kind, which := r.Kind(), hitMembers[string(name)]
			v, err := r.Value()
			if err != nil {
				return false, err
			}
			if cut = isExtra(rerank, which); cut && first || h.seen&which != 0 {
				return false, ErrShape
			}
			first = false
			if h.take(which, kind, v, r.text) {
				h.seen |= which
			}
			if string(name) == "inner_hits" {
				r.cuts = append(r.cuts, withoutNumbers(r.text, v, rerank)...)
			}
			return cut, nil
		})
	})
	h.cuts = r.cuts
	return h, err
}

// isExtra reports whether a member of a hit is there only for akin.
func isExtra(r *expand.Rerank, which uint8) bool {
	switch which {
	case seenSeqNo, seenPrimaryTerm:
		return !r.KeepSeqNo
	case seenVersion:
		return !r.KeepVersion
	}
	return false
}

// take takes the value of a member and reports whether it is of the right kind.
func (h *foundHit) take(which uint8, kind jsontext.Kind, v jsonspan.Span, answer []byte) bool {
	switch which {
	case seenIndex:
		return takeText(&h.Index, kind, v.Of(answer))
	case seenID:
		return takeText(&h.ID, kind, v.Of(answer))
	case seenRouting:
		return takeText(&h.Routing, kind, v.Of(answer))
	case seenSeqNo:
		return takeNumber(&h.SeqNo, v.Of(answer))
	case seenPrimaryTerm:
		return takeNumber(&h.PrimaryTerm, v.Of(answer))
	case seenVersion:
		return takeNumber(&h.Version, v.Of(answer))
	case seenScore:
		if kind != '0' {
			return false
		}
		h.score = v
		h.engine, _ = strconv.ParseFloat(string(v.Of(answer)), 64) // it is a number; too large a one is infinite
	}
	return kind == '0'
}

func takeText(to *string, kind jsontext.Kind, value []byte) bool {
	if kind != '"' {
		return false
	}
	text, err := jsonspan.Unquote(value)
	*to = string(text)
	return err == nil
}

func takeNumber(to *int64, value []byte) (ok bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	*to = n
	return err == nil
}

// IsEmpty reports whether the page has no hits.
func (p *HitList) IsEmpty() bool { return len(p.hits) == 0 }

// Hits returns the hits in the window, false where one lacks its name or score.
func (p *HitList) Hits() ([]expand.Hit, bool) {
	hits := make([]expand.Hit, min(len(p.hits), p.Rerank.Window))
	for i := range hits {
		if p.hits[i].seen&identifying != identifying || p.hits[i].score.IsZero() {
			return nil, false
		}
		hits[i] = p.hits[i].Hit
	}
	return hits, true
}

// SetScores sets the new scores of the hits that [HitList.Hits] returned, and
// with them their order, from the soft cosine of each. It returns false, and
// leaves the engine's, where one is no number or has none.
//
// With w being [expand.Rerank.EngineWeight] and e the engine's scores, the
// order is that of b = w·e/max(e) + (1 − w)·soft/max(soft). The scores are
// b·max(e), which is at most max(e), and at least min(e), as hits behind the
// window have no more than that. At w = 0 order and scores are the measure's.
func (p *HitList) SetScores(soft []float64) bool {
	scores := make([]float32, len(soft))
	for i, s := range soft {
		scores[i] = float32(s)
		if math.IsNaN(s) || math.IsInf(float64(scores[i]), 0) {
			return false
		}
	}
	if len(soft) != min(len(p.hits), p.Rerank.Window) {
		return false
	}
	w := p.Rerank.EngineWeight
	if w == 0 || len(soft) == 0 {
		p.Scores = scores
		return true
	}
	lowest, best, bestSoft := p.hits[0].engine, p.hits[0].engine, slices.Max(soft)
	for i := range soft {
		lowest, best = min(lowest, p.hits[i].engine), max(best, p.hits[i].engine)
	}
	if best <= 0 || math.IsInf(best, 0) || bestSoft <= 0 {
		return true // nothing to compare by: the engine's order, with its scores
	}
	blended := make([]float64, len(soft))
	for i, s := range soft {
		blended[i] = w*p.hits[i].engine/best + (1-w)*s/bestSoft
		scores[i] = float32(max(lowest, min(best, best*blended[i])))
	}
	p.Scores, p.blended = scores, blended
	return true
}

// WriteHitLists returns an answer with the client's page of the hits in the
// place of each list that is not nil, in the order of their new scores. Hits
// without one come after those, in the engine's order; all other bytes stay.
func WriteHitLists(answer []byte, pages []*HitList) []byte {
	room := len(answer)
	var edits []jsonspan.Edit
	for _, p := range pages {
		if p != nil {
			room += 8*len(p.hits) + 32
			outside := p.cuts
			if p.Scores != nil && !p.maxScore.IsZero() {
				outside = withScore(outside, p.maxScore, slices.Max(p.Scores))
			}
			edits = append(edits, outside...)
		}
	}
	out, at := make([]byte, 0, room), 0
	for _, p := range pages {
		if p != nil {
			out = jsonspan.AppendEdited(out, answer, at, p.list.Start, edits)
			out = p.appendList(out, answer)
			at = p.list.End
		}
	}
	return jsonspan.AppendEdited(out, answer, at, len(answer), edits)
}

// appendList appends the client's page, with the engine's white space.
func (p *HitList) appendList(out, answer []byte) []byte {
	// By new scores, in the engine's order for equal ones and those without.
	places := make([]int, len(p.hits))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places[:len(p.Scores)], func(a, b int) int {
		if p.blended != nil {
			return cmp.Compare(p.blended[b], p.blended[a])
		}
		return cmp.Compare(p.Scores[b], p.Scores[a])
	})
	from := min(p.Rerank.From, len(places))
	places = places[from : from+min(p.Rerank.Size, len(places)-from)]
	if len(p.hits) == 0 {
		return append(out, p.list.Of(answer)...)
	}
	first, last := p.hits[0].at, p.hits[len(p.hits)-1].at
	if len(places) == 0 {
		if first.Start > p.list.Start+1 { // as the engines write it where they indent
			return append(out, "[ ]"...)
		}
		return append(out, "[]"...)
	}
	out = append(out, answer[p.list.Start:first.Start]...)
	for i, k := range places {
		if i > 0 {
			out = append(out, answer[first.End:p.hits[1].at.Start]...)
		}
		h := &p.hits[k]
		edits := h.cuts
		if k < len(p.Scores) {
			edits = withScore(edits, h.score, p.Scores[k])
		}
		out = jsonspan.AppendEdited(out, answer, h.at.Start, h.at.End, edits)
	}
	return append(out, answer[last.End:p.list.End]...)
}

// withScore returns cuts with a new score in the place of one.
func withScore(cuts []jsonspan.Edit, at jsonspan.Span, score float32) []jsonspan.Edit {
	edits := append(slices.Clone(cuts), jsonspan.Edit{At: at, Text: scoreText(score)})
	slices.SortFunc(edits, func(a, b jsonspan.Edit) int { return a.At.Start - b.At.Start })
	return edits
}

// scoreText writes a score like the engines: the shortest decimal, with a
// point.
func scoreText(score float32) string {
	text := strconv.FormatFloat(float64(score), 'f', -1, 32)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// A partReader reads an answer, or a part of it, and notes what is to be cut.
type partReader struct {
	jsonspan.Reader

	text  []byte
	start int // where in the answer the text begins
	cuts  []jsonspan.Edit
}

func newPartReader(text []byte, start int) *partReader {
	r := &partReader{text: text, start: start}
	r.Reset(text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return r
}

// members reads an object. f reads the value of each member and reports whether
// to cut it, with the comma before it; the first one is never cut.
func (r *partReader) members(f func(name []byte) (cut bool, err error)) error {
	before := 0 // the end of the member before
	return r.Object(func(name []byte) error {
		cut, err := f(name)
		if cut && before > 0 {
			r.cuts = append(r.cuts, jsonspan.Edit{At: jsonspan.Span{Start: r.start + before, End: r.start + r.Offset()}})
		}
		before = r.Offset()
		return err
	})
}

// withoutNumbers returns the cuts of the sequence numbers in a value, inner
// hits or aggregations. When a search asks for those of its own hits, as a
// reranked one does, Elasticsearch 9 writes "_seq_no":-2,"_primary_term":0
// there.
func withoutNumbers(answer []byte, at jsonspan.Span, rerank *expand.Rerank) []jsonspan.Edit {
	value := at.Of(answer)
	if rerank.KeepSeqNo || !bytes.Contains(value, []byte(`"_seq_no"`)) {
		return nil
	}
	r := newPartReader(value, at.Start)
	if r.numbers() != nil {
		return nil // it was read before: it is JSON
	}
	return r.cuts
}

// numbers looks for the numbers in any value.
func (r *partReader) numbers() error {
	switch r.Kind() {
	case '[':
		return r.List(func(int) error { return r.numbers() })
	case '{': // perhaps a hit
		return r.members(func(name []byte) (cut bool, err error) {
			switch string(name) {
			case "_seq_no", "_primary_term":
				v, err := r.Value()
				none := map[string]string{"_seq_no": "-2", "_primary_term": "0"}[string(name)]
				return err == nil && string(v.Of(r.text)) == none, err
			case "_source", "fields", "highlight": // the client's own
				return false, r.Skip()
			}
			return false, r.numbers()
		})
	default:
		return r.Skip()
	}
}

// withoutVersions returns the cuts of the versions and the sequence numbers in
// the value of "suggest" that the client has not asked for: the options of a
// completion suggester are documents, and have them after "text".
func withoutVersions(answer []byte, at jsonspan.Span, rerank *expand.Rerank) []jsonspan.Edit {
	if rerank.KeepSeqNo && rerank.KeepVersion {
		return nil
	}
	r := newPartReader(at.Of(answer), at.Start)
	option := func(int) error {
		return r.members(func(name []byte) (cut bool, err error) {
			return isExtra(rerank, hitMembers[string(name)]), r.Skip()
		})
	}
	entry := func(int) error {
		return r.Object(func(name []byte) error {
			if string(name) == "options" {
				return r.List(option)
			}
			return r.Skip()
		})
	}
	if r.Object(func([]byte) error { return r.List(entry) }) != nil {
		return nil // not of that shape, so with none of them
	}
	return r.cuts
}

// HitsPath is a filter_path of all that [ReadHits] reads: without inner hits.
const HitsPath = "timed_out,_shards.failed,hits.hits._index,hits.hits._id,hits.hits._routing," +
	"hits.hits._score,hits.hits._seq_no,hits.hits._primary_term,hits.hits._version"

// ErrPartial says that a search has not looked everywhere: its time was over,
// or a shard failed.
var ErrPartial = errors.New("some of the index was not searched")

// ReadHits returns the hits of the answer to a search, of which it has most at
// most, and their scores. It returns an error where that is not such an answer,
// or where a hit is not named, and [ErrPartial] where other hits may be
// missing.
func ReadHits(answer []byte, most int) ([]expand.Hit, []float64, error) {
	var page struct {
		TimedOut bool `json:"timed_out"`
		Shards   struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
		Hits struct {
			Hits []struct {
				Index       string   `json:"_index"`
				ID          string   `json:"_id"`
				Routing     string   `json:"_routing"`
				Score       *float64 `json:"_score"`
				SeqNo       *int64   `json:"_seq_no"`
				PrimaryTerm int64    `json:"_primary_term"`
				Version     int64    `json:"_version"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return nil, nil, ErrShape
	}
	if page.TimedOut || page.Shards.Failed > 0 {
		return nil, nil, ErrPartial
	}
	list := page.Hits.Hits
	hits, scores := make([]expand.Hit, len(list)), make([]float64, len(list))
	for i, h := range list {
		if h.Index == "" || h.ID == "" || h.Score == nil || h.SeqNo == nil || i == most {
			return nil, nil, ErrShape
		}
		hits[i] = expand.Hit{Index: h.Index, ID: h.ID, Routing: h.Routing, SeqNo: *h.SeqNo, PrimaryTerm: h.PrimaryTerm, Version: h.Version}
		scores[i] = *h.Score
	}
	return hits, scores, nil
}
