package evaluate

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand"
)

// A TuneResult says what tuning gains. Means are of the tuned measure. Gains
// and bounds are shares of the compared mean.
type TuneResult struct {
	Queries    int     `json:"queries"`
	Tried      int     `json:"settings_tried"`
	Confidence float64 `json:"confidence"`
	// Direct is the mean of direct search.
	Direct float64 `json:"direct"`
	// Defaults are akin's defaults. Tuned is the chosen setting on the queries
	// that it was chosen on, without a test. HeldOut has each query under the
	// setting chosen without its fold: the gain to expect for new queries. All are
	// compared with direct search.
	Defaults TuneGain `json:"defaults"`
	Tuned    TuneGain `json:"tuned"`
	HeldOut  TuneGain `json:"held_out"`
	// HeldOutOverDefaults compares held-out queries with the defaults.
	HeldOutOverDefaults TuneGain `json:"held_out_over_defaults"`
	Folds               []Fold   `json:"folds"`
	// Chosen describes how the setting chosen on all queries differs from the
	// defaults.
	Chosen  string         `json:"chosen"`
	Setting expand.Profile `json:"-"`
	// DefaultsSent and TunedSent count which searches are expanded under the
	// defaults and the setting chosen on all queries. [Tune] does not know.
	DefaultsSent Expansion `json:"defaults_sent"`
	TunedSent    Expansion `json:"tuned_sent"`

	// OnCluster is what the recommended setting does on the cluster, nil before
	// [TuneResult.Confirm].
	OnCluster *TuneCheck `json:"on_cluster,omitempty"`

	Advice Advice `json:"advice"`
	// Recommended is the setting to use according to the advice, nil for none.
	Recommended *expand.Profile `json:"-"`
}

// A TuneGain compares the mean over all queries with another mean.
type TuneGain struct {
	Mean float64 `json:"mean"`
	Gain float64 `json:"gain"`
	// Low and High are the confidence interval of the gain, by the bootstrap over
	// queries.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// P is the probability of such a difference by chance, corrected for the three
	// comparisons (Holm).
	P float64 `json:"p,omitempty"`
}

// A TuneCheck compares a setting with direct search on the cluster itself, on
// all queries, those that it was chosen on among them.
type TuneCheck struct {
	TuneGain

	// DirectMillis and Millis are how long a search takes the engine on average,
	// by its own account.
	DirectMillis float64 `json:"direct_ms"`
	Millis       float64 `json:"ms"`
	// Sent counts which searches the cluster got expanded.
	Sent Expansion `json:"sent"`
}

// A Fold has the queries that a setting was not chosen on.
type Fold struct {
	Queries int     `json:"queries"`
	Chosen  string  `json:"chosen"`
	Tuned   float64 `json:"gain_on_tuned"`
	HeldOut float64 `json:"gain_on_held_out"`
}

// Advice is the recommendation of a [TuneResult].
type Advice string

// The recommendations.
const (
	UseTuned    Advice = "tuned"       // the chosen setting
	UseDefaults Advice = "defaults"    // akin without settings
	UseNothing  Advice = "nothing"     // neither is better than direct search beyond chance
	Unconfirmed Advice = "unconfirmed" // what was to be recommended is not better on the cluster
)

// advise recommends only what is better than direct search with the confidence
// of the result. It recommends the chosen setting only if that is also better
// than the defaults, or the defaults are not better than direct search.
func (r *TuneResult) advise() Advice {
	switch {
	case r.sure(r.HeldOut) && (r.sure(r.HeldOutOverDefaults) || !r.sure(r.Defaults)):
		return UseTuned
	case r.sure(r.Defaults):
		return UseDefaults
	}
	return UseNothing
}

// sure reports whether a gain is one with the confidence of the result.
func (r *TuneResult) sure(g TuneGain) bool { return g.Gain > 0 && g.P <= 1-r.Confidence }

// Confirm adds what the recommended setting does on the cluster: the measure of
// each query there, with it and directly, and which searches it expanded. If
// that is not surely better, nothing is recommended.
func (r *TuneResult) Confirm(direct, with []float64, sent Expansion, directMillis, millis float64) {
	r.OnCluster = &TuneCheck{gainOver(with, direct, r.Confidence), directMillis, millis, sent}
	if !r.sure(r.OnCluster.TuneGain) {
		r.NotConfirmed()
	}
}

// NotConfirmed takes the recommendation back, where the cluster does not
// confirm it, or cannot.
func (r *TuneResult) NotConfirmed() { r.Advice, r.Recommended = Unconfirmed, nil }

