package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix/learn"
)

// A scanPlan says how the documents of an index are read. The spool stores it.
type scanPlan struct {
	Index   string                    `json:"index"`
	Fields  []string                  `json:"fields"`
	Query   string                    `json:"query,omitempty"`
	MaxDocs int                       `json:"max_docs,omitempty"`
	Terms   bool                      `json:"terms,omitempty"`
	Indices []documents.ConcreteIndex `json:"indices"` // concrete indices
	Docs    int64                     `json:"docs"`    // to read, at the start
	Share   float64                   `json:"share"`   // as in [documents.ScanOptions], like Slices
	Slices  int                       `json:"slices"`
}

// docsPerSlice is small, so that an interrupted scan reads little twice, but
// large enough that finding the documents of a slice costs less than reading
// them: the cluster goes through all ids for that.
const docsPerSlice, maxSlices = 25_000, 128

// newScanPlan plans a scan of count documents. At most maxDocs are wanted, if
// not 0.
func newScanPlan(scan documents.ScanOptions, indices []documents.ConcreteIndex, count int64, maxDocs int, terms bool) scanPlan {
	p := scanPlan{
		Index: scan.Index, Fields: scan.Fields, Query: string(scan.Query), MaxDocs: maxDocs, Terms: terms,
		Indices: indices, Docs: count,
	}
	if maxDocs > 0 && count > int64(maxDocs) {
		// The scan takes documents at random, so plan for four standard deviations
		// more than wanted.
		wanted := float64(maxDocs)
		if p.Share = (wanted + 4*math.Sqrt(wanted)) / float64(count); p.Share >= 1 {
			p.Share = 0 // all
		} else {
			p.Docs = int64(p.Share * float64(count))
		}
	}
	p.Slices = int(max(1, min((p.Docs+docsPerSlice-1)/docsPerSlice, maxSlices)))
	return p
}

func (p *scanPlan) slice(k int) documents.ScanOptions {
	o := documents.ScanOptions{Index: p.Index, Fields: p.Fields, Share: p.Share, Slices: p.Slices, Slice: k}
	if p.Query != "" {
		o.Query = []byte(p.Query)
	}
	return o
}

// sideBySide returns how many slices are read at once. Each has one scroll per
// shard open. A node allows 500 by default.
func (p *scanPlan) sideBySide() int {
	const most, open = 4, 400
	shards := 0
	for _, index := range p.Indices {
		shards += index.Shards
	}
	return max(1, min(most, open/max(shards, 1)))
}

// differences lists the settings that differ from those of an earlier plan.
func (p *scanPlan) differences(before *scanPlan) []string {
	var out []string
	compare := func(name string, now, then any) {
		if a, b := fmt.Sprint(now), fmt.Sprint(then); a != b {
			out = append(out, fmt.Sprintf("%s was %s, is %s", name, cmp.Or(b, "none"), cmp.Or(a, "none")))
		}
	}
	compare("index", p.Index, before.Index)
	compare("field", strings.Join(p.Fields, ","), strings.Join(before.Fields, ","))
	compare("query", p.Query, before.Query)
	compare("max-docs", p.MaxDocs, before.MaxDocs)
	compare("exact-analysis", p.Terms, before.Terms)
	if !slices.Equal(p.Indices, before.Indices) {
		out = append(out, "the index now stands for other indices, or was created again")
	}
	return out
}

// A spool is a folder with the slices of an index that have been read, so that
// an interrupted run can continue. It has the words of all documents, so only
// its owner may read it.
//
//	plan.json         what is read: a scanPlan
//	slice-0000.texts  the texts of a slice, as [learn.EncodeTexts] writes them
//
// Only one run may use it at a time. A nil spool stores nothing.
type spool struct{ dir string }

const (
	planFile = "plan.json"
	maxPlan  = 1 << 20 // bytes; enough for some thousand indices

	ownerFolder, ownerFile fs.FileMode = 0o700, 0o600
)

