package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/tables"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// showFlags are the flags of "matrix show".
type showFlags struct {
	redis connect.Redis
	file  string
	top   int
	json  bool
}

func newMatrixShow() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use: "show TERM...", Short: "Show the neighbors of terms",
		Long: `show prints the neighbors of index terms, most similar first, with the similarity and
the document frequency, from a file or from the active version in Redis. Terms are
index terms: what the field's analyzer makes of a word ("rental" may be "rental",
"cars" is "car"). A term that people write in another form comes after it: gas (ga).
Where entries have several origins, as in an ensemble, with
overrides and where they were learned, each line ends with them.`,
		Example: `  akin matrix show --file docs.akin car rental
  akin matrix show --redis redis://127.0.0.1:6379 --name docs car`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return terminal.Usage(errors.New("name at least one term, and none that is empty"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.top < 0 {
				return terminal.Usage(fmt.Errorf("--top: %d is negative", f.top))
			}
			terms := slices.Clone(args)
			for _, term := range args { // an analyzer makes lower case of nearly all words, people forget it
				terms = append(terms, strings.ToLower(term))
			}
			found, err := f.lookUp(cmd.Context(), terms)
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

// lookUp returns the rows of terms in the matrix of the flags.
func (f *showFlags) lookUp(ctx context.Context, terms []string) (*tables.Neighbors, error) {
	found := &tables.Neighbors{Rows: make(map[string]simmatrix.Row, len(terms)), Forms: make(map[string]string)}
	if f.file != "" {
		m, err := files.ReadMatrix(ctx, f.file)
		if err != nil {
			return nil, err
		}
		found.Matrix, found.Origins = f.file, m.Meta().Origins
		for _, term := range terms {
			found.Rows[term] = m.Row(term)
		}
		for _, term := range found.Shown(f.top) {
			found.Forms[term] = m.Form(term)
		}
		return found, nil
	}
	err := f.redis.With(func(admin *rowstore.Admin) error {
		version, rows, err := admin.Rows(ctx, f.redis.Name, "", terms)
		if err != nil {
			return err
		}
		found.Matrix = f.redis.Name + "@" + version
		for k, term := range terms {
			found.Rows[term] = rows[k]
		}
		if found.Forms, err = admin.Forms(ctx, f.redis.Name, version, found.Shown(f.top)); err != nil {
			return err
		}
		if !slices.ContainsFunc(rows, hasOrigins) {
			return nil
		}
		versions, err := admin.Versions(ctx, f.redis.Name)
		if err != nil {
			return err
		}
		if k := slices.IndexFunc(versions, func(v rowstore.Version) bool { return v.ID == version }); k >= 0 {
			found.Origins = versions[k].Origins
		}
		return nil
	})
	return found, err
}

// hasOrigins reports whether the neighbors of a row have origins: all of a
// matrix have them, or none.
func hasOrigins(r simmatrix.Row) bool {
	for n := range r.All() {
		return n.Origins != 0
	}
	return false
}
