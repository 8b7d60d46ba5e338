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
)

// The tags that the YAML core schema gives to scalars.
const (
	tagNull  = "!!null"
	tagBool  = "!!bool"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagStr   = "!!str"
)

// A decoder sets the fields of a Config from a YAML document. It walks the
// nodes itself: the library's strict decoding stops at duplicate keys.
type decoder struct {
	problems

	profiles *yaml.Node // decoded last, over what the other sections say
	warnings []string   // of keys with old names
}

// document decodes data over c. It reports whether the YAML itself was valid.
func (d *decoder) document(data []byte, c *Config) bool {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return true // nothing but comments: the defaults
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
	if root := doc.Content[0]; !isNull(root) { // which "---" is
		d.value(root, "", reflect.ValueOf(c).Elem())
	}
	if d.profiles != nil {
		d.decodeProfiles(d.profiles, c)
	}
	return true
}

// syntax reports an error of the YAML parser, which writes
// "yaml: line 3: what is wrong", and no line where it is the first.
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

// value decodes node n, found at key, into v.
func (d *decoder) value(n *yaml.Node, key string, v reflect.Value) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.addAt(n.Line, key, "anchors and aliases are not allowed; write the value out")
	case isNull(n):
		d.addAt(n.Line, key, "has no value; give it one, or remove the key to get the default")
	case v.Kind() == reflect.Map: // there is one, that of the profiles
		d.profiles = n
	case v.Type() == reflect.TypeFor[HideFrom]() && n.Kind == yaml.ScalarNode:
		if n.Value != HideFromAuto {
			d.addAt(n.Line, key, "must be auto or a list of profile, explain, validate")
		}
		v.Set(reflect.ValueOf(HideFrom{HideFromAuto}))
	case v.Kind() == reflect.Slice:
		d.list(n, key, v)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[Secret]():
		d.section(n, key, v)
	default:
		if err := scalar(n, v); err != nil {
			d.addAt(n.Line, key, "%w", err)
		}
	}
}

// renamedKeys has the new names of keys, whose old names are read for one
// release, with a warning.
var renamedKeys = map[string]string{"normalise_score": "normalize_score"}

// section decodes a mapping into the struct v by the fields' yaml tags.
func (d *decoder) section(n *yaml.Node, key string, v reflect.Value) {
	fields, names := fieldsOf(v)
	if n.Kind != yaml.MappingNode {
		d.addAt(n.Line, key, "must be a section with the keys %s", strings.Join(names, ", "))
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if now := renamedKeys[k.Value]; now != "" && fields[now].value.IsValid() {
			d.warnings = append(d.warnings, fmt.Sprintf("%s:%d: %s: is now called %s; the old name is read in this release only",
				d.file, k.Line, join(key, k.Value), now))
			k.Value = now
		}
	}
	d.members(n, key, func(name string) string {
		if _, known := fields[name]; !known {
			return "unknown key; " + meant(name, names) + "allowed: " + strings.Join(names, ", ")
		}
		return ""
	}, func(name, path string, value *yaml.Node) {
		d.value(value, path, fields[name].value)
		if allowed := fields[name].allowed; allowed != "" && !d.has(path) {
			d.limit(path, fields[name].value, strings.Fields(allowed))
		}
	})
}

// meant asks whether the most similar of the names was meant, "" where none is
// within two edits, or half of its letters.
func meant(name string, names []string) string {
	near := func(known string) int { return levenshtein.ComputeDistance(name, known) }
	best := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(near(a), near(b)) })
	if near(best) > min(2, len(best)/2) {
		return ""
	}
	return "did you mean " + best + "? "
}

// limit reports a text that is none of those allowed, or a number that is not
// from the first of them to the second.
func (d *decoder) limit(key string, v reflect.Value, allowed []string) {
	if v.Kind() == reflect.String {
		if !slices.Contains(allowed, v.String()) {
			d.add(key, "must be one of %s", strings.Join(allowed, ", "))
		}
		return
	}
	bound := func(text string) reflect.Value {
		b := reflect.New(v.Type()).Elem()
		_ = scalar(&yaml.Node{Kind: yaml.ScalarNode, Value: text}, b) // TestLimitsAreReadable
		return b
	}
	less := func(a, b reflect.Value) bool {
		return a.CanInt() && a.Int() < b.Int() || a.CanFloat() && a.Float() < b.Float()
	}
	if low, high := bound(allowed[0]), bound(allowed[1]); less(v, low) || less(high, v) {
		d.add(key, "%v is out of range; allowed: %v to %v", v, low, high)
	}
}

// decodeProfiles decodes a mapping of names to profiles. They start from
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
		d.value(value, path, reflect.ValueOf(&p).Elem())
		c.Profiles[name] = p
	})
}

