package embed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// The buckets of a cache: what its vectors are of, and the vectors by word, as
// little-endian float32.
var (
	aboutBucket  = []byte("about")
	vectorBucket = []byte("vectors")
)

// lockTimeout is how long another build may hold the file.
const lockTimeout = 5 * time.Second

// A cache keeps vectors in a file. The nil cache keeps none.
type cache struct {
	path string
	db   *bbolt.DB
}

// openCache opens the cache of a model and a prefix, and refuses that of
// another model or prefix. Unless it is only read, it is made where it is
// missing.
func openCache(path, model, prefix string, readOnly bool) (*cache, error) {
	if path == "" {
		return nil, nil
	}
	c := &cache{path: path}
	var err error
	if c.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, ReadOnly: readOnly}); err != nil {
		return nil, c.explain(err)
	}
	is := map[string]string{"model": model, "prefix": prefix}
	if !readOnly {
		err = c.db.Update(func(tx *bbolt.Tx) error {
			about, err := tx.CreateBucketIfNotExists(aboutBucket)
			if err != nil {
				return err
			}
			for key, value := range is {
				if about.Get([]byte(key)) == nil {
					err = errors.Join(err, about.Put([]byte(key), []byte(value)))
				}
			}
			_, errVectors := tx.CreateBucketIfNotExists(vectorBucket)
			return errors.Join(err, errVectors)
		})
	}
	if err == nil {
		err = c.db.View(func(tx *bbolt.Tx) error {
			about := tx.Bucket(aboutBucket)
			if about == nil || tx.Bucket(vectorBucket) == nil {
				return errors.New("it is no cache of vectors: name another file")
			}
			for key, want := range is {
				if got := string(about.Get([]byte(key))); got != want {
					return fmt.Errorf("it has vectors of the %s %q, not of %q: name another file", key, got, want)
				}
			}
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(c.explain(err), c.db.Close())
	}
	return c, nil
}

func (c *cache) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the cache of vectors %s: %w", c.path, err)
}

// get returns the vector of each word, nil where it has none.
func (c *cache) get(words []string) ([][]float32, error) {
	vectors := make([][]float32, len(words))
	if c == nil {
		return vectors, nil
	}
	err := c.db.View(func(tx *bbolt.Tx) error {
		bucket, dim := tx.Bucket(vectorBucket), 0
		for k, word := range words {
			packed := bucket.Get([]byte(word))
			if packed == nil {
				continue
			}
			if len(packed)%4 != 0 || dim != 0 && len(packed) != 4*dim {
				return fmt.Errorf("the vector of %q is damaged: remove the file", word)
			}
			dim = len(packed) / 4
			vectors[k] = make([]float32, dim)
			_, _ = binary.Decode(packed, binary.LittleEndian, vectors[k]) // fails only where it is shorter
		}
		return nil
	})
	return vectors, c.explain(err)
}

// put keeps the vectors of words.
func (c *cache) put(words []string, vectors [][]float32) error {
	if c == nil {
		return nil
	}
	return c.explain(c.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(vectorBucket)
		for k, word := range words {
			packed, _ := binary.Append(nil, binary.LittleEndian, vectors[k]) // takes all numbers
			if err := bucket.Put([]byte(word), packed); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (c *cache) close() error {
	if c == nil {
		return nil
	}
	return c.explain(c.db.Close())
}
