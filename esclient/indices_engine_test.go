package esclient

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/mapping"
)

// count returns how many documents a search of the indices finds, and whether
// the engine refuses the search.
func (e *engine) count(t *testing.T, indices Indices) (n int64, refused bool) {
	t.Helper()
	var answer struct {
		Hits struct {
			Total struct {
				Value int64 `json:"value"`
			} `json:"total"`
		} `json:"hits"`
	}
	path := "/" + Name(indices.Expression) + "/_search?size=0&" + indices.Options
	err := e.Client.Do(t.Context(), Call{Request: HTTPRequest{Method: http.MethodPost, Path: path}}, &answer)
	var refusal *Error
	check.Must(t, err == nil || errors.As(err, &refusal), "%v", err)
	return answer.Hits.Total.Value, err != nil
}

// testExpressions compares the documents that the statistics are of with those
// that a search of the same expression goes to.
func (e *engine) testExpressions(t *testing.T) {
	today := time.Now().UTC().Format("2006.01.02")
	mappings := Object{"properties": Object{"t": Object{"type": "text"}}}
	for i, name := range []string{"x-a", "x-b", "x-hidden", "x-closed", "x-100%25+ü", "x-" + today} {
		settings := Object{"number_of_replicas": 0}
		if name == "x-hidden" {
			settings["hidden"] = true
		}
		e.Create(t, name, settings, mappings)
		docs := make([]Object, 1<<i) // so that the sum tells of the indices
		for k := range docs {
			docs[k] = Object{"t": "car"}
		}
		e.Put(t, name, docs...)
	}
	e.Engine.Do(t, http.MethodPost, "/"+e.At("x-closed")+"/_close", nil)
	e.Engine.Do(t, http.MethodPost, "/_aliases", Object{"actions": []Object{
		{"add": Object{"indices": []string{e.At("x-a"), e.At("x-b")}, "alias": e.At("xy")}},
	}})

	p := e.At("")
	expressions := []string{
		p + "x-a", p + "x-*", p + "x-*,-" + p + "x-b", p + "x-a," + p + "x-b", p + "xy", "<" + p + "x-{now/d}>",
		"<" + p + "x-{now/d{yyyy.MM.dd|+00:00}}>", p + "x-a,<" + p + "x-{now/d}>", p + "x-hidden", p + "x-closed",
		p + "x-none", p + "x-none*", p + "x-100%25+ü", p + "x-100%*," + p + "x-a", p + "x?a", p + "x#a", p + "x-a," + p + "x-none", p + "x-a," + p + "x-closed", "-" + p + "x-a",
	}
	options := []string{
		"", "ignore_unavailable=true", "expand_wildcards=open,hidden", "expand_wildcards=all", "expand_wildcards=none",
		"allow_no_indices=false", "allow_no_indices=true&expand_wildcards=hidden&ignore_unavailable=true",
	}
	for _, expression := range expressions {
		for _, o := range options {
			indices := Indices{expression, o}
			c := e.cached(t)
			a, analyzeErr := c.Analyze(t.Context(), indices, "t", "", "cars")
			dfs := make([]int64, 1)
			s, err := c.Statistics(t.Context(), indices, "t", []string{"car"}, dfs)
			names, fieldsErr := c.Fields(t.Context(), indices, "*")
			n, refused := e.count(t, indices)
			switch {
			case refused || n == 0:
				// The search itself finds nothing: what is said of it is of no use.
			case err != nil || analyzeErr != nil || fieldsErr != nil:
				t.Errorf("%+v: errors %v, %v and %v", indices, analyzeErr, err, fieldsErr)
			case s.DocCount != n || dfs[0] != n || !slices.Equal(a.Terms, []string{"cars"}) || !slices.Equal(names, []string{"t"}):
				t.Errorf("%+v: N = %d, df = %d, terms %q, fields %q, a search finds %d documents",
					indices, s.DocCount, dfs[0], a.Terms, names, n)
			}
		}
	}
	t.Run("all indices", func(t *testing.T) {
		for _, expression := range []string{"", "_all", "*"} {
			_, err := e.cached(t).Analyze(t.Context(), at(expression), "no such field", "", "x")
			check.Error(t, mapping.ErrNotText, err, expression)
		}
	})
}

// testDataStream needs an engine that has data streams.
func (e *engine) testDataStream(t *testing.T) {
	name := e.At("stream")
	template := "/_index_template/" + name
	made := e.Make(t.Context(), http.MethodPut, template, Object{
		"index_patterns": []string{name}, "data_stream": Object{}, "template": Object{
			"settings": Object{"number_of_replicas": 0},
			"mappings": Object{"properties": Object{"t": Object{"type": "text"}}},
		},
	})
	drop := func(path string) { _ = e.Make(context.Background(), http.MethodDelete, path, nil) }
	if made == nil {
		made = e.Make(t.Context(), http.MethodPut, "/_data_stream/"+name, nil)
		t.Cleanup(func() { drop("/_data_stream/" + name); drop(template) })
	}
	if made != nil {
		t.Skipf("the engine has no data streams: %v", made)
	}
	e.Engine.Do(t, http.MethodPost, "/"+name+"/_doc?refresh=true", Object{"@timestamp": time.Now().UTC().Format(time.RFC3339), "t": "a car"})
	for _, expression := range []string{name, name[:len(name)-1] + "*"} {
		c := e.cached(t)
		a, err := c.Analyze(t.Context(), at(expression), "t", "", "cars")
		check.That(t, err == nil && slices.Equal(a.Terms, []string{"cars"}), "%s: %+v, %v", expression, a, err)
		dfs := make([]int64, 1)
		if s, err := c.Statistics(t.Context(), at(expression), "t", []string{"car"}, dfs); err != nil || s.DocCount != 1 || dfs[0] != 1 {
			t.Errorf("%s: %+v, %v, %v", expression, s, dfs, err)
		}
	}
}

