// Package evaluate sends judged queries through several arms and says which is
// better: for each query, on average, and beyond chance. judged*.go read
// judgments and query logs. measure.go and chance.go have measures of
// rankings. report.go writes a result as a page, export.go an experiment for
// the Search Relevance Workbench. tune*.go say which settings keep their gain
// on queries that did not choose them. The package does no I/O of its own.
package evaluate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// An Arm is a way to search, for comparison with others.
type Arm struct {
	Name string
	// Plan identifies everything besides the body and the documents that the
	// answers depend on.
	Plan string
	// Search sends a search body.
	Search func(ctx context.Context, body []byte) (Answer, error)
}

// Answered has the answers of all arms to one query.
type Answered struct {
	Query   string   // the query's id
	Answers []Answer // in the order of the arms
}

// SearchOptions say how queries are sent.
type SearchOptions struct {
	// Body returns the search of a query.
	Body func(q Query) ([]byte, error)
	// Kept has answers of earlier runs and stores new ones; it may be nil.
	Kept *Kept
	// Refused reports whether to leave out a query after an error of an arm: its
	// answers are nil. If it is nil or returns false, the run ends.
	Refused func(err error) bool
	// Progress is called after each query; it may be nil.
	Progress simmatrix.Progress
}

// Search sends queries through arms, one search at a time. It returns the
// answers in the order of the queries, and on an error those before it. Queries
// start with each arm in turn, so that no arm profits more often from caches
// that another one has warmed. Each arm's first search is sent once before,
// without timing.
func Search(ctx context.Context, arms []Arm, queries []Query, o SearchOptions) ([]Answered, error) {
	answered := make([]Answered, 0, len(queries))
	warm := make([]bool, len(arms))
	for i, q := range queries {
		body, err := o.Body(q)
		if err != nil {
			return answered, fmt.Errorf("query %s: %w", q.ID, err)
		}
		answers := make([]Answer, len(arms))
		for n := range arms {
			k := (i + n) % len(arms)
			if answers[k], err = o.ask(ctx, arms[k], body, &warm[k]); err != nil {
				err = fmt.Errorf("arm %s, query %s: %w", arms[k].Name, q.ID, err)
				break
			}
		}
		if err != nil && o.Refused != nil && o.Refused(err) {
			answers, err = nil, nil
		}
		if err != nil {
			return answered, err
		}
		answered = append(answered, Answered{q.ID, answers})
		o.Progress.Report("searching", i+1, len(queries))
	}
	return answered, nil
}

func (o *SearchOptions) ask(ctx context.Context, arm Arm, body []byte, warm *bool) (Answer, error) {
	key := fmt.Sprintf("%x", sha256.Sum256(append([]byte(arm.Name+"\n"+arm.Plan+"\n"), body...)))
	return o.Kept.Answer(key, func() (Answer, error) {
		if !*warm {
			if a, err := arm.Search(ctx, body); err != nil {
				return a, err
			}
			*warm = true
		}
		return arm.Search(ctx, body)
	})
}

// Ranking returns hits in trec_eval's order, each document once: by descending
// score, with equal scores by descending id. Like trec_eval, it compares scores
// with 32 bits. If the engine's own order is not by score (a sort, or a rescore
// that lowers scores), that order stays, with scores that count down to 1.
func Ranking(hits []Hit) []Hit {
	ranking := distinct(hits)
	falling := func(a, b Hit) int { return cmp.Compare(float32(b.Score), float32(a.Score)) }
	if !slices.IsSortedFunc(ranking, falling) {
		for i := range ranking {
			ranking[i].Score = float64(len(ranking) - i)
		}
	}
	slices.SortFunc(ranking, func(a, b Hit) int { return cmp.Or(falling(a, b), strings.Compare(b.ID, a.ID)) })
	return ranking
}

