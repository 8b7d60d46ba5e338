package main

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// checked runs "akin check --json" on a configuration.
func checked(t *testing.T, config string, args ...string) (r checkReport, status int) {
	t.Helper()
	out, stderr, status := akin(t, append([]string{"check", "--json", "--config", write(t, "akin.yml", config)}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, stderr)
	}
	return r, status
}

// verdictOf returns the verdict on something, and what is said of it.
func verdictOf(r *checkReport, about string) string {
	for _, c := range r.Checks {
		if strings.HasPrefix(c.About, about) {
			return c.Verdict + ": " + c.Says + " -> " + c.Next
		}
	}
	return ""
}

// refusing stands before the demo's engine and refuses the calls whose path has
// a part.
func refusing(t *testing.T, part string, status int, why string) string {
	t.Helper()
	return relayTo(t, demoEngine(t), func(w http.ResponseWriter, r *http.Request) bool {
		refused := strings.Contains(r.URL.Path, part)
		if refused {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"type":"security_exception","reason":%q,"root_cause":[{"type":"security_exception","reason":%q}]},"status":%d}`, why, why, status)
		}
		return refused
	})
}

func checkConfig(cluster, matrix string) string {
	return fmt.Sprintf("cluster: {urls: [%q]}\nmatrices:\n  - {name: demo, indices: [%s], fields: [title, body], file: %q}\n", cluster, demoIndices, matrix)
}

func TestCheckFindsNoErrorWhereAllIsWell(t *testing.T) {
	r, status := checked(t, checkConfig(demoEngine(t), demoMatrix(t)))
	check.That(t, status == 0, "status %d: %+v", status, r)
	for _, about := range []string{"configuration", "node ", "security", "matrix demo", "right to read", "right to analyze", "right to search", "right to count"} {
		if got := verdictOf(&r, about); !strings.HasPrefix(got, "ok") {
			t.Errorf("%s: %s", about, got)
		}
	}
	says := func(text string) bool {
		return slices.ContainsFunc(r.Checks, func(c checkResult) bool { return strings.Contains(c.Says, text) })
	}
	check.That(t, says("has word vectors of built-in words "), "it does not name the built-in words: %+v", r.Checks)
	i := slices.IndexFunc(r.Fields, func(f checkedField) bool { return f.Field == "body" })
	check.Must(t, i >= 0 && r.Fields[i].Matrix != "", "fields %+v", r.Fields)
}

func TestCrowdedMatrixIsWarnedOf(t *testing.T) {
	var crowd []simmatrix.Neighbor
	for k := range 40 {
		crowd = append(crowd, simmatrix.Neighbor{Term: fmt.Sprintf("t%02d", k), Similarity: 0.5})
	}
	rows := []simmatrix.TermRow{{Term: "car", DocFreq: 5, Neighbors: crowd}}
	for _, n := range crowd {
		rows = append(rows, simmatrix.TermRow{Term: n.Term, DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 0.1}}})
	}
	meta := simmatrix.Meta{Source: "index docs", Docs: 1000, Params: map[string]string{
		"context_power": "0.75", "dimensions": "100", "crowding": "0.240", "dimensions_wanted": "480",
	}}
	const warning = "words crowd in 100 dimensions"
	file := matrixFile(t, meta, rows...)
	ends(t, 0, []string{"matrix", "check", file}, warning, "--dimensions auto")
	ends(t, 0, []string{"matrix", "show", file, "car"}, file+"  100 dimensions in place of 480, crowding 0.240\n")
	r, status := checked(t, checkConfig(demoEngine(t), file))
	check.That(t, status == 0 && slices.ContainsFunc(r.Checks, func(c checkResult) bool {
		return c.Verdict == verdictWarning && c.About == "matrix demo" && strings.Contains(c.Says, warning)
	}), "status %d: %+v", status, r.Checks)
	check.That(t, slices.ContainsFunc(r.Checks, func(c checkResult) bool {
		return strings.HasPrefix(c.Says, "learned from documents alone. ") && strings.Contains(c.Says, "--language-model")
	}), "it does not say what word vectors bring: %+v", r.Checks)

	delete(meta.Params, "crowding") // of an older akin
	var all []simmatrix.TermRow
	for k := range 40 {
		all = append(all, simmatrix.TermRow{Term: fmt.Sprintf("w%02d", k), DocFreq: 5, Neighbors: crowd})
	}
	ends(t, 0, []string{"matrix", "check", matrixFile(t, meta, append(all, rows...)...)}, "has a similarity of 0.25 on average", "build it again")
}

func TestCheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	away, matrix := gone.URL, demoMatrix(t)
	redis := func(cluster string) string {
		return fmt.Sprintf("cluster: {urls: [%q]}\nmatrices: [{name: main}]\nredis: {url: \"redis://%s\"}\n", cluster, strings.TrimPrefix(away, "http://"))
	}
	for _, c := range []struct{ name, config, about, want string }{
		{"two mistakes", "cluster: {urls: [ftp://x]}\nexpansion: {scoring: fancy}\n", "configuration", ":1: cluster.urls"},
		{"cluster away", checkConfig(away, matrix), "node ", "start the server"},
		{"credentials refused", checkConfig(refusing(t, "/", 401, "missing authentication credentials"), matrix), "node ", "AKIN_CLUSTER_USERNAME"},
		{
			"no right to analyze", checkConfig(refusing(t, "_analyze", 403, "no permissions for [indices:admin/analyze] and User [name=akin]"), matrix), "right to analyze", "the right indices:admin/analyze;",
		},
		{
			"no right to search", checkConfig(refusing(t, "_search", 403, "action [indices:data/read/search] is unauthorized for user [akin]"), matrix),
			"right to search", "the right indices:data/read/search;",
		},
		{"no matrix file", checkConfig(demoEngine(t), matrix+".gone"), "matrix demo", "akin matrix build --name demo"},
		{"no matrix at all", checkConfig(demoEngine(t), write(t, "bad.akin", "hello")), "matrix demo", "from "},
		{"Redis away", redis(demoEngine(t)), "matrix main", "akin matrix push"},
		{"cluster and Redis away", redis(away), "matrix main", "unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, status := checked(t, c.config)
			if got := verdictOf(&r, c.about); status != exitFailure || !strings.HasPrefix(got, "error") || !strings.Contains(got, c.want) {
				t.Errorf("status %d, want 1 and %q in\n%s\n%+v", status, c.want, got, r)
			}
		})
	}
	r, status := checked(t, checkConfig(demoEngine(t), matrix), "--index", "nope")
	if got := verdictOf(&r, "indices"); status != exitFailure || !strings.HasPrefix(got, "error") {
		t.Errorf("an index that is not there: status %d, %q", status, got)
	}
}

func TestCheckDoesNotCallFieldsWellWhoseMatrixCannotBeServed(t *testing.T) {
	r, _ := checked(t, checkConfig(demoEngine(t), demoMatrix(t)+".gone"))
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Verdict == verdictOK {
			t.Errorf("%s of %s: ok, %s", f.Field, f.Index, f.Says)
		}
	}
	if len(r.Fields) == 0 {
		t.Error("no field was looked at")
	}
}

func TestCheckDoesNotCallRightsWellThatItCouldNotTry(t *testing.T) {
	r, _ := checked(t, checkConfig(refusing(t, "_termvectors", 503, "busy"), demoMatrix(t)))
	if got := verdictOf(&r, "right to count terms"); !strings.HasPrefix(got, verdictWarning+": not known: ") {
		t.Errorf("%q", got)
	}
}

func TestCertificatesAreSpokenOfBeforeTheyExpire(t *testing.T) {
	for left, want := range map[time.Duration]string{-time.Hour: verdictError, 24 * time.Hour: verdictWarning, 90 * 24 * time.Hour: verdictOK} {
		r := &checkReport{}
		r.certificate("listen.tls.cert_file", &x509.Certificate{NotAfter: time.Now().Add(left)})
		if got := r.Checks[0]; got.Verdict != want {
			t.Errorf("%s left: %+v, want %s", left, got, want)
		}
	}
}

func TestFieldsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  serve.FieldReport
		err     error
		verdict string
	}{
		{"expanded", serve.FieldReport{Texts: 20, Added: 3, Frequent: 50, Known: 45}, nil, verdictOK},
		{"not bound", serve.FieldReport{Reason: reason.NoMatrix}, nil, verdictOK},
		{"of another language", serve.FieldReport{Texts: 20, Added: 1, Frequent: 50, Known: 5}, nil, verdictWarning},
		{"too few terms to tell", serve.FieldReport{Texts: 2, Added: 1, Frequent: 5, Known: 1}, nil, verdictOK},
		{"no texts", serve.FieldReport{Reason: reason.NoNeighbors}, nil, verdictOK},
		{"nothing added", serve.FieldReport{Texts: 20, Reason: reason.NoTerms}, nil, verdictWarning},
		{"nothing within the limits", serve.FieldReport{Texts: 20, Reason: reason.NoNeighbors}, nil, verdictWarning},
		{"no scripts", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoScripts}, nil, verdictOK},
		{"segments that are not nested", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NotNested}, nil, verdictWarning},
		{"segments without a matrix", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NoMatrix}, nil, verdictWarning},
		{"no segments in this index", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NotText}, nil, verdictOK},
		{"hard without a linear field", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoLinear}, nil, verdictWarning},
		{"hard without lengths", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoNorms}, nil, verdictWarning},
		{"softcosine by another matrix", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoNorms, Lengths: "9 of 9 documents"}, nil, verdictWarning},
		{"hard without weights", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoWeights}, nil, verdictWarning},
		{"no vectors", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoVectors}, nil, verdictWarning},
		{"by vectors", serve.FieldReport{Texts: 20, Form: "vectors", Frequent: 50, Known: 45}, nil, verdictOK},
		{"n-grams", serve.FieldReport{Reason: reason.NotWords}, nil, verdictWarning},
		{"a keyword", serve.FieldReport{Reason: reason.NotText}, nil, verdictError},
		{"no index", serve.FieldReport{Reason: reason.UnknownToCluster}, nil, verdictError},
		{"a failure", serve.FieldReport{}, errors.New("NOAUTH"), verdictError},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(&c.report, c.err); got.Verdict != c.verdict || c.verdict != verdictOK && got.Says == "" {
				t.Errorf("%+v, want %s", got, c.verdict)
			}
		})
	}
	if f := judge(&serve.FieldReport{}, errors.New("NOAUTH")); !strings.Contains(f.Says, "AKIN_REDIS_URL") {
		t.Errorf("%s", f.Says)
	}
	left := []expand.LeftOut{{Term: "cost", From: "price", Similarity: 1, Reason: expand.LeftOutFrequent}, {Term: "gone", From: "price", Similarity: 0.5, Reason: expand.LeftOutAbsent}}
	want := "cost (for price, similarity 1) is in more than expansion.max_doc_share of the documents, gone (for price, similarity 0.5) is in no document"
	if f := judge(&serve.FieldReport{Texts: 20, Reason: reason.NeighborsTooFrequent, LeftOut: left}, nil); f.Verdict != verdictWarning || !strings.HasSuffix(f.Says, want) {
		t.Errorf("what is left out is not named: %s", f.Says)
	}
}

func TestCheckTellsWhatAMatrixKeptAndOfWhichNoWordsAreKnown(t *testing.T) {
	r := &checkReport{}
	matrix := store.State{Name: "main", Source: store.SourceRedis, Version: "1", NoWords: "an earlier akin has pushed it: push it once more", Vectors: "100 dimensions, crowding 0.031", Tallies: "acronyms: 2 kept; 0 left out\njoined words: 1 kept; 0 left out"}
	r.served("matrix ", []configs.Matrix{{Name: "main"}}, []store.State{matrix})
	last := r.Checks[len(r.Checks)-1]
	if len(r.Checks) != 5 || r.Checks[3].Says != "has 100 dimensions, crowding 0.031" || r.Checks[1].Says != "acronyms: 2 kept; 0 left out" || r.Checks[2].Says != "joined words: 1 kept; 0 left out" || last.Verdict != verdictWarning || !strings.HasSuffix(last.Says, "(expansion.nearest_words): "+matrix.NoWords) {
		t.Errorf("%+v", r.Checks)
	}
}

// TestCheckSaysWhatVectorsTakeAndHowManyThereAre asks without an akin that runs,
// and then with one.
func TestCheckSaysWhatVectorsTakeAndHowManyThereAre(t *testing.T) {
	model, _ := modelOf(t, randomVector)
	config := checkConfig(demoEngine(t), demoMatrix(t)) + fmt.Sprintf("embeddings: {url: %q, model: tiny, fields: [body], key_file: %q, size: 1MiB}\n", model, write(t, "key", "k"))
	alone, _ := checked(t, config+"admin: {address: '127.0.0.1:1'}\n")
	const of = "those of 179 documents take 0.0 of 1.0 MB; "
	contains(t, "help", verdictOf(&alone, "vectors of help"), "ok", of+"no akin answers at admin.address to tell how many there are")
	s := startServe(t, freePorts+config+"expansion: {rerank: embeddings}\n")
	poll(t, "the vectors of all documents", func() bool {
		_, ready := get(t, s.admin+"/readyz")
		return strings.Contains(ready, `{"index":"help","documents":179,"of":179,"bytes":16468}`)
	})
	beside, _ := checked(t, config+"admin: {address: '"+strings.TrimPrefix(s.admin, "http://")+"'}\n")
	contains(t, "help", verdictOf(&beside, "vectors of help"), "ok", of+"the warm-up of the akin at admin.address has made 179")
}
