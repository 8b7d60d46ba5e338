package advise

import (
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/norms"
)

const (
	linearName       = "akin"        // the multi-field that scores linearly
	linearSimilarity = "akin_linear" // its similarity
	similarityPrefix = "index.similarity." + linearSimilarity + "."
	newWeights       = "weights.akin" // the file of new weights
	someFile         = "FILE"         // that of weights that norms are by already
)

// writeSteps writes what makes the index ready, where that can be done, as a
// console takes it: requests, and comments with commands.
func (a *adviser) writeSteps(w *strings.Builder, i *index) {
	comment := func(lines ...string) { writeComment(w, lines...) }
	send := func(method, api string, body object) {
		w.WriteString(method + " /" + url.PathEscape(i.Index) + api + "\n")
		if body != nil {
			w.WriteString(indented(body))
		}
		w.WriteString("\n")
	}
	switch {
	case i.Field == "" || i.uncountable != nil:
		return // nor would another index with the same text do
	case i.Norm.Problem != "" || i.Weights.Problem != "":
		comment("This index cannot be made ready. Where another would do, the body that creates one like it is printed by",
			a.command(i.Index, "index advise", "--new")+"\n")
		return
	}
	if i.linear.Field == "" && !i.Linear(linearSimilarity) {
		comment("The similarity. For this the index must be closed a moment, and no search finds it meanwhile. One that",
			"cannot be closed, as on some hosted clusters and in data streams, has to be created again: see --new.")
		send("POST", "/_close", nil)
		send("PUT", "/_settings", a.settings(i))
		send("POST", "/_open", nil)
	}
	if properties := a.properties(i); len(properties) > 0 {
		comment("The fields.")
		send("PUT", "/_mapping", object{"properties": properties})
	}
	norms, again := a.normSteps(i)
	if norms != nil {
		comment(norms...)
		w.WriteString("\n")
	}
	if i.skipped > 0 {
		comment(fmt.Sprintf("The documents that lack %s and have their norms already, %d.", i.target, i.skipped))
		send("POST", "/_update_by_query?conflicts=proceed&refresh=true&wait_for_completion=false",
			object{"query": object{"bool": object{"filter": exists(i.Field), "must_not": exists(i.target)}}})
	}
	comment("Then look again.", again)
	w.WriteString("\n")
}

// writeComment writes lines as a console leaves them out.
func writeComment(w *strings.Builder, lines ...string) {
	for line := range strings.SplitSeq(strings.Join(lines, "\n"), "\n") {
		w.WriteString("# " + terminal.Visible(line) + "\n")
	}
}

// segmentsPath is where "akin segments backfill" puts segments by default.
const segmentsPath = "segments"

// segmentSteps returns what gives long texts their segments, "" where they have
// what that needs, or are short.
func (a *adviser) segmentSteps(i *index) string {
	if i.lacking == nil {
		return ""
	}
	w := &strings.Builder{}
	writeComment(w, "Segments, for the mode bm25 and without the steps above: the texts are long, and this mapping has room for their passages.")
	w.WriteString("PUT /" + url.PathEscape(i.Index) + "/_mapping\n" + indented(decode(i.lacking)) + "\n")
	writeComment(w, "Then cut the documents that are there, and print an ingest pipeline for new ones.",
		a.command(i.Index, "segments backfill"), a.command(i.Index, "segments pipeline"))
	w.WriteString("\n")
	return w.String()
}

// normSteps returns the commands that make the norms, with a comment before
// them, nil where all are there, and the command that looks again.
func (a *adviser) normSteps(i *index) (lines []string, again string) {
	n, expression, weights := &i.counts, a.Index, a.Weights
	needed := n.Docs == 0 || n.Bare > 0 || n.Weighted < n.Docs || len(n.IDs) > 1
	if a.apart {
		expression = i.Index
	}
	if weights == "" && needed && len(n.IDs) > 0 {
		weights = someFile
	}
	again = a.command(expression, "index advise")
	if weights != "" {
		again = a.command(expression, "index advise", "--weights", weights)
	}
	if !needed {
		return nil, again
	}
	lines = []string{"The norms."}
	if i.target != i.Source && (!i.there || n.Unfilled > 0) {
		lines[0] += " The backfill updates each document that lacks its own, which fills " + i.target + " too."
	}
	switch {
	case weights == "":
		if weights = newWeights; a.apart {
			weights = i.Index + "-" + newWeights
		}
		lines = append(lines, a.command(expression, "norms snapshot", "--out", weights))
	case a.Weights == "":
		lines = append(lines, fmt.Sprintf("Some are there, by the weights %s. New weights would make one kind more: run this again with", i.inUse()),
			"--weights "+someFile+" of the weights to keep. A backfill with that file goes on, and with --dry-run it",
			"prints the file's id. Where no such file is left, norms snapshot makes new weights, for all.")
	}
	return append(lines, a.command(expression, "norms backfill", "--weights", weights)), again
}

// settings returns those of a similarity that scores linearly. What another
// definition of it leaves over is set to null.
func (a *adviser) settings(i *index) object {
	settings := object{}
	for name := range i.Settings {
		if strings.HasPrefix(name, similarityPrefix) {
			settings[name] = nil
		}
	}
	for name, value := range a.similarity {
		settings[similarityPrefix+name] = value
	}
	return settings
}

// properties returns what is missing in the mapping.
func (a *adviser) properties(i *index) object {
	properties := object{}
	if !i.there {
		keys, own := i.property()
		delete(own, "fields")
		i.addLinear(own, strings.TrimPrefix(i.target, i.Source+"."))
		maps.Copy(at(properties, keys), own)
	}
	if i.Norm.Type == "" {
		a.addStored(properties, i, norms.Object)
	}
	if i.Weights.Type == "" {
		a.addStored(properties, i, norms.WeightsObject)
	}
	return properties
}
