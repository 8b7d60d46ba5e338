package suggest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
)

// A word of the index: how people write it, and its term.
type word struct {
	term, form, sound string
	docFreq           uint32
}

// A vocabulary is the words of a matrix that documents have.
type vocabulary struct {
	words   []word // by falling frequency
	long    []word // expressions of several words
	byForm  map[string]int
	byTerm  map[string]int
	most    float64     // ln of the largest frequency, plus 1
	vectors [][]float32 // of the first words; nil until asked for
}

// Limits of a vocabulary: the most frequent words count.
const (
	mostWords   = 500_000
	mostVectors = 50_000
)

func newVocabulary(m *simmatrix.Matrix) *vocabulary {
	v := &vocabulary{byForm: map[string]int{}, byTerm: map[string]int{}}
	t := m.Table()
	for i, term := range t.Terms {
		w := word{term: term, form: strings.ToLower(m.Written(term)), docFreq: t.DocFreqs[i]}
		switch {
		case simmatrix.IsExpression(term):
			v.long = append(v.long, w)
		case w.docFreq > 0:
			v.words = append(v.words, w)
		}
	}
	slices.SortStableFunc(v.words, func(a, b word) int { return cmp.Compare(b.docFreq, a.docFreq) })
	v.words, v.most = v.words[:min(len(v.words), mostWords)], 1
	for i := range v.words {
		w := &v.words[i]
		w.sound = sound(w.form)
		v.byTerm[w.term] = i
		if _, there := v.byForm[w.form]; !there {
			v.byForm[w.form] = i
		}
	}
	if len(v.words) > 0 {
		v.most = math.Log1p(float64(v.words[0].docFreq))
	}
	return v
}

// of returns the word of that form or term.
func (v *vocabulary) of(text string) (w word, known bool) {
	i, known := v.byForm[text]
	if !known {
		i, known = v.byTerm[text]
	}
	if !known {
		return word{}, false
	}
	return v.words[i], true
}

// How much a source counts. A word of the language is rarely misspelled, and
// pieces of what is none say little about its meaning.
const (
	certain       = 0.95 // a plural, another way to write it
	knownSpelling = 0.5
	meaning       = 0.85
	knownMeaning  = 1.0
	oddMeaning    = 0.6
	leastSpelled  = 0.5
	leastMeaning  = 0.35
	usualWeight   = 0.5 // the similarity of what is only near in meaning
	// moreOften is in how many times the documents of a word another one is of
	// which it may be a misspelling.
	moreOften = 20
)

// candidates returns proposals for a word of a text, without what they find.
func (f *Finder) candidates(ctx context.Context, words []typed, w typed) ([]Proposal, error) {
	isWord := f.Knows != nil && f.Knows(w.text)
	all := f.spelled(w, isWord)
	all = append(all, f.written(words, w)...)
	near := f.near(w, isWord)
	near, err := f.byModel(ctx, w, near)
	all = append(all, near...)
	rank(all)
	var kept []Proposal
	for _, p := range all {
		same := func(k Proposal) bool { return k.Word == p.Word && k.To == p.To }
		typed := slices.ContainsFunc(words, func(t typed) bool { return t.text == p.To })
		if !typed && len(kept) < mostTried && !slices.ContainsFunc(kept, same) {
			kept = append(kept, p)
		}
	}
	return kept, err
}

// spelled returns the words of the index that are spelled like a word that no
// document has, or that are in far more documents.
func (f *Finder) spelled(w typed, isWord bool) (all []Proposal) {
	length := utf8.RuneCountInString(w.text)
	if length < 3 || strings.ContainsFunc(w.text, unicode.IsDigit) {
		return nil
	}
	heard := sound(w.text)
	for i := range f.read.words {
		c := &f.read.words[i]
		if n := utf8.RuneCountInString(c.form); max(n, length) > 2*min(n, length) || int64(c.docFreq) < moreOften*w.alone || c.term == w.term {
			continue
		}
		s := alike(w.text, heard, c.form, c.sound)
		if c.term != c.form && w.term != w.text { // an analyzer that stems both
			s = max(s, alike(w.term, sound(w.term), c.term, sound(c.term))-.02)
		}
		if s < leastSpelled {
			continue
		}
		s += .08 * math.Log1p(float64(c.docFreq)) / f.read.most
		p := Proposal{Word: w.text, To: c.form, From: Spelling, Similarity: 1, score: min(s, certain)}
		if isWord {
			p.score *= knownSpelling
		}
		if isPlural(w.text, c.form) {
			p.From, p.score = Plural, certain
		}
		all = append(all, p)
	}
	rank(all)
	return all[:min(len(all), mostTried)]
}

