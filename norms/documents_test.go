package norms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// fakeWeights weigh every term with the same df of docs documents.
type fakeWeights struct {
	docs int64
	err  error
}

const fakeID = "0123456789abcdef"

func (*fakeWeights) ID() string    { return fakeID }
func (w *fakeWeights) Docs() int64 { return w.docs }
func (w *fakeWeights) Rows(_ context.Context, terms []string, rows []simmatrix.Row) error {
	if len(terms) != len(rows) {
		return fmt.Errorf("%d terms, %d rows", len(terms), len(rows))
	}
	return w.err
}

// one is the weight of a term that none of the rows has, for 2 documents:
// ln(1 + 1.5/1.5).
const one = math.Ln2

// A fakeCluster cuts texts at what is no letter and no digit.
type fakeCluster struct {
	panics  bool // when asked for terms
	targets map[string]*Target
	err     error // of Unstored
	calls   int
	asked   []Unstored
	forgot  []string
}

func (c *fakeCluster) Target(_ context.Context, name string) (*Target, error) {
	switch t := c.targets[name]; {
	case t != nil:
		return t, nil
	case name == "failing":
		return nil, errors.New("no answer")
	case name == "stream":
		return nil, ErrNoTarget
	}
	return nil, ErrNoIndex
}

func (c *fakeCluster) Forget(name string) { c.forgot = append(c.forgot, name) }

