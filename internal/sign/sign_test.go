package sign

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/akin-search/akin/e2e/amazontest"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
)

// example is the access key of AWS's examples.
var example = aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

// TestSignaturesAreThoseOfTheSuite has the values of the files NAME.authz of
// aws-sig-v4-test-suite, which AWS published with Signature Version 4. The suite
// leaves X-Amz-Content-Sha256 out. The stand-in of the other tests gives the
// same.
func TestSignaturesAreThoseOfTheSuite(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for name, tt := range map[string]struct{ method, target, contentType, body, want string }{
		"get-vanilla":                      {"GET", "/", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-query":                {"GET", "/?", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-empty-query-key":      {"GET", "/?Param1=value1", "", "", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		"get-vanilla-query-order-key-case": {"GET", "/?Param2=value2&Param1=value1", "", "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"get-vanilla-query-unreserved":     {"GET", "/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "", "", "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
		"get-unreserved":                   {"GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "", "", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		"get-utf8":                         {"GET", "/ሴ", "", "", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		"get-space":                        {"GET", "/example space/", "", "", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
		"get-slash":                        {"GET", "//", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-slashes":                      {"GET", "//example//", "", "", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
		"get-slash-dot-slash":              {"GET", "/./", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-slash-pointless-dot":          {"GET", "/./example", "", "", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"},
		"get-relative-relative":            {"GET", "/example1/example2/../..", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"post-vanilla":                     {"POST", "/", "", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-vanilla-query":               {"POST", "/?Param1=value1", "", "", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
		"post-x-www-form-urlencoded":       {"POST", "/", form, "Param1=value1", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		path, query, _ := strings.Cut(tt.target, "?")
		req := &http.Request{
			Method: tt.method, Header: http.Header{"Accept-Encoding": {"gzip"}, "X-Forwarded-For": {"192.0.2.1"}},
			URL: &url.URL{Scheme: "https", Host: "example.amazonaws.com", Opaque: path},
		}
		names := []string{"host", "x-amz-date"}
		if tt.contentType != "" {
			req.Header.Set("Content-Type", tt.contentType)
			names = []string{"content-type", "host", "x-amz-date"}
		}
		covered := cover(req, check.Got(canonicalQuery(query))(t))
		sum := check.Got(again(&http.Request{GetBody: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(tt.body)), nil }}))(t).sum
		check.OK(t, v4.NewSigner().SignHTTP(t.Context(), example, covered, sum, "service", "us-east-1", at))
		_, got, _ := strings.Cut(covered.Header.Get("Authorization"), "Signature=")
		check.Equal(t, tt.want, got, name)

		arrived := &http.Request{Method: tt.method, RequestURI: tt.target, Host: "example.amazonaws.com", Header: covered.Header}
		canonical := check.Got(amazontest.Canonical(arrived, names, sum))(t)
		check.Equal(t, tt.want, amazontest.Signature(example.SecretAccessKey, "20150830/us-east-1/service/aws4_request", at, canonical), name, "by the stand-in")
	}
}

func TestQueryStringsKeepEveryParameter(t *testing.T) {
	for raw, want := range map[string]string{
		"":                     "",
		"q=a%2Bb+c;d&akin=x":   "q=a%2Bb%20c&d=&akin=x",
		"pretty":               "pretty=",
		"v&&h=a+b%20c&=&x":     "v=&h=a%20b%20c&=&x=",
		"b=2&a=1&b=1":          "b=2&a=1&b=1",
		"q=title:(foo* ~bar)":  "q=title%3A%28foo%2A%20~bar%29",
		"q=%e2%82%ac&größe=1;": "q=%E2%82%AC&gr%C3%B6%C3%9Fe=1",
	} {
		got := check.Got(canonicalQuery(raw))(t)
		check.Equal(t, want, got, raw)
		again := check.Got(canonicalQuery(got))(t)
		check.Equal(t, want, again, raw, "again")
	}
}

// FuzzCanonicalQuery holds that no parameter is lost: what is signed has the
// parameters of what was asked, in their order.
func FuzzCanonicalQuery(f *testing.F) {
	for _, raw := range []string{"q=a%2Bb+c;d&akin=x", "v&&h=a+b%20c&=&x", "a=%zz", "%", "a=b=c&%00=\xff"} {
		f.Add(raw)
	}
	parameters := func(t *testing.T, raw string) (all []string) {
		t.Helper()
		for part := range strings.SplitSeq(strings.ReplaceAll(raw, ";", "&"), "&") {
			if part != "" {
				name, value, _ := strings.Cut(part, "=")
				all = append(all, check.Got(url.QueryUnescape(name))(t), check.Got(url.QueryUnescape(value))(t))
			}
		}
		return all
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := canonicalQuery(raw)
		if err != nil {
			return
		}
		check.Equal(t, parameters(t, raw), parameters(t, got))
		check.That(t, !strings.ContainsAny(got, "+; \"<>#"), "%q", got)
	})
}

// fixed gives one key for all time.
func fixed(k amazontest.Key) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.Token}, nil
	})
}

// A rig signs requests to a stand-in, which answers with the body that it got.
type rig struct {
	*amazontest.Front

	url    string
	signer *Signer
	client *http.Client
}

func newRig(t *testing.T, spool string, memory int64) *rig {
	t.Helper()
	key := amazontest.Key{ID: "AKID", Secret: "secret", Token: "a/token+="}
	r := &rig{Front: &amazontest.Front{Region: "eu-central-1", Service: "aoss", Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Had"] = append(r.TransferEncoding, r.Header.Get("Content-Length"))
		_, _ = io.Copy(w, r.Body)
	})}}
	r.Accept(key)
	server := httptest.NewServer(r.Front)
	t.Cleanup(server.Close)
	r.url = server.URL
	r.signer = New(Options{Region: "eu-central-1", Service: "aoss", Spool: spool, Memory: limits.New(memory)})
	r.signer.credentials = fixed(key)
	r.client = &http.Client{Transport: r.signer.Transport(http.DefaultTransport)}
	return r
}

