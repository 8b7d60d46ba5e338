package tune

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Summary says in words what is recommended.
func (r *Result) Summary() string {
	percent := func(g Gain) string {
		return fmt.Sprintf("%+.1f %% (%.0f %% interval %+.1f to %+.1f %%, p = %.3g)", 100*g.Gain, 100*r.Confidence, 100*g.Low, 100*g.High, g.P)
	}
	switch r.Advice {
	case UseTuned:
		return fmt.Sprintf("The tuned setting: on queries that it was not chosen on, nDCG@10 %s over direct search\nand %s over the defaults: %s.",
			percent(r.HeldOut), percent(r.HeldOutOverDefaults), r.Chosen)
	case UseDefaults:
		return fmt.Sprintf("The defaults: nDCG@10 %s over direct search. No setting is better beyond chance on queries\nthat it was not chosen on: %s over the defaults.",
			percent(r.Defaults), percent(r.HeldOutOverDefaults))
	default:
		return fmt.Sprintf("Nothing: neither the defaults, nDCG@10 %s, nor a tuned setting, %s,\nare better than direct search beyond chance.",
			percent(r.Defaults), percent(r.HeldOut))
	}
}

// Print writes the result as tables.
func (r *Result) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d queries, %d settings tried\n\n\tnDCG@10\tgain\t%.0f %% interval\tp\n", r.Queries, r.Tried, 100*r.Confidence)
	fmt.Fprintf(w, "direct search\t%.4f\n", r.Direct)
	for _, row := range []struct {
		name string
		Gain
	}{
		{"the defaults", r.Defaults},
		{"tuned, on the queries it was chosen on", r.Tuned},
		{"tuned, on queries held out", r.HeldOut},
		{"the same, over the defaults", r.HeldOutOverDefaults},
	} {
		p := "-"
		if row.P > 0 {
			p = fmt.Sprintf("%.3g", row.P)
		}
		fmt.Fprintf(w, "%s\t%.4f\t%+.1f %%\t%+.1f to %+.1f %%\t%s\n", row.name, row.Mean, 100*row.Gain.Gain, 100*row.Low, 100*row.High, p)
	}
	fmt.Fprint(w, "\nfold\tqueries\tgain, tuned\theld out\tchosen on the others\n")
	for k, fold := range r.Folds {
		fmt.Fprintf(w, "%d\t%d\t%+.1f %%\t%+.1f %%\t%s\n", k+1, fold.Queries, 100*fold.Tuned, 100*fold.HeldOut, fold.Chosen)
	}
	fmt.Fprintf(w, "\nChosen on all queries: %s.\nRecommended: %s\n", r.Chosen, r.Summary())
	return w.Flush()
}
