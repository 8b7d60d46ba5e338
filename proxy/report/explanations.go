package report

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

// Outcomes of a search.
const (
	Rewritten  = "rewritten"   // sent with added terms
	Unchanged  = "unchanged"   // left alone
	FailedOpen = "failed_open" // sent as it came, because something failed
)

// Limits of what is kept.
const (
	// MaxKept is some seconds of searches on a busy proxy.
	MaxKept = 1000
	// maxBytes is what MaxKept searches of 2 KiB take, before and after.
	maxBytes = 8 << 20
	// maxBody is the largest body that is kept: a larger one would drive out
	// hundreds of others.
	maxBody = 64 << 10
	// entryBytes is the memory of an entry, its id and its rewritten message;
	// textBytes that of a string in a list. What they point to comes on top.
	entryBytes = 512
	textBytes  = 16
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
}

// A Message is the part of a request that is rewritten.
type Message struct {
	RawQuery string
	Body     []byte
}

// An entry is what is kept of one search, bodies as they were sent. It is
// constant.
type entry struct {
	Explanation

	packed bool // the original is gzip
	size   int  // its memory, approximately
}

func keepMessage(m Message) ShownMessage {
	kept := ShownMessage{RawQuery: strings.Clone(m.RawQuery), Size: len(m.Body)} // a copy: it is a part of the request line
	if cap(m.Body) <= maxBody {                                                  // the bytes behind the length are kept alive, too
		kept.Body = m.Body
	}
	return kept
}

// keep returns the entry of a search.
func keep(s *Record) *entry {
	e := &entry{packed: s.Packed, size: entryBytes}
	e.Original = keepMessage(s.Original)
	e.Summary = Summary{
		ID: rand.Text(), Time: time.Now().UTC(), Endpoint: endpoints[s.Endpoint], Index: strings.Clone(s.Index), Profile: strings.Clone(s.Profile), Trial: s.Trial, Arm: s.Arm,
		Outcome: FailedOpen, Cause: s.Cause, TookMillis: float64(s.Took.Microseconds()) / 1000, Sent: sentOriginal, Refused: s.Refused, Reranked: rerankedOf(s),
	}
	texts := []string{e.Index, e.Profile, e.Cause, e.Reranked, e.Original.RawQuery}
	if res := s.Result; res != nil {
		e.AddedTerms = res.AddedTerms()
		for _, failure := range res.Failures() { // at most one for each search of the request
			e.Failures = append(e.Failures, strings.Clone(clipped(failure.Error())))
		}
		var size int
		e.Clauses, size, e.Cut = keepClauses(res.Clauses)
		e.size += size
		if e.Outcome = Unchanged; res.Rewritten {
			rewritten := keepMessage(Message{res.RawQuery, res.Body})
			e.Outcome, e.Rewritten = Rewritten, &rewritten
			e.size += cap(rewritten.Body)
			texts = append(texts, rewritten.RawQuery)
			if !s.AsItCame && !s.Refused && !s.Uncut {
				e.Sent = sentRewritten
			}
		} else {
			e.Reason = strings.Clone(clipped(s.Reason))
		}
	}
	for _, text := range append(append(texts, e.Reason), e.Failures...) {
		e.size += textBytes + len(text)
	}
	e.size += cap(e.Original.Body)
	return e
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
	if e.size > maxBytes {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.kept) == MaxKept || len(x.kept) > 0 && x.size+e.size > maxBytes {
		x.size -= x.kept[0].size
		x.kept[0] = nil
		x.kept = x.kept[1:]
	}
	x.kept = append(x.kept, e)
	x.size += e.size
	return e.ID
}

// find returns the entry with an id, or nil.
func (x *Ring) find(id string) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.kept {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// Last returns summaries of the last searches, at most n, newest first.
func (x *Ring) Last(n int) []Summary {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]Summary, min(n, len(x.kept)))
	for age := range all {
		e := x.kept[len(x.kept)-1-age]
		all[age] = e.Summary
		all[age].Text = textOf(e.Clauses)
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
	all = e.Explanation
	if body := all.Original.Body; e.packed && body != nil {
		all.Original.Body = unpack(body)
	}
	all.Original = all.Original.shown()
	if all.Rewritten != nil {
		rewritten := all.Rewritten.shown()
		all.Rewritten = &rewritten
	}
	all.Clauses = append([]expand.Explanation{}, all.Clauses...)
	return all, true
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

// Limits of what is kept of clauses: a client can search for a word of a
// megabyte, or in thousands of fields.
const (
	// maxText is longer than words and field names are.
	maxText = 256
	// maxClauseBytes is for all; a clause with 30 added terms takes about 4 KiB.
	maxClauseBytes = 68 << 10
	// Memory of a clause, of a term of its text and of an added term, without
	// their texts: the sizes of the structs, for a clause twice, because lists
	// grow by up to that.
	clauseBytes = 704
	termBytes   = 16
	addedBytes  = 88

	alternativeBytes, feedbackBytes = 128, 72
	// cutMark replaces the rest of a text.
	cutMark = "…"
)

// clipped returns the part of s that is kept.
func clipped(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-len(cutMark)], "") + cutMark
}