// refusal returns the status of the refusal in an error, or 0.
func refusal(err error) int {
	if refused, ok := errors.AsType[*nodes.NotSentError](err); ok {
		return refused.Status
	}
	return 0
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestBodiesAreSignedWhole(t *testing.T) {
	folder := t.TempDir()
	for name, tt := range map[string]struct {
		body   io.Reader
		spool  string
		memory int64
		want   int64 // bytes that arrive
		status int   // of the refusal
	}{
		"none":                           {nil, "", 0, 0, 0},
		"empty, in chunks":               {io.MultiReader(), "", 64 << 20, 0, 0},
		"known beforehand":               {strings.NewReader("{}"), "", 0, 2, 0},
		"in chunks":                      {io.LimitReader(endless{}, 70000), "", 64 << 20, 70000, 0},
		"the largest in memory":          {io.LimitReader(endless{}, inMemory), "", 64 << 20, inMemory, 0},
		"too large without a spool":      {io.LimitReader(endless{}, inMemory+1), "", 64 << 20, 0, 413},
		"no memory, without a spool":     {io.LimitReader(endless{}, 1<<20), "", 1 << 10, 0, 429},
		"no memory, with a spool":        {io.LimitReader(endless{}, 1<<20), folder, 1 << 10, 1 << 20, 0},
		"the largest of all":             {io.LimitReader(endless{}, maxBody), folder, 64 << 20, maxBody, 0},
		"one that never ends":            {endless{}, folder, 64 << 20, 0, 413},
		"one that never ends, no spool":  {endless{}, "", 64 << 20, 0, 413},
		"a spool that is no folder":      {io.LimitReader(endless{}, inMemory+1), folder + "/missing", 64 << 20, 0, 503},
		"one that breaks off":            {io.MultiReader(strings.NewReader("a"), errReader{}), "", 64 << 20, 0, -1},
		"one that breaks off in a spool": {io.MultiReader(io.LimitReader(endless{}, inMemory+9), errReader{}), folder, 64 << 20, 0, -1},
	} {
		r := newRig(t, tt.spool, tt.memory)
		req := check.Got(http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/_bulk?refresh", tt.body))(t)
		res, err := r.client.Do(req)
		if tt.status != 0 {
			check.That(t, err != nil && (refusal(err) == tt.status || tt.status < 0 && errors.Is(err, errBroken)), "%s: %v", name, err)
			check.Equal(t, 0, r.Passed(), name, "sent")
		} else {
			check.Must(t, err == nil, "%s: %v", name, err)
			n := check.Got(io.Copy(io.Discard, res.Body))(t)
			check.OK(t, res.Body.Close())
			check.That(t, res.StatusCode == http.StatusOK && n == tt.want && !strings.Contains(strings.Join(res.Header["Had"], " "), "chunked"),
				"%s: status %d, %d bytes, %v, %.300q", name, res.StatusCode, n, res.Header["Had"], r.Failed())
		}
		check.Equal(t, 0, r.signer.bodies.memory.Stats(limits.Signed).Held, name, "held in memory")
		check.Equal(t, 0, r.signer.bodies.spooled.Stats(limits.Signed).Held, name, "held in the spool")
	}
	check.Equal(t, 0, len(check.Got(os.ReadDir(folder))(t)), "files left in the spool")
}

// A refused body is read to its end, as many clients look for the answer only
// then; but not where the client asks before it sends a body.
func TestRefusedBodiesAreReadUnlessTheClientAsksFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		expect string
		length int64 // as announced
		memory int64
		left   int64
	}{
		"sends at once":                           {"", inMemory + 1, 64 << 20, 0},
		"asks with a length":                      {"100-continue", inMemory + 1, 64 << 20, inMemory + 1},
		"was told to send":                        {"100-continue", -1, 64 << 20, 0},
		"asks, and there is no room for any body": {"100-continue", 1 << 20, 0, inMemory + 1},
	} {
		r := newRig(t, "", tt.memory)
		rest := io.LimitedReader{R: endless{}, N: inMemory + 1}
		req := check.Got(http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, &rest))(t)
		req.ContentLength = tt.length
		req.Header.Set("Expect", tt.expect)
		res, err := r.client.Do(req)
		if err == nil {
			check.OK(t, res.Body.Close())
		}
		check.That(t, refusal(err) >= http.StatusBadRequest, "%s: %v", name, err)
		check.Equal(t, tt.left, rest.N, name, "left")
	}
}

