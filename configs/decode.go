package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

// The tags of scalars in the YAML core schema.
const (
	tagNull  = "!!null"
	tagBool  = "!!bool"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagStr   = "!!str"
)

// A decoder sets the fields of a Config from a YAML document. It walks the
// nodes itself, because the library's strict decoding stops at duplicate keys.
type decoder struct {
	file     string
	profiles *yaml.Node      // decoded last, because the defaults come from other sections
	lines    map[string]int  // the line of each key path in the file
	bad      map[string]bool // the key paths with problems
	problems []*Error
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, lines: map[string]int{}, bad: map[string]bool{}}
}

// document decodes data over c. It reports whether the YAML was valid.
func (d *decoder) document(data []byte, c *Config) bool {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return true // only comments: the defaults
	}
	if err == nil {
		var next yaml.Node
		if err = dec.Decode(&next); err == nil {
			d.addAt(next.Line, "", "a second YAML document; allowed: one")
			return false
		}
	}
	if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return false
	}
	if root := doc.Content[0]; !isNull(root) { // a bare "---" is null
		d.value(root, "", field{Value: reflect.ValueOf(c).Elem()})
	}
	if d.profiles != nil {
		d.decodeProfiles(d.profiles, c)
	}
	return true
}

// syntax reports an error of the YAML parser: "yaml: line 3: what is wrong",
// without the line if it is the first.
func (d *decoder) syntax(err error) {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		number, what, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			line, msg = n, what
		}
	}
	d.addAt(line, "", "not valid YAML: %s", msg)
}

// value decodes node n, found at key, into f.
func (d *decoder) value(n *yaml.Node, key string, f field) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.addAt(n.Line, key, "anchors and aliases are not allowed; write the value out")
	case isNull(n):
		d.addAt(n.Line, key, "has no value; give it one, or remove the key to get the default")
	case f.Kind() == reflect.Map: // profiles is the only map
		d.profiles = n
	case f.Type() == reflect.TypeFor[expand.Disclosure]():
		d.hideFrom(n, key, f.Addr().Interface().(*expand.Disclosure))
	case f.Kind() == reflect.Slice:
		d.list(n, key, f)
	case f.isSection():
		d.section(n, key, f.Value)
	default:
		if err := f.decode(n); err != nil {
			d.addAt(n.Line, key, "%w", err)
		}
	}
}

// section decodes a mapping into the struct v by the fields' yaml tags.
func (d *decoder) section(n *yaml.Node, key string, v reflect.Value) {
	fields, names := fieldsOf(v)
	if n.Kind != yaml.MappingNode {
		d.addAt(n.Line, key, "must be a section with the keys %s", strings.Join(names, ", "))
		return
	}
	d.members(n, key, func(name string) string {
		if _, known := fields[name]; !known {
			return "unknown key; " + meant(name, names) + "allowed: " + strings.Join(names, ", ")
		}
		return ""
	}, func(name, path string, value *yaml.Node) {
		d.value(value, path, fields[name])
	})
}

// meant suggests the most similar of the names. It returns "" if none is within
// two edits and half of its letters.
func meant(name string, names []string) string {
	near := func(known string) int { return levenshtein.ComputeDistance(name, known) }
	best := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(near(a), near(b)) })
	if near(best) > min(2, len(best)/2) {
		return ""
	}
	return "did you mean " + best + "? "
}

// decodeProfiles decodes a mapping from names to profiles. Each starts from
// [defaultProfile].
func (d *decoder) decodeProfiles(n *yaml.Node, c *Config) {
	const key = "profiles"
	if n.Kind != yaml.MappingNode {
		d.addAt(n.Line, key, "must be a section with a profile under each name")
		return
	}
	d.members(n, key, func(name string) string {
		if !isName(name) {
			return "the name must be " + nameRule
		}
		return ""
	}, func(name, path string, value *yaml.Node) {
		p := defaultProfile(c)
		d.value(value, path, field{Value: reflect.ValueOf(&p).Elem()})
		c.Profiles[name] = p
	})
}

