package suggest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/words"
)

// texts are documents of words, as an index has them.
type documents []string

func (documents) Tokens(_ context.Context, _, _, text string) (tokens []esclient.Token, _ error) {
	at := 0
	for k, word := range strings.Fields(text) {
		at += strings.Index(text[at:], word)
		tokens = append(tokens, esclient.Token{Token: strings.ToLower(word), Position: k, Start: at, End: at + len(word)})
		at += len(word)
	}
	return tokens, nil
}

func (d documents) Find(_ context.Context, _ string, _ []string, queries [][]string) (found []Found, _ error) {
	for _, all := range queries {
		f := Found{}
		for _, text := range d {
			missing := func(word string) bool { return !strings.Contains(" "+text+" ", " "+word+" ") }
			if !slices.ContainsFunc(all, missing) {
				f.Total++
				f.Titles = append(f.Titles, text)
			}
		}
		found = append(found, f)
	}
	return found, nil
}

func finder(t *testing.T, d documents) *Finder {
	t.Helper()
	freqs := map[string]uint32{}
	for _, text := range d {
		for word := range strings.FieldsSeq(text) {
			freqs[word]++
		}
	}
	var rows []simmatrix.TermRow
	for word, n := range freqs {
		row := simmatrix.TermRow{Term: word, DocFreq: n}
		if word == "couch" {
			row.Neighbors = []simmatrix.Neighbor{{Term: "sofa", Similarity: 0.4}}
		}
		rows = append(rows, row)
	}
	return &Finder{Cluster: d, Matrix: check.Got(simmatrix.New(simmatrix.Meta{Docs: uint64(len(d))}, rows))(t)}
}

func TestWhatHelpsASearchIsProposed(t *testing.T) {
	f := finder(t, documents{
		"red sofa", "blue sofa linen", "couch leather", "flashlight pocket", "rib cage anatomy", "bmi of adults", "shoes wide", "lamp desk", "mattress cotton", "linen drapes",
	})
	for text, want := range map[string]Proposal{
		"sopha linen":              {Word: "sopha", To: "sofa", From: Spelling, Similarity: 1, Found: 1, Titles: []string{"blue sofa linen"}},
		"shoe wide":                {Word: "shoe", To: "shoes", From: Plural, Similarity: 1, Found: 1, Titles: []string{"shoes wide"}},
		"flash light pocket":       {Word: "flash light", To: "flashlight", From: OneWord, Similarity: 1, Found: 1, Titles: []string{"flashlight pocket"}},
		"body mass index adults":   {Word: "body mass index", To: "bmi", From: Acronym, Similarity: 1, Found: 1, Titles: []string{"bmi of adults"}},
		"ribcage anatomy":          {Word: "ribcage", To: "rib cage", From: TwoWords, Similarity: 1, Found: 1, Titles: []string{"rib cage anatomy"}},
		"couch linen":              {Word: "couch", To: "sofa", From: Matrix, Similarity: usualWeight, Found: 1, Titles: []string{"blue sofa linen"}},
		"matress zzzzzz of cotton": {Word: "matress", To: "mattress", From: Spelling, Similarity: 1, Found: 0, Beside: []string{"zzzzzz"}},
	} {
		got, err := f.Propose(t.Context(), Search{Index: "i", Fields: []string{"f"}, Text: text})
		check.Must(t, err == nil && len(got) > 0, "%s: %v, %v", text, got, err)
		got[0].score = 0
		check.That(t, got[0].Word == want.Word && got[0].To == want.To && got[0].From == want.From && got[0].Similarity == want.Similarity && got[0].Found == want.Found,
			"%s: %+v, want %+v", text, got[0], want)
		check.That(t, slices.Equal(got[0].Titles, want.Titles) && slices.Equal(got[0].Beside, want.Beside), "%s: %+v, want %+v", text, got[0], want)
	}
	got := check.Got(f.Propose(t.Context(), Search{Fields: []string{"f"}, Text: "linen zzzzzz"}))(t)
	check.That(t, len(got) == 1 && got[0].From == Without && got[0].Word == "zzzzzz" && got[0].Found == 2, "%+v", got)
	for _, nothing := range []string{"", "電池", "<b>\x00</b>", "1234567"} {
		got, err := f.Propose(t.Context(), Search{Fields: []string{"f"}, Text: nothing})
		check.That(t, err == nil && len(got) == 0, "%q: %+v, %v", nothing, got, err)
	}
}