// testFields compares with the fields that the engine itself searches.
func (e *engine) testFields(t *testing.T) {
	e.Create(t, "fields", Object{"number_of_replicas": 0}, Object{"properties": Object{
		"title":  Object{"type": "text", "fields": Object{"raw": Object{"type": "keyword"}, "std": Object{"type": "text"}}},
		"tag":    Object{"type": "keyword"},
		"number": Object{"type": "integer", "fields": Object{"text": Object{"type": "text"}}},
		"double": Object{"type": "double"}, "flag": Object{"type": "boolean"}, "ip": Object{"type": "ip"},
		"date": Object{"type": "date"}, "range": Object{"type": "integer_range"}, "complete": Object{"type": "completion"},
		"where": Object{"type": "geo_point"}, "bytes": Object{"type": "binary"},
		"other": Object{"type": "alias", "path": "title.std"}, "tither": Object{"type": "alias", "path": "title"},
		"object": Object{"properties": Object{"text": Object{"type": "text"}, "off": Object{"type": "object", "enabled": false}}},
		"list": Object{"type": "nested", "properties": Object{
			"text": Object{"type": "text"}, "alias": Object{"type": "alias", "path": "list.text"},
		}},
		"type": Object{"type": "keyword"}, "path": Object{"type": "text"}, "properties": Object{"type": "text"},
	}})
	// Elasticsearch 8 leaves out fields that no document of the shard has.
	e.Put(t, "fields", Object{
		"title": "car", "tag": "car", "number": 7, "double": 1.5, "flag": true, "ip": "127.0.0.1", "date": "2020-01-01",
		"range": Object{"gte": 1}, "complete": "car", "where": "1,1", "bytes": "eA==", "type": "car", "path": "car",
		"properties": "car", "object": Object{"text": "car", "off": Object{"x": "car"}}, "list": []Object{{"text": "car"}},
	})
	aliases := map[string]string{"other": "title.std", "tither": "title", "list.alias": "list.text"}
	// The fields that cannot hold the text: the engine says of each that it
	// failed, but not reliably which it was.
	failing := []string{"date", "double", "flag", "ip", "number", "range"}
	searched := regexp.MustCompile(`([\w.]+):car`)
	for _, pattern := range []string{
		"*", "t*", "title*", "title.*", "*.text", "o*.t*", "o*", "ti*r", "list.*", "l*s", "n*", "*a*e*", "p*", "ty*", "none*", "object.o*",
	} {
		names, err := e.cached(t).Fields(t.Context(), at(e.At("fields")), pattern)
		check.OK(t, err)
		got, failed := map[string]bool{}, 0
		for _, name := range names {
			switch target := aliases[name]; {
			case slices.Contains(failing, name):
				failed++
			case target != "":
				got[target] = true
			default:
				got[name] = true
			}
		}
		var answer struct {
			Explanations []struct {
				Explanation string `json:"explanation"`
			} `json:"explanations"`
		}
		err = e.Client.Do(t.Context(), Call{Request: esapi.IndicesValidateQueryRequest{
			Index: []string{e.At("fields")}, Explain: new(true),
			Body: JSON(Object{"query": Object{"multi_match": Object{"query": "car", "fields": []string{pattern}, "lenient": true}}}),
		}}, &answer)
		if err != nil || len(answer.Explanations) != 1 {
			t.Fatal(pattern, err, len(answer.Explanations))
		}
		explanation := answer.Explanations[0].Explanation
		want := map[string]bool{}
		for _, m := range searched.FindAllStringSubmatch(explanation, -1) {
			// A pattern other than * takes the engine's own fields, too.
			if !strings.HasPrefix(m[1], "_") {
				want[m[1]] = true
			}
		}
		diff := cmp.Diff(want, got)
		check.That(t, diff == "" && strings.Count(explanation, "failed [") == failed, "%s: %d fields fail, %s\n%s", pattern, failed, diff, explanation)
	}
	t.Run("of large mappings", func(t *testing.T) {
		properties := Object{}
		for i := range mapping.MaxFields + 1 {
			properties["f"+strconv.Itoa(i)] = Object{"type": "text"}
		}
		e.Create(t, "large", Object{"number_of_replicas": 0, "mapping": Object{"total_fields": Object{"limit": 2000}}}, Object{"properties": properties})
		c := e.cached(t)
		names, err := c.Fields(t.Context(), at(e.At("large")), "*")
		check.That(t, errors.Is(err, mapping.ErrTooManyFields), "%d fields, error %v", len(names), err)
		if names, err := c.Fields(t.Context(), at(e.At("large")), "f102*"); len(names) != 6 || err != nil {
			t.Errorf("fields %q, error %v", names, err) // f102, f1020 to f1024
		}
	})
}
