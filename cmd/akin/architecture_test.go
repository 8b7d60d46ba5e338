package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// What is larger cannot be read in one go.
const (
	maxFields       = 14 // of a struct that is not settings
	maxMethods      = 26
	maxPackageFiles = 25
	maxPackageLines = 4400
)

// TestArchitectureKeepsTypesAndPackagesSmall counts the fields of structs, the methods of
// types, and the files and lines of packages, all without tests. Settings may
// have as many fields as there is to set: package configs and types called Options.
func TestArchitectureKeepsTypesAndPackagesSmall(t *testing.T) {
	root := filepath.Join("..", "..")
	files, lines, methods := map[string]int{}, map[string]int{}, map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"e2e", "bench"}, entry.Name())) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		files[dir]++
		lines[dir] += bytes.Count(source, []byte("\n"))
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				fields, ok := n.Type.(*ast.StructType)
				settings := dir == "configs" || strings.HasSuffix(n.Name.Name, "Options")
				if count := fieldCount(fields); ok && !settings && count > maxFields {
					t.Errorf("%s: struct %s has %d fields, more than %d", dir, n.Name.Name, count, maxFields)
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[dir+": "+receiver(n.Recv.List[0].Type)]++
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 40 || len(methods) < 200 {
		t.Errorf("there are %d packages and %d types with methods; does this test look at all of them?", len(files), len(methods))
	}
	for _, limit := range []struct {
		what   string
		counts map[string]int
		max    int
	}{{"methods", methods, maxMethods}, {"files", files, maxPackageFiles}, {"lines", lines, maxPackageLines}} {
		for name, count := range limit.counts {
			if count > limit.max {
				t.Errorf("%s: %d %s, more than %d", name, count, limit.what, limit.max)
			}
		}
	}
}

func fieldCount(s *ast.StructType) int {
	if s == nil {
		return 0
	}
	count := 0
	for _, field := range s.Fields.List {
		count += max(1, len(field.Names)) // an embedded one has no name
	}
	return count
}

// receiver returns the name of the type that a method is of.
func receiver(e ast.Expr) string {
	for {
		switch of := e.(type) {
		case *ast.StarExpr:
			e = of.X
		case *ast.IndexExpr:
			e = of.X
		case *ast.IndexListExpr:
			e = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}
