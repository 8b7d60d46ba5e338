package sign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

const (
	// chainTimeout limits the search for credentials: outside of Amazon the
	// metadata service does not answer. roleTimeout is with a role to assume.
	chainTimeout = 2 * time.Second
	roleTimeout  = 5 * time.Second
	// refreshBefore is how long before the end of credentials new ones are asked
	// for, if they last twice as long.
	refreshBefore = 5 * time.Minute
)

// newCredentials returns the credentials of the SDK's default chain, or of a
// role assumed with them. All requests share them.
func newCredentials(o Options) aws.CredentialsProvider {
	return aws.NewCredentialsCache(&source{options: o}, func(c *aws.CredentialsCacheOptions) { c.ExpiryWindow = refreshBefore })
}

// A source asks for new credentials. Its cache calls it once at a time.
type source struct {
	options  Options
	provider aws.CredentialsProvider // nil until the SDK's files could be read
	last     aws.Credentials         // the last good ones
	failing  bool
}

// Retrieve implements [aws.CredentialsProvider].
func (s *source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := s.ask(ctx)
	switch {
	case err == nil:
		if s.failing {
			s.options.Logger.InfoContext(ctx, "credentials to sign requests with are there again")
		}
		s.last, s.failing = found, false
	case !s.failing:
		s.failing = true
		s.options.Logger.WarnContext(ctx, "no new credentials to sign requests with", "old_ones_serve_for", max(0, s.left()).Round(time.Second).String(), "err", err)
	}
	return found, err
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
	return within(limit, s.provider).Retrieve(ctx)
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

// left returns how long the last credentials are valid, negative if they are
// not.
func (s *source) left() time.Duration {
	if !s.last.HasKeys() {
		return -1
	}
	return time.Until(s.last.Expires)
}

// HandleFailToRefresh implements
// [aws.HandleFailRefreshCredentialsCacheStrategy]: old credentials serve until
// their end.
func (s *source) HandleFailToRefresh(_ context.Context, _ aws.Credentials, err error) (aws.Credentials, error) {
	if s.left() <= 0 {
		return aws.Credentials{}, err
	}
	return s.last, nil
}

// AdjustExpiresBy implements [aws.AdjustExpiresByCredentialsCacheStrategy]: new
// ones are asked for refreshBefore the end, or in half of a shorter life.
func (*source) AdjustExpiresBy(c aws.Credentials, _ time.Duration) (aws.Credentials, error) {
	c.Expires = c.Expires.Add(-max(0, min(refreshBefore, time.Until(c.Expires)/2)))
	return c, nil
}
