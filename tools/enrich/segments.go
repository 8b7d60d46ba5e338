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

// A Filling says which texts of documents are cut how, and where the segments
// are put.
type Filling struct {
	Cut

	// Field is the full name of the text field, and Source the one that documents
	// have its text under: another one for a multi-field.
	Field, Source string
	// Path is the full name of the nested field for the segments.
	Path string
	// Limit is how many segments a document may have.
	Limit int
}

// StampPath is the full name of the keyword that says which text the segments
// of a document are of, and how it was cut.
func (f *Filling) StampPath() string { return f.Path + "_by" }

// Stamp is what that keyword has, such as "body:paragraphs".
func (f *Filling) Stamp() string { return f.Field + ":" + f.String() }

// blankStamp is what it has for a text without segments: a document that has
// Stamp and no segments has lost them.
func (f *Filling) blankStamp() string { return f.Stamp() + ":blank" }

// below returns an object with segments and stamp at the end of a path. Each
// object above has the next in its member inside, "" for none.
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

// Task returns the task of filling the documents that have the field, unless
// they have segments of this text that were cut so. A text that was changed by
// a partial update since cannot be known from its segments. Documents without
// text get a stamp only, and count as empty. Among all documents are those
// whose text is gone, so that their segments go, too.
func (f *Filling) Task() Task {
	filled := object{"nested": object{"path": f.Path, "ignore_unmapped": true, "query": esclient.ExistsQuery(f.Path + ".position")}}
	return Task{
		Stage: "cutting texts", Field: f.Field, Fill: f.fill, Scan: documents.RefOptions{Text: f.Source},
		Done: []object{
			{"bool": object{"filter": []object{Stamped(f.StampPath(), f.Stamp()), filled}}}, Stamped(f.StampPath(), f.blankStamp()),
		},
		Stale: object{"prefix": object{f.StampPath(): object{"value": f.Field + ":"}}},
	}
}

// fill is the [Fill] of the task. A segment has its text, its position, from 1,
// and its share of the words of all of them, in (0, 1].
func (f *Filling) fill(_ context.Context, docs []documents.DocRef) ([]Part, error) {
	parts := make([]Part, len(docs))
	for i := range docs {
		all, err := f.Texts(docs[i].Texts, f.Limit)
		if err != nil {
			parts[i].Result = documents.UpdateResult{Status: documents.Refused, Err: err}
			continue
		}
		total, stamp := 0, f.Stamp()
		for _, s := range all {
			total += s.Words
		}
		if len(all) == 0 {
			stamp = f.blankStamp()
		}
		list := make([]object, len(all))
		for k, s := range all {
			list[k] = object{"text": s.Text, "position": k + 1, "share": float32(s.Words) / float32(total)}
		}
		parts[i] = newPart(below(f.Path, "", list, stamp), len(all) == 0)
	}
	return parts, nil
}

// Check sets Source and, where the index takes fewer segments, Limit, by what
// the mapping and the settings of an index are. It returns what the mapping
// lacks for the segments, as the body of a request that puts it, nil for
// nothing. The error says what cannot be changed in the index, or that its
// documents have the text under another name than Source, where that is set.
func (f *Filling) Check(i *mapping.Inspection) (lacking []byte, err error) {
	if f.Source != "" && f.Source != i.Source {
		return nil, fmt.Errorf("index %q: its documents have the text of %s under the name %s, and those of other indices under %s: name the indices one by one",
			i.Index, f.Field, i.Source, f.Source)
	}
	f.Source = i.Source
	limit := 10_000 // of both engines by default
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
	own, at, stamp := find(f.Field), find(f.Path), find(f.StampPath())
	members := object{} // that the mapping lacks
	// Of the types that a member may have, the first is the one that a mapping is given.
	for name, types := range map[string][]string{
		"text": {"text"}, "position": {"integer", "short", "long"}, "share": {"float", "double", "half_float"},
	} {
		switch p := find(f.Path + "." + name); {
		case p == nil:
			members[name] = object{"type": types[0]}
		case !slices.Contains(types, p.Type) || string(p.Index) == "false":
			err = errors.Join(err, fmt.Errorf("%s.%s is mapped as %s, wanted is %s that is indexed: name another --path", f.Path, name, p.TypeName(), types[0]))
		}
	}
	switch {
	case at != nil && at.Type != "nested":
		err = errors.Join(err, fmt.Errorf("%s is mapped as %s, and segments need a field that is nested, which cannot be changed in an index: "+
			"name another one with --path", f.Path, at.TypeName()))
	case at != nil && at.Nested != "":
		err = errors.Join(err, fmt.Errorf("%s is in the nested documents of %s, and segments are those of a whole document: name another one with --path",
			f.Path, at.Nested))
	case stamp != nil && stamp.Type != "keyword":
		err = errors.Join(err, fmt.Errorf("%s is mapped as %s, wanted is a keyword: name another --path", f.StampPath(), stamp.TypeName()))
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

// refuseShared returns an error where an object above the nested field has
// other fields, too. Documents may have a list of such objects, and a partial
// update would put one with segments in its place.
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
				return fmt.Errorf("%s has other fields, such as %s: where documents have a list of it, segments would replace that; name another --path",
					f.Path[:i], name)
			}
		}
	}
	return nil
}

