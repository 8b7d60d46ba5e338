package dsl

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A part is a part of the text of a query string: bare words, a group of parts,
// or something else, such as a phrase.
type part struct {
	occur occur  // in its group
	raw   string // as in the text, without boost and operator; "" for a group
	// words are those that the engine searches for, "" if the part has others.
	// field is named for the part, "" for those of the clause.
	words, field string
	boost        float64
	parts        []part // of a group
	// unsure is an operator that joins other parts if the engine finds no terms in
	// those of the group, "" if there is none.
	unsure string
}

// An occur says whether the documents of a group match a part.
type occur string

const (
	should  occur = "should"
	must    occur = "must"
	mustNot occur = "must_not"
)

const (
	// maxParts is how many parts a text may have.
	maxParts = 64
	// maxGroups is how deep groups may be nested.
	maxGroups = 8
)

// An unclearError is the piece of a text that akin is not sure to understand.
type unclearError string

func (e unclearError) Error() string { return "not understood: " + string(e) }

// alone returns the part of a group of one, unless it is a negation.
func (p *part) alone() *part {
	if len(p.parts) != 1 || p.parts[0].occur == mustNot {
		return p
	}
	only := p.parts[0]
	only.boost *= p.boost
	return only.alone()
}

// row returns the bare words of a group as words in a row, if all must match or
// any may, or nil. and says that words in a row must match.
func (p *part) row(and bool) *part {
	if len(p.parts) == 0 || p.unsure != "" {
		return nil
	}
	how := p.parts[0].occur
	var words []string
	for i := range p.parts {
		one := &p.parts[i]
		several := strings.Contains(one.words, " ") && and != (how == must)
		if one.words == "" || one.field != "" || one.boost != 1 || one.occur != how || several || strings.ContainsFunc(one.words, divides) {
			return nil
		}
		words = append(words, one.words)
	}
	return &part{occur: how, words: strings.Join(words, " "), boost: p.boost}
}

// divides reports whether analyzers may divide a word at a character. They do
// not at letters and digits of scripts with blanks between words, which come
// first in Unicode.
func divides(r rune) bool {
	const thai = 0x0E00
	return r >= thai || r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// depth returns how deep groups are nested.
func (p *part) depth() (n int) {
	for i := range p.parts {
		n = max(n, 1+p.parts[i].depth())
	}
	return n
}

// each calls f for the part and all parts in it.
func (p *part) each(f func(p *part)) {
	f(p)
	for i := range p.parts {
		p.parts[i].each(f)
	}
}

// A lexeme is a piece of the text of a query_string. Operators have themselves
// as kind.
type lexeme struct {
	kind       lexemeKind
	raw        string
	start, end int // in the text
}

type lexemeKind string

const (
	theEnd  lexemeKind = ""
	isTerm  lexemeKind = "term"
	isQuote lexemeKind = "quote"
	isBoost lexemeKind = "^"
	isFuzzy lexemeKind = "~"
	isOther lexemeKind = "other" // a wildcard, regular expression or range
	isSign  lexemeKind = "sign"  // + - ! before a blank, which is a word
	isAnd   lexemeKind = "AND"
	isOr    lexemeKind = "OR"
	isNot   lexemeKind = "!"
)

// blanks separate the words of a query_string.
const blanks = " \t\n\r\u3000"

// tokenForms are the tokens of Lucene's classic query parser (QueryParser.jj).
var tokenForms = []struct {
	kind lexemeKind
	form *regexp.Regexp
}{
	{isSign, regexp.MustCompile(`^[-+!][` + blanks + `]`)},
	{"", regexp.MustCompile(`^[-+!():]`)},
	{isQuote, regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)},
	{isBoost, regexp.MustCompile(`^\^[0-9]+(?:\.[0-9]+)?`)},
	{isFuzzy, regexp.MustCompile(`^~(?:[0-9]+(?:\.[0-9]+)?)?`)},
	{isOther, regexp.MustCompile(`^(?:/[^/\\*]*/|[[{] *(?:"[^"\\]*"|[^ "\]}]+) +TO +(?:"[^"\\]*"|[^ "\]}]+) *[]}])`)},
	{isTerm, regexp.MustCompile(`^(?:` + termStart + `|[*?])(?:` + termStart + `|[-+*?])*`)},
}

