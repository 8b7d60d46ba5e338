package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix/store"
)

// Next returns what to do about a command's error, "" if the error says so
// itself.
func Next(err error) string {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	refusal, _ := errors.AsType[*esclient.Error](err)
	refused := func(code int, kind string) bool {
		return refusal != nil && refusal.Status == code && (kind == "" || refusal.Type == kind)
	}
	missing := errors.Is(err, fs.ErrNotExist)
	configuration, configured := errors.AsType[*configs.Error](err)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(err.Error(), part) })
	}
	role := "give akin's user the role in docs/security.md"
	if right := refusedAction.FindString(err.Error()); right != "" {
		role = "give akin's user the right " + right + "; docs/security.md has the role with all that it needs"
	}
	// The first that is about the error counts.
	for _, step := range []struct {
		about bool
		next  string
	}{
		{missing && configured && configuration.Key == "", "write one with akin init --cluster URL of your cluster; configs/akin.yml has every key"},
		{missing && !configured, "look at the name of the file: without a leading / it is looked for in the current folder"},
		{refused(http.StatusUnauthorized, ""), "set " + configs.EnvClusterUsername + " and " + configs.EnvClusterPassword + ", or " +
			configs.EnvClusterAPIKey + ", to credentials that the cluster knows"},
		{refused(http.StatusForbidden, "cluster_block_exception"), "the index or the cluster is blocked: look at its settings *.blocks.*, and at the disk"},
		{refused(http.StatusForbidden, "") && has("Signature expired", "Signature not yet current"), "set the clock of this machine: Amazon allows five minutes"},
		{
			refused(http.StatusForbidden, "") && has("Missing Authentication Token", "security token", "signature we calculated", "Credential should be scoped"),
			"look at region, service and credentials of cluster.aws, or of --aws-region: docs/security.md#amazon",
		},
		{refused(http.StatusForbidden, "") && has("is not authorized to perform"), "let the access policy of the domain or collection admit akin's IAM role: docs/managed.md"},
		{refused(http.StatusForbidden, ""), role},
		{refused(http.StatusNotFound, "index_not_found_exception"), "see which indices there are: akin init --cluster URL --out - lists those with text"},
		{refused(http.StatusTooManyRequests, ""), "the cluster has more to do than it can: try again later"},
		{is(mapping.ErrNotText), "name a field of type text: akin init --cluster URL --out - lists them"},
		{is(store.ErrNoVersion, store.ErrUnknownVersion), "see what is there with akin matrix list --name NAME, and push with akin matrix push --activate FILE"},
		{has("NOAUTH", "WRONGPASS", "NOPERM", "invalid username-password"), "set " + configs.EnvRedisURL + " to redis://USER:PASSWORD@HOST:PORT of a user who may read and write akin:*"},
		{has("no credentials to sign"), "look at where akin's credentials come from: docs/security.md#credentials"},
		{errors.As(err, new(x509.UnknownAuthorityError)), "name the PEM file of the authority that signed it: --ca-file, for Redis --redis-ca-file; " +
			"in the configuration cluster.tls.ca_file and redis.tls.ca_file"},
		{errors.As(err, new(x509.HostnameError)), "use a host name that is in the certificate"},
		{errors.As(err, new(x509.CertificateInvalidError)), "have the certificate renewed, and look at the clock of this machine"},
		{has("server gave HTTP response to HTTPS client"), "the server speaks no TLS: write http:// (redis://) instead of https:// (rediss://)"},
		{has("malformed HTTP response"), "the server speaks another protocol: write https://, or look at the port"},
		{errors.As(err, new(*net.DNSError)), "look at the host name: it cannot be resolved from here"},
		{is(syscall.EADDRINUSE), "another program listens there, maybe another akin: end it, or change listen.address or admin.address"},
		{is(syscall.ECONNREFUSED), "start the server, or look at host and port: nothing listens there"},
		{is(context.DeadlineExceeded), "see whether the server is busy, or a firewall is in the way: it did not answer in time"},
	} {
		if step.about {
			return step.next
		}
	}
	return ""
}

// refusedAction finds the name of an action in an engine's refusal.
var refusedAction = regexp.MustCompile(`\b(?:indices|cluster):[a-z_/]+`)