// The ways to cut a text. White space at the ends of a segment is left out, and
// so are segments of nothing else.
const (
	// Paragraphs end at a blank line, or at the character U+2029.
	Paragraphs = "paragraphs"
	// Sentences are those of Unicode Standard Annex #29 within a paragraph. A
	// single line break is a space to them, since many texts are wrapped.
	Sentences = "sentences"
	// Windows are of a fixed number of words, each beginning before the end of the
	// one before.
	Windows = "windows"
)

// MaxWords is the longest window.
const MaxWords = 100_000

// A Cut is a way to cut texts.
type Cut struct {
	By string // one of the constants
	// Words is the length of a window, and Overlap how many of its words the next
	// one has, too; both 0 for other ways. A word is what stands between white
	// space.
	Words, Overlap int
}

// Validate reports all that is wrong.
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
			return fmt.Errorf("the number of words and their overlap are for %s, not for %s", Windows, c.By)
		}
		return nil
	}
	return fmt.Errorf("texts can be cut by %s, %s or %s, not by %q", Paragraphs, Sentences, Windows, c.By)
}

// ParseCut reads a way as [Cut.String] writes it. Windows without numbers are
// of 200 words, of which 50 are in the next one, too.
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

// String returns the way in one word, such as "windows:200:50".
func (c Cut) String() string {
	if c.By == Windows {
		return fmt.Sprintf("%s:%d:%d", c.By, c.Words, c.Overlap)
	}
	return c.By
}

// A Segment is a part of a text, not empty, with its number of words.
type Segment struct {
	Text  string
	Words int
}

// LimitSetting is the setting of an index that bounds the nested documents of a
// document.
const LimitSetting = "index.mapping.nested_objects.limit"

// ErrTooMany says that a text has more segments than a document may hold.
var ErrTooMany = errors.New("too many segments")

// Texts cuts texts one by one, and returns their segments in order. The error
// wraps [ErrTooMany] where there are more than limit.
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
		return nil, fmt.Errorf("%w: %d, of %d that the index takes in a document; cut into larger windows, or raise its setting %s",
			ErrTooMany, n, limit, LimitSetting)
	}
	return all, nil
}

func (c Cut) each(text string, fn func(Segment)) {
	if c.By != Sentences {
		pieces(text, c.Words, c.Words-c.Overlap, fn)
		return
	}
	oneLine := strings.NewReplacer("\n", " ", "\r", " ") // of the same length
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

// pieces calls fn with the windows of size words of a text, of which one begins
// every step words; with size 0 with its paragraphs.
func pieces(text string, size, step int, fn func(Segment)) {
	var starts []int            // of the segments that have not ended
	words, done, end := 0, 0, 0 // since the first, those up to the last end, and where the last one ends
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

// A word is where one stands in a text, after how many line breaks.
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
			if at = w.end; !yield(w) {
				return
			}
		}
	}
}

// breaks returns how many line breaks are in white space. A paragraph separator
// counts as two.
func breaks(space string) int {
	return strings.Count(space, "\n") + strings.Count(space, "\r") - strings.Count(space, "\r\n") + 2*strings.Count(space, "\u2029")
}
