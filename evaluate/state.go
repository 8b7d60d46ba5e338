package evaluate

import (
	"bufio"
	"bytes"
	"cmp"
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
	known = map[string]Answered{}
	var half []byte // a line without its end
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxStateLine)
	lines.Split(func(data []byte, _ bool) (int, []byte, error) {
		if end := bytes.IndexByte(data, '\n') + 1; end > 0 {
			return end, data[:end], nil
		}
		half = data
		return 0, nil, nil
	})
	n := 0
	for err == nil && lines.Scan() {
		if n++; n == 1 {
			err = plan.check(lines.Bytes())
		} else {
			var a Answered
			err = json.Unmarshal(lines.Bytes(), &a)
			known[a.Query] = a
		}
		whole += int64(len(lines.Bytes()))
	}
	if first, _ := json.Marshal(plan); n == 0 && !bytes.HasPrefix(first, half) {
		err = errors.New("no state of an evaluation: name another file")
	}
	if err = cmp.Or(err, lines.Err()); err != nil {
		return nil, 0, fmt.Errorf("line %d: %w", max(n, 1), err)
	}
	return known, whole, nil
}

// check reports what the state file was begun with, as its first line says,
// that the plan has not.
func (p Plan) check(line []byte) error {
	var before Plan
	if err := json.Unmarshal(line, &before); err != nil {
		return err
	}
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
