package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// TestImageBuildsFromItsFiles runs the commands of the Dockerfile's build
// stage in a folder with what .dockerignore lets into the image's
// context, and nothing else.
func TestImageBuildsFromItsFiles(t *testing.T) {
	long(t)
	t.Parallel()
	root := t.TempDir()
	src, out := filepath.Join(root, "src"), filepath.Join(root, "out")
	copyContext(t, src)
	commit := strings.Repeat("0123456789", 4)
	writeCommit(t, src, commit)

	steps := buildSteps(t)
	if len(steps) == 0 {
		t.Fatal("the Dockerfile's first stage runs nothing")
	}
	for _, step := range steps {
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(step, "/out/", out+"/"))
		cmd.Dir = src
		cmd.Env = append(os.Environ(), "VERSION=v9.8.7", "GOFLAGS=") // those of the Dockerfile only
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("RUN %s\n%v\n%s", step, err, output)
		}
	}
	for _, path := range copiedFromBuild(t) {
		if _, err := os.Stat(strings.Replace(path, "/out/", out+"/", 1)); err != nil {
			t.Errorf("COPY --from=build %s: %v", path, err)
		}
	}
	version, err := exec.Command(filepath.Join(out, "akin"), "--version").Output()
	if err != nil || !strings.HasPrefix(string(version), "akin v9.8.7, commit "+commit+", go1.") {
		t.Errorf("the image's akin says it is %q (%v), want version v9.8.7 and commit %s", version, err, commit)
	}
}

// copyContext copies what .dockerignore lets in.
func copyContext(t *testing.T, to string) {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(readFile(t, filepath.Join(repository, ".dockerignore"))))
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(os.DirFS(repository), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !entry.Type().IsRegular() || strings.HasPrefix(path, ".git/") {
			return err // a test writes what it needs of .git
		}
		if skip, err := ignored.MatchesOrParentMatches(path); err != nil || skip {
			return err
		}
		content, err := os.ReadFile(filepath.Join(repository, path))
		if err != nil {
			return err
		}
		target := filepath.Join(to, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"HEAD", "packed-refs", "refs/heads/main"} {
		if skip, err := ignored.MatchesOrParentMatches(".git/" + name); err != nil || skip {
			t.Errorf(".dockerignore keeps .git/%s out, which names the commit (%v)", name, err)
		}
	}
}

// writeCommit writes the part of .git that names a commit, as git does after it
// has packed its references.
func writeCommit(t *testing.T, src, commit string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(src, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"HEAD":        "ref: refs/heads/main\n",
		"packed-refs": "# pack-refs with: peeled\n" + strings.Repeat("f", 40) + " refs/heads/maintenance\n" + commit + " refs/heads/main\n",
	} {
		if err := os.WriteFile(filepath.Join(src, ".git", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// dockerfile returns the instructions of the Dockerfile, each on one line.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(readFile(t, filepath.Join(repository, "Dockerfile")), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	lines := strings.Split(text, "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

// buildSteps returns the commands of the first stage.
func buildSteps(t *testing.T) (steps []string) {
	t.Helper()
	stages := 0
	for _, line := range dockerfile(t) {
		if strings.HasPrefix(line, "FROM ") {
			stages++
		}
		if step, ok := strings.CutPrefix(line, "RUN "); ok && stages == 1 {
			steps = append(steps, step)
		}
	}
	return steps
}

// copiedFromBuild returns what the last stage takes from the first.
func copiedFromBuild(t *testing.T) (paths []string) {
	t.Helper()
	for _, line := range dockerfile(t) {
		if fields := strings.Fields(line); fields[0] == "COPY" && strings.Contains(line, "--from=build") {
			paths = append(paths, fields[len(fields)-2])
		}
	}
	return paths
}
