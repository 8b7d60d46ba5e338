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

	"github.com/akin-search/akin/simmatrix"
)

// A UsageError is a mistake in flags, arguments or the configuration.
type UsageError struct{ error }

// Usage marks an error as a [UsageError]; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Unwrap returns the marked error.
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

// NoArgs refuses arguments as a [UsageError].
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("%q is not expected; see %s --help", args[0], cmd.CommandPath()))
	}
	return nil
}

// ExactArgs requires n arguments, or returns a [UsageError].
func ExactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return Usage(cobra.ExactArgs(n)(cmd, args)) }
}

// Visible returns text, quoted if it has characters that would move the cursor;
// of an expression its terms with blanks between them.
func Visible(text string) string {
	text = simmatrix.Spelled(text)
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// CommandLine returns arguments quoted for a shell.
func CommandLine(args ...string) string {
	quoted := make([]string, len(args))
	for k, arg := range args {
		quoted[k] = arg
		if arg == "" || strings.ContainsAny(arg, " *?[]<>|&;()$`\"\\'{}~#!\t\n") {
			quoted[k] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Some returns the first names of a list, made [Visible].
func Some(names []string) string {
	const most = 10
	text := Visible(strings.Join(names[:min(len(names), most)], ", "))
	if len(names) > most {
		text += ", …"
	}
	return text
}

// Print prints a result as a table or as JSON.
func Print(w io.Writer, asJSON bool, result any, table func(w io.Writer) error) error {
	if !asJSON {
		return table(w)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

// Progress shows the progress of long work: a bar on a terminal, else a line
// per stage and every five seconds. One goroutine uses it.
type Progress struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
	stage    string
	began    time.Time // the stage
	reported time.Time
}

const reportEvery = 5 * time.Second

// NewProgress returns a Progress that writes to w.
func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	return &Progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// Step reports that done of total parts of the stage are done; a total of 0 is
// unknown. It is a [simmatrix.Progress].
func (p *Progress) Step(stage string, done, total int) {
	first := stage != p.stage
	if first {
		p.End()
		p.stage, p.began = stage, time.Now()
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
	if now := time.Now(); first || done == total || now.Sub(p.reported) >= reportEvery {
		p.reported = now
		switch {
		case total > 0:
			fmt.Fprintf(p.w, "%s: %d of %d%s\n", stage, done, total, left(now.Sub(p.began), done, total))
		case done > 0:
			fmt.Fprintf(p.w, "%s: %d\n", stage, done)
		default:
			fmt.Fprintln(p.w, stage)
		}
	}
}

// left says how long a stage will still take that has done a part of its work.
func left(elapsed time.Duration, done, total int) string {
	if elapsed < reportEvery || done <= 0 || done >= total {
		return ""
	}
	rest := time.Duration(float64(elapsed) * float64(total-done) / float64(done))
	return fmt.Sprintf(", about %v left", rest.Round(time.Second))
}

// End ends the current stage. It may be called twice.
func (p *Progress) End() {
	if p.bar != nil {
		_ = p.bar.Exit() // as above
		fmt.Fprintln(p.w)
		p.bar = nil
	}
	p.stage = ""
}

// Tell ends the current stage and prints a line.
func (p *Progress) Tell(format string, args ...any) {
	p.End()
	fmt.Fprintf(p.w, format+"\n", args...)
}
