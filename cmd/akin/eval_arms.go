package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/evaluate"
)

// armHelp says how arms are written.
const armHelp = `An arm is a way to search, [NAME=]WHAT, where WHAT is one of
  direct                        the cluster, or with --akin only, akin with X-Akin: off
  akin                          the akin at --akin
  profile:NAME                  the same with a profile
  matrix:FILE[,KEY=VALUE…]      an akin in this process with this matrix and, of
                                the keys of a profile, these: strength=0.3,
                                strength.linear=0.3, scoring=linear, matching=same …`

// armOptions say which ways to search are compared, and where.
type armOptions struct {
	cli.Cluster // URL may be "" where an akin is asked

	Arms        []string  // as [armHelp] says
	Akin, Admin string    // URLs of a running akin
	Title       string    // the field with the titles of documents; "" for none
	Anonymous   bool      // the cluster asks for no credentials
	Log         io.Writer // of an akin in this process
}

func (o *armOptions) register(flags *pflag.FlagSet) {
	o.Register(flags, "URL of the cluster")
	flags.StringVar(&o.Akin, "akin", "", "URL of a running akin")
	flags.StringVar(&o.Admin, "akin-admin", "", "URL of its admin port, which knows the terms it added")
	flags.StringArrayVar(&o.Arms, "arm", []string{"direct"}, "a way to search; give several, the first is what others are compared with")
	flags.StringVar(&o.Title, "title", "", "field that has the titles of documents, for those who read the results")
}

// open opens a client for the URL of a cluster or of an akin.
func (o *armOptions) open(url string) (*esclient.Client, error) {
	if o.Anonymous {
		return esclient.New(esclient.Options{URL: url})
	}
	return (&cli.Cluster{URL: url, CAFile: o.CAFile}).Open()
}

// An armSet is arms that can be searched with.
type armSet struct {
	List    []evaluate.Arm
	first   target
	closers []func()
}

// Close ends what the arms run.
func (s *armSet) Close() {
	for _, end := range slices.Backward(s.closers) {
		end()
	}
}

var (
	specPattern = regexp.MustCompile(`^(?:([\w.-]{1,64})=)?(direct|akin|profile|matrix)(?::(.+))?$`)
	noName      = regexp.MustCompile(`[^\w.-]+`)
)

