package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A requestFile is one file of testdata/requests.
type requestFile struct {
	name string // without the ending
	path string
	// head are the lines before the request: comments of the form "# KEY: VALUE".
	head []string
	// profile, headers, engines and modules are what these say.
	profile string
	headers []string
	engines []string
	modules bool
	// The request.
	method, target, body string
	// want is what follows the request.
	want string
}

const separator = "---\n"

// requestFiles reads all files, in the order of their names.
func requestFiles(t *testing.T) []requestFile {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "requests", "*", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	files := make([]requestFile, 0, len(paths))
	for _, path := range paths {
		f, err := readRequestFile(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files = append(files, f)
	}
	return files
}

func readRequestFile(path string) (requestFile, error) {
	area, file := filepath.Split(path)
	f := requestFile{name: filepath.Base(area) + "/" + strings.TrimSuffix(file, ".txt"), path: path}
	content, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	rest := string(content)
	why, newline := false, true
	for strings.HasPrefix(rest, "# ") {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		f.head = append(f.head, line)
		key, value, _ := strings.Cut(line[2:], ": ")
		switch key {
		case "why":
			why = value != ""
		case "profile":
			f.profile = value
		case "header":
			f.headers = append(f.headers, value)
		case "engines":
			f.engines = strings.Fields(value)
		case "needs":
			f.modules = value == "modules"
		case "newline":
			newline = value != "no"
		default:
			return f, fmt.Errorf("line %q", line)
		}
	}
	var line string
	line, rest, _ = strings.Cut(rest, "\n")
	f.method, f.target, _ = strings.Cut(line, " ")
	var judged bool
	if f.body, f.want, judged = strings.Cut("\n"+rest, "\n"+separator); !judged {
		f.body = strings.TrimSuffix(f.body, "\n")
	}
	f.body = strings.TrimPrefix(f.body, "\n")
	if f.inLines() && newline {
		f.body += "\n"
	}
	if !why || f.target == "" || f.want == "" && !*update {
		return f, fmt.Errorf("no why, no request or nothing expected")
	}
	return f, nil
}

// inLines says that the body is lines, each ended by a newline.
func (f requestFile) inLines() bool { return strings.Contains(f.target, "/_msearch") }

// wantsRecord says that the client asks for an explanation.
func (f requestFile) wantsRecord() bool {
	return slices.ContainsFunc(f.headers, func(line string) bool { return line == "X-Akin: explain" || line == "X-Akin: dry-run" })
}

// suits reports whether the file is for the engine.
func (f requestFile) suits(e *engine) bool {
	return (!f.modules || e.scripts) && (f.engines == nil || slices.Contains(f.engines, e.name))
}

// raw is the request as it is sent, with a mark where it is given.
func (f requestFile) raw(mark string, headers []string) rawRequest {
	r := rawRequest{method: f.method, target: f.target, body: f.body, header: slices.Clone(headers)}
	if mark != "" {
		r.header = append(r.header, "X-Opaque-Id: "+mark)
	}
	if mark != "" && f.profile != "" {
		r.header = append(r.header, "X-Akin-Profile: "+f.profile)
	}
	typed := func(line string) bool { return strings.HasPrefix(line, "Content-Type:") }
	if i := slices.IndexFunc(f.headers, typed); i >= 0 && mark == "" {
		r.header = append(r.header, f.headers[i])
	} else if i < 0 && f.body != "" {
		r.header = append(r.header, jsonType)
	}
	if mark == "" {
		r.target = f.targetWithoutControl()
	}
	return r
}

var controlParameters = regexp.MustCompile(`(akin|akin_profile)=[^&]*(&|$)`)

// targetWithoutControl is the target as the cluster is to see it.
func (f requestFile) targetWithoutControl() string {
	path, query, has := strings.Cut(f.target, "?")
	if !has {
		return path
	}
	cut := controlParameters.ReplaceAllString(query, "")
	if cut != query {
		cut = strings.TrimSuffix(cut, "&")
	}
	if cut == "" && query != "" {
		return path
	}
	return path + "?" + cut
}

// adminEndpoints are the ends of the paths that the admin port can be asked
// about, with the names it gives them.
var adminEndpoints = []struct {
	path *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`^(/[^_/][^/]*)?/_search/?$`), "search"},
	{regexp.MustCompile(`^(/[^_/][^/]*)?/_async_search/?$`), "search"},
	{regexp.MustCompile(`^(/[^_/][^/]*)?/_msearch/?$`), "msearch"},
	{regexp.MustCompile(`^(/[^_/][^/]*)?/_count/?$`), "count"},
	{regexp.MustCompile(`^(/[^_/][^/]*)?/_validate/query/?$`), "validate"},
	{regexp.MustCompile(`^(/[^_/][^/]*)/_explain/[^/]+$`), "explain"},
	{regexp.MustCompile(`^(/[^_/][^/]*)?/_rank_eval/?$`), "rank_eval"},
}

// adminPath is where the admin port is asked about the request.
func (f requestFile) adminPath() (string, bool) {
	path, query, _ := strings.Cut(f.target, "?")
	for _, header := range f.headers {
		if strings.HasPrefix(header, "X-Akin") || strings.HasPrefix(header, "Content-Type") {
			return "", false // the proxy decides by them
		}
	}
	for _, e := range adminEndpoints {
		if m := e.path.FindStringSubmatch(path); m != nil && !strings.Contains(query, "akin=off") {
			ask := "/_akin/expand" + m[1] + "?akin_endpoint=" + e.name
			if f.profile != "" {
				ask += "&akin_profile=" + f.profile
			}
			if query != "" {
				ask += "&" + query
			}
			return ask, true
		}
	}
	return "", false
}

// compare compares what became of the request with what the file says, or
// writes it there.
func (f requestFile) compare(t *testing.T, got string) {
	t.Helper()
	if got == f.want {
		return
	}
	if !*update || f.want != "" {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", f.path, got, f.want)
		return
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	request, _, judged := strings.Cut(string(content), "\n"+separator)
	if !judged {
		request = strings.TrimSuffix(request, "\n")
	}
	if err := os.WriteFile(f.path, []byte(request+"\n"+separator+got), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An arrived is a request as it arrived at the cluster.
type arrived struct{ method, target, body string }

// text is what a file says of the request that was sent: the first line only
// where it differs from that of the client.
func (a arrived) text(f requestFile) string {
	text := strings.TrimSuffix(a.body, "\n") + "\n"
	if a.method != f.method || a.target != f.targetWithoutControl() {
		text = a.method + " " + a.target + "\n" + text
	}
	return text
}

// readAll reads the body of a request whole.
func readAll(r *http.Request) string {
	body, _ := io.ReadAll(r.Body) // what is cut off is not what is expected
	return string(body)
}