const termStart = `[^` + blanks + `\-+!():^[\]"{}~*?\\/]|\\.`

// queryTokens splits the text of a query_string.
func queryTokens(text string) (out []lexeme, err error) {
	for at := 0; ; {
		rest := strings.TrimLeft(text[at:], blanks)
		if rest == "" {
			return out, nil
		}
		t := lexeme{}
		for _, f := range tokenForms {
			if t.raw = f.form.FindString(rest); t.raw != "" {
				t.kind = f.kind
				break
			}
		}
		t.start = len(text) - len(rest)
		t.end = t.start + len(t.raw)
		at = t.end
		next, _ := utf8.DecodeRuneInString(text[at:])
		switch {
		case t.raw == "", t.kind == isTerm && strings.Contains(t.raw, `\u`): // which is a character
			return nil, unclearError(rest)
		case t.kind == isTerm:
			t.kind = kindOfTerm(t.raw)
		case t.kind == isSign:
			t.raw = t.raw[:1]
			t.end = t.start + 1
		case t.kind == "":
			t.kind = lexemeKind(t.raw)
		case t.kind != isQuote && at < len(text) && !strings.ContainsRune(blanks+")^~", next):
			return nil, unclearError(rest)
		}
		out = append(out, t)
	}
}

func kindOfTerm(raw string) lexemeKind {
	switch raw {
	case "AND", "&&":
		return isAnd
	case "OR", "||":
		return isOr
	case "NOT":
		return isNot
	}
	if strings.ContainsAny(escapes.ReplaceAllString(raw, ""), "*?") {
		return isOther
	}
	return isTerm
}

// escapes matches characters with a backslash before them.
var escapes = regexp.MustCompile(`(?s)\\(.)`)

// unescape returns a text without the backslashes that escape characters.
func unescape(raw string) string { return escapes.ReplaceAllString(raw, "$1") }

// A queryParser takes the text of a query_string apart like Lucene's classic
// query parser.
type queryParser struct {
	text   string
	tokens []lexeme
	at     int
	count  int // of parts
	and    bool
}

// queryParts returns the parts of the text of a query_string. and says that
// words without operators must match.
func queryParts(text string, and bool) (*part, error) {
	p := queryParser{text: text, and: and}
	var err error
	if p.tokens, err = queryTokens(text); err != nil {
		return nil, err
	}
	parts, err := p.group("", 0)
	if err == nil && p.kind(0) != theEnd {
		err = p.unclear()
	}
	return &part{occur: should, boost: 1, parts: parts}, err
}

// kind returns the kind of a token, counted from the next one.
func (p *queryParser) kind(ahead int) lexemeKind {
	if p.at+ahead < len(p.tokens) {
		return p.tokens[p.at+ahead].kind
	}
	return theEnd
}

// start returns the place of the next token in the text.
func (p *queryParser) start() int {
	if p.at < len(p.tokens) {
		return p.tokens[p.at].start
	}
	return len(p.text)
}

func (p *queryParser) unclear() error { return unclearError(p.text[p.start():]) }

// take skips the next token if it is of one of some kinds.
func (p *queryParser) take(kinds ...lexemeKind) bool {
	ok := p.at < len(p.tokens) && slices.Contains(kinds, p.kind(0))
	if ok {
		p.at++
	}
	return ok
}

// usual is the occur of words without operators.
func (p *queryParser) usual() occur {
	if p.and {
		return must
	}
	return should
}

