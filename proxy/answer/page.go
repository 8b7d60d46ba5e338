package answer

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A Frame is the answer to a search with [expand.Part.Rerank], or its part of
// an answer, without the hits of the client's page.
type Frame struct {
	// Rerank says which hits are on the page.
	Rerank *expand.Rerank
	// Hits are the first ones, in the engine's order. Named is false if one has no
	// name or score, or if sequence numbers name hits of several shards.
	Hits  []expand.Hit
	Named bool
	// Shards is how many were searched, 0 if the answer does not say.
	Shards int

	engine         []float64     // scores of the hits
	maxScore, list jsonspan.Span // hits.max_score, zero if not a number, and hits.hits
	// scores are those of the client's page; best is the largest in the window.
	// reasons explain a page that vectors ordered.
	scores  []float32
	best    float32
	reasons []expand.HitReason
	// text is the answer with the client's page, or nil: the hits ordered, or, if
	// that is nil, the list page in the engine's order.
	text    []byte
	page    jsonspan.Span
	ordered []pageHit
}

// ReadFrames reads the answer to a request. It returns a frame for each search,
// nil if its rerank is nil or it failed. It returns an error if this is not
// such an answer, or has something twice that is to be changed.
func ReadFrames(answer []byte, endpoint expand.Endpoint, reranks []*expand.Rerank) (frames []*Frame, err error) {
	var r jsonspan.Reader
	r.Reset(answer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	frames = make([]*Frame, 0, len(reranks))
	next := func() (err error) {
		if len(frames) == len(reranks) {
			return ErrShape
		}
		var f *Frame
		if rerank := reranks[len(frames)]; rerank == nil {
			err = r.Skip()
		} else {
			f, err = readFrame(&r, answer, rerank)
		}
		frames = append(frames, f)
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
			lists++
			if lists > 1 {
				return ErrShape
			}
			return r.List(func(int) error { return next() })
		})
	}
	if err != nil || len(frames) != len(reranks) || !r.End() {
		return nil, ErrShape
	}
	return frames, nil
}

// readFrame reads the answer to one search, nil if the search failed.
func readFrame(r *jsonspan.Reader, answer []byte, rerank *expand.Rerank) (*Frame, error) {
	f := &Frame{Rerank: rerank}
	var shards struct {
		Total int `json:"total"`
	}
	lists, failed := 0, false
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "error":
			failed = true
		case "_shards":
			at, err := r.Value()
			if err != nil {
				return err
			}
			return json.Unmarshal(at.Of(answer), &shards)
		case "hits":
			lists++
			return f.readList(r)
		}
		return r.Skip()
	})
	if err == nil && failed && lists == 0 {
		return nil, nil //nolint:nilnil // there are no hits to rerank
	}
	if err != nil || lists != 1 || f.list.IsZero() || !f.readHits(f.list.Of(answer)) {
		return nil, ErrShape
	}
	f.Shards = shards.Total
	f.Named = f.Named && (!rerank.BySeqNo || f.Shards == 1)
	return f, nil
}

// readList finds the places in the object with the list of hits.
func (f *Frame) readList(r *jsonspan.Reader) error {
	return r.Object(func(name []byte) error {
		kind := r.Kind()
		at, err := r.Value()
		switch string(name) {
		case "max_score":
			if !f.maxScore.IsZero() {
				return ErrShape
			}
			if kind == '0' {
				f.maxScore = at
			}
		case "hits":
			if !f.list.IsZero() || kind != '[' {
				return ErrShape
			}
			f.list = at
		}
		return err
	})
}

// A namedHit is a hit with only its name and score.
type namedHit struct {
	Index       string   `json:"_index"`
	ID          string   `json:"_id"`
	Routing     string   `json:"_routing"`
	Score       *float64 `json:"_score"`
	SeqNo       *int64   `json:"_seq_no"`
	PrimaryTerm int64    `json:"_primary_term"`
	Version     *int64   `json:"_version"`
	Fields      struct {
		SeqNo []int64 `json:"_seq_no"`
	} `json:"fields"`
}