// members calls take for each member of a mapping for which wrong returns "".
// It reports repeated names.
func (d *decoder) members(n *yaml.Node, key string, wrong func(name string) string, take func(name, path string, value *yaml.Node)) {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		name, path := k.Value, join(key, k.Value)
		problem := wrong(name)
		switch {
		case k.Kind != yaml.ScalarNode || problem != "":
			d.addAt(k.Line, join(key, keyText(k)), "%s", cmp.Or(problem, wrong("?")))
		case seen[name] > 0:
			d.addAt(k.Line, path, "given twice; the first is in line %d", seen[name])
		default:
			seen[name] = k.Line
			d.lines[path] = k.Line
			take(name, path, n.Content[i+1])
		}
	}
}

// list decodes a sequence into the slice list and replaces its content. Entries
// of matrices and weights start from [defaultMatrix], those of trials from
// [defaultTrial], those of segments from [defaultSegments]. The first key of an
// entry is its name. Names and texts must be unique.
func (d *decoder) list(n *yaml.Node, key string, list field) {
	if n.Kind != yaml.SequenceNode {
		d.addAt(n.Line, key, "must be a list")
		return
	}
	list.Set(reflect.MakeSlice(list.Type(), len(n.Content), len(n.Content)))
	first := map[string]int{}
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		d.lines[path] = item.Line
		f, twice := field{Value: list.Index(i), is: list.is}, "is the same as %[3]s[%[4]d]"
		switch entry := f.Addr().Interface().(type) {
		case *Matrix:
			*entry = defaultMatrix()
		case *Trial:
			*entry = defaultTrial()
		case *form.Segments:
			*entry = defaultSegments()
		}
		d.value(item, path, f)
		if s, ok := reflect.TypeAssert[*form.Segments](f.Addr()); ok {
			s.Text, s.Position = cmp.Or(s.Text, s.Path+".text"), cmp.Or(s.Position, s.Path+".position")
			s.Share, s.Godwin = cmp.Or(s.Share, s.Path+".share"), cmp.Or(s.Godwin, s.Path+".godwin")
		}
		name := ""
		if f.isSection() {
			fields, names := fieldsOf(f.Value)
			name, f = names[0], fields[names[0]]
			path, twice = join(path, name), "%[1]q is the %[2]s of %[3]s[%[4]d] already; every entry has a %[2]s of its own"
			if err := f.check(); err != nil { // it may be missing
				d.add(path, "%w", err)
			}
		}
		if j, known := first[f.String()]; known {
			d.add(path, twice, f.String(), name, key, j)
		} else if !d.has(path) {
			first[f.String()] = i
		}
	}
}

// hideFrom decodes the word auto, or a list of the other words.
func (d *decoder) hideFrom(n *yaml.Node, key string, h *expand.Disclosure) {
	if n.Kind == yaml.ScalarNode {
		*h = expand.DiscloseSecured
		if n.Value != "auto" {
			d.addAt(n.Line, key, "must be auto or a list of profile, explain, validate")
		}
		return
	}
	var names []string
	d.list(n, key, field{Value: reflect.ValueOf(&names).Elem()})
	*h = 0
	d.each(key, names, func(name string) error {
		i := slices.Index([]string{"profile", "explain", "validate"}, name)
		if i < 0 {
			return errors.New("must be one of profile, explain, validate")
		}
		*h |= expand.DiscloseProfile << i
		return nil
	})
}

// each reports the entries of the list at key for which wrong returns an error.
func (d *decoder) each(key string, list []string, wrong func(string) error) {
	for i, s := range list {
		if err := wrong(s); err != nil {
			d.add(fmt.Sprintf("%s[%d]", key, i), "%w", err)
		}
	}
}

// A field is a field of a struct, with what its tag allows and the rule for its
// text.
type field struct {
	reflect.Value
	allowed []string
	is      string
}

// fieldsOf returns the fields of the struct v by key, and the keys in order.
func fieldsOf(v reflect.Value) (fields map[string]field, names []string) {
	fields = make(map[string]field, v.NumField())
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		switch name := tag.Get("yaml"); name {
		case "-":
		case ",inline":
			inside, more := fieldsOf(v.Field(i))
			maps.Copy(fields, inside)
			names = append(names, more...)
		default:
			fields[name] = field{v.Field(i), strings.Fields(tag.Get("allowed")), tag.Get("is")}
			names = append(names, name)
		}
	}
	return fields, names
}

