// Package rowstore serves the rows of similarity matrices to the request path:
// from Redis or from a matrix held in memory, through a cache that is bounded
// by bytes, and without a pause when a matrix is replaced.
//
// [Open] starts a [Store] that follows the active version of every bound
// matrix. A request calls [Store.Pin] once and takes all its rows from that
// [Snapshot], so that it sees one version of each matrix however often the
// active one changes meanwhile. [Admin] is the other side: it pushes versions
// to Redis, activates them and rolls back.
//
// # Layout in Redis
//
// The hash tag keeps all keys of the matrix NAME in one slot of a cluster. ID
// is a version, see [Version].
//
//	key                     type        content
//	akin:{NAME}:active      string      the ID that proxies serve; the only key that a switch changes
//	akin:{NAME}:versions    sorted set  complete versions; member ID, score milliseconds since 1970
//	akin:{NAME}:history     list        IDs that were active before, newest first, at most 32
//	akin:{NAME}:meta:ID     string      JSON: format, source, parameters, documents, terms, checksum, time
//	akin:{NAME}:rows:ID     hash        term → packed row ([simmatrix.Row]); "" → ID once complete
//
// A push writes rows and meta under an ID of its own, which nobody else knows,
// and with an expiry that it keeps ahead of itself: if it dies, both keys go
// away within ten minutes. When all rows have been counted, one script makes
// the keys permanent, sets the field "" and adds the ID to versions. A reader
// asks for the field "" with every look-up, so that a version that was evicted
// or flushed is told apart from one that lacks the term.
//
// Redis should run with maxmemory-policy noeviction or a volatile-* policy:
// complete versions have no expiry, and an allkeys-* policy could evict them.
package rowstore
