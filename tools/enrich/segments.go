package enrich

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
)

// A Filling says how to cut texts of documents, and where to store the
// segments.
type Filling struct {
	Cut

	// Field is the full name of the text field. Source is the field in the
	// documents that has its text, which differs for a multi-field.
	Field, Source string
	// Path is the full name of the nested field for the segments.
	Path string
	// Limit is how many segments a document may have.
	Limit int
}

// StampPath is the full name of the keyword that says which text a document's
// segments come from, and how it was cut.
func (f *Filling) StampPath() string { return f.Path + "_by" }

// Stamp is the value of that keyword, such as "body:paragraphs".
func (f *Filling) Stamp() string { return f.Field + ":" + f.String() }

// blankStamp is its value for a text without segments. A document with Stamp
// and no segments has lost them.
func (f *Filling) blankStamp() string { return f.Stamp() + ":blank" }

// below returns an object with segments and stamp at the end of a path. Each
// object on the path has the next one in its member inside, unless that is "".
func below(path, inside string, segments, stamp any) object {
	name, rest, deeper := strings.Cut(path, ".")
	switch {
	case !deeper:
		return object{name: segments, name + "_by": stamp}
	case inside == "":
		return object{name: below(rest, inside, segments, stamp)}
	default:
		return object{name: object{inside: below(rest, inside, segments, stamp)}}
	}
}

// Task returns the task that stores segments in the documents with the field.
// Documents with segments of this text and cut are done. Segments do not show
// that a partial update changed the text since. Documents without text get only
// a stamp, and count as empty. All documents include those whose text is gone,
// so that their segments are removed.
func (f *Filling) Task() Task {
	filled := object{"nested": object{"path": f.Path, "ignore_unmapped": true, "query": esclient.ExistsQuery(f.Path + ".godwin")}}
	return Task{
		Stage: "cutting texts", Field: f.Field, Fill: f.fill, Scan: documents.RefOptions{Text: f.Source},
		Done: []object{
			{"bool": object{"filter": []object{Stamped(f.StampPath(), f.Stamp()), filled}}}, Stamped(f.StampPath(), f.blankStamp()),
		},
		Stale: object{"prefix": object{f.StampPath(): object{"value": f.Field + ":"}}},
	}
}

// fill is the [Fill] of the task. A segment has its text, its position i, from
// 1, and two shares in (0, 1]: that of the words of all segments, and as godwin
// that of the sum of 1/i of all segments.
func (f *Filling) fill(_ context.Context, docs []documents.DocRef) ([]Part, error) {
	parts := make([]Part, len(docs))
	for i := range docs {
		all, err := f.Texts(docs[i].Texts, f.Limit)
		if err != nil {
			parts[i].Result = documents.UpdateResult{Status: documents.Refused, Err: err}
			continue
		}
		total := 0
		harmonic := 0.0
		stamp := f.Stamp()
		for k, s := range all {
			total += s.Words
			harmonic += 1 / float64(k+1)
		}
		if len(all) == 0 {
			stamp = f.blankStamp()
		}
		list := make([]object, len(all))
		for k, s := range all {
			list[k] = object{
				"text": s.Text, "position": k + 1, "share": float32(s.Words) / float32(total), "godwin": float32(1 / float64(k+1) / harmonic),
			}
		}
		parts[i] = newPart(below(f.Path, "", list, stamp), len(all) == 0)
	}
	return parts, nil
}

