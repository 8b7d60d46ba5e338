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
			return found.Print(cmd.OutOrStdout(), f.json)
		},
	}
	f.redis.Register(cmd)
	cmd.Flags().StringVar(&f.file, "file", "", "matrix file to look into instead of Redis")
	cmd.Flags().IntVar(&f.top, "top", 20, "how many neighbors of each term")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	return cmd
}

func (f *showFlags) lookUp(ctx context.Context, words []string) (*cli.Neighbors, error) {
	asked := slices.Clone(words)
	for _, word := range words { // an analyzer makes lower case of nearly all words, people forget it
		asked = append(asked, strings.ToLower(word))
	}
	found := &cli.Neighbors{Matrix: f.file}
	if f.file == "" {
		return found, f.redis.With(func(admin *store.Admin) error { return f.lookUpInRedis(ctx, admin, found, words, asked) })
	}
	m, err := cli.ReadMatrix(ctx, f.file)
	if err != nil {
		return nil, err
	}
	found.Origins = m.Meta().Origins
	terms := m.TermsOf(asked...)
	for _, word := range words {
		found.Add(word, terms, m.Nearest, f.top, m.Row, m.Form)
	}
	return found, nil
}

// lookUpInRedis looks in the active version; asked has the words in lower
// case, too.
func (f *showFlags) lookUpInRedis(ctx context.Context, admin *store.Admin, found *cli.Neighbors, words, asked []string) error {
	rows := make(map[string]simmatrix.Row)
	read := func(version string, terms []string) (string, error) { // "" for the active one
		version, some, err := admin.Rows(ctx, f.redis.Name, version, terms)
		for k := range some {
			rows[terms[k]] = some[k]
		}
		return version, err
	}
	version, err := read("", asked)
	if err != nil {
		return err
	}
	found.Matrix = f.redis.Name + "@" + version
	forms, err := admin.AllForms(ctx, f.redis.Name, version)
	if err != nil {
		return err
	}
	rowOf := func(term string) simmatrix.Row { return rows[term] }
	formOf := func(term string) string { return forms[term] }
	nearestTo := func(word string) string { return simmatrix.NearestOf(word, maps.Values(forms)) }
	terms := simmatrix.TermsOf(asked, maps.All(forms), func(term string) bool { return !rows[term].IsZero() })
	if _, err = read(version, slices.Collect(maps.Values(terms))); err != nil {
		return err
	}
	withOrigins := false
	for _, row := range rows {
		for n := range row.All() {
			withOrigins = withOrigins || n.Origins != 0
		}
	}
	if withOrigins {
		versions, err := admin.Versions(ctx, f.redis.Name)
		if err != nil {
			return err
		}
		if k := slices.IndexFunc(versions, func(v store.Version) bool { return v.ID == version }); k >= 0 {
			found.Origins = versions[k].Origins
		}
	}
	for _, word := range words {
		found.Add(word, terms, nearestTo, f.top, rowOf, formOf)
	}
	return nil
}
