package combine

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func mustParseOverrides(t *testing.T, file string) *Overrides {
	t.Helper()
	return check.Got(ParseOverrides(strings.NewReader(file)))(t)
}

func TestOverridesAreReadFromLines(t *testing.T) {
	o := mustParseOverrides(t, `# rental desk, 2026
set	car automobile 0.9
  set car -> vehicle .5  # one way

pin c# "#c"
ban car -> "station wagon"
ban "\"" "->"
`)
	want := []Override{
		{Action: ActionSet, Term: "car", Neighbor: "automobile", Similarity: 0.9},
		{Action: ActionSet, Term: "car", Neighbor: "vehicle", OneWay: true, Similarity: 0.5},
		{Action: ActionPin, Term: "c#", Neighbor: "#c"},
		{Action: ActionBan, Term: "car", Neighbor: "station wagon", OneWay: true},
		{Action: ActionBan, Term: `"`, Neighbor: "->"},
	}
	check.Equal(t, want, slices.Collect(o.All()))
}

func TestEveryProblemOfAnOverridesFileIsNamedWithItsLine(t *testing.T) {
	_, err := ParseOverrides(strings.NewReader(strings.Join([]string{
		"set car automobile 0.9",
		"frob car automobile",
		"set car van",
		"set car van 0",
		"set car van 1.5",
		"set car van NaN",
		"set car van fast",
		"set car van 0.1_0",
		"set car van 0x1p-2",
		"ban car van 0.5",
		`pin car "car"`,
		`ban "car van`,
		`ban "car"van x`,
		`ban "" x`,
		`ban "\xff" x`,
		"ban car\u00a0van x",
		"ban -> car van",
		"ban automobile -> car",
		"pin car automobile",
		"set car -> van 0.5",
		"ban car rental",
		"set car van -> truck 0.5 fast",
	}, "\n")))
	check.Must(t, errors.Is(err, ErrOverrides), "error %v", err)
	want := []string{
		`line 2: "frob" is not set, pin or ban`,
		"line 3: 3 words, want set TERM [->] NEIGHBOR SIMILARITY",
		"line 4: similarity 0: use ban",
		"line 5: similarity 1.5 not in (0, 1]",
		`line 6: similarity "NaN" is no decimal number`,
		`line 7: similarity "fast" is no decimal number`,
		`line 8: similarity "0.1_0" is no decimal number`,
		`line 9: similarity "0x1p-2" is no decimal number`,
		"line 10: 4 words, want ban TERM [->] NEIGHBOR;",
		`line 11: "car" is its own neighbor`,
		`line 12: no word in double quotes: "\"car van"`,
		`line 13: no word in double quotes`,
		`line 14: term ""`,
		`line 15: term "\xff"`,
		`line 16: "car\u00a0van" has to stand in double quotes`,
		"line 17: -> stands between the terms",
		"line 18: automobile -> car has a rule in line 1: set car automobile 0.9",
		"line 19: car -> automobile has a rule in line 1",
		"line 22: more words than a rule has",
	}
	problems := strings.Split(err.Error(), "\n")[1:]
	check.Equal(t, len(want), len(problems), err)
	for k := range min(len(want), len(problems)) {
		check.That(t, strings.HasPrefix(problems[k], want[k]), "problem %q, want %q", problems[k], want[k])
	}
}

func TestOverridesFilesAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		r    io.Reader
		want string
	}{
		"lines":    {strings.NewReader(strings.Repeat("\n", simmatrix.MaxOverrideLines+1)), "more than 100000 lines"},
		"bytes":    {strings.NewReader(strings.Repeat("#", maxOverrideBytes+1)), "more than 33554432 bytes"},
		"problems": {strings.NewReader(strings.Repeat("x\n", simmatrix.MaxOverrideLines)), "and more from line 101 on"},
		"UTF-16":   {strings.NewReader("\xff\xfes\x00e\x00t\x00"), "UTF-16"},
		"reading":  {iotest.ErrReader(io.ErrUnexpectedEOF), io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseOverrides(tt.r)
			check.That(t, err != nil && strings.Contains(err.Error(), tt.want) && len(err.Error()) <= 20_000, "error %.200v, want %q", err, tt.want)
		})
	}
}

func TestOverridesProtectWhatTheySetOrPin(t *testing.T) {
	o := mustParseOverrides(t, "set a b 0.5\npin a -> c\nban a d\n")
	for d, want := range map[direction]bool{
		{"a", "b"}: true, {"b", "a"}: true, {"a", "c"}: true, {"c", "a"}: false, {"a", "d"}: false, {"x", "y"}: false,
	} {
		check.Equal(t, want, o.Protects(d.term, d.neighbor), d.term, d.neighbor)
	}
	check.That(t, !(&Overrides{}).Protects("a", "b"), "no rules protect something")
}

