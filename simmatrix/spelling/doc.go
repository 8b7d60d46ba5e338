// Package spelling makes a term-similarity matrix of the edit distances of the
// terms' spellings.
package spelling