// The log tells once that the spool cannot be written, and when it can again.
func TestLossOfTheSpoolIsTold(t *testing.T) {
	var log bytes.Buffer
	folder := filepath.Join(t.TempDir(), "spool")
	r := newRig(t, folder, 64<<20)
	r.signer.bodies.log = slog.New(slog.NewTextHandler(&log, nil))
	send := func() error {
		res, err := r.client.Post(r.url, "", io.LimitReader(endless{}, inMemory+1))
		if err == nil {
			check.OK(t, res.Body.Close())
		}
		return err
	}
	check.Equal(t, http.StatusServiceUnavailable, refusal(send()))
	check.Equal(t, http.StatusServiceUnavailable, refusal(send()))
	check.That(t, CheckSpool(folder) != nil, "a missing folder passes")
	check.Equal(t, 1, strings.Count(log.String(), "large bodies cannot be kept to sign them"), log.String())
	check.OK(t, os.Mkdir(folder, 0o700))
	check.OK(t, send())
	check.OK(t, CheckSpool(folder))
	check.That(t, strings.Contains(log.String(), "can be kept again"), "%s", log.String())
	check.Equal(t, 0, len(check.Got(os.ReadDir(folder))(t)), "files left in the spool")
}

var errBroken = errors.New("the client is gone")

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }

