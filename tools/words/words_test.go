package words

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// cosine returns the cosine of two words' vectors, which have unit length.
func cosine(t *testing.T, w *Words, a, b string) (sum float64) {
	t.Helper()
	v := w.Vector(b)
	for d, x := range w.Vector(a) {
		sum += float64(x) * float64(v[d])
	}
	return sum
}

func TestWordsOfOneMeaningHaveNearVectors(t *testing.T) {
	w := check.Got(Builtin())(t)
	check.That(t, len(builtin) <= 6<<20 && w.Dim() == 192, "%d bytes, dimension %d", len(builtin), w.Dim())
	check.That(t, strings.Contains(w.notice, "all-MiniLM-L6-v2") && strings.Contains(w.notice, "Apache License 2.0"), "notice %q", w.notice)
	for _, of := range [][3]string{ // a word, one of its meaning, one that is only spelled like it
		{"aubergine", "eggplant", "auburn"},
		{"nappies", "diapers", "applies"},
		{"diaper", "nappy", "dial"},
		{"sofa", "couch", "sofia"},
		{"car", "automobile", "carp"},
		{"doctor", "physician", "doctrine"},
		{"headphones", "earphones", "phoenix"},
	} {
		near, far := cosine(t, w, of[0], of[1]), cosine(t, w, of[0], of[2])
		check.That(t, near > far+0.1, "%s: %s %.2f, %s %.2f", of[0], of[1], near, of[2], far)
	}
}

func TestVectorsHaveUnitLength(t *testing.T) {
	w := check.Got(Builtin())(t)
	for _, word := range []string{"car", "headphones", "electroencephalography", "x86", "mother-in-law"} {
		check.That(t, math.Abs(cosine(t, w, word, word)-1) < 1e-5, "%s: %v", word, cosine(t, w, word, word))
	}
}

func TestSpellingsOfOneWordHaveOneVector(t *testing.T) {
	w := check.Got(Builtin())(t)
	for a, b := range map[string]string{"café": "cafe", "cafe\u0301": "cafe", "women's": "women", "women’s": "women"} {
		check.That(t, cosine(t, w, a, b) > 0.9999 && w.Has(a) == w.Has(b), "%q and %q", a, b)
	}
}

func TestWhatIsNoWordHasNoVector(t *testing.T) {
	w := check.Got(Builtin())(t)
	for _, word := range []string{
		"", "headphone.force", "u.s", "слово", "λόγος", "言葉", "straße", "日本car", "car\x00", "car\x1b[0m", "a_b", "c++", "\xff\xfe", "-", "''", "'s",
		strings.Repeat("a", 1000), strings.Repeat("é", 1000),
	} {
		check.That(t, w.Vector(word) == nil && !w.Has(word), "%.20q has a vector", word)
	}
}

func TestOnlyWholeWordsHaveRowsOfTheirOwn(t *testing.T) {
	w := check.Got(Builtin())(t)
	check.That(t, w.Has("house") && w.Has("diapers"), "house and diapers have none")
	for _, word := range []string{"##ing", "xk4711b", "mother-in-law", "donaudampfschifffahrt"} {
		check.That(t, !w.Has(word), "%s has one", word)
	}
}

func TestFunctionWordsAreKnown(t *testing.T) {
	words := FunctionWords()
	for _, word := range []string{"how", "what", "who", "do", "his", "her", "my", "i", "i'm", "don’t"} {
		check.That(t, words(word), "%s", word)
	}
	check.That(t, !words("car"), "car")
}

// small is a file with the words "a" and "ab", and the pieces "##b" and "##cd".
func small() string {
	file := []byte(magic + "\x02\x00\x04\x00\x00\x00")
	file = binary.LittleEndian.AppendUint32(file, math.Float32bits(65535))
	file = append(file, "\x04\x00note\x00\x03##b\x02\x02cd\x00\x01a\x01\x01b"...)
	for _, row := range []string{"\x01\x00\x01", "\x01\x00\x10", "\x02\x00\x02", "\x01\x00\x9f"} {
		file = append(file, row...)
	}
	return sealed(string(file))
}

// sealed returns a file with its checksum.
func sealed(file string) string {
	return string(binary.LittleEndian.AppendUint32([]byte(file), crc32.ChecksumIEEE([]byte(file))))
}

func TestVectorIsTheMeanOfTheLongestPieces(t *testing.T) {
	w := check.Got(Read(small()))(t)
	check.Equal(t, "note", w.notice)
	for word, want := range map[string][]float32{
		"a": {1, 0}, "acd": {4 / float32(math.Sqrt(17)), 1 / float32(math.Sqrt(17))}, "ab": {-1 / float32(math.Sqrt(50)), -7 / float32(math.Sqrt(50))}, "b": nil, "abc": nil,
	} {
		got := w.Vector(word)
		check.Must(t, len(got) == len(want), "%s: %v", word, got)
		for d := range got {
			check.That(t, math.Abs(float64(got[d]-want[d])) < 1e-6, "%s: %v, want %v", word, got, want)
		}
	}
}

func TestDamagedFileIsRefused(t *testing.T) {
	whole := small()
	for cut := range whole {
		check.That(t, errors.Is(check.ErrOf(Read(whole[:cut])), ErrFile), "%d bytes are read", cut)
		changed := []byte(whole)
		changed[cut] ^= 0x10
		check.That(t, errors.Is(check.ErrOf(Read(string(changed))), ErrFile), "a change of byte %d is not noticed", cut)
	}
	content := whole[:len(whole)-sumBytes]
	for name, file := range map[string]string{
		"too many rows": content[:7] + "\xff\xff\xff\xff" + content[11:], "no dimension": content[:5] + "\x00\x00" + content[7:],
		"an odd dimension": content[:5] + "\x03\x00" + content[7:], "no scale": content[:11] + "\x00\x00\x00\x00" + content[15:],
		"a scale that is no number": content[:11] + "\x00\x00\xc0\x7f" + content[15:], "an endless notice": content[:15] + "\xff\xff" + content[17:],
		"more than the word before": strings.Replace(content, "\x02\x02cd", "\x09\x02cd", 1), "words in another order": strings.Replace(content, "\x01a", "\x01!", 1),
		"a byte too many": content + "\x00",
	} {
		check.That(t, errors.Is(check.ErrOf(Read(sealed(file))), ErrFile), "%s is read", name)
	}
}

// FuzzRead reads any bytes as a file, with a right checksum too, and any word in
// it: that ends in an error or in vectors of unit length.
func FuzzRead(f *testing.F) {
	f.Add(small()[:len(small())-sumBytes], "abcd")
	f.Fuzz(func(t *testing.T, file, word string) {
		_, _ = Read(file)
		w, err := Read(sealed(file))
		if err != nil {
			check.That(t, errors.Is(err, ErrFile), "%v", err)
			return
		}
		v, length := w.Vector(word), 0.0
		for _, x := range v {
			length += float64(x) * float64(x)
		}
		check.That(t, v == nil || math.Abs(length-1) < 1e-3, "%q has the length %v", word, length)
	})
}