func (c *fakeCluster) Unstored(ctx context.Context, docs []Unstored) ([]UnstoredTerms, error) {
	c.calls++
	c.asked = append(c.asked, docs...)
	if c.panics {
		panic("a mistake")
	}
	if c.err != nil {
		return nil, c.err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	all := make([]UnstoredTerms, len(docs))
	for i, d := range docs {
		all[i].Fields = map[string][]TermFreq{}
		for _, field := range d.Fields {
			source, _, _ := strings.Cut(field, "~") // as fakeTarget has it
			var words []string
			for _, v := range d.Texts[source] {
				text, _ := scalar(v)
				if text == "refused" {
					all[i].Err = errors.New("refused")
				}
				words = append(words, strings.FieldsFunc(text, func(r rune) bool {
					return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.'
				})...)
			}
			slices.Sort(words)
			for _, word := range words {
				if terms := all[i].Fields[field]; len(terms) > 0 && terms[len(terms)-1].Term == word {
					terms[len(terms)-1].Freq++
				} else {
					all[i].Fields[field] = append(terms, TermFreq{word, 1})
				}
			}
		}
	}
	return all, nil
}

// fakeTarget has the fields named; title~x is a multi-field of title.
func fakeTarget(fields ...string) *Target {
	t := &Target{Index: "index"}
	for _, f := range fields {
		source, _, _ := strings.Cut(f, "~")
		t.Fields = append(t.Fields, TextField{Name: f, Source: source})
	}
	return t
}

func newFakeCluster() *fakeCluster {
	piped := fakeTarget("title")
	piped.Pipelines = true
	return &fakeCluster{targets: map[string]*Target{
		"docs": fakeTarget("title"), "deep": fakeTarget("a.b"), "two": fakeTarget("body", "title~x"),
		"bare": fakeTarget(), "piped": piped, "later": fakeTarget("title"),
	}}
}

func newFakeKeeper(c *fakeCluster, repairs *Repairer) *Keeper {
	w := &fakeWeights{docs: 2}
	return NewKeeper(c, c, func(index, _ string) (FrozenWeights, bool) {
		switch index {
		case "later":
			return nil, true
		case "unbound", "unbound-index":
			return nil, false
		}
		return w, true
	}, repairs, nil)
}

// norm is the JSON of the norm of terms with these frequencies.
func norm(freqs ...float64) string {
	sum := 0.0
	for _, f := range freqs {
		sum += f * f * one * one
	}
	return FormatNorm(math.Sqrt(sum))
}

// members are those of one field. A norm of "" is none.
func members(name, norm string) string {
	id := fmt.Sprintf(`"akin_norm_weights":{"%s":"%s"}`, name, fakeID)
	if norm == "" {
		return id
	}
	return fmt.Sprintf(`"akin_norm":{"%s":%s},%s`, name, norm, id)
}

func TestDocumentsGetTheirNorms(t *testing.T) {
	for _, c := range []struct{ name, index, body, want string }{
		{"one word", "docs", `{"title":"cat"}`, `{"title":"cat",` + members("title", norm(1)) + `}`},
		{"words with their frequencies", "docs", `{"title":"cat dog cat"}`, `{"title":"cat dog cat",` + members("title", norm(2, 1)) + `}`},
		{
			"all bytes else stay", "docs", " \n{ \"n\" : 1.50 ,\r\n\t\"title\":\"c\\u0061t\" , \"x\":{\"y\":[ 1,2 ]}\n} \n",
			" \n{ \"n\" : 1.50 ,\r\n\t\"title\":\"c\\u0061t\" , \"x\":{\"y\":[ 1,2 ]}\n," + members("title", norm(1)) + "} \n",
		},
		{"arrays, in arrays too", "docs", `{"title":["cat",null,["dog","cat"]]}`, `{"title":["cat",null,["dog","cat"]],` + members("title", norm(2, 1)) + `}`},
		{"numbers and booleans as written", "docs", `{"title":[12.50,"12.50",true]}`, `{"title":[12.50,"12.50",true],` + members("title", norm(2, 1)) + `}`},
		{"no terms of a text", "docs", `{"title":"-","akin_norm":{"title":7},"akin_norm_weights":{"title":"x"}}`, `{"title":"-"}`},
		{"null", "docs", `{"title":null}`, `{"title":null,` + members("title", "") + `}`},
		{"nested objects", "deep", `{"a":{"b":"cat"}}`, `{"a":{"b":"cat"},` + members("a__b", norm(1)) + `}`},
		{"literal dots", "deep", `{"a.b":"cat"}`, `{"a.b":"cat",` + members("a__b", norm(1)) + `}`},
		{
			"both, and an array of objects", "deep", `{"a":[{"b":"cat"},{"c":1},{"b":["dog"]}],"a.b":"cat"}`,
			`{"a":[{"b":"cat"},{"c":1},{"b":["dog"]}],"a.b":"cat",` + members("a__b", norm(2, 1)) + `}`,
		},
		{
			"a multi-field by its parent's text", "two", `{"title":"cat dog","body":"cat"}`,
			`{"title":"cat dog","body":"cat","akin_norm":{"body":` + norm(1) + `,"title~x":` + norm(1, 1) + `},` +
				`"akin_norm_weights":{"body":"` + fakeID + `","title~x":"` + fakeID + `"}}`,
		},
		{
			"members that it brings along are replaced", "docs",
			`{"akin_norm":{"title":7,"other":3},"title":"cat","akin_norm_weights":{"title":"old"},"n":1}`,
			`{"title":"cat","n":1,"akin_norm":{"other":3,"title":` + norm(1) + `},"akin_norm_weights":{"title":"` + fakeID + `"}}`,
		},
		{
			"with dots, too", "docs", `{"title":"cat","akin_norm.title":7,"akin_norm_weights.title":"old","akin_norm.other":3}`,
			`{"title":"cat","akin_norm.other":3,` + members("title", norm(1)) + `}`,
		},
		{"they go with the field", "docs", `{"akin_norm":{"title":7},"n":1,"akin_norm_weights":{"title":"old"}}`, `{"n":1}`},
		{"until nothing is left", "docs", `{"akin_norm":{"title":7},"akin_norm_weights":{"title":"old"}}`, `{}`},
		{"null is no object to keep", "docs", `{"akin_norm":null,"title":"cat"}`, `{"title":"cat",` + members("title", norm(1)) + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept, err := newFakeKeeper(newFakeCluster(), nil).Write(t.Context(), &Write{Index: c.index, ID: "1", Body: []byte(c.body)})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(kept.Body); got != c.want {
				t.Errorf("the body is\n%s, want\n%s", got, c.want)
			}
			var v any
			if err := json.Unmarshal(kept.Body, &v); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatHasNoNormsOnTheWayIsLeftAsItCame(t *testing.T) {
	for _, c := range []struct {
		name, result string
		write        Write
	}{
		{"an index without norms", DocumentNoNorms, Write{Index: "bare", ID: "1", Body: []byte(`{"title":"cat"}`)}},
		{"a data stream", DocumentNoNorms, Write{Index: "stream", ID: "1", Body: []byte(`{"title":"cat"}`)}},
		{"an index that is not there yet", DocumentBehind, Write{Index: "new", ID: "1", Body: []byte(`{"title":"cat"}`)}},
		{"an index with a pipeline", DocumentBehind, Write{Index: "piped", ID: "1", Body: []byte(`{"title":"cat"}`)}},
		{"a pipeline", DocumentBehind, Write{Index: "docs", ID: "1", Pipeline: "p", Body: []byte(`{"title":"cat"}`)}},
		{"a pipeline and no id", DocumentLeft, Write{Index: "docs", Pipeline: "p", Body: []byte(`{"title":"cat"}`)}},
		{
			"a pipeline and versions of the client's own", DocumentLeft,
			Write{Index: "docs", ID: "1", Pipeline: "p", VersionType: "external", Body: []byte(`{"title":"cat"}`)},
		},
		{"a body that was not read", DocumentBehind, Write{Index: "docs", ID: "1"}},
		{"a document without the field", DocumentNoField, Write{Index: "docs", ID: "1", Body: []byte(`{"n":1}`)}},
		{"no object", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`["title"]`)}},
		{"no JSON", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":"cat"`)}},
		{"two objects", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":"cat"}{}`)}},
		{"nothing", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte{}}},
		{"a name twice", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":"cat","title":"dog"}`)}},
		{"an object for a text", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":{"x":"cat"}}`)}},
		{"something else for norms", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":"cat","akin_norm":[1]}`)}},
		{"a text that the cluster refuses", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":"refused"}`)}},
		{"an update without the field", DocumentNoField, Write{Index: "docs", ID: "1", Update: true, Body: []byte(`{"doc":{"n":1,"akin_norm":{"title":3}}}`)}},
		{"a script", DocumentBehind, Write{Index: "docs", ID: "1", Update: true, Body: []byte(`{"script":"ctx","upsert":{"title":"cat"}}`)}},
		{"an update within an object", DocumentBehind, Write{Index: "deep", ID: "1", Update: true, Body: []byte(`{"doc":{"a":{"b":"cat"}}}`)}},
		{"an update that takes the object away", DocumentBehind, Write{Index: "deep", ID: "1", Update: true, Body: []byte(`{"doc":{"a":null}}`)}},
		{"an update beside the field", DocumentNoField, Write{Index: "deep", ID: "1", Update: true, Body: []byte(`{"doc":{"a":{"c":1}}}`)}},
		{"an update of what is no object", DocumentBehind, Write{Index: "docs", ID: "1", Update: true, Body: []byte(`{"doc":[]}`)}},
		{"no JSON and no id", DocumentInvalid, Write{Index: "docs", Body: []byte(`{"title":"cat"`)}},
		{"a comment", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":"cat"/**/}`)}},
		{"a byte order mark", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte("\xef\xbb\xbf{\"title\":\"cat\"}")}},
		{"half a surrogate pair in the text", DocumentBehind, Write{Index: "docs", ID: "1", Body: []byte(`{"title":"cat \ud83d"}`)}},
		{"a bulk request that was not read", DocumentUnread, Write{Index: "docs", Bulk: true}},
		{"too many lines", DocumentUnread, Write{Index: "docs", Bulk: true, Body: bytes.Repeat([]byte("{\"index\":{}}\n{}\n"), maxActions+1)}},
		{"weights that are not there yet", DocumentBehind, Write{Index: "later", ID: "1", Body: []byte(`{"title":"cat"}`)}},
		{"an update of another field meanwhile", DocumentNoField, Write{Index: "later", ID: "1", Update: true, Body: []byte(`{"doc":{"n":1}}`)}},
		{"a bulk request of one broken line", DocumentInvalid, Write{Index: "docs", Bulk: true, Body: []byte("{}\n{\"title\":\"cat\"}\n")}},
		{"an unknown action", DocumentInvalid, Write{Index: "docs", Bulk: true, Body: []byte("{\"upsert\":{}}\n{\"title\":\"cat\"}\n")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			repairs := NewRepairer(nil, nil, nil, RepairOptions{})
			defer repairs.Close()
			kept, err := newFakeKeeper(newFakeCluster(), repairs).Write(t.Context(), &c.write)
			if err != nil {
				t.Fatal(err)
			}
			if kept.Body != nil {
				t.Errorf("the body became %s", kept.Body)
			}
			if diff := cmp.Diff(map[string]int{c.result: 1}, kept.Documents); diff != "" {
				t.Errorf("what became of it (-want +got):\n%s", diff)
			}
			if more := c.result == DocumentBehind || c.result == DocumentInvalid; (kept.Done != nil) != more {
				t.Errorf("something is to follow: %v, want %v", kept.Done != nil, more)
			}
		})
	}
}

func TestUpdatesGetTheNormsOfWhatTheyHold(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"doc", `{"doc":{"title":"cat"},"detect_noop":false}`, `{"doc":{"title":"cat",` + members("title", norm(1)) + `},"detect_noop":false}`},
		{"doc without terms", `{"doc":{"title":null}}`, `{"doc":{"title":null,` + members("title", "null") + `}}`},
		{"doc without terms of a text", `{"doc":{"title":"-"}}`, `{"doc":{"title":"-","akin_norm":{"title":null},"akin_norm_weights":{"title":null}}}`},
		{"upsert", `{"doc":{"n":1},"upsert":{"title":"cat"}}`, `{"doc":{"n":1},"upsert":{"title":"cat",` + members("title", norm(1)) + `}}`},
		{
			"both, in any order", `{"upsert":{"title":"-"},"doc":{"title":"cat dog"}}`,
			`{"upsert":{"title":"-"},"doc":{"title":"cat dog",` + members("title", norm(1, 1)) + `}}`,
		},
		{"numbers as the engine writes them anew", `{"doc":{"title":[12.50,"12.50"]}}`, `{"doc":{"title":[12.50,"12.50"],` + members("title", norm(2)) + `}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newFakeCluster()
			kept, err := newFakeKeeper(cluster, nil).Write(t.Context(), &Write{Index: "docs", ID: "1", Update: true, Body: []byte(c.body)})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(kept.Body); got != c.want {
				t.Errorf("the body is\n%s, want\n%s", got, c.want)
			}
			if strings.Contains(c.name, "numbers") {
				if got := string(cluster.asked[0].Texts["title"][0]); got != "12.50" {
					t.Errorf("the cluster was asked for %s, want the number", got)
				}
			}
		})
	}
}

func TestBulkLinesGetTheirNorms(t *testing.T) {
	title := `,` + members("title", norm(1)) + `}`
	in := []string{
		`{"index":{"_id":"1"}}`, `{"title":"cat"}`,
		``,
		`{"delete":{"_id":"1"}}`,
		`{"create":{"_index":"bare","_id":2}}`, `{"title":"cat"}`,
		`{"create":{"_id":3,"routing":"r","require_alias":false}}` + "\r", ` {"title":"cat"} ` + "\r",
		`{"update":{"_id":"4","retry_on_conflict":2}}`, `{"doc":{"title":"cat"},"doc_as_upsert":true}`,
		`{"index":{"_id":"5","pipeline":"p"}}`, `{"title":"cat"}`,
		`{"index":{"_id":"6","pipeline":"_none"}}`, `{"title":"cat"}`,
		`{"index":{}}`, `not JSON`,
		`{"index":{"_index":"new","_id":"8","routing":"s"}}`, `{"title":"cat"}`,
		`{"index":{"_id":null}}`, `{"title":"cat"}`,
		``,
	}
	want := slices.Clone(in)
	want[1] = `{"title":"cat"` + title
	want[7] = ` {"title":"cat"` + title + ` ` + "\r"
	want[9] = `{"doc":{"title":"cat"` + title + `,"doc_as_upsert":true}`
	want[13] = `{"title":"cat"` + title
	want[19] = `{"title":"cat"` + title
	cluster := newFakeCluster()
	repairs := NewRepairer(nil, nil, nil, RepairOptions{})
	repairs.Close() // what is added is dropped
	kept, err := newFakeKeeper(cluster, repairs).Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: []byte(strings.Join(in, "\n"))})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.Split(string(kept.Body), "\n")); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
	counts := map[string]int{DocumentAdded: 5, DocumentNoNorms: 1, DocumentBehind: 2, DocumentInvalid: 1}
	if diff := cmp.Diff(counts, kept.Documents); diff != "" {
		t.Errorf("the documents (-want +got):\n%s", diff)
	}
	if cluster.calls != 1 {
		t.Errorf("%d calls for one bulk request, want 1", cluster.calls)
	}
	if got := cluster.asked[1].Routing; got != "r" {
		t.Errorf("the routing is %q, want r", got)
	}
}

func TestAFailureLeavesTheDocumentsToRepairs(t *testing.T) {
	for _, c := range []struct {
		name    string
		cluster func(*fakeCluster)
		weights *fakeWeights
		index   string
	}{
		{"no terms", func(c *fakeCluster) { c.err = errors.New("no answer") }, &fakeWeights{docs: 2}, "docs"},
		{"no time", func(c *fakeCluster) { c.err = context.DeadlineExceeded }, &fakeWeights{docs: 2}, "docs"},
		{"no weights", func(*fakeCluster) {}, &fakeWeights{docs: 2, err: errors.New("no answer")}, "docs"},
		{"no target", func(*fakeCluster) {}, &fakeWeights{docs: 2}, "failing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newFakeCluster()
			c.cluster(cluster)
			repairs := NewRepairer(nil, nil, nil, RepairOptions{})
			defer repairs.Close()
			k := NewKeeper(cluster, cluster, func(string, string) (FrozenWeights, bool) { return c.weights, true }, repairs, nil)
			body := "{\"index\":{\"_index\":\"bare\",\"_id\":\"0\"}}\n{\"title\":\"cat\"}\n" +
				"{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"cat\"}\n{\"index\":{}}\n{\"title\":\"cat\"}\n"
			kept, err := k.Write(t.Context(), &Write{Bulk: true, Index: c.index, Body: []byte(body)})
			if err == nil {
				t.Fatal("no error")
			}
			want := map[string]int{DocumentNoNorms: 1, DocumentBehind: 1, DocumentLeft: 1}
			if diff := cmp.Diff(want, kept.Documents); diff != "" {
				t.Errorf("the documents (-want +got):\n%s", diff)
			}
			if kept.Body != nil || kept.Done == nil {
				t.Errorf("body %s, a repair is to follow: %v", kept.Body, kept.Done != nil)
			}
		})
	}
}

func TestARefusedWriteForgetsTheTarget(t *testing.T) {
	cluster := newFakeCluster()
	kept, err := newFakeKeeper(cluster, nil).Write(t.Context(), &Write{Index: "docs", Body: []byte(`{"title":"cat"}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{201, 401, 403, 409, 413, 429, 500, 503, 0} {
		if kept.Done(Answer{Status: status}); len(cluster.forgot) > 0 {
			t.Fatalf("forgot %q after the status %d", cluster.forgot, status)
		}
	}
	kept.Done(Answer{Status: 404})
	if diff := cmp.Diff([]string{"docs"}, cluster.forgot); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}

func TestManyDocumentsAreAnalyzedInBoundedCalls(t *testing.T) {
	var body bytes.Buffer
	for i := range 3*unstoredDocs + 1 {
		fmt.Fprintf(&body, "{\"index\":{\"_id\":\"%d\"}}\n{\"title\":\"word%d\"}\n", i, i)
	}
	cluster := newFakeCluster()
	k := newFakeKeeper(cluster, nil)
	k.analyzer = oneByOne{make(chan struct{}, 1), cluster}
	kept, err := k.Write(t.Context(), &Write{Bulk: true, Index: "docs", Body: body.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	if kept.Documents[DocumentAdded] != 3*unstoredDocs+1 || cluster.calls != 4 {
		t.Errorf("%v in %d calls, want all in 4", kept.Documents, cluster.calls)
	}
}

// oneByOne makes one call at a time.
type oneByOne struct {
	turn chan struct{}
	*fakeCluster
}

func (o oneByOne) Unstored(ctx context.Context, docs []Unstored) ([]UnstoredTerms, error) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	return o.fakeCluster.Unstored(ctx, docs)
}

// FuzzWrite changes any body such that it is the original once our members are
// taken out again: byte for byte where the body had none, as JSON else. The
// lines of a bulk request stay as many.
func FuzzWrite(f *testing.F) {
	for _, seed := range []string{
		`{"title":"cat","n":[1.50, {"x":null}]}`, `{"a":{"b":"cat"},"a.b":["dog"]}`, ` { } `, `{"title":null,"akin_norm":{"title":1,"x":2}}`,
		"{\"index\":{\"_id\":\"1\"}}\n{\"title\":\"cat\"}\n{\"update\":{\"_id\":2}}\n{\"doc\":{\"title\":\"x\"},\"upsert\":{\"title\":\"y\"}}\n",
		`{"doc":{"title":"cat"},"upsert":{"title":["a",true]}}`, `{"akin_norm":{},"akin_norm_weights":null,"title":"\ud83d\ude00"}`,
	} {
		for kind := range byte(3) {
			f.Add(kind, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		cluster := newFakeCluster()
		cluster.targets["docs"] = fakeTarget("a.b", "title", "title~x")
		in := &Write{Index: "docs", ID: "1", Bulk: kind%3 == 1, Update: kind%3 == 2, Body: bytes.Clone(body)}
		kept, err := newFakeKeeper(cluster, nil).Write(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(in.Body, body) {
			t.Fatal("the body that came was modified")
		}
		if kept.Body == nil {
			return
		}
		was, is := [][]byte{body}, [][]byte{kept.Body}
		if in.Bulk {
			was, is = bytes.Split(body, []byte("\n")), bytes.Split(kept.Body, []byte("\n"))
		}
		if len(was) != len(is) {
			t.Fatalf("%d lines became %d", len(was), len(is))
		}
		for i := range was {
			checkTakenOut(t, was[i], is[i])
		}
	})
}

func checkTakenOut(t *testing.T, was, is []byte) {
	t.Helper()
	if bytes.Equal(was, is) {
		return
	}
	if !bytes.Contains(was, []byte("akin_norm")) && !bytes.Contains(was, []byte(`\`)) {
		if got := taken(is); string(got) != string(was) {
			t.Fatalf("%q became %q, which is %q without our members", was, is, got)
		}
		return
	}
	if a, b := stripped(t, was), stripped(t, is); a != b {
		t.Fatalf("%q became %q, which is no equal JSON without our members: %s, %s", was, is, a, b)
	}
}

// taken takes out the text of our members, which follows what it is put behind.
func taken(is []byte) []byte {
	for _, start := range []string{`,"akin_norm":{`, `,"akin_norm_weights":{`, `"akin_norm":{`, `"akin_norm_weights":{`} {
		for {
			at := bytes.Index(is, []byte(start))
			if at < 0 {
				break
			}
			end := at + bytes.IndexByte(is[at:], '}') + 1
			is = append(bytes.Clone(is[:at]), is[end:]...)
		}
	}
	return is
}

// stripped is JSON without the members for norms, wherever they stand.
func stripped(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	out, err := json.Marshal(withoutNorms(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func withoutNorms(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if !strings.HasPrefix(name, Object) {
				out[name] = withoutNorms(value)
			}
		}
		return out
	case []any:
		for i := range v {
			v[i] = withoutNorms(v[i])
		}
	}
	return v
}

// The terms of many documents are asked for in several goroutines.
func TestPanicIsAnErrorOfTheWrite(t *testing.T) {
	c := newFakeCluster()
	c.panics = true
	kept, err := newFakeKeeper(c, nil).Write(t.Context(), &Write{Index: "docs", ID: "1", Body: []byte(`{"title":"cat"}`)})
	if !errors.Is(err, recovery.ErrPanic) || kept == nil {
		t.Errorf("%+v, error %v", kept, err)
	}
}
