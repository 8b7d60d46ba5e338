package report

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

// Outcomes of a search.
const (
	Rewritten  = "rewritten"   // sent with added terms
	Unchanged  = "unchanged"   // left alone
	FailedOpen = "failed_open" // sent as it came, because something failed
)

// NotRemembered is why akin did not put hits in order, see [expand.ModeAuto].
const NotRemembered = string(reason.NotRemembered)

// Limits of what is kept.
const (
	// MaxKept is some seconds of searches on a busy proxy.
	MaxKept = 1000
	// maxBytes is what MaxKept searches of 2 KiB take, before and after.
	maxBytes = 8 << 20
	// maxBody is the largest body that is kept: a larger one would drive out
	// hundreds of others.
	maxBody = 64 << 10
	// maxClauseBytes is for all clauses of a search; one with 30 added terms takes
	// about 4 KiB. A client can search in thousands of fields.
	maxClauseBytes = 68 << 10
	// maxText is longer than words and field names are. A client can search for a
	// word of a megabyte.
	maxText = 256
	// maxHits is how many hits are explained.
	maxHits = 20
	// cutMark replaces the rest of a text.
	cutMark = "…"
)

// A Record is the content of a search's explanation.
type Record struct {
	Endpoint expand.Endpoint
	Index    string
	Profile  string
	Trial    string        // or ""
	Arm      string        // of the trial
	Took     time.Duration // of akin's own work
	// Original is the search as it came; Packed says that its body is gzip.
	Original Message
	Packed   bool
	// Result is nil if it failed open because of Cause. Reason is why it is
	// unchanged.
	Result *expand.Result
	Reason string
	Cause  string
	// AsItCame says that it is sent as it came, in a dry run or shadow mode.
	AsItCame bool
	// Refused says that the cluster rejected the rewritten search. Reranked has
	// the outcome for each search, "" if it was not to be reranked. Uncut says
	// that there was no page to put in: the client got the original's answer.
	Refused  bool
	Reranked []string
	Uncut    bool
	// Ordered explains the first hits that vectors of a language model ordered.
	Ordered []expand.HitReason
	// Found has how many hits each search itself has, -1 if that is not known; it
	// is nil where no search had to find enough.
	Found []int64
}

// A Message is the part of a request that is rewritten.
type Message struct {
	RawQuery string
	Body     []byte
}

// An entry is what is kept of one search. It is constant.
type entry struct {
	id string
	// details is the JSON of the [Explanation] without bodies and clauses, clauses
	// that of the clauses.
	details, clauses []byte
	// original and rewritten are bodies as they were sent, nil if they are too
	// large. packed says that the original is gzip.
	original, rewritten []byte
	packed              bool
}

// size returns the bytes that an entry keeps alive.
func (e *entry) size() int {
	return len(e.details) + len(e.clauses) + cap(e.original) + cap(e.rewritten)
}

// keepMessage returns a message without its body, and the body if it is kept.
func keepMessage(m Message) (ShownMessage, []byte) {
	kept := ShownMessage{RawQuery: m.RawQuery, Size: len(m.Body)}
	if cap(m.Body) > maxBody { // the bytes behind the length are kept alive, too
		return kept, nil
	}
	return kept, m.Body
}

// keep returns the entry of a search.
func keep(s *Record) *entry {
	e := &entry{id: rand.Text(), packed: s.Packed}
	all := Explanation{Summary: Summary{
		ID: e.id, Time: time.Now().UTC(), Endpoint: endpoints[s.Endpoint], Index: s.Index, Profile: s.Profile, Trial: s.Trial, Arm: s.Arm,
		Outcome: FailedOpen, Cause: s.Cause, TookMillis: milliseconds(s.Took), Sent: sentOriginal, Refused: s.Refused, Reranked: rerankedOf(s), Matching: matchingOf(s),
	}}
	all.Original, e.original = keepMessage(s.Original)
	for _, hit := range s.Ordered[:min(len(s.Ordered), maxHits)] {
		hit.Index, hit.ID = clipped(hit.Index), clipped(hit.ID)
		all.Hits = append(all.Hits, hit)
	}
	if res := s.Result; res != nil {
		all.AddedTerms = res.AddedTerms()
		for _, failure := range res.Failures() { // at most one for each search of the request
			all.Failures = append(all.Failures, clipped(failure.Error()))
		}
		e.clauses, all.Cut = keepClauses(res.Clauses)
		if res.Rewritten {
			all.Outcome = Rewritten
			all.Rewritten = new(ShownMessage)
			*all.Rewritten, e.rewritten = keepMessage(Message{res.RawQuery, res.Body})
			if !s.AsItCame && !s.Refused && !s.Uncut {
				all.Sent = sentRewritten
			}
		} else {
			all.Outcome, all.Reason = Unchanged, clipped(s.Reason)
		}
	}
	e.details, _ = jsonv2.Marshal(&all, jsontext.AllowInvalidUTF8(true)) // texts and numbers always encode
	return e
}

