package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis/lang/en"

	"github.com/akin-search/akin/e2e/check"
)

// The parts of SemEval-2016 task 3 subtask B that are there: everything is
// chosen on the first, and the second is only reported.
const (
	trainPart = "train2"
	devPart   = "dev"
)

// A forum is the data of the task: the texts to learn from, and the questions
// of each part with their candidates.
type forum struct {
	// texts are documents, each as its texts: every unlabeled text for itself,
	// then every thread with its title, its question and its comments.
	texts     [][][]string
	unlabeled int // how many of texts are unlabeled
	parts     map[string][]forumQuestion
}

// A forumQuestion has its title and its text, both together as terms, and its
// candidates in the order of the search engine that found them.
type forumQuestion struct {
	texts      [][]string
	terms      []string
	candidates []forumCandidate
}

// A forumCandidate is a thread as its texts: the title and the text of its
// question, and the comments.
type forumCandidate struct {
	texts    [][]string
	relevant bool
}

// terms are those of the title and the text, which a question is compared with.
func (c forumCandidate) terms() []string { return slices.Concat(c.texts[:2]...) }

// A forumThread is a line of corpus.jsonl.
type forumThread struct {
	ID       string `json:"_id"`
	Title    string
	Text     string
	Comments []string
}

// loadForum reads the data.
func loadForum(tb testing.TB) *forum {
	tb.Helper()
	tokenize, dir := newForumTokenizer(), check.Data(tb, "semeval_ql")
	f := &forum{parts: map[string][]forumQuestion{}}
	eachLine(tb, filepath.Join(dir, "unlabelled.txt"), func(line string) error {
		f.texts = append(f.texts, [][]string{tokenize(line)})
		return nil
	})
	f.unlabeled = len(f.texts)
	threads := map[string][][]string{}
	eachLine(tb, filepath.Join(dir, "corpus.jsonl"), func(line string) error {
		var d forumThread
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			return err
		}
		document := [][]string{tokenize(d.Title), tokenize(d.Text)}
		for _, comment := range d.Comments {
			document = append(document, tokenize(comment))
		}
		f.texts, threads[d.ID] = append(f.texts, document), document
		return nil
	})
	questions := map[string][][]string{}
	eachLine(tb, filepath.Join(dir, "queries.jsonl"), func(line string) error {
		var q forumThread
		err := json.Unmarshal([]byte(line), &q)
		questions[q.ID] = [][]string{tokenize(q.Title), tokenize(q.Text)}
		return err
	})
	for _, part := range []string{trainPart, devPart} {
		f.parts[part] = loadCandidates(tb, filepath.Join(dir, "candidates_"+part+".tsv"), questions, threads)
	}
	return f
}

// loadCandidates reads lines of question, thread, grade and rank behind a
// header line. A grade of 1 or 2 is relevant, as for the official scorer.
func loadCandidates(tb testing.TB, path string, questions, threads map[string][][]string) []forumQuestion {
	tb.Helper()
	type ranked struct {
		forumCandidate
		rank int
	}
	found := map[string][]ranked{}
	var order []string
	header := true
	eachLine(tb, path, func(line string) error {
		if header {
			header = false
			return nil
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || questions[fields[0]] == nil || threads[fields[1]] == nil {
			return fmt.Errorf("%q is not a known question, a known thread, a grade and a rank", line)
		}
		grade, err := strconv.Atoi(fields[2])
		if err != nil {
			return err
		}
		rank, err := strconv.Atoi(fields[3])
		if found[fields[0]] == nil {
			order = append(order, fields[0])
		}
		found[fields[0]] = append(found[fields[0]], ranked{forumCandidate{threads[fields[1]], grade > 0}, rank})
		return err
	})
	list := make([]forumQuestion, 0, len(order))
	for _, id := range order {
		slices.SortFunc(found[id], func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
		q := forumQuestion{texts: questions[id], terms: slices.Concat(questions[id]...)}
		for _, c := range found[id] {
			q.candidates = append(q.candidates, c.forumCandidate)
		}
		list = append(list, q)
	}
	return list
}

// Words in place of an image and for an address on the web. Nobody writes
// them.
const (
	imageTerm   = "imagetoken"
	addressTerm = "addresstoken"
)

// newForumTokenizer returns the preprocessing of the thesis, section 4.7.1:
// lower case, images and addresses replaced by one word each, split at white
// space and punctuation, and without English stop words. The list of stop words
// is that of bleve, split in the same way, so that "don't" goes as well.
func newForumTokenizer() func(text string) []string {
	image := regexp.MustCompile(`<img[^>]*>|\[img_assist[^\]]*\]`)
	address := regexp.MustCompile(`https?://\S+|www\.\S+`)
	split := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	}
	stop := map[string]bool{}
	for line := range bytes.Lines(en.EnglishStopWords) {
		word, _, _ := bytes.Cut(line, []byte("|"))
		for _, w := range split(string(word)) {
			stop[w] = true
		}
	}
	return func(text string) []string {
		text = image.ReplaceAllString(strings.ToLower(text), " "+imageTerm+" ")
		terms := split(address.ReplaceAllString(text, " "+addressTerm+" "))
		return slices.DeleteFunc(terms, func(term string) bool { return stop[term] })
	}
}