// isSection reports whether f has keys of its own.
func (f field) isSection() bool {
	return f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[Secret]()
}

// isWord reports whether the values of f are words that its tag allows.
func (f field) isWord() bool {
	return len(f.allowed) > 0 && slices.Contains([]reflect.Kind{reflect.String, reflect.Bool, reflect.Uint8}, f.Kind())
}

// decode sets f to a scalar value.
func (f field) decode(n *yaml.Node) (err error) {
	if f.isWord() {
		return f.decodeWord(n)
	}
	switch p := f.Addr().Interface().(type) {
	case *bool:
		*p, err = parse(n, tagBool, strconv.ParseBool, errors.New("must be true or false"))
	case *int:
		*p, err = parse(n, tagInt, strconv.Atoi, errors.New("must be a whole number"))
	case *float64:
		tag := tagFloat
		if n.ShortTag() == tagInt {
			tag = tagInt
		}
		float := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
		*p, err = parse(n, tag, float, errors.New("must be a number"))
	case *string:
		if *p, err = text(n); err == nil {
			err = f.check()
		}
	case *Secret:
		secret := func(s string) (Secret, error) { return NewSecret(s), nil }
		*p, err = parse(n, tagStr, secret, errors.New("must be a text"))
	case *Duration:
		*p, err = parse(n, tagStr, ParseDuration, errDuration)
	case *Bytes:
		*p, err = parse(n, tagStr, ParseBytes, errBytes)
	default:
		err = fmt.Errorf("configs: no decoding for %s", f.Type())
	}
	if err != nil || len(f.allowed) == 0 {
		return err
	}
	return f.checkRange()
}

// check checks a text against its rule.
func (f field) check() error {
	if f.is == "" {
		return nil
	}
	return rules[f.is](f.String())
}

// decodeWord sets f to the value of a word: a number is the word's place among
// those that are allowed.
func (f field) decodeWord(n *yaml.Node) error {
	word, err := text(n)
	if err != nil {
		return err
	}
	i := slices.Index(f.allowed, word)
	switch {
	case i < 0:
		return fmt.Errorf("must be one of %s", strings.Join(f.allowed, ", "))
	case f.Kind() == reflect.String:
		f.SetString(word)
	case f.Kind() == reflect.Bool:
		f.SetBool(i == 1)
	default:
		f.SetUint(uint64(i))
	}
	return nil
}

// checkRange returns an error for a number out of the allowed range.
func (f field) checkRange() error {
	number := func(v reflect.Value) float64 {
		if v.CanInt() {
			return float64(v.Int())
		}
		return v.Float()
	}
	bound := func(text string) float64 {
		b := field{Value: reflect.New(f.Type()).Elem()}
		_ = b.decode(&yaml.Node{Kind: yaml.ScalarNode, Value: text}) // TestLimitsAreReadable checks that it decodes
		return number(b.Value)
	}
	low, open := strings.CutPrefix(f.allowed[0], "(")
	value, least := number(f.Value), bound(low)
	if value >= least && value <= bound(f.allowed[1]) && !(open && value == least) {
		return nil
	}
	if open {
		return fmt.Errorf("%v is out of range; allowed: above %s, up to %s", f.Value, low, f.allowed[1])
	}
	return fmt.Errorf("%v is out of range; allowed: %s to %s", f.Value, low, f.allowed[1])
}

// Set sets a key of a profile. A key in a section has a path such as
// "feedback.documents". The value is as in a file. The error joins one or more
// [Error].
func Set(p *expand.Profile, key, value string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(value), &doc); err != nil || len(doc.Content) == 0 {
		return &Error{Key: key, Err: errors.New("must have a value, as in a file")}
	}
	n := doc.Content[0]
	for _, name := range slices.Backward(strings.Split(key, ".")) {
		n = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: name}, n}}
	}
	d := newDecoder("")
	d.section(n, "", reflect.ValueOf(p).Elem())
	return d.err()
}

