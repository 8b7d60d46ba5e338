package vectorstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix/store"
)

const (
	// redisPrefix begins the keys in Redis.
	redisPrefix = "akin:vector:"
	// redisLife is how long Redis keeps a vector after its last use.
	redisLife = 30 * 24 * time.Hour
	// redisTimeout limits each call, of redisAtOnce keys.
	redisTimeout = 2 * time.Second
	redisAtOnce  = 100
)

// A Redis keeps vectors in Redis, for several processes. Its methods may be
// called concurrently.
type Redis struct{ client redis.UniversalClient }

// NewRedis returns the store in a Redis, or the error of its URL. It connects
// when it is used.
func NewRedis(at store.Redis) (*Redis, error) {
	client, err := store.NewClient(at, redisTimeout)
	return &Redis{client}, err
}

// Get returns the value of each key, nil for none.
func (r *Redis) Get(ctx context.Context, keys []string) (values [][]byte, err error) {
	values = make([][]byte, 0, len(keys))
	err = r.each(ctx, keys, func(p redis.Pipeliner, i int) { p.GetEx(ctx, redisKey(keys[i]), redisLife) }, func(c redis.Cmder) error {
		value, err := c.(*redis.StringCmd).Bytes()
		if errors.Is(err, redis.Nil) {
			value, err = nil, nil
		}
		values = append(values, value)
		return err
	})
	return values, err
}

// Put stores the values of keys.
func (r *Redis) Put(ctx context.Context, keys []string, values [][]byte) error {
	return r.each(ctx, keys, func(p redis.Pipeliner, i int) { p.Set(ctx, redisKey(keys[i]), values[i], redisLife) }, redis.Cmder.Err)
}

// each sends a command for each key and reads the answers in order.
func (r *Redis) each(ctx context.Context, keys []string, send func(p redis.Pipeliner, i int), read func(redis.Cmder) error) error {
	for from := 0; from < len(keys); from += redisAtOnce {
		p := r.client.Pipeline()
		for i := from; i < min(from+redisAtOnce, len(keys)); i++ {
			send(p, i)
		}
		answers, _ := p.Exec(ctx) // the error of the first that failed
		for _, answer := range answers {
			if err := read(answer); err != nil {
				return fmt.Errorf("the vectors in Redis: %w", err)
			}
		}
	}
	return nil
}

func redisKey(key string) string { return redisPrefix + hex.EncodeToString([]byte(key)) }

// Close closes the connections.
func (r *Redis) Close() error { return r.client.Close() }
