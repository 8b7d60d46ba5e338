package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/simmatrix/store"
)

// Next returns what to do about an error of a command, "" where the error says
// it itself.
func Next(err error) string {
	for _, step := range steps() {
		if step.is(err) {
			return step.next(err)
		}
	}
	return ""
}

// A step is what to do about some errors.
type step struct {
	is   func(error) bool
	next func(error) string
}

// steps are tried in order; the first one that is about an error counts.
func steps() []step {
	say := func(text string) func(error) string { return func(error) string { return text } }
	is := func(targets ...error) func(error) bool {
		return func(err error) bool {
			for _, target := range targets {
				if errors.Is(err, target) {
					return true
				}
			}
			return false
		}
	}
	status := func(code int, kind string) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*esclient.Error](err)
			return ok && e.Status == code && (kind == "" || e.Type == kind)
		}
	}
	has := func(parts ...string) func(error) bool {
		return func(err error) bool {
			for _, part := range parts {
				if strings.Contains(err.Error(), part) {
					return true
				}
			}
			return false
		}
	}
	return []step{
		{noConfiguration, say("write one with akin init --url URL of your cluster; configs/akin.yml has every key")},
		{noFile, say("look at the name of the file: without a leading / it is looked for in the current folder")},
		{status(http.StatusUnauthorized, ""), say("set " + configs.EnvClusterUsername + " and " + configs.EnvClusterPassword + ", or " +
			configs.EnvClusterAPIKey + ", to credentials that the cluster knows")},
		{status(http.StatusForbidden, "cluster_block_exception"), say("the index or the cluster is blocked: look at its settings *.blocks.*, and at the disk")},
		{status(http.StatusForbidden, ""), lacking},
		{status(http.StatusNotFound, "index_not_found_exception"), say("see which indices there are: akin init --url URL --out - lists those with text")},
		{status(http.StatusTooManyRequests, ""), say("the cluster has more to do than it can: try again later")},
		{is(mapping.ErrNotText), say("name a field of type text: akin init --url URL --out - lists them")},
		{is(store.ErrNoVersion, store.ErrUnknownVersion), say("see what is there with akin matrix list, and push with akin matrix push --activate FILE")},
		{has("NOAUTH", "WRONGPASS", "NOPERM", "invalid username-password"), say("set " + configs.EnvRedisURL + " to redis://USER:PASSWORD@HOST:PORT of a user who may read and write akin:*")},
		{asType[x509.UnknownAuthorityError], say("name the PEM file of the authority that signed it: --ca-file, for Redis --redis-ca-file; " +
			"in the configuration cluster.tls.ca_file and redis.tls.ca_file")},
		{asType[x509.HostnameError], say("use a host name that is in the certificate")},
		{asType[x509.CertificateInvalidError], say("have the certificate renewed, and look at the clock of this machine")},
		{has("server gave HTTP response to HTTPS client"), say("the server speaks no TLS: write http:// (redis://) instead of https:// (rediss://)")},
		{has("malformed HTTP response"), say("the server speaks another protocol: write https://, or look at the port")},
		{asType[*net.DNSError], say("look at the host name: it cannot be resolved from here")},
		{is(syscall.ECONNREFUSED), say("start the server, or look at host and port: nothing listens there")},
		{is(context.DeadlineExceeded), say("see whether the server is busy, or a firewall is in the way: it did not answer in time")},
	}
}

func asType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// noFile reports whether there is no file that the command line names.
func noFile(err error) bool {
	return errors.Is(err, fs.ErrNotExist) && !asType[*configs.Error](err)
}

func noConfiguration(err error) bool {
	e, ok := errors.AsType[*configs.Error](err)
	return ok && e.Key == "" && errors.Is(err, fs.ErrNotExist)
}

// refusedAction finds the name of an action in what the engines say of one that
// is not allowed.
var refusedAction = regexp.MustCompile(`\b(?:indices|cluster):[a-z_/]+`)

// lacking names the right that a user lacks.
func lacking(err error) string {
	e, _ := errors.AsType[*esclient.Error](err)
	right := refusedAction.FindString(e.Reason)
	if right == "" {
		return "give akin's user the role in docs/security.md"
	}
	return "give akin's user the right " + right + "; docs/security.md has the role with all that it needs"
}
