package sign

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/akin-search/akin/e2e/amazontest"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
)

// environment empties what the SDK reads, but for name=value pairs.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	for _, pair := range append([]string{"AWS_CONFIG_FILE=" + none, "AWS_SHARED_CREDENTIALS_FILE=" + none, "AWS_EC2_METADATA_DISABLED=true"}, pairs...) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// file returns the path of a new file.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	check.OK(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Sixteen clients search while credentials of a second follow
// each other: none fails.
func TestCredentialsChangeUnderLoad(t *testing.T) {
	front := &amazontest.Front{Region: "eu-central-1", Service: "es", Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })}
	var asked atomic.Int32
	endpoint := front.Credentials(time.Second)
	environment(t, "AWS_CONTAINER_CREDENTIALS_FULL_URI="+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		endpoint.ServeHTTP(w, r)
	})))
	url := serve(t, front)
	client := &http.Client{Transport: New(Options{Region: "eu-central-1", Service: "es", Memory: limits.New(64 << 20)}).Transport(http.DefaultTransport)}
	var clients sync.WaitGroup
	var sent atomic.Int32
	for range 16 {
		clients.Go(func() {
			for asked.Load() < 5 && t.Context().Err() == nil {
				res, err := client.Post(url+"/i/_search", "application/json", strings.NewReader("{}"))
				if err != nil || res.StatusCode != http.StatusOK {
					t.Errorf("%v, %v, %q", res, err, front.Failed())
					return
				}
				_ = res.Body.Close()
				sent.Add(1)
			}
		})
	}
	clients.Wait()
	check.That(t, len(front.Failed()) == 0 && front.Passed() == int(sent.Load()), "%d of %d, %q", front.Passed(), sent.Load(), front.Failed())
	check.That(t, asked.Load() < 8, "the endpoint was asked %d times by 16 clients", asked.Load())
}

// While the endpoint hangs or fails, old credentials serve until their end
// without a wait. The log tells of it once.
func TestOldCredentialsServeUntilTheirEnd(t *testing.T) {
	front := &amazontest.Front{}
	var asked atomic.Int32
	var works atomic.Bool
	works.Store(true)
	endpoint := front.Credentials(3 * time.Second)
	environment(t, "AWS_CONTAINER_CREDENTIALS_FULL_URI="+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case works.Load():
			endpoint.ServeHTTP(w, r)
		case asked.Add(1) == 1:
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	})))
	var log lockedBuffer
	s := newCredentials(Options{Region: "eu-central-1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	first := check.Got(s.Retrieve(t.Context()))(t)
	works.Store(false)
	slowest, now := time.Duration(0), time.Now()
	for ; now.Before(first.Expires.Add(-time.Second)); now = time.Now() {
		kept := check.Got(s.Retrieve(t.Context()))(t)
		check.Equal(t, first.AccessKeyID, kept.AccessKeyID)
		slowest = max(slowest, time.Since(now))
		time.Sleep(time.Millisecond)
	}
	check.That(t, asked.Load() > 0 && slowest < chainTimeout/2, "asked %d times, the slowest request waited %v", asked.Load(), slowest)
	time.Sleep(time.Until(first.Expires))
	_, err := s.Retrieve(t.Context())
	check.That(t, err != nil, "expired credentials serve")
	check.Equal(t, 1, strings.Count(log.String(), "no new credentials"), log.String())
	works.Store(true)
	_, err = s.Retrieve(t.Context())
	for err != nil && t.Context().Err() == nil {
		_, err = s.Retrieve(t.Context())
	}
	check.That(t, strings.Contains(log.String(), "there again"), "%s", log.String())
}

// A lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestRefreshComesBeforeTheEnd(t *testing.T) {
	for life, want := range map[time.Duration]time.Duration{
		time.Hour: 55 * time.Minute, 15 * time.Minute: 10 * time.Minute, 4 * time.Minute: 2 * time.Minute, time.Second: time.Second / 2, -time.Second: -time.Second,
	} {
		now := time.Now()
		check.Equal(t, want, before(now.Add(life), now, 2, refreshBefore).Sub(now), life)
	}
}

// A role is assumed with the credentials of the chain, at the endpoint of the
// region, under a name that can be found in the logs of Amazon.
func TestRoleIsAssumed(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.Form.Get("RoleArn") != "arn:aws:iam::123456789012:role/search" || r.Form.Get("RoleSessionName") != "akin" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	environment(t, "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret", "AWS_ENDPOINT_URL_STS="+url)
	got := check.Got(newCredentials(optionsOf("arn:aws:iam::123456789012:role/search", "")).Retrieve(t.Context()))(t)
	check.Equal(t, "ASIAROLE", got.AccessKeyID)

	_, err := newCredentials(optionsOf("arn:aws:iam::123456789012:role/other", "")).Retrieve(t.Context())
	check.That(t, err != nil && strings.Contains(err.Error(), "not authorized to perform: sts:AssumeRole"), "%v", err)
}