// hit returns the hit. It must have a sequence number.
func (h *namedHit) hit() expand.Hit {
	hit := expand.Hit{Index: h.Index, ID: h.ID, Routing: h.Routing, SeqNo: *h.SeqNo, PrimaryTerm: h.PrimaryTerm}
	if h.Version != nil {
		hit.Version = *h.Version
	}
	return hit
}

// readHits reads a list of hits, or returns false if list is none.
func (f *Frame) readHits(list []byte) bool {
	var hits []namedHit
	if json.Unmarshal(list, &hits) != nil || len(hits) > f.Rerank.Asked() {
		return false
	}
	f.Named = true
	f.Hits, f.engine = make([]expand.Hit, len(hits)), make([]float64, len(hits))
	for i := range hits {
		h := &hits[i]
		if len(h.Fields.SeqNo) == 1 {
			h.SeqNo = &h.Fields.SeqNo[0]
		}
		whole := f.Rerank.BySeqNo || h.ID != "" && h.Version != nil
		if h.Index == "" || h.Score == nil || h.SeqNo == nil || !whole {
			f.Named = false
			break
		}
		f.Hits[i], f.engine[i] = h.hit(), *h.Score
	}
	return true
}

// Window returns the hits that are reranked.
func (f *Frame) Window() []expand.Hit { return f.Hits[:min(len(f.Hits), f.Rerank.Window)] }

// Order sorts the hits by scores, one for each in the window, and returns
// those of the client's page. It returns false if a score is missing or not
// finite.
//
// Let w be [expand.Rerank.SoftWeight] and m the saturated sums, or without
// those the engine's scores. The order is that of
//
//	b = (1 − w)·m/max(m) + w·soft/max(soft)
//
// and the scores are b·max(e) for the engine's scores e, at most max(e) and at
// least min(e), because hits behind the window have no more than that. For w =
// 1 order and scores are the measure's. An Unknown hit keeps its place, with
// the score of the hit before it.
//
// With [expand.Rerank.Text] the cosines are not divided, since vectors have one
// scale, and the scores are b moved into the engine's range.
func (f *Frame) Order(scores []expand.HitScore) (page []expand.Hit, ok bool) {
	n := len(f.Window())
	if len(scores) != n {
		return nil, false
	}
	w := f.Rerank.SoftWeight
	var lowest, highest, bestSum, bestSoft float64
	for i, s := range scores {
		if f.Rerank.Sums == nil {
			scores[i].Sum = f.engine[i]
		}
		if number := scores[i].Sum + s.Soft; math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, false
		}
		bestSum, bestSoft = max(bestSum, scores[i].Sum), max(bestSoft, s.Soft)
		highest = max(highest, f.engine[i])
		if i == 0 || f.engine[i] < lowest {
			lowest = f.engine[i]
		}
	}
	if f.Rerank.Text != "" {
		bestSoft = 1
	}
	blended := make([]float64, n)
	written := make([]float32, len(f.Hits))
	for i := range f.Hits {
		if i >= n {
			written[i] = float32(f.engine[i])
			continue
		}
		if bestSum > 0 {
			blended[i] = (1 - w) * scores[i].Sum / bestSum
		}
		if bestSoft > 0 {
			blended[i] += w * scores[i].Soft / bestSoft
		}
		if w < 1 {
			written[i] = float32(max(lowest, min(highest, highest*blended[i])))
		} else {
			written[i] = float32(scores[i].Soft)
		}
	}
	if f.Rerank.Text != "" {
		inRange(written[:n], blended, lowest, highest)
	}
	if slices.ContainsFunc(written, func(s float32) bool { return math.IsInf(float64(s), 0) }) {
		return nil, false
	}
	places := placesOf(scores, blended, len(f.Hits))
	for k, i := range places[:n] {
		if scores[i].Unknown && k > 0 {
			written[i] = written[places[k-1]]
		} else if scores[i].Unknown {
			written[i] = slices.Max(written[:n])
		}
	}
	from := min(f.Rerank.From, len(places))
	places = places[from : from+min(f.Rerank.Size, len(places)-from)]
	f.scores = make([]float32, len(places))
	page = make([]expand.Hit, len(places))
	for k, i := range places {
		page[k], f.scores[k] = f.Hits[i], written[i]
		if f.Rerank.Text != "" && i < n {
			f.reasons = append(f.reasons, expand.HitReason{
				Index: f.Hits[i].Index, ID: f.Hits[i].ID, Place: i + 1, Score: f.engine[i], Cosine: scores[i].Soft, Weight: w, Unknown: scores[i].Unknown,
			})
		}
	}
	if n > 0 {
		f.best = slices.Max(written[:n])
	}
	return page, true
}

