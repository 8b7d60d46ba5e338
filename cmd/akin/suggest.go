package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/simmatrix/store"
)

// suggestFlags are those of suggest and its commands.
type suggestFlags struct {
	config, searches, index string
	most                    int
	by                      string
	similarity              float64
	asJSON                  bool
}

func newSuggest() *cobra.Command {
	f := &suggestFlags{}
	cmd := &cobra.Command{
		Use: "suggest", Short: "List searches that find nothing or little, and what would help them",
		Long: `suggest lists the searches that find nothing, few hits, or only related words, the most
frequent first, as akin counts them with searches.collect. For each it proposes words of the
index, with the number of documents that the search would find then, by the cluster: words
spelled alike, singular or plural, two words as one or one as two, long forms of acronyms,
words near in meaning by the matrix, by the words that akin contains and by the language
model of the configuration, and what the search finds without a word.

"akin suggest accept 3 7" writes the pairs 3 and 7 to the overrides of the matrix, and makes
a version with them, which searches use within seconds. docs/suggest.md.

` + cli.Credentials,
		Example: `  akin suggest
  akin suggest --index docs --max 50 --json
  akin suggest accept 3 7 --by Ann
  akin suggest dismiss 4
  akin suggest undo 3`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, f.listAll) },
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.config, "config", cli.UsualConfig, "configuration file")
	cmd.Flags().StringVar(&f.index, "index", "", "only searches of this index, or of a pattern with *")
	cmd.Flags().IntVar(&f.most, "max", 20, "how many searches are listed, 1 to 1000")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&f.searches, "searches", "", "read the searches from this file of searches.file, or answer to GET /_akin/searches, in place of where the configuration keeps them")
	accept := &cobra.Command{
		Use: "accept NUMBER...", Short: "Let words of the index stand for words of searches",
		Long: `accept writes pairs of the list to the overrides of their matrix, each one way: the word of
the index for that of the search. A pair counts as much as the word itself (exact) if it is
another way to write it, and half if it is only near in meaning; --similarity says otherwise.`,
		Example: `  akin suggest accept 3 7
  akin suggest accept 5 --similarity 0.3 --by Ann`,
		Args: numbers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, f.decide(args, "accepted", func(ctx context.Context, s *suggestions, p *chosenPair) (act, error) {
				if cmd.Flags().Changed("similarity") {
					p.Similarity = f.similarity
				}
				return s.accept(ctx, p, f.by)
			}))
		},
	}
	accept.Flags().Float64Var(&f.similarity, "similarity", 1, "above 0, at most 1; 1 is exact")
	dismiss := &cobra.Command{
		Use: "dismiss NUMBER...", Short: "Do not propose pairs again",
		Example: `  akin suggest dismiss 4`,
		Args:    numbers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, f.decide(args, "dismissed", func(ctx context.Context, _ *suggestions, p *chosenPair) (act, error) { return dismiss(ctx, p, f.by) }))
		},
	}
	undo := &cobra.Command{
		Use: "undo NUMBER...", Short: "Take back what was accepted or dismissed",
		Long:    "undo gives back to a matrix what an accepted pair replaced, and lets a dismissed one be proposed again.",
		Example: `  akin suggest undo 3`,
		Args:    numbers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, f.decide(args, "taken back", func(ctx context.Context, _ *suggestions, p *chosenPair) (act, error) { return undo(ctx, p, f.by) }))
		},
	}
	for _, decides := range []*cobra.Command{accept, dismiss, undo} {
		decides.Flags().StringVar(&f.by, "by", userAtHost(), "who decides, kept with the pair")
	}
	cmd.AddCommand(accept, dismiss, undo)
	return cmd
}

// numbers are the arguments of commands that decide.
func numbers(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(fmt.Errorf("give numbers of akin suggest; see %s --help", cmd.CommandPath()))
	}
	for _, arg := range args {
		if n, err := strconv.Atoi(arg); err != nil || n < 1 {
			return cli.Usage(fmt.Errorf("%q is no number of akin suggest", arg))
		}
	}
	return nil
}

// run runs a command with the configuration.
func (f *suggestFlags) run(cmd *cobra.Command, do func(ctx context.Context, s *suggestions, out io.Writer) error) error {
	cfg, err := configs.Load(cmd.Context(), f.config)
	if err != nil {
		return cli.Usage(err)
	}
	s, err := openSuggestions(cfg)
	if err != nil {
		return err
	}
	defer s.close()
	return do(cmd.Context(), s, cmd.OutOrStdout())
}

