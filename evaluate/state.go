package evaluate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxKeptLine is more bytes than an answer with 10,000 hits has.
const maxKeptLine = 64 << 20

// A kept is a line of a file of answers.
type kept struct {
	Key    string `json:"key"`
	Answer Answer `json:"answer"`
}

// keptBegin is how each line begins.
const keptBegin = `{"key":"`

// WriteKept writes an answer and its key as a line.
func WriteKept(w io.Writer, key string, a Answer) error {
	line, err := json.Marshal(kept{key, a})
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// ReadKept reads the answers that runs have kept, by their keys. A run that was
// killed may have left a line without its end, which does not count. A line of
// another file is an error.
func ReadKept(r io.Reader) (map[string]Answer, error) {
	known := map[string]Answer{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxKeptLine)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if !strings.HasPrefix(line, keptBegin) && !strings.HasPrefix(keptBegin, line) {
			return nil, fmt.Errorf("line %d: no answer of an evaluation: name another file", n)
		}
		var k kept
		if json.Unmarshal([]byte(line), &k) == nil {
			known[k.Key] = k.Answer
		}
	}
	return known, lines.Err()
}