func distinct(hits []Hit) []Hit {
	first, seen := make([]Hit, 0, len(hits)), make(map[string]bool, len(hits))
	for _, h := range hits {
		if !seen[h.ID] {
			seen[h.ID] = true
			first = append(first, h)
		}
	}
	return first
}

func idsOf(hits []Hit) []string {
	all := make([]string, len(hits))
	for i, h := range hits {
		all[i] = h.ID
	}
	return all
}

const placeholder = "{{query}}"

// A Template makes search bodies.
type Template struct {
	text []byte
	// Defaults for searches without these members.
	depth  int
	source any
}

// NewTemplate returns a template from a search body with {{query}} in some of
// its strings; body may be empty if queries have their own bodies. Searches
// without size ask for depth hits, and those without _source only for the field
// title, "" for none.
func NewTemplate(body []byte, depth int, title string) (*Template, error) {
	t := &Template{depth: depth, source: false}
	if title != "" {
		t.source = []string{title}
	}
	if body = bytes.TrimPrefix(body, []byte("\ufeff")); len(body) == 0 { // a byte order mark
		return t, nil
	}
	if !bytes.Contains(body, []byte(placeholder)) {
		return nil, fmt.Errorf("no %s in the search body in place of the query's text", placeholder)
	}
	var err error
	t.text, err = t.complete(body)
	return t, err
}

func (t *Template) complete(body []byte) ([]byte, error) {
	var search map[string]json.RawMessage
	if err := json.Unmarshal(body, &search); err != nil {
		return nil, fmt.Errorf("the search body is no JSON object: %w", err)
	}
	for name, value := range map[string]any{"size": t.depth, "_source": t.source} {
		if _, ok := search[name]; !ok {
			search[name], _ = json.Marshal(value) // a number, strings
		}
	}
	return json.Marshal(search)
}

// Body returns the search for a query.
func (t *Template) Body(q Query) ([]byte, error) {
	if q.Body != nil {
		return t.complete(q.Body)
	}
	if t.text == nil {
		return nil, errors.New("a query with a text needs a template")
	}
	text, err := json.Marshal(q.Text)
	if err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(t.text, []byte(placeholder), text[1:len(text)-1]), nil
}

// Depth returns how many hits the searches of the template ask for.
func (t *Template) Depth() int {
	search := struct{ Size int }{t.depth}
	_ = json.Unmarshal(t.text, &search) // an empty text has no size
	return search.Size
}

// maxKeptLine is more than the size of an answer with 10,000 hits.
const maxKeptLine = 64 << 20

type keptLine struct {
	Key    string `json:"key"`
	Answer Answer `json:"answer"`
}

const keptBegin = `{"key":"`

// Kept has the answers that runs have written to a file, by key. A nil Kept has
// none and stores none.
type Kept struct {
	answers map[string]Answer
	file    io.Writer
}

// ReadKept reads a file; new answers will be appended to it. It ignores an
// incomplete line of a killed run. A line of another kind of file is an error.
func ReadKept(file io.ReadWriter) (*Kept, error) {
	k := &Kept{map[string]Answer{}, file}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxKeptLine)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if !strings.HasPrefix(text, keptBegin) && !strings.HasPrefix(keptBegin, text) {
			return nil, fmt.Errorf("line %d: no answer of an evaluation: choose another file", n)
		}
		var line keptLine
		if json.Unmarshal([]byte(text), &line) == nil {
			k.answers[line.Key] = line.Answer
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	_, err := file.Write([]byte("\n")) // the last line may be incomplete
	return k, err
}

// Answer returns the stored answer, or asks for one and stores it.
func (k *Kept) Answer(key string, ask func() (Answer, error)) (Answer, error) {
	if k == nil {
		return ask()
	}
	if a, ok := k.answers[key]; ok {
		return a, nil
	}
	a, err := ask()
	if err != nil {
		return a, err
	}
	line, err := json.Marshal(keptLine{key, a})
	if err == nil {
		_, err = k.file.Write(append(line, '\n'))
	}
	return a, err
}
