package norms

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/simmatrix"
)

// A Write is a request that writes documents. Fields that say nothing are
// "".
type Write struct {
	// Bulk says that Body is the lines of a bulk request, Update that it is an
	// update; else it is a document.
	Bulk, Update bool
	// Index is the name of an index or an alias, ID and Routing are the
	// document's; with Bulk they are for those lines that do not say their own.
	Index, ID, Routing string
	// Pipeline and VersionType are the parameters of the request.
	Pipeline, VersionType string
	// Body is the body, nil where it was not read. It must not be modified while
	// the write is under way.
	Body []byte
}

// What becomes of a document, keys of [Kept.Documents].
const (
	// DocumentAdded says that it got its norms.
	DocumentAdded = "added"
	// DocumentBehind says that it gets its norms behind the answer.
	DocumentBehind = "behind"
	// DocumentNoNorms says that no norms are kept in its index.
	DocumentNoNorms = "no_norms"
	// DocumentNoField says that it does not have a field with norms.
	DocumentNoField = "no_field"
	// DocumentInvalid says that it, or the rest of a bulk request, cannot be read
	// here, and that it cannot be repaired. The cluster is likely to refuse it;
	// where it does not, it is left, too.
	DocumentInvalid = "invalid"
	// DocumentLeft says that its norms could not be computed on the way, and that
	// it cannot be written once more: its id is not known, its versions are the
	// client's, or nothing repairs. A new document has no norms then, which a
	// backfill finds; a document that was there may have those of its old text,
	// which only a backfill of all documents finds.
	DocumentLeft = "left"
	// DocumentUnread says that nobody knows what a bulk request writes: its body
	// was not read, or has too many lines. It is counted once.
	DocumentUnread = "unread"
	// DocumentRefused says that the cluster refused the document for its norms:
	// its index does not map them any more. It was not written.
	DocumentRefused = "refused"
)

// Kept is what becomes of a [Write].
type Kept struct {
	// Body is the new body, nil where the write goes on as it came.
	Body []byte
	// Documents are the numbers of documents by what becomes of them.
	Documents map[string]int
	// Done, unless nil, has to be called once when the write is over. It returns
	// the numbers of documents of which something else became than was said.
	Done func(a Answer) map[string]int
}

// An Answer is the cluster's answer to a write.
type Answer struct {
	// Status is 0 where there was none. The documents may be written all the same.
	Status int
	// Original says that the cluster refused Body as a whole, and that this is
	// its answer to the write as it came.
	Original bool
	// Beginning is what the answer to a bulk request with a new body begins with,
	// some kilobytes; nil where that is not known.
	Beginning []byte
}

// A TextField is a text field of an index that norms can be stored for.
type TextField struct {
	// Name is its full name.
	Name string
	// Source is the path of its text in a document: for a multi-field that of
	// the field it belongs to.
	Source string
}

// A Target is the index that writes by a name go to.
type Target struct {
	// Index is the concrete index, Routing what the name adds to writes without a
	// routing.
	Index, Routing string
	// Aliases are the names of the index beside its own, in order.
	Aliases []string
	// Pipelines says that the index has an ingest pipeline of its own.
	Pipelines bool
	// PartialSource says that an update would lose something of a document.
	PartialSource bool
	// Fields are the text fields whose norm and id are mapped, by name. Those in
	// nested objects and those filled by copy_to are not among them.
	Fields []TextField
}

// An Unstored is the part of a document that the terms of fields are made
// of.
type Unstored struct {
	// Index is the concrete index, Routing the document's.
	Index, Routing string
	// Texts are JSON strings, numbers and booleans by [TextField.Source].
	Texts map[string][]jsontext.Value
	// Fields are the fields whose terms are asked for.
	Fields []string
}

// UnstoredTerms are the terms of an [Unstored].
type UnstoredTerms struct {
	// Fields are the terms by field, each once.
	Fields map[string][]TermFreq
	// Err is why there are none.
	Err error
}

// Errors of a [Targets] that say how the cluster is.
var (
	// ErrNoTarget says that a name does not stand for one index to write to.
	ErrNoTarget = errors.New("not the name of one index to write to")
	// ErrNoIndex says that nothing has the name. A write by it makes an index.
	ErrNoIndex = errors.New("no such index")
)

// Targets know what index documents are written to.
type Targets interface {
	// Target returns the index that writes by a name go to. Its error wraps
	// [ErrNoTarget] or [ErrNoIndex] where that is how it is.
	Target(ctx context.Context, name string) (*Target, error)
	// Forget drops what is remembered of a name.
	Forget(name string)
}

// An Analyzer makes terms of documents that are not stored.
type Analyzer interface {
	// Unstored returns the terms that the index analyzers make of documents, in
	// their order.
	Unstored(ctx context.Context, docs []Unstored) ([]UnstoredTerms, error)
}

// FrozenWeights are term weights of a moment. The expand package asks for
// the same.
type FrozenWeights interface {
	// ID names them by their content, see [ID].
	ID() string
	// Docs is the number of documents that the frequencies refer to.
	Docs() int64
	// Rows sets rows[k] to a row that has the document frequency of terms[k].
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
}

// WeightsFor returns the weights that are bound to a field of an index, and
// whether some are. Those that are bound and not there, or not there yet, are
// nil.
type WeightsFor func(index, field string) (weights FrozenWeights, bound bool)
