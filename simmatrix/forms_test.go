package simmatrix

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
)

// inForms gives every other row a form of some bytes.
func inForms(rows []TermRow) []TermRow {
	for i := range rows {
		if i%2 == 0 {
			rows[i].Form = rows[i].Term + strings.Repeat("s", 1+i%7)
		}
	}
	return rows
}

func TestFileWithFormsHasTheDocumentedBytes(t *testing.T) {
	rows := []TermRow{{Term: "ga", Form: "gas"}, {Term: "oil", Form: "oil"}}
	file := encoded(t, mustNew(t, Meta{}, rows))
	plain := encoded(t, mustNew(t, Meta{}, []TermRow{{Term: "ga"}, {Term: "oil"}}))
	header := func(f []byte) int { return len(fileMagic) + 8 + int(binary.LittleEndian.Uint32(f[len(fileMagic)+4:])) }
	body, plainBody := file[header(file):len(file)-checksumSize], plain[header(plain):len(plain)-checksumSize]
	want := append(bytes.Clone(plainBody), "\x03\x00gas"...)
	check.That(t, bytes.Equal(body, want), "sections %q, want %q", body, want)
	if file[len(fileMagic)] != 2 || plain[len(fileMagic)] != 1 {
		t.Errorf("versions %d with forms and %d without, want 2 and 1", file[len(fileMagic)], plain[len(fileMagic)])
	}
	check.That(t, bytes.Contains(file, []byte(`"forms":1,`)) && !bytes.Contains(plain, []byte("forms")), "the headers do not count the forms")
}

// formFile returns a file of one term with a form of any bytes.
func formFile(version uint32, count, form string, length byte) []byte {
	return otherFormsFile(version, count, "", form, length)
}

// otherFormsFile is formFile with other counts in the header after that of forms.
func otherFormsFile(version uint32, count, counts, form string, length byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(fileMagic), version)
	header := `{"source":"","docs":0,"terms":1,"forms":` + count + counts + `,"non_zeros":0,"max_neighbors":0,"symmetric":true,"dominant":true}`
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	b = append(append(b, header...), "\x02\x00ga"+"\x00\x00\x00\x00"+"\x00\x00"...)
	return signed(append(append(b, length), form...))
}

func TestDecodeRefusesHostileForms(t *testing.T) {
	if m, err := Decode(bytes.NewReader(formFile(2, "1", "gas", 3))); err != nil || m.Form("ga") != "gas" {
		t.Fatal(m, err)
	}
	const other = `,"other_forms":1`
	if m, err := Decode(bytes.NewReader(otherFormsFile(4, "1", other, "gas\x1egases", 9))); err != nil || len(OtherForms(m.Form("ga"))) != 1 {
		t.Fatal(m, err)
	}
	for name, tt := range map[string]struct {
		message string
		file    []byte
	}{
		"control characters":       {"control", formFile(2, "1", "\x1b[2J", 4)},
		"text from right to left":  {"control", formFile(2, "1", "g\u202ea", 5)},
		"invalid UTF-8":            {"UTF-8", formFile(2, "1", "\xff", 1)},
		"the term itself":          {"itself", formFile(2, "1", "ga", 2)},
		"none":                     {"none", formFile(2, "1", "", 0)},
		"another count":            {"does not describe", formFile(2, "2", "gas", 3)},
		"counted in version 1":     {"version 1 with 1 forms", formFile(1, "1", "gas", 3)},
		"not counted in version 2": {"version 2 with 0 forms", formFile(2, "0", "gas", 3)},
		"other forms in version 2": {"version 2 with 1 forms, 1 other forms", otherFormsFile(2, "1", other, "gas\x1egases", 9)},
		"other forms in version 3": {"version 3 with 1 forms, 1 other forms", otherFormsFile(3, "1", other, "gas\x1egases", 9)},
		"none in version 4":        {"version 4 with 1 forms, 0 other forms", formFile(4, "1", "gas", 3)},
		"not there in version 4":   {"does not describe", otherFormsFile(4, "1", other, "gas", 3)},
		"not counted":              {"does not describe", formFile(2, "1", "gas\x1egases", 9)},
		"an empty other form":      {"empty other", otherFormsFile(4, "1", other, "gas\x1e", 4)},
		"10 KB":                    {"checksum", formFile(2, "1", strings.Repeat("s", 10_000), 255)},
		"shorter than it says":     {"inside the", formFile(2, "1", "gas", 200)},
	} {
		m, err := Decode(bytes.NewReader(tt.file))
		damaged := errors.Is(err, ErrFormat) || errors.Is(err, ErrChecksum)
		check.That(t, damaged && m == nil && strings.Contains(err.Error(), tt.message), "%s: error %v, want %q", name, err, tt.message)
	}
}

