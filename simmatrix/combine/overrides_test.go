package combine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

func mustParseOverrides(t *testing.T, file string) *Overrides {
	t.Helper()
	o, err := ParseOverrides(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return o
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
	if diff := cmp.Diff(want, slices.Collect(o.All())); diff != "" {
		t.Error(diff)
	}
}

func TestUneditedOverridesAreWrittenAsTheyWere(t *testing.T) {
	for name, file := range map[string]string{
		"empty":              "",
		"comments and tabs":  "# a\n\n\tset  a\tb  0.90  # why\n \t\n#end",
		"windows":            "\ufeffset a b 0.5\r\n\r\n# c\r\nban a c",
		"blank lines at end": "pin a b\n\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			if o := mustParseOverrides(t, file); o.String() != file {
				t.Errorf("%q, want %q", o, file)
			}
		})
	}
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
	if !errors.Is(err, ErrOverrides) {
		t.Fatalf("error %v", err)
	}
	want := []string{
		`line 2: "frob" is not set, pin or ban`,
		"line 3: 3 words, want set TERM [->] NEIGHBOR SIMILARITY",
		"line 4: similarity 0: use ban",
		"line 5: similarity 1.5 not in (0, 1]",
		`line 6: similarity "NaN" is no decimal number`,
		`line 7: similarity "fast" is no decimal number`,
		"line 8: 4 words, want ban TERM [->] NEIGHBOR;",
		`line 9: "car" is its own neighbor`,
		`line 10: no word in double quotes: "\"car van"`,
		`line 11: no word in double quotes`,
		`line 12: term ""`,
		`line 13: term "\xff"`,
		`line 14: "car\u00a0van" has to stand in double quotes`,
		"line 15: -> stands between the terms",
		"line 16: automobile -> car has a rule in line 1: set car automobile 0.9",
		"line 17: car -> automobile has a rule in line 1",
		"line 20: more words than a rule has",
	}
	problems := strings.Split(err.Error(), "\n")[1:]
	if len(problems) != len(want) {
		t.Errorf("%d problems, want %d:\n%v", len(problems), len(want), err)
	}
	for k := range min(len(want), len(problems)) {
		if !strings.HasPrefix(problems[k], want[k]) {
			t.Errorf("problem %q, want %q", problems[k], want[k])
		}
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
		"reading":  {iotest.ErrReader(io.ErrUnexpectedEOF), io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseOverrides(tt.r)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 20_000 {
				t.Errorf("error %.200v, want %q", err, tt.want)
			}
		})
	}
	full := mustParseOverrides(t, "set a b 1\n"+strings.Repeat("\n", simmatrix.MaxOverrideLines-1))
	if err := full.Ban("a", "c", false); !errors.Is(err, ErrOverrides) {
		t.Errorf("one line too many: %v", err)
	}
	if err := full.Ban("a", "b", false); err != nil {
		t.Errorf("a rule in the place of another: %v", err)
	}
}

func TestEditsChangeOnlyTheLineConcerned(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		edit func(o *Overrides) error
		want string
	}{
		"first rule of an empty file": {
			"",
			func(o *Overrides) error { return o.Set("car", "automobile", 0.9, false) },
			"set car automobile 0.9\n",
		},
		"a new rule goes to the end, lines ending alike": {
			"# a\r\npin a b",
			func(o *Overrides) error { return o.Ban("car", "station wagon", true) },
			"# a\r\npin a b\r\nban car -> \"station wagon\"\r\n",
		},
		"comment and indentation stay": {
			"# cars\n  set  car automobile 0.9 # as desk 4 asked\nban x y\n",
			func(o *Overrides) error { return o.Set("car", "automobile", 0.8, false) },
			"# cars\n  set car automobile 0.8 # as desk 4 asked\nban x y\n",
		},
		"the order of the terms stays": {
			"set automobile car 0.9\n",
			func(o *Overrides) error { return o.Ban("car", "automobile", false) },
			"ban automobile car\n",
		},
		"a rule that is there already": {
			"set  car\tautomobile .90\n",
			func(o *Overrides) error { return o.Set("automobile", "car", 0.9, false) },
			"set  car\tautomobile .90\n",
		},
		"one way of a rule both ways": {
			"set car automobile 0.9 # x\nban x y\n",
			func(o *Overrides) error { return o.Ban("car", "automobile", true) },
			"set automobile -> car 0.9 # x\nban car -> automobile\nban x y\n",
		},
		"one way of a rule both ways that ends the file": {
			"pin car automobile",
			func(o *Overrides) error { return o.Ban("automobile", "car", true) },
			"pin car -> automobile\nban automobile -> car\n",
		},
		"both ways for two rules of one way": {
			"ban b -> a # x\n\nban a -> b # y\npin c d\n",
			func(o *Overrides) error { return o.Set("a", "b", 1, false) },
			"set a b 1 # x\n\npin c d\n",
		},
		"remove both ways": {
			"# a\nset a b 0.5\nban c -> d\nban d -> c\n",
			func(o *Overrides) error {
				if !o.Remove("b", "a", false) || !o.Remove("c", "d", false) || o.Remove("c", "d", false) {
					return errors.New("Remove")
				}
				return nil
			},
			"# a\n",
		},
		"remove one way": {
			"set a b 0.5\nban c d\n",
			func(o *Overrides) error {
				if !o.Remove("a", "b", true) || o.Remove("a", "b", true) || !o.Remove("d", "c", true) {
					return errors.New("Remove")
				}
				return nil
			},
			"set b -> a 0.5\nban c -> d\n",
		},
		"a byte order mark stays first": {
			"\ufeffset a b 0.5\n",
			func(o *Overrides) error { return o.Pin("a", "b", false) },
			"\ufeffpin a b\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := mustParseOverrides(t, tt.file)
			if err := tt.edit(o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, o.String()); diff != "" {
				t.Error(diff)
			}
			again := mustParseOverrides(t, o.String())
			if diff := cmp.Diff(slices.Collect(o.All()), slices.Collect(again.All())); diff != "" {
				t.Errorf("read again: %s", diff)
			}
		})
	}
}