// keepClauses returns the JSON of clauses, at most maxClauseBytes, and how many
// are missing or without terms.
func keepClauses(clauses []expand.Explanation) (kept []byte, cut int) {
	var all clauseBuffer
	_ = all.WriteByte('[') // which cannot fail
	for i := range clauses {
		c := &clauses[i]
		if all.add(c) {
			continue
		}
		cut++
		if !all.add(&expand.Explanation{
			Path: c.Path, Field: c.Field, Indices: c.Indices, Matrix: c.Matrix, Model: c.Model, Form: c.Form, Phase: c.Phase, Effort: c.Effort, Reason: c.Reason,
		}) {
			cut += len(clauses) - i - 1
			break
		}
	}
	return bytes.Clone(append(bytes.TrimSuffix(all.Bytes(), []byte(",")), ']')), cut
}

// A clauseBuffer takes the JSON of clauses, up to maxClauseBytes.
type clauseBuffer struct{ bytes.Buffer }

// add adds a clause with short texts. It returns false if there is no room, and
// then does not encode the rest.
func (b *clauseBuffer) add(c *expand.Explanation) bool {
	before := b.Len()
	if err := jsonv2.MarshalWrite(b, c, shortTexts, jsontext.AllowInvalidUTF8(true)); err != nil {
		b.Truncate(before)
		return false
	}
	_ = b.WriteByte(',')
	return true
}

var errFull = errors.New("no room for the clause")

// Write implements [io.Writer].
func (b *clauseBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) >= maxClauseBytes { // a comma or bracket follows
		return 0, errFull
	}
	return b.Buffer.Write(p)
}

var shortTexts = jsonv2.WithMarshalers(jsonv2.MarshalToFunc(func(to *jsontext.Encoder, s string) error {
	if len(s) <= maxText {
		return errors.ErrUnsupported // as usual
	}
	return to.WriteToken(jsontext.String(clipped(s)))
}))

// clipped returns the part of s that is kept.
func clipped(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-len(cutMark)], "") + cutMark
}

// explanation returns the explanation of e without bodies.
func (e *entry) explanation() (all Explanation) {
	_ = jsonv2.Unmarshal(e.details, &all) // keep has encoded it
	_ = jsonv2.Unmarshal(e.clauses, &all.Clauses)
	return all
}

// A Ring keeps the last searches. The zero Ring is ready for concurrent use.
type Ring struct {
	mu   sync.Mutex
	kept []*entry // oldest first
	size int      // of all, in bytes
}

// Add keeps a search in place of old ones. It returns "" if it is too large.
func (x *Ring) Add(s *Record) (id string) {
	e := keep(s)
	size := e.size()
	if size > maxBytes {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.kept) == MaxKept || len(x.kept) > 0 && x.size+size > maxBytes {
		x.size -= x.kept[0].size()
		x.kept[0] = nil
		x.kept = x.kept[1:]
	}
	x.kept = append(x.kept, e)
	x.size += size
	return e.id
}

// find returns the entry with an id, or nil.
func (x *Ring) find(id string) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.kept {
		if e.id == id {
			return e
		}
	}
	return nil
}

// Last returns summaries of the last searches, at most n, newest first.
func (x *Ring) Last(n int) []Summary {
	x.mu.Lock()
	kept := slices.Clone(x.kept[len(x.kept)-min(n, len(x.kept)):])
	x.mu.Unlock()
	all := make([]Summary, 0, len(kept))
	for _, e := range slices.Backward(kept) {
		found := e.explanation()
		found.Text = textOf(found.Clauses)
		all = append(all, found.Summary)
	}
	return all
}