// members calls take for each member of a mapping for which wrong returns no
// error. A repeated name is reported.
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

// list decodes a sequence into the slice v, replacing its content. Entries of
// matrices and weights start from [defaultMatrix], those of trials from
// [defaultTrial], those of segments from [defaultSegments].
func (d *decoder) list(n *yaml.Node, key string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.addAt(n.Line, key, "must be a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		d.lines[path] = item.Line
		switch entry := v.Index(i).Addr().Interface().(type) {
		case *Matrix:
			*entry = defaultMatrix()
		case *Trial:
			*entry = defaultTrial()
		case *Segments:
			*entry = defaultSegments()
		}
		d.value(item, path, v.Index(i))
	}
}

// scalar decodes one plain value into v, of a type that this package uses.
func scalar(n *yaml.Node, v reflect.Value) error {
	var err error
	switch p := v.Addr().Interface().(type) {
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
		text := func(s string) (string, error) { return s, nil }
		*p, err = parse(n, tagStr, text, errors.New("must be a text; put a number or true and false in quotes"))
	case *Secret:
		secret := func(s string) (Secret, error) { return NewSecret(s), nil }
		*p, err = parse(n, tagStr, secret, errors.New("must be a text"))
	case *Duration:
		*p, err = parse(n, tagStr, ParseDuration, errDuration)
	case *Bytes:
		*p, err = parse(n, tagStr, ParseBytes, errBytes)
	default:
		err = fmt.Errorf("configs: no decoding for %s", v.Type())
	}
	return err
}

// parse reads a scalar that the YAML schema resolved to tag; wrong is the error
// for everything else, without the value: it could be a secret under the wrong
// key.
func parse[T any](n *yaml.Node, tag string, read func(string) (T, error), wrong error) (T, error) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == tag {
		if v, err := read(n.Value); err == nil {
			return v, nil
		}
	}
	return *new(T), wrong
}

// A field is one of a struct, and what its tag allows.
type field struct {
	value   reflect.Value
	allowed string
}

// fieldsOf returns the fields of the struct v by their keys, and the keys in
// the order of the struct.
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
			fields[name] = field{v.Field(i), tag.Get("allowed")}
			names = append(names, name)
		}
	}
	return fields, names
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// keyText returns a key for a message: quoted if it is not a plain word, cut if
// it is long.
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

// An Error is one thing wrong with a configuration. The errors of [Load] and
// [Parse] are one or more of them, joined by [errors.Join].
type Error struct {
	File string // the configuration file
	Line int    // from 1; 0 is none in particular
	Key  string // the path, such as "matrices[0].fields[1]", or the environment variable; "" is the whole file
	Err  error  // what is wrong and what is allowed, without secrets
}

// Error returns "file:line: key: what is wrong", without the parts that are
// not known.
func (p *Error) Error() string {
	at := p.File
	if p.Line > 0 {
		at += fmt.Sprintf(":%d", p.Line)
	}
	if p.Key != "" {
		at += ": " + p.Key
	}
	return at + ": " + p.Err.Error()
}

// Unwrap returns p.Err.
func (p *Error) Unwrap() error { return p.Err }

// problems collects what is wrong with one file, and the lines of its keys.
type problems struct {
	file  string
	lines map[string]int  // The line of each key path that the file has.
	bad   map[string]bool // The key paths in list.
	list  []*Error
}

// add reports a problem of key at the key's line, or that of the nearest key
// around it that the file has. A key counts once: what follows from its first
// problem, or from one of a key around it, is not reported.
func (p *problems) add(key, format string, args ...any) {
	if !p.has(key) {
		p.addAt(p.line(key), key, format, args...)
	}
}

// addAt reports a problem of key at a line of its own.
func (p *problems) addAt(line int, key, format string, args ...any) {
	p.bad[key] = true
	p.list = append(p.list, &Error{File: p.file, Line: line, Key: key, Err: fmt.Errorf(format, args...)})
}

// has reports whether key or a key around it has a problem already.
func (p *problems) has(key string) bool {
	for key != "" && !p.bad[key] {
		key = parent(key)
	}
	return key != ""
}

// line returns the line of key or of the nearest key around it, 0 where the
// file has none of them.
func (p *problems) line(key string) int {
	for key != "" && p.lines[key] == 0 {
		key = parent(key)
	}
	return p.lines[key]
}

// err joins the problems in the order of their lines, nil where there are none.
func (p *problems) err() error {
	slices.SortStableFunc(p.list, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(p.list))
	for i, q := range p.list {
		errs[i] = q
	}
	return errors.Join(errs...)
}

// parent returns the path of the key around key, "" for one at the top.
func parent(key string) string {
	return key[:max(0, strings.LastIndexAny(key, ".["))]
}
