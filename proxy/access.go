package proxy

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/answer"
)

const (
	// acceptedTime is how long a permission is remembered, deniedTime how long a
	// denial; a check that failed is not repeated for failedTime.
	acceptedTime = time.Minute
	deniedTime   = 10 * time.Second
	failedTime   = time.Second
	// maxVerdictBytes limits what is remembered, to some 15,000 verdicts.
	maxVerdictBytes = 4 << 20
	// accessTimeout limits a check. Searches wait no longer than their budget.
	accessTimeout = 2 * time.Second
	// maxQuestions limits the checks in flight, maxWaiting those and the ones that
	// wait for a place, up to accessTimeout. One client address gets half of each.
	// A denied check keeps its place for deniedPause, which slows down guessing.
	maxQuestions = 16
	maxWaiting   = 256
	deniedPause  = time.Second
)

// errUndecided says that a client's permission was not known in time. It is not
// a failure of akin: guessing credentials causes it.
var errUndecided = errors.New("it is not known yet whether the client may search")

type clientKey struct{}

// ClientOf returns the client of the search that a call is made for, or "".
func ClientOf(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(string)
	return name
}

// access knows which clients may search which indices. On a cluster with
// security, a search is expanded only for those: akin's own calls have akin's
// credentials, and other clients must neither cause them nor learn from them.
type access struct {
	calls   *calls
	guard   *recovery.Guard
	log     *slog.Logger
	results *prometheus.CounterVec // of checks
	key     [sha256.Size]byte      // random, so that nobody can compare credentials by stored keys
	// verdicts has the results of [expand.Request.Allowed].
	verdicts *cache.Cache[accessKey]
	checks   *cache.Loader  // at most maxWaiting
	places   *limits.Places // of checks in flight
	pause    time.Duration  // deniedPause, longer in tests
}

// An accessKey stands for a client and indices, without the credentials.
type accessKey [sha256.Size]byte

func newAccess(calls *calls, guard *recovery.Guard, log *slog.Logger, results *prometheus.CounterVec) *access {
	checks := cache.NewLoader(cache.Policy{
		Places: maxWaiting, Timeout: 2 * accessTimeout, Guard: guard, What: "asking for access", Client: ClientOf, Life: verdictLife,
	})
	a := &access{
		calls: calls, guard: guard, log: log, results: results, checks: checks, places: limits.NewPlaces(maxQuestions), pause: deniedPause,
		verdicts: cache.New(cache.Options[accessKey]{
			Bytes: maxVerdictBytes, Cost: func(accessKey, any) int { return 2 * sha256.Size }, Loader: checks,
		}),
	}
	_, _ = rand.Read(a.key[:]) // never fails
	return a
}

// verdictLife returns how long a verdict is remembered.
func verdictLife(_ any, err error, _ time.Duration) time.Duration {
	switch {
	case err == nil:
		return acceptedTime
	case errors.Is(err, expand.ErrNotAuthorized):
		return deniedTime
	case errors.Is(err, errUndecided):
		return 0
	default:
		return failedTime
	}
}

// close cancels the checks in flight and waits for them.
func (a *access) close() {
	a.checks.Close()
	a.verdicts.Close()
}

// checker returns [expand.Request.Allowed] for the client of a search, whose
// name is owner. It adds each question to asked. A check outlives its search,
// for the next one.
func (a *access) checker(client caller, owner string, asked *sync.Map) func(context.Context, esclient.Indices) error {
	return func(ctx context.Context, indices esclient.Indices) error {
		key := a.keyOf(client, indices)
		asked.Store(key, true)
		_, known, err := cache.Peek[any](a.verdicts, key)
		if known {
			return err
		}
		client := client.later()
		indices.Expression, indices.Options = strings.Clone(indices.Expression), strings.Clone(indices.Options)
		_, err = cache.Get(ctx, a.verdicts, key, 0, func(ctx context.Context) (any, error) {
			return nil, a.settle(ctx, owner, client, indices)
		})
		if err != nil && (errors.Is(err, cache.ErrBusy) || errors.Is(err, cache.ErrClosed) || errors.Is(err, ctx.Err())) {
			return fmt.Errorf("%w: %w", errUndecided, err)
		}
		return err
	}
}

