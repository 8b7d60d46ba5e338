package searches

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"
)

const (
	// FileVersion is the version of the file's content: an object with it as
	// "version", and an array of [Search] as "searches".
	FileVersion = 1
	// maxFile limits what is read of a file: no search is larger than 6 kB.
	maxFile = maxPlaces * (8 << 10)
)

// readFile returns what is in the file and still kept; nothing if there is no
// file, or an error. It keeps one search in memory besides.
func readFile(o *Options) (*sketch, error) {
	s := newSketch(maxPlaces)
	f, err := os.Open(o.File)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		first := o.today() - o.Keep + 1
		err = decode(io.LimitReader(f, maxFile), func(of *Search) { s.load(of, first) })
		_ = f.Close() // nothing was written
	}
	if err != nil {
		return newSketch(maxPlaces), fmt.Errorf("the searches in %s, which stays as it is: remove it, or name another in searches.file: %w", o.File, err)
	}
	return s, nil
}

// load counts a search of a file, from the first day on.
func (s *sketch) load(of *Search, first int) {
	for _, d := range of.Days {
		date, err := time.Parse(time.DateOnly, d.Date)
		if err != nil || dayOf(date) < first {
			continue
		}
		for found, n := range (counts{d.None, d.Few, d.Related, d.Enough}) {
			if n > 0 {
				s.add(key{of.Index, of.Fields, of.Text}, dayOf(date), Found(found), n)
			}
		}
	}
}

// decode calls each with the searches of a file, one after the other.
func decode(r io.Reader, each func(s *Search)) error {
	d := json.NewDecoder(r)
	version := 0
	check := func() error {
		if version != FileVersion {
			return fmt.Errorf("its version is %d, and this akin reads %d", version, FileVersion)
		}
		return nil
	}
	err := within(d, '{', func() error {
		name, err := d.Token()
		switch {
		case err != nil:
			return err
		case name == "version":
			return errors.Join(d.Decode(&version), check())
		case name == "searches":
			return within(d, '[', func() error {
				var s Search
				err := d.Decode(&s)
				if err == nil {
					each(&s)
				}
				return err
			})
		}
		return fmt.Errorf("%v is neither its version nor its searches", name)
	})
	if err == nil {
		err = check()
	}
	return err
}

// within reads what is between an opening delimiter and the closing one, by
// calls of more.
func within(d *json.Decoder, open json.Delim, more func() error) error {
	began, err := d.Token()
	if err == nil && began != open {
		err = fmt.Errorf("%v where %v is expected", began, open)
	}
	for err == nil && d.More() {
		err = more()
	}
	if err == nil {
		_, err = d.Token()
	}
	return err
}

// writeFile replaces the file, which only its owner may read.
func writeFile(path string, all iter.Seq[Search]) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(encode(f, all), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// encode writes searches as a file has them, one after the other.
func encode(w io.Writer, all iter.Seq[Search]) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	fmt.Fprintf(b, `{"version":%d,"searches":[`, FileVersion)
	between := ""
	for s := range all {
		fmt.Fprint(b, between)
		if err := e.Encode(s); err != nil {
			return err
		}
		between = ","
	}
	fmt.Fprintln(b, "]}")
	return b.Flush() // with the error of any write
}
