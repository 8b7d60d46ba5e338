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
// By [expand.Rerank.Fields]: let w be [expand.Rerank.SoftWeight] and m the
// saturated sums, or without those the engine's scores. The order is that of
//
//	b = (1 − w)·m/max(m) + w·soft/max(soft)
//
// and the scores are b·max(e) for the engine's scores e, at most max(e) and at
// least min(e), because hits behind the window have no more than that. For w =
// 1 order and scores are the measure's. An Unknown hit keeps its place, with
// the score of the hit before it. If all are Unknown, the scores stay as well.
//
// By [expand.Rerank.Text], after that: let w be [expand.Rerank.TextWeight] and
// m the b or, if all are Unknown, the engine's scores. The order is that of
//
//	(1 − w)·m/max(m) + w·cosine
//
// where cosines are not divided, since vectors have one scale, and the scores
// are these moved into the engine's range. A hit with NoVector keeps its place.
func (f *Frame) Order(scores []expand.HitScore) (page []expand.Hit, ok bool) {
	n := len(f.Window())
	if len(scores) != n || slices.ContainsFunc(scores, func(s expand.HitScore) bool { return !isFinite(s.Sum) || !isFinite(s.Soft) || !isFinite(s.Cosine) }) {
		return nil, false
	}
	r := f.Rerank
	places := make([]int, len(f.Hits))
	for i := range places {
		places[i] = i
	}
	by, written := slices.Clone(f.engine[:n]), make([]float32, len(f.Hits))
	for i, e := range f.engine {
		written[i] = float32(e)
	}
	unknown := func(i int) bool { return scores[i].Unknown }
	if !all(places[:n], unknown) {
		by = f.softBlend(scores, written)
		sortPlaces(places[:n], by, unknown)
		passOn(places[:n], by, unknown)
		passOn(places[:n], written, unknown)
	}
	noVector := func(i int) bool { return scores[i].NoVector }
	byText := r.Text != "" && !all(places[:n], noVector)
	var before []int // without the vectors
	var had []float32
	if byText {
		before, had = slices.Clone(places), slices.Clone(written)
		most := slices.Max(by)
		for i, s := range scores {
			m := 0.0
			if most > 0 {
				m = by[i] / most
			}
			by[i] = (1-r.TextWeight)*m + r.TextWeight*s.Cosine
		}
		sortPlaces(places[:n], by, noVector)
		f.inRange(written[:n], by)
		passOn(places[:n], written, noVector)
	}
	if slices.ContainsFunc(written, func(s float32) bool { return math.IsInf(float64(s), 0) }) {
		return nil, false
	}
	from := min(r.From, len(places))
	places = places[from : from+min(r.Size, len(places)-from)]
	f.scores = make([]float32, len(places))
	page = make([]expand.Hit, len(places))
	for k, i := range places {
		page[k], f.scores[k] = f.Hits[i], written[i]
		if byText && i < n {
			f.reasons = append(f.reasons, expand.HitReason{
				Index: f.Hits[i].Index, ID: f.Hits[i].ID, Place: slices.Index(before, i) + 1, Score: float64(had[i]),
				Cosine: scores[i].Cosine, Weight: r.TextWeight, Unknown: scores[i].NoVector,
			})
		}
	}
	if n > 0 {
		f.best = slices.Max(written[:n])
	}
	return page, true
}

func all(hits []int, are func(i int) bool) bool {
	return !slices.ContainsFunc(hits, func(i int) bool { return !are(i) })
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// softBlend returns the b of [Frame.Order] for each hit of the window, and sets
// the scores that are written.
func (f *Frame) softBlend(scores []expand.HitScore, written []float32) []float64 {
	w := f.Rerank.SoftWeight
	bestSum, bestSoft := 0.0, 0.0
	sums := make([]float64, len(scores))
	for i, s := range scores {
		sums[i] = s.Sum
		if f.Rerank.Sums == nil {
			sums[i] = f.engine[i]
		}
		bestSum, bestSoft = max(bestSum, sums[i]), max(bestSoft, s.Soft)
	}
	lowest, highest := f.engineRange()
	blended := make([]float64, len(scores))
	for i, s := range scores {
		if bestSum > 0 {
			blended[i] = (1 - w) * sums[i] / bestSum
		}
		if bestSoft > 0 {
			blended[i] += w * s.Soft / bestSoft
		}
		written[i] = float32(max(lowest, min(highest, highest*blended[i])))
		if w == 1 {
			written[i] = float32(s.Soft)
		}
	}
	return blended
}

// engineRange returns the engine's lowest and highest score in the window. The
// highest is at least 0.
func (f *Frame) engineRange() (lowest, highest float64) {
	for i, e := range f.engine[:len(f.Window())] {
		highest = max(highest, e)
		if i == 0 || e < lowest {
			lowest = e
		}
	}
	return lowest, highest
}

// inRange sets the scores that are written to values moved into the engine's
// range.
func (f *Frame) inRange(written []float32, values []float64) {
	lowest, highest := f.engineRange()
	least, most := slices.Min(values), slices.Max(values)
	for i, v := range values {
		written[i] = float32(highest)
		if most > least {
			written[i] = float32(lowest + (highest-lowest)*(v-least)/(most-least))
		}
	}
}

// sortPlaces sorts numbers of hits by values, the largest first. Those that
// keep their places stay where they are.
func sortPlaces(places []int, values []float64, keep func(i int) bool) {
	kept := slices.Clone(places)
	places = places[:0]
	for _, i := range kept {
		if !keep(i) {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	for k, i := range kept {
		if keep(i) {
			places = slices.Insert(places, k, i)
		}
	}
}

// passOn gives hits that keep their places the value of the hit before them, or
// the largest one.
func passOn[T cmp.Ordered](places []int, values []T, keep func(i int) bool) {
	for k, i := range places {
		switch {
		case keep(i) && k > 0:
			values[i] = values[places[k-1]]
		case keep(i):
			values[i] = slices.Max(values[:len(places)])
		}
	}
}

// Reasons explain the hits of a page that vectors of a language model
// ordered; there are none for another page.
func (f *Frame) Reasons() []expand.HitReason { return f.reasons }

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
