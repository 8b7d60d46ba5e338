// Package store serves the rows of similarity matrices to the request path,
// from Redis or from memory, through a cache bounded in bytes and without a
// pause when a matrix is replaced.
//
// [Open] starts a [Store] that follows the active version of every bound
// matrix. A request calls [Store.Pin] once and takes all its rows from that
// [Snapshot], so that it sees one version of each matrix. [Admin] pushes
// versions to Redis, activates them, rolls back, prunes and pulls.
//
// # Layout in Redis
//
// The hash tag keeps all keys of the matrix NAME in one slot of a cluster, so
// that one round trip to one node reads rows, and a script may use all of
// them. ID is a version, see [Version].
//
//	key                     type        content
//	akin:{NAME}:active      string      the ID that proxies serve; the only key that a switch changes
//	akin:{NAME}:versions    sorted set  complete versions; member ID, score milliseconds since 1970
//	akin:{NAME}:history     list        IDs that were active before, newest first, at most 32
//	akin:{NAME}:meta:ID     string      JSON: format, source, parameters, documents, terms, checksum, time, who,
//	                                    frequent terms, and a CRC-32C of all before it
//	akin:{NAME}:forms:ID    hash        term → the form in which people write it, where that is another; only read
//	                                    to show terms to somebody
//	akin:{NAME}:words:ID    hash        number → 4096 of the terms that documents have, with their document
//	                                    frequencies, deflated, and a CRC-32C
//	akin:{NAME}:rows:ID     hash        term → encoded row ([simmatrix.RowCodec]) and a CRC-32C, 4 bytes, of row
//	                                    and term; 0xFF and a number → a chunk of the set of terms, with a
//	                                    CRC-32C; "" → ID once complete
//
// A push writes rows and meta under a new ID with an expiry, which it keeps
// renewing: if it dies, its keys expire within ten minutes. When all fields
// have been counted, one script makes the keys permanent, sets the field ""
// and adds the ID to versions. A prune removes IDs from versions and history
// at once and lets their keys expire after a minute, for requests still
// reading them.
//
// # Damage
//
// With every look-up, and four times a second, a reader also asks for the
// field "" and the number of fields, which shows that a version was evicted or
// flushed, or has lost rows. It also keeps 64 bits of a hash of every term of
// the version, and thus tells a lost row from a term that the matrix lacks
// even where another field makes up for the number. A version with missing
// rows or wrong checksums is left at once: not even its cached rows are
// returned. The last sound version of the history is served until the number
// is right again and the bad rows are good. If there is none, look-ups fail.
//
// Matrices of more than 8,388,608 terms have no set of terms: only the
// number of rows is checked.
//
// # Failover
//
// Reads go to masters, as writes do. A replica that becomes the master has a
// prefix of what was written. It may lack rows of a version that is being
// pushed, which are counted before the version is complete, or the switch to a
// version, and then names the one before; it never has a switch without the
// version, nor the mark of a complete version without its rows. Version IDs are
// never reused, so cached rows cannot belong to another version.
//
// Redis should run with maxmemory-policy noeviction or a volatile-* policy:
// complete versions have no expiry, and an allkeys-* policy could evict them.
package store