// inRange sets scores to values moved into a range.
func inRange(scores []float32, values []float64, lowest, highest float64) {
	if len(values) == 0 {
		return
	}
	least, most := slices.Min(values), slices.Max(values)
	for i, v := range values {
		scores[i] = float32(highest)
		if most > least {
			scores[i] = float32(lowest + (highest-lowest)*(v-least)/(most-least))
		}
	}
}

// Reasons explain the hits of a page that vectors of a language model
// ordered; there are none for another page.
func (f *Frame) Reasons() []expand.HitReason { return f.reasons }

// placesOf returns the numbers of hits in their new order: in the window by
// what they are ordered by, and behind it as they were.
func placesOf(scores []expand.HitScore, blended []float64, hits int) []int {
	places := make([]int, 0, hits)
	for i := range scores {
		if !scores[i].Unknown {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(blended[b], blended[a]) })
	for i := range hits {
		if i >= len(scores) || scores[i].Unknown {
			places = slices.Insert(places, i, i)
		}
	}
	return places
}

// A pageHit is a hit in the answer to a search for a page.
type pageHit struct {
	Index, ID, Routing string

	at, score jsonspan.Span
	sorted    string        // its sort values
	sort      jsonspan.Span // the member with these, and what is before it
	end       int           // of the last member that was read
}

// SetPage takes the hits of page, from [Frame.Order], out of the answer to the
// search for them, which must not change. It returns false if one is missing.
func (f *Frame) SetPage(page []expand.Hit, answer []byte) bool {
	_, hits, ok := readPage(answer)
	if !ok {
		return false
	}
	ordered := make([]pageHit, len(page))
	for k, wanted := range page {
		named := func(h pageHit) bool { return h.Index == wanted.Index && h.ID == wanted.ID }
		if f.Rerank.BySeqNo {
			number := "[" + strconv.FormatInt(wanted.SeqNo, 10) + "]"
			named = func(h pageHit) bool { return h.Index == wanted.Index && h.sorted == number }
		}
		i := slices.IndexFunc(hits, func(h pageHit) bool { return named(h) && h.Routing == wanted.Routing })
		if i < 0 { // the routing is not always known
			i = slices.IndexFunc(hits, named)
		}
		if i < 0 || hits[i].score.IsZero() || (string(hits[i].score.Of(answer)) == "null") != f.Rerank.BySeqNo {
			return false
		}
		ordered[k], hits[i] = hits[i], pageHit{} // each once: hits with two routings may have the same id
		if k < len(f.reasons) {
			f.reasons[k].ID = ordered[k].ID
		}
	}
	f.text, f.ordered = answer, ordered
	return true
}

// SetInOrder takes the page in the engine's order out of the answer to the
// search for it, which must not change any more. It returns false if this is
// not such an answer.
func (f *Frame) SetInOrder(answer []byte) bool {
	list, _, ok := readPage(answer)
	if ok {
		f.text, f.page = answer, list
		f.ordered = nil
	}
	return ok
}

// readPage finds the hits in the complete answer to a search.
func readPage(answer []byte) (list jsonspan.Span, hits []pageHit, ok bool) {
	var r jsonspan.Reader
	r.Reset(answer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	hit := func(int) error {
		var h pageHit
		at, err := r.Place(func() error {
			return r.Object(func(name []byte) error { return h.member(&r, string(name), answer) })
		})
		h.at = at
		hits = append(hits, h)
		return err
	}
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "timed_out":
			at, err := r.Value()
			if err == nil && string(at.Of(answer)) != "false" {
				err = ErrPartial
			}
			return err
		case "_shards":
			at, err := r.Value()
			if err != nil {
				return err
			}
			failed, err := shardFailures(newDecoder(bytes.NewReader(at.Of(answer))))
			if err == nil && failed != nil {
				err = ErrPartial
			}
			return err
		case "hits":
			return r.Object(func(name []byte) (err error) {
				if string(name) != "hits" {
					return r.Skip()
				}
				if !list.IsZero() {
					return ErrShape
				}
				list, err = r.Place(func() error { return r.List(hit) })
				return err
			})
		}
		return r.Skip()
	})
	return list, hits, err == nil && !list.IsZero() && r.End()
}