// Check sets Source, and lowers Limit to that of the index, by the mapping and
// the settings of an index. It returns what the mapping lacks for the segments
// as the body of a request, or nil. The error says what an index cannot change,
// or that its documents have the text under another name than Source, if that
// is set.
func (f *Filling) Check(i *mapping.Inspection) (lacking []byte, err error) {
	if f.Source != "" && f.Source != i.Source {
		return nil, fmt.Errorf("index %q: its documents have the text of %s under the name %s, and those of other indices under %s: name the indices one by one",
			i.Index, f.Field, i.Source, f.Source)
	}
	f.Source = i.Source
	limit := 10_000 // the default of both engines
	if text := i.Settings.Text(LimitSetting); text != "" {
		if limit, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("index %q: %s is %q", i.Index, LimitSetting, text)
		}
	}
	if f.Limit == 0 || limit < f.Limit {
		f.Limit = limit
	}
	find := func(name string) *mapping.Property {
		p, findErr := mapping.Find(i.Properties, name)
		err = errors.Join(err, findErr)
		return p
	}
	own := find(f.Field)
	at := find(f.Path)
	stamp := find(f.StampPath())
	members := object{} // missing in the mapping
	// Of the allowed types of a member, a new mapping gets the first.
	fractions := []string{"float", "double", "half_float"}
	for name, types := range map[string][]string{
		"text": {"text"}, "position": {"integer", "short", "long"}, "share": fractions, "godwin": fractions,
	} {
		switch p := find(f.Path + "." + name); {
		case p == nil:
			members[name] = object{"type": types[0]}
		case !slices.Contains(types, p.Type) || string(p.Index) == "false":
			err = errors.Join(err, fmt.Errorf("%s.%s is mapped as %s, but must be an indexed %s: choose another --path", f.Path, name, p.TypeName(), types[0]))
		}
	}
	switch {
	case at != nil && at.Type != "nested":
		err = errors.Join(err, fmt.Errorf("%s is mapped as %s, and segments need a field that is nested, which cannot be changed in an index: "+
			"name another one with --path", f.Path, at.TypeName()))
	case at != nil && at.Nested != "":
		err = errors.Join(err, fmt.Errorf("%s is in the nested documents of %s, but segments must be in the whole document: choose another --path",
			f.Path, at.Nested))
	case stamp != nil && stamp.Type != "keyword":
		err = errors.Join(err, fmt.Errorf("%s is mapped as %s, but must be a keyword: choose another --path", f.StampPath(), stamp.TypeName()))
	}
	if err = errors.Join(err, f.refuseShared(find)); err != nil {
		return nil, fmt.Errorf("index %q: %w", i.Index, err)
	}
	if at != nil && stamp != nil && len(members) == 0 {
		return nil, nil
	}
	if text, ok := members["text"].(object); ok {
		for name, value := range map[string]string{"analyzer": own.Analyzer, "search_analyzer": own.SearchAnalyzer, "similarity": own.Similarity} {
			if value != "" {
				text[name] = value
			}
		}
	}
	return encode(object{"properties": below(f.Path, "properties", object{"type": "nested", "properties": members}, object{"type": "keyword"})})
}

// refuseShared returns an error if an object above the nested field has other
// fields. Documents may have a list of such objects, which a partial update
// would replace by one object with segments.
func (f *Filling) refuseShared(find func(name string) *mapping.Property) error {
	for i := range f.Path {
		if f.Path[i] != '.' {
			continue
		}
		above := find(f.Path[:i])
		if above == nil {
			return nil
		}
		for key := range above.Properties {
			if name := f.Path[:i+1] + key; name != f.Path && name != f.StampPath() && !strings.HasPrefix(f.Path, name+".") {
				return fmt.Errorf("%s has other fields, such as %s: if documents have a list of it, segments would replace that list; choose another --path",
					f.Path[:i], name)
			}
		}
	}
	return nil
}

// The ways to cut a text. Segments have no white space at their ends, and are
// not empty.
const (
	// Paragraphs end at a blank line, or at the character U+2029.
	Paragraphs = "paragraphs"
	// Sentences are those of Unicode Standard Annex #29 within a paragraph. A
	// single line break counts as a space, because many texts are wrapped.
	Sentences = "sentences"
	// Windows have a fixed number of words. Each begins before the end of the
	// previous one.
	Windows = "windows"
)

// MaxWords is the length of the longest window.
const MaxWords = 100_000

// A Cut is a way to cut texts.
type Cut struct {
	By string // one of the constants
	// Words is the length of a window. Overlap is how many of its words are also
	// in the next one. Both are 0 for other ways. A word is a text between white
	// space.
	Words, Overlap int
}

// Validate reports all problems.
func (c Cut) Validate() error {
	switch c.By {
	case Windows:
		var errs []error
		if c.Words < 1 || c.Words > MaxWords {
			errs = append(errs, fmt.Errorf("windows: %d words not in 1 to %d", c.Words, MaxWords))
		}
		if c.Overlap < 0 || c.Overlap > c.Words/2 {
			errs = append(errs, fmt.Errorf("windows: an overlap of %d not in 0 to half of %d words", c.Overlap, c.Words))
		}
		return errors.Join(errs...)
	case Paragraphs, Sentences:
		if c.Words != 0 || c.Overlap != 0 {
			return fmt.Errorf("only %s have a number of words and an overlap, not %s", Windows, c.By)
		}
		return nil
	}
	return fmt.Errorf("texts can be cut by %s, %s or %s, not by %q", Paragraphs, Sentences, Windows, c.By)
}