// isPlural reports whether one of two words is the other with an ending of
// plurals.
func isPlural(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	stem, y := strings.CutSuffix(a, "y")
	return b == a+"s" || b == a+"es" || y && b == stem+"ies"
}

// written returns other ways to write a word: as two, with its neighbor in the
// text as one, as an acronym or its long form.
func (f *Finder) written(words []typed, w typed) (all []Proposal) {
	propose := func(from, word, to string, score float64) {
		all = append(all, Proposal{Word: word, To: to, From: from, Similarity: 1, score: score})
	}
	var first, second word
	for at := range w.text {
		a, knownA := f.read.of(w.text[:at])
		b, knownB := f.read.of(w.text[at:])
		if utf8.RuneCountInString(w.text[:at]) > 1 && utf8.RuneCountInString(w.text[at:]) > 1 && knownA && knownB && min(a.docFreq, b.docFreq) > min(first.docFreq, second.docFreq) {
			first, second = word{form: w.text[:at], docFreq: a.docFreq}, word{form: w.text[at:], docFreq: b.docFreq}
		}
	}
	if first.form != "" && w.alone == 0 {
		propose(TwoWords, w.text, first.form+" "+second.form, .9)
	}
	at := slices.IndexFunc(words, func(t typed) bool { return t.text == w.text })
	for k := max(at-1, 0); k <= at && k+1 < len(words); k++ {
		both := words[k].text + words[k+1].text
		if c, known := f.read.of(both); known && words[k].at+1 == words[k+1].at {
			propose(OneWord, words[k].text+" "+words[k+1].text, c.form, certain)
		}
	}
	for end := at + 1; end <= len(words); end++ { // body mass index → bmi
		for start := max(end-simmatrix.MaxExpressionTerms, 0); start <= at && end-start > 2; start++ {
			long := texts(words[start:end], nil)
			if c, known := f.read.byForm[initials(long)]; known {
				propose(Acronym, strings.Join(long, " "), f.read.words[c].form, .9)
			}
		}
	}
	for _, e := range f.read.long { // bmi → body mass index
		if utf8.RuneCountInString(w.text) > 1 && initials(strings.Fields(e.form)) == w.text {
			propose(Acronym, w.text, e.form, .9)
		}
	}
	return all
}

func initials(words []string) string {
	var b strings.Builder
	for _, w := range words {
		r, _ := utf8.DecodeRuneInString(w)
		b.WriteRune(r)
	}
	return b.String()
}

// near returns the words that are near in meaning by the matrix and by the
// built-in words.
func (f *Finder) near(w typed, isWord bool) (all []Proposal) {
	const most = 10
	trust := oddMeaning
	if isWord {
		trust = knownMeaning
	}
	m := f.Matrix
	meta := m.Meta()
	for n := range m.Row(w.term).All() {
		if len(all) == most {
			break
		}
		written, note := simmatrix.SplitForm(m.Form(n.Term))
		p := Proposal{Word: w.text, To: strings.ToLower(cmp.Or(written, simmatrix.Spelled(n.Term))), From: Matrix, Similarity: usualWeight}
		p.score = meaning * math.Pow(float64(n.Similarity), 1/meta.Power())
		if strings.HasPrefix(note, Acronym) {
			p.From, p.score = Acronym, certain
			p.Similarity = 1
		}
		all = append(all, p)
	}
	if f.Vector == nil {
		return all
	}
	v := f.Vector(w.text)
	if v == nil {
		return all
	}
	if f.read.vectors == nil {
		f.read.vectors = make([][]float32, min(len(f.read.words), mostVectors))
		for i := range f.read.vectors {
			f.read.vectors[i] = f.Vector(f.read.words[i].form)
		}
	}
	var nearest []Proposal
	for i, other := range f.read.vectors {
		c := &f.read.words[i]
		if cosine := dot(v, other); cosine >= leastMeaning && c.form != w.text && c.term != w.term {
			nearest = append(nearest, Proposal{Word: w.text, To: c.form, From: Builtin, Similarity: usualWeight, score: meaning * trust * cosine})
		}
	}
	rank(nearest)
	return append(all, nearest[:min(len(nearest), most)]...)
}

