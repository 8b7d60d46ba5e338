// Gotest runs go test with its arguments, prints what go test prints, and then
// the slowest tests. Its exit status is that of go test.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// listed is how many of the slowest tests are printed.
const listed = 10

// An event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string

	Elapsed float64 // seconds
}

// A report prints the output of what fails and collects how long tests take.
type report struct {
	out io.Writer
	// output is what tests, and packages under the name "", have printed.
	output map[string]map[string]*bytes.Buffer // by package and test
	tests  []event                             // that have ended
}

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r := report{out: os.Stdout, output: map[string]map[string]*bytes.Buffer{}}
	err = errors.Join(r.read(stdout), cmd.Wait())
	r.printSlowest()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// read goes through the lines of go test -json.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			r.note(e)
		} else {
			r.out.Write(line) // what go test says outside of JSON
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// note takes one event. What passes is forgotten, what fails is printed.
func (r *report) note(e event) {
	switch e.Action {
	case "build-output":
		io.WriteString(r.out, e.Output)
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return // that a test starts, waits or goes on
		}
		tests := r.output[e.Package]
		if tests == nil {
			tests = map[string]*bytes.Buffer{}
			r.output[e.Package] = tests
		}
		if tests[e.Test] == nil {
			tests[e.Test] = &bytes.Buffer{}
		}
		tests[e.Test].WriteString(e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e)
			return
		}
		if !strings.Contains(e.Test, "/") {
			r.tests = append(r.tests, e)
		}
		if output := r.output[e.Package][e.Test]; e.Action == "fail" && output != nil {
			output.WriteTo(r.out)
		}
		delete(r.output[e.Package], e.Test)
	}
}

// endPackage prints the last line of a package, and all there is where it fails:
// also the output of tests that had not ended.
func (r *report) endPackage(e event) {
	tests := r.output[e.Package]
	delete(r.output, e.Package)
	own := tests[""]
	delete(tests, "")
	if e.Action == "fail" {
		for _, output := range tests {
			output.WriteTo(r.out)
		}
	}
	if own == nil {
		return
	}
	for line := range strings.Lines(own.String()) {
		if e.Action == "fail" || strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? ") {
			io.WriteString(r.out, line)
		}
	}
}

func (r *report) printSlowest() {
	slices.SortStableFunc(r.tests, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	fmt.Fprintln(r.out, "\nThe slowest tests:")
	for _, e := range r.tests[:min(listed, len(r.tests))] {
		fmt.Fprintf(r.out, "%7.1f s  %s %s\n", e.Elapsed, path.Base(e.Package), e.Test)
	}
}
