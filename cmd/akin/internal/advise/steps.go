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
	// linearName is the multi-field that scores linearly, where there is none of
	// that name yet, and linearSimilarity its similarity.
	linearName       = "akin"
	linearSimilarity = "akin_linear"
	similarityPrefix = "index.similarity." + linearSimilarity + "."
	// newWeights is what the commands call the file of new weights, and someFile
	// stands for that of weights that norms are by already.
	newWeights = "weights.akin"
	someFile   = "FILE"
)

// A step makes up for something that is missing: requests to send and commands
// to run.
type step struct {
	needed   bool
	comment  string
	requests []request
	commands []string
}

// A request is one to send to the cluster. body is nil for none.
type request struct {
	method, api string
	body        object
}

// steps returns what to do about an index, in this order.
func (a *adviser) steps(i *index) []step {
	settings, properties, n := a.settings(i), a.properties(i), &i.counts
	unnormed := n.Docs == 0 || n.Bare > 0 || n.Weighted < n.Docs || len(n.IDs) > 1
	expression, weights := a.Index, a.Weights
	if a.apart {
		expression = i.Index
	}
	if weights == "" && unnormed && len(n.IDs) > 0 {
		weights = someFile
	}
	normed, backfills := "The norms.", []string{}
	if i.target != i.Source && (!i.there || n.Unfilled > 0) {
		normed += " The backfill updates each document that lacks its own, which fills " + i.target + " too."
	}
	again := a.command(expression, "index advise")
	if weights != "" {
		again = a.command(expression, "index advise", "--weights", weights)
	}
	switch {
	case weights == "":
		if weights = newWeights; a.apart {
			weights = i.Index + "-" + newWeights
		}
		backfills = append(backfills, a.command(expression, "norms snapshot", "--out", weights))
	case a.Weights == "":
		normed += fmt.Sprintf("\nSome are there, by the weights %s. New weights would make one kind more: run this again with\n"+
			"--weights %s of the weights to keep. A backfill with that file goes on, and with --dry-run it\n"+
			"prints the file's id. Where no such file is left, norms snapshot makes new weights, for all.", i.inUse(), someFile)
	}
	backfills = append(backfills, a.command(expression, "norms backfill", "--weights", weights))
	return []step{
		{
			i.linear.Field == "" && !i.Linear(linearSimilarity),
			"The similarity. For this the index must be closed a moment, and no search finds it meanwhile. One that\n" +
				"cannot be closed, as on some hosted clusters and in data streams, has to be created again: see --new.",
			[]request{{"POST", "/_close", nil}, {"PUT", "/_settings", settings}, {"POST", "/_open", nil}},
			nil,
		},
		{len(properties) > 0, "The fields.", []request{{"PUT", "/_mapping", object{"properties": properties}}}, nil},
		{unnormed, normed, nil, backfills},
		{i.skipped > 0, fmt.Sprintf("The documents that lack %s and have their norms already, %d.", i.target, i.skipped), []request{{
			"POST", "/_update_by_query?conflicts=proceed&refresh=true&wait_for_completion=false",
			object{"query": object{"bool": object{"filter": exists(i.Field), "must_not": exists(i.target)}}},
		}}, nil},
		{true, "Then look again.", nil, []string{again}},
	}
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

// properties returns what to add to the mapping: what of it is there needs not
// to be sent again.
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

// writeSteps writes what makes the index what is needed, where that can be
// done, as a console takes it: requests, and comments with commands.
func (a *adviser) writeSteps(w *strings.Builder, i *index) {
	comment := func(text string) {
		for line := range strings.SplitSeq(text, "\n") {
			w.WriteString("# " + terminal.Visible(line) + "\n")
		}
	}
	switch {
	case i.Field == "" || i.uncountable != nil: // nor would another index with the same text do
	case i.Norm.Problem != "" || i.Weights.Problem != "":
		comment("This index cannot be made ready. Where another would do, the body that creates one like it is printed by\n" +
			a.command(i.Index, "index advise", "--new"))
		w.WriteString("\n")
	default:
		for _, s := range a.steps(i) {
			if !s.needed {
				continue
			}
			comment(strings.Join(append([]string{s.comment}, s.commands...), "\n"))
			for _, r := range s.requests {
				w.WriteString(r.method + " /" + url.PathEscape(i.Index) + r.api + "\n")
				if r.body != nil {
					w.WriteString(indented(r.body))
				}
				w.WriteString("\n")
			}
			if s.requests == nil {
				w.WriteString("\n")
			}
		}
	}
}