// Summary describes the recommendation.
func (r *TuneResult) Summary() string {
	percent := func(g TuneGain) string {
		return fmt.Sprintf("%+.1f %% (%.0f %% interval %+.1f to %+.1f %%, p = %.3g)", 100*g.Gain, 100*r.Confidence, 100*g.Low, 100*g.High, g.P)
	}
	var text string
	switch r.Advice {
	case UseTuned:
		text = fmt.Sprintf("The tuned setting: on held-out queries, nDCG@10 %s over direct search\nand %s over the defaults: %s.",
			percent(r.HeldOut), percent(r.HeldOutOverDefaults), r.Chosen)
	case UseDefaults:
		text = fmt.Sprintf("The defaults: nDCG@10 %s over direct search. No setting is better beyond chance on\nheld-out queries: %s over the defaults.",
			percent(r.Defaults), percent(r.HeldOutOverDefaults))
	case Unconfirmed:
		switch {
		case r.OnCluster == nil:
			text = "Nothing: the cluster did not answer the searches that were to confirm what ranks best without it."
		case r.OnCluster.Sent.Warning != "":
			text = fmt.Sprintf("Nothing: on the cluster, %s (%s).", r.OnCluster.Sent.Warning, r.OnCluster.Sent.Why())
		default:
			text = "Nothing: what ranks best without the cluster is not better on it beyond chance."
		}
	default:
		text = fmt.Sprintf("Nothing: neither the defaults, nDCG@10 %s, nor a tuned setting, %s,\nare better than direct search beyond chance.",
			percent(r.Defaults), percent(r.HeldOut))
	}
	if c := r.OnCluster; c != nil {
		text += fmt.Sprintf("\nOn the cluster, all queries: nDCG@10 %s over direct search. A search takes the engine %.1f ms,\ndirectly %.1f ms.",
			percent(c.TuneGain), c.Millis, c.DirectMillis)
	}
	return text
}

// Print writes the result as tables.
func (r *TuneResult) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	r.DefaultsSent.warn(w, "the defaults")
	r.TunedSent.warn(w, "the tuned setting")
	notes := append(r.DefaultsSent.notes("the defaults"), r.TunedSent.notes("the tuned setting")...)
	if r.OnCluster != nil {
		r.OnCluster.Sent.warn(w, "the recommended setting")
		notes = append(notes, r.OnCluster.Sent.notes("the recommended setting")...)
	}
	fmt.Fprintf(w, "%d queries, %d settings tried\n\n\tnDCG@10\tgain\t%.0f %% interval\tp\texpanded\n", r.Queries, r.Tried, 100*r.Confidence)
	fmt.Fprintf(w, "direct search\t%.4f\n", r.Direct)
	for _, row := range []struct {
		name string
		TuneGain

		expanded string
	}{
		{"the defaults", r.Defaults, r.DefaultsSent.Share()},
		{"tuned, on the queries it was chosen on", r.Tuned, r.TunedSent.Share()},
		{"tuned, on queries held out", r.HeldOut, ""},
		{"the same, over the defaults", r.HeldOutOverDefaults, ""},
	} {
		p := "-"
		if row.P > 0 {
			p = fmt.Sprintf("%.3g", row.P)
		}
		fmt.Fprintf(w, "%s\t%.4f\t%+.1f %%\t%+.1f to %+.1f %%\t%s\t%s\n", row.name, row.Mean, 100*row.Gain, 100*row.Low, 100*row.High, p, row.expanded)
	}
	writeNotes(w, notes)
	fmt.Fprint(w, "\nfold\tqueries\tgain, tuned\theld out\tchosen on the others\n")
	for k, fold := range r.Folds {
		fmt.Fprintf(w, "%d\t%d\t%+.1f %%\t%+.1f %%\t%s\n", k+1, fold.Queries, 100*fold.Tuned, 100*fold.HeldOut, fold.Chosen)
	}
	fmt.Fprintf(w, "\nChosen on all queries: %s.\nRecommended: %s\n", r.Chosen, r.Summary())
	return w.Flush()
}

// WriteProfile writes a configuration with the profile "tuned", which has the
// keys that a setting changes, and an entry of matrices. comment comes first,
// as comment lines.
func WriteProfile(w io.Writer, s *expand.Profile, matrix configs.Matrix, comment string) error {
	changed := changes(s)
	changed["matrices"] = []string{matrix.Name}
	for line := range strings.Lines(comment) {
		if _, err := fmt.Fprintf(w, "# %s\n", strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	type object = map[string]any
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	return encoder.Encode(object{
		"profiles": object{"tuned": changed},
		"matrices": []object{{"name": matrix.Name, "indices": matrix.Indices, "fields": matrix.Fields, "file": matrix.File}},
	})
}

func changes(p *expand.Profile) map[string]any {
	usual := expand.DefaultProfile()
	keys, defaults := configs.Keys(p), configs.Keys(&usual)
	maps.DeleteFunc(keys, func(key string, value any) bool { return reflect.DeepEqual(value, defaults[key]) })
	return keys
}
