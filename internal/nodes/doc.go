// Package nodes sends requests to the nodes of a cluster: it chooses which node
// is asked, notices which are not well, and repeats on another node what was
// not answered where that is harmless.
package nodes
