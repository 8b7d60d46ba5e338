package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/serve"
)

// The verdicts of a check.
const (
	verdictOK      = "ok"
	verdictWarning = "warning"
	verdictError   = "error"
)

type checkResult struct {
	Verdict string `json:"verdict"`
	About   string `json:"about"`
	Says    string `json:"says"`
	Next    string `json:"next,omitempty"` // what to do
}

type checkedField struct {
	Verdict string `json:"verdict"`
	serve.FieldReport

	Says string `json:"says,omitempty"` // why the verdict is not plainly ok
}

// A checkReport has the results of all checks. Left is how many fields were not
// checked.
type checkReport struct {
	Checks []checkResult  `json:"checks"`
	Fields []checkedField `json:"fields"`
	Left   int            `json:"fields_left_out,omitempty"`
}

var errFound = errors.New("the check failed: see the lines that say error")

// Err returns errFound if a check failed.
func (r *checkReport) Err() error {
	bad := slices.ContainsFunc(r.Checks, func(c checkResult) bool { return c.Verdict == verdictError }) ||
		slices.ContainsFunc(r.Fields, func(f checkedField) bool { return f.Verdict == verdictError })
	if bad {
		return errFound
	}
	return nil
}

func (r *checkReport) add(verdict, about, says string) {
	r.Checks = append(r.Checks, checkResult{verdict, about, says, ""})
}

func (r *checkReport) fail(about string, err error) {
	r.Checks = append(r.Checks, checkResult{verdictError, about, err.Error(), cli.Next(err)})
}

// Print prints the report in two tables.
func (r *checkReport) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range r.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Verdict, cli.Visible(c.About), cli.Visible(c.Says))
		if c.Next != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", c.Next)
		}
	}
	if len(r.Fields) > 0 {
		fmt.Fprintln(w, "\n\tINDEX\tFIELD\tMATRIX\tEFFORT\tFORM\tADDED\tKNOWN TERMS\t")
	}
	for i := range r.Fields {
		f := &r.Fields[i]
		form, known := f.Form, ""
		if f.Phase == "rescore" {
			form += " in a rescore"
		}
		if f.Frequent > 0 {
			known = fmt.Sprintf("%d of %d", f.Known, f.Frequent)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", f.Verdict, cli.Visible(f.Index), cli.Visible(f.Field),
			cli.Visible(f.Matrix), f.Effort, form, f.Added, known, f.Says)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Left > 0 {
		fmt.Fprintf(out, "and %d more fields: name their indices with --index\n", r.Left)
	}
	return nil
}
