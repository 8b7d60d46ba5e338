// Gotest runs go test with its arguments, prints what go test prints, then the
// tests that were skipped, by reason, the slowest tests, and which packages to
// install for the skipped ones. Its exit status is that of go test.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
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
	output  map[string]map[string]*bytes.Buffer // by package and test
	tests   []event                             // that have ended and have no subtests: others may wait for theirs
	parents map[string]bool                     // by package and test
	skipped map[string][]string                 // names of tests by reason
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
	r := report{
		out: os.Stdout, output: map[string]map[string]*bytes.Buffer{}, parents: map[string]bool{}, skipped: map[string][]string{},
	}
	err = errors.Join(r.read(stdout), cmd.Wait())
	r.printSkipped()
	r.printSlowest()
	r.printMissing()
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
		// Subtests end before the test that they are part of.
		if slash := strings.LastIndexByte(e.Test, '/'); slash >= 0 {
			r.parents[e.Package+" "+e.Test[:slash]] = true
		}
		if !r.parents[e.Package+" "+e.Test] {
			r.tests = append(r.tests, e)
		}
		output := r.output[e.Package][e.Test]
		if e.Action == "fail" && output != nil {
			output.WriteTo(r.out)
		}
		// Seeds that a fuzz target does not take are no tests, and e2e runs the tests
		// of packages that need a real engine.
		if e.Action == "skip" && output != nil && !strings.HasPrefix(e.Test, "Fuzz") && !strings.Contains(output.String(), "AKIN_E2E_ENGINE_URL") {
			reason := "no reason given"
			if m := skipReason.FindStringSubmatch(output.String()); m != nil {
				reason = m[1]
			}
			r.skipped[reason] = append(r.skipped[reason], path.Base(e.Package)+" "+e.Test)
		}
		delete(r.output[e.Package], e.Test)
	}
}

// skipReason is what a skipped test has printed behind its place in the source.
var skipReason = regexp.MustCompile(`(?m)^ *\S+\.go:\d+: *(\S.*)$`)

// printSkipped prints why tests were skipped, and the first of the tests.
func (r *report) printSkipped() {
	if len(r.skipped) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nSkipped tests:")
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		tests := r.skipped[reason]
		fmt.Fprintf(r.out, "  %s: %s", reason, tests[0])
		if more := len(tests) - 1; more > 0 {
			fmt.Fprintf(r.out, " and %d more", more)
		}
		fmt.Fprintln(r.out)
	}
}

// programs are what tests need besides Go: the word for it in the reasons of
// skipped tests, the program, and the package of Debian and Ubuntu that has it.
var programs = []struct{ word, program, pkg string }{
	{"redis-server", "redis-server", "redis-server"},
	{"JDK", "javac", "openjdk-17-jdk-headless"},
	{"Maven", "mvn", "maven"},
	{"Chromium", "chromium", "chromium"},
	{"systemd-analyze", "systemd-analyze", "systemd"},
	{"python3", "python3", "python3-venv"},
	{"node ", "npm", "nodejs npm"},
	{"ruby", "ruby", "ruby"},
}

// printMissing prints what to install for the tests that were skipped because a
// program is missing.
func (r *report) printMissing() {
	var packages []string
	without := map[string]int{} // tests by the reason why they are skipped
	for _, p := range programs {
		if _, err := exec.LookPath(p.program); err == nil {
			continue
		}
		for reason, tests := range r.skipped {
			if strings.Contains(reason, p.word) {
				without[reason], packages = len(tests), append(packages, p.pkg)
			}
		}
	}
	if len(packages) > 0 {
		sum := 0
		for _, n := range without {
			sum += n
		}
		slices.Sort(packages)
		fmt.Fprintf(r.out, "\nFor the %d tests that miss a program: apt-get install %s\n", sum, strings.Join(slices.Compact(packages), " "))
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