// settle asks the cluster as soon as owner gets a place.
func (a *access) settle(ctx context.Context, owner string, client caller, indices esclient.Indices) error {
	patience, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	if err := a.places.Wait(patience, owner); err != nil {
		return fmt.Errorf("%w: %w", errUndecided, err)
	}
	ctx, cancel = context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	err := a.guard.Do("asking for access", func() error { return a.inquire(ctx, client, indices) })
	result := accessFailed
	switch {
	case err == nil:
		result = accessAllowed
	case errors.Is(err, expand.ErrNotAuthorized):
		result = accessDenied
	case errors.Is(err, expand.ErrUnknown):
		result = accessNoIndex
	}
	if result == accessDenied {
		time.AfterFunc(a.pause, func() { a.places.Give(owner) })
	} else {
		a.places.Give(owner)
	}
	a.results.WithLabelValues(result).Inc()
	return err
}

// inquire sends a cheap search with the client's credentials. If it reaches no
// shard, it proves nothing: from patterns, and from requests that ignore
// unavailable indices, the cluster silently drops those that a client may not
// see.
func (a *access) inquire(ctx context.Context, client caller, indices esclient.Indices) error {
	path := "/_search"
	if indices.Expression != "" {
		path = "/" + esclient.Name(indices.Expression) + path
	}
	path += "?size=0&terminate_after=1&track_total_hits=false&filter_path=_shards.total"
	if indices.Options != "" {
		path += "&" + indices.Options
	}
	status, page, err := a.calls.as(client, nil)(ctx, esclient.HTTPRequest{Path: path})
	var said struct {
		Shards struct {
			Total int `json:"total"`
		} `json:"_shards"`
	}
	switch {
	case err != nil:
		return err
	case status == http.StatusForbidden && answer.ReadRefusal(bytes.NewReader(page), status, false).Blocks():
		return expand.ErrUnknown // the original search gets the same answer
	case answer.IsDenied(status):
		return expand.ErrNotAuthorized
	case status == http.StatusNotFound, status == http.StatusBadRequest && client.parameters() != "":
		return expand.ErrUnknown // the cluster does not know a parameter, and refuses the search itself, too
	case status != http.StatusOK:
		return fmt.Errorf("the cluster answers %d to an empty search of the client", status)
	}
	if err := json.Unmarshal(page, &said); err != nil {
		return err
	}
	if said.Shards.Total == 0 {
		return expand.ErrUnknown
	}
	return nil
}

// secure records that the cluster has security, as status shows.
func (a *access) secure(ctx context.Context, status int) {
	if a.calls.secured.CompareAndSwap(false, true) {
		a.log.InfoContext(ctx, "the cluster has security: searches are expanded only for clients that it lets search", "status", status)
	}
}

// learn updates the verdicts for asked from the answer to a client's search;
// denied says that it denies the search. A good answer to several searches says
// nothing about any of them.
func (a *access) learn(ctx context.Context, asked *sync.Map, several bool, status int, denied bool) {
	if denied {
		a.secure(ctx, status)
	}
	for k := range asked.Range {
		key := k.(accessKey)
		if denied {
			a.verdicts.Put(key, nil, expand.ErrNotAuthorized, deniedTime)
		} else if status < http.StatusBadRequest && !several {
			if _, known, err := cache.Peek[any](a.verdicts, key); known && err == nil {
				a.verdicts.Put(key, nil, nil, acceptedTime)
			}
		}
	}
}

// identity are parts of lower-case names of headers by which clusters, and
// proxies before them, know clients, such as es-security-runas-user and
// x-proxy-roles. One too many costs more checks; one too few lets a denied
// client pass for another until its own search is rejected.
var identity = [...]string{
	"auth", "cookie", "forwarded", "group", "jwt", "key", "proxy", "role", "security", "tenant", "token", "user",
}

// eachIdentity calls f with name and value, in turn, of each header that may
// identify the client, sorted by name.
func eachIdentity(h http.Header, f func(text string)) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		lower := strings.ToLower(name)
		if lower == "user-agent" || !slices.ContainsFunc(identity[:], func(part string) bool { return strings.Contains(lower, part) }) {
			continue
		}
		for _, value := range h[name] {
			f(name)
			f(value)
		}
	}
}

// keyOf returns the key of a client, known by its headers and parameters that
// no search has, and of indices.
func (a *access) keyOf(client caller, indices esclient.Indices) accessKey {
	mac := hmac.New(sha256.New, a.key[:])
	addText(mac, client.parameters())
	eachIdentity(client.header, func(text string) { addText(mac, text) })
	addText(mac, indices.Expression)
	addText(mac, indices.Options)
	return accessKey(mac.Sum(nil))
}

// addText adds a text with its length, so that texts do not run together.
func addText(to hash.Hash, text string) {
	_ = binary.Write(to, binary.BigEndian, uint64(len(text))) // a hash never fails
	_, _ = to.Write([]byte(text))
}
