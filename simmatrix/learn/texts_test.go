package learn

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestTextsSplitAtWordBoundaries(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"punctuation":  {"The car, rented (cheaply)!", []string{"The", "car", "rented", "cheaply"}},
		"apostrophe":   {"the driver's seat", []string{"the", "driver's", "seat"}},
		"numbers":      {"3.5 litres, 1,000 km", []string{"3.5", "litres", "1,000", "km"}},
		"other script": {"Größe île Москва", []string{"Größe", "île", "Москва"}},
		"nothing":      {" — … !", nil},
		"too long":     {"a " + strings.Repeat("x", 300) + " b", []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			texts := NewTexts()
			texts.Add(tt.text)
			check.Equal(t, tt.want, texts.Words())
			check.Equal(t, min(len(tt.want), 1), texts.Docs())
		})
	}
}

var unexported = cmp.AllowUnexported(Corpus{}, Texts{}, acronyms{}, definition{})

func TestTextsBecomeSequencesOfIndexTerms(t *testing.T) {
	texts := NewTexts()
	texts.Add("The cars", "", "of the car", "the")
	texts.Add("of the")
	texts.Add("car Wi-Fi", "…")
	analyzed := map[string][]string{"cars": {"car"}, "car": {"car"}, "Wi": {"wi", "wireless"}, "Fi": {"fi", ""}}
	var terms [][]string
	for _, w := range texts.Words() {
		terms = append(terms, analyzed[w])
	}
	want := newCorpus()
	want.addDocument([]string{"car"}, []string{"car"})
	want.addDocument(nil)
	want.addDocument([]string{"car", "wi", "wireless", "fi"})
	want.setForms(map[string][]Form{"car": {{"car", 2}, {"cars", 1}}})
	check.Equal(t, want, texts.Corpus(terms), unexported)
	words := newCorpus()
	words.addDocument([]string{"The", "cars"}, []string{"of", "the", "car"}, []string{"the"})
	words.addDocument([]string{"of", "the"})
	words.addDocument([]string{"car", "Wi", "Fi"})
	check.Equal(t, words, texts.Corpus(nil), unexported)
}

func TestFormOfATermIsItsMostFrequentWord(t *testing.T) {
	texts := NewTexts()
	texts.Add("Gas gas GAS gases oils Oil oils pipe pipes valves valve",
		"wi-fi café\u202e cafés café\u202e "+strings.Repeat("x", 300))
	analyzed := map[string][]string{
		"Gas": {"ga"}, "gas": {"ga"}, "GAS": {"ga"}, "gases": {"ga"}, "Oil": {"oil"}, "oils": {"oil"},
		"pipe": {"pipe"}, "pipes": {"pipe"}, "valves": {"valv"}, "valve": {"valv"}, "wi": {"wi", "wifi"}, "fi": {"", "fi"},
		"café\u202e": {"caf"}, "cafés": {"caf"},
	}
	var terms [][]string
	for _, w := range texts.Words() {
		terms = append(terms, analyzed[w])
	}
	// "pipe" is the first of two as frequent, and the term; "valve" the first.
	want := map[string][]Form{
		"ga": {{"gas", 3}, {"gases", 1}}, "oil": {{"oils", 2}, {"oil", 1}}, "pipe": {{"pipe", 1}, {"pipes", 1}},
		"valv": {{"valve", 1}, {"valves", 1}}, "caf": {{"cafés", 1}},
	}
	c := texts.Corpus(terms)
	check.Equal(t, want, c.forms)
	if c := texts.Corpus(nil); c.forms != nil {
		t.Errorf("words as terms have the forms %v", c.forms)
	}
	texts.Limit(0)
	if c := texts.Corpus(terms); len(c.forms) != 0 {
		t.Errorf("no documents have the forms %v", c.forms)
	}
}

func TestATermThatPeopleWriteIsNotShownAsALongerWord(t *testing.T) {
	c := newCorpus()
	c.setForms(map[string][]Form{
		"excel": {{"excellent", 9}, {"excel", 2}}, "diaper": {{"diapers", 9}, {"diaper", 2}}, "relat": {{"relationship", 9}, {"relation", 2}},
	})
	for term, want := range map[string]string{"excel": "excel", "diaper": "diapers", "relat": "relationship", "none": "none"} {
		check.Equal(t, want, c.written(term))
	}
}

func TestTermsAreTakenAsTheyAre(t *testing.T) {
	texts := NewTexts()
	texts.AddTerms([]string{"new york", "3.5", "—"}, []string{"", strings.Repeat("x", simmatrix.MaxTermBytes+1)}, []string{"3.5"})
	texts.AddTerms(nil, []string{""})
	want := newCorpus()
	want.addDocument([]string{"new york", "3.5", "—"}, []string{"3.5"})
	check.Equal(t, want, texts.Corpus(nil), unexported)
	check.Equal(t, 1, texts.Docs())
}

// randomTexts returns documents of letters; equal seeds give equal ones.
func randomTexts(seed uint64, docs int) *Texts {
	random := rand.New(rand.NewPCG(seed, 0))
	t := NewTexts()
	for range docs {
		var texts [][]string
		for range 1 + random.IntN(3) {
			var text []string
			for range random.IntN(6) {
				text = append(text, fmt.Sprintf("w%d", random.IntN(50)))
			}
			texts = append(texts, text)
		}
		t.AddTerms(texts...)
	}
	return t
}

func TestAppendedTextsAreThoseOfBoth(t *testing.T) {
	first, second := randomTexts(1, 30), randomTexts(2, 40)
	want := NewTexts()
	for _, part := range []*Texts{first, second} {
		for _, d := range documentsOfTexts(part) {
			want.AddTerms(d...)
		}
	}
	first.Append(second)
	check.Equal(t, want, first, unexported)
}

