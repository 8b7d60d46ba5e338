package tables

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// A ListedVersion is a version of a matrix in Redis.
type ListedVersion struct {
	rowstore.Version

	ID     string `json:"version"`
	Active bool   `json:"active"`
}

// ListedVersions are those of one matrix, the newest first.
type ListedVersions []ListedVersion

// Versions lists versions.
func Versions(versions []rowstore.Version) ListedVersions {
	all := make(ListedVersions, 0, len(versions))
	for _, v := range versions {
		id, active := v.ID, v.Active
		v.Frequent = nil // which is for proxies
		all = append(all, ListedVersion{v, id, active})
	}
	return all
}

// Print prints a table.
func (l ListedVersions) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tVERSION\tPUSHED\tBY\tTERMS\tNEIGHBORS\tDOCS\tCHECKSUM\tSOURCE")
	for i := range l {
		v, mark := &l[i], ""
		if v.Active {
			mark = "*"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%.12s\t%s\n", mark, v.ID, v.Pushed.UTC().Format(time.RFC3339), v.By,
			v.Terms, v.NonZeros, v.Docs, v.Checksum, v.Source)
	}
	return w.Flush()
}

// A ListedMatrix is what there is of one matrix in Redis.
type ListedMatrix struct {
	Name      string `json:"name"`
	Active    string `json:"active"` // version, "" for none
	Versions  int    `json:"versions"`
	Terms     uint64 `json:"terms"`
	Neighbors uint64 `json:"neighbors"`
	Bytes     int64  `json:"bytes"` // in Redis; 0: not known
}

// ListedMatrices are all in a Redis, by name.
type ListedMatrices []ListedMatrix

// Matrices lists matrices.
func Matrices(matrices []rowstore.Summary) ListedMatrices {
	all := make(ListedMatrices, 0, len(matrices))
	for i := range matrices {
		m := &matrices[i]
		all = append(all, ListedMatrix{m.Name, m.Active.ID, m.Versions, m.Active.Terms, m.Active.NonZeros, m.Bytes})
	}
	return all
}

// Print prints a table.
func (l ListedMatrices) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tACTIVE VERSION\tVERSIONS\tTERMS\tNEIGHBORS\tSIZE")
	for _, m := range l {
		size := "unknown"
		if m.Bytes > 0 {
			size = strconv.FormatFloat(float64(m.Bytes)/(1<<20), 'f', 1, 64) + " MiB"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n", terminal.Visible(m.Name), cmp.Or(m.Active, "none"), m.Versions, m.Terms, m.Neighbors, size)
	}
	return w.Flush()
}