// group reads parts up to the end or a closing parenthesis. The operators have
// no precedence: each decides about the part after it, and AND also about the
// part before. Words in a row are searched for together, but for the last one
// if an operator or a boost follows. A part without terms, such as a stop word,
// is none to the engine.
func (p *queryParser) group(field string, depth int) (out []part, err error) {
	for p.kind(0) != theEnd && p.kind(0) != ")" {
		if p.count++; p.count > maxParts || depth > maxGroups {
			return nil, p.unclear()
		}
		if n := p.wordsInRow(); n > 1 {
			begin := p.start()
			p.at += n
			row, err := p.bareWords(begin, field, field, p.usual())
			if err != nil {
				return nil, err
			}
			out = append(out, row)
			continue
		}
		and := len(out) > 0 && p.take(isAnd)
		or := !and && len(out) > 0 && p.take(isOr)
		switch before := len(out) - 1; {
		case before < 0:
		case out[before].occur == mustNot: // or of the part before it, if it has no terms
			if and && slices.ContainsFunc(out, func(p part) bool { return p.occur == should }) {
				return nil, p.unclear()
			}
		case and:
			out[before].occur = must
		case or && p.and:
			out[before].occur = should
		}
		how := p.usual()
		switch {
		case p.take("-", isNot):
			how = mustNot
		case p.take("+") && !p.and, and:
			how = must
		case or:
			how = should
		}
		one, err := p.one(field, how, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, p.unclear()
	}
	return out, nil
}

// wordsInRow returns how many of the next tokens are words that the engine
// searches for together.
func (p *queryParser) wordsInRow() (n int) {
	for p.kind(n) == isTerm && (n == 0 || !slices.Contains([]lexemeKind{":", isFuzzy, isBoost, isAnd, isOr}, p.kind(n+1))) {
		n++
	}
	return n
}

// bareWords returns a part for the bare words between a place and the next
// token. outer is the field of their group.
func (p *queryParser) bareWords(begin int, field, outer string, how occur) (part, error) {
	raw := p.text[begin:p.end()]
	words := unescape(raw)
	if strings.ContainsAny(words[:1], "<>") { // which the engine makes a range of a field
		words = ""
		if outer != "" && field == outer {
			return part{}, unclearError(p.text[begin:])
		}
	}
	return part{occur: how, raw: raw, words: words, field: field, boost: 1}, nil
}

// one reads a word, a group, or something else, with its field and boost.
func (p *queryParser) one(outer string, how occur, depth int) (out part, err error) {
	begin, field := p.start(), outer
	known := true // what the field is
	if p.kind(1) == ":" && (p.kind(0) == isTerm || p.tokens[p.at].raw == "*") {
		field = unescape(p.tokens[p.at].raw)
		known = field != "_exists_" && !strings.Contains(field, "*")
		p.at += 2
	}
	text := p.start()
	switch {
	case p.take("("):
		if out.parts, err = p.group(field, depth+1); err != nil {
			return out, err
		}
		if !known || !p.take(")") {
			return out, p.unclear()
		}
	case p.take(isTerm):
		if out, err = p.bareWords(text, field, outer, how); err != nil {
			return out, err
		}
	case begin == text && p.take(isSign): // its blank must stay behind
		return part{occur: how, raw: `\` + p.tokens[p.at-1].raw, field: outer, boost: 1}, nil
	case !p.take(isQuote, isOther):
		return out, p.unclear()
	}
	out.occur, out.boost = how, 1
	negates := out.parts != nil && !slices.ContainsFunc(out.parts, func(p part) bool { return p.occur != mustNot })
	fuzzy := p.take(isFuzzy)
	if p.take(isBoost) {
		out.boost, err = number([]byte(p.tokens[p.at-1].raw[1:]))
	}
	fuzzy = !fuzzy && p.take(isFuzzy) || fuzzy
	switch {
	case err != nil, fuzzy && out.parts != nil:
		return out, p.unclear()
	case how == mustNot, !known, negates, out.parts == nil && (out.words == "" || fuzzy):
		return part{occur: how, raw: p.text[begin:p.end()], field: outer, boost: 1}, nil
	}
	return out, nil
}

// end returns the end of the last token in the text.
func (p *queryParser) end() int { return p.tokens[p.at-1].end }

// simpleParser takes the text of a simple_query_string apart like Lucene's
// SimpleQueryParser.
type simpleParser struct {
	text  string
	at    int
	count int // of parts
	usual occur
}

// simpleParts returns the parts of the text of a simple_query_string. and says
// that words without operators must match.
func simpleParts(text string, and bool) (*part, error) {
	p := simpleParser{text: text, usual: should}
	if and {
		p.usual = must
	}
	top, err := p.group(0)
	if err == nil && p.at < len(text) {
		err = p.unclear()
	}
	return top, err
}

func (p *simpleParser) unclear() error { return unclearError(p.text[p.at:]) }

// simpleBlanks separate the words of a simple_query_string.
const simpleBlanks = " \t\r\n"

// group reads parts up to the end or a closing parenthesis. An operator joins
// all that is before it with the part after it.
func (p *simpleParser) group(depth int) (*part, error) {
	var top, last *part
	var joined occur // how the parts of top are joined
	inRow := false   // last is words, without an operator before them
	for {
		said := p.operator(top == nil)
		if p.at == len(p.text) || p.text[p.at] == ')' {
			break
		}
		if p.count++; p.count > maxParts || depth > maxGroups {
			return nil, p.unclear()
		}
		one, err := p.one(depth)
		if err != nil {
			return nil, err
		}
		how, bare := cmp.Or(said, p.usual), said == "" && one.words != ""
		switch {
		case inRow && bare:
			last.raw += " " + one.raw
			last.words += " " + one.words
			continue
		case top == nil:
			top, last = &one, &one
			inRow = bare
			continue
		case joined != how:
			unsure := ""
			if joined == must { // without terms after it, + joins what follows
				unsure = "+"
			}
			top.occur, joined = how, how
			top = &part{occur: should, boost: 1, parts: []part{*top}, unsure: unsure}
		}
		one.occur = how
		top.parts = append(top.parts, one)
		last, inRow = &top.parts[len(top.parts)-1], bare
	}
	if top == nil {
		return nil, p.unclear()
	}
	return top, nil
}

// operator skips blanks and operators before a part. It returns how the first
// one joins the part, "" without one. Before the first part there is none.
func (p *simpleParser) operator(first bool) (said occur) {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case strings.IndexByte(simpleBlanks, c) >= 0:
		case c == '-':
			after := strings.TrimLeft(p.text[p.at:], "-")
			if after != "" && strings.IndexByte(simpleBlanks+"+|)", after[0]) < 0 {
				return said
			}
			p.at = len(p.text) - len(after) - 1
		case c != '+' && c != '|':
			return said
		case said != "" || first:
		case c == '+':
			said = must
		default:
			said = should
		}
	}
	return said
}

// The parts of a simple_query_string. A phrase with slop ends at a blank, which
// the engine skips together with it.
var (
	simplePhrase = regexp.MustCompile(`(?s)^"(?:[^"\\]|\\.)+"(?:~[0-9]*)?`)
	simpleToken  = regexp.MustCompile(`(?s)^(?:[^"|+() \t\r\n\\]|\\.)+`)
)

// one reads a word, a group, or something else, with hyphens before it.
func (p *simpleParser) one(depth int) (out part, err error) {
	begin, places := p.at, ""
	p.at = len(p.text) - len(strings.TrimLeft(p.text[begin:], "-"))
	rest := p.text[p.at:]
	switch rest[0] {
	case '(':
		p.at++
		group, err := p.group(depth + 1)
		if err != nil {
			return out, err
		}
		if p.at == len(p.text) {
			return out, unclearError(rest)
		}
		out = *group
		p.at++
	case '"':
		out.raw = simplePhrase.FindString(rest)
		after := strings.TrimPrefix(rest, out.raw)
		slop := !strings.HasSuffix(out.raw, `"`)
		if out.raw == "" || depth > 0 && strings.ContainsAny(out.raw, "()") || slop && after != "" && strings.IndexByte(simpleBlanks+")", after[0]) < 0 {
			return out, unclearError(rest)
		}
		p.at += len(out.raw)
		if strings.HasSuffix(out.raw, "~") && after != "" && after[0] != ')' {
			places = "2" // to the engine, but not at the end of a text
			out.raw += places
		}
	default:
		out.raw = simpleToken.FindString(rest)
		bare := escapes.ReplaceAllString(out.raw, "a")
		fuzzy := out.raw != "" && strings.Contains(bare[1:], "~")
		switch {
		case out.raw == "", fuzzy && bare != out.raw:
			return out, unclearError(rest)
		case strings.HasPrefix(bare, "*"):
			return out, unclearError(rest)
		case !fuzzy && !strings.HasSuffix(bare, "*"):
			out.words = unescape(out.raw)
		}
		if strings.ContainsAny(out.words, simpleBlanks) {
			out.words = ""
		}
		p.at += len(out.raw)
	}
	if p.text[begin] == '-' {
		out = part{raw: p.text[begin:p.at] + places}
	}
	out.boost = 1
	return out, nil
}
