package suggest

import (
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

func aMatrix(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	return check.Got(simmatrix.New(simmatrix.Meta{Source: "index docs", Docs: 100}, []simmatrix.TermRow{
		{Term: "diaper", DocFreq: 9, Form: "diapers", Neighbors: []simmatrix.Neighbor{{Term: "babi", Similarity: 0.3}}},
		{Term: "babi", DocFreq: 20, Form: "baby"},
		{Term: "receiv", DocFreq: 30, Form: "receive"},
	}))(t)
}

func decided(word, to string, similarity float64) Decision {
	stem := func(word string) []string {
		switch word {
		case "diapers":
			return []string{"diaper"}
		case "baby":
			return []string{"babi"}
		case "receive":
			return []string{"receiv"}
		case "of":
			return nil
		}
		return []string{word}
	}
	return Decision{
		Word: word, To: to, Similarity: similarity, At: time.Date(2026, 12, 1, 18, 0, 0, 0, time.UTC), By: "Ann", Text: word + " x",
		Terms: [2][]string{stem(word), stem(to)},
	}
}

// accepted returns the matrix with a pair.
func accepted(t *testing.T, record *Record, m *simmatrix.Matrix, d Decision) *simmatrix.Matrix {
	t.Helper()
	return check.Got(record.Apply(check.Got(record.Accept(m, d))(t)))(t)
}

// undone returns the matrix without it.
func undone(t *testing.T, record *Record, m *simmatrix.Matrix, word, to string) *simmatrix.Matrix {
	t.Helper()
	m, d, err := record.Undo(m, word, to)
	check.Must(t, err == nil && d.Word == word && d.By != "", "%+v, %v", d, err)
	return check.Got(record.Apply(m))(t)
}

func similarity(m *simmatrix.Matrix, term, neighbor string) float32 {
	for n := range m.Row(term).All() {
		if n.Term == neighbor {
			return n.Similarity
		}
	}
	return 0
}

func TestAPairIsAcceptedAndTakenBack(t *testing.T) {
	before := aMatrix(t)
	record := check.Got(ReadRecord("# by hand\nset baby -> receive 0.4 # why\n"))(t)
	m := accepted(t, record, before, decided("resieve", "receive", 1))
	m = accepted(t, record, m, decided("diapers", "baby", 0.5))
	check.Equal(t, float32(1), similarity(m, "resieve", "receiv"))
	check.Equal(t, simmatrix.QuantizeSimilarity(0.5), similarity(m, "diaper", "babi"))
	check.Equal(t, "2 pairs, last diapers -> baby by Ann at 2026-12-01T18:00:00Z", m.Meta().Params[Param])
	check.Equal(t, "", m.Meta().Params[simmatrix.OverridesParam])

	text := record.String()
	check.That(t, strings.HasPrefix(text, "# by hand\nset baby -> receive 0.4 # why\nset resieve -> receive 1 # akin {"), "%s", text)
	read := check.Got(ReadRecord(text))(t)
	again := accepted(t, read, m, decided("resieve", "receive", 1))
	check.That(t, again == m && read.String() == text, "accepting twice changes something")
	applied := check.Got(read.Apply(before))(t)
	check.Equal(t, m.Checksum(), applied.Checksum())

	m = undone(t, read, m, "resieve", "receive")
	check.That(t, !m.Has("resieve"), "the row stays")
	m = undone(t, read, m, "diapers", "baby")
	check.Equal(t, similarity(before, "diaper", "babi"), similarity(m, "diaper", "babi"))
	check.Equal(t, "# by hand\nset baby -> receive 0.4 # why\n", read.String())
	check.Equal(t, "", m.Meta().Params[Param])
	_, _, err := read.Undo(m, "diapers", "baby")
	check.Error(t, ErrUndecided, err)
}

func TestAnotherWeightReplacesTheFirst(t *testing.T) {
	record := &Record{rules: &combine.Overrides{}}
	m := accepted(t, record, aMatrix(t), decided("resieve", "receive", 1))
	m = accepted(t, record, m, decided("resieve", "receive", 0.5))
	check.Equal(t, simmatrix.QuantizeSimilarity(0.5), similarity(m, "resieve", "receiv"))
	check.Equal(t, 1, len(record.Decisions()))
}

func TestWhatContradictsTheFileIsRefusedInASentence(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		d    Decision
		want string
	}{
		"the same words":          {"set resieve -> receive 0.5\n", decided("resieve", "receive", 1), "has a rule on both words, set resieve -> receive 0.5"},
		"other forms of them":     {"ban diaper baby\n", decided("diapers", "baby", 1), "ban diaper baby"},
		"the other way":           {"ban baby diapers\n", decided("diapers", "baby", 1), "ban baby diapers"},
		"no term":                 {"", decided("of", "baby", 1), `makes no term of "of"`},
		"the same term":           {"", decided("diaper", "diapers", 1), "are the same word"},
		"a similarity of no rule": {"", decided("diapers", "baby", 1.5), "contradicts"},
	} {
		t.Run(name, func(t *testing.T) {
			record := check.Got(ReadRecord(tt.file))(t)
			_, err := record.Accept(aMatrix(t), tt.d)
			check.Error(t, ErrRefused, err)
			check.Message(t, tt.want, err)
			check.Equal(t, tt.file, record.String())
		})
	}
	set := check.Got(combine.ParseOverrides(strings.NewReader("set diaper babi 0.9\n")))(t)
	m, _, err := set.Apply(aMatrix(t))
	check.OK(t, err)
	_, err = (&Record{rules: &combine.Overrides{}}).Accept(m, decided("diapers", "baby", 1))
	check.Message(t, "overrides have set diaper -> babi to 0.9", err)
}