// eachText replaces each text of a clause by f's result.
func eachText(c *expand.Explanation, f func(s string) string) {
	c.Path, c.Field, c.Matrix, c.Model = f(c.Path), f(c.Field), f(c.Matrix), f(c.Model)
	c.Form, c.Phase = f(c.Form), f(c.Phase)
	c.Reason = reason.Reason(f(string(c.Reason)))
	for _, list := range [][]string{c.Terms, c.Written, c.NoRow, c.Indices} {
		for k := range list {
			list[k] = f(list[k])
		}
	}
	eachListed(c, func(term, other, _ *string) {
		if *term = f(*term); other != nil {
			*other = f(*other)
		}
	})
	for k := range c.Alternatives {
		a := &c.Alternatives[k]
		a.Term, a.ForKey, a.Found = f(a.Term), f(a.ForKey), f(a.Found)
	}
	for k := range c.Feedback {
		for i, document := range c.Feedback[k].Documents {
			c.Feedback[k].Documents[i] = f(document)
		}
	}
}

// ownLists gives a clause copies of its lists of terms.
func ownLists(c *expand.Explanation) {
	c.Added, c.LeftOut, c.Feedback, c.Nearest = slices.Clone(c.Added), slices.Clone(c.LeftOut), slices.Clone(c.Feedback), slices.Clone(c.Nearest)
	c.Alternatives = slices.Clone(c.Alternatives)
}

// keepClause returns a copy of a clause, its size and that of its texts. It
// does not copy lists that are larger than all clauses may be.
func keepClause(c expand.Explanation) (kept expand.Explanation, size, texts int) {
	size = clauseBytes + termBytes*(len(c.Terms)+len(c.Written)+len(c.NoRow)+len(c.Indices)) + addedBytes*(len(c.Added)+len(c.LeftOut)+len(c.Nearest)) +
		alternativeBytes*len(c.Alternatives)
	for k := range c.Feedback {
		size += feedbackBytes + textBytes*len(c.Feedback[k].Documents)
	}
	if size > maxClauseBytes {
		return c, size, 0
	}
	ownLists(&c)
	c.Terms, c.Indices, c.Written, c.NoRow = slices.Clone(c.Terms), slices.Clone(c.Indices), slices.Clone(c.Written), slices.Clone(c.NoRow)
	for k := range c.Feedback {
		c.Feedback[k].Documents = slices.Clone(c.Feedback[k].Documents)
	}
	eachText(&c, func(s string) string {
		texts += min(len(s), maxText)
		return s
	})
	return c, size + texts, texts
}

// keepClauses returns copies of clauses that keep nothing else alive, their
// size, at most maxClauseBytes, and how many are missing or without terms.
func keepClauses(clauses []expand.Explanation) (kept []expand.Explanation, size, cut int) {
	texts := 0
	for i := range clauses {
		c, n, t := keepClause(clauses[i])
		if size+n > maxClauseBytes {
			cut++
			c.Terms, c.Written, c.NoRow, c.Nearest, c.Added, c.LeftOut, c.Feedback, c.Alternatives = nil, nil, nil, nil, nil, nil, nil, nil
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
	var all strings.Builder // one allocation for all texts
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

// Forms returns the words that people write for terms of a matrix, and notes on
// where expressions come from, by term. It omits terms that are written as they
// are.
type Forms func(ctx context.Context, matrix string, terms []string) (words, notes map[string]string)

// patience limits the look-up of all words that are shown at once.
const patience = 2 * time.Second

// Show returns clauses with the words of all their terms, and the sources of
// alternatives. Forms may be nil.
func Show(ctx context.Context, clauses []expand.Explanation, forms Forms) []expand.Explanation {
	shown := make([]expand.Explanation, len(clauses))
	terms := map[string]map[string]bool{} // by matrix, as words and notes are
	words, notes := map[string]map[string]string{}, map[string]map[string]string{}
	for i, c := range clauses {
		ownLists(&c)
		shown[i] = c
		of := terms[c.Matrix]
		if of == nil {
			of = map[string]bool{}
			terms[c.Matrix] = of
		}
		for _, term := range c.Terms {
			of[term] = true
		}
		eachListed(&c, func(term, _, _ *string) { of[*term] = true })
		for _, a := range c.Alternatives {
			of[a.ForKey] = true
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
		for k := range c.Alternatives { // either side may be the expression
			a := &c.Alternatives[k]
			a.Source = cmp.Or(notes[c.Matrix][a.Key], notes[c.Matrix][a.ForKey])
		}
		c.Words = wordsOfText(c, of)
		eachListed(c, func(term, _, word *string) { *word = of[*term] })
	}
	return shown
}

// eachListed calls f with each term that was added, left out, taken from hits
// or is the nearest known one; with the term of the text it stands for, nil for
// terms from hits; and with its word to set.
func eachListed(c *expand.Explanation, f func(term, other, word *string)) {
	for k := range c.Added {
		f(&c.Added[k].Term, &c.Added[k].From, &c.Added[k].Word)
	}
	for k := range c.LeftOut {
		f(&c.LeftOut[k].Term, &c.LeftOut[k].From, &c.LeftOut[k].Word)
	}
	for k := range c.Alternatives {
		f(&c.Alternatives[k].Key, &c.Alternatives[k].For, &c.Alternatives[k].Word)
	}
	for k := range c.Nearest {
		f(&c.Nearest[k].Known, &c.Nearest[k].Term, &c.Nearest[k].Word)
	}
	for k := range c.Feedback {
		f(&c.Feedback[k].Term, nil, &c.Feedback[k].Word)
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
	// Cut is the number of clauses that are missing or without their terms.
	Cut int `json:"clauses_cut,omitempty"`
}

func (m ShownMessage) shown() ShownMessage {
	if m.Body != nil {
		m.Size = 0
	}
	m.Body = Body(m.Body)
	return m
}

// Body returns a body for an answer, as a string if it is not JSON.
func Body(body []byte) json.RawMessage {
	if len(body) == 0 || json.Valid(body) {
		return body
	}
	text, _ := json.Marshal(string(body)) // strings always encode
	return text
}
