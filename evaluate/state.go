package evaluate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxStateLine is more bytes than ten arms' answers with 10,000 hits have.
const maxStateLine = 64 << 20

// A Plan says what a run does, part by part: runs with the same plan and the
// same cluster have the same rankings.
type Plan map[string]string

// WriteState writes a line of a state file: a [Plan], then each [Answered].
func WriteState(w io.Writer, line any) error {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

// ReadState reads the state file of an interrupted run with this plan. It
// returns the answers by query, and how many bytes are whole lines: a run that
// was killed may have left half a one. An empty file has none.
func ReadState(r io.Reader, plan Plan) (known map[string]Answered, whole int64, err error) {
	in := bufio.NewReader(r)
	known = map[string]Answered{}
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return known, whole, plan.checkHalf(n, line)
		}
		if err == nil && n == 1 {
			var before Plan
			if err = json.Unmarshal(line, &before); err == nil {
				err = plan.check(before)
			}
		} else if err == nil {
			var a Answered
			err = json.Unmarshal(line, &a)
			known[a.Query] = a
		}
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", n, err)
		}
		whole += int64(len(line))
	}
}

// readLine returns a line with its end, and io.EOF where there is no whole one.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > maxStateLine:
			return nil, errors.New("no state of an evaluation: the line is too long")
		}
	}
}

// checkHalf reports what is no beginning of the line n. Where that is the first
// one it is the plan's, or of another file that must not be written to.
func (p Plan) checkHalf(n int, line []byte) error {
	first, err := json.Marshal(p)
	if err == nil && n == 1 && !bytes.HasPrefix(first, line) {
		err = errors.New("line 1: no state of an evaluation: name another file")
	}
	return err
}

// check reports what the state file was begun with that the plan has not.
func (p Plan) check(before Plan) error {
	var other []string
	for _, part := range slices.Sorted(maps.Keys(p)) {
		if p[part] != before[part] {
			other = append(other, part)
		}
	}
	if other == nil {
		return nil
	}
	return fmt.Errorf("it was begun with other %s: name another file, or remove this one", strings.Join(other, ", "))
}
