package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/nodes"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/internal/sign"
	"github.com/akin-search/akin/simmatrix/store"
)

func (r *checkReport) certificates(cfg *configs.Config) {
	for _, f := range []struct{ key, path string }{
		{"listen.tls.cert_file", cfg.Listen.TLS.CertFile},
		{"cluster.tls.ca_file", cfg.Cluster.TLS.CAFile},
		{"cluster.tls.certificate", cfg.Cluster.TLS.Certificate},
		{"redis.tls.ca_file", cfg.Redis.TLS.CAFile},
		{"redis.tls.cert_file", cfg.Redis.TLS.CertFile},
	} {
		if f.path == "" {
			continue
		}
		rest, err := cli.ReadAuthorities(f.path)
		if err != nil {
			r.fail(f.key, err)
			continue
		}
		var block *pem.Block
		found := false
		for block, rest = pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
			if c, err := x509.ParseCertificate(block.Bytes); err == nil {
				found = true
				r.certificate(f.key, c)
			}
		}
		if !found {
			r.fail(f.key, fmt.Errorf("%s: no certificate in it", f.path))
		}
	}
}

func (r *checkReport) certificate(about string, c *x509.Certificate) {
	verdict, says := verdictOK, "valid until "
	switch left := time.Until(c.NotAfter); {
	case left < 0:
		verdict, says = verdictError, "expired on "
	case left < 30*24*time.Hour:
		verdict = verdictWarning
	}
	r.add(verdict, about, "certificate of "+c.Subject.String()+" "+says+c.NotAfter.UTC().Format(time.DateOnly))
}

// nodes asks each node of the cluster for its version, and reports whether one
// answers with akin's credentials.
func (r *checkReport) nodes(ctx context.Context, cfg *configs.Config) (reached bool) {
	clients, own, err := cli.ClusterTLS(cfg.Cluster.TLS)
	if err != nil {
		r.fail("cluster.tls", err)
		return false
	}
	if cfg.Cluster.TLS.InsecureSkipVerify {
		r.add(verdictWarning, "cluster.tls", "insecure_skip_verify: anyone on the network path can impersonate the cluster")
	}
	if cfg.LendsRights() {
		r.Checks = append(r.Checks, checkResult{
			verdictWarning, "listen.auth", "none, and akin signs requests: whoever reaches " + cfg.Listen.Address + " acts with akin's rights in the cluster",
			"set listen.auth, or let only trusted programs reach the address",
		})
	}
	if spool := cfg.Cluster.AWS.Spool; spool != "" {
		if err := sign.CheckSpool(spool); err != nil {
			r.fail("large bodies", err)
		}
	}
	signing := cli.Signing(&cfg.Cluster.AWS, limits.New(int64(cfg.Memory.InFlight)), nil)
	for _, node := range cfg.Cluster.URLs {
		about := "node " + node
		runs, err := ask(ctx, nodes.Options{URLs: []string{node}, TLS: own, Sign: signing}, &cfg.Cluster.Auth)
		if err != nil {
			r.fail(about, err)
			continue
		}
		r.add(verdictOK, about, runs.String())
		if !reached {
			reached = true
			r.security(ctx, node, clients, &cfg.Cluster)
		}
	}
	return reached
}

func ask(ctx context.Context, node nodes.Options, auth *configs.Auth) (esclient.Info, error) {
	pool, err := nodes.New(node)
	if err != nil {
		return esclient.Info{}, err
	}
	defer pool.Close()
	client, err := esclient.New(esclient.Options{
		Transport: pool, Timeout: 5 * time.Second,
		Username: auth.Username, Password: auth.Password.Reveal(), APIKey: auth.APIKey.Reveal(),
	})
	if err != nil {
		return esclient.Info{}, err
	}
	defer client.Close()
	return client.Info(ctx)
}

func (r *checkReport) security(ctx context.Context, node string, clients *tls.Config, cfg *configs.Cluster) {
	const about = "security of the cluster"
	given := cfg.Secured()
	_, err := ask(ctx, nodes.Options{URLs: []string{node}, TLS: clients}, &configs.Auth{})
	refused, ok := errors.AsType[*esclient.Error](err)
	plain := strings.HasPrefix(node, "http:") && given
	if u, err := url.Parse(node); err == nil && (u.Hostname() == "localhost" || strings.HasPrefix(u.Hostname(), "127.")) {
		plain = false
	}
	switch {
	case plain:
		r.add(verdictWarning, about, "akin's credentials go to "+node+" without TLS")
	case ok && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		r.add(verdictOK, about, "on: searches are expanded for clients that may search")
	case err != nil:
		r.fail(about, err)
	case given:
		r.add(verdictWarning, about, "the cluster also answers without credentials: akin's credentials protect nothing")
	default:
		r.add(verdictOK, about, "off: the cluster answers anyone who can reach it")
	}
}

func (r *checkReport) matrices(cfg *configs.Config, app *serve.App) {
	if len(cfg.Matrices) == 0 {
		r.Checks = append(r.Checks, checkResult{verdictWarning, "matrices", "none: searches are forwarded unchanged", "add an entry to matrices; akin init proposes some"})
	}
	if !cfg.Expansion.Enabled {
		r.add(verdictWarning, "expansion.enabled", "false: only searches that name a profile are expanded")
	}
	matrices, weights := app.Served()
	r.served("matrix ", cfg.Matrices, matrices)
	r.served("weights ", cfg.Weights, weights)
}

func (r *checkReport) served(what string, entries []configs.Matrix, states []store.State) {
	for _, m := range states {
		about := what + m.Name
		file := entries[slices.IndexFunc(entries, func(e configs.Matrix) bool { return e.Name == m.Name })].File
		where := "from " + cmp.Or(file, m.Source)
		if m.Problem != "" {
			next := "make sure that Redis answers at redis.url, and push a matrix: akin matrix push --redis URL --name " + m.Name + " --activate FILE"
			switch {
			case what == "weights ":
				next = ""
			case file != "":
				next = "build it, with the same --config: akin matrix build --name " + m.Name
			}
			r.Checks = append(r.Checks, checkResult{verdictError, about, where + ": " + m.Problem, next})
		}
		if m.Version == "" {
			continue
		}
		r.add(verdictOK, about, fmt.Sprintf("%s: version %.40s, %d terms, %d neighbors, checksum %.12s, of %s",
			where, m.Version, m.Terms, m.NonZeros, m.Checksum, m.Written.UTC().Format(time.DateOnly)))
		for line := range strings.Lines(m.Tallies) {
			r.add(verdictOK, about, strings.TrimSpace(line))
		}
		switch {
		case m.Model != "":
			r.add(verdictOK, about, "has word vectors of "+m.Model)
		case what == "matrix " && m.Docs > 0:
			r.add(verdictOK, about, "learned from documents alone. With built-in words (--language-model, unless matrix build left them out) or a "+
				"language model (--embeddings) searches gain as much for half of the engine's time, or a third more at effort high: docs/matrices.md")
		}
		if m.Vectors != "" {
			r.add(verdictOK, about, "has "+m.Vectors)
		}
		if m.Crowded != "" {
			r.add(verdictWarning, about, m.Crowded)
		}
		if m.NoWords != "" {
			r.add(verdictWarning, about, "words that no document contains stay unchanged (expansion.nearest_words): "+m.NoWords)
		}
	}
}
