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
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/embed"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
)

// modelOf starts a model that answers each text with a vector, and returns its
// address and how many texts it was sent.
func modelOf(t *testing.T, vector func(text string) []float64) (url string, sent *atomic.Int64) {
	t.Helper()
	sent = &atomic.Int64{}
	return answering(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s with %v: %v", r.URL, r.Header, err)
		}
		var data []map[string]any
		for k, text := range body.Input {
			data = append(data, map[string]any{"index": k, "embedding": vector(text)})
		}
		sent.Add(int64(len(body.Input)))
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}), sent
}

// randomVector returns a vector that is another one for each seed.
func randomVector(seed string) []float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))
	random, v := rand.New(rand.NewPCG(h.Sum64(), 1)), make([]float64, 48)
	for d := range v {
		v[d] = random.NormFloat64()
	}
	return v
}

func TestWordsOfAModelAreMixedIntoAMatrix(t *testing.T) {
	t.Setenv(embed.EnvKey, "k\n")
	model, sent := modelOf(t, func(text string) []float64 { // words of one meaning have nearly the same vector
		v := randomVector(text)
		for _, meaning := range [][]string{{"refund", "refunds", "refunded", "gear", "gears"}, {"parcel", "parcels", "oven", "ovens"}} {
			if slices.Contains(meaning, text) {
				for d, x := range randomVector(meaning[0]) {
					v[d] = x + v[d]/100
				}
			}
		}
		return v
	})
	before, _ := built(t, fromDemo(t, "--language-model", "none")...)
	cache, out := filepath.Join(t.TempDir(), "vectors.db"), filepath.Join(t.TempDir(), "out.akin")
	flags := fromDemo(t, "--embeddings", model, "--embedding-model", "tiny", "--embeddings-cache", cache, "--embedding-share", "0.9")
	build := append([]string{"matrix", "build", "--out", out}, flags...)
	host := strings.TrimPrefix(model, "http://")
	if ends(t, 0, append(build, "--dry-run"), "words of your index go to "+host); sent.Load() != 0 || isThere(out) {
		t.Errorf("a dry run sent %d words", sent.Load())
	}

	m, _ := built(t, flags...)
	meta := m.Meta()
	if meta.Params[simmatrix.ModelParam] != "tiny at "+host || meta.Params[learn.ModelShareParam] != "0.9" || !strings.Contains(meta.Source, demoIndices) {
		t.Errorf("made of %q with %v", meta.Source, meta.Params)
	}
	if meta.NonZeros < before.Meta().NonZeros*9/10 {
		t.Errorf("%d neighbors, %d before", meta.NonZeros, before.Meta().NonZeros)
	}
	if row := m.Row("how"); row.DocFreq() == 0 || row.Len() > 0 || before.Row("how").Len() == 0 {
		t.Errorf("a function word in %d documents has %d neighbors, %d without a model", row.DocFreq(), row.Len(), before.Row("how").Len())
	}
	for _, pair := range [][2]string{{"refund", "gear"}, {"gear", "refund"}, {"parcel", "oven"}} {
		for n := range m.Row(pair[0]).All() {
			if from := meta.Origins; n.Term != pair[1] || n.Origins != 2 || !slices.Equal(from, []string{"documents", "model", "joined words"}) {
				t.Errorf("the nearest of %s is %s, not %s by the model: %b of %q", pair[0], n.Term, pair[1], n.Origins, from)
			}
			break
		}
	}

	all := sent.Load()
	mustAkin(t, build...)
	contains(t, "the row of refund", mustAkin(t, "matrix", "show", out, "refund", "--top", "3"), "gear", "model")
	again, err := cli.ReadMatrix(t.Context(), out)
	if check.OK(t, err); sent.Load() != all || again.Checksum() != m.Checksum() {
		t.Errorf("%d words were sent again, and the matrix is the same: %v", sent.Load()-all, again.Checksum() == m.Checksum())
	}
}