func checkSpool(dir string) error {
	for _, path := range []string{dir, filepath.Dir(dir)} { // the folder, or its parent, in which to create it
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil
		} else if err == nil || path != dir {
			return fmt.Errorf("--resume: %s is no folder", path)
		}
	}
	return nil
}

// openSpool opens or creates a folder for a plan. It returns the plan that the
// folder was begun with, if any.
func openSpool(ctx context.Context, dir string, plan scanPlan) (*spool, scanPlan, error) {
	s := &spool{dir}
	begun, err := s.readPlan(ctx)
	switch {
	case err == nil:
		if other := plan.differences(&begun); len(other) > 0 {
			return nil, plan, fmt.Errorf("--resume %s was begun with another scan (%s): choose another folder, or remove this one",
				dir, strings.Join(other, "; "))
		}
		return s, begun, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, plan, fmt.Errorf("--resume: %w", err)
	}
	if err := os.Mkdir(dir, ownerFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, plan, fmt.Errorf("--resume: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, plan, fmt.Errorf("--resume: %w", err)
	}
	for _, e := range entries {
		if !isSpooled(e.Name()) {
			return nil, plan, fmt.Errorf("--resume %s contains %s, which is not from a build: choose an empty or a new folder", dir, e.Name())
		}
	}
	err = s.write(ctx, planFile, func(w io.Writer) error {
		return json.MarshalWrite(w, plan, jsontext.WithIndent("  "))
	})
	return s, plan, err
}

func (s *spool) readPlan(ctx context.Context) (scanPlan, error) {
	return cli.Read(ctx, filepath.Join(s.dir, planFile), func(r io.Reader) (p scanPlan, err error) {
		limited := &io.LimitedReader{R: r, N: maxPlan}
		if err = json.UnmarshalRead(limited, &p, json.RejectUnknownMembers(true)); err == nil && limited.N == 0 {
			err = errors.New("too large")
		}
		if err == nil && (p.Slices < 1 || p.Slices > maxSlices) {
			err = fmt.Errorf("%d slices", p.Slices)
		}
		if err != nil {
			err = fmt.Errorf("not the plan of a scan: %w", err)
		}
		return p, err
	})
}

func sliceFile(k int) string { return fmt.Sprintf("slice-%04d.texts", k) }

// isSpooled reports whether a file of this name may belong to a spool, even
// half written.
func isSpooled(name string) bool {
	name = strings.TrimPrefix(name, ".")
	return strings.HasPrefix(name, planFile) || strings.HasPrefix(name, "slice-") && strings.Contains(name, ".texts")
}

func (s *spool) has(k int) bool {
	if s == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir, sliceFile(k)))
	return err == nil
}

func (s *spool) write(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := cli.Replace(ctx, filepath.Join(s.dir, name), ownerFile, write); err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	return nil
}

func (s *spool) load(ctx context.Context, k int) (*learn.Texts, error) {
	path := filepath.Join(s.dir, sliceFile(k))
	texts, err := cli.Read(ctx, path, learn.DecodeTexts)
	if errors.Is(err, learn.ErrTexts) {
		return nil, fmt.Errorf("%w: remove this file to read the slice again", err)
	}
	return texts, err
}

func (s *spool) finished(of int) int {
	n := 0
	for k := range of {
		if s.has(k) {
			n++
		}
	}
	return n
}

func (s *spool) explain(err error, of int) error {
	done := s.finished(of)
	if done == 0 || errors.Is(err, learn.ErrTexts) {
		return err
	}
	return fmt.Errorf("%w; %s has %d of %d slices; run the same command again for the others", err, s.dir, done, of)
}

// Remove removes the files of the spool, and the folder if it is then empty.
func (s *spool) Remove() error {
	if s == nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	var errs []error
	left := 0
	for _, e := range entries {
		if !isSpooled(e.Name()) {
			left++
		} else if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
			errs = append(errs, fmt.Errorf("--resume: %w", err))
		}
	}
	if left == 0 && len(errs) == 0 {
		errs = append(errs, os.Remove(s.dir))
	}
	return errors.Join(errs...)
}
