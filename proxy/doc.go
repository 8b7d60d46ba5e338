// Package proxy stands between the clients and the search cluster. It forwards
// every request byte for byte, and hands the searches among them to an
// [Expander] first.
//
// Two rules hold everywhere. What is not a recognized search is neither read
// nor changed: path, raw query, headers (akin's own aside) and both bodies
// stream through. And whatever goes wrong with a search inside akin, the bytes
// that the client sent go on to the cluster.
//
// The table of what is recognized is in routes.go.
package proxy
