package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// TestArchitectureNamesFilesThatExist looks up every path in backquotes of
// ARCHITECTURE.md and CONTRIBUTING.md, so that a newcomer who follows them
// arrives.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	for page, least := range map[string]int{"ARCHITECTURE.md": 25, "CONTRIBUTING.md": 80} {
		paths := regexp.MustCompile("`([a-z0-9_.-]+(?:/[A-Za-z0-9_.*-]+)+/?|[a-z]+/)`").FindAllStringSubmatch(read(t, filepath.Join(root, page)), -1)
		check.That(t, len(paths) >= least, "%s names %d paths; has the pattern of this test become wrong?", page, len(paths))
		for _, path := range paths {
			found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(path[1], "/"))))
			if err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which is not there", page, path[1])
			}
		}
	}
}

// ARCHITECTURE.md says what the four libraries do. Of go-elasticsearch the
// program has esapi alone: its other packages need 250 packages more.
func TestProgramHasItsFourLibraries(t *testing.T) {
	const program = "github.com/akin-search/akin/"
	imports := func(args ...string) []string {
		out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
		check.OK(t, err)
		return strings.Fields(string(out))
	}
	const gin, esapi = "github.com/gin-gonic/gin", "github.com/elastic/go-elasticsearch/v8/esapi"
	linked := imports("-deps", program+"cmd/akin")
	for _, path := range []string{gin, esapi, "gonum.org/v1/gonum/mat", "github.com/redis/go-redis/v9"} {
		check.That(t, slices.Contains(linked, path), "the program has no %s", path)
	}
	for _, path := range linked {
		if rest, ok := strings.CutPrefix(path, "github.com/elastic/go-elasticsearch/"); ok {
			check.That(t, rest == "v8/esapi" || strings.HasPrefix(rest, "v8/internal/"), "the program has %s", path)
		}
	}
	const direct = `{{join .Imports "\n"}}`
	check.That(t, slices.Contains(imports("-f", direct, program+"proxy"), gin), "proxy does not import gin")
	check.That(t, slices.Contains(imports("-f", direct, program+"esclient"), esapi), "esclient does not import esapi")
}

// What serves a search must not need what only commands and tests do, not even
// through other packages: the linter sees direct imports alone.
func TestNothingInThePathOfASearchReachesTheTools(t *testing.T) {
	const module = "github.com/akin-search/akin/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"internal/serve").Output()
	check.OK(t, err)
	reached := strings.Fields(string(out))
	check.Must(t, slices.Contains(reached, module+"expand"), "%d packages, without expand", len(reached))
	for _, path := range reached {
		for _, room := range []string{
			"tools/", "cmd/", "e2e", "internal/demo", "simmatrix/combine", "simmatrix/learn", "simmatrix/softcosine", "simmatrix/source",
		} {
			check.That(t, !strings.HasPrefix(path, module+room), "%s is in the path of a search", path)
		}
		check.That(t, !strings.HasPrefix(path, "gonum.org/v1/plot"), "%s is in the path of a search", path)
	}
}
