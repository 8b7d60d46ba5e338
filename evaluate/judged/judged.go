// Package judged holds searches and what judges said of their documents, in the
// formats that teams keep them in.
package judged

// A Query is a text that somebody searched for.
type Query struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// A Set is judged queries.
type Set struct {
	// Queries are in the order of their file, each id once.
	Queries []Query
	// Grades are by query and document: above zero is relevant. What is not there
	// was not judged.
	Grades map[string]map[string]int
}
