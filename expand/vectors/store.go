package vectors

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A Coordinate is the value of a term in a vector: how often a text has it, or
// what became of that.
type Coordinate struct {
	Term  string
	Value float64
}

// FeatureName returns the name of a term among the features of a sparse vector:
// the engines read a dot as a path, so that it is written %2E, and % as %25.
func FeatureName(term string) string {
	return strings.NewReplacer("%", "%25", ".", "%2E").Replace(term)
}

// maxName is how many bytes of a term Lucene takes, and so of the name of a
// feature.
const maxName = 32_766

// Feature returns what the field of a sparse vector is given for a value: the
// nearest number of 9 significant bits, which are what Lucene's FeatureField
// keeps, by cutting off the others. The error is at most 2⁻⁹ of the value.
func Feature(value float64) float32 {
	const cutBits = 15
	bits := math.Float32bits(float32(value))
	return math.Float32frombits((bits + 1<<(cutBits-1)) >> cutBits << cutBits)
}

// The objects of a document that hold its vectors and the ids of the models
// that made them, a member for each field.
const (
	Object      = "akin_vector"
	ModelObject = "akin_vector_model"
)

// Name returns the name of a field within the two objects: its full name with
// "__" for every ".".
func Name(field string) string { return strings.ReplaceAll(field, ".", "__") }

// Path returns the full name of the field that holds the vectors of a field.
func Path(field string) string { return Object + "." + Name(field) }

// ModelPath returns the full name of the keyword that holds the id of the
// model.
func ModelPath(field string) string { return ModelObject + "." + Name(field) }

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // a string always has one
	}
	return b
}

// Features returns a sparse vector as the JSON object of its features.
func Features(x []Coordinate) []byte {
	b := []byte{'{'}
	for _, c := range x {
		if f := Feature(c.Value); f > 0 && !math.IsInf(float64(f), 0) {
			b = append(append(b, quote(FeatureName(c.Term))...), ':')
			b = append(strconv.AppendFloat(b, float64(f), 'g', -1, 32), ',')
		}
	}
	return append(bytes.TrimSuffix(b, []byte{','}), '}')
}

// Array returns a dense vector as a JSON array.
func Array(x []float32) []byte {
	b := []byte{'['}
	for _, v := range x {
		b = append(strconv.AppendFloat(b, float64(v), 'g', -1, 32), ',')
	}
	return append(bytes.TrimSuffix(b, []byte{','}), ']')
}
