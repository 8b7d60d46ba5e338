package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	// scanCount is how many keys of Redis one round trip looks at, about, and
	// maxScans how many round trips there are for each server.
	scanCount, maxScans = 1000, 2000
	// maxNames bounds the matrices that are listed.
	maxNames = 1000
)

// A Summary is what there is of one matrix: Terms, Neighbors and Bytes of the
// active version.
type Summary struct {
	Name      string `json:"name"`
	Active    string `json:"active"`   // version, "" for none
	Versions  int    `json:"versions"` // complete ones, at most 1000
	Terms     uint64 `json:"terms"`
	Neighbors uint64 `json:"neighbors"`
	Bytes     int64  `json:"bytes"` // in Redis, about; 0 where Redis does not say
}

// Matrices returns what there is of each matrix, by name. whole is false where
// there may be more: only so many keys of a Redis that has others, too, are
// looked at, and so many matrices are listed.
func (a *Admin) Matrices(ctx context.Context) (all []Summary, whole bool, err error) {
	names, whole, err := a.names(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("names of matrices: %w", err)
	}
	all = []Summary{}
	for _, name := range names[:min(len(names), maxNames)] {
		versions, err := a.Versions(ctx, name)
		if err != nil {
			return nil, false, err
		}
		s := Summary{Name: name, Versions: len(versions)}
		if k := slices.IndexFunc(versions, func(v Version) bool { return v.Active }); k >= 0 {
			s.Active, s.Terms, s.Neighbors = versions[k].ID, versions[k].Terms, versions[k].NonZeros
			_ = a.do(ctx, func(ctx context.Context) error { // which not every Redis lets users ask
				s.Bytes = a.client.MemoryUsage(ctx, rowsKey(name, s.Active)).Val()
				return nil
			})
		}
		all = append(all, s)
	}
	return all, whole && len(names) <= maxNames, nil
}

// names looks for the lists of versions among all keys, on each master of a
// cluster.
func (a *Admin) names(ctx context.Context) (names []string, whole bool, err error) {
	const before, after = "akin:{", "}:versions"
	var mu sync.Mutex
	found := map[string]bool{}
	whole = true
	scan := func(ctx context.Context, client redis.Cmdable) error {
		var cursor uint64
		for range maxScans {
			var keys []string
			if err := a.do(ctx, func(ctx context.Context) (err error) {
				keys, cursor, err = client.Scan(ctx, cursor, before+"*"+after, scanCount).Result()
				return err
			}); err != nil {
				return err
			}
			mu.Lock()
			for _, key := range keys {
				name := strings.TrimSuffix(strings.TrimPrefix(key, before), after)
				if checkName("matrix", name) == nil && len(found) <= maxNames {
					found[name] = true
				}
			}
			mu.Unlock()
			if cursor == 0 {
				return nil
			}
		}
		mu.Lock()
		whole = false
		mu.Unlock()
		return nil
	}
	if c, ok := a.client.(*redis.ClusterClient); ok {
		err = c.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error { return scan(ctx, client) })
	} else {
		err = scan(ctx, a.client)
	}
	return slices.Sorted(maps.Keys(found)), whole, err
}
