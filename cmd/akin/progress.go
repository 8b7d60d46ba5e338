package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// linesEvery is how often a line of progress appears where there is no
// terminal to draw a bar on.
const linesEvery = 5 * time.Second

// progress shows how far long work has come: a bar on a terminal, elsewhere a
// line for each stage and for every few seconds. It is used by one goroutine.
type progress struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
	stage    string
	told     time.Time
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// step tells that done of total parts of the stage are done; a total of 0 is
// unknown. It has the form of a [simmatrix.Progress].
func (p *progress) step(stage string, done, total int) {
	first := stage != p.stage
	if first {
		p.end()
		p.stage = stage
	}
	if p.terminal {
		p.draw(first, done, total)
		return
	}
	if now := time.Now(); first || done == total || now.Sub(p.told) >= linesEvery {
		p.told = now
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

func (p *progress) draw(first bool, done, total int) {
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
}

// end closes the stage under way. It may be called twice.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit() // as above
		fmt.Fprintln(p.w)
		p.bar = nil
	}
	p.stage = ""
}

// tell closes the stage under way and prints a line.
func (p *progress) tell(format string, args ...any) {
	p.end()
	fmt.Fprintf(p.w, format+"\n", args...)
}
