package dsl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/reason"
)

// documentedRows returns the rows of all tables of docs/queries.md whose
// heading begins with the words given: the names in code spans of each cell.
func documentedRows(t *testing.T, heading string) [][][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "queries.md"))
	check.OK(t, err)
	var rows [][][]string
	inside := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, heading):
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && !strings.HasPrefix(line, "|---"):
			var row [][]string
			for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), " |") {
				row = append(row, codeSpans(cell))
			}
			rows = append(rows, row)
		}
	}
	check.Must(t, len(rows) != 0, "docs/queries.md has no table with the heading %s", heading)
	return rows
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func codeSpans(text string) []string {
	var names []string
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestDocumentedQueriesAreThoseOfTheCode(t *testing.T) {
	type treatment struct {
		Read            bool
		Inside, Outside []string
		Reason          string
	}
	want := map[string]treatment{}
	for name, k := range kinds {
		want[name] = treatment{Read: k.read != nil, Inside: k.inside, Outside: k.outside}
	}
	for name, why := range leftAlone {
		want[name] = treatment{Reason: string(why)}
	}
	got := map[string]treatment{}
	for _, row := range documentedRows(t, "| query | what is expanded |") {
		for _, name := range row[0] {
			got[name] = treatment{Read: true}
		}
	}
	for _, row := range documentedRows(t, "| query | looks into | does not change |") {
		for _, name := range row[0] {
			got[name] = treatment{Inside: row[1], Outside: row[2]}
		}
	}
	for _, row := range documentedRows(t, "| queries | reason |") {
		for _, name := range row[0] {
			got[name] = treatment{Reason: row[1][0]}
		}
	}
	check.Equal(t, want, got, "kinds and docs/queries.md differ (want the code, got the page)")
}

// optionsOfBuilders are the options that Elasticsearch's and OpenSearch's builders
// for Java know: the fields of type ParseField in versions 7.10 and 8.19, 2.19,
// with what they take from other classes.
var optionsOfBuilders = map[string]string{
	"match":               "_name analyzer auto_generate_synonyms_phrase_query boost cutoff_frequency fuzziness fuzzy_rewrite fuzzy_transpositions lenient max_expansions minimum_should_match operator prefix_length query zero_terms_query",
	"match_bool_prefix":   "_name analyzer boost fuzziness fuzzy_rewrite fuzzy_transpositions max_expansions minimum_should_match operator prefix_length query",
	"match_phrase":        "_name analyzer boost query slop zero_terms_query",
	"match_phrase_prefix": "_name analyzer boost max_expansions query slop zero_terms_query",
	"multi_match":         "_name analyzer auto_generate_synonyms_phrase_query boost cutoff_frequency fields fuzziness fuzzy_rewrite fuzzy_transpositions lenient max_expansions minimum_should_match operator prefix_length query slop tie_breaker type zero_terms_query",
	"combined_fields":     "_name auto_generate_synonyms_phrase_query boost fields minimum_should_match operator query zero_terms_query",
	"query_string":        "_name allow_leading_wildcard analyze_wildcard analyzer auto_generate_synonyms_phrase_query boost default_field default_operator enable_position_increments escape fields fuzziness fuzzy_max_expansions fuzzy_prefix_length fuzzy_rewrite fuzzy_transpositions lenient max_determinized_states minimum_should_match phrase_slop query quote_analyzer quote_field_suffix rewrite tie_breaker time_zone type",
	"more_like_this":      "_name analyzer boost boost_terms fail_on_unsupported_field fields include like max_doc_freq max_query_terms max_word_length min_doc_freq min_term_freq min_word_length minimum_should_match stop_words unlike",
	"simple_query_string": "_name all_fields analyze_wildcard analyzer auto_generate_synonyms_phrase_query boost default_operator fields flags fuzzy_max_expansions fuzzy_prefix_length fuzzy_transpositions lenient locale lowercase_expanded_terms minimum_should_match query quote_field_suffix type",
}

func TestDocumentedOptionsAreRead(t *testing.T) {
	values := map[string]string{
		"query": `"car"`, "fields": `["a"]`, "default_field": `"a"`, "type": `"best_fields"`, "operator": `"OR"`, "default_operator": `"and"`,
		"analyzer": `"standard"`, "like": `"car"`, "stop_words": `["a"]`, "unlike": `"van"`,
	}
	documented := map[string][]string{}
	for _, row := range documentedRows(t, "| option | of | what akin does |") {
		for _, kind := range row[1] {
			for _, option := range row[0] {
				documented[kind] = append(documented[kind], option)
				value, ok := values[option]
				if !ok {
					value = "1"
				}
				text := "query"
				if kind == "more_like_this" {
					text = "like"
				}
				options := `{"` + text + `":"car"`
				if option != text {
					options += `,"` + option + `":` + value
				}
				if options += "}"; HasOneField(kind) {
					options = `{"a":` + options + `}`
				}
				var want reason.Reason
				if slices.Contains(row[2], string(reason.Options)) {
					want = reason.Options
				}
				s, _ := (&Parser{Phrases: true, MoreLikeThis: true}).Parse([]byte(`{"query":{"`+kind+`":`+options+`}}`), new(Parameters))
				check.Equal(t, want, s.Clauses[0].Reason, kind+" "+option)
			}
		}
	}
	for kind, options := range optionsOfBuilders {
		for option := range strings.FieldsSeq(options) {
			check.That(t, slices.Contains(documented[kind], option), "docs/queries.md does not say what becomes of %s in %s", option, kind)
		}
	}
}

func TestDocumentedRetrieversAreThoseOfTheCode(t *testing.T) {
	got := map[string]string{}
	for _, row := range documentedRows(t, "| retriever | looks into |") {
		for _, name := range row[0] {
			got[name] = row[1][0]
		}
	}
	check.Equal(t, retrievers, got, "retrievers and docs/queries.md differ (want the code, got the page)")
}

// reasonsOfProxy is the heading of the reasons that are the proxy's own.
const reasonsOfProxy = "| reason | why the proxy "

func TestDocumentedReasonsAreThoseOfTheCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "reason", "reason.go"), nil, 0)
	check.OK(t, err)
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			literal, _ := spec.Values[0].(*ast.BasicLit)
			value, err := strconv.Unquote(literal.Value)
			check.OK(t, err)
			want = append(want, value)
		}
		return true
	})
	var got []string
	for _, row := range documentedRows(t, "| reason | why ") {
		got = append(got, row[0]...) // a heading has none
	}
	for _, row := range documentedRows(t, reasonsOfProxy) {
		got = slices.DeleteFunc(got, func(name string) bool { return slices.Contains(row[0], name) })
	}
	slices.Sort(want)
	slices.Sort(got)
	var all []string
	for _, r := range reason.All() {
		all = append(all, string(r))
	}
	slices.Sort(all)
	check.Equal(t, want, all, "the reasons of reason.go and reason.All differ (-code +All)")
	check.Equal(t, want, got, "the reasons of reason.go and of docs/queries.md differ (want the code, got the page)")
}
