package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/embed"
)

// embeddingModel starts a model that answers words of one meaning, which it is
// given, with nearly the same vector and others with random ones. sent counts the
// words.
func embeddingModel(t *testing.T, meanings ...[]string) (url string, sent *atomic.Int64) {
	t.Helper()
	vector := func(seed string) []float64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(seed))
		random, v := rand.New(rand.NewPCG(h.Sum64(), 1)), make([]float64, 48)
		for d := range v {
			v[d] = random.NormFloat64()
		}
		return v
	}
	sent = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s with %v: %v", r.URL, r.Header, err)
		}
		var data []map[string]any
		for k, text := range body.Input {
			v := vector(text)
			for _, words := range meanings {
				for _, word := range words {
					if word == text {
						for d, x := range vector(words[0]) {
							v[d] = x + v[d]/100
						}
					}
				}
			}
			data = append(data, map[string]any{"index": k, "embedding": v})
		}
		sent.Add(int64(len(body.Input)))
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	return server.URL, sent
}

func TestWordsOfAModelAreMixedIntoAMatrix(t *testing.T) {
	t.Setenv(embed.EnvKey, "k\n")
	engine := demoEngine(t)
	model, sent := embeddingModel(t, []string{"refund", "refunds", "refunded", "gear", "gears"}, []string{"parcel", "parcels", "oven", "ovens"})
	before, _ := buildFromIndex(t, engine)
	cache := filepath.Join(t.TempDir(), "vectors.db")
	flags := []string{"--embeddings", model, "--embedding-model", "tiny", "--embeddings-cache", cache, "--embedding-share", "0.9"}

	out := filepath.Join(t.TempDir(), "none.akin")
	_, stderr, status := akin(t, append([]string{
		"matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "title,body", "--out", out, "--dry-run",
	}, flags...)...)
	host := strings.TrimPrefix(model, "http://")
	_, missing := os.Stat(out)
	if status != 0 || sent.Load() != 0 || missing == nil || !strings.Contains(stderr, "words of your index go to "+host) {
		t.Errorf("a dry run has status %d, sent %d words and said\n%s", status, sent.Load(), stderr)
	}

	m, _ := buildFromIndex(t, engine, flags...)
	meta := m.Meta()
	if meta.Params[simmatrix.ModelParam] != "tiny at "+host || meta.Params[learn.ModelShareParam] != "0.9" || !strings.Contains(meta.Source, demoIndices) {
		t.Errorf("made of %q with %v", meta.Source, meta.Params)
	}
	if m.Len() != before.Len() || meta.NonZeros < before.Meta().NonZeros*9/10 {
		t.Errorf("%d terms with %d neighbors, %d with %d before", m.Len(), meta.NonZeros, before.Len(), before.Meta().NonZeros)
	}
	shown := filepath.Join(t.TempDir(), "shown.akin")
	mustAkin(t, append([]string{
		"matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "title,body", "--out", shown,
	}, flags...)...)
	if row := mustAkin(t, "matrix", "show", shown, "refund", "--top", "3"); !strings.Contains(row, "gear") || !strings.Contains(row, "model") {
		t.Errorf("the row of refund does not say what is from the model:\n%s", row)
	}
	for _, pair := range [][2]string{{"refund", "gear"}, {"gear", "refund"}, {"parcel", "oven"}} {
		for n := range m.Row(pair[0]).All() {
			if from := meta.Origins; n.Term != pair[1] || n.Origins != 2 || len(from) != 2 || from[1] != "model" {
				t.Errorf("the nearest of %s is %s, not %s by the model: %b of %q", pair[0], n.Term, pair[1], n.Origins, from)
			}
			break
		}
	}

	all := sent.Load()
	again, _ := buildFromIndex(t, engine, flags...)
	if sent.Load() != all || again.Checksum() != m.Checksum() {
		t.Errorf("%d words were sent again, and the matrix is the same: %v", sent.Load()-all, again.Checksum() == m.Checksum())
	}
}

func TestWordVectorsOfAFileAreMixedIntoAMatrix(t *testing.T) {
	engine := demoEngine(t)
	random := rand.New(rand.NewPCG(1, 2))
	var vectors strings.Builder
	before, _ := buildFromIndex(t, engine)
	for term := range before.Terms() {
		if term == "refund" || term == "gear" {
			continue
		}
		vectors.WriteString(term)
		for range 24 {
			fmt.Fprintf(&vectors, " %.4f", random.NormFloat64())
		}
		vectors.WriteString("\n")
	}
	for k, word := range []string{"refund", "gear"} {
		vectors.WriteString(word + strings.Repeat(" 1 -1", 11) + " 1" + fmt.Sprintf(" -%d\n", 1+k))
	}
	file := "file:" + write(t, "words.txt", vectors.String())
	m, stderr := buildFromIndex(t, engine, "--embeddings", file, "--embedding-share", "0.9")
	if got := m.Meta().Params[simmatrix.ModelParam]; got != "words.txt" || !strings.Contains(stderr, "words of your index") {
		t.Errorf("made with %q, saying\n%s", got, stderr)
	}
	_, stderr = buildFromIndex(t, engine, "--embeddings", file)
	if !strings.Contains(stderr, "the model counts for 0.35: documents have ") {
		t.Errorf("the share is chosen, saying\n%s", stderr)
	}
	for n := range m.Row("refund").All() {
		if n.Term != "gear" {
			t.Errorf("the nearest of refund is %s, not gear", n.Term)
		}
		break
	}
}