// What is sent again because the connection was idle for too long has its body
// and its signature.
func TestBodiesCanBeSentAgain(t *testing.T) {
	r := newRig(t, "", 64<<20)
	var bodies []string
	r.client.Transport = r.signer.Transport(roundTrip(func(req *http.Request) (*http.Response, error) {
		for range 2 {
			bodies = append(bodies, string(check.Got(io.ReadAll(req.Body))(t)))
			check.OK(t, req.Body.Close())
			req.Body = check.Got(req.GetBody())(t)
		}
		defer req.Body.Close()
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	req := check.Got(http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, io.MultiReader(strings.NewReader("once"))))(t)
	res, err := r.client.Do(req)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.Equal(t, []string{"once", "once"}, bodies)
	check.Equal(t, 0, r.signer.bodies.memory.Stats(limits.Signed).Held)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The request of the caller stays as it is, and a signature that it has is
// replaced, not added to.
func TestRequestsAreCopied(t *testing.T) {
	r := newRig(t, "", 64<<20)
	req := check.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/i/_search?q=a+b", http.NoBody))(t)
	req.Header.Set("Authorization", "Basic YTpi")
	before := req.Header.Clone()
	res, err := r.client.Do(req)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.That(t, res.StatusCode == http.StatusOK && req.URL.RawQuery == "q=a+b", "status %d, %s, %q", res.StatusCode, req.URL.RawQuery, r.Failed())
	check.Equal(t, before, req.Header)
}

// The host that is signed is the one that is sent: without the port that is the
// scheme's own.
func TestSignedHostIsTheOneThatIsSent(t *testing.T) {
	r := newRig(t, "", 0)
	for address, want := range map[string]string{"https://a.example:443/": "a.example", "https://a.example:9200/": "a.example:9200", "http://a.example:80/": "a.example"} {
		req := check.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody))(t)
		req.Host = ""
		signed := check.Got(r.signer.sign(req, emptySum))(t)
		check.Equal(t, want, cmp.Or(signed.Host, signed.URL.Host), address)
	}
}

// The signature is bound to what the cluster checks: time, region and key.
func TestClusterRefusesOtherSignatures(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *rig)
		want   string
	}{
		"clock":   {func(r *rig) { r.signer.now = func() time.Time { return time.Now().Add(-6 * time.Minute) } }, "Signature expired"},
		"region":  {func(r *rig) { r.signer.region = "eu-west-1" }, "Credential should be scoped to a valid region"},
		"service": {func(r *rig) { r.signer.service = "es" }, "Credential should be scoped to a valid region"},
		"session": {func(r *rig) {
			r.Accept(amazontest.Key{ID: "AKID", Secret: "secret", Token: "a/token+=", Until: time.Now().Add(-time.Second)})
		}, "is expired"},
		"secret": {func(r *rig) { r.Accept(amazontest.Key{ID: "AKID", Secret: "other", Token: "a/token+="}) }, "does not match"},
	} {
		r := newRig(t, "", 64<<20)
		tt.change(r)
		res, err := r.client.Post(r.url, "application/json", strings.NewReader("{}"))
		check.OK(t, err)
		text := string(check.Got(io.ReadAll(res.Body))(t))
		check.OK(t, res.Body.Close())
		check.That(t, res.StatusCode == http.StatusForbidden && strings.Contains(text, tt.want), "%s: %d %s", name, res.StatusCode, text)
	}
}

// BenchmarkSigning sends small searches over a connection, unsigned and signed
// in turn, so that both have the same machine.
func BenchmarkSigning(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	signer := New(Options{Region: "eu-central-1", Service: "es", Memory: limits.New(64 << 20)})
	signer.credentials = fixed(amazontest.Key{ID: "AKID", Secret: "secret", Token: strings.Repeat("t", 1000)})
	search := []byte(`{"query":{"match":{"body":"nappies for a newborn"}},"size":10}` + strings.Repeat(" ", 2000))
	kept := roundTrip(func(*http.Request) (*http.Response, error) { return &http.Response{Body: http.NoBody}, nil })
	arms := []struct {
		name string
		http.RoundTripper
	}{{"unsigned", http.DefaultTransport}, {"signed", signer.Transport(http.DefaultTransport)}, {"signature", signer.Transport(kept)}}
	took := make([]time.Duration, len(arms))
	for b.Loop() {
		for i, arm := range arms {
			began := time.Now()
			req := check.Got(http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/i/_search?size=10", bytes.NewReader(search)))(b)
			res, err := arm.RoundTrip(req)
			check.OK(b, err)
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			took[i] += time.Since(began)
		}
	}
	for i, arm := range arms {
		b.ReportMetric(float64(took[i].Microseconds())/float64(b.N), arm.name+"-µs")
	}
}