// All words of the search are in documents, but no document has all of them.
func TestAStopWordTooManyIsSaid(t *testing.T) {
	f := finder(t, documents{"red sofa", "red sofa linen", "the lamp", "how to clean a lamp"})
	for text, without := range map[string]string{"the red sofa": "the", "red sofa to": "to", "how linen": "how"} {
		got := check.Got(f.Propose(t.Context(), Search{Fields: []string{"f"}, Text: text}))(t)
		check.Must(t, len(got) > 0, "%s: nothing", text)
		last := got[len(got)-1]
		rest := strings.Join(strings.Fields(strings.Replace(text, without, "", 1)), " ")
		all := check.Got(f.Cluster.Find(t.Context(), "", nil, [][]string{strings.Fields(rest)}))(t)[0]
		check.That(t, last.From == Without && last.Word == without && last.To == "" && last.Found == all.Total && slices.Equal(last.Titles, all.Titles), "%s: %+v", text, last)
	}
	got := check.Got(f.Propose(t.Context(), Search{Fields: []string{"f"}, Text: "red sofa"}))(t)
	check.That(t, !slices.ContainsFunc(got, func(p Proposal) bool { return p.From == Without }), "what finds no more is no help: %+v", got)
}

func TestBuiltInWordsProposeWhatIsNearInMeaning(t *testing.T) {
	f := finder(t, documents{"smartphone case", "wooden chair", "automobile tires", "a lamp"})
	search := Search{Fields: []string{"f"}, Text: "cellphone case"}
	with := func() []Proposal {
		return slices.DeleteFunc(check.Got(f.Propose(t.Context(), search))(t), func(p Proposal) bool { return p.From != Builtin })
	}
	check.Equal(t, 0, len(with()), "without words")
	builtin := check.Got(words.Builtin())(t)
	f.Vector, f.Knows = builtin.Vector, builtin.Has
	f.read = nil
	got := with()
	check.Must(t, len(got) > 0, "nothing is near cellphone")
	first := got[0]
	check.That(t, first.Word == "cellphone" && first.To == "smartphone" && first.Similarity == usualWeight && first.Found == 1 && slices.Equal(first.Titles, []string{"smartphone case"}), "%+v", first)
	check.That(t, !slices.ContainsFunc(got, func(p Proposal) bool { return p.To == "chair" || p.To == "wooden" }), "far in meaning: %+v", got)
	search.Text = "zzqqxx case"
	check.Equal(t, 0, len(with()), "a word without a vector")
}

func TestALanguageModelScoresWhatIsNear(t *testing.T) {
	f := finder(t, documents{"couch leather", "red sofa"})
	f.Model = func(_ context.Context, texts []string) ([][]float32, error) {
		check.Equal(t, []string{"couch", "sofa"}, texts)
		return [][]float32{{1, 0}, {1, 1}}, nil
	}
	got := check.Got(f.Propose(t.Context(), Search{Fields: []string{"f"}, Text: "red couch"}))(t)
	check.That(t, len(got) > 0 && got[0].To == "sofa" && got[0].From == Model, "%+v", got)
	away := errors.New("the model is away")
	f.Model = func(context.Context, []string) ([][]float32, error) { return nil, away }
	got, err := f.Propose(t.Context(), Search{Fields: []string{"f"}, Text: "red couch"})
	check.Error(t, away, err)
	check.That(t, len(got) > 0 && got[0].From == Matrix, "%+v", got)
}
