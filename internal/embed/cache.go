package embed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/akin-search/akin/internal/vectorstore"
)

// The buckets of a cache: what its vectors are for (model, prefix and, except
// in old files, dimension), and the vectors by word, as little-endian float32.
// A word that the model rejected has an empty vector.
var (
	aboutBucket  = []byte("about")
	vectorBucket = []byte("vectors")
)

// A cache stores vectors in a file. Without a file it stores none.
type cache struct {
	path string
	is   map[string]string // model and prefix
	db   *bbolt.DB         // nil without a file
}

// openCache opens the cache of a model and a prefix. It rejects the file of
// another model or prefix. It creates a missing file only if create is set.
func openCache(path, model, prefix string, create bool) (*cache, error) {
	c := &cache{path: path, is: map[string]string{"model": model, "prefix": prefix}}
	if info, err := os.Stat(path); path == "" || !create && (errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0) {
		return c, nil
	}
	err := c.try(func() (err error) {
		if c.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 5 * time.Second}); err != nil {
			return err
		}
		return c.db.View(c.check)
	})
	if err != nil {
		err = errors.Join(err, c.close())
	}
	return c, err
}

// check returns why the file is not the cache of this model. An empty file is
// the cache of any model.
func (c *cache) check(tx *bbolt.Tx) error {
	about := tx.Bucket(aboutBucket)
	if first, _ := tx.Cursor().First(); first == nil {
		return nil
	}
	if about == nil || tx.Bucket(vectorBucket) == nil {
		return errors.New("it is not a cache of vectors: choose another file")
	}
	for key, want := range c.is {
		if got := string(about.Get([]byte(key))); got != want {
			return fmt.Errorf("it has vectors of the %s %q, not of %q: choose another file", key, got, want)
		}
	}
	return nil
}

// try calls f, see [vectorstore.Try].
func (c *cache) try(f func() error) error {
	return vectorstore.Try("the cache of vectors "+c.path, "another build uses it: wait until that ends, or choose another file", f)
}

// get returns the vector of each word: nil if unknown, empty if the model
// rejected the word. dim is their dimension, 0 if no vector is known.
func (c *cache) get(words []string) (vectors [][]float32, dim int, err error) {
	vectors = make([][]float32, len(words))
	if c.db == nil {
		return vectors, 0, nil
	}
	err = c.try(func() error {
		return c.db.View(func(tx *bbolt.Tx) error {
			about, bucket := tx.Bucket(aboutBucket), tx.Bucket(vectorBucket)
			if about == nil {
				return nil
			}
			dim, _ = strconv.Atoi(string(about.Get([]byte("dimension"))))
			for k, word := range words {
				packed := bucket.Get([]byte(word))
				if packed == nil {
					continue
				}
				if size := len(packed); size%4 != 0 || dim > 0 && size > 0 && size != 4*dim {
					return fmt.Errorf("the vector of %q is damaged: remove the file", word)
				}
				vectors[k] = make([]float32, len(packed)/4)
				dim = max(dim, len(vectors[k]))
				_, _ = binary.Decode(packed, binary.LittleEndian, vectors[k]) // fails only if packed is too short
			}
			return nil
		})
	})
	return vectors, dim, err
}

// put stores the vectors of words, which have dimension dim, and what they are
// for.
func (c *cache) put(words []string, vectors [][]float32, dim int) error {
	if c.db == nil {
		return nil
	}
	return c.try(func() error {
		return c.db.Update(func(tx *bbolt.Tx) error {
			about, err := tx.CreateBucketIfNotExists(aboutBucket)
			bucket, errVectors := tx.CreateBucketIfNotExists(vectorBucket)
			if err = errors.Join(err, errVectors); err != nil {
				return err
			}
			for key, value := range c.is {
				err = errors.Join(err, about.Put([]byte(key), []byte(value)))
			}
			err = errors.Join(err, about.Put([]byte("dimension"), []byte(strconv.Itoa(dim))))
			for k, word := range words {
				packed, _ := binary.Append(nil, binary.LittleEndian, vectors[k]) // never fails for numbers
				err = errors.Join(err, bucket.Put([]byte(word), packed))
			}
			return err
		})
	})
}

func (c *cache) close() error {
	if c.db == nil {
		return nil
	}
	return c.try(c.db.Close)
}
