package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPreferenceSaysWhatUsersPrefer(t *testing.T) {
	dir := t.TempDir()
	pages, clicks, empty := filepath.Join(dir, "pages.jsonl"), filepath.Join(dir, "clicks.jsonl"), filepath.Join(dir, "empty.jsonl")
	var log, clicked strings.Builder
	for i := range 20 {
		fmt.Fprintf(&log, `{"query_id":"%d","query":"x","shown":["a","b"],"trial":"t","between":["off","careful"],"arms":["careful","off"],"clicked":[]}`+"\n", i)
		fmt.Fprintf(&clicked, `{"query_id":"%d","clicked":["a"]}`+"\n", i)
	}
	log.WriteString(`{"query_id":"h","query":"x","shown":["a"],"trial":"h\u001b[2J","between":["o\tff","n\new"],"arms":["o\tff"],"clicked":[]}` + "\n")
	for name, text := range map[string]string{pages: log.String(), clicks: clicked.String() + `{"query_id":"x","clicked":["a"]}
{"query_id":"1","clicked":["z"]}`, empty: "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"_scroll_id":"s","timed_out":false,"_shards":{"total":1,"successful":1,"failed":0},"hits":{"total":{"value":0,"relation":"eq"},"hits":[]}}`)
	}))
	t.Cleanup(cluster.Close)
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--impressions " + pages + " --clicks " + clicks, 0, "+0.500  +0.339 to +0.500  careful\n"},
		{"--impressions " + pages + " --clicks " + clicks, 0, "1 clicks for unknown searches (x), 1 on documents that were not shown (z), 0 un"},
		{"--impressions " + pages + " --clicks " + clicks, 0, `"h\x1b[2J"  "o\tff"    "n\new"`},
		{"--impressions " + pages + " --clicks " + clicks + " --json", 0, `"delta":0.5,`},
		{"--impressions " + pages, exitUsage, "give --impressions FILE and --clicks FILE"},
		{"--impressions " + pages + " --clicks " + filepath.Join(dir, "none"), exitFailure, "none"},
		{"--impressions " + pages + " --clicks " + dir, exitFailure, "directory"},
		{"--impressions " + empty + " --clicks " + clicks, exitFailure, "empty.jsonl: nothing is in it"},
		{"--impressions " + pages + " --clicks " + empty, exitFailure, "empty.jsonl: nothing is in it"},
		{"--impressions " + pages + " --ubi --cluster " + cluster.URL, exitFailure, "ubi_events: nothing is in it"},
		{"--impressions " + pages + " --ubi", exitUsage, "--ubi and --cluster URL"},
		{"--impressions " + pages + " --ubi --cluster http://127.0.0.1:1 --clicks " + clicks, exitUsage, "--ubi and --cluster URL"},
	} {
		var out bytes.Buffer
		if status := run(append([]string{"preference"}, strings.Fields(c.args)...), &out, &out); status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %d\n%s", c.args, status, out.String())
		}
	}
}
