package advise

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/norms"
)

// create prints the body that creates an index: one like the one that was
// found, else one that has only the field. What to do with it goes to notes.
func (a *adviser) create(ctx context.Context, found []mapping.Inspection, out, notes io.Writer) error {
	name, source := a.Index, ""
	like := &index{Inspection: mapping.Inspection{Field: a.Field, Source: a.Field, Analyzer: a.Analyzer}}
	if len(found) > 0 {
		if err := a.checkLike(ctx, found); err != nil {
			return err
		}
		like.Inspection, source = found[0], string(encode(found[0].Index))
	}
	if source != "" || strings.ContainsAny(name, "*,") {
		name = "NAME" // the one that is there is in use
	}
	s := &strings.Builder{}
	if a.alias != "" {
		fmt.Fprintf(s, "%s is an alias of %s: searches by that name are ranked in mode bm25.\n", terminal.Visible(a.alias), terminal.Visible(a.Field))
	}
	fmt.Fprintf(s, "Create the index with the body on the standard output:\n  PUT /%s\n", url.PathEscape(name))
	if source != "" {
		fmt.Fprintf(s, "and copy the documents into it:\n  POST /_reindex {\"source\": {\"index\": %s}, \"dest\": {\"index\": %q}}\n", source, name)
	}
	fmt.Fprintf(s, "Where nothing but mode hard searches %s, the field itself may have the similarity in place of a multi-field.\n"+
		"When the documents are in it:\n  %s\n  %s\n  %s\n\n", terminal.Visible(a.Field),
		a.command(name, "norms snapshot", "--out", newWeights),
		a.command(name, "norms backfill", "--weights", newWeights),
		a.command(name, "index advise", "--weights", newWeights))
	if _, err := io.WriteString(notes, s.String()); err != nil {
		return err
	}
	_, err := io.WriteString(out, indented(a.body(like)))
	return err
}

// checkLike checks that an index like the one that was found would be of use.
func (a *adviser) checkLike(ctx context.Context, found []mapping.Inspection) error {
	switch like := &found[0]; {
	case len(found) > 1:
		return terminal.Usage(fmt.Errorf("--new: %q is %d indices, name one", a.Index, len(found)))
	case like.Closed:
		return fmt.Errorf("--new: index %q is closed", like.Index)
	case like.Problem != "":
		return fmt.Errorf("--new: field %q: index %q %s", a.Field, like.Index, like.Problem)
	case like.Field == "":
		return fmt.Errorf("--new: index %q does not map the field %q", like.Index, a.Field)
	case a.Analyzer != "":
		return terminal.Usage(fmt.Errorf("--analyzer: index %q is there, and has an analyzer for the field", like.Index))
	}
	if _, err := a.docs.Countable(ctx, found[0].Index, a.Field); err != nil {
		return fmt.Errorf("--new: %w", err) // nor could it be of another index like this one
	}
	return nil
}

// body returns the settings and mappings of the new index.
func (a *adviser) body(like *index) object {
	settings := object{}
	for name, value := range like.Settings {
		if slices.ContainsFunc(keptSettings(), func(start string) bool { return strings.HasPrefix(name, start) }) &&
			!strings.HasPrefix(name, similarityPrefix) {
			settings[name] = value
		}
	}
	for name, value := range a.similarity {
		settings[similarityPrefix+name] = value
	}
	mappings := decode(like.Mappings)
	properties := member(mappings, "properties")
	keys, _ := like.property()
	if keys == nil { // of an index that is not there
		keys = strings.Split(like.Source, ".")
		property := at(properties, keys)
		if property["type"] = "text"; like.Analyzer != "" {
			property["analyzer"] = like.Analyzer
		}
	}
	like.addLinear(at(properties, keys), like.multiName())
	for _, name := range []string{norms.Object, norms.WeightsObject} {
		if own, _ := properties[name].(object); own["type"] != nil && own["type"] != "object" {
			delete(properties, name) // which holds no number of a document, such as a nested one
		}
		a.addStored(properties, like, name)
	}
	return object{"settings": settings, "mappings": mappings}
}

// keptSettings are the starts of the names of settings that an index like
// another one has to have for the same documents and searches.
func keptSettings() []string {
	return []string{
		"index.analysis.", "index.similarity.", "index.mapping.", "index.sort.", "index.query.", "index.number_of_shards",
		"index.number_of_replicas", "index.max_ngram_diff", "index.max_shingle_diff", "index.default_pipeline", "index.final_pipeline",
	}
}
