package norms

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/simmatrix"
)

// errShape says that a document has something else where a text or a norm
// belongs.
var errShape = errors.New("something else than a text or a norm")

const (
	// unstoredDocs and unstoredBytes bound what is analyzed in one call, unless
	// it is one document, and unstoredCalls how many calls are made at once.
	unstoredDocs, unstoredBytes, unstoredCalls = 200, 1 << 20, 4
	// rowsAtOnce bounds the terms whose weights are asked for in one call.
	rowsAtOnce = 10_000
)

// isPath reports whether a path leads into an object.
func isPath(source string) bool { return strings.Contains(source, ".") }

// read returns the values that an object has at path, and whether it has
// something there, be it null. A name in it may span several segments of the
// path. raw says that the engine reads the object and writes it anew before
// it indexes it; else it indexes a number as it stands.
func (t *tree) read(body []byte, path string, raw bool) (texts []jsontext.Value, touched bool, err error) {
	r := reader{raw: raw}
	for i := range t.members {
		m := &t.members[i]
		if err := r.member(m.name, m.value.of(body), path); err != nil {
			return nil, false, err
		}
	}
	return r.texts, r.touched, nil
}

// A reader collects the values at a path.
type reader struct {
	raw     bool
	texts   []jsontext.Value
	touched bool
}

// member reads a member of an object that is somewhere above the path's end.
func (r *reader) member(name string, v jsontext.Value, path string) error {
	rest, ok := strings.CutPrefix(path, name)
	switch {
	case !ok:
		return nil
	case rest == "":
		r.touched = true
		return r.value(v)
	case rest[0] != '.':
		return nil
	}
	return r.below(v, rest[1:])
}

// below reads what is at path below v.
func (r *reader) below(v jsontext.Value, path string) error {
	switch v.Kind() {
	case jsontext.KindBeginObject:
		return eachMember(v, func(name string, v jsontext.Value) error { return r.member(name, v, path) })
	case jsontext.KindBeginArray:
		r.touched = true // it takes the place of what was there
		return eachElement(v, func(v jsontext.Value) error { return r.below(v, path) })
	default:
		r.touched = true
		return nil
	}
}

// value reads the value at the end of the path.
func (r *reader) value(v jsontext.Value) error {
	switch v.Kind() {
	case jsontext.KindNull:
	case jsontext.KindString:
		if !v.IsValid() { // half a surrogate pair: nothing else could be asked for with it
			return errShape
		}
		r.texts = append(r.texts, v)
	case jsontext.KindBeginArray:
		return eachElement(v, r.value)
	case jsontext.KindBeginObject:
		return errShape
	default:
		if !r.raw { // as a string it reaches the analyzer as it stands
			v = append(append([]byte{'"'}, v...), '"')
		}
		r.texts = append(r.texts, v)
	}
	return nil
}

// eachMember calls fn for the members of an object.
func eachMember(v jsontext.Value, fn func(name string, v jsontext.Value) error) error {
	d := newDecoder(v)
	if _, err := d.ReadToken(); err != nil {
		return errJSON
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return errJSON
		}
		text := name.String() // the token does not outlive the next read
		value, err := d.ReadValue()
		if err != nil {
			return errJSON
		}
		if err := fn(text, value); err != nil {
			return err
		}
	}
	return nil
}

// eachElement calls fn for the elements of an array.
func eachElement(v jsontext.Value, fn func(v jsontext.Value) error) error {
	d := newDecoder(v)
	if _, err := d.ReadToken(); err != nil {
		return errJSON
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return errJSON
		}
		if err := fn(value); err != nil {
			return err
		}
	}
	return nil
}

