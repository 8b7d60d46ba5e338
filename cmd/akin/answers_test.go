//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
)

// TestWhatClientsGet says byte for byte what a client gets from akin, whatever
// becomes of its search. A process of akin serves each configuration, between
// raw sockets: the client writes the bytes of a row, the cluster answers as the
// row says, and what arrives on both sides is compared.
func TestWhatClientsGet(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds a program")
	}
	c := newScriptedCluster(t)
	binary := akinThatPanics(t)
	folder := answerFiles(t)
	groups := map[string][]*answerRow{}
	for i := range answerRows {
		r := &answerRows[i]
		r.config, r.sends = cmp.Or(r.config, "bm25"), cmp.Or(r.sends, posts("/docs/_search", carSearch))
		if last := len(r.cluster) - 1; r.gets == "" && last >= 0 && r.leaves == 0 {
			r.gets = r.cluster[last]
		}
		name := r.config
		if r.fresh {
			name += ": " + r.name
		}
		groups[name] = append(groups[name], r)
		c.rows[r.name] = &arrivals{row: r, more: make(chan struct{}, 1)}
	}
	if len(c.rows) != len(answerRows) {
		t.Fatal("two rows have one name")
	}
	for name, rows := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, _, _ := strings.Cut(name, ": ")
			p := startProcess(t, binary, fmt.Sprintf(answerConfigs[config], c.address, folder))
			for _, r := range rows {
				t.Run(r.name, func(t *testing.T) { c.exchange(t, p, r) })
			}
			p.stop(t)
			for _, r := range rows { // nothing may come later
				if got := c.rows[r.name].taken(); len(got) != len(r.arrives) {
					t.Errorf("%s: arrived in the end:\n%s", r.name, strings.Join(got, "\n"))
				}
			}
		})
	}
}

// An answerRow is what one client sends, what the cluster says to that, and
// what the client gets.
type answerRow struct {
	name   string
	config string // of answerConfigs, bm25 where it is not named
	fresh  bool   // with an akin of its own: what that learns reaches no other row
	sends  string // a search for a car where it is not there
	search string // that is in sends, where it is not the body
	// leaves has the client go away when so many of its requests have arrived, ends
	// has it send no more than this.
	leaves int
	ends   bool
	// cluster has the answers to what arrives for the client, in turn.
	cluster []string
	// arrives has that, each with its method, its path, and its body: "original",
	// "rewritten", "first pass" or "in order" where it is one of these.
	arrives []string
	gets    string // the last answer of the cluster where it is not there
	// reranked is as what the hits are counted, "" where they are not reranked.
	reranked string
	closed   bool // the connection ends with the answer
	dead     bool // no node answers
}

// Answers of the cluster that are none.
const (
	closes    = "closes the connection"
	hangs     = "does not answer"
	breaksOff = "\x00" // at the end of an answer
	cutOff    = "akin cuts the request off"
)

// A scriptedCluster is a node that answers akin's own calls like one with a few
// documents, and what comes from the client of a row as the row says.
type scriptedCluster struct {
	address string
	rows    map[string]*arrivals
}

// arrivals are the requests that came for the client of a row.
type arrivals struct {
	row  *answerRow
	more chan struct{} // has a value after one more

	mu       sync.Mutex
	got      []string
	answered int
}

// add notes one and returns the answer to it.
func (a *arrivals) add(what string) (answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, what)
	select {
	case a.more <- struct{}{}:
	default:
	}
	switch {
	case strings.HasPrefix(what, http.MethodDelete): // of a scroll, beside the next search
		return reply(200, `{}`)
	case a.answered == len(a.row.cluster):
		return hangs
	}
	a.answered++
	return a.row.cluster[a.answered-1]
}

// taken returns what arrived, with what goes beside other requests at the end.
func (a *arrivals) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	got := slices.Clone(a.got)
	aside := func(what string) int { return strings.Index("D", what[:1]) }
	slices.SortStableFunc(got, func(x, y string) int { return aside(x) - aside(y) })
	return got
}

// await returns the first n, or what there is when they do not come.
func (a *arrivals) await(n int) []string {
	late := time.After(10 * time.Second)
	for {
		if got := a.taken(); len(got) >= n {
			return got
		}
		select {
		case <-a.more:
		case <-late:
			return a.taken()
		}
	}
}

func newScriptedCluster(t *testing.T) *scriptedCluster {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	c := &scriptedCluster{address: l.Addr().String(), rows: map[string]*arrivals{}}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { c.serve(conn) })
		}
	})
	return c
}

// rowHeader names the row in a request of its client. akin passes it on.
const rowHeader = "X-Row"

func (c *scriptedCluster) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var answer string
		if name := req.Header.Get(rowHeader); name == "" {
			answer = ownAnswer(req, body)
		} else if a := c.rows[name]; a == nil {
			answer = reply(200, `"in step"`) // see exchange
		} else {
			what := req.Method + " " + req.URL.RequestURI()
			if len(body) > 0 {
				what += " " + string(body)
			}
			answer = a.add(what)
			if answer == hangs {
				if _, err := r.ReadByte(); err != nil {
					a.add(cutOff)
				}
				return
			}
		}
		if answer == closes {
			return
		}
		whole, breaks := strings.CutSuffix(answer, breaksOff)
		if _, err := io.WriteString(conn, whole); err != nil || breaks {
			return
		}
	}
}

