// Package advise checks what the mode hard needs of an index (checks.go), says
// what to send to the cluster and which commands to run where something is
// missing (steps.go), or prints the body of a new index (create.go).
package advise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/norms"
)

// A Request says what is asked for: the flags of "index advise".
type Request struct {
	Cluster, Index, Field string
	Weights, WeightsID    string // the file of the weights that the norms are to be by, "" for any, and its id
	New                   bool   // print the body of a new index
	Analyzer              string // of the field in that
	Scripted              string // print a similarity by a script: "yes", "no", or "auto" for what the cluster takes
	JSON                  bool   // print the checks as JSON
}

// A report is what was found of an index.
type report struct {
	Index  string  `json:"index"`
	Ready  bool    `json:"ready"`
	Checks []check `json:"checks"`
	Steps  string  `json:"steps,omitempty"` // what to send and to run, as it is printed
	// Segments is what to send and to run for those of long texts.
	Segments string `json:"segments,omitempty"`
}

// An adviser answers one request.
type adviser struct {
	Request

	client     *esclient.Client
	docs       documents.API
	similarity map[string]string // the settings of one that scores linearly, by the ends of their names
	alias      string            // the name that the field was asked for by, "" where that is its own
	apart      bool              // the indices have to be made ready one by one: there are no weights for all
}

// Run prints on out what is found and what to do, or the body of a new index,
// and then the rest on notes. Its error says that something is missing or
// unknown.
func Run(ctx context.Context, client *esclient.Client, r Request, out, notes io.Writer) error {
	a := &adviser{Request: r, client: client, docs: documents.API{Client: client}}
	found, err := a.inspect(ctx)
	if err != nil {
		return err
	}
	own, err := ownName(found, a.Field)
	if err != nil {
		return err
	}
	if own != a.Field {
		a.alias, a.Field = a.Field, own
		if found, err = a.inspect(ctx); err != nil {
			return err
		}
	}
	if err := a.chooseSimilarity(ctx, notes); err != nil {
		return err
	}
	if a.New {
		return a.create(ctx, found, out, notes)
	}
	return a.check(ctx, found, out)
}

// inspect returns what the indices have; nothing where there is none and a new
// one is asked for.
func (a *adviser) inspect(ctx context.Context) ([]mapping.Inspection, error) {
	found, err := a.client.Inspect(ctx, a.Index, a.Field, norms.NormPath(a.Field), norms.WeightsPath(a.Field))
	if refused, ok := errors.AsType[*answers.Error](err); !ok || refused.Status != http.StatusNotFound {
		return found, err
	}
	if a.New {
		return nil, nil
	}
	return nil, fmt.Errorf("%w; the body that creates a new index is printed by\n  %s", err, a.command(a.Index, "index advise", "--new"))
}

// ownName returns the field's own name where it was asked for by an alias.
func ownName(found []mapping.Inspection, field string) (string, error) {
	var names []string
	for i := range found {
		if name := found[i].Field; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return field, nil
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("%q stands for the fields %s: name one of these", field, strings.Join(names, " and "))
}

func (a *adviser) chooseSimilarity(ctx context.Context, notes io.Writer) error {
	scripted := a.Scripted == "yes"
	if a.Scripted == "auto" {
		var err error
		scripted, err = a.client.SimilarityScripts(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(notes, "The cluster does not tell whether it takes scripts in similarities (%v).\n"+
				"BM25 with k1 10000 works everywhere; --scripted yes prints the scripted form, which is exact.\n\n", err)
		}
	}
	a.similarity = map[string]string{"type": "BM25", "k1": "10000", "b": "0"}
	if scripted {
		a.similarity = map[string]string{"type": "scripted", "script.source": mapping.LinearScript}
	}
	return nil
}

// check prints a report on each index that searches of the field go to.
func (a *adviser) check(ctx context.Context, found []mapping.Inspection, out io.Writer) error {
	reports, err := a.reports(ctx, found)
	if err != nil {
		return err
	}
	if err := terminal.Print(out, a.JSON, reports, func(out io.Writer) error { return a.print(out, reports) }); err != nil {
		return err
	}
	var unready []string
	for _, r := range reports {
		if !r.Ready {
			unready = append(unready, r.Index)
		}
	}
	switch {
	case len(reports) == 0:
		return fmt.Errorf("no index of %q maps the field %q", a.Index, a.Field)
	case unready != nil:
		return fmt.Errorf("mode hard cannot rank by %s in %s yet", a.Field, strings.Join(unready, ", "))
	}
	return nil
}

// reports looks at each index that searches of the field go to.
func (a *adviser) reports(ctx context.Context, found []mapping.Inspection) ([]report, error) {
	if len(found) > 1 {
		_, err := a.docs.Countable(ctx, a.Index, a.Field)
		if a.apart = err != nil; ctx.Err() != nil { // for whatever reason: each index is looked at by itself
			return nil, ctx.Err()
		}
	}
	reports := []report{}
	var first, linear *index // that maps the field, and that has a linear one
	for _, inspection := range found {
		if inspection.Field == "" && !inspection.Closed && inspection.Problem == "" {
			continue // searches of the field do not go there
		}
		i, err := a.look(ctx, inspection)
		if err != nil {
			return nil, err
		}
		switch {
		case i.Field == "":
		case first == nil:
			first = i
		case !i.Alike(&first.Inspection):
			i.unlike = first.Index
		case i.linear.Field != "" && linear != nil && !i.sameLinear(linear):
			i.otherLinear = linear.Index
		}
		if linear == nil && i.linear.Field != "" {
			linear = i
		}
		reports = append(reports, a.report(i))
	}
	return reports, nil
}

// report returns what was found of an index and what to do about it.
func (a *adviser) report(i *index) report {
	r := report{Index: i.Index, Ready: true, Checks: []check{}, Segments: a.segmentSteps(i)}
	for _, c := range append(a.mappingChecks(i), a.documentChecks(i)...) {
		if c.applies {
			r.Checks = append(r.Checks, c)
			r.Ready = r.Ready && c.Verdict != missing && c.Verdict != wrong
		}
	}
	if !r.Ready {
		s := &strings.Builder{}
		a.writeSteps(s, i)
		r.Steps = s.String()
	}
	return r
}

// print prints each report as a table with its steps.
func (a *adviser) print(out io.Writer, reports []report) error {
	for _, r := range reports {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "index %s\n", r.Index)
		for _, c := range r.Checks {
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Verdict, c.About, terminal.Visible(c.Says))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		steps := r.Steps
		if r.Ready {
			steps = fmt.Sprintf("Mode hard can rank by %s.\n\n", a.Field)
		}
		if _, err := io.WriteString(out, "\n"+steps+r.Segments); err != nil {
			return err
		}
	}
	return nil
}

// command returns a command line of akin for an index and the field.
func (a *adviser) command(index, name string, args ...string) string {
	all := append([]string{"--cluster", a.Cluster, "--index", index, "--field", a.Field}, args...)
	return "akin " + name + " " + terminal.CommandLine(all...)
}
