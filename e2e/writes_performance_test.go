package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A writer is a way of writing the same documents. Each has an index of its
// own.
type writer struct {
	name, index string
	at          cluster
}

// A writeLoad is how documents are written.
type writeLoad struct {
	name string
	// clients write side by side, each of them so many requests in a turn.
	clients, requests int
	// docs is the size of a bulk, 0 for documents written one by one.
	docs          int
	warmups, runs int // turns
}

var writeLoads = []writeLoad{
	{name: "bulks of 500, 1 client", clients: 1, requests: 1, docs: 500, warmups: 10, runs: 30},
	{name: "bulks of 500, 4 clients", clients: 4, requests: 2, docs: 500, warmups: 1, runs: 10},
	{name: "`_doc`, 1 client", clients: 1, requests: 50, warmups: 5, runs: 30},
}

// A writeRequest is one request without the name of its index.
type writeRequest struct{ method, path, body string }

// A writeTime is what one writer took for a load.
type writeTime struct {
	requests []time.Duration // shortest first
	whole    time.Duration   // of all turns
}

// BenchmarkWrites compares what writes cost through akin, without and with
// norms, with the same writes sent directly, in turn within one run, and
// prints a table. It does everything once: run it with -benchtime 1x.
func BenchmarkWrites(b *testing.B) {
	e := productionEngine(b)
	g := newTextGenerator(formsDocs)
	config := section{
		"cluster": section{"urls": []string{e.url}},
		"weights": []section{{"name": "weights", "file": freezeWriteWeights(b, e, g)}},
	}
	plain := startAkin(b, config)
	// A write that runs out of time would go on without norms.
	config["norms"] = section{"writes": true, "budget": "30s"}
	norming := startAkin(b, config)
	norming.awaitWeights(b, "weights")
	writers := []writer{
		{"directly", "akin-e2e-writes-directly", e.cluster},
		{"through akin", "akin-e2e-writes-through", plain.cluster},
		{"with `norms.writes`", "akin-e2e-writes-norms", norming.cluster},
	}
	for _, w := range writers {
		e.makeWriteIndex(b, w.index)
	}
	race := writeRace{writers: writers, texts: g}
	for b.Loop() {
		var table strings.Builder
		table.WriteString("| writes | | documents/s | ratio | p50 of a request | ratio |\n|---|---|---|---|---|---|\n")
		for _, l := range writeLoads {
			table.WriteString(l.table(writers, race.run(b, l)))
		}
		fmt.Fprintf(os.Stdout, "\n%d documents written in each way\n\n%s", race.docs, &table)
		checkWritten(b, e, writers, race.docs)
		if n := norming.metric(b, "akin_norm_writes_total", `result="changed"`); n != float64(race.requests) {
			b.Errorf("%v writes got norms on their way, want %d", n, race.requests)
		}
	}
}

// awaitWeights waits until akin serves a version of the named weights.
func (a *akin) awaitWeights(tb testing.TB, name string) {
	tb.Helper()
	waitFor(tb, 20*time.Second, "weights "+name, func() error {
		if a.metric(tb, "akin_weights_info", `weights="`+name+`"`) != 1 {
			return errors.New("not served")
		}
		return nil
	})
}

// makeWriteIndex makes an index as akin index advise says.
func (e *engine) makeWriteIndex(b *testing.B, index string) {
	b.Helper()
	text := mustAkin(b, "index", "advise", "--cluster", e.url, "--index", index, "--field", "body",
		"--new", "--analyzer", "english", "--scripted", "yes")
	var definition struct {
		Settings section `json:"settings"`
		Mappings section `json:"mappings"`
	}
	if err := json.Unmarshal([]byte(text), &definition); err != nil || definition.Settings == nil {
		b.Fatalf("%v: %s", err, text)
	}
	maps.Copy(definition.Settings, section{"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"})
	e.makeIndex(b, index, toJSON(b, definition))
}

// freezeWriteWeights returns the file of the weights of some documents.
func freezeWriteWeights(b *testing.B, e *engine, g *textGenerator) string {
	b.Helper()
	const index = "akin-e2e-writes-weights"
	e.makeWriteIndex(b, index)
	docs := make([]document, 0, 10_000)
	for n := range cap(docs) {
		docs = append(docs, document{strconv.Itoa(n), section{"body": g.text()}})
	}
	e.index(b, index, docs)
	file := filepath.Join(newDir(b, "weights"), "weights.akin")
	mustAkin(b, "norms", "snapshot", "--cluster", e.url, "--index", index, "--field", "body", "--out", file)
	return file
}

