package configs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

// badFiles are the files testdata/NAME.bad.yml, one for each class of failure,
// with everything that is wrong in them, in order.
var badFiles = map[string][]string{
	"address": {
		"address.bad.yml:2: listen.address: must be a text; put a number or true and false in quotes",
		"address.bad.yml:4: admin.address: must be host:port with a port of 0 to 65535, such as 127.0.0.1:9280",
	},
	"address_shared": {
		"address_shared.bad.yml: admin.address: is the same as listen.address; the two need an address each",
		"address_shared.bad.yml:6: cluster.urls[1]: is akin's own listen.address; name a node of the cluster",
	},
	"alias": {
		"alias.bad.yml:1: listen: anchors and aliases are not allowed; write the value out",
		"alias.bad.yml:3: admin: anchors and aliases are not allowed; write the value out",
		`alias.bad.yml:5: caches."<<": unknown key; allowed: size, ttl`,
	},
	"auth_both": {
		"auth_both.bad.yml:2: cluster.auth: must be a user name with a password or an API key, not both; the environment counts too",
	},
	"auth_colon": {
		"auth_colon.bad.yml:3: cluster.auth.username: must not have a colon, which basic authentication cannot carry",
	},
	"auth_no_password": {
		"auth_no_password.bad.yml:3: cluster.auth.username: needs a password, from password_file or AKIN_CLUSTER_PASSWORD",
	},
	"auth_no_username": {
		"auth_no_username.bad.yml:3: cluster.auth.password_file: needs a user name, from username or AKIN_CLUSTER_USERNAME, for the password here or in AKIN_CLUSTER_PASSWORD",
	},
	"default_fields": {
		"default_fields.bad.yml:2: expansion.default_fields[0]: must be the full name of a field, without wildcards and boosts",
		"default_fields.bad.yml:2: expansion.default_fields[1]: must be the full name of a field, without wildcards and boosts",
		"default_fields.bad.yml:2: expansion.default_fields[3]: is the same as expansion.default_fields[2]",
		"default_fields.bad.yml:2: expansion.default_fields[4]: must be the full name of a field, without wildcards and boosts",
	},
	"documents": {
		"documents.bad.yml:2: a second YAML document; allowed: one",
	},
	"given_twice": {
		"given_twice.bad.yml:3: log.level: given twice; the first is in line 2",
		"given_twice.bad.yml:5: log: given twice; the first is in line 1",
	},
	"hide_from": {
		"hide_from.bad.yml:2: admin.hosts[1]: must be the name of a host, without a port and wildcards",
		"hide_from.bad.yml:2: admin.hosts[2]: must be the name of a host, without a port and wildcards",
		"hide_from.bad.yml:2: admin.hosts[3]: must be the name of a host, without a port and wildcards",
		"hide_from.bad.yml:2: admin.hosts[4]: is the same as admin.hosts[0]",
		"hide_from.bad.yml:4: expansion.hide_from[2]: is the same as expansion.hide_from[0]",
		"hide_from.bad.yml:4: expansion.hide_from[1]: must be one of profile, explain, validate",
		"hide_from.bad.yml:4: expansion.hide_from[3]: must be one of profile, explain, validate",
	},
	"hide_from_word": {
		"hide_from_word.bad.yml:2: expansion.hide_from: must be auto or a list of profile, explain, validate",
	},
	"key_not_a_word": {
		"key_not_a_word.bad.yml:1: ?: unknown key; allowed: listen, admin, shutdown, cluster, expansion, profiles, matrices, weights, vectors, redis, caches, memory, log",
	},
	"matrices": {
		`matrices.bad.yml:4: matrices[0].indices[1]: must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`,
		`matrices.bad.yml:4: matrices[0].indices[2]: must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`,
		`matrices.bad.yml:4: matrices[0].indices[3]: must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`,
		`matrices.bad.yml:4: matrices[0].indices[4]: must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`,
		"matrices.bad.yml:4: matrices[0].indices[5]: is the same as matrices[0].indices[0]",
		`matrices.bad.yml:4: matrices[0].indices[6]: must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`,
		`matrices.bad.yml:5: matrices[0].fields: must have at least one pattern of what it applies to; "*" is everything`,
		`matrices.bad.yml:6: matrices[1].name: "main" is the name of matrices[0] already; every entry has a name of its own`,
		`matrices.bad.yml:8: matrices[1].fields[0]: must be a field name in which only * is a wildcard, such as "title*"`,
		`matrices.bad.yml:8: matrices[1].fields[1]: must be a field name in which only * is a wildcard, such as "title*"`,
		`matrices.bad.yml:8: matrices[1].fields[2]: must be a field name in which only * is a wildcard, such as "title*"`,
		"matrices.bad.yml:9: matrices[2].name: must be 1 to 64 letters (A to Z, a to z), digits, dots, _ and -",
		"matrices.bad.yml:10: matrices[3].name: must be 1 to 64 letters (A to Z, a to z), digits, dots, _ and -",
		"matrices.bad.yml:12: matrices[4]: must be a section with the keys name, indices, fields, file",
		`matrices.bad.yml:15: matrices[5].indices: must have at least one pattern of what it applies to; "*" is everything`,
		`matrices.bad.yml:16: matrices[5].fields[0]: must be a field name in which only * is a wildcard, such as "title*"`,
	},
	"matrices_no_source": {
		"matrices_no_source.bad.yml:4: matrices[1].file: must be set where neither redis.url nor AKIN_REDIS_URL is",
		"matrices_no_source.bad.yml:6: matrices[2].file: must be set where neither redis.url nor AKIN_REDIS_URL is",
	},
	"memory": {
		"memory.bad.yml:2: expansion.max_body: 10MiB is more than half of memory.in_flight, which is all that one client gets",
	},
	"max_doc_share": {
		"max_doc_share.bad.yml:1: expansion.max_doc_share: 1.5 is out of range; allowed: above 0, up to 1",
		"max_doc_share.bad.yml:1: expansion.max_added_terms: -1 is out of range; allowed: 0 to 200",
		"max_doc_share.bad.yml:1: expansion.max_query_terms: 1025 is out of range; allowed: 1 to 1024",
		"max_doc_share.bad.yml:1: expansion.soft_weight: 1.1 is out of range; allowed: 0 to 1",
	},
	"moved": {
		"moved.bad.yml:2: caches.rows: is caches.size now, for all caches together",
		"moved.bad.yml:2: caches.analysis: is caches.size now, for all caches together",
		"moved.bad.yml:3: caches.rows: is caches.size now, for all caches together",
		"moved.bad.yml:6: profiles.a.b.strength.saturated: is strength now, a factor for all forms: 1 is what was 0.25",
		"moved.bad.yml:6: profiles.a.b.strength.linear: is strength now, a factor for all forms: 1 is what was 0.2",
		"moved.bad.yml:7: profiles.a.b.vector_candidates: is rerank_window now",
		"moved.bad.yml:9: expansion.strength.grouped: is strength now, a factor for all forms: 1 is what was 0.5",
		"moved.bad.yml:10: expansion.rerank_budget: is budget now, which reranking may take once more",
		"moved.bad.yml:11: expansion.rank_eval: is no key any more: the searches of _rank_eval are expanded, unless the request says akin=off",
		"moved.bad.yml:12: redis.timeout: is expansion.budget now, of which a call to Redis may take three fifths",
		"moved.bad.yml:13: shutdown.timeout: is no key any more: requests in progress have 20s after shutdown.delay",
		"moved.bad.yml:14: log.format: is no key any more: the log is JSON",
		"moved.bad.yml:15: tracing: is OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS and OTEL_TRACES_SAMPLER_ARG in the environment now",
	},
	"no_value": {
		"no_value.bad.yml:1: listen: has no value; give it one, or remove the key to get the default",
		"no_value.bad.yml:3: expansion.budget: has no value; give it one, or remove the key to get the default",
		"no_value.bad.yml:6: cluster.urls[0]: has no value; give it one, or remove the key to get the default",
	},
	"not_a_section": {
		"not_a_section.bad.yml:1: must be a section with the keys listen, admin, shutdown, cluster, expansion, profiles, matrices, weights, vectors, redis, caches, memory, log",
	},
	"out_of_range": {
		"out_of_range.bad.yml:2: expansion.mode: must be one of bm25, hard, soft, vectors",
		"out_of_range.bad.yml:3: expansion.rerank_window: 0 is out of range; allowed: 1 to 1000",
		"out_of_range.bad.yml:4: expansion.scoring: must be one of auto, linear, grouped, saturated",
		"out_of_range.bad.yml:5: expansion.matching: must be one of widen, same",
		"out_of_range.bad.yml:6: expansion.max_added_terms: 201 is out of range; allowed: 0 to 200",
		"out_of_range.bad.yml:7: expansion.max_query_terms: 0 is out of range; allowed: 1 to 1024",
		"out_of_range.bad.yml:8: expansion.max_doc_share: 0 is out of range; allowed: above 0, up to 1",
		"out_of_range.bad.yml:9: expansion.budget: 0s is out of range; allowed: 1ms to 10s",
		"out_of_range.bad.yml:10: expansion.max_body: 1023B is out of range; allowed: 1KiB to 100MiB",
		"out_of_range.bad.yml:11: expansion.strength: must be a number",
		"out_of_range.bad.yml:12: expansion.phase: must be one of auto, query, rescore",
		"out_of_range.bad.yml:13: expansion.highlight: must be one of original, related",
		"out_of_range.bad.yml:14: expansion.shadow: 1.01 is out of range; allowed: 0 to 1",
		"out_of_range.bad.yml:16: caches.size: 1MB is out of range; allowed: 2560KiB to 256GiB",
		"out_of_range.bad.yml:17: caches.ttl: 100ms is out of range; allowed: 1s to 24h",
		"out_of_range.bad.yml:19: log.level: must be one of debug, info, warn, error",
		"out_of_range.bad.yml:21: listen.max_connections: -1 is out of range; allowed: 0 to 1000000",
		"out_of_range.bad.yml:22: listen.idle_timeout: 500ms is out of range; allowed: 1s to 1h",
		"out_of_range.bad.yml:23: listen.body_timeout: 999ms is out of range; allowed: 1s to 1h",
		"out_of_range.bad.yml:25: shutdown.delay: 6m is out of range; allowed: 0s to 5m",
		"out_of_range.bad.yml:27: memory.in_flight: 15MiB is out of range; allowed: 16MiB to 64GiB",
	},
	"profiles": {
		"profiles.bad.yml:5: profiles.fast.budget: unknown key; allowed: enabled, mode, rerank_window, soft_weight, when, below, effort, scoring, phase, matching, max_added_terms, " +
			"max_query_terms, max_doc_share, strength, default_fields, highlight, name_added, normalize_score, phrases, hybrid, rescore_queries, nearest_words, feedback, segments, matrices",
		"profiles.bad.yml:6: profiles.fast.scoring: must be one of auto, linear, grouped, saturated",
		"profiles.bad.yml:7: profiles.fast.strength: 7 is out of range; allowed: 0 to 5",
		"profiles.bad.yml:8: profiles.fast.default_fields[0]: must be the full name of a field, without wildcards and boosts",
		"profiles.bad.yml:9: profiles.fast.matrices[2]: is the same as profiles.fast.matrices[1]",
		"profiles.bad.yml:9: profiles.fast.matrices[0]: must be the name of an entry of matrices",
		`profiles.bad.yml:10: profiles."a b": the name must be 1 to 64 letters (A to Z, a to z), digits, dots, _ and -`,
		"profiles.bad.yml:11: profiles.untouched: given twice; the first is in line 3",
		"profiles.bad.yml:12: profiles.?: the name must be 1 to 64 letters (A to Z, a to z), digits, dots, _ and -",
		"profiles.bad.yml:13: profiles.empty: has no value; give it one, or remove the key to get the default",
		"profiles.bad.yml:14: profiles.list: must be a section with the keys enabled, mode, rerank_window, soft_weight, when, below, effort, scoring, phase, matching, max_added_terms, " +
			"max_query_terms, max_doc_share, strength, default_fields, highlight, name_added, normalize_score, phrases, hybrid, rescore_queries, nearest_words, feedback, segments, matrices",
		"profiles.bad.yml:16: expansion.matching: must be one of widen, same",
		"profiles.bad.yml:17: expansion.strength: -1 is out of range; allowed: 0 to 5",
		"profiles.bad.yml:18: expansion.max_doc_share: must be a number",
		"profiles.bad.yml:19: expansion.default_fields[0]: must be the full name of a field, without wildcards and boosts",
	},
	"profiles_list": {
		"profiles_list.bad.yml:1: profiles: must be a section with a profile under each name",
	},
	"redis_credentials": {
		"redis_credentials.bad.yml:2: redis.url: must not hold credentials or options; give the whole URL in AKIN_REDIS_URL",
	},
	"redis_tls": {
		"redis_tls.bad.yml:3: redis.tls.cert_file: must be set together with redis.tls.key_file",
		"redis_tls.bad.yml:4: redis.tls.ca_file: is only for a URL of Redis that begins with rediss",
	},
	"redis_url": {
		"redis_url.bad.yml:4: redis.url: must be redis://host, rediss://host (TLS), unix:///socket, redis+sentinel://host,host/master or " +
			"redis+cluster://host,host; a host may have a :port, a number of a database follows a /, and user:password@ or :password@ " +
			"stands before the hosts, where @ / : ? # % are %40 %2F %3A %3F %23 %25",
	},
	"segments": {
		"segments.bad.yml:3: expansion.segments[0].field: must be the full name of a field, without wildcards and boosts",
		"segments.bad.yml:4: expansion.segments[1].aggregate: must be one of max, avg, sum, first-heavy, length",
		"segments.bad.yml:4: expansion.segments[1].inner_hits: 101 is out of range; allowed: 0 to 100",
		"segments.bad.yml:4: expansion.segments[1].text: must be the full name of a field below path, such as segments.text",
		`segments.bad.yml:5: expansion.segments[2].field: "body" is the field of expansion.segments[1] already; every entry has a field of its own`,
		"segments.bad.yml:6: expansion.segments[2].position: must be the full name of a field, without wildcards and boosts",
		"segments.bad.yml:7: expansion.segments[2].combine: must be one of add, replace",
		"segments.bad.yml:8: expansion.segments[2].share: must be the full name of a field, without wildcards and boosts",
		"segments.bad.yml:9: expansion.segments[3].field: must be the full name of a field, without wildcards and boosts",
		"segments.bad.yml:9: expansion.segments[3].path: must be the full name of a field, without wildcards and boosts",
		"segments.bad.yml:11: profiles.hard.segments: must be empty in the mode hard, which scores whole documents",
	},
	"syntax": {
		"syntax.bad.yml:2: not valid YAML: did not find expected key",
	},
	"tab": {
		"tab.bad.yml:1: not valid YAML: found character that cannot start any token",
	},
	"tls": {
		"tls.bad.yml:2: listen.tls.key_file: must be set together with listen.tls.cert_file",
		"tls.bad.yml:5: cluster.tls.key: must be set together with cluster.tls.certificate",
		"tls.bad.yml:7: cluster.tls.insecure_skip_verify: must be false where ca_file is set: it would leave that unused",
	},
	"tls_key_only": {
		"tls_key_only.bad.yml:1: listen.tls.cert_file: must be set together with listen.tls.key_file",
	},
	"trials": {
		"trials.bad.yml:3: profiles.off: must have another name: as an arm of a trial, off is to forward searches as they came",
		"trials.bad.yml:6: expansion.trials: must be empty where expansion.shadow is set, which gives every client the answer to its original search",
		`trials.bad.yml:8: expansion.trials[0].indices[1]: must be an index name in which only * is a wildcard, such as "logs-*", or "-logs-*" to keep those out`,
		"trials.bad.yml:9: expansion.trials[0].arms[1]: must be off or the name of a profile",
		`trials.bad.yml:10: expansion.trials[1].name: "one" is the name of expansion.trials[0] already; every entry has a name of its own`,
		"trials.bad.yml:11: expansion.trials[1].arms: must be two: the usual one and the new one",
		"trials.bad.yml:12: expansion.trials[1].share: 2 is out of range; allowed: 0 to 1",
		"trials.bad.yml:13: expansion.trials[1].header: must be the name of a header",
		"trials.bad.yml:14: expansion.trials[2].arms[1]: is the same as expansion.trials[2].arms[0]",
		"trials.bad.yml:14: expansion.trials[2].name: must be 1 to 64 letters (A to Z, a to z), digits, dots, _ and -",
	},
	"unknown_key": {
		"unknown_key.bad.yml:3: listen.adress: unknown key; did you mean address? allowed: address, forwarded_headers, tls, max_connections, idle_timeout, body_timeout",
		"unknown_key.bad.yml:6: expansion.feedback.flat: unknown key; allowed: documents, terms, weight",
		"unknown_key.bad.yml:7: profile: unknown key; did you mean profiles? allowed: listen, admin, shutdown, cluster, expansion, profiles, matrices, weights, vectors, redis, caches, memory, log",
		`unknown_key.bad.yml:8: "a b\tc": unknown key; allowed: listen, admin, shutdown, cluster, expansion, profiles, matrices, weights, vectors, redis, caches, memory, log`,
		"unknown_key.bad.yml:12: matrices[0].index: unknown key; allowed: name, indices, fields, file",
		"unknown_key.bad.yml:13: cluster.ulrs: unknown key; did you mean urls? allowed: urls, tls, auth",
	},
	"urls": {
		"urls.bad.yml:3: cluster.urls[0]: must be http:// or https://, a host, and perhaps :port and /prefix",
		"urls.bad.yml:4: cluster.urls[1]: must be http:// or https://, a host, and perhaps :port and /prefix",
		"urls.bad.yml:5: cluster.urls[2]: must be http:// or https://, a host, and perhaps :port and /prefix",
		"urls.bad.yml:6: cluster.urls[3]: must be http:// or https://, a host, and perhaps :port and /prefix",
		"urls.bad.yml:7: cluster.urls[4]: must not hold credentials; give them in cluster.auth or in AKIN_CLUSTER_USERNAME, AKIN_CLUSTER_PASSWORD and AKIN_CLUSTER_API_KEY",
		"urls.bad.yml:8: cluster.urls[5]: must be http:// or https://, a host, and perhaps :port and /prefix",
		"urls.bad.yml:10: cluster.urls[7]: is the same as cluster.urls[6]",
		"urls.bad.yml:11: cluster.urls[8]: must be http:// or https://, a host, and perhaps :port and /prefix",
	},
	"urls_empty": {
		"urls_empty.bad.yml:1: cluster.urls: must name at least one node of the cluster",
	},
	"vectors": {
		"vectors.bad.yml:2: expansion.mode: vectors needs model files, in the key vectors",
	},
	"vectors_files": {
		"vectors_files.bad.yml:1: vectors[1]: must be a file",
		"vectors_files.bad.yml:1: vectors[2]: is the same as vectors[0]",
		"vectors_files.bad.yml:2: expansion.rerank_window: 10001 is out of range; allowed: 1 to 1000",
	},
	"vectors_profile": {
		"vectors_profile.bad.yml:1: profiles.near.mode: vectors needs model files, in the key vectors",
	},
	"weights": {
		`weights.bad.yml:4: weights[1].name: "body" is the name of weights[0] already; every entry has a name of its own`,
		`weights.bad.yml:4: weights[1].fields: must have at least one pattern of what it applies to; "*" is everything`,
	},
	"weights_no_source": {
		"weights_no_source.bad.yml:2: weights[0].file: must be set where neither redis.url nor AKIN_REDIS_URL is",
	},
	"wrong_type": {
		"wrong_type.bad.yml:1: listen: must be a section with the keys address, forwarded_headers, tls, max_connections, idle_timeout, body_timeout",
		"wrong_type.bad.yml:3: cluster.urls: must be a list",
		"wrong_type.bad.yml:5: cluster.tls.insecure_skip_verify: must be true or false",
		"wrong_type.bad.yml:7: cluster.auth.username: must be a text; put a number or true and false in quotes",
		"wrong_type.bad.yml:9: expansion.enabled: must be true or false",
		"wrong_type.bad.yml:10: expansion.max_added_terms: must be a whole number",
		"wrong_type.bad.yml:11: expansion.max_doc_share: must be a number",
		"wrong_type.bad.yml:12: expansion.budget: must be a duration: a number with a unit, such as 50ms, 30s or 1m30s",
		"wrong_type.bad.yml:13: expansion.max_body: must be a size: a whole number with a unit of B, kB, MB, GB, KiB, MiB or GiB, such as 64MiB",
		"wrong_type.bad.yml:14: expansion.default_fields[1]: must be a text; put a number or true and false in quotes",
		"wrong_type.bad.yml:15: matrices: must be a list",
		"wrong_type.bad.yml:17: redis.url: must be a text",
		"wrong_type.bad.yml:19: caches.size: must be a size: a whole number with a unit of B, kB, MB, GB, KiB, MiB or GiB, such as 64MiB",
		"wrong_type.bad.yml:20: caches.ttl: must be a duration: a number with a unit, such as 50ms, 30s or 1m30s",
	},
}