// ownAnswer answers a call of akin's own.
func ownAnswer(req *http.Request, body []byte) string {
	index, api, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if strings.HasPrefix(index, "_") {
		index, api = "", index
	}
	said := string(body)
	switch {
	case req.Method == http.MethodHead: // akin's health check
		return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	case index == "slow" && api == "_analyze":
		return closes
	case index == "" && api == "":
		return reply(200, `{"version":{"distribution":"opensearch","number":"2.19.1"}}`)
	case api == "_settings":
		return reply(200, `{"`+index+`":{"settings":{"index":{"uuid":"u `+index+`","number_of_shards":"`+shardsOf(index)+`"}}}}`)
	case api == "" && index == "exact":
		return reply(200, `{"exact":{"mappings":{"properties":{"body":{"type":"text","similarity":"akin_linear"},`+
			`"akin_norm":{"properties":{"body":{"type":"float"}}},"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}}}},`+
			`"settings":{"index.uuid":"u","index.number_of_shards":"1","index.similarity.akin_linear.type":"scripted",`+
			`"index.similarity.akin_linear.script.source":"return query.boost * doc.freq;"}}}`)
	case api == "":
		return reply(200, `{"`+index+`":{"mappings":{"properties":{"body":{"type":"text"}}},`+
			`"settings":{"index.uuid":"u `+index+`","index.number_of_shards":"`+shardsOf(index)+`"}}}`)
	case api == "_analyze":
		return reply(200, analyzed(said))
	case api == "_termvectors":
		return reply(200, docFreqsOf(body))
	case api == "_mtermvectors":
		return reply(200, termsOf(body))
	case strings.Contains(said, `"query":{"terms":{"_seq_no":[`):
		return reply(200, namesOf(index, body))
	case strings.Contains(said, "_score * params.a"): // whether scripts run: they do not, so that the form is grouped
		return reply(400, `{"error":{"root_cause":[],"type":"illegal_argument_exception","reason":"no scripts"},"status":400}`)
	case strings.Contains(said, `"normed"`):
		return reply(200, `{"_shards":{"failed":0},"aggregations":{"others":{"doc_count":0},"normed":{"doc_count":9,"norm":{"value":2}}}}`)
	case strings.Contains(said, `"stamped"`):
		return reply(200, `{"_shards":{"failed":0},"aggregations":{"stamped":{"doc_count":9},"others":{"doc_count":0},"foreign":{"doc_count":0}}}`)
	}
	return reply(200, `{"_shards":{"total":1,"failed":0},"hits":{"hits":[]}}`)
}

// analyzed is the answer of an analyzer that splits at spaces.
func analyzed(body string) string {
	var asked struct{ Text []string }
	_ = json.Unmarshal([]byte(body), &asked)
	var tokens []string
	at := 0
	for k, word := range strings.Fields(strings.Join(asked.Text, " ")) {
		tokens = append(tokens, fmt.Sprintf(`{"token":%q,"start_offset":%d,"end_offset":%d,"position":%d}`, word, at, at+len(word), k))
		at += len(word) + 1
	}
	return `{"tokens":[` + strings.Join(tokens, ",") + `]}`
}

// docFreqsOf has each term in 10 of 1,000 documents.
func docFreqsOf(body []byte) string {
	var asked struct{ Doc map[string][]string }
	_ = json.Unmarshal(body, &asked)
	var terms []string
	for _, term := range asked.Doc["body"] {
		terms = append(terms, fmt.Sprintf(`%q:{"doc_freq":10}`, term))
	}
	return `{"term_vectors":{"body":{"field_statistics":{"doc_count":1000},"terms":{` + strings.Join(terms, ",") + `}}}}`
}

// shardsOf returns how many shards an index has.
func shardsOf(index string) string {
	if index == "spread" {
		return "2"
	}
	return "1"
}

// namesOf names the documents that have sequence numbers: of the first two, the
// id is one more.
func namesOf(index string, body []byte) string {
	var asked struct {
		Query struct {
			Terms struct {
				SeqNo []int `json:"_seq_no"`
			}
		}
	}
	_ = json.Unmarshal(body, &asked)
	var hits []string
	for _, n := range asked.Query.Terms.SeqNo {
		if n < 2 {
			hits = append(hits, fmt.Sprintf(`{"_index":%q,"_id":"%d","_version":1,"_seq_no":%d,"_primary_term":1}`, index, n+1, n))
		}
	}
	return `{"hits":{"hits":[` + strings.Join(hits, ",") + `]}}`
}

// termsOf returns the terms of the documents that are asked for.
func termsOf(body []byte) string {
	var asked struct {
		Docs []struct {
			Index string `json:"_index"`
			ID    string `json:"_id"`
		}
	}
	_ = json.Unmarshal(body, &asked)
	terms := map[string]string{"1": `"boat":{"term_freq":1}`, "2": `"car":{"term_freq":1},"tariff":{"term_freq":3}`}
	var docs []string
	for _, d := range asked.Docs {
		docs = append(docs, fmt.Sprintf(`{"_index":%q,"_id":%q,"_version":1,"found":%t,"term_vectors":{"body":{`+
			`"field_statistics":{"sum_doc_freq":3,"doc_count":2,"sum_ttf":5},"terms":{%s}}}}`, d.Index, d.ID, terms[d.ID] != "", terms[d.ID]))
	}
	return `{"docs":[` + strings.Join(docs, ",") + `]}`
}

