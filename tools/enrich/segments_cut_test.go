package enrich

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/e2e/check"
)

func texts(all []Segment) (found []string) {
	for _, s := range all {
		found = append(found, s.Text)
	}
	return found
}

func TestTextsAreCut(t *testing.T) {
	for name, tt := range map[string]struct {
		cut  Cut
		text string
		want []string
	}{
		"paragraphs":                     {Cut{By: Paragraphs}, "One.\nStill one.\n\nTwo.\n \t\n\n  Three.\n", []string{"One.\nStill one.", "Two.", "Three."}},
		"line ends of other systems":     {Cut{By: Paragraphs}, "a\r\nb\r\n\r\nc\rd\r\re", []string{"a\r\nb", "c\rd", "e"}},
		"a paragraph separator":          {Cut{By: Paragraphs}, "a\u2029b", []string{"a", "b"}},
		"white space only":               {Cut{By: Paragraphs}, " \n\n\u00a0\t", nil},
		"nothing":                        {Cut{By: Windows, Words: 3}, "", nil},
		"sentences":                      {Cut{By: Sentences}, "It costs 3.5 euros. Does it? Yes! \"So it is.\" he said.", []string{"It costs 3.5 euros.", "Does it?", "Yes!", "\"So it is.\" he said."}},
		"sentences in wrapped lines":     {Cut{By: Sentences}, "A sentence in\r\ntwo lines. Next\none.\n\nA heading\n\nMore.", []string{"A sentence in\r\ntwo lines.", "Next\none.", "A heading", "More."}},
		"sentences of other scripts":     {Cut{By: Sentences}, "これは文です。これも。", []string{"これは文です。", "これも。"}},
		"windows":                        {Cut{By: Windows, Words: 3, Overlap: 1}, "a b  c\n\nd e f g h", []string{"a b  c", "c\n\nd e", "e f g", "g h"}},
		"windows that end with the text": {Cut{By: Windows, Words: 3, Overlap: 1}, "a b c d e", []string{"a b c", "c d e"}},
		"a text shorter than a window":   {Cut{By: Windows, Words: 30, Overlap: 15}, " a b ", []string{"a b"}},
		"windows without overlap":        {Cut{By: Windows, Words: 2}, "a b c d e", []string{"a b", "c d", "e"}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := tt.cut.Texts([]string{tt.text}, 10_000)
			got := texts(all)
			check.That(t, slices.Equal(got, tt.want) && err == nil, "%q, %v, want %q", got, err, tt.want)
		})
	}
}

func TestElementsOfArraysAreCutOneByOne(t *testing.T) {
	all, err := Cut{By: Windows, Words: 2}.Texts([]string{"a b c", "", "d"}, 3)
	got, want := texts(all), []string{"a b", "c", "d"}
	check.That(t, slices.Equal(got, want) && err == nil, "%q, %v, want %q", got, err, want)
}

func TestTextWithTooManySegmentsIsRefused(t *testing.T) {
	_, err := Cut{By: Paragraphs}.Texts([]string{strings.Repeat("a\n\n", 5), "b"}, 5)
	check.That(t, errors.Is(err, ErrTooMany) && strings.Contains(err.Error(), "6") && strings.Contains(err.Error(), LimitSetting), "error %v", err)
}

func TestWaysToCutThatAreNone(t *testing.T) {
	for _, c := range []Cut{
		{},
		{By: "pages"},
		{By: Windows},
		{By: Windows, Words: 10, Overlap: 6},
		{By: Windows, Words: 10, Overlap: -1},
		{By: Windows, Words: MaxWords + 1},
		{By: Sentences, Words: 3},
		{By: Paragraphs, Overlap: 1},
	} {
		check.That(t, c.Validate() != nil, "%+v is taken", c)
	}
	for want, c := range map[string]Cut{"windows:10:5": {By: Windows, Words: 10, Overlap: 5}, "sentences": {By: Sentences}} {
		read, err := ParseCut(want)
		check.That(t, err == nil && c.String() == want && read == c, "%+v is %q and read as %+v, want %q; %v", c, c, read, want, err)
	}
	c, err := ParseCut("windows")
	check.That(t, err == nil && c.String() == "windows:200:50", "windows are %v, %v", c, err)
	for _, text := range []string{"", "pages", "sentences:3:1", "paragraphs:", "windows:", "windows:10", "windows:10:6", "windows:ten:5", "windows:10:5:1"} {
		c, err := ParseCut(text)
		check.That(t, err != nil, "%q is taken for %v", text, c)
	}
}

// Segments cover the text in order and lose nothing but white space; windows
// overlap as asked.
func FuzzCut(f *testing.F) {
	for _, text := range []string{"", "a b c d e f g", "One. Two!\n\nThree\r\n\r\nfour\u2029five. ", "\xff\n\n\xfe a", "x\u0085\u00a0y"} {
		f.Add(text, uint8(3), uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, words, overlap uint8) {
		text = strings.ToValidUTF8(text, "?") // as JSON has it
		cuts := []Cut{{By: Paragraphs}, {By: Sentences}, {By: Windows, Words: int(words)%9 + 1}}
		cuts[2].Overlap = int(overlap) % (cuts[2].Words/2 + 1)
		all := strings.Fields(text)
		for _, c := range cuts {
			found, err := c.Texts([]string{text}, len(text)+1)
			check.Must(t, err == nil && c.Validate() == nil, "%v: %v, %v", c, err, c.Validate())
			at := 0
			var whole strings.Builder
			for i, s := range found {
				own := strings.Fields(s.Text)
				from := strings.Index(text[at:], s.Text)
				if from < 0 || s.Text != strings.TrimSpace(s.Text) || s.Words != len(own) || s.Words == 0 || !utf8.ValidString(s.Text) {
					t.Fatalf("%v: segment %d is %q, %d words", c, i, s.Text, s.Words)
				}
				if c.By != Windows {
					at += from + len(s.Text)
					whole.WriteString(s.Text)
					continue
				}
				first := i * (c.Words - c.Overlap)
				if last := i == len(found)-1; !slices.Equal(own, all[first:first+len(own)]) || !last && len(own) != c.Words || last && first+len(own) != len(all) {
					t.Fatalf("%v: segment %d of %d is %q", c, i, len(found), s.Text)
				}
			}
			dropSpace := func(r rune) rune {
				if unicode.IsSpace(r) {
					return -1
				}
				return r
			}
			check.Must(t, c.By == Windows || strings.Map(dropSpace, whole.String()) == strings.Map(dropSpace, text), "%v: %q of %q", c, whole.String(), text)
		}
	})
}
