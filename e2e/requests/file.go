// Package requests has what the tests on the files of ../testdata/requests
// share: that on real engines in e2e, and those in expand and expand/form on a
// [Cluster], which answers akin's questions from what a [Recorder] wrote down of
// a real engine.
package requests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A File is one file of testdata/requests: a request, and what is to become of
// it.
type File struct {
	Name string // AREA/NAME, without the ending
	Path string
	// Profile, Headers, Engines and Modules are what the comments of the form
	// "# KEY: VALUE" say: the profile of [Profiles], more lines of the header, the
	// engines that take the request, nil for all, and whether they need what
	// mapping_modules.json uses.
	Profile string
	Headers []string
	Engines []string
	Modules bool
	// The request.
	Method, Target, Body string
	// Want is what follows the request.
	Want string
}

// OfForm reports whether the file shows how clauses are written, in some form
// of scoring.
func (f *File) OfForm() bool {
	area := filepath.Dir(f.Name)
	return slices.Contains([]string{"expressions", "forms", "minimum", "modes", "segments"}, area)
}

// Separator stands between a request and what becomes of it, and before the
// clauses.
const Separator = "---\n"

// Files reads all files below folder, in the order of their names. Where blank,
// they may say nothing yet of what is to become of the request.
func Files(folder string, blank bool) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*.txt"))
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, len(paths))
	for _, path := range paths {
		f, err := read(path)
		if err == nil && f.Want == "" && !blank {
			err = errors.New("nothing expected")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, f)
	}
	return files, nil
}

func read(path string) (File, error) {
	area, file := filepath.Split(path)
	f := File{Name: filepath.Base(area) + "/" + strings.TrimSuffix(file, ".txt"), Path: path}
	content, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	rest := string(content)
	why, newline := false, true
	for strings.HasPrefix(rest, "# ") {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		key, value, _ := strings.Cut(line[2:], ": ")
		switch key {
		case "why":
			why = value != ""
		case "profile":
			f.Profile = value
		case "header":
			f.Headers = append(f.Headers, value)
		case "engines":
			f.Engines = strings.Fields(value)
		case "needs":
			f.Modules = value == "modules"
		case "newline":
			newline = value != "no"
		default:
			return f, fmt.Errorf("line %q", line)
		}
	}
	var line string
	line, rest, _ = strings.Cut(rest, "\n")
	f.Method, f.Target, _ = strings.Cut(line, " ")
	var judged bool
	if f.Body, f.Want, judged = strings.Cut("\n"+rest, "\n"+Separator); !judged {
		f.Body = strings.TrimSuffix(f.Body, "\n")
	}
	f.Body = strings.TrimPrefix(f.Body, "\n")
	if strings.Contains(f.Target, "/_msearch") && newline { // each line is ended by a newline
		f.Body += "\n"
	}
	if !why || f.Target == "" {
		return f, errors.New("no why or no request")
	}
	return f, nil
}

// Write writes what became of the request into the file.
func (f *File) Write(got string) error {
	content, err := os.ReadFile(f.Path)
	if err != nil {
		return err
	}
	request, _, judged := strings.Cut(string(content), "\n"+Separator)
	if !judged {
		request = strings.TrimSuffix(request, "\n")
	}
	return os.WriteFile(f.Path, []byte(request+"\n"+Separator+got), 0o600)
}

// Suits reports whether the file is for an engine of that name, which has
// modules or not.
func (f *File) Suits(engine string, modules bool) bool {
	return (!f.Modules || modules) && (f.Engines == nil || slices.Contains(f.Engines, engine))
}

// A recordedEngine is one whose answers are recorded.
type recordedEngine struct {
	name    string
	modules bool
}

// recordedEngines are all of them. The first that suits a file is its own.
var recordedEngines = []recordedEngine{{"opensearch2", true}, {"elasticsearch8", false}}

// Records reports whether files are replayed by a recording of the engine.
func Records(engine string) bool {
	return slices.ContainsFunc(recordedEngines, func(e recordedEngine) bool { return e.name == engine })
}

// Recorded returns the engine by whose recording the file is replayed.
func (f *File) Recorded() string {
	for _, e := range recordedEngines {
		if f.Suits(e.name, e.modules) {
			return e.name
		}
	}
	return ""
}

// WantsRecord reports whether the client asks for an explanation.
func (f *File) WantsRecord() bool {
	return slices.ContainsFunc(f.Headers, func(line string) bool { return line == "X-Akin: explain" || line == "X-Akin: dry-run" })
}

// jsonType is the header of a request with a JSON body.
const jsonType = "Content-Type: application/json"

// ToAkin returns the lines of the header as akin gets the request, with [Mark].
func (f *File) ToAkin() []string {
	lines := append(slices.Clone(f.Headers), "X-Opaque-Id: "+Mark)
	if f.Profile != "" {
		lines = append(lines, "X-Akin-Profile: "+f.Profile)
	}
	if f.Body != "" && !slices.ContainsFunc(f.Headers, isContentType) {
		lines = append(lines, jsonType)
	}
	return lines
}

