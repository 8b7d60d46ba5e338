package searches

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/e2e/check"
)

func TestTextsAreNormalized(t *testing.T) {
	for typed, want := range map[string]string{
		"":                                     "",
		" \t\n":                                "",
		"Red  CAR\n":                           "red car",
		"a\x00b\x1b[31mc":                      "a b [31mc",
		"\u202eabc\ufeff":                      "abc",
		"a\xffb":                               "a b",
		"Mu\u0308nchen":                        "münchen",
		"自動車 保険":                               "自動車 保険",
		"भाषा":                                 "भाषा",
		"<script>x</script>":                   "<script>x</script>", // pages escape it
		strings.Repeat("a", 256):               strings.Repeat("a", 256),
		strings.Repeat("a", 257):               "",
		strings.Repeat(" a ", 120):             strings.TrimSpace(strings.Repeat("a ", 120)),
		strings.Repeat("word ", 2000):          "",
		"a@b.example":                          "",
		"mail to jo@x.example please":          "",
		"ｊｏ＠ｘ.example":                         "",
		"@home":                                "@home",
		"5 @ 3":                                "5 @ 3",
		"0171 234-56 78":                       "",
		"call +49 (171) 2345678":               "",
		"٠١٢٣٤٥٦٧٨٩":                           "",
		"012345678":                            "012345678",
		"iphone 15 pro max 256 gb":             "iphone 15 pro max 256 gb",
		"wh-1000xm4":                           "wh-1000xm4",
		"covid-19-vaccination":                 "covid-19-vaccination",
		"donaudampfschifffahrtskapitän":        "donaudampfschifffahrtskapitän",
		"550e8400-e29b-41d4-a716-446655440000": "",
		"da39a3ee5e6b4b0d3255bfef":             "",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx":    "",
		"key AbC3dEf6GhIjKlMnOp":               "",
	} {
		check.Equal(t, want, Text(typed), typed)
	}
}

// Whatever is typed, what is kept can be shown, and typed again it is the same.
func FuzzText(f *testing.F) {
	for _, typed := range []string{"Red  Car", "a\u0307\u0323 İ ǅ ﬁ", "jo@x.example", "0171 234 56 78", "\u200d\u202e\x00"} {
		f.Add(typed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		text := Text(typed)
		check.Equal(t, text, Text(text), "typed again")
		shown := utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) && text == strings.Join(strings.Fields(text), " ")
		check.That(t, shown && len(text) <= maxBytes, "%q is kept as %q", typed, text)
		digits := 0
		for _, r := range text {
			if digits++; !unicode.IsDigit(r) {
				digits = 0
			}
			check.Must(t, digits < 10, "%q has a number", text)
		}
		for word := range strings.FieldsSeq(text) {
			at := strings.Index(word, "@")
			check.That(t, at <= 0 || at == len(word)-1, "%q may have an address", text)
		}
	})
}