// Word vectors of another language end the build with what is wrong.
func TestVectorsOfNoWordOfTheIndexEndTheBuild(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.akin")
	file := write(t, "v.txt", "zebra-unheard 1 0 0\nquagga-unheard 0 1 0\n")
	_, stderr, status := akin(t, "matrix", "build", "--from-index", demoEngine(t), "--index", demoIndices, "--field", "title,body",
		"--out", out, "--embeddings", "file:"+file)
	if _, err := os.Stat(out); status == 0 || err == nil || !strings.Contains(stderr, "none of the 2 words of the file is kept") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// What a model cannot read gets one vector, and is nobody's neighbor by it.
func TestWordsThatAModelCannotReadStayAsTheDocumentsHaveThem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		var data []map[string]any
		for k, text := range body.Input {
			v := make([]float64, 48)
			for d := range v {
				h := fnv.New32a()
				if v[d] = 1; len(text) < 9 {
					fmt.Fprint(h, text, d)
					v[d] = float64(h.Sum32()%2000)/1000 - 1
				}
			}
			data = append(data, map[string]any{"index": k, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(server.Close)
	m, said := buildFromIndex(t, demoEngine(t), "--embeddings", server.URL, "--embedding-model", "tiny")
	if counts := regexp.MustCompile(`(\d+) of (\d+) words have a vector of their own`).FindStringSubmatch(said); counts == nil || counts[1] == counts[2] || counts[1] == "0" {
		t.Errorf("it says %s", said)
	}
	row := m.Row("subscript")
	if row.Len() == 0 {
		t.Fatal("no row of subscript")
	}
	for n := range row.All() {
		if n.Origins&2 != 0 {
			t.Errorf("%s is a neighbor of subscript by the model", n.Term)
		}
	}
}

// refusingModel starts a model that answers with a status.
func refusingModel(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestRefusalOfAModelIsNotTakenForOneOfTheCluster(t *testing.T) {
	engine := demoEngine(t)
	for status, want := range map[int]string{
		http.StatusUnauthorized:    "$AKIN_EMBEDDINGS_KEY",
		http.StatusForbidden:       "$AKIN_EMBEDDINGS_KEY",
		http.StatusNotFound:        "the name of the model",
		http.StatusTooManyRequests: "asks to wait 1h",
	} {
		model := refusingModel(t, status)
		_, stderr, got := akin(t, "matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "title,body",
			"--out", filepath.Join(t.TempDir(), "x"), "--embeddings", model, "--embedding-model", "tiny")
		_, failed, _ := strings.Cut(stderr, "akin: ")
		if got != exitFailure || !strings.Contains(failed, want) || !strings.Contains(failed, model) || strings.Contains(failed, "cluster") || strings.Contains(failed, "next:") {
			t.Errorf("%d: status %d, want %q in\n%s", status, got, want, stderr)
		}
	}
}

func TestModelThatIsTooLargeForTheMemoryIsRefusedAfterOneBatch(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		sent += len(body.Input)
		vector := strings.Repeat("1,", 4095)
		for k := range body.Input {
			fmt.Fprintf(w, `%s{"index":%d,"embedding":[%s%d]}`, []string{`{"data":[`, ","}[min(k, 1)], k, vector, k)
		}
		_, _ = w.Write([]byte("]}"))
	}))
	defer server.Close()
	_, stderr, status := akin(t, "matrix", "build", "--from-index", demoEngine(t), "--index", demoIndices, "--field", "title,body",
		"--out", filepath.Join(t.TempDir(), "x"), "--embeddings", server.URL, "--embedding-model", "tiny", "--max-memory", "64MiB")
	if status != exitFailure || sent != 16 || !strings.Contains(stderr, "--max-memory 64MiB") {
		t.Errorf("status %d after %d words\n%s", status, sent, stderr)
	}
}

func TestOnlyWordsAboveTheBoundAreLeftOut(t *testing.T) {
	for words, want := range map[int]bool{maxEmbedded: false, maxEmbedded + 1: true} {
		var told bytes.Buffer
		f := embeddingFlags{model: embed.Model{Name: "tiny"}, dryRun: true}
		all := make([]string, words)
		_, err := f.ask(t.Context(), all, nil, &learn.CorpusOptions{Mix: &learn.Mix{}}, nil, cli.NewProgress(&told))
		if left := strings.Contains(told.String(), "most frequent"); !errors.Is(err, errDryRun) || left != want || !strings.Contains(told.String(), "500000 words of your index go") {
			t.Errorf("%d words: %v\n%s", words, err, told.String())
		}
	}
}

func TestTermHasTheMeanOfItsWordsAtLengthOne(t *testing.T) {
	texts := learn.NewTexts()
	texts.Add("gear gears", "gear oven gear nothing")
	texts.Add("gears oven nothing")
	terms := make([][]string, len(texts.Words()))
	for k, word := range texts.Words() {
		terms[k] = []string{strings.TrimSuffix(word, "s")}
	}
	c, o := texts.Corpus(terms), learn.DefaultCorpusOptions()
	o.MinDocFreq = 1
	f := embeddingFlags{url: "file:" + write(t, "v.txt", "gear 30 40\ngears 0 0.1\noven 2 0\nnothing 0 0\n")}
	var told bytes.Buffer
	if err := f.mix(t.Context(), c, &o, nil, cli.NewProgress(&told)); err != nil {
		t.Fatal(err)
	}
	for term, want := range map[string][]float32{"gear": {0.36, 0.88}, "oven": {1, 0}, "nothing": nil} { // gear 3, gears 2
		got := o.Mix.Vector(term)
		for d := range got {
			got[d] = float32(math.Round(float64(got[d])*1e5) / 1e5)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", term, got, want)
		}
	}
	if !strings.Contains(told.String(), "3 of 4 words have a vector") {
		t.Error(told.String())
	}
}

// One authority may have signed the certificates of the cluster and the model.
func TestAuthoritiesOfTheClusterAreAlsoThoseOfTheModel(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	build := []string{
		"matrix", "build", "--from-index", demoEngine(t), "--index", demoIndices, "--field", "title,body",
		"--out", filepath.Join(t.TempDir(), "x"), "--embeddings", server.URL, "--embedding-model", "tiny",
	}
	if _, stderr, _ := akin(t, build...); !strings.Contains(stderr, "next: name the PEM file") {
		t.Error(stderr)
	}
	if _, stderr, _ := akin(t, append(build, "--ca-file", ca)...); !strings.Contains(stderr, "answers 404") {
		t.Error(stderr)
	}
}

func TestMistakesInTheFlagsOfAModelAreFoundBeforeTheWork(t *testing.T) {
	key := write(t, "key", "k")
	t.Setenv(embed.EnvKey, " ")
	for want, args := range map[string][]string{
		"--embedding-model needs --embeddings":     {"--embedding-model", "tiny"},
		"--embeddings needs --embedding-model":     {"--embeddings", "http://127.0.0.1:1"},
		"--embeddings: want http://HOST:PORT":      {"--embeddings", "tiny"},
		"--embedding-prefix is for a model":        {"--embeddings", "file:" + write(t, "v", ""), "--embedding-prefix", "q"},
		"--embeddings: stat nowhere":               {"--embeddings", "file:nowhere"},
		"--embeddings: give the key apart":         {"--embeddings", "http://u:p@127.0.0.1:1", "--embedding-model", "tiny"},
		"--embedding-share: 1 is not above 0":      {"--embeddings", "_ml/trained_models/x/_infer", "--embedding-share", "1"},
		"--embedding-share: 0 is not above 0":      {"--embeddings", "_ml/trained_models/x/_infer", "--embedding-share", "0"},
		"is the file of --embeddings-cache":        {"--embeddings", "http://127.0.0.1:1", "--embedding-model", "tiny", "--embeddings-cache", key, "--out", key},
		"is the file of --embeddings:":             {"--embeddings", "file:" + key, "--out", key},
		"$AKIN_EMBEDDINGS_KEY is empty":            {"--embeddings", "http://127.0.0.1:1", "--embedding-model", "tiny"},
		"nowhere is no folder":                     {"--embeddings", "_inference/tiny", "--embeddings-cache", "nowhere/x"},
		"the cache of vectors " + key:              {"--embeddings", "_ml/trained_models/x/_infer", "--embeddings-cache", key},
		"--embeddings does not go with --from-tsv": {"--embeddings", "http://127.0.0.1:1", "--embedding-model", "tiny", "--from-tsv", write(t, "pairs", "a\tb\t1\n")},
	} {
		all := []string{"matrix", "build", "--index", "x", "--field", "y", "--out", filepath.Join(t.TempDir(), "x")}
		if args[len(args)-2] != "--from-tsv" {
			all = append(all, "--from-index", "http://127.0.0.1:1")
		}
		if _, stderr, status := akin(t, append(all, args...)...); status != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, want %q in\n%s", args, status, want, stderr)
		}
	}
}

func TestModelCountsForMoreWhereDocumentsAreShort(t *testing.T) {
	for length, want := range map[float64]float64{1: 0.5, 20: 0.5, 20.1: 0.35, 300: 0.35} {
		if got := shareFor(length); got != want {
			t.Errorf("documents of %v terms: %v, want %v", length, got, want)
		}
	}
}