// ToCluster returns the lines of the header that the cluster needs to take the
// request without akin.
func (f *File) ToCluster() []string {
	if i := slices.IndexFunc(f.Headers, isContentType); i >= 0 {
		return f.Headers[i : i+1]
	}
	if f.Body != "" {
		return []string{jsonType}
	}
	return nil
}

func isContentType(line string) bool { return strings.HasPrefix(line, "Content-Type:") }

var controlParameters = regexp.MustCompile(`(akin|akin_profile)=[^&]*(&|$)`)

// ClusterTarget is the target as the cluster is to see it: without the
// parameters that are for akin.
func (f *File) ClusterTarget() string {
	path, query, has := strings.Cut(f.Target, "?")
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

// AdminTarget is where the admin port is asked by POST what becomes of the
// request, false where it cannot be asked.
func (f *File) AdminTarget() (string, bool) {
	path, query, _ := strings.Cut(f.Target, "?")
	for _, header := range f.Headers {
		if strings.HasPrefix(header, "X-Akin") || isContentType(header) {
			return "", false // the proxy decides by them
		}
	}
	if strings.HasSuffix(f.Profile, "feedback") {
		return "", false // the admin port shows searches without
	}
	for _, e := range adminEndpoints {
		if m := e.path.FindStringSubmatch(path); m != nil && !strings.Contains(query, "akin=off") {
			ask := "/_akin/expand" + m[1] + "?akin_endpoint=" + e.name
			if f.Profile != "" {
				ask += "&akin_profile=" + f.Profile
			}
			if query != "" {
				ask += "&" + query
			}
			return ask, true
		}
	}
	return "", false
}

// PIT is the place in a file for the id of a point in time of [Shop].
const PIT = "{{pit}}"

// Got is what became of the request, as the file says it: the reason, or what
// arrived at the cluster, and the clauses that the admin port tells of.
func (f *File) Got(o Outcome, sent Arrived, clauses string) string {
	got := sent.text(f)
	if !o.Rewritten() {
		got = o.Outcome + " " + o.Reason + "\n"
	}
	if clauses != "" {
		got += Separator + clauses
	}
	return got
}

// text is what a file says of the request that was sent: the first line only
// where it differs from that of the client.
func (a Arrived) text(f *File) string {
	text := strings.TrimSuffix(a.Body, "\n") + "\n"
	if a.Method != f.Method || a.Target != f.ClusterTarget() {
		text = a.Method + " " + a.Target + "\n" + text
	}
	return text
}

// An Explanation is what the admin port says of a request.
type Explanation struct {
	Rewritten     bool
	Reason, Cause string
	RawQuery      string `json:"raw_query"`
	Body          json.RawMessage
	Clauses       []struct {
		Path, Field, Form, Phase, Reason string
		Left                             []string
		Added                            []struct{ Term, From string }
		Alternatives                     []struct{ Term, For string }
	}
}

// Text describes each clause in one line.
func (e *Explanation) Text() string {
	var b strings.Builder
	for _, c := range e.Clauses {
		b.WriteString(c.Path)
		if c.Field != "" {
			b.WriteString(" " + c.Field)
		}
		b.WriteString(": " + c.Form)
		if c.Phase == "rescore" {
			b.WriteString(" as rescore")
		}
		switch {
		case c.Form == "":
			b.WriteString(c.Reason)
		case c.Reason != "":
			b.WriteString(" (" + c.Reason + ")")
		}
		for _, part := range c.Left {
			fmt.Fprintf(&b, ", left %s", part)
		}
		for _, a := range c.Added {
			fmt.Fprintf(&b, ", %s → %s", a.From, a.Term)
		}
		for _, a := range c.Alternatives {
			fmt.Fprintf(&b, ", %s = %s", a.For, a.Term)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Compare returns how the explanation differs from what became of the request.
func (e *Explanation) Compare(o Outcome, sent Arrived) error {
	var text string
	if json.Unmarshal(e.Body, &text) != nil { // the lines of _msearch are a text
		text = string(e.Body)
	}
	if e.Rewritten != o.Rewritten() || e.Reason+e.Cause != o.Reason {
		return fmt.Errorf("the admin port says rewritten %t, reason %q", e.Rewritten, e.Reason)
	}
	if _, query, _ := strings.Cut(sent.Target, "?"); e.Rewritten && (Compact(text) != Compact(sent.Body) || e.RawQuery != query) {
		return fmt.Errorf("the admin port shows ?%s\n%s\nand what was sent is\n%+v", e.RawQuery, text, sent)
	}
	return nil
}

// Compact takes the white space out of JSON, as the admin port does.
func Compact(s string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}
