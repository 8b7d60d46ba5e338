package sign

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/akin-search/akin/internal/recovery"
)

const (
	// chainTimeout limits the search for credentials: outside of Amazon the
	// metadata service does not answer. roleTimeout is with a role to assume.
	chainTimeout = 2 * time.Second
	roleTimeout  = 5 * time.Second
	// refreshBefore is how long before the end of credentials new ones are asked
	// for, if they last twice as long.
	refreshBefore = 5 * time.Minute
	// arrival is how long a signed request may take to arrive, at most a quarter of
	// what is left when credentials are found: they are not used after that.
	arrival = time.Second
)

// newCredentials returns the credentials of the SDK's default chain, or of a
// role assumed with them. All requests share them.
func newCredentials(o Options) aws.CredentialsProvider { return &source{options: o} }

// A source keeps credentials, and asks for new ones in the background before
// they end: requests wait for them only if there are none.
type source struct {
	options  Options
	provider aws.CredentialsProvider // nil until the SDK's files were read, and after a call that found none
	failing  bool                    // the last call found none

	mu      sync.Mutex
	kept    aws.Credentials // the last good ones
	until   time.Time       // when requests stop to use them
	next    time.Time       // when to ask for others
	current *call           // nil for none
}

// A call asks for credentials, for all who wait for it.
type call struct {
	done  chan struct{}
	found aws.Credentials
	err   error
}

// Retrieve implements [aws.CredentialsProvider].
func (s *source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	kept, current := s.state() //nolint:contextcheck // All requests wait for one call.
	if current == nil {
		return kept, nil
	}
	select {
	case <-current.done:
		return current.found, current.err
	case <-ctx.Done():
		return aws.Credentials{}, context.Cause(ctx)
	}
}

// state returns the credentials kept, or the call to wait for. It starts one if
// due.
func (s *source) state() (aws.Credentials, *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	serves := s.kept.HasKeys() && (!s.kept.CanExpire || now.Before(s.until))
	due := !serves || s.kept.CanExpire && !now.Before(s.next)
	if due && s.current == nil {
		s.current = &call{done: make(chan struct{})}
		go s.renew(s.current)
	}
	if serves {
		return s.kept, nil
	}
	return aws.Credentials{}, s.current
}

// renew makes a call, the only one in flight. It ends by the limit of ask.
func (s *source) renew(c *call) {
	var noGuard *recovery.Guard // what panics is an error of the call
	c.err = noGuard.Do("asking for credentials", func() (err error) {
		c.found, err = s.ask(context.Background())
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.options.Logger
	switch {
	case c.err != nil && !s.failing:
		left := max(0, time.Until(s.until)).Round(time.Second)
		log.Warn("no new credentials to sign requests with", "old_ones_serve_for", left.String(), "err", c.err)
	case c.err == nil && s.failing:
		log.Info("credentials to sign requests with are there again")
	}
	s.failing = c.err != nil
	now := time.Now()
	if c.err == nil {
		s.kept, s.until = c.found, before(c.found.Expires, now, 4, arrival)
	}
	s.next = before(s.until, now, 2, refreshBefore)
	s.current = nil
	close(c.done)
}

// before returns a time before the end, by a part of what is left and at most
// by limit.
func before(end, now time.Time, part int64, limit time.Duration) time.Time {
	return end.Add(-max(0, min(limit, end.Sub(now)/time.Duration(part))))
}

func (s *source) ask(ctx context.Context) (aws.Credentials, error) {
	if s.provider == nil {
		found, err := s.options.provider(ctx)
		if err != nil {
			return aws.Credentials{}, err
		}
		s.provider = found
	}
	limit := chainTimeout
	if s.options.RoleARN != "" {
		limit = roleTimeout
	}
	credentials, err := within(limit, s.provider).Retrieve(ctx)
	if err != nil {
		s.provider = nil // next time the files may have more, or another source answers
	}
	return credentials, err
}

// provider reads the SDK's environment and files. Its calls need a limit of
// their own: the SDK shares a call that hangs among all who ask, and goes on
// with it when they have given up.
func (o *Options) provider(ctx context.Context) (aws.CredentialsProvider, error) {
	client := awshttp.NewBuildableClient().WithTimeout(chainTimeout)
	found, err := config.LoadDefaultConfig(ctx, config.WithRegion(o.Region), config.WithSharedConfigProfile(o.Profile), config.WithLogger(logging.Nop{}),
		config.WithHTTPClient(client), config.WithEndpointCredentialOptions(func(e *endpointcreds.Options) { e.HTTPClient = client }),
		config.WithCredentialsCacheOptions(func(c *aws.CredentialsCacheOptions) { c.ExpiryWindow = 0 })) // a source refreshes early
	switch {
	case err != nil:
		return nil, err
	case o.RoleARN == "":
		return uncached(found.Credentials), nil
	}
	found.Credentials = within(chainTimeout, found.Credentials)
	return stscreds.NewAssumeRoleProvider(sts.NewFromConfig(found), o.RoleARN, func(a *stscreds.AssumeRoleOptions) {
		a.RoleSessionName = "akin"
	}), nil
}

// within returns a provider that gives up after a time.
func within(limit time.Duration, p aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no credentials within %v", limit))
		defer cancel()
		found, err := p.Retrieve(ctx)
		if err != nil && ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return found, err
	})
}

// uncached returns a provider that fetches new credentials on each call. The
// SDK's own caches them until they expire.
func uncached(p aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		if kept, ok := p.(*aws.CredentialsCache); ok {
			kept.Invalidate()
		}
		return p.Retrieve(ctx)
	})
}
