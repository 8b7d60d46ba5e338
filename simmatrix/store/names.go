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

// A Summary is what there is of one matrix.
type Summary struct {
	Name     string
	Versions int     // complete ones, at most 1000
	Active   Version // the zero Version where none is
	// Bytes is what the rows of the active version take in Redis, about; 0 where
	// Redis does not say.
	Bytes int64
}

// Matrices returns what there is of each matrix, by name. whole is false where
// there may be more: only so many keys of a Redis that has others, too, are
// looked at, and so many matrices are listed.
func (a *Admin) Matrices(ctx context.Context) (all []Summary, whole bool, err error) {
	names, whole, err := a.names(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("names of matrices: %w", err)
	}
	for _, name := range names[:min(len(names), maxNames)] {
		versions, err := a.Versions(ctx, name)
		if err != nil {
			return nil, false, err
		}
		s := Summary{Name: name, Versions: len(versions)}
		for k := range versions {
			if versions[k].Active {
				s.Active = versions[k]
			}
		}
		if id := s.Active.ID; id != "" {
			_ = a.do(ctx, func(ctx context.Context) error { // which not every Redis lets users ask
				s.Bytes = a.client.MemoryUsage(ctx, rowsKey(name, id)).Val()
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
