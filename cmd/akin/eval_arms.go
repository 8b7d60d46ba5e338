package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/proxy/report"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/evaluate"
)

const armHelp = `An arm is a way to search, [NAME=]WHAT, where WHAT is one of
  direct                        the cluster, or with only --akin, akin with X-Akin: off
  akin                          the akin at --akin
  profile:NAME                  the same with a profile
  matrix[:FILE][,KEY=VALUE…]    an akin in this process with this matrix, or that
                                of the configuration, and these keys of a
                                profile, such as strength=0.5, scoring=linear,
                                feedback.documents=10 …`

// armOptions say which ways to search are compared.
type armOptions struct {
	cli.Cluster // URL may be "" if only a running akin is used

	Arms        []string  // see [armHelp]
	File        string    // the matrix of arms without a file; may be ""
	Akin, Admin string    // URLs of a running akin
	Title       string    // the field with the titles of documents; "" for none
	InProcess   bool      // the cluster is an engine in this process
	KeepsSent   bool      // answers have what the cluster got
	Log         io.Writer // for an akin in this process
}

func (o *armOptions) open(url string) (*esclient.Client, error) {
	switch {
	case o.InProcess:
		return esclient.New(esclient.Options{URL: url})
	case url == o.URL:
		return o.Open()
	}
	return o.At(url).Open()
}

// Configure takes the cluster of the configuration, unless only a running akin
// is searched.
func (o *armOptions) Configure(c *configs.Config, given func(flag string) bool) error {
	inProcess := func(spec string) bool {
		m := specPattern.FindStringSubmatch(spec)
		return m != nil && m[2] == "matrix"
	}
	if o.Akin != "" && !slices.ContainsFunc(o.Arms, inProcess) {
		return nil
	}
	return o.Cluster.Configure(c, given)
}

type armSet struct {
	List    []evaluate.Arm
	first   target
	closers []func()
}

// Close stops what the arms run.
func (s *armSet) Close() {
	for _, end := range slices.Backward(s.closers) {
		end()
	}
}

var (
	specPattern = regexp.MustCompile(`^(?:([\w.-]{1,64})=)?(direct|akin|profile|matrix)([:,].+)?$`)
	// fileless matches an arm with the matrix of the configuration.
	fileless = regexp.MustCompile(`^(?:[\w.-]+=)?matrix(?:,.*)?$`)
	noName   = regexp.MustCompile(`[^\w.-]+`)
)

// openArms makes the arms. The caller closes them.
func openArms(ctx context.Context, o armOptions) (s *armSet, err error) {
	if o.Index == "" || o.URL == "" && o.Akin == "" {
		return nil, cli.Usage(errors.New("give --index, and --cluster or --akin"))
	}
	s = &armSet{}
	for _, spec := range o.Arms {
		if err := s.add(ctx, &o, spec); err != nil {
			s.Close()
			return nil, fmt.Errorf("--arm %s: %w", spec, err)
		}
	}
	return s, nil
}

func (s *armSet) add(ctx context.Context, o *armOptions, spec string) (err error) {
	m := specPattern.FindStringSubmatch(spec)
	var of string // the profile, or the file and settings
	valid := false
	if m != nil {
		var named bool
		of, named = strings.CutPrefix(m[3], ":")
		switch m[2] {
		case "matrix":
			valid = true
		case "profile":
			valid = named
		default:
			valid = m[3] == ""
		}
	}
	if !valid {
		return cli.Usage(errors.New("want [NAME=]direct, akin, profile:NAME or matrix[:FILE][,KEY=VALUE…]"))
	}
	arm := evaluate.Arm{Name: m[1], Plan: o.Index + " " + m[2] + ":" + of}
	if o.KeepsSent {
		arm.Plan += " sent" // kept answers without are of no use
	}
	if arm.Name == "" {
		arm.Name = noName.ReplaceAllString(spec, "-")
		arm.Name = arm.Name[:min(len(arm.Name), 64)]
	}
	if slices.ContainsFunc(s.List, func(a evaluate.Arm) bool { return a.Name == arm.Name }) {
		return cli.Usage(fmt.Errorf("two are named %s: give them names of their own, NAME=WHAT", arm.Name))
	}
	t := target{index: o.Index, title: o.Title, keepsSent: o.KeepsSent}
	switch m[2] {
	case "direct":
		t.off = o.URL == ""
		t.client, err = s.keep(o.open(cmp.Or(o.URL, o.Akin)))
	case "matrix": // an akin in this process
		if o.URL == "" {
			return cli.Usage(errors.New("give --cluster"))
		}
		file, settings, _ := strings.Cut(of, ",")
		if file = cmp.Or(file, o.File); file == "" {
			return cli.Usage(errors.New("give a file, matrix:FILE, or a configuration with a matrix"))
		}
		cfg, err := o.configure(arm.Name, file, settings)
		if err != nil {
			return cli.Usage(err)
		}
		matrix, err := cli.ReadMatrix(ctx, file)
		if err != nil {
			return err
		}
		arm.Plan += " " + matrix.Checksum()
		t.profile = arm.Name
		if err := s.serve(ctx, o, &t, cfg, matrix); err != nil {
			return err
		}
	default:
		if o.Akin == "" || o.Admin == "" {
			return cli.Usage(errors.New("give --akin and --akin-admin, the URLs of a running akin"))
		}
		t.profile = of
		err = s.ask(o, &t, o.Akin, o.Admin)
	}
	if err != nil {
		return err
	}
	if len(s.List) == 0 {
		s.first = t
	}
	arm.Search = t.search
	s.List = append(s.List, arm)
	return nil
}

