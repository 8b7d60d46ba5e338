// Package vectorstore keeps the vectors of texts outside the process, by key:
// in a file or in Redis.
package vectorstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// vectorBucket is the bucket of a file.
var vectorBucket = []byte("documents")

// fileTimeout is how long a call waits for another process, or for the
// configuration before a reload, to close the file.
const fileTimeout = 100 * time.Millisecond

// A File keeps vectors in a file, which one process uses at a time. The first
// call opens it. Its methods may be called concurrently.
type File struct {
	path string

	mu sync.Mutex
	db *bbolt.DB // nil until the first call
}

// NewFile returns the store in the file at path, which it creates if there is
// none.
func NewFile(path string) *File { return &File{path: path} }

// Get returns the value of each key, nil for none.
func (f *File) Get(_ context.Context, keys []string) (values [][]byte, err error) {
	values = make([][]byte, len(keys))
	err = f.try(func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket(vectorBucket)
			for i, key := range keys {
				if bucket != nil {
					values[i] = slices.Clone(bucket.Get([]byte(key)))
				}
			}
			return nil
		})
	})
	return values, err
}

// Put stores the values of keys.
func (f *File) Put(_ context.Context, keys []string, values [][]byte) error {
	return f.try(func(db *bbolt.DB) error {
		return db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists(vectorBucket)
			for i := 0; i < len(keys) && err == nil; i++ {
				err = bucket.Put([]byte(keys[i]), values[i])
			}
			return err
		})
	})
}

// Close closes the file. A later call opens it again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.db == nil {
		return nil
	}
	err := f.db.Close()
	f.db = nil
	return err
}

// try calls do with the open file.
func (f *File) try(do func(*bbolt.DB) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Try("the vectors in "+f.path, "another process uses it: give each a file of its own, or use Redis", func() (err error) {
		if f.db == nil {
			if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
				return errors.New("it is not a regular file")
			}
			if f.db, err = bbolt.Open(f.path, 0o600, &bbolt.Options{Timeout: fileTimeout}); err != nil {
				f.db = nil
				return err
			}
		}
		return do(f.db)
	})
}

// Try calls f, which uses a file of bbolt, and recovers from the database's
// panic if a page of the file is damaged. Its error names the file, and is busy
// if another process has it open.
func Try(file, busy string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is damaged: remove it (%v)", r)
		}
		if errors.Is(err, bbolterrors.ErrTimeout) {
			err = errors.New(busy)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}()
	return f()
}