func TestWordVectorsOfAFileAreMixedIntoAMatrix(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var vectors strings.Builder
	before, _ := built(t, fromDemo(t)...)
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
	m, stderr := built(t, fromDemo(t, "--embeddings", file, "--embedding-share", "0.9")...)
	if got := m.Meta().Params[simmatrix.ModelParam]; got != "words.txt" || !strings.Contains(stderr, "words of your index") {
		t.Errorf("made with %q, saying\n%s", got, stderr)
	}
	_, stderr = built(t, fromDemo(t, "--embeddings", file)...)
	contains(t, "the share is chosen", stderr, "the model counts for 0.35: documents have ")
	for n := range m.Row("refund").All() {
		check.That(t, n.Term == "gear", "the nearest of refund is %s, not gear", n.Term)
		break
	}
}

// What a model cannot read gets one vector, and is nobody's neighbor by it.
func TestWordsThatAModelCannotReadStayAsTheDocumentsHaveThem(t *testing.T) {
	t.Setenv(embed.EnvKey, "k")
	model, _ := modelOf(t, func(text string) []float64 {
		if len(text) < 9 {
			return randomVector(text)
		}
		return slices.Repeat([]float64{1}, 48)
	})
	m, said := built(t, fromDemo(t, "--embeddings", model, "--embedding-model", "tiny")...)
	if counts := regexp.MustCompile(`(\d+) of (\d+) words have a vector of their own`).FindStringSubmatch(said); counts == nil || counts[1] == counts[2] || counts[1] == "0" {
		t.Errorf("it says %s", said)
	}
	row := m.Row("subscript")
	if row.Len() == 0 {
		t.Fatal("no row of subscript")
	}
	for n := range row.All() {
		check.That(t, n.Origins&2 == 0, "%s is a neighbor of subscript by the model", n.Term)
	}
}

// What a build says where the vectors do not help it: a refusal of the model is
// not taken for one of the cluster.
func TestBuildsWithVectorsThatFail(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x")
	build := func(more ...string) []string {
		return append([]string{"matrix", "build", "--out", out}, fromDemo(t, more...)...)
	}
	for status, want := range map[int]string{
		http.StatusUnauthorized:    "$AKIN_EMBEDDINGS_KEY",
		http.StatusForbidden:       "$AKIN_EMBEDDINGS_KEY",
		http.StatusNotFound:        "the name of the model",
		http.StatusTooManyRequests: "asks to wait 1h",
	} {
		model := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
		})
		said := ends(t, exitFailure, build("--embeddings", model, "--embedding-model", "tiny"))
		_, failed, _ := strings.Cut(said, "akin: ")
		if contains(t, strconv.Itoa(status), failed, want, model); strings.Contains(failed, "cluster") || strings.Contains(failed, "next:") {
			t.Errorf("%d: %s", status, failed)
		}
	}
	t.Setenv(embed.EnvKey, "k")
	large, sent := modelOf(t, func(text string) []float64 { return append(randomVector(text), make([]float64, 4048)...) })
	if ends(t, exitFailure, build("--embeddings", large, "--embedding-model", "tiny", "--max-memory", "64MiB"), "--max-memory 64MiB"); sent.Load() != 16 {
		t.Errorf("a model that is too large is refused after %d words, want one batch", sent.Load())
	}
	ends(t, exitFailure, build("--embeddings", "file:"+write(t, "v.txt", "zebra-unheard 1 0 0\nquagga-unheard 0 1 0\n")), "none of the 2 words of the file is kept")
	if isThere(out) {
		t.Error("a matrix was written")
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
	check.OK(t, f.mix(t.Context(), c, &o, nil, cli.NewProgress(&told)))
	for term, want := range map[string][]float32{"gear": {0.36, 0.88}, "oven": {1, 0}, "nothing": nil} { // gear 3, gears 2
		got := o.Mix.Vector(term)
		for d := range got {
			got[d] = float32(math.Round(float64(got[d])*1e5) / 1e5)
		}
		check.That(t, slices.Equal(got, want), "%s has %v, want %v", term, got, want)
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
	build := append([]string{"matrix", "build", "--out", filepath.Join(t.TempDir(), "x"), "--embeddings", server.URL, "--embedding-model", "tiny"}, fromDemo(t)...)
	ends(t, exitFailure, build, "next: name the PEM file")
	ends(t, exitFailure, append(build, "--ca-file", ca), "answers 404")
}
