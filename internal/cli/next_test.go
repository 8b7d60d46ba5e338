package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix/store"
)

func TestErrorsSayWhatToDoNext(t *testing.T) {
	_, missing := configs.Load(t.Context(), "/nonexistent/akin.yml")
	dial := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		name string
		err  error
		want string // in what to do; "" is nothing
	}{
		{"no configuration file", missing, "akin init"},
		{"another file is missing", &configs.Error{Key: "redis.tls.ca_file", Err: fs.ErrNotExist}, ""},
		{"the port is taken", fmt.Errorf("listen: %w", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}), "listen.address"},
		{"a file of the command line is missing", &fs.PathError{Op: "open", Path: "docs.akin", Err: fs.ErrNotExist}, "current folder"},
		{"no credentials", &esclient.Error{Status: http.StatusUnauthorized}, "AKIN_CLUSTER_USERNAME"},
		{"no right, OpenSearch", &esclient.Error{Status: http.StatusForbidden, Reason: "no permissions for [indices:admin/analyze] and User [name=a]"}, "the right indices:admin/analyze;"},
		{"no right, Elasticsearch", &esclient.Error{Status: http.StatusForbidden, Reason: "action [cluster:monitor/main] is unauthorized for user [a]"}, "the right cluster:monitor/main;"},
		{"no right, unnamed", &esclient.Error{Status: http.StatusForbidden}, "the role in docs/security.md"},
		{"clock of a signature", &esclient.Error{Status: http.StatusForbidden, Reason: "Signature expired: 20260101T000000Z is now earlier than 20260101T000500Z"}, "clock"},
		{"no signature", &esclient.Error{Status: http.StatusForbidden, Reason: "Missing Authentication Token"}, "cluster.aws"},
		{"ended session", &esclient.Error{Status: http.StatusForbidden, Reason: "The security token included in the request is expired"}, "cluster.aws"},
		{"role that IAM refuses", &esclient.Error{Status: http.StatusForbidden, Reason: "User: arn:aws:iam::1:role/a is not authorized to perform: es:ESHttpGet"}, "access policy"},
		{"nothing to sign with", fmt.Errorf("akin has no credentials to sign the request with: %w", context.DeadlineExceeded), "where akin's credentials come from"},
		{"block", &esclient.Error{Status: http.StatusForbidden, Type: "cluster_block_exception"}, "blocks"},
		{"no index", &esclient.Error{Status: http.StatusNotFound, Type: "index_not_found_exception"}, "akin init"},
		{"throttled", &esclient.Error{Status: http.StatusTooManyRequests}, "later"},
		{"no text", mapping.ErrNotText, "type text"},
		{"no version", store.ErrUnknownVersion, "akin matrix list"},
		{"Redis wants a password", errors.New("NOAUTH Authentication required."), "AKIN_REDIS_URL"},
		{"Redis refuses the password", errors.New("WRONGPASS invalid username-password pair or user is disabled."), "AKIN_REDIS_URL"},
		{"unknown authority", x509.UnknownAuthorityError{}, "--ca-file"},
		{"other host", x509.HostnameError{}, "host name"},
		{"expired", x509.CertificateInvalidError{}, "renewed"},
		{"no TLS there", errors.New("http: server gave HTTP response to HTTPS client"), "http://"},
		{"TLS there", errors.New(`malformed HTTP response "\x15\x03"`), "https://"},
		{"no such host", &net.DNSError{}, "host name"},
		{"nothing listens", dial, "start the server"},
		{"no answer", context.DeadlineExceeded, "in time"},
		{"another", errors.New("something else"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Next(fmt.Errorf("doing: %w", c.err))
			check.That(t, (got == "") == (c.want == "") && strings.Contains(got, c.want), "%q, want %q", got, c.want)
		})
	}
}
