package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/norms"
	"github.com/akin-search/akin/simmatrix"
)

// An advised cluster answers what "index advise" asks of one.
type advised struct {
	// index is the answer to GET /docs, "" for one that is not there.
	index string
	// counts are those of documents, as an aggregation tells them.
	counts string
	// length is how many terms a document has on average.
	length int
	// scripts is the answer to GET /_script_language, "" for none.
	scripts string
	// skipped is how many documents lack body.akin and have norms, by the id of
	// their weights, "" for any.
	skipped map[string]int
}

const (
	takesScripts = `{"types_allowed":["inline"],"language_contexts":[{"language":"painless","contexts":["similarity"]}]}`
	noScripts    = `{"types_allowed":["inline"],"language_contexts":[]}`
	storedFields = `"akin_norm":{"properties":{"body":{"type":"float","index":false}}},
		"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}`
	exactSettings = `"index.similarity.akin_linear.type":"scripted",
		"index.similarity.akin_linear.script.source":"return query.boost * doc.freq;"`
	exactBody = `"body":{"type":"text","analyzer":"english","fields":{
		"akin":{"type":"text","analyzer":"english","similarity":"akin_linear","norms":false,"index_options":"freqs"}}}`
)

func oneIndex(properties, settings string) string {
	return `{"docs":{"mappings":{"properties":{` + properties + `}},"settings":{` + settings + `}}}`
}

// TestLongTextsAreAdvisedToHaveSegments is about an index that is ready else.
func TestLongTextsAreAdvisedToHaveSegments(t *testing.T) {
	const there = `,"segments":{"type":"nested","properties":{"text":{"type":"text"},"position":{"type":"long"},"share":{"type":"float"}}},"segments_by":{"type":"keyword"}`
	for name, tt := range map[string]struct {
		length int
		more   string
		note   bool
		put    bool
	}{
		"short":              {299, "", false, false},
		"long":               {300, "", true, true},
		"with segments":      {300, there, true, false},
		"with another field": {300, `,"segments":{"type":"keyword"}`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := advised{index: oneIndex(exactBody+tt.more, ""), length: tt.length, counts: `{"buckets":{}}`}
			out, _, _ := runAdvise(t, c)
			if got := strings.Contains(out, "300 terms on average"); got != tt.note {
				t.Errorf("a note: %v\n%s", got, out)
			}
			_, steps, put := strings.Cut(out, "# Segments")
			if put != tt.put || put && (!strings.Contains(steps, `"analyzer": "english"`) || !strings.Contains(steps, "akin segments backfill --cluster")) {
				t.Errorf("the mapping: %v\n%s", put, out)
			}
		})
	}
}

// serve returns the URL of the cluster.
func (a advised) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer string
		name, api, _ := strings.Cut(r.URL.Path[1:], "/")
		switch {
		case r.URL.Path == "/_script_language":
			answer = a.scripts
		case r.Method == http.MethodGet && (api == "" || api == "_mapping"):
			answer = a.index
			if r.URL.Query().Has("filter_path") { // about one index
				var all map[string]json.RawMessage
				if err := json.Unmarshal([]byte(a.index), &all); err != nil {
					t.Error(err)
				}
				if one, ok := all[name]; ok {
					quoted, _ := json.Marshal(name)
					answer = fmt.Sprintf("{%s:%s}", quoted, one)
				}
			}
		case api == "_refresh":
			answer = "{}"
		case api == "_termvectors":
			answer = fmt.Sprintf(`{"term_vectors":{"body":{"field_statistics":{"sum_ttf":%d,"doc_count":10}}}}`, 10*a.length)
		case api == "_count":
			answer = a.countSkipped(t, r.Body)
		case api == "_search":
			answer = `{"_shards":{"failed":0},"aggregations":{"docs":` + a.counts + `}}`
		default:
			t.Errorf("%s %s is asked for: nothing may be changed", r.Method, r.URL)
		}
		if answer == "" {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"type":"index_not_found_exception","reason":"no such index"}}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// countSkipped answers how many documents a backfill skips.
func (a advised) countSkipped(t *testing.T, query io.Reader) string {
	t.Helper()
	var body struct {
		Query struct {
			Bool struct {
				Filter []struct {
					Exists map[string]string
					Term   map[string]map[string]string
				}
				MustNot struct{ Exists map[string]string } `json:"must_not"`
			}
		}
	}
	if err := json.NewDecoder(query).Decode(&body); err != nil {
		t.Error(err)
		return ""
	}
	q := &body.Query.Bool
	if len(q.Filter) != 2 || q.Filter[0].Exists["field"] != "body" || q.MustNot.Exists["field"] != "body.akin" {
		t.Errorf("counted are %+v", q)
		return ""
	}
	id := q.Filter[1].Term["akin_norm_weights.body"]["value"]
	if (id == "") != (q.Filter[1].Exists["field"] == "akin_norm_weights.body") {
		t.Errorf("counted are %+v", q)
	}
	return fmt.Sprintf(`{"count":%d,"_shards":{"failed":0}}`, a.skipped[id])
}

