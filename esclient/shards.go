package esclient

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// A ShardState is how far the writes to a shard have come.
type ShardState struct {
	// Index is the concrete index, and Shard the number of the shard in it.
	Index string
	Shard int
	// History names the sequence of writes. It is another one where the index was
	// deleted and made again, or restored.
	History string
	// Checkpoint is the highest sequence number up to which all writes are in all
	// copies of the shard; -1 where there was none.
	Checkpoint int64
}

// maxShardStates bounds the answer of [Client.ShardStates].
const maxShardStates = 64 << 20

// ShardStates returns the states of all shards of an index expression, by
// index and number, without closed indices, and without shards that have no
// primary copy at the moment. Names that stand for nothing are no error.
func (c *Client) ShardStates(ctx context.Context, index string) ([]ShardState, error) {
	type shardCopy struct {
		Routing struct {
			Primary bool `json:"primary"`
		} `json:"routing"`
		Commit struct {
			UserData struct {
				History string `json:"history_uuid"`
			} `json:"user_data"`
		} `json:"commit"`
		SeqNo struct {
			GlobalCheckpoint int64 `json:"global_checkpoint"`
		} `json:"seq_no"`
	}
	var answer struct {
		Indices map[string]struct {
			Shards map[string][]shardCopy `json:"shards"`
		} `json:"indices"`
	}
	const query = "/_stats/docs?level=shards&ignore_unavailable=true&filter_path=indices.*.shards.*.routing.primary," +
		"indices.*.shards.*.commit.user_data.history_uuid,indices.*.shards.*.seq_no.global_checkpoint"
	r := request{method: http.MethodGet, path: indexPath(index, query), limit: maxShardStates}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	var all []ShardState
	for name, about := range answer.Indices {
		for number, copies := range about.Shards {
			n, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("GET %s: shard %q of index %q has no number", r.path, number, name)
			}
			for _, s := range copies {
				if s.Routing.Primary {
					all = append(all, ShardState{name, n, s.Commit.UserData.History, s.SeqNo.GlobalCheckpoint})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b ShardState) int { return cmp.Or(cmp.Compare(a.Index, b.Index), a.Shard-b.Shard) })
	return all, nil
}
