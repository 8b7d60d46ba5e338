package spelling

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// spellings returns n made-up words like those of an index of English text
// in length and in how many others are near one: stems of syllables, which
// share endings and beginnings, inflected forms of them, and misspellings.
func spellings(n int) []string {
	random := rand.New(rand.NewPCG(11, 12))
	pick := func(from []string) string { // the first ones often
		x := random.Float64()
		return from[int(x*x*float64(len(from)))]
	}
	onsets := []string{"", "s", "c", "t", "p", "r", "m", "d", "b", "l", "f", "st", "h", "tr", "n", "pr", "v", "ch", "g", "w", "sh", "gr", "br", "qu", "k", "th", "sp", "j", "y", "z"}
	vowels := []string{"e", "a", "i", "o", "u", "ea", "io", "ou", "ai", "y", "ee", "oo"}
	codas := []string{"", "", "n", "r", "s", "l", "t", "m", "nt", "d", "c", "ck", "ng", "p", "ll", "st", "x"}
	endings := []string{"s", "ed", "ing", "er", "ly", "al", "ness", "able", "ism", "'s"}
	words, seen := make([]string, 0, n), map[string]bool{}
	for len(words) < n {
		var word string
		switch kind := random.IntN(10); {
		case kind < 5 || len(words) < 10:
			var b strings.Builder
			for range 1 + random.IntN(4) {
				b.WriteString(pick(onsets) + pick(vowels) + pick(codas))
			}
			word = b.String()
		case kind < 8:
			word = words[random.IntN(len(words))] + pick(endings)
		default:
			word = misspelled(random, words[random.IntN(len(words))])
		}
		if len(word) > 1 && len(word) < 20 && !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// misspelled returns the word with one or two letters wrong.
func misspelled(random *rand.Rand, word string) string {
	letters := []byte(word)
	for range 1 + random.IntN(2) {
		at, letter := random.IntN(len(letters)), byte('a'+random.IntN(26))
		switch random.IntN(4) {
		case 0:
			letters[at] = letter
		case 1:
			letters = slices.Insert(letters, at, letter)
		case 2:
			if len(letters) > 2 {
				letters = slices.Delete(letters, at, at+1)
			}
		default:
			next := (at + 1) % len(letters)
			letters[at], letters[next] = letters[next], letters[at]
		}
	}
	return string(letters)
}