// A pod in Kubernetes has a token of its service account, for a role.
func TestTokenOfAServiceAccountBecomesARole(t *testing.T) {
	const role = "arn:aws:iam::123456789012:role/pod"
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		check.Equal(t, "AssumeRoleWithWebIdentity "+role+" token", r.Form.Get("Action")+" "+r.Form.Get("RoleArn")+" "+r.Form.Get("WebIdentityToken"))
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>ASIAPOD</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	environment(t, "AWS_ROLE_ARN="+role, "AWS_WEB_IDENTITY_TOKEN_FILE="+file(t, "token"), "AWS_ENDPOINT_URL_STS="+url)
	got := check.Got(newCredentials(optionsOf("", "")).Retrieve(t.Context()))(t)
	check.Equal(t, "ASIAPOD", got.AccessKeyID)
}

func optionsOf(role, profile string) Options {
	return Options{Region: "eu-central-1", Service: "es", RoleARN: role, Profile: profile, Logger: slog.New(slog.DiscardHandler)}
}

// Where there are no credentials, nothing is sent, and the error says why.
func TestNothingIsSentWithoutCredentials(t *testing.T) {
	silent := check.Got(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = silent.Close() })
	empty := file(t, "[profile without]\nregion = eu-central-1\n")
	for name, tt := range map[string]struct {
		environment []string
		profile     string
		want        string
	}{
		"no source":                         {nil, "", "no EC2 IMDS role found"},
		"a profile without credentials":     {[]string{"AWS_CONFIG_FILE=" + empty}, "without", "no EC2 IMDS role found"},
		"an unknown profile":                {[]string{"AWS_CONFIG_FILE=" + empty}, "other", "failed to get shared config profile, other"},
		"a metadata service without answer": {[]string{"AWS_EC2_METADATA_DISABLED=false", "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://" + silent.Addr().String()}, "", "no credentials within 2s"},
	} {
		environment(t, tt.environment...)
		r := newRig(t, "", 64<<20)
		r.signer.credentials = newCredentials(optionsOf("", tt.profile))
		began := time.Now()
		res, err := r.client.Post(r.url, "application/json", strings.NewReader("{}"))
		if err == nil {
			check.OK(t, res.Body.Close())
		}
		check.That(t, err != nil && refusal(err) == http.StatusServiceUnavailable && strings.Contains(err.Error(), tt.want), "%s: %v", name, err)
		check.That(t, time.Since(began) < 10*time.Second, "%s: after %v", name, time.Since(began))
		check.Equal(t, 0, r.Passed()+len(r.Failed()), name, "sent")
	}
}

// Credentials that are put in place while akin runs are found.
func TestCredentialsThatComeLateAreFound(t *testing.T) {
	late := filepath.Join(t.TempDir(), "credentials")
	environment(t, "AWS_SHARED_CREDENTIALS_FILE="+late)
	provider := newCredentials(optionsOf("", ""))
	_, err := provider.Retrieve(t.Context())
	check.That(t, err != nil, "credentials without a file")
	check.OK(t, os.WriteFile(late, []byte("[default]\naws_access_key_id = LATE\naws_secret_access_key = s\n"), 0o600))
	got := check.Got(provider.Retrieve(t.Context()))(t)
	check.Equal(t, "LATE", got.AccessKeyID)
}

// An endpoint that takes a call and never answers it must not keep credentials
// away when it works again.
func TestCallThatHangsIsGivenUp(t *testing.T) {
	endpoint := (&amazontest.Front{}).Credentials(time.Hour)
	var asked atomic.Int32
	environment(t, "AWS_CONTAINER_CREDENTIALS_FULL_URI="+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
			return
		}
		endpoint.ServeHTTP(w, r)
	})))
	provider := newCredentials(optionsOf("", ""))
	_, err := provider.Retrieve(t.Context())
	for range 10 {
		if err == nil {
			return
		}
		_, err = provider.Retrieve(t.Context())
	}
	t.Error(err)
}

// A mistake in a provider ends no process: it is an error of those who wait.
func TestProvidersThatPanicAreErrors(t *testing.T) {
	s := &source{
		options:  Options{Logger: slog.New(slog.DiscardHandler)},
		provider: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { panic("a mistake") }),
	}
	_, err := s.Retrieve(t.Context())
	check.Error(t, recovery.ErrPanic, err)
}
