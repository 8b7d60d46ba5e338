package learn

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestAcronymsAreFoundWithTheirLongForms(t *testing.T) {
	for text, want := range map[string]string{
		"the National Institutes of Health (NIH) said":             "NIH = National Institutes of Health",
		"levels of free fatty acids (ffa) rose":                    "ffa = free fatty acids",
		"NIH (National Institutes of Health)":                      "NIH = National Institutes of Health",
		"a body-mass index (BMI; in kg) of":                        "BMI = body-mass index",
		"Adds among other things (as) nothing":                     "", // a word, where the text has capitals
		"Heat shock protein 90 (Hsp90)":                            "Hsp90 = Heat shock protein 90",
		"reverse transcriptase-polymerase chain reaction (RT-PCR)": "RT-PCR = reverse transcriptase-polymerase chain reaction",
		"größte anzunehmende Unfälle (GAU)":                        "GAU = größte anzunehmende Unfälle",
		"It is real. Tissue is magnetic (MRI)":                     "", // the long form may not begin in another sentence
		"the car (see Table 1)":                                    "",
		"in vitro effects, that is (i.e.)":                         "",
		"deoxyribonucleic (DNA)":                                   "", // one word
		"of the CD4 cells (CD4)":                                   "",
		`check(t, \"body mass index (BMI)\")`:                      "BMI = body mass index",
		"BMI («body mass index.»)":                                 "BMI = body mass index",
		"bestsum, bestsoft = max (bestsum)":                        "",
		`boundary of "mass index (BMI)`:                            "",
		"body mass {index (BMI)":                                   "",
		"an open (bracket":                                         "",
		"(NIH)":                                                    "",
		"nested ((NIH) of) brackets":                               "",
		"too long an acronym (ABCDEFGHIJK)":                        "",
		strings.Repeat("ü", 300) + " body mass index (BMI)":        "BMI = body mass index",
		strings.Repeat("(a)", 100_000):                             "", // takes minutes if each is compared with all before
	} {
		texts := NewTexts()
		texts.Add("title", text)
		var got []string
		for _, a := range texts.Acronyms() {
			got = append(got, a.Short+" = "+a.Long)
		}
		check.Equal(t, want, strings.Join(got, "; "), text)
	}
}

func TestDocumentsThatDefineAnAcronymAreCountedOnce(t *testing.T) {
	texts, other := NewTexts(), NewTexts()
	texts.Add("body mass index (BMI)", "body mass index (BMI)")
	other.Add("body mass index (BMI)")
	texts.Append(other)
	check.Equal(t, []Acronym{{"BMI", "body mass index", 2}}, texts.Acronyms())
	var written bytes.Buffer
	check.OK(t, EncodeTexts(&written, texts))
	check.Equal(t, texts.Acronyms(), check.Got(DecodeTexts(&written))(t).Acronyms())
}

func TestRareAcronymsAreForgottenWhenThereAreTooMany(t *testing.T) {
	texts := NewTexts()
	texts.acronyms.most = 10
	for k := range 100 {
		texts.Add("body mass index (BMI)", fmt.Sprintf("word%d number (WN)", k))
		check.That(t, len(texts.acronyms.docs) <= 10, "%d acronyms", len(texts.acronyms.docs))
	}
	check.Equal(t, Acronym{"BMI", "body mass index", 100}, texts.Acronyms()[0])
	texts.acronyms.most = 0
	texts.Add("free fatty acids (FFA)")
	check.That(t, texts.acronyms.bytes == 0, "%d bytes of no acronym", texts.acronyms.bytes)
}
