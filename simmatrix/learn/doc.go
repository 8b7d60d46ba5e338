// Package learn makes term-similarity matrices of what is learnt from a corpus,
// by co-occurrence and latent semantic analysis, or of given vectors: each
// term's nearest neighbors by the cosine, found by an exact or an approximate
// search.
package learn
