// Package record holds what the programs of this module share: their
// arguments and the document that they print.
package record

import (
	"encoding/json"
	"fmt"
	"os"
)

// A Fixture is what a program puts into its index.
type Fixture struct {
	Definition json.RawMessage
	Documents  []Document
}

// A Document is a document of the fixture.
type Document struct {
	ID     string
	Fields json.RawMessage
}

// Arguments returns the address of the search API, the name of the index and
// its content.
func Arguments() (url, index string, fixture Fixture) {
	if len(os.Args) != 4 {
		exit("usage: URL INDEX FIXTURE")
	}
	content, err := os.ReadFile(os.Args[3])
	if err != nil {
		exit(err)
	}
	if err := json.Unmarshal(content, &fixture); err != nil {
		exit(err)
	}
	return os.Args[1], os.Args[2], fixture
}

// A Failure is an error of a client: its class, and the answer that it stands
// for where there is one.
type Failure struct {
	Class  string `json:"class"`
	Status int    `json:"status,omitempty"`
	Body   any    `json:"body,omitempty"`
}

type step struct {
	Step   string   `json:"step"`
	Result any      `json:"result,omitempty"`
	Error  *Failure `json:"error,omitempty"`
}

// A Recorder calls functions and keeps what they return.
type Recorder struct {
	// Describe says what an error of the client holds.
	Describe func(error) Failure

	steps []step
}

// Step calls a function and keeps what it returns under a name.
func (r *Recorder) Step(name string, call func() (any, error)) {
	s := step{Step: name}
	result, err := call()
	if err != nil {
		failure := r.Describe(err)
		s.Error = &failure
	} else {
		s.Result = result
	}
	r.steps = append(r.steps, s)
}

// Print prints what was kept.
func (r *Recorder) Print() {
	if err := json.NewEncoder(os.Stdout).Encode(r.steps); err != nil {
		exit(err)
	}
}

// Must returns v, and ends the program where there is an error.
func Must[T any](v T, err error) T {
	if err != nil {
		exit(err)
	}
	return v
}

func exit(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
