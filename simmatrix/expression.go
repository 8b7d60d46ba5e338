package simmatrix

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Expressions are terms of a matrix, too: an expression such as "heart attack"
// is one row and may be a neighbor. It is written as a mark before each of its
// index terms, in the order of their positions; a position without a term, as a
// stop word leaves it, is empty:
//
//	"\x1fheart\x1fattack"   "\x1fpoint\x1f\x1fcare"
//
// The mark is U+001F, the unit separator of ASCII. No analyzer of words
// makes a term that begins with it.
const expressionMark = "\x1f"

// Limits of an expression.
const (
	MaxExpressionTerms     = 8
	MaxExpressionPositions = 16 // with those of stop words
)

// Errors of [Expression], and of [CheckTerm] for bad ones.
var (
	errExpressionTerms    = fmt.Errorf("an expression has 2 to %d terms", MaxExpressionTerms)
	errExpressionGap      = errors.New("an expression begins and ends with a term")
	errExpressionStacked  = errors.New("the analyzer makes two terms of one word of the expression")
	errExpressionPosition = fmt.Errorf("an expression spans at most %d positions", MaxExpressionPositions)
)

// IsExpression reports whether a term of a matrix is an expression.
func IsExpression(term string) bool { return strings.HasPrefix(term, expressionMark) }

// Expression returns the term of a matrix for index terms at these positions,
// which ascend. It fails for fewer than two terms, more than
// [MaxExpressionTerms], two terms at one position, and a term that holds the
// mark or is empty.
func Expression(terms []string, positions []int) (string, error) {
	if len(terms) < 2 || len(terms) > MaxExpressionTerms {
		return "", fmt.Errorf("%w, not %d", errExpressionTerms, len(terms))
	}
	if positions[len(terms)-1]-positions[0] >= MaxExpressionPositions {
		return "", errExpressionPosition
	}
	var b strings.Builder
	before := positions[0] - 1
	for k, term := range terms {
		gap := positions[k] - before - 1
		if gap < 0 {
			return "", errExpressionStacked
		}
		before = positions[k]
		b.WriteString(strings.Repeat(expressionMark, gap))
		if err := CheckTerm(term); err != nil {
			return "", err
		}
		if strings.Contains(term, expressionMark) {
			return "", fmt.Errorf("term %.40q has the mark of expressions", term)
		}
		b.WriteString(expressionMark)
		b.WriteString(term)
	}
	return b.String(), nil
}

// ExpressionTerms returns the index terms of an expression by position, ""
// where there is none.
func ExpressionTerms(expression string) []string {
	return strings.Split(strings.TrimPrefix(expression, expressionMark), expressionMark)
}

// WordsOf yields the index terms of an expression, or the term itself.
func WordsOf(term string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range strings.SplitSeq(strings.TrimLeft(term, expressionMark), expressionMark) {
			if t != "" && !yield(t) {
				return
			}
		}
	}
}

// JoinExpression is the opposite of [ExpressionTerms]. It sets no limits.
func JoinExpression(terms []string) string {
	return expressionMark + strings.Join(terms, expressionMark)
}

// Spelled returns a term as people can read it: of an expression its terms with
// blanks between them, and "_" where there is none.
func Spelled(term string) string {
	if !IsExpression(term) {
		return term
	}
	terms := ExpressionTerms(term)
	for k, t := range terms {
		if t == "" {
			terms[k] = "_"
		}
	}
	return strings.Join(terms, " ")
}

// checkExpression returns an error for what [Expression] cannot have made.
func checkExpression(expression string) error {
	positions := ExpressionTerms(expression)
	if len(positions) > MaxExpressionPositions {
		return fmt.Errorf("%.40q: %w", expression, errExpressionPosition)
	}
	terms := 0
	for _, t := range positions {
		if t != "" {
			terms++
		}
	}
	switch {
	case positions[0] == "" || positions[len(positions)-1] == "":
		return fmt.Errorf("%.40q: %w", expression, errExpressionGap)
	case terms < 2 || terms > MaxExpressionTerms:
		return fmt.Errorf("%.40q: %w, not %d", expression, errExpressionTerms, terms)
	}
	return nil
}