// textOf returns the words of the first clause that has some, as they were
// written if that is known.
func textOf(clauses []expand.Explanation) string {
	for _, c := range clauses {
		words := slices.Clone(c.Terms)
		for k := range min(len(words), len(c.Written)) {
			words[k] = cmp.Or(c.Written[k], words[k])
		}
		if len(words) > 0 {
			return clipped(strings.Join(words, " "))
		}
	}
	return ""
}

// Find returns the explanation of a search, or false if it is not kept. unpack
// decompresses gzip, or returns nil.
func (x *Ring) Find(id string, unpack func([]byte) []byte) (all Explanation, ok bool) {
	e := x.find(id)
	if e == nil {
		return all, false
	}
	all = e.explanation()
	original := e.original
	if e.packed && original != nil {
		original = unpack(original)
	}
	all.Original.show(original)
	if all.Rewritten != nil {
		all.Rewritten.show(e.rewritten)
	}
	return all, true
}

// matchingOf returns [Summary.Matching].
func matchingOf(s *Record) string {
	if s.Result == nil {
		return ""
	}
	var all []string
	for k := range s.Result.Parts {
		text := s.Result.Parts[k].How
		if text == "" {
			continue
		}
		if k < len(s.Found) && s.Found[k] >= 0 {
			text += ": finds " + strconv.FormatInt(s.Found[k], 10) + " itself"
		}
		if len(s.Result.Parts) > 1 {
			text = "[" + strconv.Itoa(k) + "] " + text
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// rerankedOf returns [Summary.Reranked].
func rerankedOf(s *Record) string {
	var all []string
	for k, result := range s.Reranked {
		if result != "" && s.Endpoint == expand.EndpointMultiSearch {
			result = "[" + strconv.Itoa(k) + "] " + result
		}
		if result != "" {
			all = append(all, result)
		}
	}
	return strings.Join(all, ", ")
}

// Forms returns the words that people write for terms of a matrix, and notes on
// where expressions come from, by term. It omits terms that are written as they
// are.
type Forms func(ctx context.Context, matrix string, terms []string) (words, notes map[string]string)

// patience limits the look-up of all words that are shown at once.
const patience = 2 * time.Second

// Show returns clauses with the words of all their terms in place of Written,
// and the sources of alternatives in place of their keys. Forms may be nil.
func Show(ctx context.Context, clauses []expand.Explanation, forms Forms) []expand.Explanation {
	shown := make([]expand.Explanation, len(clauses))
	terms := map[string]map[string]bool{} // by matrix, as words and notes are
	words, notes := map[string]map[string]string{}, map[string]map[string]string{}
	for i, c := range clauses {
		c.Added = slices.Clone(c.Added)
		c.LeftOut = slices.Clone(c.LeftOut)
		c.Feedback = slices.Clone(c.Feedback)
		c.Nearest = slices.Clone(c.Nearest)
		c.Alternatives = slices.Clone(c.Alternatives)
		shown[i] = c
		of := terms[c.Matrix]
		if of == nil {
			of = map[string]bool{}
			terms[c.Matrix] = of
		}
		for _, term := range c.Terms {
			of[term] = true
		}
		eachListed(&c, func(term string, _ *string) { of[term] = true })
		for _, a := range c.Alternatives {
			of[a.Key], of[a.ForKey] = true, true
		}
	}
	delete(terms, "") // clauses without a matrix
	if forms != nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for matrix, of := range terms {
			words[matrix], notes[matrix] = forms(ctx, matrix, slices.Sorted(maps.Keys(of)))
		}
	}
	for i := range shown {
		c := &shown[i]
		of := words[c.Matrix]
		c.Words = wordsOfText(c, of)
		c.Written = nil
		eachListed(c, func(term string, word *string) { *word = of[term] })
		for k := range c.Alternatives {
			a := &c.Alternatives[k]
			a.Word = of[a.Key]
			a.Source = cmp.Or(notes[c.Matrix][a.Key], notes[c.Matrix][a.ForKey]) // either side may be the expression
			a.Key, a.ForKey = "", ""
		}
	}
	return shown
}

// eachListed calls f with each term that was added, left out, taken from hits
// or is the nearest known one, and with its word to set.
func eachListed(c *expand.Explanation, f func(term string, word *string)) {
	for k := range c.Added {
		f(c.Added[k].Term, &c.Added[k].Word)
	}
	for k := range c.LeftOut {
		f(c.LeftOut[k].Term, &c.LeftOut[k].Word)
	}
	for k := range c.Nearest {
		f(c.Nearest[k].Known, &c.Nearest[k].Word)
	}
	for k := range c.Feedback {
		f(c.Feedback[k].Term, &c.Feedback[k].Word)
	}
}

// wordsOfText returns the words of the terms of a clause's text, as written
// there or else as people write them.
func wordsOfText(c *expand.Explanation, of map[string]string) map[string]string {
	words := map[string]string{}
	for k, term := range c.Terms {
		word := of[term]
		if k < len(c.Written) {
			word = cmp.Or(c.Written[k], word)
		}
		if word != "" && word != term {
			words[term] = word
		}
	}
	return words
}

// endpoints are the names of endpoints on the admin port.
var endpoints = map[expand.Endpoint]string{
	expand.EndpointSearch:      "search",
	expand.EndpointMultiSearch: "msearch",
	expand.EndpointCount:       "count",
	expand.EndpointValidate:    "validate",
	expand.EndpointExplain:     "explain",
	expand.EndpointRankEval:    "rank_eval",
}

// Endpoint returns the endpoint with a name; "" is a search.
func Endpoint(name string) (expand.Endpoint, bool) {
	for e, n := range endpoints {
		if n == name {
			return e, true
		}
	}
	return expand.EndpointSearch, name == ""
}

// Values of [Summary.Sent].
const (
	sentOriginal  = "original"
	sentRewritten = "rewritten"
)

// A Summary is a search in a list.
type Summary struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	Endpoint string    `json:"endpoint"`
	Index    string    `json:"index"`
	// Text is the text of the first analyzed clause; it is set only in lists.
	Text       string  `json:"text,omitempty"`
	Profile    string  `json:"profile,omitempty"`
	Outcome    string  `json:"outcome"`
	Reason     string  `json:"reason,omitempty"`
	Cause      string  `json:"cause,omitempty"`
	AddedTerms int     `json:"added_terms"`
	TookMillis float64 `json:"took_ms"`
	// Trial and Arm are the trial of the search and its arm.
	Trial string `json:"trial,omitempty"`
	Arm   string `json:"arm,omitempty"`
	// Sent says to which search the client got the answer: original or rewritten.
	Sent    string `json:"sent"`
	Refused bool   `json:"rejected,omitempty"`
	// Reranked has the outcome of reranking, a result of the metric
	// akin_reranked_total, or of several searches "[0] reranked, [2] budget".
	Reranked string `json:"reranked,omitempty"`
	// Matching says what the added words do, "ordered", "widened" or "exact", and
	// with matching: auto how many hits the search itself has: "ordered: finds 310
	// itself", or of several searches "[0] widened: finds 7 itself, [1] exact".
	Matching string `json:"matching,omitempty"`
}

// A ShownMessage is a message in an explanation.
type ShownMessage struct {
	RawQuery string          `json:"raw_query"`
	Body     json.RawMessage `json:"body,omitempty"`
	// Size is the size of a body that was too large to keep.
	Size int `json:"body_size,omitempty"`
}

// An Explanation is all that is kept of a search.
type Explanation struct {
	Summary

	Original  ShownMessage         `json:"original"`
	Rewritten *ShownMessage        `json:"rewritten,omitempty"`
	Failures  []string             `json:"failures,omitempty"`
	Clauses   []expand.Explanation `json:"clauses"`
	// Hits are the first 20 that vectors of a language model ordered, in the order
	// that the client got, of all searches of the request.
	Hits []expand.HitReason `json:"hits,omitempty"`
	// Cut is the number of clauses that are missing or without their terms.
	Cut int `json:"clauses_cut,omitempty"`
}

// show puts the body in, if there is one.
func (m *ShownMessage) show(body []byte) {
	if body != nil {
		m.Body, m.Size = Body(body), 0
	}
}

// Body returns a body for an answer, as a string if it is not JSON.
func Body(body []byte) json.RawMessage {
	if len(body) == 0 || json.Valid(body) {
		return body
	}
	text, _ := json.Marshal(string(body)) // strings always encode
	return text
}
