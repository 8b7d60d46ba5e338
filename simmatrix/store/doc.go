// Package store serves rows of similarity matrices to searches, from Redis or
// memory, through a cache limited in bytes. A new matrix causes no pause.
//
// [Open] starts a [Store] that follows the active version of every bound
// matrix. A request calls [Store.Pin] once and takes all rows from that
// [Snapshot], so it sees one version of each matrix. [Admin] pushes versions to
// Redis, activates, rolls back, prunes and pulls them.
//
// # Layout in Redis
//
// The hash tag keeps all keys of a matrix NAME in one slot of a cluster, so
// that one round trip to one node reads rows, and a script can use all keys. ID
// is a version, see [Version].
//
//	key                     type        content
//	akin:{NAME}:active      string      the ID that proxies serve; the only key that a switch changes
//	akin:{NAME}:versions    sorted set  complete versions; member ID, score milliseconds since 1970
//	akin:{NAME}:history     list        IDs that were active before, newest first, at most 32
//	akin:{NAME}:overrides   string      file of overrides with the pairs that people accepted, see [Admin.Change]
//	akin:{NAME}:meta:ID     string      JSON: format, source, parameters, documents, terms, checksum, time, who,
//	                                    frequent terms, and a CRC-32C of all before it
//	akin:{NAME}:forms:ID    hash        term → the forms in which people write it, if different, to show
//	                                    and look up words; searches do not read it
//	akin:{NAME}:words:ID    hash        number → 4096 of the terms that documents have, with their document
//	                                    frequencies, deflated, and a CRC-32C
//	akin:{NAME}:rows:ID     hash        term → encoded row ([simmatrix.RowCodec]) and a CRC-32C, 4 bytes, of row
//	                                    and term; 0xFF and a number → a chunk of the set of terms, with a
//	                                    CRC-32C; "" → ID once complete
//
// A push writes rows and meta under a new ID with an expiry that it keeps
// renewing: if it dies, its keys expire within ten minutes. When all fields are
// counted, one script makes the keys permanent, sets the field "" and adds the
// ID to versions. A prune removes IDs from versions and history at once, and
// lets their keys expire after a minute, for requests that still read them.
//
// # A look-up
//
// [Rows.Rows] takes rows from the cache. It has the others read once for all
// who ask, by package cache, independent of the caller. One round trip through
// a breaker, with the only limit of time, then reads them:
//
//	Rows.Rows → cache.Loader.Run → cache.GetAll → remote.read → remote.call → Redis
//
// # Damage
//
// With every look-up, and four times a second, a reader also asks for the field
// "" and the number of fields. These show that a version was evicted or
// flushed, or lost rows. It also keeps a 64-bit hash of every term of the
// version, and so knows the expressions in a text without asking, and
// distinguishes a lost row from a term that the matrix lacks even if another
// field makes up for the number. A version with missing rows or
// wrong checksums is dropped at once: not even its cached rows are returned.
// The last sound version in the history is served until the number is right
// again and the bad rows are good. If there is none, look-ups fail.
//
// Matrices of more than 8,388,608 terms have no set of terms: only the number
// of rows is checked.
//
// # Failover
//
// Reads go to masters, like writes. A replica that becomes the master has a
// prefix of what was written. It may lack rows of a version that is being
// pushed, which are counted before the version is complete, or the switch to a
// version; then it still names the previous one. It never has a switch without
// the version, nor the mark of a complete version without its rows. Version IDs
// are never reused, so cached rows cannot belong to another version.
//
// Redis should run with maxmemory-policy noeviction or volatile-*: complete
// versions have no expiry, and allkeys-* could evict them.
package store