func TestRulesThatNoMatrixCouldHoldAreRefused(t *testing.T) {
	o := mustParseOverrides(t, "set a b 0.5\n")
	for name, err := range map[string]error{
		"empty term":   o.Set("a", "", 0.5, false),
		"long term":    o.Pin(strings.Repeat("a", simmatrix.MaxTermBytes+1), "b", false),
		"not UTF-8":    o.Ban("a", "\xff", true),
		"itself":       o.Ban("a", "a", true),
		"zero":         o.Set("a", "b", 0, false),
		"negative":     o.Set("a", "b", -1, false),
		"above 1":      o.Set("a", "b", 1.0001, false),
		"not a number": o.Set("a", "b", math.NaN(), false),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if o.String() != "set a b 0.5\n" {
		t.Errorf("changed to %q", o.String())
	}
}

func TestOverridesProtectWhatTheySetOrPin(t *testing.T) {
	o := mustParseOverrides(t, "set a b 0.5\npin a -> c\nban a d\n")
	for d, want := range map[direction]bool{
		{"a", "b"}: true, {"b", "a"}: true, {"a", "c"}: true, {"c", "a"}: false, {"a", "d"}: false, {"x", "y"}: false,
	} {
		if got := o.Protects(d.term, d.neighbor); got != want {
			t.Errorf("Protects(%s, %s) = %t", d.term, d.neighbor, got)
		}
	}
	if (&Overrides{}).Protects("a", "b") {
		t.Error("no rules protect something")
	}
}

func FuzzParseOverrides(f *testing.F) {
	f.Add("# a\nset car automobile 0.9\nset car -> vehicle .5 # b\npin a \"b c\"\r\nban \"\\u00a0\" d")
	f.Add("\ufeffset a b 1e-5\nset b -> c 0x1p-2\n\n")
	f.Fuzz(func(t *testing.T, file string) {
		o, err := ParseOverrides(strings.NewReader(file))
		if err != nil {
			if !errors.Is(err, ErrOverrides) {
				t.Errorf("error %v", err)
			}
			return
		}
		if o.String() != file {
			t.Errorf("%q written as %q", file, o.String())
		}
		var canonical strings.Builder
		for r := range o.All() {
			fmt.Fprintln(&canonical, r.String())
		}
		again, err := ParseOverrides(strings.NewReader(canonical.String()))
		if err != nil {
			t.Fatalf("%q: %v", canonical.String(), err)
		}
		if diff := cmp.Diff(slices.Collect(o.All()), slices.Collect(again.All())); diff != "" {
			t.Error(diff)
		}
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

// An edit changes what is ruled of the entries that it is on and of no other,
// and what it writes can be read.
func FuzzEditsOfOverrides(f *testing.F) {
	f.Add("set a b 0.5\nban a -> c\npin c -> a # x", "a", "c", 0.25, uint8(0))
	f.Add("ban b -> a\r\nban a -> b", "b", "a", 1.0, uint8(5))
	f.Add("pin \"x y\" b", "b", "x y", 0.0, uint8(7))
	f.Fuzz(func(t *testing.T, file, term, neighbor string, similarity float64, edit uint8) {
		o, err := ParseOverrides(strings.NewReader(file))
		if err != nil {
			return
		}
		want := entriesRuled(o)
		rule := Override{Term: term, Neighbor: neighbor, OneWay: edit&1 == 1}
		switch edit >> 1 & 3 {
		case 0:
			rule.Action, rule.Similarity = ActionSet, similarity
			err = o.Set(term, neighbor, similarity, rule.OneWay)
		case 1:
			rule.Action = ActionPin
			err = o.Pin(term, neighbor, rule.OneWay)
		case 2:
			rule.Action = ActionBan
			err = o.Ban(term, neighbor, rule.OneWay)
		case 3:
			o.Remove(term, neighbor, rule.OneWay)
		}
		for _, d := range rule.directions() {
			switch {
			case rule.Action == "":
				delete(want, d)
			case err == nil:
				want[d] = Override{Action: rule.Action, Similarity: rule.Similarity}
			}
		}
		again, err := ParseOverrides(strings.NewReader(o.String()))
		if err != nil {
			t.Fatalf("%q: %v", o.String(), err)
		}
		if diff := cmp.Diff(want, entriesRuled(again)); diff != "" {
			t.Error(diff)
		}
		for d, r := range want {
			if again.Protects(d.term, d.neighbor) != (r.Action != ActionBan) {
				t.Errorf("Protects(%q, %q)", d.term, d.neighbor)
			}
		}
	})
}

func TestSimilaritiesOfOverridesAreDecimal(t *testing.T) {
	for text, want := range map[string]string{
		"0.1_0": "no decimal", "0x1p-2": "no decimal", "Inf": "no decimal", "-1": "not in (0, 1]", "1e-1": "", ".5": "",
	} {
		_, err := ParseOverrides(strings.NewReader("set a b " + text))
		if (err != nil) != (want != "") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOverridesInUTF16AreNamedAsThat(t *testing.T) {
	for _, file := range []string{"\xff\xfes\x00e\x00t\x00", "\xfe\xff\x00s\x00e\x00t", "\xff\xfe"} {
		if _, err := ParseOverrides(strings.NewReader(file)); !errors.Is(err, ErrOverrides) || !strings.Contains(fmt.Sprint(err), "UTF-16") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// Set, Pin and Ban put a rule.
func (o *Overrides) Set(term, neighbor string, similarity float64, oneWay bool) error {
	return o.Put(Override{Action: ActionSet, Term: term, Neighbor: neighbor, OneWay: oneWay, Similarity: similarity})
}

func (o *Overrides) Pin(term, neighbor string, oneWay bool) error {
	return o.Put(Override{Action: ActionPin, Term: term, Neighbor: neighbor, OneWay: oneWay})
}

func (o *Overrides) Ban(term, neighbor string, oneWay bool) error {
	return o.Put(Override{Action: ActionBan, Term: term, Neighbor: neighbor, OneWay: oneWay})
}

func TestOverridesNameWordsAsPeopleWriteThem(t *testing.T) {
	m, err := simmatrix.New(simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "kidnei", Form: "kidney", Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 0.5}}},
		{Term: "renal"},
		{Term: "ga", Form: "gas"},
		{Term: "oil", Form: "oils"},
		{Term: "petrol"},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := mustParseOverrides(t, "# by hand\nban kidney -> renal # no\nset gas petrol 0.9\npin ga oils\nset kidnay livers 0.5\n")
	got, unknown, err := o.Resolve(m)
	if err != nil {
		t.Fatal(err)
	}
	want := "# by hand\nban kidnei -> renal # no\nset ga petrol 0.9\npin ga oil\nset kidnay livers 0.5\n"
	if diff := cmp.Diff(want, got.String()); diff != "" || !slices.Equal(unknown, []string{"kidnay", "livers"}) {
		t.Errorf("unknown %q (-want +got):\n%s", unknown, diff)
	}
	if !got.Protects("ga", "petrol") || got.Protects("kidnei", "renal") {
		t.Error("the rules are not those of the terms")
	}
	if again, _, err := got.Resolve(m); err != nil || again.String() != want {
		t.Errorf("resolved twice: %v, %v", again, err)
	}
	out, counts, err := got.Apply(m)
	if err != nil || counts.Banned != 1 || out.Row("kidnei").Len() != 0 || out.Row("ga").Len() != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	for name, file := range map[string]string{
		"two rules for one entry": "set kidney renal 0.5\nban kidnei renal\n",
		"a word and its term":     "set gas ga 0.5\n",
	} {
		if _, _, err := mustParseOverrides(t, file).Resolve(m); !errors.Is(err, ErrOverrides) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
