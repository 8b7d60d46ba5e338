package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/cmd/akin/internal/files"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix/combine"
)

// editFlags are the flags of "matrix edit".
type editFlags struct {
	file   string
	oneWay bool
}

func newMatrixEdit() *cobra.Command {
	var f editFlags
	cmd := commandGroup(&cobra.Command{
		Use: "edit", Short: "Correct a matrix by rules of your own",
		Long: `edit keeps a file of overrides: rules on pairs of index terms that a build and a push
apply to whatever the source of the matrix says, so that they outlive rebuilds.

  set   gives the pair a similarity
  pin   keeps the pair, with the similarity of the source, whatever would drop it
  ban   removes the pair

A rule goes both ways, or with --one-way from TERM to NEIGHBOR only: then a search
for TERM finds NEIGHBOR, and not the other way round. The file is text, one rule a
line, and may be edited by hand and kept under version control; the commands change
the lines concerned and nothing else. Terms are index terms: what the field's
analyzer makes of a word.`,
		Example: `  akin matrix edit set --file overrides.txt car automobile 0.9
  akin matrix edit ban --file overrides.txt --one-way car jaguar
  akin matrix edit list --file overrides.txt`,
	},
		f.command("set", "TERM NEIGHBOR SIMILARITY", "Give a pair a similarity, above 0 and at most 1", "car automobile 0.9"),
		f.command("pin", "TERM NEIGHBOR", "Keep a pair, with the similarity that the source gives it", "car automobile"),
		f.command("ban", "TERM NEIGHBOR", "Remove a pair", "car jaguar"),
		f.command("remove", "TERM NEIGHBOR", "Take back the rules on a pair", "car jaguar"),
		f.newList())
	cmd.PersistentFlags().StringVar(&f.file, "file", "", "file of overrides (required); made by the first rule")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return terminal.Usage(fmt.Errorf("%w; a term or number that begins with - stands behind --, as in: %s --file FILE -- -x y", err, cmd.CommandPath()))
	})
	return cmd
}

// command returns the command of the given name, which changes the rules on a
// pair.
func (f *editFlags) command(name, takes, short, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " " + takes, Short: short, Example: "  akin matrix edit " + name + " --file overrides.txt " + example,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != len(strings.Fields(takes)) {
				return terminal.Usage(fmt.Errorf("%d arguments, want %s; a term with blanks stands in quotes", len(args), takes))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			similarity := 0.0
			if len(args) > 2 {
				similarity, err = strconv.ParseFloat(args[2], 64)
				if err != nil || strings.ContainsAny(args[2], "_xX") { // which Go takes and the file does not
					return terminal.Usage(fmt.Errorf("similarity %q is no decimal number", args[2]))
				}
			}
			return f.change(cmd.Context(), func(o *combine.Overrides) error {
				return f.apply(o, name, args[0], args[1], similarity)
			})
		},
	}
	cmd.Flags().BoolVar(&f.oneWay, "one-way", false, "NEIGHBOR in the row of TERM only, and not the other way round")
	return cmd
}

// apply changes the rules on a pair as the command of the given name does.
func (f *editFlags) apply(o *combine.Overrides, name, term, neighbor string, similarity float64) error {
	if name != "remove" {
		return o.Put(combine.Override{Action: combine.Action(name), Term: term, Neighbor: neighbor, OneWay: f.oneWay, Similarity: similarity})
	}
	if !o.Remove(term, neighbor, f.oneWay) {
		return fmt.Errorf("%s has no rule on %s and %s", f.file, term, neighbor)
	}
	return nil
}

func (f *editFlags) newList() *cobra.Command {
	return &cobra.Command{
		Use: "list [TERM...]", Short: "Print the rules, or those on the terms named",
		Example: `  akin matrix edit list --file overrides.txt
  akin matrix edit list --file overrides.txt car`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			o, err := readOverrides(cmd.Context(), f.file)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(cmd.OutOrStdout())
			for r := range o.All() {
				if len(args) == 0 || slices.Contains(args, r.Term) || slices.Contains(args, r.Neighbor) {
					fmt.Fprintln(w, r.String())
				}
			}
			return w.Flush() // which has the error of any line
		},
	}
}

func (f *editFlags) check() error {
	if f.file == "" {
		return terminal.Usage(errors.New("give --file FILE, the overrides to edit"))
	}
	return nil
}

// change makes one change to the file, and no other command at the same time.
// It writes the file only where that made a difference.
func (f *editFlags) change(ctx context.Context, edit func(o *combine.Overrides) error) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if err := checkEditable(f.file); err != nil {
		return terminal.Usage(err)
	}
	unlock, err := files.Lock(ctx, f.file, files.LockWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	o, err := readOverrides(ctx, f.file)
	if errors.Is(err, os.ErrNotExist) {
		o, err = &combine.Overrides{}, nil
	}
	if err != nil {
		return err
	}
	before := o.String()
	if err := edit(o); err != nil {
		return terminal.Usage(err)
	}
	if o.String() == before {
		return nil
	}
	return files.Write(ctx, f.file, func(w io.Writer) error {
		_, err := io.WriteString(w, o.String())
		return err
	})
}

// checkEditable reports why the file could or should not be written. One that
// is protected would be replaced all the same, since its folder is not.
func checkEditable(path string) error {
	if err := files.CheckTarget(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&0o200 == 0 {
		return fmt.Errorf("%s is protected from writing (%v): make it writable first (chmod u+w)", path, info.Mode())
	}
	return nil
}

// readOverrides reads a file of overrides. What is wrong in it is a mistake of
// the user.
func readOverrides(ctx context.Context, path string) (*combine.Overrides, error) {
	o, err := files.Read(ctx, path, combine.ParseOverrides)
	if errors.Is(err, combine.ErrOverrides) {
		err = terminal.Usage(err)
	}
	return o, err
}