func TestTableTakesTheFormsThatAreSome(t *testing.T) {
	table := mustNew(t, Meta{}, []TermRow{{Term: "ga"}, {Term: "oil"}, {Term: "pipe"}, {Term: "tank"}, {Term: "valv"}}).Table()
	forms := map[string]string{"ga": "gas", "oil": "oil", "tank": "tanks", "valv": "\x07", "other": "others"}
	table.TakeForms(func(i int) string { return forms[table.Terms[i]] })
	m := check.Got(table.Matrix())(t)
	want := map[string]string{"ga": "gas", "tank": "tanks"}
	diff := cmp.Diff(want, maps.Collect(m.Forms()))
	check.That(t, diff == "" && m.Meta().Forms == 2, "%d forms are counted (-want +got):\n%s", m.Meta().Forms, diff)
	for term, form := range map[string]string{"ga": "gas", "oil": "", "pipe": "", "none": ""} {
		check.Equal(t, form, m.Form(term), term)
	}
}

func TestMatrixRefusesFormsThatDoNotFit(t *testing.T) {
	for name, forms := range map[string][]string{"of other terms": {"gas", "oils"}, "none": {""}, "control": {"\n"}, "too long": {strings.Repeat("s", 256)}} {
		check.Error(t, ErrInvalid, check.ErrOf((&Table{Terms: []string{"ga"}, DocFreqs: []uint32{1}, Forms: forms, Entries: Entries{Offsets: []int{0, 0}}}).Matrix()), name)
	}
}

func TestOtherFormsGoWithTheFirst(t *testing.T) {
	long := strings.Repeat("s", 100)
	for _, tt := range []struct {
		written string
		others  []string
		want    string
	}{
		{"gas", []string{"gas", "gases", "ga", "gases", "", "g\n", "gassed"}, "gas\x1egases\x1egassed"},
		{"ga", []string{"gas"}, "\x1egas"},
		{"", []string{"gas"}, "\x1egas"},
		{"ga", []string{"ga"}, ""},
		{"gas", []string{long + "1", long + "2", long + "3", "gases"}, "gas\x1e" + long + "1\x1e" + long + "2\x1egases"},
	} {
		got := WithForms("ga", tt.written, tt.others...)
		check.Equal(t, tt.want, got)
		if got != "" {
			check.OK(t, CheckForm(got))
		}
	}
	form := WithNote(WithForms("ga", "gas", "gases", "gassed"), "note")
	written, note := SplitForm(form)
	check.Equal(t, []string{"gas", "note", "gases", "gassed"}, append([]string{written, note}, OtherForms(form)...))
	check.Equal(t, 0, len(OtherForms("gas")))

	m := mustNew(t, Meta{}, []TermRow{{Term: "ga", Form: "gas\x1egases"}, {Term: "oil", Form: "oils"}})
	check.That(t, m.Meta().Forms == 2 && m.Meta().OtherForms == 1 && m.Written("ga") == "gas" && m.Written("none") == "none", "%+v", m.Meta())
	file := encoded(t, m)
	check.Equal(t, 4, int(file[len(fileMagic)]))
	check.Equal(t, "gas\x1egases", check.Got(Decode(bytes.NewReader(file)))(t).Form("ga"))
}

func TestNotesGoWithForms(t *testing.T) {
	for _, tt := range [][2]string{{"heart attack", "synonyms.txt:2"}, {"", "synonyms.txt:2"}, {"heart attack", ""}} {
		form := WithNote(tt[0], tt[1])
		written, note := SplitForm(form)
		check.Equal(t, tt, [2]string{written, note})
		check.OK(t, CheckForm(form))
	}
	long := WithNote("heart attack", strings.Repeat("ü", MaxFormBytes))
	check.That(t, CheckForm(long) == nil && len(long) >= MaxFormBytes-1, "%d bytes: %v", len(long), CheckForm(long))
	for _, bad := range []string{"a" + formMark, formMark, "a" + formMark + formMark + "b", "a" + formMark + "b\n", "a" + noteMark + "b" + formMark + "c", "a" + noteMark, noteMark, "a" + noteMark + "b" + noteMark + "c", "a" + noteMark + "b\n", "a\n" + noteMark + "b"} {
		check.That(t, CheckForm(bad) != nil, "%q is taken", bad)
	}
}
