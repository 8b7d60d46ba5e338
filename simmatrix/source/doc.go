// Package source reads matrices and terms of other programs: lists of terms and
// of similarities, MatrixMarket files, thesauri in Solr's and WordNet's
// formats, and word vectors. It writes the lists that it reads.
package source
