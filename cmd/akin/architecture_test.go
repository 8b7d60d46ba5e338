package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureNamesFilesThatExist looks up every path in backquotes of
// ARCHITECTURE.md, so that a newcomer who follows it arrives.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`([a-z0-9_.-]+(?:/[A-Za-z0-9_.*-]+)+/?|[a-z]+/)`").FindAllStringSubmatch(string(text), -1)
	if len(paths) < 30 {
		t.Errorf("ARCHITECTURE.md names %d paths; has the pattern of this test become wrong?", len(paths))
	}
	for _, path := range paths {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(path[1], "/"))))
		if err != nil || len(found) == 0 {
			t.Errorf("ARCHITECTURE.md names %s, which is not there", path[1])
		}
	}
}