// keep makes Close close a client.
func (s *armSet) keep(client *esclient.Client, err error) (*esclient.Client, error) {
	if err == nil {
		s.closers = append(s.closers, client.Close)
	}
	return client, err
}

// ask sets the target to an akin and its admin port. The admin port gets its
// token, and no credentials for the cluster.
func (s *armSet) ask(o *armOptions, t *target, akin, admin string) (err error) {
	if t.client, err = s.keep(o.open(akin)); err != nil {
		return err
	}
	known := esclient.Options{URL: admin, Password: os.Getenv(configs.EnvAdminToken)}
	if known.Password != "" {
		known.Username = "akin" // the admin port ignores the name
	}
	if t.patient {
		known.Timeout = patience
	}
	t.admin, err = s.keep(esclient.New(known))
	return err
}

func directArm(client *esclient.Client, index string) evaluate.Arm {
	return evaluate.Arm{Name: "direct", Search: (&target{client: client, index: index}).search}
}

// candidateArm returns an arm that is an akin in this process with a matrix and
// a profile. The caller calls end, even after an error.
func candidateArm(ctx context.Context, o armOptions, how expand.Profile, m *simmatrix.Matrix) (arm evaluate.Arm, end func(), err error) {
	s, t := &armSet{}, &target{index: o.Index, profile: "candidate", patient: o.InProcess}
	cfg, err := o.configure(t.profile, "in memory", "")
	how.Waits = true
	if err == nil {
		p := cfg.Profiles[t.profile]
		p.Profile = how
		cfg.Profiles[t.profile] = p
		err = s.serve(ctx, &o, t, cfg, m)
	}
	return evaluate.Arm{Name: t.profile, Search: t.search}, s.Close, err
}

func (s *armSet) serve(ctx context.Context, o *armOptions, t *target, cfg *configs.Config, m *simmatrix.Matrix) error {
	akin, admin, end, err := serveHere(ctx, cfg, m, o.Log, o.InProcess)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() { _ = end() }) // all searches are answered
	return s.ask(o, t, akin, admin)
}

// configure returns the configuration of an akin with one matrix, and a profile
// of the same name with the given settings.
func (o *armOptions) configure(name, file, settings string) (*configs.Config, error) {
	cfg := configs.Default()
	profile := configs.Profile{Enabled: true, Profile: cfg.Expansion.Profile, Matrices: []string{name}}
	for setting := range strings.SplitSeq(settings, ",") {
		key, value, given := strings.Cut(setting, "=")
		if key == "" {
			continue
		}
		if !given {
			return nil, fmt.Errorf("%s: want KEY=VALUE", setting)
		}
		if err := configs.Set(&profile.Profile, key, value); err != nil {
			return nil, fmt.Errorf("profiles.%s.%w", name, err)
		}
	}
	if profile.Mode == expand.ModeVectors {
		return nil, errors.New("mode: must not be vectors, which needs a model file")
	}
	profile.Waits = true
	cfg.Matrices = []configs.Matrix{{Name: name, Indices: []string{"*"}, Fields: []string{"*"}, File: file}}
	cfg.Profiles = map[string]configs.Profile{name: profile}
	cfg.Expansion.Budget = configs.Duration(10 * time.Second) // only the ranking matters
	cfg.Listen.Address, cfg.Admin.Address = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Cluster = o.Config()
	if o.InProcess {
		cfg.Cluster.Auth = configs.Auth{}
	}
	cfg.Shutdown.Delay = 0
	return cfg, nil
}

// A target is where an arm sends its searches.
type target struct {
	client *esclient.Client
	admin  *esclient.Client // nil without akin
	off    bool             // tells akin to leave searches alone
	index  string
	title  string // the field with titles, "" for none

	profile   string
	patient   bool // waits as long as it takes
	keepsSent bool // puts the body that the cluster got in the answer
}

// patience is the limit of a call that waits as long as it takes.
const patience = 24 * time.Hour

