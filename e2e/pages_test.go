package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/freeport"
)

// A docPage is a page of docs/ whose commands a test runs as they stand, in a
// shell and in their order, but for the addresses of the servers in them.
type docPage struct {
	text      string
	dir       string // in which the commands run
	addresses []string
	env       []string
}

// openPage reads a page for an engine, and gives its commands a folder.
func openPage(t *testing.T, name string, e *engine) *docPage {
	t.Helper()
	p := &docPage{text: readFile(t, filepath.Join(repository, "docs", name)), dir: newDir(t, "page")}
	if err := os.Symlink(akinPath(t), filepath.Join(p.dir, "akin")); err != nil {
		t.Fatal(err)
	}
	p.env = append(cleanEnvironment(), "PATH="+p.dir+":"+os.Getenv("PATH"))
	p.use("127.0.0.1:9200", strings.TrimPrefix(e.url, "http://"))
	return p
}

// use has the commands find a server at an address instead of at that of the page.
func (p *docPage) use(written, address string) { p.addresses = append(p.addresses, written, address) }

// usePort is use with a free port, which it returns.
func (p *docPage) usePort(t *testing.T, written string) string {
	t.Helper()
	port, err := freeport.Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.use(written, "127.0.0.1:"+port)
	return port
}

// blocks returns the fenced blocks of a language, with the addresses of the test.
func (p *docPage) blocks(language string) (found []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(p.text, -1) {
		found = append(found, strings.NewReplacer(p.addresses...).Replace(m[1]))
	}
	return found
}

// write writes a file that the page speaks of.
func (p *docPage) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a script of the page and returns what it prints.
func (p *docPage) run(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = p.dir, p.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, &stderr)
	}
	return string(out)
}
