// Package learn makes term-similarity matrices from a corpus, by co-occurrence
// and latent semantic analysis, or from word vectors: each term's nearest
// neighbors by the cosine, found by an exact or an approximate search.
package learn