// openArms makes the arms. Its caller closes them.
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
	if m == nil || (m[3] == "") != (m[2] == "direct" || m[2] == "akin") {
		return cli.Usage(errors.New("want [NAME=]direct, akin, profile:NAME or matrix:FILE[,KEY=VALUE…]"))
	}
	arm := evaluate.Arm{Name: m[1], Plan: o.Index + " " + m[2] + ":" + m[3]}
	if arm.Name == "" {
		arm.Name = noName.ReplaceAllString(spec, "-")
		arm.Name = arm.Name[:min(len(arm.Name), 64)]
	}
	if slices.ContainsFunc(s.List, func(a evaluate.Arm) bool { return a.Name == arm.Name }) {
		return cli.Usage(fmt.Errorf("two are named %s: give them names of their own, NAME=WHAT", arm.Name))
	}
	t := target{index: o.Index, title: o.Title}
	switch m[2] {
	case "direct":
		t.off = o.URL == ""
		t.client, err = s.keep(o.open(cmp.Or(o.URL, o.Akin)))
	case "matrix":
		err = s.candidate(ctx, o, &t, &arm, m[3])
	default:
		if o.Akin == "" || o.Admin == "" {
			return cli.Usage(errors.New("give --akin and --akin-admin, the URLs of a running akin"))
		}
		t.profile = m[3]
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

// keep leaves it to Close to close a client.
func (s *armSet) keep(client *esclient.Client, err error) (*esclient.Client, error) {
	if err == nil {
		s.closers = append(s.closers, client.Close)
	}
	return client, err
}

// ask sets the target to an akin and its admin port, which gets its token
// and no credentials for the cluster.
func (s *armSet) ask(o *armOptions, t *target, akin, admin string) (err error) {
	if t.client, err = s.keep(o.open(akin)); err != nil {
		return err
	}
	known := esclient.Options{URL: admin, Password: os.Getenv(configs.EnvAdminToken)}
	if known.Password != "" {
		known.Username = "akin" // any will do
	}
	t.admin, err = s.keep(esclient.New(known))
	return err
}

// candidate sets the target of an arm to an akin in this process.
func (s *armSet) candidate(ctx context.Context, o *armOptions, t *target, arm *evaluate.Arm, what string) error {
	if o.URL == "" {
		return cli.Usage(errors.New("give --cluster"))
	}
	file, settings, _ := strings.Cut(what, ",")
	cfg, err := o.configure(arm.Name, file, settings)
	if err != nil {
		return cli.Usage(err)
	}
	m, err := cli.ReadMatrix(ctx, file)
	if err != nil {
		return err
	}
	arm.Plan += " " + m.Checksum()
	if n := float64(m.Len()); n > 0 {
		arm.Density = 100 * (float64(m.Meta().NonZeros) + n) / (n * n)
	}
	t.profile = arm.Name
	return s.serve(ctx, o, t, cfg, m)
}

// directArm returns an arm that is the cluster.
func directArm(client *esclient.Client, index string) evaluate.Arm {
	return evaluate.Arm{Name: "direct", Search: (&target{client: client, index: index}).search}
}

// candidateArm returns an arm that is an akin in this process with a matrix and
// the keys of a profile. Its caller calls end, with an error, too.
func candidateArm(ctx context.Context, o armOptions, how expand.Profile, m *simmatrix.Matrix) (arm evaluate.Arm, end func(), err error) {
	s, t := &armSet{}, &target{index: o.Index, profile: "candidate"}
	cfg, err := o.configure(t.profile, "in memory", "")
	if err == nil {
		p := cfg.Profiles[t.profile]
		p.Profile = how
		cfg.Profiles[t.profile] = p
		err = s.serve(ctx, &o, t, cfg, m)
	}
	return evaluate.Arm{Name: t.profile, Search: t.search}, s.Close, err
}

// serve sets the target to an akin in this process.
func (s *armSet) serve(ctx context.Context, o *armOptions, t *target, cfg *configs.Config, m *simmatrix.Matrix) error {
	akin, admin, end, err := serveHere(ctx, cfg, m, o.Log)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() { _ = end() }) // its searches have been answered
	return s.ask(o, t, akin, admin)
}

// configure returns the configuration of an akin with one matrix and a profile
// of the same name that has the settings.
func (o *armOptions) configure(name, file, settings string) (*configs.Config, error) {
	cfg := configs.Default()
	profile := configs.Profile{Enabled: true, Profile: cfg.Expansion.Profile, Matrices: []string{name}}
	for setting := range strings.SplitSeq(settings, ",") {
		key, value, given := strings.Cut(setting, "=")
		keys := []string{key}
		switch key {
		case "":
			continue
		case "strength":
			keys = []string{"strength.linear", "strength.grouped", "strength.saturated"}
		}
		if !given {
			return nil, fmt.Errorf("%s: want KEY=VALUE", setting)
		}
		for _, key := range keys {
			if err := configs.Set(&profile.Profile, key, value); err != nil {
				return nil, fmt.Errorf("profiles.%s.%w", name, err)
			}
		}
	}
	if profile.Mode == expand.ModeVectors {
		return nil, errors.New("mode: must be another than vectors, which needs a file with a model")
	}
	cfg.Matrices = []configs.Matrix{{Name: name, Indices: []string{"*"}, Fields: []string{"*"}, File: file}}
	cfg.Profiles = map[string]configs.Profile{name: profile}
	cfg.Expansion.Budget, cfg.Expansion.RerankBudget = configs.Duration(10*time.Second), configs.Duration(10*time.Second) // what counts is the ranking
	cfg.Listen.Address, cfg.Admin.Address = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Cluster.URLs, cfg.Cluster.TLS.CAFile = []string{o.URL}, o.CAFile
	if !o.Anonymous {
		cfg.Cluster.Auth = configs.Auth{
			Username: os.Getenv(configs.EnvClusterUsername),
			Password: configs.NewSecret(os.Getenv(configs.EnvClusterPassword)),
			APIKey:   configs.NewSecret(os.Getenv(configs.EnvClusterAPIKey)),
		}
	}
	cfg.Shutdown.Delay = 0
	return cfg, nil
}
