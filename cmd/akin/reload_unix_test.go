//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// reload writes a new configuration, sends SIGHUP and returns the log record
// that says what became of that.
func (s *served) reload(t *testing.T, config string) map[string]any {
	t.Helper()
	check.OK(t, os.WriteFile(s.config, []byte(config), 0o600))
	before := len(s.log.String())
	check.OK(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	var record map[string]any
	poll(t, "a record of the reload", func() bool {
		for line := range strings.Lines(s.log.String()[before:]) {
			record = nil
			if json.Unmarshal([]byte(line), &record) == nil && strings.HasPrefix(fmt.Sprint(record["msg"]), "configuration ") {
				return true
			}
		}
		return false
	})
	return record
}

func TestSIGHUPKeepsTheOldConfigurationWhereTheNewOneIsWrong(t *testing.T) {
	node := demoEngine(t)
	good := freePorts + "cluster: {urls: ['" + node + "']}\n"
	garbage := write(t, "ca.pem", "garbage")
	s := startServe(t, good)
	for name, tt := range map[string]struct {
		config string
		want   []string
	}{
		"several problems":   {"listen: {address: nowhere}\nfrob: 1\n", []string{"akin.yml:1: listen.address", "akin.yml:2: frob"}},
		"broken certificate": {good + "redis: {url: 'rediss://127.0.0.1:1', tls: {ca_file: '" + garbage + "'}}\nmatrices: [{name: main}]\n", []string{"no certificate in it"}},
		"missing file":       {strings.Replace(good, "urls:", "tls: {ca_file: nowhere.pem}, urls:", 1), []string{"cluster.tls.ca_file"}},
	} {
		record := s.reload(t, tt.config)
		contains(t, name, fmt.Sprint(record["problems"]), tt.want...)
		if status, _ := get(t, s.proxy+"/"); status != http.StatusOK || record["level"] != "ERROR" {
			t.Errorf("%s: status %d, %v", name, status, record)
		}
	}
	contains(t, "metrics", s.metrics(t), `akin_config_reloads_total{result="failed"} 3`, "akin_config_last_reload_successful 0")
	if record := s.reload(t, good); record["msg"] != "configuration reloaded" {
		t.Errorf("the log says %v", record)
	}
	contains(t, "metrics", s.metrics(t), `akin_config_reloads_total{result="ok"} 1`, "akin_config_last_reload_successful 1")
}

func TestSIGHUPBindsMatricesAndNamesWhatStays(t *testing.T) {
	engine := demoEngine(t)
	matrix := demoMatrix(t)
	plain := freePorts + "cluster: {urls: ['" + engine + "']}\nexpansion: {budget: 5s}\n"
	s := startServe(t, plain)
	const body = `{"query":{"match":{"body":"comfortable couch"}}}`
	before := total(t, s.proxy+"/catalogue/_search", body)
	bound := strings.Replace(plain, "127.0.0.1:0'}\nadmin", "127.0.0.1:1', idle_timeout: 1m}\nadmin", 1) + "matrices: [{name: demo, file: '" + matrix + "'}]\n"
	for range 2 {
		s.reload(t, bound)
		if after := total(t, s.proxy+"/catalogue/_search", body); after <= before {
			t.Errorf("%d hits before, %d after", before, after)
		}
	}
	for _, key := range []string{"listen.address", "listen.idle_timeout"} {
		if n := strings.Count(s.log.String(), `"key":"`+key+`"`); n != 2 {
			t.Errorf("%s is named %d times in\n%s", key, n, s.log.String())
		}
	}
	contains(t, "metrics of the new store", s.metrics(t), `akin_matrix_source_healthy{matrix="demo"} 1`)
}

// The price of a search, when it is expanded and who ranks it are settings that
// a reload changes, and that each request may ask for in another way.
func TestSIGHUPSwitchesEffortWhenAndMode(t *testing.T) {
	engine, matrix := demoEngine(t), demoMatrix(t)
	config := func(expansion string) string {
		return freePorts + "cluster: {urls: ['" + engine + "']}\nmatrices: [{name: demo, file: '" + matrix + "'}]\n" +
			"expansion: {budget: 5s, " + expansion + "}\nprofiles: {soft: {mode: soft}, few: {when: few_hits, below: 1}}\n"
	}
	s := startServe(t, config("effort: low"))
	counts := func(series string) (n float64) {
		for line := range strings.Lines(s.metrics(t)) {
			if value, ok := strings.CutPrefix(line, series+" "); ok {
				n, _ = strconv.ParseFloat(strings.TrimSpace(value), 64)
			}
		}
		return n
	}
	rewritten := func(effort string) string {
		return `akin_requests_total{effort="` + effort + `",outcome="rewritten",reason=""}`
	}
	const reranked, few = `akin_reranked_total{result="reranked"}`, `akin_few_hits_total{result="expanded"}`
	for _, tt := range []struct{ expansion, parameters, series string }{
		{"effort: low", "", rewritten("low")},
		{"effort: normal", "", rewritten("normal")},
		{"effort: normal", "akin=low", rewritten("low")},
		{"effort: high", "", rewritten("high")},
		{"effort: high", "akin_profile=few", few},
		{"when: few_hits, below: 1", "", few},
		{"mode: soft", "", reranked},
		{"effort: low", "", rewritten("low")},
		{"effort: low", "akin_profile=soft", reranked},
	} {
		s.reload(t, config(tt.expansion))
		before := counts(tt.series)
		total(t, s.proxy+"/catalogue/_search?"+tt.parameters, `{"query":{"match":{"body":"couch"}}}`)
		if after := counts(tt.series); after != before+1 {
			t.Errorf("%s?%s: %s went from %v to %v", tt.expansion, tt.parameters, tt.series, before, after)
		}
	}
}
