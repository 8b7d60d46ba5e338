// Package esclient makes the calls that akin itself makes to the search
// cluster: how a field is mapped, how a text is analyzed, how frequent a term
// is, how the engine scores, and the documents a matrix is built from. It works
// with Elasticsearch 7 and later and with OpenSearch.
//
// [Client] makes each call when it is asked to. [Cached] stands in front of it
// on the request path: it answers from memory, and what it does not know it
// loads apart from the caller, so that a caller whose time is up leaves and the
// next one finds the answer.
package esclient
