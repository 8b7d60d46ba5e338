package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
)

// Warn tells of fields whose index terms are no words, if the cluster says so.
func (x *indexReading) Warn(ctx context.Context) {
	for _, field := range x.Scan.Fields {
		if s, err := x.Client.Schema(ctx, x.Scan.Index, field); err == nil && s.NotWords != "" {
			x.Report.Tell("warning: the terms of field %s are no words, because of its %s: their neighbors are no related words. "+
				"Learn from a field that is analyzed into words. Searches of %s are not expanded unless fields in matrices names it in full.", field, s.NotWords, field)
		}
	}
}

// inflected are forms of one word in pairs, of languages of which most stemmers
// know one.
var inflected = strings.Fields(`walk walking horse horses house houses hund hunde grande grandes casa casas
	libro libros ragazzo ragazzi bella belle boek boeken kind kinderen flicka flickor talo talot auto autot
	ev evler kitap kitaplar kniha knihy ház házak asztal asztalok книга книги стол стола كتاب كتابان`)

// Stems reports whether the fields' analyzer makes one term of the forms of a
// word: of two pairs at least, since one may be a slip.
func (x *indexReading) Stems(ctx context.Context) (bool, error) {
	terms, err := x.Client.AnalyzeWords(ctx, x.Scan.Index, x.Scan.Fields[0], inflected)
	if err != nil {
		return false, err
	}
	alike := 0
	for pair := range slices.Chunk(terms, 2) {
		if len(pair[0]) == 1 && slices.Equal(pair[0], pair[1]) {
			alike++
		}
	}
	return alike > 1, nil
}

// wordsAtOnce is how many words are analyzed between two reports of progress.
const wordsAtOnce = 5000

// Analyze returns the index terms of each word, by the analyzer of the fields.
func (x *indexReading) Analyze(ctx context.Context, words []string) ([][]string, error) {
	terms := make([][]string, 0, len(words))
	for batch := range slices.Chunk(words, wordsAtOnce) {
		x.Report.Step("analyzing words", len(terms), len(words))
		analyzed, err := x.Client.AnalyzeWords(ctx, x.Scan.Index, x.Scan.Fields[0], batch)
		if err != nil {
			return nil, err
		}
		terms = append(terms, analyzed...)
	}
	x.Report.Step("analyzing words", len(terms), len(words))
	sample := words[:min(len(words), wordsAtOnce)]
	for _, field := range x.Scan.Fields[1:] {
		other, err := x.Client.AnalyzeWords(ctx, x.Scan.Index, field, sample)
		if err != nil {
			return nil, err
		}
		for k := range sample {
			if !slices.Equal(other[k], terms[k]) {
				return nil, fmt.Errorf("the fields %s and %s are not analyzed alike (%q is %q and %q): build a matrix for each",
					x.Scan.Fields[0], field, sample[k], terms[k], other[k])
			}
		}
	}
	return terms, nil
}

// formDocs is how many documents [indexReading.SampleForms] reads at most.
const formDocs = 5000

// SampleForms reads some documents, a random choice, as texts, and returns them
// with the forms of their terms, for a corpus that was read as index terms. It
// returns nil, and says why, where that is not to be had.
func (x *indexReading) SampleForms(ctx context.Context) *learn.Corpus {
	sample := *x
	sample.Terms, sample.Spool = false, ""
	if x.MaxDocs == 0 || x.MaxDocs > formDocs {
		sample.MaxDocs = formDocs
	}
	x.Report.Tell("the forms in which people write the terms are learned from at most %d texts", sample.MaxDocs)
	var terms [][]string
	texts, _, err := sample.Texts(ctx)
	if err == nil {
		terms, err = sample.Analyze(ctx, texts.Words())
	}
	if err != nil {
		x.Report.Tell("note: terms are shown as they are, without the forms in which people write them: %v", err)
		return nil
	}
	return texts.Corpus(terms)
}

// LookUp asks the cluster what index terms the words give, and how many
// documents have those.
func (x *indexReading) LookUp(ctx context.Context, words []string) (*combine.ProjectOptions, error) {
	analyzed, err := x.Analyze(ctx, words)
	if err != nil {
		return nil, err
	}
	found := &combine.ProjectOptions{IndexTerms: make(map[string][]string, len(words))}
	var terms []string
	for k, word := range words {
		found.IndexTerms[word] = analyzed[k]
		if len(analyzed[k]) == 1 {
			terms = append(terms, analyzed[k][0])
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	if found.DocFreqs, found.Docs, err = x.docFreqs(ctx, terms); err != nil {
		return nil, err
	}
	return found, nil
}

// docFreqs returns the document frequencies of the terms, and N. With several
// fields both are the largest that one of them has.
func (x *indexReading) docFreqs(ctx context.Context, terms []string) (map[string]uint32, uint64, error) {
	docFreqs, docs := make(map[string]uint32, len(terms)), uint64(0)
	for _, field := range x.Scan.Fields {
		done := 0
		for batch := range slices.Chunk(terms, wordsAtOnce) {
			x.Report.Step("counting documents with "+field, done, len(terms))
			counts, n, err := x.Client.DocFreqs(ctx, x.Scan.Index, field, batch)
			if err != nil {
				return nil, 0, err
			}
			docs = max(docs, uint64(max(n, 0)))
			for k, term := range batch {
				docFreqs[term] = max(docFreqs[term], uint32(min(max(counts[k], 0), math.MaxUint32)))
			}
			done += len(batch)
		}
	}
	return docFreqs, docs, nil
}
