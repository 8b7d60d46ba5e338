package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/norms"
)

func newIndex() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Say what an index must have",
		Long: `Mode bm25 and mode soft need nothing of an index. Mode hard needs a field whose score
is linear, and a number in each document.`,
		Example: `  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body`,
		Args:    noSuchCommand,
		RunE:    showHelp,
	}
	cmd.AddCommand(newIndexAdvise())
	return cmd
}

// adviseFlags are the flags of "index advise".
type adviseFlags struct {
	refs refFlags

	cluster, caFile, index, field string
	weights                       string
	fresh                         bool
	analyzer                      string
	scripted                      string
}

func newIndexAdvise() *cobra.Command {
	var f adviseFlags
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Print what mode hard needs of an index, and check it",
		Long: `advise checks what mode hard needs of an index to rank by a field: a field of the same
text and analyzers whose score is linear in the term frequency, two fields beside it for
the norms of the documents, and a norm in each document. It prints what it finds, and
then what to send to the cluster and which commands to run, as the developer tools of
Kibana and OpenSearch Dashboards take it. It changes nothing itself. The exit status is 0
where mode hard can be used, and 1 where something is missing.

With --new it prints the body of the request that creates such an index, as JSON. Where
the index is there already, that is one like it, to reindex into: the way for indices that
cannot be closed. Nothing is checked then.

The score is linear with a scripted similarity, which is exact, or, where the cluster
takes no scripts there, with BM25 with k1 10,000 and b 0, which is 0.1 % off for ten
occurrences and 0.3 % for thirty. --scripted says which; auto asks the cluster.

` + matrixHelp + ` So is WEIGHTS of --weights.`,
		Example: `  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body --new --analyzer english
  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body
  akin index advise --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.refs.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "URL of the cluster")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of the authorities that sign the cluster's certificate; default the system's")
	flags.StringVar(&f.index, "index", "", "index, or several as in a search")
	flags.StringVar(&f.field, "field", "", "text field that is searched")
	flags.StringVar(&f.weights, "weights", "", "check that the norms are by these weights; default any, the same in all documents")
	flags.BoolVar(&f.fresh, "new", false, "print the body that creates an index")
	flags.StringVar(&f.analyzer, "analyzer", "", "with --new, for an index that is not there: analyzer of the field; default the cluster's")
	flags.StringVar(&f.scripted, "scripted", "auto", "print a scripted similarity: auto, yes or no")
	return cmd
}

func (f *adviseFlags) check() error {
	var errs []error
	fail := func(bad bool, text string) {
		if bad {
			errs = append(errs, errors.New(text))
		}
	}
	fail(f.cluster == "" || f.index == "" || f.field == "", "give --cluster, --index and --field")
	fail(f.scripted != "auto" && f.scripted != "yes" && f.scripted != "no", "--scripted: "+f.scripted+" is none of auto, yes, no")
	fail(f.analyzer != "" && !f.fresh, "--analyzer goes with --new alone")
	fail(f.weights != "" && f.fresh, "--weights does not go with --new")
	return errors.Join(errs...)
}

func (f *adviseFlags) run(ctx context.Context, out, notes io.Writer) error {
	client, err := openCluster(f.cluster, f.caFile)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing was written
	a := adviser{flags: f, client: client, notes: notes}
	found, err := client.Inspect(ctx, f.index, f.field, norms.NormPath(f.field), norms.WeightsPath(f.field))
	switch refused, _ := errors.AsType[*esclient.Error](err); {
	case err == nil:
	case refused == nil || refused.Status != http.StatusNotFound:
		return err
	case !f.fresh:
		return fmt.Errorf("%w; the body that creates a new index is printed by\n  %s", err, a.command(f.index, "index advise", "--new"))
	}
	own, err := ownName(found, f.field)
	if err != nil {
		return err
	}
	if own != f.field {
		a.alias, f.field = f.field, own
		if found, err = client.Inspect(ctx, f.index, own, norms.NormPath(own), norms.WeightsPath(own)); err != nil {
			return err
		}
	}
	if a.similarity, err = f.similarity(ctx, client, notes); err != nil {
		return err
	}
	if f.fresh {
		return a.printNew(ctx, out, found)
	}
	if f.weights != "" {
		m, err := openMatrix(ctx, f.weights, &f.refs)
		if err != nil {
			return err
		}
		if _, err := norms.NewWeights(m); err != nil {
			return fmt.Errorf("%s: %w", f.weights, err)
		}
		a.weightsID = norms.ID(m.Checksum())
	}
	return a.checkAll(ctx, out, found)
}

// ownName returns the field's own name where it was asked for by an alias.
func ownName(found []esclient.Inspection, field string) (string, error) {
	var names []string
	for i := range found {
		if name := found[i].Field; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return field, nil
	case len(names) > 1:
		return "", fmt.Errorf("%q stands for the fields %s: name one of these", field, strings.Join(names, " and "))
	default:
		return names[0], nil
	}
}

// similarity returns the settings of a similarity that scores linearly, by the
// ends of their names.
func (f *adviseFlags) similarity(ctx context.Context, client *esclient.Client, notes io.Writer) (map[string]string, error) {
	scripted := f.scripted == "yes"
	if f.scripted == "auto" {
		var err error
		scripted, err = client.SimilarityScripts(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(notes, "The cluster does not tell whether it takes scripts in similarities (%v).\n"+
				"BM25 with k1 10000 works everywhere; --scripted yes prints the scripted form, which is exact.\n\n", err)
		}
	}
	if scripted {
		return map[string]string{"type": "scripted", "script.source": esclient.LinearScript}, nil
	}
	return map[string]string{"type": "BM25", "k1": "10000", "b": "0"}, nil
}

// An adviser checks indices and says what to do about them.
type adviser struct {
	flags  *adviseFlags
	client *esclient.Client
	notes  io.Writer
	// similarity is a linear one, see adviseFlags.similarity.
	similarity map[string]string
	// weightsID is "" where no weights are given.
	weightsID string
	// alias is the name that the field was asked for by, "" where that is its own.
	alias string
	// apart says that the indices have to be made ready one by one, because there
	// are no weights for all.
	apart bool
}

// checkAll checks the indices and prints what is found, and what to do.
func (a *adviser) checkAll(ctx context.Context, out io.Writer, found []esclient.Inspection) error {
	var missing []string
	var first *esclient.Inspection // that maps the field
	var linear *indexCheck         // the first that has a linear field
	if err := a.checkCommon(ctx, found); err != nil {
		return err
	}
	mapped := 0
	for k := range found {
		i := &found[k]
		if i.Field == "" && !i.Closed && i.Problem == "" {
			continue // searches of the field do not go there
		}
		mapped++
		c, err := a.checkIndex(ctx, i)
		if err != nil {
			return err
		}
		if i.Field != "" {
			first = cmp.Or(first, i)
			c.compare(first, linear)
		}
		if linear == nil && c.linear != nil {
			linear = c
		}
		if err := a.printCheck(out, c); err != nil {
			return err
		}
		if !c.ready() {
			missing = append(missing, i.Index)
		}
	}
	switch {
	case mapped == 0:
		return fmt.Errorf("no index of %q maps the field %q", a.flags.index, a.flags.field)
	case len(missing) > 0:
		return fmt.Errorf("mode hard cannot rank by %s in %s yet", a.flags.field, strings.Join(missing, ", "))
	default:
		return nil
	}
}

// checkCommon finds out whether all indices can have the same weights.
func (a *adviser) checkCommon(ctx context.Context, found []esclient.Inspection) error {
	if len(found) < 2 {
		return nil
	}
	_, err := a.client.Countable(ctx, a.flags.index, a.flags.field)
	a.apart = err != nil // for whatever reason: each index is looked at by itself
	return ctx.Err()
}

// compare says what makes searches of this index and of others impossible:
// first maps the field, and linear, unless nil, has a linear field.
func (c *indexCheck) compare(first *esclient.Inspection, linear *indexCheck) {
	const both = "; searches of both are not ranked in mode hard, those of one alone can be"
	switch {
	case !c.Alike(first):
		c.add(resultWrong, "all indices", "the field is analyzed or scored otherwise than in %s"+both, first.Index)
	case linear != nil && c.linear != nil && !c.linear.Same(linear.linear):
		c.add(resultWrong, "all indices", "what scores linearly is another field or similarity than in %s, make them the same"+both, linear.Index)
	}
}