// documentsOfTexts returns the words of every text of every document.
func documentsOfTexts(t *Texts) [][][]string {
	var documents [][][]string
	var texts [][]string
	var text []string
	for _, id := range t.sequence {
		if id >= 0 {
			text = append(text, t.words[id])
			continue
		}
		texts, text = append(texts, text), nil
		if id == endOfDocument {
			documents, texts = append(documents, texts), nil
		}
	}
	return documents
}

func TestLimitDependsOnlyOnTheDocuments(t *testing.T) {
	documents := documentsOfTexts(randomTexts(3, 200))
	documents = append(documents, documents[:20]...) // some twice
	random := rand.New(rand.NewPCG(4, 4))
	sample := func(limit int) []string {
		random.Shuffle(len(documents), func(i, k int) { documents[i], documents[k] = documents[k], documents[i] })
		texts := NewTexts()
		for _, d := range documents {
			texts.AddTerms(d...)
		}
		all := texts.Docs()
		texts.Limit(limit)
		var kept []string
		for _, d := range documentsOfTexts(texts) {
			kept = append(kept, fmt.Sprint(d))
		}
		if len(kept) != min(limit, all) || texts.Docs() != len(kept) {
			t.Errorf("%d documents are left, counted %d, want %d", len(kept), texts.Docs(), min(limit, all))
		}
		slices.Sort(kept)
		return kept
	}
	smaller := sample(10)
	for _, limit := range []int{0, 1, 10, 100, 1000} {
		check.Equal(t, sample(limit), sample(limit), limit)
	}
	for _, d := range smaller {
		check.That(t, slices.Contains(sample(100), d), "%s is among 10 documents and not among 100", d)
	}
}

func encodedTexts(tb testing.TB, t *Texts) []byte {
	tb.Helper()
	var b bytes.Buffer
	check.OK(tb, EncodeTexts(&b, t))
	return b.Bytes()
}

func TestTextsSurviveWritingAndReading(t *testing.T) {
	long := NewTexts()
	long.AddTerms([]string{strings.Repeat("y", simmatrix.MaxTermBytes), "<&>\u2028\"", "ü b"}, []string{"<"})
	large := NewTexts()
	for i := range 60_000 {
		large.AddTerms([]string{strconv.Itoa(i), "0"})
	}
	for name, texts := range map[string]*Texts{
		"none": NewTexts(), "some": randomTexts(5, 100), "odd words": long, "many": large,
	} {
		t.Run(name, func(t *testing.T) {
			file := encodedTexts(t, texts)
			got := check.Got(DecodeTexts(iotest.HalfReader(bytes.NewReader(file))))(t)
			check.Equal(t, texts, got, unexported)
			check.That(t, bytes.Equal(encodedTexts(t, got), file), "other bytes the second time")
		})
	}
}

func TestDamagedTextsAreRefused(t *testing.T) {
	texts := randomTexts(6, 10)
	file := encodedTexts(t, texts)
	refused := func(what string, b []byte) {
		t.Helper()
		check.Error(t, ErrTexts, check.ErrOf(DecodeTexts(bytes.NewReader(b))), what)
	}
	for n := range file {
		refused(fmt.Sprintf("cut to %d bytes", n), file[:n])
		bad := slices.Clone(file)
		bad[n] ^= 1 << (n % 8)
		if got, err := DecodeTexts(bytes.NewReader(bad)); err != nil || !cmp.Equal(texts, got, unexported) { // gzip's time counts for nothing
			refused(fmt.Sprintf("bit flipped in byte %d", n), bad)
		}
	}
	refused("a byte more", append(slices.Clone(file), 0))
	var other bytes.Buffer
	z := gzip.NewWriter(&other)
	_, err := z.Write([]byte("[[\"a\"]]\n{}"))
	check.Must(t, err == nil && z.Close() == nil, "%v", err)
	refused("another value", other.Bytes())
}

func TestErrorsOfReadingAndWritingTextsArePassedOn(t *testing.T) {
	broken := errors.New("broken")
	file := encodedTexts(t, randomTexts(7, 10))
	for n := range file {
		r := io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken))
		check.Error(t, broken, check.ErrOf(DecodeTexts(r)), n)
	}
	for n := range 3 {
		check.Error(t, broken, EncodeTexts(&shortWriter{after: n * 20, err: broken}, randomTexts(7, 10)), "writing, after", n*20)
	}
}

// A shortWriter fails behind so many bytes.
type shortWriter struct {
	after int
	err   error
}

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// Whatever the input, it is refused, or the texts come back as they are from
// another writing and reading, and a corpus of them holds together.
func FuzzDecodeTexts(f *testing.F) {
	for _, lines := range []string{"", "[[\"a\",\"b\"],[],[\"a\"]]\n[[\"c\"]]", "[[\"\",\"\\ud800\"]] [] null", "[[1]]"} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var file bytes.Buffer
		z := gzip.NewWriter(&file)
		if _, err := io.WriteString(z, lines); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		texts, err := DecodeTexts(&file)
		if err != nil {
			check.Must(t, errors.Is(err, ErrTexts), "error %v", err)
			return
		}
		again, err := DecodeTexts(bytes.NewReader(encodedTexts(t, texts)))
		check.OK(t, err)
		check.Equal(t, texts, again, unexported)
		docs := len(documentsOfTexts(texts))
		check.Must(t, docs == texts.Docs(), "%d documents, counted %d", docs, texts.Docs())
		if c := texts.Corpus(nil); c.docs > uint64(texts.Docs()) || len(c.sequence) > len(texts.sequence)+1 {
			t.Fatalf("a corpus of %d documents and %d elements", c.docs, len(c.sequence))
		}
	})
}
