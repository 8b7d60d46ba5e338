package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// TestStatementsArePlain has what no linter finds: an assignment before the
// condition of an if that does not test it, or before a switch, reads like a
// condition, and three values that are assigned at once have to be counted off.
func TestStatementsArePlain(t *testing.T) {
	files := token.NewFileSet()
	parsed := 0
	check.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		check.OK(t, err)
		parsed++
		ast.Inspect(file, func(n ast.Node) bool {
			if says := fault(n); says != "" {
				t.Errorf("%v %s", files.Position(n.Pos()), says)
			}
			return true
		})
		return nil
	}))
	check.That(t, parsed >= 300, "%d files; has the root of this test become wrong?", parsed)
}

// fault says what is not plain in a statement itself, "" for nothing.
func fault(n ast.Node) string {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if len(n.Rhs) > 2 {
			return "assigns more than two values at once"
		}
	case *ast.ValueSpec:
		if len(n.Values) > 2 {
			return "declares more than two values at once"
		}
	case *ast.SwitchStmt:
		if len(assigned(n.Init)) > 0 {
			return "assigns before it switches"
		}
	case *ast.IfStmt:
		names := assigned(n.Init)
		tested := len(names) == 0
		ast.Inspect(n.Cond, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			tested = tested || ok && slices.Contains(names, id.Name)
			return true
		})
		if !tested {
			return "assigns before a condition that does not test it"
		}
	}
	return ""
}

// assigned returns the names of the variables and members that a statement, or
// none, sets without declaring them.
func assigned(s ast.Stmt) (names []string) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			for _, target := range s.Lhs {
				names = append(names, nameOf(target))
			}
		}
	case *ast.IncDecStmt:
		names = append(names, nameOf(s.X))
	}
	return names
}

// nameOf returns the name of a variable or member, or of the one that has it.
func nameOf(target ast.Expr) string {
	switch e := target.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.StarExpr:
		return nameOf(e.X)
	}
	return ""
}