// member reads one member of a hit.
func (h *pageHit) member(r *jsonspan.Reader, name string, answer []byte) error {
	kind := r.Kind()
	at, err := r.Value()
	if err != nil {
		return err
	}
	var text []byte
	if kind == '"' && strings.HasPrefix(name, "_") {
		text, err = jsonspan.Unquote(at.Of(answer))
	}
	switch {
	case name == "_index":
		h.Index = string(text)
	case name == "_id":
		h.ID = string(text)
	case name == "_routing":
		h.Routing = string(text)
	case name == "_score" && (kind == '0' || kind == 'n'): // null where hits are sorted
		h.score = at
	case name == "sort" && h.end > 0:
		h.sort = jsonspan.Span{Start: h.end, End: at.End}
		h.sorted = string(slices.DeleteFunc(slices.Clone(at.Of(answer)), func(b byte) bool { return b <= ' ' }))
	}
	h.end = at.End
	return err
}

// WriteFrames returns an answer with the client's page in place of each list of
// hits, all other bytes unchanged, or nil if a page is missing.
func WriteFrames(answer []byte, frames []*Frame) []byte {
	room := len(answer)
	var edits []jsonspan.Edit
	for _, f := range frames {
		switch {
		case f == nil, len(f.Hits) == 0:
			continue
		case f.text == nil:
			return nil
		}
		room += len(f.text) + 16*len(f.ordered) + 32
		if f.ordered != nil && !f.maxScore.IsZero() {
			edits = append(edits, jsonspan.Edit{At: f.maxScore, Text: scoreText(f.best)})
		}
	}
	out, at := make([]byte, 0, room), 0
	for _, f := range frames {
		if f != nil && len(f.Hits) > 0 {
			out = jsonspan.AppendEdited(out, answer, at, f.list.Start, edits)
			out = f.appendPage(out)
			at = f.list.End
		}
	}
	return jsonspan.AppendEdited(out, answer, at, len(answer), edits)
}

// appendPage appends the client's page.
func (f *Frame) appendPage(out []byte) []byte {
	if f.ordered == nil {
		return append(out, f.page.Of(f.text)...)
	}
	out = append(out, '[')
	for k, h := range f.ordered {
		if k > 0 {
			out = append(out, ',')
		}
		edits := []jsonspan.Edit{{At: h.score, Text: scoreText(f.scores[k])}}
		if f.Rerank.BySeqNo { // the client's search has no sort
			edits = append(edits, jsonspan.Edit{At: h.sort})
			slices.SortFunc(edits, func(a, b jsonspan.Edit) int { return cmp.Compare(a.At.Start, b.At.Start) })
		}
		out = jsonspan.AppendEdited(out, f.text, h.at.Start, h.at.End, edits)
	}
	return append(out, ']')
}

// scoreText writes a score as the engines do: shortest decimal, with a point.
func scoreText(score float32) string {
	text := strconv.FormatFloat(float64(score), 'f', -1, 32)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// HitsPath is the filter_path for what [ReadHits] reads, without inner hits.
const HitsPath = "timed_out,_shards.failed,hits.hits._index,hits.hits._id,hits.hits._routing," +
	"hits.hits._score,hits.hits._seq_no,hits.hits._primary_term,hits.hits._version"

// ErrPartial says that a search was incomplete: time ran out or a shard failed.
var ErrPartial = errors.New("some of the index was not searched")

// ReadHits returns the hits in the answer to a search, at most most, and their
// scores. It returns an error if this is not such an answer or a hit has no
// name, and [ErrPartial] if hits may be missing.
func ReadHits(answer []byte, most int) ([]expand.Hit, []float64, error) {
	var page struct {
		TimedOut bool `json:"timed_out"`
		Shards   struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
		Hits struct {
			Hits []namedHit `json:"hits"`
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
		hits[i], scores[i] = h.hit(), *h.Score
	}
	return hits, scores, nil
}