// runAdvise runs the command on a cluster.
func runAdvise(t *testing.T, a advised, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	url := a.serve(t)
	all := append([]string{"index", "advise", "--cluster", url}, args...)
	if !strings.Contains(strings.Join(args, " "), "--index") {
		all = append(all, "--index", "docs")
	}
	if !strings.Contains(strings.Join(args, " "), "--field") {
		all = append(all, "--field", "body")
	}
	stdout, stderr, status = akin(t, all...)
	return strings.ReplaceAll(stdout, url, "URL"), strings.ReplaceAll(stderr, url, "URL"), status
}

func TestMistakesInTheFlagsOfAdvice(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", "")
	for name, tt := range map[string]struct{ args, want []string }{
		"nothing given":          {nil, []string{"--cluster", "--index", "--field"}},
		"an unknown choice":      {[]string{"--cluster", "http://x", "--index", "i", "--field", "f", "--scripted", "perhaps"}, []string{"--scripted", "perhaps"}},
		"an analyzer to check":   {[]string{"--cluster", "http://x", "--index", "i", "--field", "f", "--analyzer", "english"}, []string{"--analyzer"}},
		"weights of a new index": {[]string{"--cluster", "http://x", "--index", "i", "--field", "f", "--new", "--weights", "w"}, []string{"--weights"}},
		"a cluster that is none": {[]string{"--cluster", "x", "--index", "i", "--field", "f"}, []string{"http"}},
		"an argument":            {[]string{"docs"}, []string{`"docs"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, status := akin(t, append([]string{"index", "advise"}, tt.args...)...)
			if status != exitUsage {
				t.Errorf("status %d, want %d", status, exitUsage)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in\n%s", want, stderr)
				}
			}
		})
	}
}

func TestAdviceForANewIndexIsTheBodyThatCreatesIt(t *testing.T) {
	const mappings = `"mappings": {
    "properties": {
      "akin_norm": {
        "properties": {
          "body": {
            "index": false,
            "type": "float"
          }
        }
      },
      "akin_norm_weights": {
        "properties": {
          "body": {
            "type": "keyword"
          }
        }
      },
      "body": {
        "analyzer": "english",
        "fields": {
          "akin": {
            "analyzer": "english",
            "index_options": "freqs",
            "norms": false,
            "similarity": "akin_linear",
            "type": "text"
          }
        },
        "type": "text"
      }
    }
  },
`
	scripted := "{\n  " + mappings + `  "settings": {
    "index.similarity.akin_linear.script.source": "return query.boost * doc.freq;",
    "index.similarity.akin_linear.type": "scripted"
  }
}
`
	bm25 := "{\n  " + mappings + `  "settings": {
    "index.similarity.akin_linear.b": "0",
    "index.similarity.akin_linear.k1": "10000",
    "index.similarity.akin_linear.type": "BM25"
  }
}
`
	for name, tt := range map[string]struct {
		scripts, flag, want string
		unsure              bool
	}{
		"scripts run":            {takesScripts, "auto", scripted, false},
		"scripts do not run":     {noScripts, "auto", bm25, false},
		"the cluster is silent":  {"", "auto", bm25, true},
		"scripts are wanted":     {"", "yes", scripted, false},
		"scripts are not wanted": {takesScripts, "no", bm25, false},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, status := runAdvise(t, advised{scripts: tt.scripts}, "--new", "--analyzer", "english", "--scripted", tt.flag)
			if diff := cmp.Diff(tt.want, stdout); diff != "" || status != 0 {
				t.Errorf("status %d (-want +got):\n%s%s", status, diff, stderr)
			}
			if strings.Contains(stderr, "--scripted yes") != tt.unsure {
				t.Errorf("wrongly mentions the choice:\n%s", stderr)
			}
			if !strings.Contains(stderr, "PUT /docs\n") || !strings.Contains(stderr, "akin norms backfill --cluster URL --index docs --field body --weights weights.akin") {
				t.Errorf("no way to the norms in\n%s", stderr)
			}
		})
	}
}

// requests returns the requests among what is printed, a line of JSON each.
func requests(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	for block := range strings.SplitSeq(text, "\n\n") {
		var lines []string
		for line := range strings.Lines(block) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		first, body, _ := strings.Cut(strings.Join(lines, ""), "\n")
		if !strings.HasPrefix(first, "P") { // POST and PUT
			continue
		}
		request := first
		if strings.TrimSpace(body) != "" {
			var v any
			if err := json.Unmarshal([]byte(body), &v); err != nil {
				t.Fatalf("%s: %v\n%s", first, err, body)
			}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			request += " " + string(text)
		}
		all = append(all, request)
	}
	return all
}

func TestAdviceForAnIndexIsWhatItLacks(t *testing.T) {
	const (
		putScript = `PUT /docs/_settings {"index.similarity.akin_linear.script.source":"return query.boost * doc.freq;","index.similarity.akin_linear.type":"scripted"}`
		stored    = `"akin_norm":{"properties":{"body":{"index":false,"type":"float"}}},"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}`
		fill      = `POST /docs/_update_by_query?conflicts=proceed&refresh=true&wait_for_completion=false ` +
			`{"query":{"bool":{"filter":{"exists":{"field":"body"}},"must_not":{"exists":{"field":"body.akin"}}}}}`
	)
	multi := func(name, more string) string {
		return `"fields":{"` + name + `":{` + more + `"index_options":"freqs","norms":false,"similarity":"akin_linear","type":"text"}}`
	}
	for name, tt := range map[string]struct {
		index, counts string
		skipped       map[string]int
		args, want    []string
		rows          []string // that stand in the check
		commands      []string
		hopeless      bool // no command is printed
	}{
		"nothing there": {
			index: oneIndex(`"body":{"type":"text"}`, ""),
			want:  []string{"POST /docs/_close", putScript, "POST /docs/_open", `PUT /docs/_mapping {"properties":{` + stored + `,"body":{` + multi("akin", "") + `,"type":"text"}}}`},
			rows:  []string{"MISSING linear field", "BM25 with k1 1.2 and b 0.75", "MISSING akin_norm.body", "MISSING akin_norm_weights.body", "MISSING norms"},
			commands: []string{
				"akin norms snapshot --cluster URL --index docs --field body --out weights.akin",
				"akin norms backfill --cluster URL --index docs --field body --weights weights.akin",
				"akin index advise --cluster URL --index docs --field body",
			},
		},
		"what the field has stays": {
			index: oneIndex(`"o":{"properties":{"body":{"type":"text","analyzer":"a","search_analyzer":"b","store":true,"fields":{"raw":{"type":"keyword"}}}}}`, ""),
			args:  []string{"--field", "o.body", "--scripted", "no"},
			want: []string{
				"POST /docs/_close",
				`PUT /docs/_settings {"index.similarity.akin_linear.b":"0","index.similarity.akin_linear.k1":"10000","index.similarity.akin_linear.type":"BM25"}`,
				"POST /docs/_open",
				`PUT /docs/_mapping {"properties":{"akin_norm":{"properties":{"o__body":{"index":false,"type":"float"}}},` +
					`"akin_norm_weights":{"properties":{"o__body":{"type":"keyword"}}},"o":{"properties":{"body":{"analyzer":"a",` +
					multi("akin", `"analyzer":"a",`)[:len(multi("akin", `"analyzer":"a",`))-len(`"similarity":"akin_linear","type":"text"}}`)] +
					`"search_analyzer":"b","similarity":"akin_linear","type":"text"}},"search_analyzer":"b","store":true,"type":"text"}}}}}`,
			},
		},
		"a similarity of ours that is none": {
			index: oneIndex(exactBody+","+storedFields, `"index.similarity.akin_linear.type":"BM25","index.similarity.akin_linear.k1":"1.2"`),
			counts: `{"doc_count":3,"unfilled":{"doc_count":0},"weighted":{"doc_count":3},"bare":{"doc_count":0},
				"ids":{"buckets":[{"key":"aa","doc_count":3}]}}`,
			want: []string{
				"POST /docs/_close",
				`PUT /docs/_settings {"index.similarity.akin_linear.k1":null,"index.similarity.akin_linear.script.source":"return query.boost * doc.freq;","index.similarity.akin_linear.type":"scripted"}`,
				"POST /docs/_open",
			},
			rows: []string{"MISSING linear field", "k1 1.2"},
		},
		"a multi-field of ours with another analyzer": {
			index: oneIndex(`"body":{"type":"text","analyzer":"english","fields":{"akin":{"type":"text","similarity":"akin_linear"}}},`+storedFields, exactSettings),
			counts: `{"doc_count":3,"weighted":{"doc_count":3},"bare":{"doc_count":0},
				"ids":{"buckets":[{"key":"aa","doc_count":3}]}}`,
			want: []string{
				`PUT /docs/_mapping {"properties":{"body":{"analyzer":"english",` + multi("akin_2", `"analyzer":"english",`) + `,"type":"text"}}}`,
				strings.ReplaceAll(fill, "body.akin", "body.akin_2"),
			},
			rows: []string{"MISSING linear field", `its analyzer is "default", that of the field is "english"`},
		},
		"half filled": {
			index: oneIndex(exactBody+","+storedFields, exactSettings),
			counts: `{"doc_count":10,"unfilled":{"doc_count":4},"weighted":{"doc_count":10},"bare":{"doc_count":0},
				"ids":{"buckets":[{"key":"aa","doc_count":10}]}}`,
			skipped: map[string]int{"": 4},
			want:    []string{fill},
			rows:    []string{"ok linear field body.akin", "MISSING text in body.akin 4 of 10", "ok norms all 10 documents, by the weights aa"},
		},
		"norms that lack": {
			index: oneIndex(exactBody+","+storedFields, exactSettings),
			counts: `{"doc_count":10,"unfilled":{"doc_count":0},"weighted":{"doc_count":8},"bare":{"doc_count":2},"normless":{"doc_count":1},
				"ids":{"buckets":[{"key":"aa","doc_count":8}]}}`,
			rows: []string{"ok text in body.akin", "MISSING norms 2 of 10 documents have none; the others by the weights aa (8)", "note norms 1 documents"},
			commands: []string{
				"akin norms backfill --cluster URL --index docs --field body --weights FILE",
				"akin index advise --cluster URL --index docs --field body --weights FILE",
			},
		},
		"norms of two weights": {
			index: oneIndex(exactBody+","+storedFields, exactSettings),
			counts: `{"doc_count":10,"unfilled":{"doc_count":0},"weighted":{"doc_count":10},"bare":{"doc_count":0},
				"ids":{"buckets":[{"key":"aa","doc_count":8},{"key":"bb","doc_count":2}]}}`,
			rows: []string{"WRONG norms not all are by the same weights: aa (8), bb (2)", "run this again with # --weights FILE of the weights to keep"},
			commands: []string{
				"akin norms backfill --cluster URL --index docs --field body --weights FILE",
				"akin index advise --cluster URL --index docs --field body --weights FILE",
			},
		},
		"norms as integers": {
			index: oneIndex(exactBody+`,"akin_norm":{"properties":{"body":{"type":"long"}}},"akin_norm_weights":{"properties":{"body":{"type":"text"}}}`, exactSettings),
			rows:  []string{"WRONG akin_norm.body mapped as long", "WRONG akin_norm_weights.body mapped as text"},
			commands: []string{
				"akin index advise --cluster URL --index docs --field body --new",
			},
		},
		"a nested field": {
			index:    oneIndex(`"n":{"type":"nested","properties":{"body":{"type":"text"}}}`, ""),
			args:     []string{"--field", "n.body"},
			rows:     []string{`WRONG documents field "n.body" of index "docs": it is in the nested documents of "n"`},
			hopeless: true,
		},
		"documents that are not kept": {
			index:    `{"docs":{"mappings":{"_source":{"enabled":false},"properties":{"body":{"type":"text"}}},"settings":{}}}`,
			rows:     []string{"WRONG documents", "keeps no _source"},
			hopeless: true,
		},
		"text of other fields": {
			index:    oneIndex(`"title":{"type":"text","copy_to":"body"},"body":{"type":"text"}`, ""),
			rows:     []string{"WRONG documents", "copy_to"},
			hopeless: true,
		},
		"text of other fields and norms as integers": {
			index:    oneIndex(`"title":{"type":"text","copy_to":"body"},"body":{"type":"text"},"akin_norm":{"properties":{"body":{"type":"long"}}}`, ""),
			rows:     []string{"WRONG documents", "copy_to", "WRONG akin_norm.body"},
			hopeless: true,
		},
		"no text": {
			index:    oneIndex(`"body":{"type":"keyword"}`, ""),
			rows:     []string{"WRONG field body the index maps it as keyword: not a text field; searches"},
			hopeless: true,
		},
		"a small k1": {
			index: oneIndex(`"body":{"type":"text","fields":{"flat":{"type":"text","similarity":"flat"}}}`, `"index.similarity.flat.type":"BM25","index.similarity.flat.k1":"2000","index.similarity.flat.b":"0"`),
			args:  []string{"--scripted", "no"},
			want: []string{
				"POST /docs/_close",
				`PUT /docs/_settings {"index.similarity.akin_linear.b":"0","index.similarity.akin_linear.k1":"10000","index.similarity.akin_linear.type":"BM25"}`,
				"POST /docs/_open",
				`PUT /docs/_mapping {"properties":{` + stored + `,"body":{` + multi("akin", "") + `,"type":"text"}}}`,
			},
			rows: []string{"MISSING linear field", "note body its similarity", "WRONG body.flat its similarity", "k1 2000"},
		},
		"a large k1": {
			index: oneIndex(exactBody+","+storedFields, `"index.similarity.akin_linear.type":"BM25","index.similarity.akin_linear.k1":"6000","index.similarity.akin_linear.b":"0"`),
			counts: `{"doc_count":1,"unfilled":{"doc_count":0},"weighted":{"doc_count":1},"bare":{"doc_count":0},"normless":{"doc_count":1},
				"ids":{"buckets":[{"key":"aa","doc_count":1}]}}`,
			rows: []string{"ok linear field body.akin", "note k1 6000; the error is smallest at 10000"},
		},
		"an alias": {
			index: oneIndex(`"t":{"type":"alias","path":"body"},"body":{"type":"text"}`, exactSettings),
			args:  []string{"--field", "t"},
			want:  []string{`PUT /docs/_mapping {"properties":{` + stored + `,"body":{` + multi("akin", "") + `,"type":"text"}}}`},
			rows:  []string{"ok field body text", "note field t an alias of body: searches by that name are ranked in mode bm25", "MISSING akin_norm.body"},
			commands: []string{
				"akin norms snapshot --cluster URL --index docs --field body --out weights.akin",
				"akin index advise --cluster URL --index docs --field body",
			},
		},
		"a closed index": {
			index:    `{"docs":{"mappings":{"properties":{"body":{"type":"text"}}},"settings":{"index.verified_before_close":"true"}}}`,
			rows:     []string{"WRONG index it is closed"},
			hopeless: true,
		},
		"a mapping without objects": {
			index:  `{"docs":{"mappings":{"subobjects":false,"properties":{` + exactBody + `}},"settings":{` + exactSettings + `}}}`,
			want:   []string{`PUT /docs/_mapping {"properties":{"akin_norm.body":{"index":false,"type":"float"},"akin_norm_weights.body":{"type":"keyword"}}}`},
			counts: `{"doc_count":0}`,
		},
		"a multi-field": {
			index: oneIndex(`"body":{"type":"keyword","fields":{"std":{"type":"text"}}},`+storedFields, exactSettings),
			args:  []string{"--field", "body.std"},
			want: []string{`PUT /docs/_mapping {"properties":{"akin_norm":{"properties":{"body__std":{"index":false,"type":"float"}}},` +
				`"akin_norm_weights":{"properties":{"body__std":{"type":"keyword"}}},"body":{` + multi("std_akin", "") + `,"type":"keyword"}}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, status := runAdvise(t, advised{index: tt.index, counts: tt.counts, skipped: tt.skipped, scripts: takesScripts}, tt.args...)
			if status != exitFailure {
				t.Errorf("status %d, want %d\n%s", status, exitFailure, stderr)
			}
			if diff := cmp.Diff(tt.want, requests(t, stdout)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			words := strings.Join(strings.Fields(stdout), " ")
			for _, row := range tt.rows {
				if !strings.Contains(words, row) {
					t.Errorf("%q is not in\n%s", row, stdout)
				}
			}
			if strings.Contains(stdout, "# ") == tt.hopeless {
				t.Errorf("advised, although nothing helps, or not:\n%s", stdout)
			}
			for _, command := range tt.commands {
				if !strings.Contains(stdout, "# "+command+"\n") {
					t.Errorf("%q is not in\n%s", command, stdout)
				}
			}
		})
	}
}

// weightsFile writes a matrix and returns its name and its id as weights.
func weightsFile(t *testing.T) (file, id string) {
	t.Helper()
	m, err := simmatrix.New(simmatrix.Meta{Docs: 3}, []simmatrix.TermRow{{Term: "car", DocFreq: 2}})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "weights.akin")
	if err := files.Write(t.Context(), file, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
		t.Fatal(err)
	}
	return file, norms.ID(m.Checksum())
}

func TestReadyIndexPasses(t *testing.T) {
	file, id := weightsFile(t)
	a := advised{
		index: oneIndex(exactBody+","+storedFields, exactSettings), scripts: takesScripts,
		counts: fmt.Sprintf(`{"doc_count":3,"unfilled":{"doc_count":0},"weighted":{"doc_count":3},"bare":{"doc_count":0},
			"ids":{"buckets":[{"key":%q,"doc_count":3}]}}`, id),
	}
	for _, args := range [][]string{nil, {"--weights", file}} {
		stdout, stderr, status := runAdvise(t, a, args...)
		if status != 0 || strings.Contains(stdout, "MISSING") || strings.Contains(stdout, "WRONG") || len(requests(t, stdout)) != 0 ||
			!strings.Contains(stdout, "Mode hard can rank by body.") || stderr != "" {
			t.Errorf("%q: status %d\n%s%s", args, status, stdout, stderr)
		}
	}
	a.counts = `{"doc_count":3,"weighted":{"doc_count":0},"bare":{"doc_count":0},"ids":{"buckets":[{"key":"old","doc_count":3}]}}`
	stdout, _, status := runAdvise(t, a, "--weights", file)
	if status != exitFailure || !strings.Contains(stdout, "by other weights than "+id+": by old (3)") ||
		!strings.Contains(stdout, "--weights "+file) || strings.Contains(stdout, "snapshot") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

// counted returns the counts of ten documents.
func counted(unfilled, weighted, bare int, kinds ...string) string {
	return fmt.Sprintf(`{"doc_count":10,"unfilled":{"doc_count":%d},"weighted":{"doc_count":%d},"bare":{"doc_count":%d},"ids":{"buckets":[%s]}}`,
		unfilled, weighted, bare, strings.Join(kinds, ","))
}

// kind returns the bucket of the documents whose norms are by some weights.
func kind(id string, n int) string { return fmt.Sprintf(`{"key":%q,"doc_count":%d}`, id, n) }

func TestWeightsThatAreInUseAreKept(t *testing.T) {
	file, id := weightsFile(t)
	index := oneIndex(exactBody+","+storedFields, exactSettings)
	for name, tt := range map[string]struct {
		counts  string
		weights bool // are given
		named   string
		fresh   bool // new ones are made
	}{
		"no norms yet":                 {counts: counted(0, 0, 10), fresh: true},
		"a change of weights":          {counts: counted(0, 10, 0, kind("aa", 8), kind("bb", 2)), named: "by the weights aa (8), bb (2)."},
		"a first backfill":             {counts: counted(0, 4, 6, kind("aa", 4)), named: "by the weights aa (4)."},
		"a change to given weights":    {counts: counted(0, 2, 0, kind("aa", 8), kind(id, 2)), weights: true},
		"a first one of given weights": {counts: counted(0, 4, 6, kind(id, 4)), weights: true},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			want := "FILE"
			if tt.weights {
				args, want = []string{"--weights", file}, file
			}
			if tt.fresh {
				want = "weights.akin"
			}
			stdout, stderr, status := runAdvise(t, advised{index: index, scripts: takesScripts, counts: tt.counts}, args...)
			if status != exitFailure {
				t.Errorf("status %d\n%s", status, stderr)
			}
			if !strings.Contains(stdout, "norms backfill --cluster URL --index docs --field body --weights "+want+"\n") {
				t.Errorf("no backfill by %s:\n%s", want, stdout)
			}
			if strings.Contains(stdout, "akin norms snapshot") != tt.fresh {
				t.Errorf("new weights are advised, or not:\n%s", stdout)
			}
			if !strings.Contains(stdout, tt.named) || strings.Contains(stdout, "weights to keep") != (tt.named != "") {
				t.Errorf("%q is not in, or asked for in vain:\n%s", tt.named, stdout)
			}
		})
	}
}

// TestOnlyWhatABackfillSkipsIsWrittenAgain: a backfill fills body.akin in the
// documents that it updates.
func TestOnlyWhatABackfillSkipsIsWrittenAgain(t *testing.T) {
	file, id := weightsFile(t)
	there := oneIndex(exactBody+","+storedFields, exactSettings)
	lacking := oneIndex(`"body":{"type":"text"},`+storedFields, exactSettings)
	for name, tt := range map[string]struct {
		index, counts string
		skipped       map[string]int
		weights       bool // are given
		again         string
	}{
		"an interrupted first backfill": {index: there, counts: counted(6, 4, 6, kind(id, 4)), weights: true},
		"an interrupted first backfill before the field": {
			index: there, counts: counted(8, 4, 6, kind(id, 4)), skipped: map[string]int{id: 2}, weights: true, again: "already, 2.",
		},
		"an interrupted first backfill without the field": {
			index: lacking, counts: counted(0, 4, 6, kind(id, 4)), weights: true, again: "already, 4.",
		},
		"norms by other weights":      {index: there, counts: counted(10, 0, 0, kind("aa", 10)), skipped: map[string]int{"": 10}, weights: true},
		"norms by weights not given":  {index: there, counts: counted(6, 4, 6, kind("aa", 4)), skipped: map[string]int{"": 0}},
		"norms by two kinds of which": {index: there, counts: counted(6, 10, 0, kind("aa", 4), kind("bb", 6)), skipped: map[string]int{"": 6}, again: "already, 6."},
		"no norms":                    {index: there, counts: counted(10, 0, 10)},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if tt.weights {
				args = []string{"--weights", file}
			}
			stdout, stderr, status := runAdvise(t, advised{index: tt.index, scripts: takesScripts, counts: tt.counts, skipped: tt.skipped}, args...)
			if status != exitFailure || !strings.Contains(stdout, "norms backfill") {
				t.Errorf("status %d\n%s%s", status, stdout, stderr)
			}
			if strings.Contains(stdout, "_update_by_query") != (tt.again != "") || !strings.Contains(stdout, tt.again) {
				t.Errorf("want %q\n%s", tt.again, stdout)
			}
		})
	}
}

func TestIndexThatIsNotThereCanBeMade(t *testing.T) {
	stdout, stderr, status := runAdvise(t, advised{scripts: noScripts})
	if status != exitFailure || stdout != "" {
		t.Errorf("status %d\n%s", status, stdout)
	}
	for _, want := range []string{"404", "no such index", "  akin index advise --cluster URL --index docs --field body --new\n"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in\n%s", want, stderr)
		}
	}
}

func TestIndicesAreAdvisedOneByOne(t *testing.T) {
	docs := strings.TrimSuffix(strings.TrimPrefix(oneIndex(exactBody, exactSettings), "{"), "}")
	other := strings.Replace(oneIndex(exactBody, `"index.similarity.akin_linear.type":"BM25","index.similarity.akin_linear.k1":"10000","index.similarity.akin_linear.b":"0"`), `{"docs"`, `{"more"`, 1)
	stdout, stderr, status := runAdvise(t, advised{index: `{` + docs + `,"none":{"mappings":{},"settings":{}},` + strings.TrimPrefix(other, "{"), scripts: noScripts})
	if status != exitFailure || !strings.Contains(stderr, "docs, more") {
		t.Errorf("status %d\n%s", status, stderr)
	}
	for _, want := range []string{"index docs", "index more", "what scores linearly is another field or similarity than in docs", "PUT /docs/_mapping", "PUT /more/_mapping"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	for name, index := range map[string]string{"no index": "{}", "no field": `{"docs":{"mappings":{},"settings":{}}}`} {
		if _, stderr, status := runAdvise(t, advised{index: index, scripts: noScripts}); status != exitFailure || !strings.Contains(stderr, "body") {
			t.Errorf("%s: status %d\n%s", name, status, stderr)
		}
	}
}

// TestIndicesThatHaveLittleInCommon: of three indices the first does not map the
// field, and the others differ in what the case says.
func TestIndicesThatHaveLittleInCommon(t *testing.T) {
	const bm25Settings = `"index.similarity.akin_linear.type":"BM25","index.similarity.akin_linear.k1":"10000","index.similarity.akin_linear.b":"0"`
	definition := func(properties, settings string) string {
		return `{"mappings":{"properties":{` + properties + `}},"settings":{` + settings + `}}`
	}
	for name, tt := range map[string]struct {
		one, two     string
		want, absent []string
	}{
		"other similarities of the linear field": {
			definition(exactBody, exactSettings), definition(exactBody, bm25Settings),
			[]string{"WRONG all indices what scores linearly is another field or similarity than in one, make", "snapshot --cluster URL --index '*' --field body --out weights.akin"},
			[]string{"than in none", "analyzed or scored"},
		},
		"other similarities of the field": {
			definition(`"body":{"type":"text"}`, ""), definition(`"body":{"type":"text","similarity":"boolean"}`, ""),
			[]string{"WRONG all indices the field is analyzed or scored otherwise than in one;", "snapshot --cluster URL --index '*' --field body --out weights.akin"},
			[]string{"--index one", "--index two"},
		},
		"other analyzers": {
			definition(`"body":{"type":"text"}`, ""), definition(`"body":{"type":"text","analyzer":"english"}`, ""),
			[]string{
				"WRONG all indices the field is analyzed or scored otherwise than in one;",
				"snapshot --cluster URL --index one --field body --out one-weights.akin", "backfill --cluster URL --index one --field body --weights one-weights.akin",
				"snapshot --cluster URL --index two --field body --out two-weights.akin", "advise --cluster URL --index two --field body",
			},
			[]string{"--index '*'"},
		},
		"no text in either": {
			definition(`"body":{"type":"keyword"}`, ""), definition(`"body":{"type":"long"}`, ""),
			[]string{"index one WRONG field body the index maps it as keyword", "index two WRONG field body the index maps it as long"},
			[]string{"index none"},
		},
		"no text in one of them": {
			definition(`"body":{"type":"keyword"}`, ""), definition(`"body":{"type":"text"}`, ""),
			[]string{"index one WRONG field body the index maps it as keyword", "snapshot --cluster URL --index two --field body --out two-weights.akin"},
			nil,
		},
		"norms of another type in one of them": {
			definition(exactBody+`,"akin_norm":{"properties":{"body":{"type":"long"}}}`, exactSettings), definition(exactBody, exactSettings),
			[]string{"akin index advise --cluster URL --index one --field body --new"},
			[]string{"--index '*' --field body --new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := advised{index: `{"none":{"mappings":{},"settings":{}},"one":` + tt.one + `,"two":` + tt.two + `}`, scripts: noScripts}
			stdout, stderr, status := runAdvise(t, a, "--index", "*")
			if status != exitFailure || !strings.Contains(stderr, "two") {
				t.Errorf("status %d\n%s", status, stderr)
			}
			words := strings.Join(strings.Fields(stdout), " ")
			for _, want := range tt.want {
				if !strings.Contains(words, want) {
					t.Errorf("%q is not in\n%s", want, stdout)
				}
			}
			for _, absent := range tt.absent {
				if strings.Contains(words, absent) {
					t.Errorf("%q is in\n%s", absent, stdout)
				}
			}
		})
	}
	aliases := `{"one":` + definition(`"body":{"type":"alias","path":"a"},"a":{"type":"text"}`, "") + `,"two":` + definition(`"body":{"type":"text"}`, "") + `}`
	if _, stderr, status := runAdvise(t, advised{index: aliases, scripts: noScripts}, "--index", "*"); status != exitFailure || !strings.Contains(stderr, `"body" stands for the fields a and body`) {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestNoIndexIsMadeLikeOneThatCannotBeUsed(t *testing.T) {
	for want, index := range map[string]string{
		"nested documents": oneIndex(`"body":{"type":"text"},"n":{"type":"nested","properties":{"body":{"type":"text"}}}`, ""),
		"copy_to":          oneIndex(`"t":{"type":"text","copy_to":"n.body"},"n":{"properties":{"body":{"type":"text"}}}`, ""),
		"keeps no _source": `{"docs":{"mappings":{"_source":{"enabled":false},"properties":{"n":{"properties":{"body":{"type":"text"}}}}},"settings":{}}}`,
		"is closed":        `{"docs":{"mappings":{},"settings":{"index.verified_before_close":"true"}}}`,
		"maps it as long":  oneIndex(`"n":{"properties":{"body":{"type":"long"}}}`, ""),
		"does not map":     oneIndex(`"body":{"type":"text"}`, ""),
		`"docs" is 2 ind`:  `{"one":{"mappings":{},"settings":{}},"two":{"mappings":{},"settings":{}}}`,
	} {
		stdout, stderr, status := runAdvise(t, advised{index: index, scripts: noScripts}, "--new", "--field", "n.body")
		if status == 0 || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, `index "docs"`) > 1 {
			t.Errorf("%s: status %d\n%s%s", want, status, stdout, stderr)
		}
	}
}

func TestAdviceForANewIndexKeepsWhatAnOldOneHas(t *testing.T) {
	index := oneIndex(`"body":{"type":"text","analyzer":"own"},"size":{"type":"long"},"akin_norm":{"properties":{"body":{"type":"long"}}}`,
		`"index.analysis.analyzer.own.type":"english","index.uuid":"x","index.number_of_shards":"2","index.similarity.akin_linear.k1":"1.2"`)
	stdout, stderr, status := runAdvise(t, advised{index: index, scripts: noScripts}, "--new")
	var got struct {
		Settings map[string]string
		Mappings struct{ Properties map[string]any }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 0 {
		t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	settings := map[string]string{
		"index.analysis.analyzer.own.type": "english", "index.number_of_shards": "2",
		"index.similarity.akin_linear.type": "BM25", "index.similarity.akin_linear.k1": "10000", "index.similarity.akin_linear.b": "0",
	}
	if diff := cmp.Diff(settings, got.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	type object = map[string]any
	properties := object{
		"body": object{"type": "text", "analyzer": "own", "fields": object{"akin": object{
			"type": "text", "analyzer": "own", "similarity": "akin_linear", "norms": false, "index_options": "freqs",
		}}},
		"size":              object{"type": "long"},
		"akin_norm":         object{"properties": object{"body": object{"type": "float", "index": false}}},
		"akin_norm_weights": object{"properties": object{"body": object{"type": "keyword"}}},
	}
	if diff := cmp.Diff(properties, got.Mappings.Properties); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"PUT /NAME\n", `POST /_reindex {"source": {"index": "docs"}, "dest": {"index": "NAME"}}`,
		"akin norms snapshot --cluster URL --index NAME --field body --out weights.akin\n",
		"akin norms backfill --cluster URL --index NAME --field body --weights weights.akin\n",
		"akin index advise --cluster URL --index NAME --field body --weights weights.akin\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in\n%s", want, stderr)
		}
	}
	// A name of characters that Go and JSON write otherwise.
	odd := strings.Replace(index, `"docs"`, `"\u007fdocs"`, 1)
	if _, stderr, _ := runAdvise(t, advised{index: odd, scripts: noScripts}, "--new"); !strings.Contains(stderr, "{\"index\": \"\x7fdocs\"}") {
		t.Errorf("the name of the index is no JSON:\n%s", stderr)
	}
	if _, stderr, status := runAdvise(t, advised{index: index, scripts: noScripts}, "--new", "--analyzer", "english"); status != exitUsage {
		t.Errorf("an analyzer for an index that has one: status %d\n%s", status, stderr)
	}
}
