package main

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/words"
)

func TestBuiltInWordsAreMixedIntoAMatrixOfAnIndex(t *testing.T) {
	m, said := built(t, fromDemo(t)...)
	name := check.Got(words.Builtin())(t).String()
	meta := m.Meta()
	check.Equal(t, []string{name, "0.35"}, []string{meta.Params[simmatrix.ModelParam], meta.Params[learn.ModelShareParam]})
	check.That(t, slices.Equal(meta.Origins[:2], []string{"documents", name}), "origins %q", meta.Origins)
	contains(t, "the build", said, name+" count for 0.35 of similarities")
	for _, pair := range [][2]string{{"sofa", "couch"}, {"nappi", "diaper"}, {"flashlight", "torch"}} { // index terms
		check.That(t, slices.Contains(rowOf(m, pair[0])[:20], pair[1]), "%s has no %s: %q", pair[0], pair[1], rowOf(m, pair[0])[:20])
	}
	file := encodedFile(t, "words.akin", m)
	contains(t, "show", mustAkin(t, "matrix", "show", file, "sofa"), "couch", name)
	contains(t, "check", mustAkin(t, "matrix", "check", file), name)
	config := write(t, "akin.yml", "cluster: {urls: ['"+demoEngine(t)+"']}\nmatrices: [{name: demo, file: '"+check.Got(filepath.Abs(file))(t)+"'}]\n")
	contains(t, "the explanation", mustAkin(t, "expand", "--config", config, "--index", "catalogue", "--json", "sofa"), `"model": "`+name+`"`)

	without, said := built(t, fromDemo(t, "--language-model", "none")...)
	meta = without.Meta()
	check.That(t, meta.Params[simmatrix.ModelParam] == "" && !slices.Contains(meta.Origins, name) && !strings.Contains(said, "built-in words"), "made with %v of %q, saying %s", meta.Params, meta.Origins, said)
	_, said = built(t, fromDemo(t, "--embedding-share", "0.5")...)
	contains(t, "another share", said, name+" count for 0.5")
}

func TestFunctionWordsHaveNoNeighborsAndAreNobodys(t *testing.T) {
	t.Parallel()
	m, _ := built(t, fromDemo(t)...)
	function := []string{"how", "what", "you", "my", "when", "do"}
	for term, row := range m.Rows() {
		check.That(t, !slices.Contains(function, term) || row.Len() == 0, "%s has %d neighbors", term, row.Len())
		for n := range row.All() {
			check.That(t, !slices.Contains(function, n.Term), "%s is a neighbor of %s", n.Term, term)
		}
	}
	check.That(t, m.Row("how").DocFreq() > 0 && m.Row("sofa").Len() > 0, "how is in no document, or sofa has no neighbors")
}

// corpusOf has each text a few times, as words in lower case.
func corpusOf(texts ...string) *learn.Corpus {
	return corpusBy(func(word string) []string { return []string{strings.ToLower(word)} }, texts...)
}

// corpusBy has each text a few times, as the terms that analyze makes of words.
func corpusBy(analyze func(word string) []string, texts ...string) *learn.Corpus {
	all := learn.NewTexts()
	for range 5 {
		for _, text := range texts {
			all.Add(text)
		}
	}
	terms := make([][]string, len(all.Words()))
	for k, word := range all.Words() {
		terms[k] = analyze(word)
	}
	return all.Corpus(terms)
}

func TestBuiltInWordsAreLeftOutOfWhatIsNotEnglish(t *testing.T) {
	for name, text := range map[string]string{
		"German":                     "Die Katze schläft auf dem Sofa, während der Hund im Garten die Blumen ausgräbt und niemand die Wäsche aufhängt",
		"Chinese":                    "猫 在 沙发 上 睡觉 狗 在 花园 里 挖 花 没有 人 晾 衣服",
		"Russian":                    "Кошка спит на диване, пока собака в саду выкапывает цветы",
		"product numbers":            "XK-4711B QRT9920 ZZPLX77 WD40EZRZ MX500SSD KV2213 B00XJ4T9QA GTX1080TI RJ45CAT6E",
		"source code":                "func strncpyBuf errno ptrdiff nbytes memcpy fprintf stderr argv argc ctx mtx impl cfg tmpdir",
		"nothing but function words": "how do you do and what is it to you who was there with him",
	} {
		var told bytes.Buffer
		c, o := corpusOf(text), learn.DefaultCorpusOptions()
		check.OK(t, mixOwnWords(c, &o, 0, cli.NewProgress(&told)))
		check.That(t, o.Mix == nil && strings.Contains(told.String(), "built-in words are left out: they are English"), "%s: %s", name, told.String())
	}
}

