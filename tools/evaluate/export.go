package evaluate

import (
	"cmp"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of OpenSearch's Search Relevance Workbench, in version 3.8 of the
// plugin (TextValidationUtil, github.com/opensearch-project/search-relevance),
// and of scripts.
const (
	workbenchText  = 2000    // characters of a query, and of each of its fields
	workbenchName  = 50      // characters of a name
	maxTemplate    = 1 << 16 // bytes, script.max_size_in_bytes
	refusedByTexts = "\"\\<>\n\r#:"
)

// A WorkbenchQuery is an entry of a query set: its text, and what the templates
// of search configurations put in for it.
type WorkbenchQuery map[string]string

// An Export has what the Search Relevance Workbench runs an experiment with, as
// its API takes it (docs.opensearch.org, Search Relevance Workbench).
type Export struct {
	// QuerySet and Judgments are bodies of PUT requests.
	QuerySet  WorkbenchQuerySet
	Judgments WorkbenchJudgments
	// Searches are bodies of PUT requests for search configurations, in the
	// order of the arms.
	Searches []WorkbenchSearch
	// Refused are the sorted ids of queries that the workbench does not take,
	// because of a character in their texts, or their length.
	Refused []string
	// Reordered says by arm how many searches akin put in order after the
	// engine, which the workbench cannot.
	Reordered map[string]int
}

// A WorkbenchQuerySet is the body of PUT _plugins/_search_relevance/query_sets.
type WorkbenchQuerySet struct {
	Name     string           `json:"name"`
	Sampling string           `json:"sampling"`
	Queries  []WorkbenchQuery `json:"querySetQueries"`
}

// WorkbenchJudgments is the body of PUT _plugins/_search_relevance/judgments.
type WorkbenchJudgments struct {
	Name    string             `json:"name"`
	Type    string             `json:"type"`
	Ratings []workbenchRatings `json:"judgmentRatings"`
}

type workbenchRatings struct {
	Query   string            `json:"query"`
	Ratings []workbenchRating `json:"ratings"`
}

type workbenchRating struct {
	Document string `json:"docId"`
	Rating   string `json:"rating"`
}

// A WorkbenchSearch is the body of PUT
// _plugins/_search_relevance/search_configurations. Query is a Mustache
// template.
type WorkbenchSearch struct {
	Name  string `json:"name"`
	Index string `json:"index"`
	Query string `json:"query"`
}

// NewExport returns an experiment with the searches that the arms sent to the
// cluster, see [Answer.Sent]. Queries have texts.
//
// A search configuration is one template for all queries, and what akin
// makes of them differs from query to query. So a query carries its own
// searches, as fields that the template puts in: base64 in wrapper queries,
// cut to the length that a field may have. What surrounds them is in the
// template, once for each form that occurs.
func NewExport(name, index string, set *Set, arms []Arm, answered []Answered) (*Export, error) {
	e := &Export{
		QuerySet:  WorkbenchQuerySet{Name: name, Sampling: "manual"},
		Judgments: WorkbenchJudgments{Name: name, Type: "IMPORT_JUDGMENT"},
		Reordered: map[string]int{},
	}
	texts := map[string]string{}
	for _, q := range set.Queries {
		texts[q.ID] = q.Text
	}
	templates := make([]workbenchTemplate, len(arms))
	for _, a := range answered {
		text := texts[a.Query]
		if text == "" {
			return nil, fmt.Errorf("query %s has no text", a.Query)
		}
		if len([]rune(text)) > workbenchText || strings.ContainsAny(text, refusedByTexts) {
			e.Refused = append(e.Refused, a.Query)
			continue
		}
		query := WorkbenchQuery{"queryText": text}
		for k := range arms {
			if a.Answers[k].Reordered {
				e.Reordered[arms[k].Name]++
			}
			if err := templates[k].add(query, k, a.Answers[k].Sent); err != nil {
				return nil, fmt.Errorf("arm %s, query %s: %w", arms[k].Name, a.Query, err)
			}
		}
		e.QuerySet.Queries = append(e.QuerySet.Queries, query)
		e.Judgments.Ratings = append(e.Judgments.Ratings, workbenchRatings{text, ratingsOf(set.Grades[a.Query])})
	}
	slices.Sort(e.Refused)
	for k, arm := range arms {
		query := templates[k].text(k)
		if len(query) >= maxTemplate {
			return nil, fmt.Errorf("arm %s: the searches differ in more than queries: leave out of the template what has {{query}} besides them, such as highlight and suggest", arm.Name)
		}
		short := name + " " + arm.Name
		e.Searches = append(e.Searches, WorkbenchSearch{short[:min(len(short), workbenchName)], index, query})
	}
	return e, nil
}

func ratingsOf(grades map[string]float64) []workbenchRating {
	ratings := make([]workbenchRating, 0, len(grades))
	for _, id := range slices.Sorted(maps.Keys(grades)) {
		ratings = append(ratings, workbenchRating{id, strconv.FormatFloat(grades[id], 'g', -1, 64)})
	}
	return ratings
}

// A workbenchTemplate collects the forms of searches: their JSON with a
// number in place of each query, in the order of [slots]. Chunks is how
// many fields the longest query in each place takes.
type workbenchTemplate struct {
	forms  []string
	chunks []int
}

// add adds a search of arm k, and to the query the fields for it.
func (t *workbenchTemplate) add(query WorkbenchQuery, k int, search []byte) error {
	form, queries, err := slots(search)
	if err != nil {
		return err
	}
	at := slices.Index(t.forms, form)
	if at < 0 {
		at, t.forms = len(t.forms), append(t.forms, form)
	}
	query[fmt.Sprintf("form%d_%d", k, at)] = "1"
	for place, q := range queries {
		text, n := base64.StdEncoding.EncodeToString(q), 0
		for chunk := range slices.Chunk([]byte(text), workbenchText) {
			query[fmt.Sprintf("query%d_%d_%d", k, place, n)] = string(chunk)
			n++
		}
		if place == len(t.chunks) {
			t.chunks = append(t.chunks, 0)
		}
		t.chunks[place] = max(t.chunks[place], n)
	}
	return nil
}

// text returns the template of arm k: each form, which Mustache leaves out of
// the searches that do not have its field.
func (t *workbenchTemplate) text(k int) string {
	var b strings.Builder
	for at, form := range t.forms {
		for place, chunks := range t.chunks {
			var fields strings.Builder
			for n := range chunks {
				fmt.Fprintf(&fields, "{{query%d_%d_%d}}", k, place, n)
			}
			form = strings.Replace(form, fmt.Sprintf("@%d@", place), fields.String(), 1)
		}
		fmt.Fprintf(&b, "{{#form%d_%d}}%s{{/form%d_%d}}", k, at, form, k, at)
	}
	return b.String()
}

// slot stands for a query in the form of a search, and is no query itself: its
// text is no base64.
func slot(place int) string { return fmt.Sprintf(`{"wrapper":{"query":"@%d@"}}`, place) }

// slots returns a search with wrapper queries around slots in place of its
// query and those of its rescores, and these queries. Size is left to the
// experiment.
func slots(search []byte) (form string, queries []json.RawMessage, err error) {
	if search == nil {
		return "", nil, errors.New("what the cluster got is not known: akin keeps too few explanations, or the search is longer than 64 KB")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(search, &members); err != nil {
		return "", nil, fmt.Errorf("the search body is no JSON object: %w", err)
	}
	delete(members, "size")
	delete(members, "from")
	take := func(of map[string]json.RawMessage, name string) {
		if query := of[name]; query != nil {
			of[name] = json.RawMessage(slot(len(queries)))
			queries = append(queries, query)
		}
	}
	take(members, "query")
	if members["rescore"] != nil {
		var rescores []struct {
			Window json.RawMessage            `json:"window_size,omitempty"`
			Query  map[string]json.RawMessage `json:"query"`
		}
		all := members["rescore"]
		if all[0] == '{' {
			all = slices.Concat([]byte("["), all, []byte("]"))
		}
		if err := json.Unmarshal(all, &rescores); err != nil {
			return "", nil, fmt.Errorf("rescore: %w", err)
		}
		for _, r := range rescores {
			if r.Query == nil {
				return "", nil, errors.New("rescore: only those with a query can be exported")
			}
			take(r.Query, "rescore_query")
		}
		members["rescore"], _ = json.Marshal(rescores) // parts of a JSON text
	}
	text, err := json.Marshal(members)
	if strings.Contains(string(text), "{{") {
		err = errors.New("besides its queries, a search that is exported must not have {{, which begins a variable of Mustache")
	}
	return string(text), queries, err
}

// WriteQuepid writes the judgments as Quepid imports ratings: CSV with the
// header query,docid,rating.
func WriteQuepid(w io.Writer, set *Set) error {
	table := csv.NewWriter(w)
	rows := [][]string{{"query", "docid", "rating"}}
	for _, q := range set.Judged() {
		for _, r := range ratingsOf(set.Grades[q.ID]) {
			rows = append(rows, []string{Cell(cmp.Or(q.Text, q.ID)), Cell(r.Document), r.Rating})
		}
	}
	return table.WriteAll(rows)
}
