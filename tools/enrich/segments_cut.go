package enrich

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

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