func TestBadFilesListEveryProblem(t *testing.T) {
	for name, want := range badFiles {
		t.Run(name, func(t *testing.T) {
			file := name + ".bad.yml"
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(file, data)
			if err == nil {
				t.Fatalf("no error, but %+v", c)
			}
			if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryBadFileHasAnExpectation(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.bad.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if _, ok := badFiles[strings.TrimSuffix(filepath.Base(path), ".bad.yml")]; !ok {
			t.Errorf("%s is not in the table", path)
		}
	}
}

// TestMessagesDoNotQuoteSecrets relies on testdata that has hunter2 wherever a
// credential could be put by mistake.
func TestMessagesDoNotQuoteSecrets(t *testing.T) {
	for name, messages := range badFiles {
		for _, m := range messages {
			if strings.Contains(m, "hunter2") {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestErrorsCanBeTakenApart(t *testing.T) {
	_, err := Parse("a.yml", []byte("log: {level: loud}\nadmin: {port: 1}\n"))
	var p *Error
	if !errors.As(err, &p) {
		t.Fatalf("%v holds no *Error", err)
	}
	if p.File != "a.yml" || p.Line != 1 || p.Key != "log.level" {
		t.Errorf("got %+v", p)
	}
}

func TestEmptyFilesAreTheDefault(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":  "",
		"comments": "# nothing\n",
		"marker":   "---\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("a.yml", []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Default(), c, secrets, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-default +got):\n%s", diff)
			}
		})
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("full.yml", data)
	if err != nil {
		t.Fatal(err)
	}
	common := expand.Profile{
		Mode: expand.ModeSoft, RerankWindow: 1000, SoftWeight: 0, When: expand.FewHits, Below: 10000, Effort: form.High, Scoring: form.Linear, SameMatches: true,
		MaxAddedTerms: 0, MaxQueryTerms: 1024, MaxDocShare: 1,
		Strength:      0.125,
		DefaultFields: []string{"title", "body.english"},
		MarkRelated:   true, NameAdded: true, NormalizeScores: true, Phrases: true, RescoreQueries: true,
		Feedback: expand.FeedbackOptions{Documents: 100, Terms: 1, Weight: 1},
	}
	want := &Config{
		Listen: Listen{
			Address: ":0", TLS: ServerTLS{CertFile: "akin.crt", KeyFile: "akin.key"},
			MaxConnections: 2000, IdleTimeout: Duration(time.Minute), BodyTimeout: Duration(time.Hour),
		},
		Admin:    Admin{Address: "[::1]:0", Hosts: []string{"akin-admin.search.svc", "ops"}},
		Shutdown: Shutdown{},
		Cluster: Cluster{
			URLs: []string{"https://es-1:9200", "https://[::1]/search"},
			TLS:  ClientTLS{CAFile: "ca.pem", Certificate: "akin.pem", Key: "akin.key"},
			Auth: Auth{Username: "akin", PasswordFile: "password"},
		},
		Expansion: Expansion{
			Profile: common,
			Budget:  Duration(9 * time.Second), MaxBody: 100_000, RerankWarmUp: true, Templates: true, Shadow: 0.25,
			HideFrom: expand.DiscloseProfile | expand.DiscloseExplain | expand.DiscloseValidate, Trials: []Trial{},
		},
		Profiles: map[string]Profile{
			"Same.v1-a_2": {Profile: common, Matrices: []string{}},
			"wide": {
				Enabled: true,
				Profile: expand.Profile{
					RerankWindow: 1, SoftWeight: 1, When: expand.FewHits, Below: 10000, Effort: form.High, Scoring: form.Saturated, NoRescore: true,
					MaxAddedTerms: 200, MaxQueryTerms: 1, MaxDocShare: 0.5, NearestWords: true, Hybrid: true,
					Strength: 2,
					Feedback: expand.FeedbackOptions{Documents: 5, Terms: 1, Weight: 1},
					Segments: []form.Segments{{
						Field: "body", Path: "parts", Text: "parts.body", Position: "parts.n", Share: "parts.part",
						Aggregate: form.Length, Replace: true, InnerHits: 100,
					}},
				},
				Matrices: []string{"main", "Shop_2.v1-a"},
			},
		},
		Matrices: []Matrix{
			{Name: "Shop_2.v1-a", Indices: []string{"shop-*"}, Fields: []string{"title"}, File: "shop.akin"},
			{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}},
		},
		Vectors: []string{"body.vectors", "title.vectors"},
		Weights: []Matrix{
			{Name: "Shop_2.v1-a", Indices: []string{"shop-*"}, Fields: []string{"title"}, File: "weights.akin"},
			{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}},
		},
		Redis: Redis{
			URL: NewSecret("rediss+sentinel://redis-1.internal,redis-2.internal:26380/main/3"),
			TLS: RedisTLS{CAFile: "redis-ca.pem", CertFile: "redis.crt", KeyFile: "redis.key"},
		},
		Caches: Caches{Size: 256 * gibibyte, TTL: Duration(24 * time.Hour)},
		Memory: Memory{InFlight: 200 * mebibyte},
		Log:    Log{Level: "error", Queries: true, Access: true},
	}
	if diff := cmp.Diff(want, got, secrets, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzParse checks that any input gives an error of problems or a
// configuration, and that a configuration comes out the same when its own
// values are written down and read again.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"akin.yml", "testdata/*.yml", "../deploy/*.yml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.yml", data)
		if err != nil {
			if p := (*Error)(nil); c != nil || !errors.As(err, &p) {
				t.Fatalf("Parse = %v, %v", c, err)
			}
			return
		}
		again, err := Parse("again.yml", written(t, c))
		if err != nil {
			t.Fatalf("a valid configuration is refused when written down: %v", err)
		}
		if diff := cmp.Diff(c, again, secrets, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}

// written returns c as YAML with every key.
func written(t *testing.T, c *Config) []byte {
	t.Helper()
	keys := keysOf(reflect.ValueOf(*c)) // Secrets marshal as a mark: the URL is put in by hand.
	profiles := map[string]any{}
	for name, p := range c.Profiles {
		profiles[name] = keysOf(reflect.ValueOf(p))
	}
	keys["profiles"] = profiles
	keys["expansion"].(map[string]any)["hide_from"] = hidden(c.Expansion.HideFrom)
	out, err := yaml.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	url, err := yaml.Marshal(c.Redis.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(out, []byte("'[redacted]'"), bytes.TrimSpace(url), 1)
}

func TestWordsStandForWhatTheirConstantsDo(t *testing.T) {
	for setting, change := range map[string]func(p *expand.Profile){
		"mode=bm25":         func(p *expand.Profile) { p.Mode = expand.ModeBM25 },
		"mode=hard":         func(p *expand.Profile) { p.Mode = expand.ModeHard },
		"mode=soft":         func(p *expand.Profile) { p.Mode = expand.ModeSoft },
		"mode=vectors":      func(p *expand.Profile) { p.Mode = expand.ModeVectors },
		"scoring=auto":      func(p *expand.Profile) { p.Scoring = form.Auto },
		"scoring=linear":    func(p *expand.Profile) { p.Scoring = form.Linear },
		"scoring=grouped":   func(p *expand.Profile) { p.Scoring = form.Grouped },
		"scoring=saturated": func(p *expand.Profile) { p.Scoring = form.Saturated },
		"phase=auto":        func(p *expand.Profile) { p.NoRescore = false },
		"phase=rescore":     func(p *expand.Profile) { p.NoRescore = false },
		"phase=query":       func(p *expand.Profile) { p.NoRescore = true },
		"matching=widen":    func(p *expand.Profile) { p.SameMatches = false },
		"matching=same":     func(p *expand.Profile) { p.SameMatches = true },
		"highlight=related": func(p *expand.Profile) { p.MarkRelated = true },
		"segments=[{field: f, aggregate: max}]": func(p *expand.Profile) {
			p.Segments = segmentsOf(form.Segments{Aggregate: form.Max})
		},
		"segments=[{field: f, aggregate: avg}]": func(p *expand.Profile) {
			p.Segments = segmentsOf(form.Segments{Aggregate: form.Avg})
		},
		"segments=[{field: f, aggregate: sum}]": func(p *expand.Profile) {
			p.Segments = segmentsOf(form.Segments{Aggregate: form.Sum})
		},
		"segments=[{field: f, aggregate: first-heavy, combine: replace}]": func(p *expand.Profile) {
			p.Segments = segmentsOf(form.Segments{Aggregate: form.FirstHeavy, Replace: true})
		},
		"segments=[{field: f, aggregate: length, combine: add}]": func(p *expand.Profile) {
			p.Segments = segmentsOf(form.Segments{Aggregate: form.Length})
		},
	} {
		got, want := expand.DefaultProfile(), expand.DefaultProfile()
		key, value, _ := strings.Cut(setting, "=")
		if err := Set(&got, key, value); err != nil {
			t.Errorf("%s: %v", setting, err)
		}
		change(&want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", setting, diff)
		}
	}
}

func segmentsOf(s form.Segments) []form.Segments {
	s.Field, s.Path, s.Text, s.Position, s.Share = "f", "segments", "segments.text", "segments.position", "segments.share"
	return []form.Segments{s}
}

func TestSettingsAreChangedByTheirKeys(t *testing.T) {
	p := expand.DefaultProfile()
	for key, value := range map[string]string{
		"strength": "0.3", "feedback.documents": "5", "default_fields": "[title, body]", "normalize_score": "true", "name_added": "true",
	} {
		if err := Set(&p, key, value); err != nil {
			t.Error(err)
		}
	}
	want := expand.DefaultProfile()
	want.Strength, want.Feedback.Documents, want.NormalizeScores, want.DefaultFields = 0.3, 5, true, []string{"title", "body"}
	want.NameAdded = true
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for setting, problem := range map[string]string{
		"mode=best":           "mode: must be one of bm25, hard, soft, vectors",
		"max_doc_share=0":     "max_doc_share: 0 is out of range; allowed: above 0, up to 1",
		"max_doc_share=2":     "max_doc_share: 2 is out of range; allowed: above 0, up to 1",
		"strength=6":          "strength: 6 is out of range; allowed: 0 to 5",
		"strength.linear=2":   "strength.linear: is strength now, a factor for all forms: 1 is what was 0.2",
		"strength.flat=1":     "strength: must be a number",
		"feedback.flat=1":     "feedback.flat: unknown key; allowed: documents, terms, weight",
		"feedback=1":          "feedback: must be a section with the keys documents, terms, weight",
		"mode.best=1":         "mode: must be a text; put a number or true and false in quotes",
		"matching=":           "matching: must have a value, as in a file",
		"matching={":          "matching: must have a value, as in a file",
		"matching=null":       "matching: has no value; give it one, or remove the key to get the default",
		"max_added_terms=few": "max_added_terms: must be a whole number",
	} {
		key, value, _ := strings.Cut(setting, "=")
		if err := Set(&p, key, value); err == nil || err.Error() != problem {
			t.Errorf("%s: %v, want %s", setting, err, problem)
		}
	}
}