// A writeRace has all writers write the same documents.
type writeRace struct {
	writers []writer
	texts   *textGenerator
	// requests and docs are how many each of them has sent.
	requests, docs int
}

// run has the writers write in turn and returns what each took.
func (r *writeRace) run(b *testing.B, l writeLoad) []writeTime {
	b.Helper()
	took := make([]writeTime, len(r.writers))
	for turn := range l.warmups + l.runs {
		batches := make([][]writeRequest, l.clients)
		for i := range batches {
			batches[i] = r.batch(l)
		}
		for i := range r.writers {
			i = (i + turn) % len(r.writers) // nobody is always behind the same
			start := time.Now()
			times, err := r.writers[i].write(b.Context(), batches)
			whole := time.Since(start)
			if err != nil {
				b.Fatalf("%s, %s: %v", l.name, r.writers[i].name, err)
			}
			if turn >= l.warmups {
				took[i].requests = append(took[i].requests, times...)
				took[i].whole += whole
			}
		}
	}
	for i := range took {
		slices.Sort(took[i].requests)
	}
	return took
}

// batch makes what one client sends in a turn, of documents with new ids.
func (r *writeRace) batch(l writeLoad) []writeRequest {
	requests := make([]writeRequest, l.requests)
	for k := range requests {
		r.requests++
		if l.docs == 0 {
			r.docs++
			requests[k] = writeRequest{http.MethodPut, "/_doc/d" + strconv.Itoa(r.docs), `{"body":` + quote(r.texts.text()) + `}`}
			continue
		}
		var lines strings.Builder
		for range l.docs {
			r.docs++
			fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"d%d\"}}\n{\"body\":%s}\n", r.docs, quote(r.texts.text()))
		}
		requests[k] = writeRequest{http.MethodPost, "/_bulk", lines.String()}
	}
	return requests
}

// write sends the requests of each client one behind the other, those of
// several side by side, and returns how long each of them took.
func (w *writer) write(ctx context.Context, clients [][]writeRequest) ([]time.Duration, error) {
	times, errs := make([][]time.Duration, len(clients)), make([]error, len(clients))
	var all sync.WaitGroup
	for i, requests := range clients {
		all.Go(func() {
			for _, r := range requests {
				start := time.Now()
				status, answer, err := w.at.call(ctx, r.method, "/"+w.index+r.path, r.body)
				times[i] = append(times[i], time.Since(start))
				if err == nil && (status >= http.StatusMultipleChoices || bytes.Contains(answer, []byte(`"errors":true`))) {
					err = fmt.Errorf("%d: %.2000s", status, answer)
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return slices.Concat(times...), errors.Join(errs...)
}

// table writes the rows of a load as Markdown, beside the first writer.
func (l *writeLoad) table(writers []writer, took []writeTime) string {
	var t strings.Builder
	docs := float64(l.runs * l.clients * l.requests * max(l.docs, 1))
	for i, w := range writers {
		p50 := quantile(took[i].requests, .5)
		fmt.Fprintf(&t, "| %s | %s | %.0f | %.2f | %.1f ms | %.2f |\n", l.name, w.name, docs/took[i].whole.Seconds(),
			took[0].whole.Seconds()/took[i].whole.Seconds(), p50*1e3, p50/quantile(took[0].requests, .5))
	}
	return t.String()
}

// checkWritten makes sure that all have written so many documents, and that
// those of the last one, and no others, hold their norms.
func checkWritten(b *testing.B, e *engine, writers []writer, docs int) {
	b.Helper()
	for i, w := range writers {
		e.must(b, http.MethodPost, "/"+w.index+"/_refresh", "")
		want := map[string]int{"body": docs, "akin_norm.body": 0, "akin_norm_weights.body": 0}
		if i == len(writers)-1 {
			want["akin_norm.body"], want["akin_norm_weights.body"] = docs, docs
		}
		for field, n := range want {
			var found struct{ Count int }
			answer := e.must(b, http.MethodPost, "/"+w.index+"/_count", `{"query":{"exists":{"field":`+quote(field)+`}}}`)
			if err := json.Unmarshal(answer, &found); err != nil || found.Count != n {
				b.Errorf("%s: %d documents have %s, want %d (%v)", w.name, found.Count, field, n, err)
			}
		}
	}
}
