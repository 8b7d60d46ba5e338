package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/norms"
)

const (
	// linearName is the multi-field that scores linearly, where there is none of
	// that name yet, and linearSimilarity its similarity.
	linearName       = "akin"
	linearSimilarity = "akin_linear"
	similarityPrefix = "index.similarity." + linearSimilarity + "."
)

// object is a JSON object.
type object = map[string]any

// printJSON prints a value as it can be sent.
func printJSON(out io.Writer, v any) error {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// A steps writer prints what to send and to run, as a console takes it.
type stepsWriter struct {
	out io.Writer
	err error
}

func (w *stepsWriter) comment(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		w.print("# " + visible(line) + "\n")
	}
}

func (w *stepsWriter) print(text string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.out, text)
	}
}

// send prints a request. body is nil for none.
func (w *stepsWriter) send(method, path string, body any) {
	w.print(method + " " + path + "\n")
	if body != nil && w.err == nil {
		w.err = printJSON(w.out, body)
	}
	w.print("\n")
}

// printSteps prints what makes the index what is needed.
func (a *adviser) printSteps(out io.Writer, c *indexCheck) error {
	w := &stepsWriter{out: out}
	w.print("\n")
	path := "/" + url.PathEscape(c.Index)
	switch {
	case c.anew:
		w.comment("This index cannot be made ready. Where another would do, the body that creates one like it is printed by\n%s",
			a.command(c.Index, "index advise", "--new"))
		w.print("\n")
		return w.err
	case c.hopeless:
		return w.err
	}
	if settings := a.settings(c.Inspection, c.linear == nil); settings != nil {
		w.comment("The similarity. For this the index must be closed a moment, and no search finds it meanwhile. One that\n" +
			"cannot be closed, as on some hosted clusters and in data streams, has to be made anew: see --new.")
		w.send("POST", path+"/_close", nil)
		w.send("PUT", path+"/_settings", settings)
		w.send("POST", path+"/_open", nil)
	}
	if properties := a.properties(c); len(properties) > 0 {
		w.comment("The fields.")
		w.send("PUT", path+"/_mapping", object{"properties": properties})
	}
	a.fill(w, c, path)
	return w.err
}

// fill prints how the documents get what they lack.
func (a *adviser) fill(w *stepsWriter, c *indexCheck, path string) {
	n, index, weights := &c.counts, a.flags.index, a.flags.weights
	if a.apart {
		index = c.Index
	}
	if n.Docs == 0 || n.Bare > 0 || n.Weighted < n.Docs || len(n.IDs) > 1 {
		if weights == "" && len(n.IDs) > 0 {
			weights = keptWeights
		}
		a.fillNorms(w, c, index, weights)
	}
	if c.skipped > 0 {
		w.comment("The documents that lack %s and have their norms already, %d.", c.target, c.skipped)
		w.send("POST", path+"/_update_by_query?conflicts=proceed&refresh=true&wait_for_completion=false",
			object{"query": object{"bool": object{"filter": exists(c.Field), "must_not": exists(c.target)}}})
	}
	w.comment("Then look again.")
	args := []string{}
	if weights != "" {
		args = append(args, "--weights", weights)
	}
	w.comment("%s", a.command(index, "index advise", args...))
	w.print("\n")
}

// fillNorms prints how the documents get the norms that they lack, by new
// weights where none are named.
func (a *adviser) fillNorms(w *stepsWriter, c *indexCheck, index, weights string) {
	empty := "" // the field that documents lack text in
	if c.target != c.Source && (!c.there || c.counts.Unfilled > 0) {
		empty = c.target + " too."
	}
	w.comment("The norms.%s", prefixed(" The backfill updates each document that lacks its own, which fills ", empty))
	switch {
	case weights == "":
		if weights = weightsName; a.apart {
			weights = c.Index + "-" + weightsName
		}
		w.comment("%s", a.command(index, "norms snapshot", "--out", weights))
	case a.flags.weights == "":
		w.comment("Some are there, by the weights %s. New weights would make one kind more: run this again with\n"+
			"--weights %s of the weights to keep. A backfill with that file goes on, and with --dry-run it\n"+
			"prints the file's id. Where no such file is left, norms snapshot makes new weights, for all.", c.kinds(), keptWeights)
	}
	w.comment("%s", a.command(index, "norms backfill", "--weights", weights))
	w.print("\n")
}

const (
	// weightsName is what the commands call the file of new weights.
	weightsName = "weights.akin"
	// keptWeights stands for the file of weights that norms are by already.
	keptWeights = "FILE"
)

