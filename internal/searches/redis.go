package searches

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix/store"
)

const (
	// redisPrefix, with a date, is the key of the sorted set of a day. 1 is the
	// version: others are not read. The score of a member is how many searches
	// there were; it has what they found, index, fields and text, joined by tabs.
	redisPrefix = "akin:searches:1:"
	// maxMembers limits the members of a set; the smallest scores go.
	maxMembers = 5000
	// redisAtOnce is how many of them a call changes.
	redisAtOnce  = 500
	redisTimeout = 2 * time.Second
)

// shared are the counts of all akins, in Redis.
type shared struct {
	o      *Options
	client redis.UniversalClient
}

func openRedis(o *Options) (*shared, error) {
	client, err := store.NewClient(o.Redis, redisTimeout)
	return &shared{o, client}, err
}

// add adds counts to those in Redis. It returns what it has not added if that
// fails.
func (r *shared) add(ctx context.Context, all iter.Seq2[key, byDay]) (rest map[key]byDay, err error) {
	type member struct {
		key   key
		found Found
		n     int64
	}
	days := map[int][]member{}
	for k, counted := range all {
		for _, d := range counted {
			for found, n := range d.n {
				if n > 0 {
					days[d.day] = append(days[d.day], member{k, Found(found), n})
				}
			}
		}
	}
	life := time.Duration(r.o.Keep+1) * hoursOfDay
	rest = map[key]byDay{}
	for day, members := range days {
		set := redisPrefix + dateOf(day)
		for len(members) > 0 {
			some := members[:min(len(members), redisAtOnce)]
			members = members[len(some):]
			if err == nil {
				_, err = r.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
					for _, m := range some {
						p.ZIncrBy(ctx, set, float64(m.n), strings.Join([]string{m.found.String(), m.key.index, m.key.fields, m.key.text}, "\t"))
					}
					p.ZRemRangeByRank(ctx, set, 0, -maxMembers-1)
					p.Expire(ctx, set, life)
					return nil
				})
			}
			if err == nil {
				continue
			}
			for _, m := range some {
				left := rest[m.key]
				left.of(day)[m.found] = m.n
				rest[m.key] = left
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("the searches in Redis: %w", err)
	}
	return rest, err
}

// read calls each with what is kept, a day after the other: together they may
// be large.
func (r *shared) read(ctx context.Context, each func(k key, day int, found Found, n int64)) error {
	today := r.o.today()
	for day := today - r.o.Keep + 1; day <= today; day++ {
		members, err := r.client.ZRangeWithScores(ctx, redisPrefix+dateOf(day), -maxMembers, -1).Result()
		if err != nil {
			return fmt.Errorf("the searches in Redis: %w", err)
		}
		for _, z := range members {
			member, _ := z.Member.(string)
			parts := strings.Split(member, "\t")
			if len(parts) != 4 {
				continue
			}
			for _, found := range AllFound() {
				if found.String() == parts[0] {
					each(key{parts[1], parts[2], parts[3]}, day, found, int64(z.Score))
				}
			}
		}
	}
	return nil
}