func FuzzParseOverrides(f *testing.F) {
	f.Add("# a\nset car automobile 0.9\nset car -> vehicle .5 # b\npin a \"b c\"\r\nban \"\\u00a0\" d")
	f.Add("\ufeffset a b 1e-5\nset b -> c 0x1p-2\n\n")
	f.Fuzz(func(t *testing.T, file string) {
		o, err := ParseOverrides(strings.NewReader(file))
		if err != nil {
			check.Error(t, ErrOverrides, err)
			return
		}
		var canonical strings.Builder
		for r := range o.All() {
			fmt.Fprintln(&canonical, r.String())
		}
		again, err := ParseOverrides(strings.NewReader(canonical.String()))
		check.Must(t, err == nil, "%q: %v", canonical.String(), err)
		check.Equal(t, slices.Collect(o.All()), slices.Collect(again.All()))
	})
}

// entriesRuled returns what is ruled of each entry.
func entriesRuled(o *Overrides) map[direction]Override {
	ruled := map[direction]Override{}
	for r := range o.All() {
		for _, d := range r.directions() {
			ruled[d] = Override{Action: r.Action, Similarity: r.Similarity}
		}
	}
	return ruled
}

// Set, Pin and Ban add a rule.
func (o *Overrides) Set(term, neighbor string, similarity float64, oneWay bool) error {
	return o.Add(Override{Action: ActionSet, Term: term, Neighbor: neighbor, OneWay: oneWay, Similarity: similarity})
}

func (o *Overrides) Pin(term, neighbor string, oneWay bool) error {
	return o.Add(Override{Action: ActionPin, Term: term, Neighbor: neighbor, OneWay: oneWay})
}

func (o *Overrides) Ban(term, neighbor string, oneWay bool) error {
	return o.Add(Override{Action: ActionBan, Term: term, Neighbor: neighbor, OneWay: oneWay})
}

func TestOverridesNameWordsAsPeopleWriteThem(t *testing.T) {
	m, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "kidnei", Form: "kidney", Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 0.5}}},
		{Term: "renal"},
		{Term: "ga", Form: "gas"},
		{Term: "oil", Form: "oils"},
		{Term: "petrol"},
	})
	check.OK(t, err)
	o := mustParseOverrides(t, "# by hand\nban kidney -> renal # no\nset gas petrol 0.9\npin ga oils\nban kidnay livers\n")
	got, unknown, err := o.Resolve(m, nil)
	check.OK(t, err)
	written := func(o *Overrides) (rules []string) {
		for r := range o.All() {
			rules = append(rules, r.String())
		}
		return rules
	}
	want := []string{"ban kidnei -> renal", "set ga petrol 0.9", "pin ga oil", "ban kidnay livers"}
	diff := cmp.Diff(want, written(got))
	check.That(t, diff == "" && slices.Equal(unknown, []string{"kidnay", "livers"}), "unknown %q (-want +got):\n%s", unknown, diff)
	check.That(t, got.Protects("ga", "petrol") && !got.Protects("kidnei", "renal"), "the rules are not those of the terms")
	if again, _, err := got.Resolve(m, nil); err != nil || !slices.Equal(written(again), want) {
		t.Errorf("resolved twice: %v, %v", again, err)
	}
	out, counts, err := got.Apply(m)
	check.That(t, err == nil && counts.Banned == 1 && out.Row("kidnei").Len() == 0 && out.Row("ga").Len() == 1, "%+v, %v", counts, err)
	analyzed := map[string][]string{"e-mail": {"\x1fe\x1fmail"}, "cars": {"cars", "car"}, "livers": {"liver"}, "gas": {"other"}, "zoo": {"zoo"}, "cab": {"car"}}
	got, unknown, err = mustParseOverrides(t, "set e-mail gas 1\nban cars -> livers\nset zoo gas 0.5\nset cab cars 1\n").Resolve(m, analyzed)
	check.OK(t, err)
	check.Equal(t, []string{`set "\x1fe\x1fmail" ga 1`, "ban cars -> liver", "ban car -> liver", "set zoo ga 0.5", "set car cars 1"}, written(got))
	check.Equal(t, []string{"cab", "cars", "livers", "zoo"}, unknown)
	for file, words := range map[string][]string{"set gas kidnay 0.5\n": {"kidnay", "did you mean kidney? "}, "set \"gas petrol\" \"gas lamp\" 1\n": {`"gas lamp"`}} {
		_, _, err := mustParseOverrides(t, file).Resolve(m, nil)
		for _, word := range append(words, "no search looks up", "give --cluster") {
			check.Message(t, word, err)
		}
	}
	_, _, err = mustParseOverrides(t, "set gas the 0.5\n").Resolve(m, map[string][]string{"the": {}})
	check.Message(t, "makes no term of it", err)
	for name, file := range map[string]string{
		"two rules for one entry": "set kidney renal 0.5\nban kidnei renal\n",
		"a word and its term":     "set gas ga 0.5\n",
	} {
		_, _, err := mustParseOverrides(t, file).Resolve(m, nil)
		check.That(t, errors.Is(err, ErrOverrides) && strings.Contains(err.Error(), "line "), "%s: %v", name, err)
	}
}
