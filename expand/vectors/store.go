package vectors

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A Coordinate is the value of a term in a vector: its frequency in a text, or
// a value computed from it.
type Coordinate struct {
	Term  string
	Value float64
}

// FeatureName returns a term's name in a sparse vector: engines read a dot as a
// path, so it is written %2E, and % as %25.
func FeatureName(term string) string {
	return strings.NewReplacer("%", "%25", ".", "%2E").Replace(term)
}

// maxName is the longest term in Lucene, in bytes, and so the longest name.
const maxName = 32_766

// Feature returns the value to store in a sparse vector: rounded to 9
// significant bits, which Lucene's FeatureField keeps, truncating the others.
// The error is at most 2⁻⁹ of the value.
func Feature(value float64) float32 {
	const cutBits = 15
	bits := math.Float32bits(float32(value))
	return math.Float32frombits((bits + 1<<(cutBits-1)) >> cutBits << cutBits)
}

// Objects in a document with its vectors and the ids of the models that made
// them; one member per field.
const (
	Object      = "akin_vector"
	ModelObject = "akin_vector_model"
)

// Name returns a field's name in the objects: its full name with "__" for ".".
func Name(field string) string { return strings.ReplaceAll(field, ".", "__") }

// Path returns the full name of the field with the vectors of a field.
func Path(field string) string { return Object + "." + Name(field) }

// ModelPath returns the full name of the keyword with the model's id.
func ModelPath(field string) string { return ModelObject + "." + Name(field) }

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // a string always encodes
	}
	return b
}

// Features returns a sparse vector as a JSON object.
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
