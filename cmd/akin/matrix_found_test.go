package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

// fromTexts are the flags of a matrix that is learned from texts, each with a
// word of its own.
func fromTexts(t *testing.T, texts ...string) []string {
	t.Helper()
	docs := make([]documents.Document, len(texts))
	for i, text := range texts {
		docs[i] = documents.Document{ID: strconv.Itoa(i), Source: map[string]string{"body": fmt.Sprintf("%s filler%d", text, i)}}
	}
	engine := newIndex(t, "docs", `{"mappings":{"properties":{"body":{"type":"text","analyzer":"english"}}}}`, docs)
	return []string{"--from-index", engine, "--index", "docs", "--field", "body", "--min-df", "2"}
}

func TestAcronymsAndTheirLongFormsStandForEachOther(t *testing.T) {
	var texts []string
	for k := range 12 {
		texts = append(texts,
			"the Institutes of Health (IOH)", fmt.Sprintf("a study%d of medicine", k%3),
			fmt.Sprintf("ants and roses need water%d", k%3), fmt.Sprintf("AAR brakes trains on bridge%d", k%3))
	}
	texts = append(texts, "once only defined (OOD)", "ants and roses (AAR)", "ants and roses (AAR)")
	args := fromTexts(t, texts...)
	m, said := built(t, args...)
	check.Equal(t, []string{"acronyms: 1 kept, such as ioh – institutes of health; 2 left out, such as aar – ants and roses", "joined words: 0 kept; 0 left out"}, simmatrix.Tallies(m.Meta().Params))
	check.That(t, strings.Contains(said, "acronyms: 1 kept"), "%s", said)
	const expression = "\x1finstitut\x1f\x1fhealth"
	check.Equal(t, []string{"ioh"}, rowOf(m, expression))
	check.That(t, strings.Contains(strings.Join(rowOf(m, "ioh"), "|"), expression), "%q", rowOf(m, "ioh"))
	written, note := simmatrix.SplitForm(m.Form(expression))
	check.Equal(t, [2]string{"institutes of health", "acronym of 12 documents"}, [2]string{written, note})

	without, _ := built(t, append(args, "--acronyms=false", "--joined-words=false")...)
	check.That(t, without.Meta().Expressions == 0 && simmatrix.Tallies(without.Meta().Params) == nil, "%+v", without.Meta())
	ends(t, exitUsage, append([]string{"matrix", "build", "--out", "x", "--acronyms", "--words"}, args...), "--acronyms")
}

func TestJoinedWordsStandForTheirParts(t *testing.T) {
	texts := append(slices.Repeat([]string{"other things"}, 20),
		"the rib cage", "a Rib-cage", "ribcage", "Ribcages", "an e-mail", "one e mail", "emails", "email", "his cross", "a cross")
	m, said := built(t, fromTexts(t, texts...)...)
	check.That(t, strings.Contains(said, "joined words: 2 kept, such as e mail – email, rib cage – ribcag; "), "%s", said)
	check.Equal(t, []string{"ribcag"}, rowOf(m, "\x1frib\x1fcage"))
	check.Equal(t, []string{"email"}, rowOf(m, "\x1fe\x1fmail"))
	check.That(t, !strings.Contains(strings.Join(rowOf(m, "email"), ""), "\x1f"), "%q", rowOf(m, "email"))
}