// command returns a command line of akin for an index and the field.
func (a *adviser) command(index, name string, args ...string) string {
	all := append([]string{"akin", name, "--cluster", a.flags.cluster, "--index", index, "--field", a.flags.field}, args...)
	for k, arg := range all {
		if strings.ContainsAny(arg, " *?[]<>|&;()$`\"\\'{}~#!") && k > 1 {
			all[k] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(all, " ")
}

// chooseTarget names the field that is going to score linearly: the one that
// does, else one that would with another similarity of ours, else a new
// multi-field.
func (c *indexCheck) chooseTarget() {
	c.there = true
	if c.linear != nil {
		c.target = c.linear.Field
		return
	}
	for _, l := range c.Candidates {
		if l.Retunable && l.Similarity == linearSimilarity {
			c.target = l.Field
			return
		}
	}
	name := multiName(c.Inspection)
	for n := 2; slices.Contains(c.MultiFields, name); n++ {
		name = multiName(c.Inspection) + "_" + strconv.Itoa(n)
	}
	c.target, c.there = c.Source+"."+name, false
}

// multiName returns the name for the multi-field of a field, which may be a
// multi-field itself: these have none of their own.
func multiName(i *esclient.Inspection) string {
	if own, ok := strings.CutPrefix(i.Field, i.Source+"."); ok {
		return own + "_" + linearName
	}
	return linearName
}

// settings returns the settings of the similarity by their full names, nil
// where they are there or are not needed. What another definition leaves over
// is set to null.
func (a *adviser) settings(i *esclient.Inspection, needed bool) object {
	if !needed || i.Linear(linearSimilarity) {
		return nil
	}
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

// properties returns what to add to the mapping of an index: what of it is
// there needs not to be sent again.
func (a *adviser) properties(c *indexCheck) map[string]jsontext.Value {
	p := &propertyTree{root: map[string]jsontext.Value{}, dotted: c.Dotted}
	if !c.there {
		p.set(c.Keys, func(map[string]jsontext.Value) map[string]jsontext.Value { return members(c.Property) })
		p.addLinear(c.Keys, strings.TrimPrefix(c.target, c.Source+"."), c.Analyzer, c.SearchAnalyzer)
	}
	if c.Norm.Type == "" {
		p.addStored(norms.Object, a.flags.field, normProperty)
	}
	if c.Weights.Type == "" {
		p.addStored(norms.WeightsObject, a.flags.field, weightsProperty)
	}
	return p.root
}

// The mappings of the fields for a norm and for the id of its weights.
const (
	normProperty    = `{"type":"float","index":false}`
	weightsProperty = `{"type":"keyword"}`
)

// A propertyTree is a mapping's properties. dotted says that it has no objects.
type propertyTree struct {
	root   map[string]jsontext.Value
	dotted bool
}

// members returns the members of an object, none for what is no object.
func members(raw jsontext.Value) map[string]jsontext.Value {
	m := map[string]jsontext.Value{}
	if len(raw) > 0 && json.Unmarshal(raw, &m, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return map[string]jsontext.Value{}
	}
	return m
}

// raw returns the JSON of what was read as JSON.
func raw(v any) jsontext.Value {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return jsontext.Value("null") // there is nothing in it that has no JSON
	}
	return text
}

// set changes the property that keys lead to; objects on the way are made where
// they are missing.
func (p *propertyTree) set(keys []string, change func(map[string]jsontext.Value) map[string]jsontext.Value) {
	p.root = setProperty(p.root, keys, change)
}

func setProperty(
	properties map[string]jsontext.Value, keys []string, change func(map[string]jsontext.Value) map[string]jsontext.Value,
) map[string]jsontext.Value {
	property := members(properties[keys[0]])
	if len(keys) == 1 {
		property = change(property)
	} else {
		property["properties"] = raw(setProperty(members(property["properties"]), keys[1:], change))
	}
	properties[keys[0]] = raw(property)
	return properties
}

// addLinear adds the multi-field that scores linearly.
func (p *propertyTree) addLinear(keys []string, name, analyzer, searchAnalyzer string) {
	multi := object{"type": "text", "similarity": linearSimilarity, "norms": false, "index_options": "freqs"}
	if analyzer != "" {
		multi["analyzer"] = analyzer
	}
	if searchAnalyzer != "" {
		multi["search_analyzer"] = searchAnalyzer
	}
	p.set(keys, func(property map[string]jsontext.Value) map[string]jsontext.Value {
		fields := members(property["fields"])
		fields[name] = raw(multi)
		property["fields"] = raw(fields)
		return property
	})
}

// addStored adds the member for a field to one of the two objects.
func (p *propertyTree) addStored(objectName, field, property string) {
	keys := []string{objectName, norms.Name(field)}
	if p.dotted {
		keys = []string{objectName + "." + norms.Name(field)}
	}
	p.set(keys, func(map[string]jsontext.Value) map[string]jsontext.Value { return members(jsontext.Value(property)) })
}

// keptSettings are the starts of the names of settings that an index like
// another one has to have for the same documents and searches.
func keptSettings() []string {
	return []string{
		"index.analysis.", "index.similarity.", "index.mapping.", "index.sort.", "index.query.", "index.number_of_shards",
		"index.number_of_replicas", "index.max_ngram_diff", "index.max_shingle_diff", "index.default_pipeline", "index.final_pipeline",
	}
}

// printNew prints the body that creates an index: one like the one that was
// found, else one that has the field alone.
func (a *adviser) printNew(ctx context.Context, out io.Writer, found []esclient.Inspection) error {
	if err := a.checkLike(ctx, found); err != nil {
		return err
	}
	name := a.flags.index
	if len(found) > 0 || strings.ContainsAny(name, "*,") {
		name = "NAME" // the one that is there is in use
	}
	w := &stepsWriter{out: a.notes}
	if a.alias != "" {
		w.print(visible(a.alias) + " is an alias of " + visible(a.flags.field) + ": searches by that name are ranked in mode bm25.\n")
	}
	w.print("Create the index with the body on the standard output:\n  PUT /" + url.PathEscape(name) + "\n")
	if len(found) > 0 {
		w.print("and copy the documents into it:\n  POST /_reindex {\"source\": {\"index\": " + string(raw(found[0].Index)) +
			"}, \"dest\": {\"index\": \"" + name + "\"}}\n")
	}
	w.print("Where nothing but mode hard searches " + visible(a.flags.field) + ", the field itself may have the similarity in place of a multi-field.\n" +
		"When the documents are in it:\n")
	for _, command := range []string{
		a.command(name, "norms snapshot", "--out", weightsName),
		a.command(name, "norms backfill", "--weights", weightsName),
		a.command(name, "index advise", "--weights", weightsName),
	} {
		w.print("  " + command + "\n")
	}
	w.print("\n")
	return errors.Join(w.err, printJSON(out, a.newBody(found)))
}

// checkLike checks that an index like the one that was found, if any, would be
// of use.
func (a *adviser) checkLike(ctx context.Context, found []esclient.Inspection) error {
	if len(found) == 0 {
		return nil
	}
	switch like := &found[0]; {
	case len(found) > 1:
		return usageError{fmt.Errorf("--new: %q is %d indices, name one", a.flags.index, len(found))}
	case like.Closed:
		return fmt.Errorf("--new: index %q is closed", like.Index)
	case like.Problem != "":
		return fmt.Errorf("--new: field %q: index %q %s", a.flags.field, like.Index, like.Problem)
	case like.Field == "":
		return fmt.Errorf("--new: index %q does not map the field %q", like.Index, a.flags.field)
	case a.flags.analyzer != "":
		return usageError{fmt.Errorf("--analyzer: index %q is there, and has an analyzer for the field", like.Index)}
	}
	if _, err := a.client.Countable(ctx, found[0].Index, a.flags.field); err != nil {
		return fmt.Errorf("--new: %w", err) // nor could it be of another index like this one
	}
	return nil
}

func (a *adviser) newBody(found []esclient.Inspection) object {
	settings := object{}
	var like esclient.Inspection
	if len(found) > 0 {
		like = found[0]
	} else {
		like.Field, like.Source = a.flags.field, a.flags.field
		like.Keys, like.Analyzer = strings.Split(a.flags.field, "."), a.flags.analyzer
		property := object{"type": "text"}
		if like.Analyzer != "" {
			property["analyzer"] = like.Analyzer
		}
		like.Property = raw(property)
	}
	for name, value := range like.Settings {
		if slices.ContainsFunc(keptSettings(), func(start string) bool { return strings.HasPrefix(name, start) }) {
			settings[name] = value
		}
	}
	maps.DeleteFunc(settings, func(name string, _ any) bool { return strings.HasPrefix(name, similarityPrefix) })
	for name, value := range a.similarity {
		settings[similarityPrefix+name] = value
	}
	mappings := members(like.Mappings)
	p := &propertyTree{root: members(mappings["properties"]), dotted: like.Dotted}
	if len(found) == 0 {
		p.set(like.Keys, func(map[string]jsontext.Value) map[string]jsontext.Value { return members(like.Property) })
	}
	p.addLinear(like.Keys, multiName(&like), like.Analyzer, like.SearchAnalyzer)
	for _, name := range []string{norms.Object, norms.WeightsObject} {
		if kind := members(p.root[name])["type"]; kind != nil && string(kind) != `"object"` {
			delete(p.root, name) // which holds no number of a document, such as a nested one
		}
	}
	p.addStored(norms.Object, a.flags.field, normProperty)
	p.addStored(norms.WeightsObject, a.flags.field, weightsProperty)
	mappings["properties"] = raw(p.root)
	return object{"settings": settings, "mappings": mappings}
}
