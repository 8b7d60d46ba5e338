package spelling

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestNearestKnownWord(t *testing.T) {
	docFreqs := map[string]uint32{
		"2047": 9, "cater": 3, "caste": 8, "cream": 5, "häuser": 2, "ice": 4, "iphone5": 9, "neighbor": 1, "none": 0,
		"lamp": 2, "lamps": 2, "restore": 2, "table": 7, "tab": 1, "lelamp": 1, "garden": 6, "garedon": 1,
	}
	terms := slices.Sorted(maps.Keys(docFreqs))
	var counts []uint32
	for _, term := range terms {
		counts = append(counts, docFreqs[term])
	}
	words := NewWords(terms, counts)
	for _, tt := range []struct {
		asked, want string
		similarity  float64
	}{
		{"craem", "cream", 1.8 * math.Pow(4./5, 5)},   // two letters are swapped
		{"catse", "caste", 1.8 * math.Pow(4./5, 5)},   // not cater, which is rarer
		{"lampx", "lamp", 1.8 * math.Pow(4./5, 5)},    // and not lamps, which is as near and as frequent
		{"hauser", "häuser", 1.8 * math.Pow(5./6, 5)}, // one letter, two bytes
		{"retsore", "restore", 1.8 * math.Pow(6./7, 5)},
		{"nieghbur", "neighbor", 1.8 * math.Pow(6./8, 5)}, // swapped, and another
		{"garednx", "garden", 1.8 * math.Pow(5./7, 5)},    // swapped, and one too many; garedon is as near, and rarer
		{"meighbur", "", 0},                               // two, one of them the first
		{"nreaghbur", "", 0},
		{"enighbur", "", 0},                                // the first swapped, and another
		{"crxxm", "", 0},                                   // two in a short word
		{"icecream", "ice cream", 1.8 * math.Pow(8./9, 5)}, // a blank is missing
		{"tablelamp", "table lamp", 1},                     // not tab and lelamp, which are rarer
		{"nonee", "", 0},                                   // no document has none
		{"2048", "", 0},                                    // another number
		{"iphone", "", 0},                                  // another product
		{"lamx", "", 0},                                    // too short
		{"lamp's", "", 0},
		{"lamp’s", "", 0},
		{"lam.ps", "", 0},
		{strings.Repeat("x", 1000), "", 0},
		{"ca\xfft", "", 0},
		{"", "", 0},
	} {
		known, similarity := words.Nearest(tt.asked)
		if got := strings.Join(known, " "); got != tt.want || math.Abs(float64(similarity)-tt.similarity) > 1e-4 {
			t.Errorf("nearest to %q is %q (%v), want %q (%v)", tt.asked, got, similarity, tt.want, tt.similarity)
		}
	}
	check.That(t, NewWords(terms, make([]uint32, len(terms))) == nil, "without document frequencies there are known words")
}

func TestTwoEditsLeaveTheFirstLetterThatAllWordsShare(t *testing.T) {
	w := NewWords([]string{"restart", "restore"}, []uint32{1, 1})
	for asked, want := range map[string]string{"rextorr": "restore", "bextore": "", "bestore": "restore"} {
		known, _ := w.Nearest(asked)
		check.That(t, strings.Join(known, " ") == want, "nearest to %q is %q, want %q", asked, known, want)
	}
}

func TestNearestAmongWordsThatAreAllNear(t *testing.T) {
	var words []string
	var docFreqs []uint32
	for r := rune(0x4e00); len(words) < 5*nearWords; r++ {
		words, docFreqs = append(words, "gar"+string(r)+"en"), append(docFreqs, 1)
	}
	docFreqs[nearWords-1] = 7
	w := NewWords(words, docFreqs)
	for asked, want := range map[string]string{
		"garden": words[nearWords-1], "gar" + words[9][3:6] + "e": words[9], "gadren": words[nearWords-1], strings.Repeat("garden", 170): "",
	} {
		known, _ := w.Nearest(asked)
		check.That(t, strings.Join(known, " ") == want, "nearest to %.20q is %q, want %q", asked, known, want)
	}
}

// near is the definition: the distance to each word, one less where two letters
// of the word that is asked for are swapped.
func near(words []string, docFreqs []uint32, asked string) string {
	o := DefaultOptions()
	runes := []rune(asked)
	texts, swaps := []string{asked}, []int{0}
	for i := range len(runes) - 1 {
		swapped := slices.Clone(runes)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		texts, swaps = append(texts, string(swapped)), append(swaps, 1)
	}
	for _, most := range []int{1, 2} {
		best, units := -1, uint16(0)
		for i, text := range texts {
			for k, word := range words {
				d := levenshtein([]byte(text), []byte(word)) + swaps[i]
				longer, shorter := max(len(text), len(word)), min(len(text), len(word))
				if d > most || most == 2 && asked[0] != word[0] || !o.near(longer, shorter) {
					continue
				}
				if u := o.units(max(d, 1), longer); u > units || u == units && u > 0 && (docFreqs[k] > docFreqs[best] || docFreqs[k] == docFreqs[best] && k < best) {
					best, units = k, u
				}
			}
		}
		if best >= 0 {
			return words[best]
		}
		if len(runes) < shortestTwo {
			break
		}
	}
	return ""
}

func TestNearestIsByItsDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	words := spellings(1000)
	slices.Sort(words)
	var known []string
	var docFreqs []uint32
	for _, word := range words {
		if !strings.ContainsAny(word, "0123456789'") {
			known, docFreqs = append(known, word), append(docFreqs, 1+uint32(random.IntN(3)))
		}
	}
	w := NewWords(known, docFreqs)
	found := 0
	for range 500 {
		asked := misspelled(random, known[random.IntN(len(known))])
		if _, ok := slices.BinarySearch(known, asked); ok || len(asked) < shortestWord {
			continue
		}
		got, similarity := w.Nearest(asked)
		want := near(known, docFreqs, asked)
		if len(got) == 2 { // a compound
			got = nil
		}
		check.Equal(t, want, strings.Join(got, " "), asked, got, similarity)
		if want != "" {
			found++
		}
	}
	check.That(t, found >= 250, "only %d words have a near one", found)
}

// BenchmarkNearest looks for misspelled words among 2,000,000.
func BenchmarkNearest(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	words := spellings(2_000_000)
	slices.Sort(words)
	w := NewWords(words, slices.Repeat([]uint32{1}, len(words)))
	var asked []string
	for len(asked) < 1000 {
		word := misspelled(random, words[random.IntN(len(words))])
		if _, ok := slices.BinarySearch(words, word); !ok {
			asked = append(asked, word)
		}
	}
	for i := 0; b.Loop(); i++ {
		w.Nearest(asked[i%len(asked)])
	}
}
