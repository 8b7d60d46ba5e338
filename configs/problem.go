package configs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Error is one thing wrong with a configuration. The errors of [Load] and
// [Parse] are one or more of them, joined by [errors.Join], so that the error
// prints one problem a line.
type Error struct {
	File string // the configuration file
	Line int    // from 1; 0 is none in particular
	Key  string // the path, such as "matrices[0].fields[1]", or the environment variable; "" is the whole file
	Err  error  // what is wrong and what is allowed, without secrets
}

// Error returns "file:line: key: what is wrong", without the parts that are
// not known.
func (p *Error) Error() string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Key != "" {
		at += ": " + p.Key
	}
	return at + ": " + p.Err.Error()
}

// Unwrap returns p.Err.
func (p *Error) Unwrap() error { return p.Err }

// problems collects what is wrong with one file, and the lines of its keys.
type problems struct {
	file  string
	lines map[string]int  // The line of each key path that the file has.
	bad   map[string]bool // The key paths in list.
	list  []*Error
}

// add reports a problem of key at the key's line, or that of the nearest key
// around it that the file has. A key counts once: what follows from its first
// problem, or from one of a key around it, is not reported.
func (p *problems) add(key, format string, args ...any) {
	if !p.has(key) {
		p.addAt(p.line(key), key, format, args...)
	}
}

// addAt reports a problem of key at a line of its own.
func (p *problems) addAt(line int, key, format string, args ...any) {
	p.bad[key] = true
	p.list = append(p.list, &Error{File: p.file, Line: line, Key: key, Err: fmt.Errorf(format, args...)})
}

// has reports whether key or a key around it has a problem already.
func (p *problems) has(key string) bool {
	for key != "" && !p.bad[key] {
		key = parent(key)
	}
	return key != ""
}

// line returns the line of key or of the nearest key around it, 0 where the
// file has none of them.
func (p *problems) line(key string) int {
	for key != "" && p.lines[key] == 0 {
		key = parent(key)
	}
	return p.lines[key]
}

// err joins the problems in the order of their lines, nil where there are none.
func (p *problems) err() error {
	slices.SortStableFunc(p.list, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(p.list))
	for i, q := range p.list {
		errs[i] = q
	}
	return errors.Join(errs...)
}

// parent returns the path of the key around key, "" for one at the top.
func parent(key string) string {
	return key[:max(0, strings.LastIndexAny(key, ".["))]
}