// Keys returns the keys of a profile with their values as in a file.
func Keys(p *expand.Profile) map[string]any { return keysOf(reflect.ValueOf(p).Elem()) }

func keysOf(section reflect.Value) map[string]any {
	fields, _ := fieldsOf(section)
	keys := make(map[string]any, len(fields))
	for name, f := range fields {
		switch {
		case f.isSection():
			keys[name] = keysOf(f.Value)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			entries := make([]any, f.Len())
			for i := range entries {
				entries[i] = keysOf(f.Index(i))
			}
			keys[name] = entries
		case f.isWord() && f.Kind() == reflect.Bool:
			keys[name] = f.allowed[0]
			if f.Bool() {
				keys[name] = f.allowed[1]
			}
		case f.isWord() && f.CanUint():
			keys[name] = f.allowed[f.Uint()]
		default:
			keys[name] = f.Interface()
		}
	}
	return keys
}

func text(n *yaml.Node) (string, error) {
	same := func(s string) (string, error) { return s, nil }
	return parse(n, tagStr, same, errors.New("must be a text; put a number or true and false in quotes"))
}

// parse parses a scalar that the YAML schema resolved to tag. wrong is the
// error otherwise; it must not contain the value, which may be a secret under
// the wrong key.
func parse[T any](n *yaml.Node, tag string, read func(string) (T, error), wrong error) (T, error) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == tag {
		if v, err := read(n.Value); err == nil {
			return v, nil
		}
	}
	return *new(T), wrong
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// keyText returns a key for a message: quoted if it is not a plain word, and
// cut if it is long.
func keyText(n *yaml.Node) string {
	const longest = 40
	if n.Kind != yaml.ScalarNode {
		return "?"
	}
	text := n.Value
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest]) + "…"
	}
	if text == "" || strings.Trim(text, nameChars) != "" || strings.Contains(text, ".") {
		return strconv.Quote(text)
	}
	return text
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == tagNull }

// An Error is one problem of a configuration. The errors of [Load] and [Parse]
// are one or more of them, joined by [errors.Join].
type Error struct {
	File string // the configuration file
	Line int    // from 1; 0 for none
	Key  string // the path, such as "matrices[0].fields[1]", or the environment variable; "" for the whole file
	Err  error  // what is wrong and what is allowed, without secrets
}

// Error returns "file:line: key: what is wrong", without unknown parts.
func (p *Error) Error() string {
	at := p.File
	if p.File != "" && p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	known := slices.DeleteFunc([]string{at, p.Key}, func(part string) bool { return part == "" })
	return strings.Join(append(known, p.Err.Error()), ": ")
}

// Unwrap returns p.Err.
func (p *Error) Unwrap() error { return p.Err }

// add reports a problem of key, at the line of the key or of the nearest key
// around it in the file. It reports only the first problem of a key, and none
// below a key with a problem.
func (d *decoder) add(key, format string, args ...any) {
	at := key
	for at != "" && d.lines[at] == 0 {
		at = parent(at)
	}
	if !d.has(key) {
		d.addAt(d.lines[at], key, format, args...)
	}
}

// addAt reports a problem of key at a given line.
func (d *decoder) addAt(line int, key, format string, args ...any) {
	d.bad[key] = true
	d.problems = append(d.problems, &Error{File: d.file, Line: line, Key: key, Err: fmt.Errorf(format, args...)})
}

// has reports whether key or a key around it already has a problem.
func (d *decoder) has(key string) bool {
	for key != "" && !d.bad[key] {
		key = parent(key)
	}
	return key != ""
}

// err joins the problems in the order of their lines, or returns nil.
func (d *decoder) err() error {
	slices.SortStableFunc(d.problems, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(d.problems))
	for i, q := range d.problems {
		errs[i] = q
	}
	return errors.Join(errs...)
}

// parent returns the path of the key around key, or "" at the top.
func parent(key string) string {
	return key[:max(0, strings.LastIndexAny(key, ".["))]
}
