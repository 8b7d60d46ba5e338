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

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

// TestBadFilesListEveryProblem reads testdata/NAME.bad.yml, one for each class of
// failure. NAME.bad.txt has everything that is wrong in it, in order. The files
// have hunter2 wherever a credential could be put by mistake.
func TestBadFilesListEveryProblem(t *testing.T) {
	paths := check.Got(filepath.Glob("testdata/*.bad.yml"))(t)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		check.OK(t, err)
		want, err := os.ReadFile(strings.TrimSuffix(path, ".yml") + ".txt")
		check.OK(t, err)
		c, err := Parse(filepath.Base(path), data)
		check.Must(t, err != nil, "%s: no error, but %+v", path, c)
		diff := cmp.Diff(string(want), err.Error()+"\n")
		check.That(t, diff == "" && !strings.Contains(err.Error(), "hunter2"), "%s (-want +got):\n%s", path, diff)
	}
}

func TestEmptyFilesAreTheDefault(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":  "",
		"comments": "# nothing\n",
		"marker":   "---\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := check.Got(Parse("a.yml", []byte(data)))(t)
			check.Equal(t, Default(), c, secrets, cmpopts.EquateEmpty())
		})
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	data := check.Got(os.ReadFile("testdata/full.yml"))(t)
	got := check.Got(Parse("full.yml", data))(t)
	common := expand.Profile{
		Mode: expand.ModeSoft, RerankWindow: 1000, SoftWeight: 0, EmbeddingsWeight: 1, When: expand.FewHits, Below: 10000, Effort: form.High, Scoring: form.Linear, Matching: expand.Same, Enough: 10000, EnoughAll: 0,
		MaxAddedTerms: 0, MaxQueryTerms: 1024, MaxDocShare: 1,
		Strength:      0.125,
		DefaultFields: []string{"title", "body.english"},
		MarkRelated:   true, NameAdded: true, NormalizeScores: true, Phrases: true, RescoreQueries: true,
		Feedback: expand.FeedbackOptions{Documents: 100, Terms: 1, Weight: 1},
	}
	want := &Config{
		Listen: Listen{
			Address: ":0", TLS: ServerTLS{CertFile: "akin.crt", KeyFile: "akin.key"},
			Auth: Auth{APIKeyFile: "client-key"}, MaxConnections: 2000, IdleTimeout: Duration(time.Minute), BodyTimeout: Duration(time.Hour),
		},
		Admin:    Admin{Address: "[::1]:0", Hosts: []string{"akin-admin.search.svc", "ops"}},
		Shutdown: Shutdown{},
		Cluster: Cluster{
			URLs: []string{"https://es-1:9200", "https://[::1]/search"},
			TLS:  ClientTLS{CAFile: "ca.pem", Certificate: "akin.pem", Key: "akin.key"},
			Auth: Auth{Username: "akin", PasswordFile: "password"},
			AWS:  AWS{Service: "es"},
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
					RerankWindow: 1, SoftWeight: 1, Rerank: expand.ByEmbeddings, When: expand.FewHits, Below: 10000, Effort: form.High, Scoring: form.Saturated, NoRescore: true,
					Matching: expand.Widen, Enough: 50, EnoughAll: 20, MaxAddedTerms: 200, MaxQueryTerms: 1, MaxDocShare: 0.5, NearestWords: true, Hybrid: true,
					Strength: 2, Fit: true,
					Feedback: expand.FeedbackOptions{Documents: 5, Terms: 1, Weight: 1},
					Segments: []form.Segments{{
						Field: "body", Path: "parts", Text: "parts.body", Position: "parts.n", Share: "parts.part", Godwin: "parts.g",
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
		Embeddings: Embeddings{
			URL: "http://model:8080/v1/embeddings", Model: "small", SearchPrefix: "query: ", DocumentPrefix: "passage: ", KeyFile: "model.key", CAFile: "model.pem",
			Fields: []string{"title", "text.body"}, Budget: Duration(10 * time.Second), Size: gibibyte, File: "vectors.db",
		},
		Answers:  Answers{Header: true},
		Searches: Searches{Collect: true, Below: 10_000, ExcludeIndices: []string{"patients-*"}, Keep: Duration(24 * time.Hour), File: "searches.json", Clicks: "clicks.jsonl"},
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
	check.Equal(t, want, got, secrets, cmpopts.EquateEmpty())
}

// FuzzParse checks that any input gives an error of problems or a
// configuration, and that a configuration comes out the same when its own
// values are written down and read again.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"akin.yml", "testdata/*.yml", "../deploy/*.yml"} {
		paths := check.Got(filepath.Glob(pattern))(f)
		for _, path := range paths {
			data := check.Got(os.ReadFile(path))(f)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.yml", data)
		if err != nil {
			p := (*Error)(nil)
			check.Must(t, c == nil && errors.As(err, &p), "Parse = %v, %v", c, err)
			return
		}
		again, err := Parse("again.yml", written(t, c))
		check.Must(t, err == nil, "a valid configuration is refused when written down: %v", err)
		check.Equal(t, c, again, secrets, cmpopts.EquateEmpty())
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
	out := check.Got(yaml.Marshal(keys))(t)
	url := check.Got(yaml.Marshal(c.Redis.URL.Reveal()))(t)
	return bytes.Replace(out, []byte("'[redacted]'"), bytes.TrimSpace(url), 1)
}

func TestWordsStandForWhatTheirConstantsDo(t *testing.T) {
	for setting, change := range map[string]func(p *expand.Profile){
		"mode=bm25":         func(p *expand.Profile) { p.Mode = expand.ModeBM25 },
		"mode=hard":         func(p *expand.Profile) { p.Mode = expand.ModeHard },
		"mode=soft":         func(p *expand.Profile) { p.Mode = expand.ModeSoft },
		"mode=vectors":      func(p *expand.Profile) { p.Mode = expand.ModeVectors },
		"mode=softcosine":   func(p *expand.Profile) { p.Mode = expand.ModeSoftCosine },
		"rerank=none":       func(p *expand.Profile) { p.Rerank = expand.NoReranking },
		"rerank=embeddings": func(p *expand.Profile) { p.Rerank = expand.ByEmbeddings },
		"scoring=auto":      func(p *expand.Profile) { p.Scoring = form.Auto },
		"scoring=linear":    func(p *expand.Profile) { p.Scoring = form.Linear },
		"scoring=grouped":   func(p *expand.Profile) { p.Scoring = form.Grouped },
		"scoring=saturated": func(p *expand.Profile) { p.Scoring = form.Saturated },
		"phase=auto":        func(p *expand.Profile) { p.NoRescore = false },
		"phase=rescore":     func(p *expand.Profile) { p.NoRescore = false },
		"phase=query":       func(p *expand.Profile) { p.NoRescore = true },
		"matching=auto":     func(p *expand.Profile) { p.Matching = expand.Auto },
		"matching=widen":    func(p *expand.Profile) { p.Matching = expand.Widen },
		"matching=same":     func(p *expand.Profile) { p.Matching = expand.Same },
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
		"segments=[{field: f, aggregate: godwin}]": func(p *expand.Profile) {
			p.Segments = segmentsOf(form.Segments{Aggregate: form.Godwin})
		},
	} {
		got, want := expand.DefaultProfile(), expand.DefaultProfile()
		key, value, _ := strings.Cut(setting, "=")
		err := Set(&got, key, value)
		check.That(t, err == nil, "%s: %v", setting, err)
		change(&want)
		check.Equal(t, want, got, setting)
	}
}

func segmentsOf(s form.Segments) []form.Segments {
	s.Field, s.Path, s.Text, s.Position = "f", "segments", "segments.text", "segments.position"
	s.Share, s.Godwin = "segments.share", "segments.godwin"
	return []form.Segments{s}
}

func TestSettingsAreChangedByTheirKeys(t *testing.T) {
	p := expand.DefaultProfile()
	for key, value := range map[string]string{
		"strength": "0.3", "feedback.documents": "5", "default_fields": "[title, body]", "normalize_score": "true", "name_added": "true",
	} {
		check.OK(t, Set(&p, key, value))
	}
	want := expand.DefaultProfile()
	want.Strength, want.Feedback.Documents, want.NormalizeScores, want.DefaultFields = 0.3, 5, true, []string{"title", "body"}
	want.NameAdded = true
	check.Equal(t, want, p)
	for setting, problem := range map[string]string{
		"mode=best":           "mode: must be one of bm25, hard, soft, vectors, softcosine, auto",
		"max_doc_share=0":     "max_doc_share: 0 is out of range; allowed: above 0, up to 1",
		"max_doc_share=2":     "max_doc_share: 2 is out of range; allowed: above 0, up to 1",
		"strength=6":          "strength: 6 is out of range; allowed: 0 to 5",
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
		err := Set(&p, key, value)
		check.That(t, err != nil && err.Error() == problem, "%s: %v, want %s", setting, err, problem)
	}
}