// reply is an answer of the cluster, and what the client gets of it.
func reply(status int, body string, headers ...string) string {
	lines := append([]string{fmt.Sprintf("Content-Length: %d", len(body))}, headers...)
	if body != "" {
		lines = append(lines, "Content-Type: application/json")
	}
	slices.Sort(lines)
	return fmt.Sprintf("HTTP/1.1 %d %s\r\n%s\r\n\r\n%s", status, http.StatusText(status), strings.Join(lines, "\r\n"), body)
}

// exchange sends what the client of a row sends and compares.
func (c *scriptedCluster) exchange(t *testing.T, p *akinProcess, r *answerRow) {
	t.Helper()
	conn, err := net.Dial("tcp", p.proxy)
	check.OK(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	counted := p.reranked(t)
	sends := strings.Replace(r.sends, "\r\n", "\r\n"+rowHeader+": "+r.name+"\r\n", 1)
	if _, err := io.WriteString(conn, sends); err != nil {
		t.Fatal(err)
	}
	switch {
	case r.leaves > 0:
		c.rows[r.name].await(r.leaves)
		conn.Close()
	case r.ends:
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	var got []byte
	seen := func() string { return noted.ReplaceAllString(string(got), "$1: *") }
	for buf := make([]byte, 64<<10); r.leaves == 0 && (r.closed || len(seen()) < len(r.gets)); {
		n, err := conn.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("reading the answer: %v", err)
			}
			break
		}
	}
	if diff := gocmp.Diff(strings.Split(r.gets, "\r\n"), strings.Split(seen(), "\r\n")); diff != "" {
		t.Errorf("the client gets (-want +got):\n%s", diff)
	}
	if r.leaves == 0 && !r.closed && !r.dead { // and the connection is in step
		_, _ = io.WriteString(conn, "GET /next HTTP/1.1\r\nHost: akin\r\n"+rowHeader+": next\r\nConnection: close\r\n\r\n")
		rest, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(rest), "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(string(rest), "\r\n\r\n\"in step\"") {
			t.Errorf("after the answer comes %q", rest)
		}
	}
	arrived := c.rows[r.name].await(len(r.arrives))
	head, original, _ := strings.Cut(r.sends, "\r\n\r\n")
	for k, what := range arrived {
		if parts := strings.SplitN(what, " ", 3); len(parts) == 3 && what != cutOff {
			arrived[k] = parts[0] + " " + parts[1] + " " + p.name(t, head, original, cmp.Or(r.search, original), parts[2])
		}
	}
	if diff := gocmp.Diff(r.arrives, arrived); diff != "" {
		t.Errorf("at the cluster arrives (-want +got):\n%s", diff)
	}
	if r.leaves > 0 { // nobody knows when it is counted
		return
	}
	want := maps.Clone(counted)
	if r.reranked != "" {
		want[r.reranked]++
	}
	if diff := gocmp.Diff(want, p.reranked(t)); diff != "" {
		t.Errorf("reranked searches are counted (-want +got):\n%s", diff)
	}
}

// noted are the headers that are other ones each time.
var noted = regexp.MustCompile(`\b(X-Akin-Explanation): [^\r]+`)

// An akinProcess is a running akin serve.
type akinProcess struct {
	proxy, admin string
	command      *exec.Cmd
	ended        chan error
	log          strings.Builder // to be read when it has ended
}

func startProcess(t *testing.T, binary, config string) *akinProcess {
	t.Helper()
	p := &akinProcess{ended: make(chan error, 1)}
	file := filepath.Join(t.TempDir(), "akin.yml")
	check.OK(t, os.WriteFile(file, []byte(config), 0o600))
	p.command = exec.Command(binary, "serve", "--config", file)
	stderr, err := p.command.StderrPipe()
	if err == nil {
		err = p.command.Start()
	}
	check.OK(t, err)
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // unless it has ended
		if <-p.ended; t.Failed() {
			t.Logf("akin's log:\n%s", p.log.String())
		}
	})
	listening := make(chan [2]string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			fmt.Fprintln(&p.log, lines.Text())
			var line struct{ Msg, Proxy, Admin string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- [2]string{line.Proxy, line.Admin}
			}
		}
		p.ended <- p.command.Wait()
	}()
	select {
	case at := <-listening:
		p.proxy, p.admin = at[0], at[1]
	case err := <-p.ended:
		p.ended <- err
		t.Fatalf("akin serve: %v\n%s", err, p.log.String())
	case <-time.After(30 * time.Second):
		t.Fatal("akin does not listen")
	}
	return p
}