// listAll lists the searches with what would help them.
func (f *suggestFlags) listAll(ctx context.Context, s *suggestions, out io.Writer) error {
	if f.most < 1 || f.most > 1000 {
		return cli.Usage(fmt.Errorf("--max: %d not in [1, 1000]", f.most))
	}
	options, err := cli.Searches(s.cfg)
	if err != nil {
		return err
	}
	switch {
	case f.searches != "":
		options.File, options.Redis = f.searches, store.Redis{}
	case options.File == "" && options.Redis.URL == "":
		return cli.Usage(fmt.Errorf("the configuration names no file (searches.file) and no Redis that keep searches, so those that akin serve counts with searches.collect "+
			"are in its memory alone: give --searches FILE with its answer to GET /_akin/searches?limit=10000 on the admin port (%s), whose page /suggestions has them as well",
			s.cfg.Admin.Address))
	}
	found, err := searches.Read(ctx, options, f.index, f.most)
	if err != nil {
		return err
	}
	p, err := s.proposer()
	if err != nil {
		return err
	}
	defer p.close()
	all := make([]suggested, len(found))
	for k := range found {
		all[k] = p.propose(ctx, found[k])
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := f.state().number(ctx, all); err != nil {
		return err
	}
	return cli.Print(out, f.asJSON, all, func(w io.Writer) error { return printSuggested(w, all) })
}

// printSuggested prints a list for people.
func printSuggested(w io.Writer, all []suggested) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no searches without hits: see whether searches.collect is on, and docs/suggest.md")
		return err
	}
	var b strings.Builder
	for k := range all {
		s := &all[k]
		t := s.Total()
		fmt.Fprintf(&b, "%s  (%s, %s): %d times nothing, %d few, %d only related words\n",
			cli.Visible(s.Text), cli.Visible(cmp.Or(s.Index, "all indices")), cli.Visible(s.Fields), t.None, t.Few, t.Related)
		for _, d := range s.Decided {
			fmt.Fprintf(&b, "       %s -> %s accepted by %s on %s", cli.Visible(d.Word), cli.Visible(d.To), cli.Visible(d.By), d.At.Format("2006-01-02"))
			if d.Gone {
				fmt.Fprintf(&b, ": no document has %s any more", cli.Visible(d.To))
			}
			b.WriteByte('\n')
		}
		for _, p := range s.Proposals {
			number, pair := strconv.Itoa(p.Number), cli.Visible(p.Word)+" -> "+cli.Visible(p.To)
			if p.To == "" {
				number, pair = "", "without "+cli.Visible(p.Word)
			}
			fmt.Fprintf(&b, "  %3s  %s  (%s) finds %d", number, pair, p.From, p.Found)
			if p.Beside != nil {
				fmt.Fprintf(&b, " without %s", cli.Some(p.Beside))
			}
			if len(p.Titles) > 0 {
				fmt.Fprintf(&b, ": %s", cli.Visible(strings.Join(p.Titles, "; ")))
			}
			b.WriteByte('\n')
		}
		switch {
		case s.Problem != "":
			fmt.Fprintf(&b, "       %s\n", cli.Visible(s.Problem))
		case len(s.Proposals)+len(s.Decided) == 0:
			b.WriteString("       nothing to propose\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// decide decides about numbered pairs.
func (f *suggestFlags) decide(
	args []string, done string, how func(ctx context.Context, s *suggestions, p *chosenPair) (act, error),
) func(context.Context, *suggestions, io.Writer) error {
	return func(ctx context.Context, s *suggestions, out io.Writer) error {
		pairs := make([]*chosenPair, len(args))
		for k, arg := range args {
			var err error
			if pairs[k], err = f.state().find(arg); err != nil {
				return fmt.Errorf("%s: %w", arg, err)
			}
		}
		errs := s.decide(ctx, pairs, f.by, func(ctx context.Context, p *chosenPair, _ string) (act, error) { return how(ctx, s, p) })
		for k, p := range pairs {
			if errs[k] != nil {
				errs[k] = fmt.Errorf("%s: %w", args[k], errs[k])
				continue
			}
			fmt.Fprintf(out, "%s: %s -> %s %s\n", args[k], cli.Visible(p.Word), cli.Visible(p.To), done)
		}
		return errors.Join(errs...)
	}
}

// numbersFile is beside the configuration.
const numbersFile = ".akin-suggest.json"

// maxNumbered limits the pairs that have a number.
const maxNumbered = 10_000

// A numbering gives pairs numbers that stay, so that what one person accepts by
// a number is what was listed, whoever listed again meanwhile.
type numbering struct{ path string }

func (f *suggestFlags) state() numbering {
	return numbering{filepath.Join(filepath.Dir(f.config), numbersFile)}
}

// A numberedPair is a pair with its number.
type numberedPair struct {
	Number int `json:"number"`
	chosenPair
}

func (n numbering) read() (known []numberedPair, err error) {
	text, err := os.ReadFile(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("the numbers in %s; remove it for new ones: %w", n.path, err)
	}
	return known, nil
}

// number gives each proposal the number that it has, or the next one.
func (n numbering) number(ctx context.Context, all []suggested) (err error) {
	lock := flock.New(n.path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	known, err := n.read()
	if err != nil {
		return err
	}
	next := 1
	at := map[chosenPair]int{}
	for _, p := range known {
		at[p.chosenPair] = p.Number
		next = max(next, p.Number+1)
	}
	for k := range all {
		s := &all[k]
		for i := range s.Proposals {
			p := &s.Proposals[i]
			if p.To == "" {
				continue
			}
			pair := chosenPair{s.Index, s.Fields, s.Text, p.Word, p.To, p.Similarity}
			if at[pair] == 0 {
				at[pair] = next
				known = append(known, numberedPair{next, pair})
				next++
			}
			p.Number = at[pair]
		}
	}
	known = known[max(len(known)-maxNumbered, 0):]
	return cli.Replace(ctx, n.path, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(known) })
}

// find returns the pair with a number.
func (n numbering) find(number string) (*chosenPair, error) {
	known, err := n.read()
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(known, func(p numberedPair) bool { return strconv.Itoa(p.Number) == number })
	if k < 0 {
		return nil, cli.Usage(errors.New("no pair has this number: list them with akin suggest"))
	}
	return &known[k].chosenPair, nil
}
