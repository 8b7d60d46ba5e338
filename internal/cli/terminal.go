package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A UsageError is an error in what the user wrote: flags, arguments,
// configuration.
type UsageError struct{ error }

// Usage marks an error, if there is one, as one of usage.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Unwrap returns the error that is marked.
func (e UsageError) Unwrap() error { return e.error }

// Group makes cmd a command that only holds others.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		meant := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			meant = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
		}
		return Usage(fmt.Errorf("no command %q%s; see %s --help", args[0], meant, cmd.CommandPath()))
	}
	cmd.Args, cmd.SuggestionsMinimumDistance = cobra.ArbitraryArgs, 2
	cmd.AddCommand(commands...)
	return cmd
}

// NoArgs asks for no arguments; anything else is a mistake of the user.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("%q is not expected; see %s --help", args[0], cmd.CommandPath()))
	}
	return nil
}

// ExactArgs asks for n arguments; anything else is a mistake of the user.
func ExactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return Usage(cobra.ExactArgs(n)(cmd, args)) }
}

// Visible returns text as it can be printed in a line of a table: quoted where
// it has what would move the cursor.
func Visible(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// CommandLine returns arguments as a shell takes them.
func CommandLine(args ...string) string {
	quoted := make([]string, len(args))
	for k, arg := range args {
		if quoted[k] = arg; arg == "" || strings.ContainsAny(arg, " *?[]<>|&;()$`\"\\'{}~#!\t\n") {
			quoted[k] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Some returns how a list of names begins, as Visible does.
func Some(names []string) string {
	const most = 10
	text := Visible(strings.Join(names[:min(len(names), most)], ", "))
	if len(names) > most {
		text += ", …"
	}
	return text
}

// Print prints a result: its table, or itself as JSON.
func Print(w io.Writer, asJSON bool, result any, table func(w io.Writer) error) error {
	if !asJSON {
		return table(w)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

// Progress shows how far long work has come: a bar on a terminal, elsewhere a
// line for each stage and for every five seconds. It is used by one goroutine.
type Progress struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
	stage    string
	reported time.Time
}

// NewProgress returns one that is shown on w.
func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	return &Progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// Step says that done of total parts of the stage are done; a total of 0 is
// unknown. It has the form of a [simmatrix.Progress].
func (p *Progress) Step(stage string, done, total int) {
	first := stage != p.stage
	if first {
		p.End()
		p.stage = stage
	}
	if p.terminal {
		if total <= 0 {
			total = -1 // a spinner
		}
		if first {
			p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.stage),
				progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(true))
		}
		if p.bar.GetMax() != total {
			p.bar.ChangeMax(total)
		}
		_ = p.bar.Set(done) // fails only beyond the end, and then shows the end
		return
	}
	if now := time.Now(); first || done == total || now.Sub(p.reported) >= 5*time.Second {
		p.reported = now
		switch {
		case total > 0:
			fmt.Fprintf(p.w, "%s: %d of %d\n", stage, done, total)
		case done > 0:
			fmt.Fprintf(p.w, "%s: %d\n", stage, done)
		default:
			fmt.Fprintln(p.w, stage)
		}
	}
}

// End closes the stage under way. It may be called twice.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Exit() // as above
		fmt.Fprintln(p.w)
		p.bar = nil
	}
	p.stage = ""
}

// Tell closes the stage under way and prints a line.
func (p *Progress) Tell(format string, args ...any) {
	p.End()
	fmt.Fprintf(p.w, format+"\n", args...)
}
