package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureNamesFilesThatExist looks up every path in backquotes of
// ARCHITECTURE.md and CONTRIBUTING.md, so that a newcomer who follows them
// arrives.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	for page, least := range map[string]int{"ARCHITECTURE.md": 25, "CONTRIBUTING.md": 80} {
		t.Run(page, func(t *testing.T) { namesFilesThatExist(t, root, page, least) })
	}
}

func namesFilesThatExist(t *testing.T, root, page string, least int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`([a-z0-9_.-]+(?:/[A-Za-z0-9_.*-]+)+/?|[a-z]+/)`").FindAllStringSubmatch(string(text), -1)
	if len(paths) < least {
		t.Errorf("it names %d paths; has the pattern of this test become wrong?", len(paths))
	}
	for _, path := range paths {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(path[1], "/"))))
		if err != nil || len(found) == 0 {
			t.Errorf("it names %s, which is not there", path[1])
		}
	}
}