func TestBuiltInWordsAreMixedIntoEnglishOfAnyForm(t *testing.T) {
	long := strings.Repeat("a", 200)
	for name, text := range map[string]string{
		"capitals":  "THE CAT SLEEPS ON THE SOFA WHILE THE DOG DIGS UP FLOWERS IN THE GARDEN",
		"odd forms": "The cat's on the sofa.The dog digs in a garden, café, " + long + " naïve flowers кошка \u200bwith mother-in-law and headphone.force",
	} {
		c, o := corpusOf(text), learn.DefaultCorpusOptions()
		check.OK(t, mixOwnWords(c, &o, 0, cli.NewProgress(&bytes.Buffer{})))
		check.Must(t, o.Mix != nil, "%s: left out", name)
		for _, term := range check.Got(c.Vocabulary(&o))(t) {
			length := 0.0
			for _, x := range o.Mix.Vector(term) {
				length += float64(x) * float64(x)
			}
			check.That(t, length == 0 || math.Abs(length-1) < 1e-3, "%s: %.20s has the length %v", name, term, length)
		}
	}
}

func TestBuiltInWordsGoByTheWordsThatAnAnalyzerReads(t *testing.T) {
	const text = "The Cat sleeps on the Sofa while the Dog digs up Flowers in the Garden"
	for name, analyze := range map[string]func(word string) []string{
		"keeps case":     func(word string) []string { return []string{word} },
		"stems wildly":   func(word string) []string { return []string{"x" + word[:1]} },
		"splits letters": func(word string) []string { return strings.Split(word, "") },
		"drops all but": func(word string) []string {
			return slices.DeleteFunc([]string{word}, func(w string) bool { return w != "Sofa" })
		},
	} {
		var told bytes.Buffer
		report, c, o := cli.NewProgress(&told), corpusBy(analyze, text), learn.DefaultCorpusOptions()
		check.OK(t, mixOwnWords(c, &o, 0, report))
		check.Must(t, o.Mix != nil, "%s: %s", name, told.String())
		for _, term := range check.Got(c.Vocabulary(&o))(t) {
			if forms := c.Forms(term); forms[0].Text != term {
				check.That(t, o.Mix.Vector(term) != nil, "%s: %s, of %v, has no vector", name, term, forms)
			}
		}
		check.OK(t, check.ErrOf(learnMatrix(t.Context(), c, o, report)))
	}
}

// Too few documents have too few words to be compared, and too little memory
// leaves no room for more vectors: both still make a matrix.
func TestBuildsThatHaveNoRoomForBuiltInWordsDoWithout(t *testing.T) {
	var told bytes.Buffer
	report := cli.NewProgress(&told)
	c, o := corpusOf("the cat sleeps on the sofa"), learn.DefaultCorpusOptions()
	check.OK(t, mixOwnWords(c, &o, 0, report))
	m := check.Got(learnMatrix(t.Context(), c, o, report))(t)
	check.That(t, m.Meta().Params[simmatrix.ModelParam] == "" && strings.Contains(told.String(), "left out: too few words") &&
		!strings.Contains(told.String(), "count for"), "%v, saying %s", m.Meta().Params, told.String())

	o.Mix, o.MaxMemory, o.Dimensions, o.Neighbors = nil, 1<<10, 1, simmatrix.MaxNeighbors
	for ; check.ErrOf(c.Vocabulary(&o)) != nil; o.MaxMemory += 1 << 10 {
	}
	check.OK(t, mixOwnWords(c, &o, 0, report))
	check.That(t, o.Mix == nil && strings.Contains(told.String(), "left out, for lack of memory"), "saying %s", told.String())
}

func TestBuildSaysThatItLearnsTheMostFrequentTerms(t *testing.T) {
	c, o := corpusOf("the cat sleeps on the sofa"), learn.DefaultCorpusOptions()
	for most, told := range map[int]bool{3: true, 10: false} {
		var out bytes.Buffer
		o.MaxTerms = most
		check.OK(t, tellPlan(c, &o, cli.NewProgress(&out)))
		check.Equal(t, told, strings.Contains(out.String(), "the most frequent terms: at most 3 are learned"), most)
	}
}
