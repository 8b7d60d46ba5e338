package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix/learn"
)

// newSpool returns a spool in a new folder.
func newSpool(t *testing.T, plan scanPlan) *spool {
	t.Helper()
	s, _, err := openSpool(t.Context(), filepath.Join(t.TempDir(), "spool"), plan)
	check.OK(t, err)
	return s
}

func TestInterruptedScanGoesOnFromItsSpool(t *testing.T) {
	s := newScanTest(t)
	spool := newSpool(t, s.plan)
	ctx, interrupt := context.WithCancel(t.Context())
	s.engine.fail = func(page int) func(http.ResponseWriter) {
		if page == 12 { // four slices of two pages, which are three searches, are done or under way
			interrupt()
		}
		return nil
	}
	_, _, err := s.read(ctx, spool)
	done := spool.finished(8)
	check.Must(t, errors.Is(err, context.Canceled) && done != 0 && done != 8, "%d slices are done, error %v", done, err)
	if err := spool.explain(err, 8); !strings.Contains(err.Error(), fmt.Sprintf("has %d of 8 slices", done)) {
		t.Errorf("error %v does not say how to go on", err)
	}
	var had []int
	for k := range 8 {
		if spool.has(k) {
			had = append(had, k)
		}
	}
	s.engine.restore()
	words, _, err := s.read(t.Context(), spool)
	if diff := cmp.Diff(s.all(), words); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, k := range had {
		if n := s.engine.counts()[fmt.Sprint("slice ", k)]; n != 0 {
			t.Errorf("slice %d was read before, and %d pages of it again", k, n)
		}
	}
	if _, err := spool.load(t.Context(), 7); err != nil {
		t.Error(err)
	}
	if err := spool.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(spool.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the spool is still there, %v", err)
	}
}

func TestSpoolIsReadableToItsOwnerAlone(t *testing.T) {
	s := newScanTest(t)
	spool := newSpool(t, s.plan)
	if _, _, err := s.read(t.Context(), spool); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", planFile, sliceFile(0)} {
		info, err := os.Stat(filepath.Join(spool.dir, name))
		check.OK(t, err)
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%q has the mode %v", name, mode)
		}
	}
}

func TestSpoolOfAnotherScanIsRefused(t *testing.T) {
	plan := scanPlan{
		Index: "docs", Fields: []string{"body"}, Query: `{"term":{"a":1}}`, MaxDocs: 10,
		Indices: []documents.ConcreteIndex{{Name: "docs", UUID: "u", Shards: 1}}, Docs: 7, Share: 0.5, Slices: 3,
	}
	spool := newSpool(t, plan)
	for name, change := range map[string]func(p *scanPlan){
		"index":          func(p *scanPlan) { p.Index = "docs-*" },
		"field":          func(p *scanPlan) { p.Fields = []string{"body", "title"} },
		"query was":      func(p *scanPlan) { p.Query = "" },
		"max-docs":       func(p *scanPlan) { p.MaxDocs = 11 },
		"exact-analysis": func(p *scanPlan) { p.Terms = true },
		"created again":  func(p *scanPlan) { p.Indices = []documents.ConcreteIndex{{Name: "docs", UUID: "v", Shards: 1}} },
		"other indices":  func(p *scanPlan) { p.Indices = nil },
	} {
		other := plan
		change(&other)
		if _, _, err := openSpool(t.Context(), spool.dir, other); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	again := plan
	again.Docs, again.Share, again.Slices = 8, 0.4, 4 // documents were added since
	_, got, err := openSpool(t.Context(), spool.dir, again)
	if diff := cmp.Diff(plan, got); diff != "" || err != nil {
		t.Errorf("%v; the plan is not the one of the beginning: %s", err, diff)
	}
}

func TestFoldersThatAreNoSpoolAreLeftAlone(t *testing.T) {
	for name, content := range map[string]string{
		"letter.txt": "dear", planFile: `{"slices":0}`, "empty": "",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, []byte(content), 0o600))
		if _, _, err := openSpool(t.Context(), dir, scanPlan{Slices: 1}); err == nil {
			t.Errorf("a folder with %s %q is a spool", name, content)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%s is now %q, %v", name, got, err)
		}
	}
	for name, plan := range map[string]string{
		"unknown member": `{"slices":1,"x":1}`, "two values": `{"slices":1}{}`, "garbage behind": `{"slices":1} x`, "no JSON": "x",
		"too many slices": `{"slices":100000}`, "too large": `{"slices":1}` + strings.Repeat(" ", maxPlan),
	} {
		dir := t.TempDir()
		check.OK(t, os.WriteFile(filepath.Join(dir, planFile), []byte(plan), 0o600))
		if _, _, err := openSpool(t.Context(), dir, scanPlan{Slices: 1}); err == nil || !strings.Contains(err.Error(), planFile) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDamagedSliceIsNamed(t *testing.T) {
	s := newScanTest(t)
	spool := newSpool(t, s.plan)
	if _, _, err := s.read(t.Context(), spool); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(spool.dir, sliceFile(3))
	content, err := os.ReadFile(path)
	check.OK(t, err)
	content[len(content)/2]++
	check.OK(t, os.WriteFile(path, content, 0o600))
	_, _, err = s.read(t.Context(), spool)
	if !errors.Is(err, learn.ErrTexts) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove this file") {
		t.Fatalf("error %v", err)
	}
	check.OK(t, os.Remove(path))
	words, _, err := s.read(t.Context(), spool)
	if diff := cmp.Diff(s.all(), words); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestRemovedSpoolLeavesOtherFiles(t *testing.T) {
	spool := newSpool(t, scanPlan{Slices: 1})
	other := filepath.Join(spool.dir, "letter.txt")
	for _, path := range []string{other, filepath.Join(spool.dir, ".slice-0000.texts.123")} {
		check.OK(t, os.WriteFile(path, nil, 0o600))
	}
	check.OK(t, spool.Remove())
	entries, err := os.ReadDir(spool.dir)
	check.That(t, err == nil && len(entries) == 1 && entries[0].Name() == "letter.txt", "%v are left, %v", entries, err)
}