// stop ends the process and waits for that.
func (p *akinProcess) stop(t *testing.T) {
	t.Helper()
	check.OK(t, p.command.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		p.ended <- err
		if err != nil {
			t.Errorf("akin serve: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("akin does not end")
	}
}

// reranked returns how many searches the process has counted whose hits were to
// be reranked, by result.
func (p *akinProcess) reranked(t *testing.T) map[string]int {
	t.Helper()
	resp, err := http.Get("http://" + p.admin + "/metrics")
	check.OK(t, err)
	text, err := io.ReadAll(resp.Body)
	check.OK(t, errors.Join(err, resp.Body.Close()))
	counted := map[string]int{}
	for _, m := range rerankedTotal.FindAllSubmatch(text, -1) {
		if n, _ := strconv.Atoi(string(m[2])); n > 0 {
			counted[string(m[1])] = n
		}
	}
	return counted
}

var rerankedTotal = regexp.MustCompile(`(?m)^akin_reranked_total{result="(\w+)"} (\d+)$`)

// name returns what a body is of a client's request: its original, its search
// rewritten, also in a template, the first pass of that, or its page in the
// engine's order; else the body.
func (p *akinProcess) name(t *testing.T, head, original, search, body string) string {
	t.Helper()
	if body == original {
		return "original"
	}
	rewritten := p.rewritten(t, strings.Fields(head)[1], search)
	quoted, _ := json.Marshal(rewritten) // a string always encodes
	switch body {
	case rewritten, strings.Replace(original, search, rewritten, 1), `{"source":"{{{akin}}}","params":{"akin":` + string(quoted) + `}}`:
		return "rewritten"
	case `{"from":0,"_source":false,"track_total_hits":false,"seq_no_primary_term":true,"version":true,"size":2,` + rewritten[1:]:
		return "first pass"
	}
	for line := range strings.SplitSeq(rewritten, "\n") {
		for _, names := range []string{`"stored_fields":"_none_"`, `"version":true`} {
			rest, is := strings.CutPrefix(line, `{"from":0,"size":100,"_source":false,"docvalue_fields":["_seq_no"],`+names+`,`)
			if is && body == `{"track_total_hits":false,`+softPaging+`,`+rest {
				return "in order"
			}
		}
	}
	return body
}

// rewritten returns what akin makes of a search, as the admin port shows it, and
// of each of several.
func (p *akinProcess) rewritten(t *testing.T, target, search string) string {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	index, _, _ := strings.Cut(path[1:], "/")
	lines := strings.Split(search, "\n")
	for k := range lines {
		if len(lines) > 1 && k%2 == 0 {
			continue // a header
		}
		var answer struct {
			Rewritten bool
			Body      json.RawMessage
		}
		resp, err := http.Post("http://"+p.admin+"/_akin/expand/"+index+"?"+query, "application/json", strings.NewReader(lines[k]))
		check.OK(t, err)
		err = json.NewDecoder(resp.Body).Decode(&answer)
		check.OK(t, errors.Join(err, resp.Body.Close()))
		if answer.Rewritten {
			lines[k] = string(answer.Body)
		}
	}
	return strings.Join(lines, "\n")
}

// answerFiles writes a matrix, which is weights, too, and a model of vectors.
func answerFiles(t *testing.T) (folder string) {
	t.Helper()
	near := func(term string, s float32) []simmatrix.Neighbor {
		return []simmatrix.Neighbor{{Term: term, Similarity: s}}
	}
	m, err := simmatrix.New(simmatrix.Meta{Source: "test", Docs: 1000}, []simmatrix.TermRow{
		{Term: "automobile", DocFreq: 10},
		{Term: "boat", DocFreq: 10},
		{Term: "hire", DocFreq: 10},
		{Term: "tariff", DocFreq: 10},
		{Term: "car", DocFreq: 10, Neighbors: near("automobile", 0.75)},
		{Term: "rental", DocFreq: 10, Neighbors: near("hire", 0.5)},
	})
	check.OK(t, err)
	model, err := vectors.New(vectors.Meta{Store: vectors.RankFeatures, Normalization: vectors.Soft, Field: "body", Strength: 1}, m, m)
	check.OK(t, err)
	folder = t.TempDir()
	for name, write := range map[string]func(io.Writer) error{
		"s.akin": func(w io.Writer) error { return simmatrix.Encode(w, m) }, "model": func(w io.Writer) error { return model.Write(w) },
	} {
		var content bytes.Buffer
		check.OK(t, errors.Join(write(&content), os.WriteFile(filepath.Join(folder, name), content.Bytes(), 0o600)))
	}
	return folder
}

// mistakes are where akinThatPanics panics: at the beginning of a function of a
// file, if a text is in what it gets.
var mistakes = []struct{ file, function, given string }{
	{"expand/expand.go", "func (e *Expander) Expand(ctx context.Context, req *Request) (res *Result, err error) {\n", `mistake("expand", string(req.Body)); if len(req.FirstHits) > 0 { mistake("again", string(req.Body)) }`},
	{"esclient/analyze.go", "func (c *Client) analyze(ctx context.Context, index string, body analyzeBody, limit int64) ([]Token, error) {\n", `mistake("analyze", body.Text...)`},
	{"expand/soft/rerank.go", "func (r *Reranker) Scores(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {\n", `for _, f := range by.Fields { mistake("scores", f.Terms...) }`},
}

// akinThatPanics builds akin with mistakes in it, and returns its path.
func akinThatPanics(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	check.OK(t, err)
	sources, replaced := map[string]string{}, map[string]string{}
	for _, m := range mistakes {
		if sources[m.file] == "" {
			content, err := os.ReadFile(filepath.Join(repository, m.file))
			check.OK(t, err)
			name := filepath.Base(filepath.Dir(m.file))
			sources[m.file] = string(content)
			sources[filepath.Join(filepath.Dir(m.file), "mistake.go")] = "package " + name + "\n\nimport \"strings\"\n\n" +
				"func mistake(where string, texts ...string) {\n\tif strings.Contains(strings.Join(texts, \" \"), \"mistake-\"+where) {\n\t\tpanic(\"a mistake\")\n\t}\n}\n"
		}
		with := strings.Replace(sources[m.file], m.function, m.function+m.given+"\n", 1)
		if with == sources[m.file] {
			t.Fatalf("%s has no %s", m.file, m.function)
		}
		sources[m.file] = with
	}
	for file, content := range sources {
		written := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		check.OK(t, os.WriteFile(written, []byte(content), 0o600))
		replaced[filepath.Join(repository, file)] = written
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	check.OK(t, err)
	file, binary := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "akin")
	check.OK(t, os.WriteFile(file, overlay, 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "-o", binary, "./cmd/akin")
	build.Dir = repository
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}

// answerConfigs are the configurations, for the address of the cluster and the
// folder of the files. No node listens at port 1.
var answerConfigs = map[string]string{
	"bm25":      answerConfig(`{"urls":["http://%[1]s"]}`, ``),
	"feedback":  answerConfig(`{"urls":["http://%[1]s"]}`, `,"feedback":{"documents":2}`),
	"soft":      answerConfig(`{"urls":["http://%[1]s"]}`, `,"mode":"soft","soft_weight":1`),
	"hard":      answerConfig(`{"urls":["http://%[1]s"]}`, `,"mode":"hard"`),
	"vectors":   answerConfig(`{"urls":["http://%[1]s"]}`, `,"mode":"vectors"`),
	"shadow":    answerConfig(`{"urls":["http://%[1]s"]}`, `,"shadow":1`),
	"templates": answerConfig(`{"urls":["http://%[1]s"]}`, `,"templates":true`),
	"one dead":  answerConfig(`{"urls":["http://127.0.0.1:1","http://%[1]s"]}`, ``),
	"all dead":  answerConfig(`{"urls":["http://127.0.0.1:1"]}`, ``),
	"secured":   answerConfig(`{"urls":["http://%[1]s"]}`, ``),
}

func answerConfig(cluster, expansion string) string {
	return `{"listen":{"address":"127.0.0.1:0","body_timeout":"1s"},"admin":{"address":"127.0.0.1:0"},"shutdown":{"delay":"0s"},` +
		`"cluster":` + cluster + `,"expansion":{"budget":"10s","max_body":"16KiB"` + expansion + `},` +
		`"profiles":{"few":{"max_added_terms":1}},` +
		`"matrices":[{"name":"s","file":"%[2]s/s.akin"}],"weights":[{"name":"w","file":"%[2]s/s.akin"}],"vectors":["%[2]s/model"]}`
}

// posts is a request with a JSON body.
func posts(path, body string, headers ...string) string {
	lines := append([]string{"POST " + path + " HTTP/1.1", "Host: akin", "Content-Type: application/json"}, headers...)
	return fmt.Sprintf("%s\r\nContent-Length: %d\r\n\r\n%s", strings.Join(lines, "\r\n"), len(body), body)
}

// gzipped is a body as gzip.
func gzipped(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, body) // memory takes all
	_ = w.Close()
	return b.String()
}

// Searches, and answers of the cluster to them.
const (
	carSearch = `{"query":{"match":{"body":"car rental"}}}`
	carLines  = "{}\n" + carSearch + "\n{}\n" + `{"query":{"match_all":{}}}` + "\n"

	good    = `{"took":1,"_shards":{"total":2,"failed":0},"hits":{"hits":[{"_index":"docs","_id":"1","_score":2},{"_index":"docs","_id":"2","_score":1}]}}`
	other   = `{"took":2,"_shards":{"total":2,"failed":0},"hits":{"hits":[]}}`
	failing = `{"took":1,"_shards":{"total":2,"failed":1,"failures":[{"reason":{"type":"query_shard_exception","reason":"no"}}]},"hits":{"hits":[]}}`

	wrong      = `{"error":{"root_cause":[],"type":"illegal_argument_exception","reason":"no"},"status":400}`
	wrong2     = `{"error":{"root_cause":[],"type":"parsing_exception","reason":"no"},"status":400}`
	busy       = `{"error":{"root_cause":[],"type":"es_rejected_execution_exception","reason":"no"},"status":429}`
	away       = `{"error":{"root_cause":[],"type":"cluster_block_exception","reason":"no"},"status":503}`
	denied     = `{"error":{"root_cause":[],"type":"security_exception","reason":"no"},"status":403}`
	bothFound  = `{"took":1,"responses":[` + good + `,` + other + `]}`
	firstFails = `{"took":1,"responses":[` + wrong + `,` + other + `]}`
)

// What arrives of akin's own with the headers of the client.
const (
	mayISearch   = "GET /docs/_search?size=0&terminate_after=1&track_total_hits=false&filter_path=_shards.total"
	firstPass    = "POST /docs/_search?filter_path=timed_out,_shards.failed,hits.hits._index,hits.hits._id,hits.hits._routing,hits.hits._score,hits.hits._seq_no,hits.hits._primary_term,hits.hits._version first pass"
	withFeedback = "POST /docs/_search " + `{"query":{"bool":{"must":[{"bool":{"should":[{"bool":{"filter":[{"match":{"body":"car rental"}}]}},{"dis_max":{"tie_breaker":0.1,"queries":[{"term":{"body":{"value":"car"}}},{"dis_max":{"tie_breaker":0.35,"queries":[{"term":{"body":{"value":"automobile","boost":0.4326882}}}]}}]}},` +
		`{"dis_max":{"tie_breaker":0.1,"queries":[{"term":{"body":{"value":"rental"}}},{"dis_max":{"tie_breaker":0.35,"queries":[{"term":{"body":{"value":"hire","boost":0.1923137}}}]}}]}}]}}],` +
		`"should":[{"term":{"body":{"value":"boat","boost":0.32818517}}},{"term":{"body":{"value":"tariff","boost":0.17240107}}},{"term":{"body":{"value":"car","boost":0.09941376}}}]}}}`
	askPage  = "POST /docs/_search "
	askFor1  = askPage + `{"size":1,"track_total_hits":false,"query":{"bool":{"filter":[{"terms":{"_seq_no":[0]}}]}}}`
	askFor2  = askPage + `{"size":1,"track_total_hits":false,"query":{"bool":{"filter":[{"terms":{"_seq_no":[1]}}]}}}`
	askOrder = askPage + "in order"

	askSpread = "POST /spread/_search " +
		`{"size":1,"track_total_hits":false,"query":{"bool":{"filter":[{"terms":{"_seq_no":[0]}},{"bool":{"should":[` +
		`{"bool":{"filter":[{"term":{"_index":"spread"}},{"ids":{"values":["2"]}},{"term":{"_seq_no":0}}]}}]}}]}}}`
)

// ownError is an answer of akin's own.
func ownError(status int, header, kind, reason string) string {
	cause := fmt.Sprintf(`"type":%q,"reason":%q}`, kind, reason)
	body := fmt.Sprintf(`{"error":{"root_cause":[{%s],%s,"status":%d}`, cause, cause, status)
	return fmt.Sprintf("HTTP/1.1 %d %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), header, len(body), body)
}

var noNode = ownError(502, "", "akin_upstream_exception", "no node of the cluster answered the request")

var answerRows = []answerRow{
	// A search is rewritten, or sent as it came.
	{name: "rewritten", cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search rewritten"}},
	{
		name: "compressed", sends: posts("/docs/_search", gzipped(carSearch), "Content-Encoding: gzip"), search: carSearch, cluster: []string{reply(200, good)},
		arrives: []string{"POST /docs/_search rewritten"},
	},
	{
		name: "q", sends: "GET /docs/_search?q=car&df=body&size=3 HTTP/1.1\r\nHost: akin\r\n\r\n", cluster: []string{reply(200, good)}, search: " ",
		arrives: []string{"GET /docs/_search?size=3 rewritten"},
	},
	{name: "no text", sends: posts("/docs/_search", `{"query":{"term":{"body":"car"}}}`), cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search original"}},
	{name: "no JSON", sends: posts("/docs/_search", `{"query":`), cluster: []string{reply(400, wrong)}, arrives: []string{"POST /docs/_search original"}},
	{name: "off", sends: posts("/docs/_search", carSearch, "X-Akin: off"), cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search original"}},
	{
		name: "dry run", sends: posts("/docs/_search", carSearch, "X-Akin: dry-run"), cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search original"},
		gets: reply(200, good, "X-Akin-Explanation: *"),
	},
	{
		name: "explained", sends: posts("/docs/_search", carSearch, "X-Akin: explain"), cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search rewritten"},
		gets: reply(200, good, "X-Akin-Explanation: *"),
	},
	{name: "a profile", sends: posts("/docs/_search?akin_profile=few", carSearch), cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search rewritten"}},
	{name: "an unknown profile", sends: posts("/docs/_search", carSearch, "X-Akin-Profile: nobody"), cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search original"}},
	{
		name: "a count", sends: posts("/docs/_count", carSearch), cluster: []string{reply(200, `{"count":3}`)},
		arrives: []string{"POST /docs/_count " + `{"query":{"bool":{"should":[{"match":{"body":"car rental"}},{"terms":{"body":["automobile","hire"]}}]}}}`},
	},
	{
		name: "no search", sends: posts("/docs/_doc/1", `{"body":"car"}`), cluster: []string{reply(201, `{"result":"created"}`, "Location: /docs/_doc/1", "Warning: 299 a \"b\"")},
		arrives: []string{"POST /docs/_doc/1 original"},
	},

	// Bodies that akin does not take, and clients and nodes that break off.
	{name: "too large", sends: posts("/docs/_search", carSearch+strings.Repeat(" ", 16<<10)), cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search original"}},
	{
		name: "too slow", sends: strings.Replace(posts("/docs/_search", carSearch), "Length: 4", "Length: 5", 1),
		gets: ownError(408, "Connection: close\r\n", "akin_request_exception", "the body of the search came too slowly"), closed: true,
	},
	{
		name: "broken off", sends: strings.Replace(posts("/docs/_search", carSearch), "Length: 4", "Length: 5", 1), ends: true,
		gets: ownError(400, "Connection: close\r\n", "akin_request_exception", "the body of the request broke off"), closed: true,
	},
	{name: "the client leaves", leaves: 1, cluster: []string{hangs}, arrives: []string{"POST /docs/_search rewritten", cutOff}},
	{name: "the node breaks off", cluster: []string{reply(200, good)[:120] + breaksOff}, arrives: []string{"POST /docs/_search rewritten"}, gets: reply(200, good)[:120], closed: true},
	{name: "the node goes", fresh: true, cluster: []string{closes, closes, closes}, arrives: []string{"POST /docs/_search rewritten"}, gets: noNode},
	{name: "one of two nodes is dead", config: "one dead", cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search rewritten"}},
	{name: "all nodes are dead", config: "all dead", gets: noNode, dead: true},

	// Rewritten searches that the cluster does not take.
	{name: "refused", fresh: true, cluster: []string{reply(400, wrong), reply(200, good)}, arrives: []string{"POST /docs/_search rewritten", "POST /docs/_search original"}},
	{name: "failed shards", fresh: true, cluster: []string{reply(200, failing), reply(200, good)}, arrives: []string{"POST /docs/_search rewritten", "POST /docs/_search original"}},
	{name: "busy", fresh: true, cluster: []string{reply(429, busy), reply(200, good)}, arrives: []string{"POST /docs/_search rewritten", "POST /docs/_search original"}},
	{name: "not signed in", fresh: true, cluster: []string{reply(401, denied, "Www-Authenticate: Basic")}, arrives: []string{"POST /docs/_search rewritten"}},

	// A cluster with security, which the first of these rows shows: the next two
	// come after it.
	{
		name: "denied", config: "secured", sends: posts("/docs/_search", carSearch, "Authorization: Basic YQ=="), cluster: []string{reply(403, denied)},
		arrives: []string{"POST /docs/_search rewritten"},
	},
	{
		name: "another client may search", config: "secured", sends: posts("/docs/_search", carSearch, "Authorization: Basic Yg=="),
		cluster: []string{reply(200, `{"_shards":{"total":1}}`), reply(200, good)}, arrives: []string{mayISearch, "POST /docs/_search rewritten"},
	},
	{
		name: "a third may not", config: "secured", sends: posts("/docs/_search", carSearch, "Authorization: Basic Yw=="), cluster: []string{reply(403, denied), reply(403, denied)},
		arrives: []string{mayISearch, "POST /docs/_search original"},
	},

	// Several searches.
	{name: "several", sends: posts("/docs/_msearch", carLines), cluster: []string{reply(200, bothFound)}, arrives: []string{"POST /docs/_msearch rewritten"}},
	{
		name: "several, the rewritten one fails", fresh: true, sends: posts("/docs/_msearch", carLines), cluster: []string{reply(200, firstFails), reply(200, bothFound)},
		arrives: []string{"POST /docs/_msearch rewritten", "POST /docs/_msearch original"},
	},

	// What fails in akin, or panics.
	{name: "the cluster does not analyze", fresh: true, sends: posts("/slow/_search", carSearch), cluster: []string{reply(200, good)}, arrives: []string{"POST /slow/_search original"}},
	{
		name: "the expansion panics", sends: posts("/docs/_search", strings.Replace(carSearch, "car", "car mistake-expand", 1)), cluster: []string{reply(200, good)},
		arrives: []string{"POST /docs/_search original"},
	},
	{
		name: "a call of akin's own panics", sends: posts("/docs/_search", strings.Replace(carSearch, "car", "car mistake-analyze", 1)), cluster: []string{reply(200, good)},
		arrives: []string{"POST /docs/_search original"},
	},

	// Feedback.
	{name: "with feedback", config: "feedback", cluster: []string{reply(200, firstHitsOf("1", "2")), reply(200, good)}, arrives: []string{firstPass, withFeedback}},
	{name: "the first pass is refused", config: "feedback", cluster: []string{reply(400, wrong), reply(200, good)}, arrives: []string{firstPass, "POST /docs/_search rewritten"}},
	{
		name: "the expansion by the first hits panics", config: "feedback", sends: posts("/docs/_search", strings.Replace(carSearch, "car", "car mistake-again", 1)),
		cluster: []string{reply(200, firstHitsOf("1", "2")), reply(200, good)}, arrives: []string{firstPass, "POST /docs/_search rewritten"},
	},

	// The other modes.
	{name: "hard", config: "hard", sends: posts("/exact/_search", carSearch), cluster: []string{reply(200, good)}, arrives: []string{"POST /exact/_search rewritten"}},
	{name: "vectors", config: "vectors", cluster: []string{reply(200, good)}, arrives: []string{"POST /docs/_search rewritten"}},
	// The mode soft: the hits of the client's page come by another search.
	{
		name: "soft", config: "soft", sends: posts("/docs/_search", softSearch), cluster: []string{reply(200, softFrame()), reply(200, pageWith(softHit("2", "0.0")))},
		arrives: []string{"POST /docs/_search rewritten", askFor2}, gets: reply(200, softAnswer("0.2236068", softHit("2", "0.2236068"))), reranked: "reranked",
	},
	{
		name: "soft, the second page", config: "soft", sends: posts("/docs/_search?from=1", softSearch),
		cluster: []string{reply(200, softFrame()), reply(200, pageWith(softHit("1", "0.0")))}, arrives: []string{"POST /docs/_search rewritten", askFor1},
		gets: reply(200, softAnswer("0.2236068", softHit("1", "0.0"))), reranked: "reranked",
	},
	{
		name: "soft, of all shards", config: "soft", sends: posts("/spread/_search", softSearch),
		cluster: []string{reply(200, idFrame), reply(200, spread(pageWith(softHit("2", "0.0"))))}, arrives: []string{"POST /spread/_search rewritten", askSpread},
		gets: reply(200, spread(softAnswer("0.2236068", softHit("2", "0.2236068")))), reranked: "reranked",
	},
	{
		name: "soft, several", config: "soft", sends: posts("/docs/_msearch", "{}\n"+softSearch+"\n"),
		cluster: []string{reply(200, `{"responses":[`+softFrame()+`]}`), reply(200, pageWith(softHit("2", "0.0")))}, arrives: []string{"POST /docs/_msearch rewritten", askFor2},
		gets: reply(200, `{"responses":[`+softAnswer("0.2236068", softHit("2", "0.2236068"))+`]}`), reranked: "reranked",
	},
	{
		name: "soft, the order panics", config: "soft", sends: posts("/docs/_search", strings.Replace(softSearch, "car", "car mistake-scores", 1)),
		cluster: []string{reply(200, softFrame()), reply(200, pageWith(softHit("1", "2.0")))}, arrives: []string{"POST /docs/_search rewritten", askOrder},
		gets: reply(200, softAnswer("2", softHit("1", "2.0"))), reranked: "panic",
	},
	{
		name: "soft, the page is refused", config: "soft", sends: posts("/docs/_search", softSearch),
		cluster: []string{reply(200, softFrame()), reply(400, wrong), reply(200, pageWith(softHit("1", "2.0")))}, arrives: []string{"POST /docs/_search rewritten", askFor2, askOrder},
		gets: reply(200, softAnswer("2", softHit("1", "2.0"))), reranked: "changed",
	},
	{
		name: "soft, the page lacks a hit", config: "soft", sends: posts("/docs/_search", softSearch),
		cluster: []string{reply(200, softFrame()), reply(200, pageWith()), reply(200, pageWith(softHit("1", "2.0")))},
		arrives: []string{"POST /docs/_search rewritten", askFor2, askOrder}, gets: reply(200, softAnswer("2", softHit("1", "2.0"))), reranked: "changed",
	},
	{
		name: "soft, the cluster is too busy for the page", config: "soft", fresh: true, sends: posts("/docs/_search", softSearch),
		cluster: []string{reply(200, softFrame()), reply(429, busy), reply(200, good)}, arrives: []string{"POST /docs/_search rewritten", askFor2, "POST /docs/_search original"},
		reranked: "unreadable",
	},
	{
		name: "soft, the client leaves", config: "soft", sends: posts("/docs/_search", softSearch), leaves: 2, cluster: []string{reply(200, softFrame()), hangs},
		arrives: []string{"POST /docs/_search rewritten", askFor2, cutOff},
	},

	// Shadows, which come after the client's answer.
	{
		name: "a shadow", config: "shadow", cluster: []string{reply(200, good), reply(200, other)}, arrives: []string{"POST /docs/_search original", "POST /docs/_search rewritten"},
		gets: reply(200, good),
	},
	{
		name: "a shadow that is refused", config: "shadow", fresh: true, cluster: []string{reply(200, good), reply(400, wrong)},
		arrives: []string{"POST /docs/_search original", "POST /docs/_search rewritten"}, gets: reply(200, good),
	},

	// Templates.
	{
		name: "a template", config: "templates", sends: posts("/docs/_search/template", `{"id":"t","params":{"q":"car"}}`),
		cluster: []string{reply(200, `{"template_output":`+carSearch+`}`), reply(200, good)}, search: carSearch,
		arrives: []string{"POST /_render/template original", "POST /docs/_search/template rewritten"},
	},
	{
		name: "a template that is not there", config: "templates", sends: posts("/docs/_search/template", `{"id":"t","params":{"q":"car"}}`),
		cluster: []string{reply(404, wrong), reply(404, wrong2)}, arrives: []string{"POST /_render/template original", "POST /docs/_search/template original"},
	},
}

// A search of the mode soft, what it says of its page, and the answer to the
// same of two shards, whose hits have ids.
const (
	softSearch = `{` + softPaging + `,"query":{"match":{"body":"car rental"}}}`
	softPaging = `"size":1`
	idFrame    = `{"took":1,"timed_out":false,"_shards":{"total":2,"failed":0},"hits":{"max_score":2,"hits":[` +
		`{"_index":"spread","_id":"1","_version":1,"_score":2,"fields":{"_seq_no":[0]}},{"_index":"spread","_id":"2","_version":1,"_score":1,"fields":{"_seq_no":[0]}}]}}`
)

// softFrame is an answer to a search of the mode soft: two hits by their
// numbers.
func softFrame() string {
	return softAnswer("2", `{"_index":"docs","_score":2,"fields":{"_seq_no":[0]}}`, `{"_index":"docs","_score":1,"fields":{"_seq_no":[1]}}`)
}

// softAnswer is the same with these hits.
func softAnswer(maxScore string, hits ...string) string {
	return `{"took":1,"timed_out":false,"_shards":{"total":1,"failed":0},"hits":{"max_score":` + maxScore + `,"hits":[` + strings.Join(hits, ",") + `]}}`
}

// spread is a request or an answer for an index of two shards.
func spread(text string) string {
	return strings.NewReplacer("docs", "spread", `"total":1`, `"total":2`).Replace(text)
}

// softHit is a hit as the client asks for it.
func softHit(id, score string) string {
	return fmt.Sprintf(`{"_index":"docs","_id":%q,"_score":%s,"_source":{"body":"}"}}`, id, score)
}

// pageWith is the answer to a search for a page.
func pageWith(hits ...string) string {
	return `{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[` + strings.Join(hits, ",") + `]}}`
}

// firstHitsOf is an answer with these hits, with all that names a state of them.
func firstHitsOf(ids ...string) string {
	var hits []string
	for k, id := range ids {
		hits = append(hits, fmt.Sprintf(`{"_index":"docs","_id":%q,"_version":1,"_seq_no":%d,"_primary_term":1,"_score":%d}`, id, k, len(ids)-k))
	}
	return `{"took":1,"timed_out":false,"_shards":{"total":1,"failed":0},"hits":{"max_score":2,"hits":[` + strings.Join(hits, ",") + `]}}`
}
