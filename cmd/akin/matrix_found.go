package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
)

// foundFlags say which expressions of several words are looked for in the
// documents that a matrix is learned from.
type foundFlags struct {
	acronyms bool
	joined   bool
	findings []combine.Finding
}

const (
	// acronymDocs is how many documents have to define an acronym, and
	// acronymCosine how alike they have to use both forms.
	acronymDocs, acronymCosine = 2, 0.5
	// acronymUse is in how many times the documents that define an acronym its
	// short form may be. What is in more is a word by itself, such as read.
	acronymUse = 100
	// joinedDocs is how many documents have to have a joined word, and joinedCount
	// how often its parts have to stand beside each other. That says enough: an
	// index that uses both alike would leave out mostly right ones.
	joinedDocs, joinedCount = 2, 2
)

func (f *foundFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.acronyms, "acronyms", true,
		"let acronyms that documents define, as in \"body mass index (BMI)\", and their long forms stand for each other")
	flags.BoolVar(&f.joined, "joined-words", true,
		"let a word stand for its parts, where documents also write these as two words or with a hyphen, as in \"rib cage\" and \"ribcage\"")
}

// check takes whether words are not analyzed as searches are. Entries that go
// one way are not looked for where rows have to be symmetric.
func (f *foundFlags) check(flags *pflag.FlagSet, otherwise, symmetric bool) error {
	var errs []error
	for _, name := range []string{"acronyms", "joined-words"} {
		if flag := flags.Lookup(name); otherwise && flag.Changed && flag.Value.String() == "true" {
			errs = append(errs, fmt.Errorf("--%s does not go with --words and --exact-analysis", name))
		}
	}
	if symmetric {
		if f.joined && flags.Changed("joined-words") {
			errs = append(errs, errors.New("--joined-words does not go with --symmetric: its entries go one way"))
		}
		f.joined = false
	}
	return errors.Join(errs...)
}

// find finds the entries in the texts of documents. terms are those of the
// words.
func (f *foundFlags) find(ctx context.Context, x *indexReading, texts *learn.Texts, terms [][]string, corpus *learn.Corpus) error {
	if f.acronyms {
		finding, err := findAcronyms(ctx, x, texts, corpus.DocFreq)
		if err != nil {
			return err
		}
		f.findings = append(f.findings, finding)
	}
	if f.joined {
		f.findings = append(f.findings, findJoined(texts.Joined(terms, corpus), corpus))
	}
	return nil
}

// add adds the entries to the matrix of the documents.
func (f *foundFlags) add(m *simmatrix.Matrix, corpus *learn.Corpus) (*simmatrix.Matrix, error) {
	if len(f.findings) == 0 {
		return m, nil
	}
	return combine.AddFound(m, corpus.DocFreq, f.findings...)
}

func findAcronyms(ctx context.Context, x *indexReading, texts *learn.Texts, docFreq func(term string) uint32) (combine.Finding, error) {
	acronyms := texts.Acronyms()
	x.Report.Step("analyzing acronyms", 0, len(acronyms))
	both := make([]string, 0, 2*len(acronyms))
	for _, a := range acronyms {
		both = append(both, a.Short, a.Long)
	}
	readings, err := x.Readings(ctx, both)
	if err != nil {
		return combine.Finding{}, err
	}
	type pair struct{ short, long string }
	at := map[pair]int{} // in the entries
	finding := combine.Finding{
		Kind: "acronyms", Cosine: acronymCosine,
		Unlike: "documents do not use both alike",
	}
	most := map[pair]int{} // the documents with the form that most of them have
	for k, a := range acronyms {
		if len(readings[2*k]) == 0 || len(readings[2*k+1]) == 0 {
			continue
		}
		p := pair{readings[2*k][0], readings[2*k+1][0]}
		if p.short == p.long || !simmatrix.IsExpression(p.long) {
			continue
		}
		i, known := at[p]
		if !known {
			i = len(finding.Entries)
			at[p] = i
			finding.Entries = append(finding.Entries, combine.FoundEntry{Term: p.long, For: p.short, Both: true})
		}
		e := &finding.Entries[i]
		if e.Docs += a.Docs; a.Docs > most[p] {
			most[p] = a.Docs
			e.ForForm, e.TermForm = strings.ToLower(a.Short), strings.ToLower(a.Long)
		}
	}
	for i := range finding.Entries {
		e := &finding.Entries[i]
		e.Note = fmt.Sprintf("acronym of %d documents", e.Docs)
		switch {
		case e.Docs < acronymDocs:
			e.LeftOut = fmt.Sprintf("fewer than %d documents explain it", acronymDocs)
		case int(docFreq(e.For)) > acronymUse*e.Docs:
			e.LeftOut = "the short form is a frequent word by itself"
		}
	}
	return finding, nil
}

func findJoined(joined []learn.Joined, corpus *learn.Corpus) combine.Finding {
	finding := combine.Finding{Kind: "joined words"}
	for _, j := range joined {
		parts, err := simmatrix.Expression([]string{j.First, j.Second}, []int{0, 1})
		if err != nil {
			continue
		}
		e := combine.FoundEntry{Term: j.Term, For: parts, Docs: j.Count, ForForm: j.Form, Note: fmt.Sprintf("joined word, %d times as two", j.Count)}
		if corpus.DocFreq(j.Term) < joinedDocs || j.Count < joinedCount {
			e.LeftOut = "too rarely written as one word, or as two"
		}
		finding.Entries = append(finding.Entries, e)
	}
	return finding
}
