package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

type showFlags struct {
	redis cli.Redis
	file  string
	top   int
	json  bool
}

func newMatrixShow() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use: "show WORD...", Short: "Show the neighbors of words",
		Long: `show prints the neighbors of words, most similar first, with the similarity and the
document frequency, from a file or from the active version in Redis. A word is looked
up as people write it, else as an index term, which is what the field's analyzer makes
of a word. The term comes after a form that people write: gas (ga). Where there is
neither, show names the nearest spelling (from Redis, of the words that are written
otherwise than their terms). Where entries have several origins, as in an ensemble, with
overrides and where they were learned, each line ends with them.`,
		Example: `  akin matrix show --file docs.akin car rental
  akin matrix show --redis redis://127.0.0.1:6379 --name docs car`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return cli.Usage(errors.New("name at least one word, and none that is empty"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.top < 0 {
				return cli.Usage(fmt.Errorf("--top: %d is negative", f.top))
			}
			found, err := f.lookUp(cmd.Context(), args)
			if err != nil {
				return err
			}
			if f.json {
				return found.PrintJSON(cmd.OutOrStdout(), args, f.top)
			}
			return found.Print(cmd.OutOrStdout(), args, f.top)
		},
	}
	f.redis.Register(cmd)
	cmd.Flags().StringVar(&f.file, "file", "", "matrix file to look into instead of Redis")
	cmd.Flags().IntVar(&f.top, "top", 20, "how many neighbors of each term")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	return cmd
}

// lookUp returns the rows of words in the matrix of the flags.
func (f *showFlags) lookUp(ctx context.Context, words []string) (*cli.Neighbors, error) {
	asked := slices.Clone(words)
	for _, word := range words { // an analyzer makes lower case of nearly all words, people forget it
		asked = append(asked, strings.ToLower(word))
	}
	found := &cli.Neighbors{
		Rows: make(map[string]simmatrix.Row), Forms: make(map[string]string),
		Terms: make(map[string]string), Nearest: make(map[string]string),
	}
	if f.file == "" {
		return found, f.redis.With(func(admin *store.Admin) error { return f.lookUpInRedis(ctx, admin, found, words, asked) })
	}
	m, err := cli.ReadMatrix(ctx, f.file)
	if err != nil {
		return nil, err
	}
	found.Matrix, found.Origins = f.file, m.Meta().Origins
	resolve(found, words, m.TermsOf(asked...), m.Nearest)
	for _, term := range slices.Concat(words, slices.Collect(maps.Values(found.Terms))) {
		found.Rows[term] = m.Row(term)
	}
	for _, term := range found.Shown(f.top) {
		found.Forms[term] = m.Form(term)
	}
	return found, nil
}

// lookUpInRedis sets what the active version in Redis has of words; asked has
// them, and in lower case, too.
func (f *showFlags) lookUpInRedis(ctx context.Context, admin *store.Admin, found *cli.Neighbors, words, asked []string) error {
	version, err := f.readRows(ctx, admin, found, "", asked)
	if err != nil {
		return err
	}
	found.Matrix = f.redis.Name + "@" + version
	forms, err := admin.AllForms(ctx, f.redis.Name, version)
	if err != nil {
		return err
	}
	terms := simmatrix.TermsOf(asked, maps.All(forms), func(term string) bool { return !found.Rows[term].IsZero() })
	resolve(found, words, terms, func(word string) string { return simmatrix.NearestOf(word, maps.Values(forms)) })
	if _, err = f.readRows(ctx, admin, found, version, slices.Collect(maps.Values(found.Terms))); err != nil {
		return err
	}
	for _, term := range found.Shown(f.top) {
		found.Forms[term] = forms[term]
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(found.Rows)), hasOrigins) {
		return nil
	}
	versions, err := admin.Versions(ctx, f.redis.Name)
	if k := slices.IndexFunc(versions, func(v store.Version) bool { return v.ID == version }); k >= 0 {
		found.Origins = versions[k].Origins
	}
	return err
}

// readRows adds the rows of terms in a version, "" for the active one, whose
// name it returns.
func (f *showFlags) readRows(ctx context.Context, admin *store.Admin, found *cli.Neighbors, version string, terms []string) (string, error) {
	version, rows, err := admin.Rows(ctx, f.redis.Name, version, terms)
	for k := range rows {
		found.Rows[terms[k]] = rows[k]
	}
	return version, err
}

// resolve sets the terms that words stand for, as they are or in lower case,
// and the nearest spelling of those that stand for none.
func resolve(found *cli.Neighbors, words []string, terms map[string]string, nearest func(word string) string) {
	for _, word := range words {
		term, near := cli.LookUp(word, terms, nearest)
		found.Nearest[word] = near
		if term != word {
			found.Terms[word] = term
		}
	}
}

// hasOrigins reports whether the neighbors of a row have origins: all of a
// matrix have them, or none.
func hasOrigins(r simmatrix.Row) bool {
	for n := range r.All() {
		return n.Origins != 0
	}
	return false
}