// ParseCut parses a way in the form of [Cut.String]. Windows without numbers
// have 200 words and an overlap of 50.
func ParseCut(text string) (Cut, error) {
	by, numbers, given := strings.Cut(text, ":")
	c := Cut{By: by}
	if by == Windows {
		c.Words, c.Overlap = 200, 50
	}
	if given {
		words, overlap, _ := strings.Cut(numbers, ":")
		var errs [2]error
		c.Words, errs[0] = strconv.Atoi(words)
		c.Overlap, errs[1] = strconv.Atoi(overlap)
		if err := errors.Join(errs[:]...); err != nil {
			return c, fmt.Errorf("%q is not %s:WORDS:OVERLAP", text, Windows)
		}
	}
	return c, c.Validate()
}

// String returns the way as one word, such as "windows:200:50".
func (c Cut) String() string {
	if c.By == Windows {
		return fmt.Sprintf("%s:%d:%d", c.By, c.Words, c.Overlap)
	}
	return c.By
}

// A Segment is a non-empty part of a text, with its number of words.
type Segment struct {
	Text  string
	Words int
}

// LimitSetting is the index setting for the largest number of nested documents
// in a document.
const LimitSetting = "index.mapping.nested_objects.limit"

// ErrTooMany means that a text has more segments than a document may have.
var ErrTooMany = errors.New("too many segments")

// Texts cuts texts one by one, and returns their segments in order. The error
// wraps [ErrTooMany] if there are more than limit.
func (c Cut) Texts(texts []string, limit int) ([]Segment, error) {
	var all []Segment
	n := 0
	for _, text := range texts {
		c.each(text, func(s Segment) {
			if n++; n <= limit {
				all = append(all, s)
			}
		})
	}
	if n > limit {
		return nil, fmt.Errorf("%w: %d, and the index allows %d in a document; cut larger windows, or raise its setting %s",
			ErrTooMany, n, limit, LimitSetting)
	}
	return all, nil
}

func (c Cut) each(text string, fn func(Segment)) {
	if c.By != Sentences {
		pieces(text, c.Words, c.Words-c.Overlap, fn)
		return
	}
	oneLine := strings.NewReplacer("\n", " ", "\r", " ") // keeps the length
	pieces(text, 0, 0, func(paragraph Segment) {
		rest, state := oneLine.Replace(paragraph.Text), -1
		for at := 0; rest != ""; {
			var sentence string
			sentence, rest, state = uniseg.FirstSentenceInString(rest, state)
			if own := strings.TrimSpace(paragraph.Text[at : at+len(sentence)]); own != "" {
				fn(Segment{own, len(strings.Fields(own))})
			}
			at += len(sentence)
		}
	})
}

// pieces calls fn with the windows of a text, which have size words and begin
// every step words. With size 0 it calls fn with the paragraphs.
func pieces(text string, size, step int, fn func(Segment)) {
	var starts []int // of the open segments
	words := 0       // since the first open segment
	done := 0        // words up to the last end
	end := 0         // offset of the last word's end
	for w := range wordsOf(text) {
		if size == 0 && w.breaks > 1 && words > 0 {
			fn(Segment{text[starts[0]:end], words})
			starts, words = nil, 0
		}
		if words == 0 || size > 0 && words%step == 0 {
			starts = append(starts, w.start)
		}
		words++
		end = w.end
		if size > 0 && words >= size && (words-size)%step == 0 {
			fn(Segment{text[starts[0]:end], size})
			starts, done = starts[1:], words
		}
	}
	if words > done {
		fn(Segment{text[starts[0]:end], words - max(done-size+step, 0)})
	}
}

// A word is the position of a word in a text, and the number of line breaks
// before it.
type word struct{ start, end, breaks int }

func wordsOf(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		for at := 0; ; {
			rest := strings.TrimLeftFunc(text[at:], unicode.IsSpace)
			if rest == "" {
				return
			}
			w := word{start: len(text) - len(rest), end: len(text)}
			w.breaks = breaks(text[at:w.start])
			if n := strings.IndexFunc(rest, unicode.IsSpace); n >= 0 {
				w.end = w.start + n
			}
			at = w.end
			if !yield(w) {
				return
			}
		}
	}
}

// breaks counts the line breaks in white space. A paragraph separator counts as
// two.
func breaks(space string) int {
	return strings.Count(space, "\n") + strings.Count(space, "\r") - strings.Count(space, "\r\n") + 2*strings.Count(space, "\u2029")
}