// byModel returns proposals with the similarity that a language model gives
// them, and as they are if there is none or it fails.
func (f *Finder) byModel(ctx context.Context, w typed, near []Proposal) ([]Proposal, error) {
	if f.Model == nil || len(near) == 0 {
		return near, nil
	}
	texts := []string{w.text}
	for _, p := range near {
		texts = append(texts, p.To)
	}
	vectors, err := f.Model(ctx, texts)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the language model: %d vectors for %d texts", len(vectors), len(texts))
	}
	if err != nil {
		return near, err
	}
	own := unit(vectors[0])
	scored := slices.Clone(near)
	for k := range scored {
		if cosine := dot(own, unit(vectors[1+k])); cosine > 0 {
			scored[k].From, scored[k].score = Model, meaning*cosine
		}
	}
	return scored, nil
}

func unit(v []float32) []float32 {
	length := math.Sqrt(dot(v, v))
	out := make([]float32, len(v))
	for k := range v {
		out[k] = float32(float64(v[k]) / max(length, math.SmallestNonzeroFloat32))
	}
	return out
}

// dot returns the product of two vectors, 0 if one is missing.
func dot(a, b []float32) (sum float64) {
	if len(a) != len(b) {
		return 0
	}
	for k := range a {
		sum += float64(a[k]) * float64(b[k])
	}
	return sum
}

// alike returns how alike two words are, 0 to 1: by their letters, and by their
// sounds.
func alike(a, soundA, b, soundB string) float64 {
	const ears = 0.4 // what sounds count
	return (1-ears)*shared(a, b) + ears*shared(soundA, soundB)
}

// shared returns 1 less the edits from one word to the other for each letter of
// the longer one. An edit of the first letter counts half more.
func shared(a, b string) float64 {
	x, y := []rune(a), []rune(b)
	if len(x) == 0 || len(y) == 0 {
		return 0
	}
	d := edits(x, y)
	if x[0] != y[0] {
		d += .5
	}
	return max(1-d/float64(max(len(x), len(y))), 0)
}

// edits returns the least number of letters that are changed, added, left out,
// or swapped with the next one, each once (optimal string alignment).
func edits(a, b []rune) float64 {
	var rows [3][64]float64
	if len(a) >= 64 || len(b) >= 64 {
		return 64
	}
	before, last := &rows[0], &rows[1]
	row := &rows[2]
	for j := range b {
		last[j+1] = float64(j + 1)
	}
	for i := range a {
		row[0] = float64(i + 1)
		for j := range b {
			change := 1.0
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		spare := before
		before, last = last, row
		row = spare
	}
	return last[len(b)]
}

// heard writes letters that sound alike in English as one.
var heard = strings.NewReplacer("ph", "f", "tch", "c", "ck", "k", "ch", "c", "sh", "x", "tion", "xn", "sion", "xn", "cian", "xn", "ght", "t",
	"kn", "n", "wr", "r", "ps", "s", "qu", "kw", "ce", "se", "ci", "si", "cy", "si", "c", "k", "q", "k", "x", "ks", "z", "s", "j", "g", "wh", "w", "v", "f")

// sound returns how a word sounds, roughly: its consonants, of those in a row
// that are the same one, with one mark for vowels in a row.
func sound(word string) string {
	const vowel = 'a'
	out := make([]rune, 0, len(word))
	for _, r := range heard.Replace(strings.TrimSuffix(word, "e")) {
		if strings.ContainsRune("aeiouyh", r) {
			r = vowel
		}
		if len(out) == 0 || out[len(out)-1] != r {
			out = append(out, r)
		}
	}
	return string(out)
}