// search sends a body. If akin receives it, search also asks for the
// explanation.
func (t *target) search(ctx context.Context, body []byte) (a evaluate.Answer, err error) {
	header := http.Header{}
	if t.off {
		header.Set("X-Akin", "off")
	}
	if t.admin != nil {
		header.Set("X-Akin", "explain")
	}
	if t.profile != "" {
		header.Set("X-Akin-Profile", t.profile)
	}
	call := esclient.Call{
		Request: esapi.SearchRequest{Index: []string{esclient.Name(t.index)}, Header: header, Body: bytes.NewReader(body)},
		Timeout: time.Minute, Limit: 256 << 20,
	}
	if t.patient {
		call.Timeout = patience
	}
	var id string
	var text []byte
	began := time.Now()
	err = t.client.Send(ctx, call, func(h http.Header, r io.Reader) (err error) {
		id = h.Get("X-Akin-Explanation") // set by akin
		text, err = io.ReadAll(r)
		return err
	})
	a.Took = time.Since(began)
	if err != nil {
		return a, err
	}
	if t.keepsSent {
		a.Sent = body
	}
	if a.Hits, a.Engine, err = t.hits(text); err != nil || t.admin == nil {
		return a, err
	}
	var explanation report.Explanation
	err = t.admin.Do(ctx, esclient.Call{Request: esclient.HTTPRequest{Path: "/_akin/explanations/" + id}}, &explanation)
	if refused, ok := errors.AsType[*esclient.Error](err); ok && refused.Status == http.StatusNotFound && id != "" {
		a.Unexplained = true // newer searches have replaced it
		a.Sent = nil
		return a, nil
	}
	if err == nil && explanation.Reason == "unknown_profile" {
		err = fmt.Errorf("akin has no profile %q", t.profile)
	}
	if err == nil && explanation.Trial != "" {
		err = fmt.Errorf("akin has the search in the trial %q, which chooses its settings: name them, profile:NAME", explanation.Trial)
	}
	a.Unexpanded = unexpanded(&explanation.Summary)
	a.Reordered = explanation.Reranked == "reranked" // of the metric akin_reranked_total
	if t.keepsSent && explanation.Sent == report.Rewritten && explanation.Rewritten != nil {
		a.Sent = explanation.Rewritten.Body
	}
	a.Added = []evaluate.AddedTerm{}
	for _, c := range explanation.Clauses {
		for _, t := range c.Added {
			a.Added = append(a.Added, evaluate.AddedTerm{
				Term: t.Term, Word: t.Word, From: t.From, FromWord: c.Words[t.From], Boost: t.Boost,
			})
		}
		for _, t := range c.Alternatives {
			a.Added = append(a.Added, evaluate.AddedTerm{Term: t.Term, Word: t.Word, From: t.For, Boost: t.Similarity})
		}
		for _, t := range c.Feedback {
			a.Added = append(a.Added, evaluate.AddedTerm{Term: t.Term, Word: t.Word, Boost: t.Boost})
		}
	}
	return a, err
}

// unexpanded returns why a search was sent as it came, or "".
func unexpanded(s *report.Summary) string {
	switch {
	case s.Outcome == report.FailedOpen:
		return s.Outcome + ": " + s.Cause
	case s.Outcome == report.Unchanged:
		return s.Reason
	case s.Sent == report.Rewritten:
		return ""
	case s.Refused:
		return "rejected" // and the original accepted
	case s.Reranked != "":
		return s.Reranked
	}
	return "dry_run" // or the shadow mode
}

// hits reads the hits of an answer, and how long the engine took. An incomplete
// answer is an error.
func (t *target) hits(text []byte) ([]evaluate.Hit, time.Duration, error) {
	var answer struct {
		Took     int64                `json:"took"`
		TimedOut bool                 `json:"timed_out"`
		Shards   struct{ Failed int } `json:"_shards"`
		Hits     struct {
			Hits []struct {
				ID     string         `json:"_id"`
				Score  *float64       `json:"_score"`
				Source map[string]any `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, 0, fmt.Errorf("the answer to a search: %w", err)
	}
	if answer.TimedOut || answer.Shards.Failed > 0 {
		return nil, 0, fmt.Errorf("the answer is incomplete: %d shards failed, timed out: %t", answer.Shards.Failed, answer.TimedOut)
	}
	hits := make([]evaluate.Hit, len(answer.Hits.Hits))
	for i, h := range answer.Hits.Hits {
		hits[i] = evaluate.Hit{ID: h.ID, Score: float64(len(hits) - i)}
		if h.Score != nil {
			hits[i].Score = *h.Score
		}
		hits[i].Title, _ = h.Source[t.title].(string)
	}
	return hits, time.Duration(answer.Took) * time.Millisecond, nil
}

// Missing returns the documents that are not in the index.
func (s *armSet) Missing(ctx context.Context, documents []string) (missing []string, err error) {
	const atOnce = 1000
	for some := range slices.Chunk(documents, atOnce) {
		body, err := json.Marshal(map[string]any{
			"size": len(some), "_source": false, "query": map[string]any{"ids": map[string]any{"values": some}},
		})
		if err != nil {
			return nil, err
		}
		direct := &target{client: s.first.client, index: s.first.index, off: s.first.admin != nil || s.first.off}
		found, err := direct.search(ctx, body)
		if err != nil {
			return nil, err
		}
		there := make(map[string]bool, len(some))
		for _, h := range found.Hits {
			there[h.ID] = true
		}
		for _, id := range some {
			if !there[id] {
				missing = append(missing, id)
			}
		}
	}
	return missing, nil
}
