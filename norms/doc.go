// Package norms computes ‖Wy‖, the length of a document's weighted vector of
// term frequencies, and keeps it in the documents of a search cluster as a doc
// value, for the hard-normalised soft cosine measure
//
//	(Wx)ᵀS(Wy) / (‖Wx‖·‖Wy‖).
//
// ‖Wy‖ does not depend on S, so that S may change without a document being
// written again. W does not follow the index: it is frozen in an artifact, a
// matrix file whose document frequencies make the weights, and each document
// has, next to its norm, the id of the weights that it was computed with.
// [Weights] and the names of the fields are defined here and nowhere else.
//
// [Snapshot] counts the document frequencies of an index for such an artifact.
// [Backfill] brings the norms into the documents that are there, and [Follow]
// into those that are written later.
package norms
