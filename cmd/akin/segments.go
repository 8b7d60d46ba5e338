package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/enrich"
)

func newSegments() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "segments", Short: "Cut long documents into segments",
		Long: `To find a long document by its best passage, store its text twice: as a whole, and cut
into segments, which are nested documents. "index segments backfill" cuts the texts of the
documents in an index.

docs/segments.md has the mapping, and says how searches use the segments.`,
		Example: `  akin index segments backfill --cluster http://127.0.0.1:9200 --index docs --field body`,
	}, newSegmentsBackfill())
}

// cutFlags say how a text is cut, and where the segments are stored.
type cutFlags struct {
	by, path string
	cut      enrich.Cut // by
}

func (f *cutFlags) parse() (err error) {
	if f.cut, err = enrich.ParseCut(f.by); err != nil {
		err = fmt.Errorf("--by: %w", err)
	}
	if strings.Contains("."+f.path+".", "..") {
		err = errors.Join(err, fmt.Errorf("--path: %q is not a field name", f.path))
	}
	return err
}

const segmentsHelp = `backfill cuts the text of each document that has the field, and stores the segments in the
nested field of --path: each with its text, its position, from 1, its share of the words,
and its share of the sum of 1/position, godwin. The keyword PATH_by stores the field and the
way to cut, so that finished documents are skipped. Use --all to find texts changed by a
partial update. Documents written as a whole are always found.

Paragraphs end at blank lines. Sentences are those of Unicode (UAX #29); a single line break
does not end one. A window has WORDS words, separated by white space, and its last OVERLAP
words also begin the next window; windows is short for windows:200:50. A document with
more segments than its index allows nested documents (` + enrich.LimitSetting + `,
10,000 by default) fails; the others are done.

` + fillHelp + `

backfill rejects a --path that is not mapped as nested or is in an object with other fields,
fields of nested documents, targets of copy_to, and indices that do not keep the whole
_source. It also rejects indices without the mapping, and prints it. See docs/segments.md
for more.

` + cli.Credentials

func newSegmentsBackfill() *cobra.Command {
	var f fillFlags
	var cut cutFlags
	cmd := f.backfill(&cobra.Command{
		Use:   "backfill --cluster URL --index INDEX --field FIELD",
		Short: "Cut the texts of the documents of an index, and store the segments", Long: segmentsHelp,
		Example: `  akin index segments backfill --cluster http://127.0.0.1:9200 --index docs --field body --dry-run
  akin index segments backfill --cluster http://127.0.0.1:9200 --index docs --field body --by sentences
  akin index segments backfill --cluster http://127.0.0.1:9200 --index docs --field body --by windows:200:50`,
	}, "segments", cut.parse, func(cmd *cobra.Command, cluster documents.API) (filling, error) {
		s := enrich.Filling{Cut: cut.cut, Field: f.field, Path: cut.path}
		indices, err := cluster.Countable(cmd.Context(), f.Index, f.field)
		if err == nil {
			err = f.checkMapping(indices, "segments", s.Check)
		}
		return filling{task: s.Task(), kind: "segments", id: s.Stamp(), empty: "text", indices: indices}, err
	})
	flags := cmd.Flags()
	flags.StringVar(&cut.path, "path", "segments", "nested field for the segments")
	flags.StringVar(&cut.by, "by", enrich.Paragraphs, "how to cut: paragraphs, sentences or windows:WORDS:OVERLAP, with an overlap of at most half")
	new(cli.Config).Register(cmd, &f.Cluster)
	return cmd
}