// compute computes the norms of the parts.
func (j *job) compute(ctx context.Context) error {
	var asked []*part // those with texts
	for i := range j.parts {
		if p := &j.parts[i]; len(p.texts) > 0 {
			asked = append(asked, p)
		}
	}
	terms, err := j.analyze(ctx, asked)
	if err != nil {
		return err
	}
	weigher := weigher{}
	for i, p := range asked {
		if terms[i].Err != nil {
			p.failed = true
			continue
		}
		for _, f := range p.fields {
			weigher.note(f.weights, terms[i].Fields[f.Name])
		}
	}
	if err := weigher.load(ctx); err != nil {
		return err
	}
	of := make(map[*part]map[string][]TermFreq, len(asked))
	for i, p := range asked {
		of[p] = terms[i].Fields
	}
	for i := range j.parts {
		p := &j.parts[i]
		for _, f := range p.fields {
			v := value{field: f.Name, norm: weigher.norm(f.weights, of[p][f.Name]), id: f.weights.ID()}
			if v.norm == 0 && len(p.texts[f.Source]) > 0 {
				// Its words may all be stop words, or the index was made again meanwhile
				// and does not know the field yet: a backfill has to look at it.
				v.id = ""
			}
			p.values = append(p.values, v)
		}
	}
	return nil
}

// analyze returns the terms of parts, in their order.
func (j *job) analyze(ctx context.Context, parts []*part) ([]UnstoredTerms, error) {
	all := make([]UnstoredTerms, len(parts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(unstoredCalls)
	for start := 0; start < len(parts); {
		end, size := start, 0
		var docs []Unstored
		for end < len(parts) && len(docs) < unstoredDocs && (size < unstoredBytes || len(docs) == 0) {
			doc := parts[end].unstored()
			for _, texts := range doc.Texts {
				for _, v := range texts {
					size += len(v)
				}
			}
			docs = append(docs, doc)
			end++
		}
		into := all[start:end]
		group.Go(func() error {
			return j.keeper.guard.Do(computing, func() error {
				terms, err := j.keeper.analyzer.Unstored(ctx, docs)
				if err == nil && len(terms) != len(docs) {
					err = errors.New("the terms are not of the documents asked for")
				}
				copy(into, terms)
				return err
			})
		})
		start = end
	}
	return all, group.Wait()
}

// unstored returns what the terms of the part are made of.
func (p *part) unstored() Unstored {
	doc := Unstored{Index: p.plan.target.Index, Routing: p.action.routing, Texts: p.texts}
	if doc.Routing == "" {
		doc.Routing = p.plan.target.Routing
	}
	for _, f := range p.fields {
		if len(p.texts[f.Source]) > 0 {
			doc.Fields = append(doc.Fields, f.Name)
		}
	}
	return doc
}

// A weigher computes norms by several weights, of which it asks for each
// term once.
type weigher map[FrozenWeights]map[string]float64

// note notes the terms whose weights will be needed.
func (w weigher) note(weights FrozenWeights, terms []TermFreq) {
	all := w[weights]
	if all == nil {
		all = map[string]float64{}
		w[weights] = all
	}
	for i := range terms {
		all[terms[i].Term] = 0
	}
}

// load asks for the weights of all terms noted.
func (w weigher) load(ctx context.Context) error {
	for weights, all := range w {
		terms := make([]string, 0, min(len(all), rowsAtOnce))
		rows := make([]simmatrix.Row, cap(terms))
		fetch := func() error {
			clear(rows)
			if err := weights.Rows(ctx, terms, rows[:len(terms)]); err != nil {
				return err
			}
			for i, term := range terms {
				all[term] = Weight(rows[i].DocFreq(), uint64(max(weights.Docs(), 0)))
			}
			terms = terms[:0]
			return nil
		}
		for term := range all {
			if terms = append(terms, term); len(terms) < rowsAtOnce {
				continue
			}
			if err := fetch(); err != nil {
				return err
			}
		}
		if len(terms) == 0 {
			continue
		}
		if err := fetch(); err != nil {
			return err
		}
	}
	return nil
}

// norm returns ‖Wy‖.
func (w weigher) norm(weights FrozenWeights, terms []TermFreq) float64 {
	all := w[weights]
	return Norm(terms, func(term string) float64 { return all[term] })
}
