package learn

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Acronym is a short form that documents define by a long one, such as
// "National Institutes of Health (NIH)", as they write both.
type Acronym struct {
	Short, Long string
	Docs        int // in how many documents it is defined
}

// Limits of acronyms, as in the paper, see findAcronyms.
const (
	shortestAcronym, longestAcronym = 2, 10 // in runes
	// maxDefinition limits the bytes of a long form, and of what is in parentheses.
	maxDefinition = 200
	// maxAcronyms limits the distinct definitions that are counted. Beyond it, the
	// rarest are forgotten.
	maxAcronyms = 200_000
)

// acronyms counts definitions in documents.
type acronyms struct {
	docs  map[definition]int
	most  int
	bytes int64
}

type definition struct{ short, long string }

func (a *acronyms) add(d definition, docs int) {
	if _, known := a.docs[d]; !known {
		d = definition{strings.Clone(d.short), strings.Clone(d.long)}
		a.bytes += stringBytes(d.short) + stringBytes(d.long)
	}
	a.docs[d] += docs
	for least := 1; len(a.docs) > a.most; least++ {
		for d, docs := range a.docs {
			if docs <= least {
				delete(a.docs, d)
				a.bytes -= stringBytes(d.short) + stringBytes(d.long)
			}
		}
	}
}

// addDocument counts each definition of a document once.
func (a *acronyms) addDocument(texts []string) {
	var found []definition
	for _, text := range texts {
		findAcronyms(text, func(d definition) {
			if !slices.Contains(found, d) {
				found = append(found, d)
			}
		})
	}
	for _, d := range found {
		a.add(d, 1)
	}
}

// Acronyms returns the acronyms that the documents of [Texts.Add] define, by
// short and long form.
func (t *Texts) Acronyms() []Acronym {
	all := make([]Acronym, 0, len(t.acronyms.docs))
	for d, docs := range t.acronyms.docs {
		all = append(all, Acronym{d.short, d.long, docs})
	}
	slices.SortFunc(all, func(a, b Acronym) int { return cmp.Or(cmp.Compare(a.Short, b.Short), cmp.Compare(a.Long, b.Long)) })
	return all
}

// findAcronyms yields the definitions in a text, by the algorithm of Schwartz
// and Hearst, "A simple algorithm for identifying abbreviation definitions in
// biomedical text" (Pacific Symposium on Biocomputing, 2003): a short form in
// parentheses behind its long form, or the other way around. Words with a
// period such as "i.e." are no short forms here, nor are words in lower case,
// such as (read), in a text with capitals.
func findAcronyms(text string, yield func(definition)) {
	capitals := strings.IndexFunc(text, unicode.IsUpper) >= 0
	isAcronym := func(word string) bool {
		return mayBeAcronym(word) && (!capitals || strings.IndexFunc(word, unicode.IsUpper) >= 0)
	}
	sentence := 0
	for at := 0; at < len(text); {
		open := strings.IndexByte(text[at:], '(')
		if open < 0 {
			return
		}
		open += at
		at = open + 1
		end := strings.IndexAny(text[at:min(len(text), at+maxDefinition)], "()")
		if end < 0 || text[at+end] == '(' {
			continue
		}
		inner := text[at : at+end]
		sentence = max(sentence, cutAt(text, open-maxDefinition))
		for _, stop := range []string{". ", "? ", "! ", "; ", ": ", ") "} {
			if k := strings.LastIndex(text[sentence:open], stop); k >= 0 {
				sentence += k + len(stop)
			}
		}
		before := strings.Fields(text[sentence:open])
		if k := strings.IndexAny(inner, ",;"); k >= 0 {
			inner = inner[:k]
		}
		words := strings.Fields(inner)
		switch {
		case len(before) == 0:
		case len(words) == 1 && isAcronym(words[0]):
			length := utf8.RuneCountInString(words[0])
			most := min(length+5, 2*length)
			long := strings.Join(before[max(0, len(before)-most):], " ")
			if long = longForm(words[0], long); long != "" {
				yield(definition{words[0], long})
			}
		case len(words) > 1 && isAcronym(before[len(before)-1]):
			short := before[len(before)-1]
			length := utf8.RuneCountInString(short)
			long := strings.TrimFunc(strings.Join(words, " "), isMark)
			if len(words) <= min(length+5, 2*length) && longForm(short, long) == long {
				yield(definition{short, long})
			}
		}
	}
}

// cutAt returns the place of the first rune of text at or after a byte.
func cutAt(text string, at int) int {
	for at = max(at, 0); at < len(text) && !utf8.RuneStart(text[at]); at++ {
	}
	return at
}

func mayBeAcronym(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	length := utf8.RuneCountInString(word)
	return length >= shortestAcronym && length <= longestAcronym && isAlphanumeric(first) &&
		strings.IndexFunc(word, unicode.IsLetter) >= 0 && !strings.Contains(word, ".")
}

// isMark reports whether a rune at an end of a long form is not of it.
func isMark(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) || unicode.IsSpace(r) }

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// longForm returns the shortest end of text, in whole words, that has the
// letters and digits of a short form in their order, the first of them at the
// beginning of its first word, without marks at its ends; "" if there is none,
// or if it has marks of source code.
func longForm(short, text string) string {
	s, l := []rune(short), []rune(text)
	at := len(l) - 1
	for k, c := range slices.Backward(s) {
		c = unicode.ToLower(c)
		if !isAlphanumeric(c) {
			continue
		}
		for at >= 0 && (unicode.ToLower(l[at]) != c || k == 0 && at > 0 && isAlphanumeric(l[at-1])) {
			at--
		}
		if at < 0 {
			return ""
		}
		at--
	}
	for at++; at > 0 && l[at-1] != ' '; at-- {
	}
	long := strings.TrimFunc(string(l[at:]), isMark)
	words := strings.Fields(long)
	if len([]rune(long)) <= len(s) || len(words) < 2 || slices.Contains(words, short) || strings.ContainsAny(long, `=";{}`) {
		return ""
	}
	return long
}