func TestADismissedPairIsNoRule(t *testing.T) {
	record := check.Got(ReadRecord(""))(t)
	check.OK(t, record.Dismiss(decided("resieve", "recipe", 1)))
	check.OK(t, record.Dismiss(decided("resieve", "recipe", 1)))
	m := aMatrix(t)
	check.That(t, check.Got(record.Apply(m))(t) == m, "a dismissed pair changes the matrix")
	read := check.Got(ReadRecord(record.String()))(t)
	d, known := read.Find("resieve", "recipe")
	check.That(t, known && d.Similarity == 0 && len(read.Decisions()) == 1, "%s", read)
	_, _, err := read.Undo(m, "resieve", "recipe")
	check.OK(t, err)
	check.Equal(t, "", read.String())
}

// Whatever a search has in it, a decision stays one line that reads back.
func FuzzDecisionsReadBack(f *testing.F) {
	for _, odd := range []string{"<b>x</b>", "# akin {", "new\nline", "\u2028", "電池", "\"q\" -> r", "a\x00b", "\xff", "# akin {\"word\":\"a\",\"to\":\"b\"}"} {
		f.Add(odd, "receive", odd)
	}
	f.Fuzz(func(t *testing.T, word, to, by string) {
		record := &Record{rules: &combine.Overrides{}}
		d := decided(word, to, 1)
		d.By, d.Text = "by "+by, word
		if _, err := record.Accept(aMatrix(t), d); err != nil {
			check.Equal(t, "", record.String())
			return
		}
		m := check.Got(record.Apply(aMatrix(t)))(t)
		read, err := ReadRecord(record.String())
		check.Must(t, err == nil && read.String() == record.String(), "%q: %v", record, err)
		check.Equal(t, m.Checksum(), check.Got(read.Apply(aMatrix(t)))(t).Checksum())
		m = undone(t, read, m, word, to)
		check.That(t, similarity(m, word, to) == 0 && read.String() == "", "still there: %s", read)
	})
}

// Words that are alike to flashlight must not each stand for flash light.
func TestAnExpressionGetsNoNeighborsOfItsWord(t *testing.T) {
	record, err := ReadRecord("")
	check.OK(t, err)
	d := decided("flash light", "diapers", 1)
	d.Terms[0] = []string{"\x1fflash\x1flight"}
	m := accepted(t, record, aMatrix(t), d)
	check.Equal(t, 1, m.Row(d.Terms[0][0]).Len())
}
