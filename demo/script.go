package demo

import "math"

// The scripts that this engine runs, recognized by their text: the two that a
// search in akin's saturated form carries, and the one that akin learns with
// whether scripts run at all.
const (
	// ScriptInvert undoes BM25's saturation: with m = boost·2.2·idf it turns
	// the score of a term into b·tf/K. c in (0, 1) keeps it finite.
	ScriptInvert = "double r = Math.min(_score / params.m, params.c); return params.b * r / (1 - r)"
	// ScriptSaturate saturates a sum of such values again, to at most m.
	ScriptSaturate = "return params.m * _score / (1 + _score)"
	// ScriptProbe multiplies a score by a.
	ScriptProbe = "_score * params.a"
)

// A script turns one score into another.
type script struct {
	source     string
	a, m, c, b float64 // its parameters, those that it has
}

// script reads the script member of a script_score query. Parameters with
// which a score could come out negative or infinite are refused at once; the
// real engines refuse them when it happens.
func (p *parser) script(v any) script {
	a := p.members("script", v)
	s := script{source: a.str("source", "")}
	lang := a.str("lang", "painless")
	params := p.members("script params", a.object("params"))
	if a.done() != nil {
		return s
	}
	wrong := ""
	switch {
	case lang != "painless":
		p.fail(scriptError("the embedded engine runs painless only", s.source))
	case s.source == ScriptInvert:
		s.m, s.c, s.b = params.number("m", 0), params.number("c", -1), params.number("b", -1)
		if s.m <= 0 || s.c < 0 || s.c >= 1 || s.b < 0 {
			wrong = "params.m must be positive, params.c in [0, 1), params.b not negative"
		}
	case s.source == ScriptSaturate:
		if s.m = params.number("m", -1); s.m < 0 {
			wrong = "params.m must not be negative"
		}
	case s.source == ScriptProbe:
		if s.a = params.number("a", -1); s.a < 0 {
			wrong = "params.a must not be negative"
		}
	default:
		p.fail(scriptError("compile error: the embedded engine runs akin's own scripts only", s.source))
	}
	if wrong != "" {
		p.fail(scriptError("runtime error: "+wrong, s.source))
	}
	return s
}

// run returns the new score: the script computes in float64, and the engine
// keeps a float32.
func (s script) run(score float32) float32 {
	x := float64(score)
	switch s.source {
	case ScriptInvert:
		r := math.Min(x/s.m, s.c)
		return float32(s.b * r / (1 - r))
	case ScriptSaturate:
		return float32(s.m * x / (1 + x))
	default:
		return float32(x * s.a)
	}
}
