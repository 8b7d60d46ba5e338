package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/proxy"
)

// expandTime limits what "akin expand" asks cluster and Redis, whose caches are
// cold.
const expandTime = 10 * time.Second

type expandFlags struct {
	served         servedFlags
	profile, index string
	fields         []string
	body           string // a file
	boosts, json   bool
}

func newExpand() *cobra.Command {
	f := &expandFlags{}
	cmd := &cobra.Command{
		Use: "expand WORD...", Short: "Show what a search becomes: the words that akin adds",
		Long: `expand prints the related words that akin adds to a search of these words, the strongest
first. It reads the configuration, asks the cluster to analyze the words and to count
documents, as akin serve does, and searches nothing. Without --index it takes the first
index of the configuration's matrices, and without --field all fields of it that have one.
With --cluster and --matrix it needs no configuration.

With --body it expands the search in a file in place of words. --json prints what the
cluster would get, and why, as the admin port does at POST /_akin/expand/{index}.`,
		Example: `  akin expand car rental
  akin expand --boosts --index docs --field body car rental
  akin expand --cluster http://127.0.0.1:9200 --matrix docs.akin --index docs car rental
  akin expand --index docs --body search.json --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if (strings.TrimSpace(strings.Join(args, "")) == "") == (f.body == "") {
				return cli.Usage(errors.New("give the words of a search, or --body FILE"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := f.served.load(cmd.Context(), cmd.Flags().Changed("config"))
			if err != nil {
				return cli.Usage(err)
			}
			return f.run(cmd.Context(), cfg, cmd.OutOrStdout(), strings.Join(args, " "))
		},
	}
	flags := cmd.Flags()
	f.served.register(flags)
	flags.StringVar(&f.profile, "profile", "", "a profile of the configuration")
	flags.StringVar(&f.index, "index", "", "index, alias, data stream, or several as in a search")
	flags.StringSliceVar(&f.fields, "field", nil, "text fields of the search")
	flags.StringVar(&f.body, "body", "", "file of a search body to expand in place of words")
	flags.BoolVar(&f.boosts, "boosts", false, "print what an occurrence of each added word counts")
	flags.BoolVar(&f.json, "json", false, "print the rewritten search as JSON")
	return cmd
}

func (f *expandFlags) run(ctx context.Context, cfg *configs.Config, out io.Writer, text string) error {
	cfg.Expansion.Budget = configs.Duration(expandTime)
	ctx, cancel := context.WithTimeout(ctx, expandTime)
	defer cancel()
	app, err := serve.New(ctx, serve.Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer app.Close()
	matrices, _ := app.Served()
	for _, m := range matrices {
		if m.Version == "" {
			return fmt.Errorf("matrix %s: %s", m.Name, m.Problem)
		}
	}
	in, err := f.search(ctx, app, text)
	if err != nil {
		return err
	}
	found, err := app.Expand(ctx, f.profile, in)
	if err == nil && found.Error != "" {
		err = errors.New(found.Error)
	}
	if err != nil {
		return err
	}
	return cli.Print(out, f.json, found, func(w io.Writer) error { return f.print(w, in.Index, text, &found) })
}

// search returns the search of --body, or one of the words in all fields.
func (f *expandFlags) search(ctx context.Context, app *serve.App, text string) (*expand.Request, error) {
	in := &expand.Request{Index: f.index, Preview: true}
	fields := f.fields
	if f.index == "" || f.body == "" && len(fields) == 0 {
		index, bound, err := app.Bound(ctx, f.index)
		if err != nil {
			return nil, err
		}
		if index == "" {
			return nil, errors.New("no index has a text field with a matrix: akin check says why; else name --index and --field")
		}
		in.Index = cmp.Or(f.index, index)
		if len(fields) == 0 {
			fields = bound
		}
	}
	if f.body == "" {
		body := esclient.JSON(esclient.Object{"query": esclient.Object{"multi_match": esclient.Object{"query": text, "fields": fields}}})
		in.Body, _ = io.ReadAll(body) // a reader of bytes
		return in, nil
	}
	body, err := cli.Read(ctx, f.body, io.ReadAll)
	in.Body = body
	return in, err
}

// print prints the added words, the strongest of each word first, and the words
// that get none. text is what was typed, "" for a body.
func (f *expandFlags) print(w io.Writer, index, text string, found *proxy.Expansion) error {
	var b strings.Builder
	clauses := found.Clauses
	added := addedByWord(clauses)
	for _, word := range added {
		texts := make([]string, len(word.added))
		for k, a := range word.added {
			texts[k] = cli.Visible(a.Word)
			if f.boosts {
				texts[k] += fmt.Sprintf(" %.3f", a.Boost)
			}
		}
		b.WriteString(wrap(cli.Visible(word.from)+": ", strings.Join(texts, ", ")))
	}
	if b.Len() == 0 {
		b.WriteString("Nothing is added. docs/queries.md#reasons explains: " + cmp.Or(found.Reason, string(reason.NoNeighbors)) + "\n")
	}
	if found.Hint != "" {
		b.WriteString(strings.TrimSpace(wrap("", cli.Visible(found.Hint))) + "\n")
	}
	for k := range clauses {
		c := &clauses[k]
		if c.Reason != "" && len(c.Added)+len(c.Alternatives) == 0 {
			b.WriteString(wrap("unchanged in "+cmp.Or(c.Field, c.Path)+": ", string(c.Reason)))
		}
	}
	for _, word := range guessed(clauses) {
		b.WriteString(wrap(cli.Visible(word.from)+" is not known and is taken for: ", cli.Visible(strings.Join(word.known, ", "))))
	}
	for _, word := range without(clauses, added, text) {
		b.WriteString(wrap(cli.Visible(word.from)+" gets nothing: ", word.why))
	}
	fmt.Fprintf(&b, "(in %s; --boosts and --json say more)\n", cli.Visible(index))
	_, err := io.WriteString(w, b.String())
	return err
}

// A bareWord is a word of a search to which nothing is added.
type bareWord struct{ from, why string }

// A guessedWord is an unknown word of a search, and what it is taken for: the
// nearest known words in its fields, or the two that it consists of.
type guessedWord struct {
	from  string
	known []string
}

// guessed returns the unknown words that known ones stand for.
func guessed(clauses []expand.Explanation) (words []guessedWord) {
	for i := range clauses {
		c := &clauses[i]
		for _, n := range c.Nearest {
			from, known := cmp.Or(c.Words[n.Term], n.Term), cmp.Or(n.Word, n.Known)
			at := slices.IndexFunc(words, func(w guessedWord) bool { return w.from == from })
			if at < 0 {
				at, words = len(words), append(words, guessedWord{from: from})
			}
			if !slices.Contains(words[at].known, known) {
				words[at].known = append(words[at].known, known)
			}
		}
	}
	return words
}

// without returns the words to which nothing is added in any clause, in the
// order of the search, and why; last those of the text that are no terms.
func without(clauses []expand.Explanation, added []addedWords, text string) (words []bareWord) {
	terms := map[string]bool{} // and the words that give them
	for i := range clauses {
		c := &clauses[i]
		for _, term := range c.Terms {
			word := cmp.Or(c.Words[term], term)
			terms[term], terms[strings.ToLower(word)] = true, true
			known := slices.ContainsFunc(words, func(w bareWord) bool { return w.from == word })
			gets := slices.ContainsFunc(added, func(w addedWords) bool { return w.from == word }) || slices.ContainsFunc(clauses, func(other expand.Explanation) bool {
				return slices.ContainsFunc(other.Alternatives, func(a expand.Alternative) bool { return slices.Contains(strings.Fields(a.For), term) })
			})
			if !known && !gets {
				words = append(words, bareWord{word, whyBare(c, term)})
			}
		}
	}
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		plain := !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
		if len(terms) > 0 && plain && !terms[word] { // the analyzer may cut others in parts
			words = append(words, bareWord{word, "the analyzer drops it, as it does stop words"})
		}
	}
	return words
}

// whyBare says why nothing is added for a term of a clause.
func whyBare(c *expand.Explanation, term string) string {
	if slices.Contains(c.NoRow, term) && !slices.ContainsFunc(c.Nearest, func(n expand.NearestWord) bool { return n.Term == term }) {
		return "it is not in the matrix"
	}
	var left []string
	for _, l := range c.LeftOut {
		if l.From == term {
			left = append(left, cli.Visible(cmp.Or(l.Word, l.Term))+" ("+l.Reason+")")
		}
	}
	switch {
	case left != nil:
		return "its neighbors are left out, such as " + strings.Join(left, ", ")
	case len(c.Added) > 0:
		return "others are nearer to the search as a whole (max_added_terms), or it has no neighbors"
	}
	return "it has no neighbors that fit"
}

type addedWords struct {
	from  string
	added []expand.Added // of any field, with the largest boost
}

// addedByWord returns what is added for each word of a search, in the order of
// the words.
func addedByWord(clauses []expand.Explanation) (words []addedWords) {
	add := func(from string, a expand.Added) {
		at := slices.IndexFunc(words, func(w addedWords) bool { return w.from == from })
		if at < 0 {
			at, words = len(words), append(words, addedWords{from: from})
		}
		of := &words[at]
		known := slices.IndexFunc(of.added, func(o expand.Added) bool { return o.Word == a.Word })
		if known < 0 {
			of.added = append(of.added, a)
		} else if of.added[known].Boost < a.Boost {
			of.added[known] = a
		}
	}
	for i := range clauses {
		c := &clauses[i]
		for _, a := range c.Alternatives {
			add(a.Found, expand.Added{Word: cmp.Or(a.Word, a.Term), Boost: a.Similarity})
		}
		for _, term := range c.Terms {
			for _, a := range c.Added {
				if a.From == term {
					a.Word = cmp.Or(a.Word, a.Term)
					add(cmp.Or(c.Words[term], term), a)
				}
			}
		}
	}
	for _, w := range words {
		slices.SortStableFunc(w.added, func(a, b expand.Added) int { return cmp.Compare(b.Boost, a.Boost) })
	}
	return words
}
