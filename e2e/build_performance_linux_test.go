package e2e

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// BenchmarkBuild prints what building a matrix with the defaults costs, by the
// number of documents in the index. It does everything once: run it with
// -benchtime 1x.
func BenchmarkBuild(b *testing.B) {
	e := productionEngine(b, qualityEngine)
	fmt.Fprintf(os.Stdout, "\n| documents | read | terms | dimensions | wall time | processor time | memory |\n|---|---|---|---|---|---|---|\n")
	eachSize(b, func(b *testing.B, docs int) {
		b.Helper()
		loadForms(b, e, formsDefinition, docs, formsQueries)
		for range b.N {
			m := buildMeasured(b, e, formsIndex)
			fmt.Fprintf(os.Stdout, "| %d | %d | %d | %s | %.0f s | %.0f s | %.2f GiB |\n", docs, m.Meta().Docs, m.Len(), m.Meta().Params["dimensions"],
				m.wall.Seconds(), m.processor.Seconds(), m.memory/(1<<30))
		}
	})
}

// BenchmarkBuildWords prints how many times the processor time and memory a
// matrix takes to build with the built-in words, by the number of documents of
// the mixed index. It does everything once: run it with -benchtime 1x.
func BenchmarkBuildWords(b *testing.B) {
	e, all := productionEngine(b, qualityEngine), loadMixed(b)[0].docs
	fmt.Fprintf(os.Stdout, "\n| documents | terms | dimensions | processor time | with words | memory | with words |\n|---|---|---|---|---|---|---|\n")
	for b.Loop() {
		for _, docs := range []int{10_000, len(all)} {
			e.makeIndex(b, formsIndex, formsDefinition)
			e.index(b, formsIndex, withIDs(all[:docs]))
			plain := buildMeasured(b, e, formsIndex, "--language-model", "none")
			m := buildMeasured(b, e, formsIndex)
			if len(m.Meta().Origins) < 2 {
				b.Fatal("the built-in words were left out")
			}
			fmt.Fprintf(os.Stdout, "| %d | %d | %s | %.0f s | %.2f | %.2f GiB | %.2f |\n", docs, m.Len(), m.Meta().Params["dimensions"],
				plain.processor.Seconds(), m.processor.Seconds()/plain.processor.Seconds(), plain.memory/(1<<30), m.memory/plain.memory)
		}
	}
}

// BenchmarkDimensions prints what S of so many dimensions gains on the mixed
// index, in percent over the engine, and costs to build: MAP / nDCG@10, effort
// normal, without built-in words, means of the collections. It does everything
// once: run it with -benchtime 1x.
func BenchmarkDimensions(b *testing.B) {
	e, whole := productionEngine(b, qualityEngine), loadMixed(b)
	index := judgedIndexName(whole[0])
	e.remakeIndex(b, index, judgedIndex)
	e.index(b, index, withIDs(whole[0].docs))
	judged := slices.Clone(whole)
	for _, c := range whole {
		judged = append(judged, e.threeTerms(b, c))
	}
	stats := rankStats{}
	measure := func(ranking string, on cluster) {
		for _, c := range judged {
			stats[rankKey{e.name, c.name, ranking}] = rankStat{measures: meanMeasures(rank(b, on, index, wholeBody, c.queries))}
		}
	}
	gains := func(ranking, suffix string) string {
		precision, _ := stats.meanGainOf(mixedCollections, e.name, mixedIndex+"-", suffix, ranking, mapMeasure)
		ndcg, _ := stats.meanGainOf(mixedCollections, e.name, mixedIndex+"-", suffix, ranking, ndcgMeasure)
		return fmt.Sprintf("%+.1f / %+.1f", precision, ndcg)
	}
	measure(direct, e.cluster)
	fmt.Fprintf(os.Stdout, "\n| dimensions | crowding | whole queries | three words | processor time | memory |\n|---|---|---|---|---|---|\n")
	for b.Loop() {
		for _, dimensions := range []string{"100", "200", "300", "400", "479", "auto", "800"} {
			m := buildMeasured(b, e, index, "--language-model", "none", "--dimensions", dimensions)
			a := setupWide(b, e, section{"expansion": section{"effort": "normal"}, "matrices": []section{
				{"name": mixedIndex, "file": m.file, "indices": []string{index}, "fields": []string{"body"}},
			}})
			measure(dimensions, a.cluster)
			fmt.Fprintf(os.Stdout, "| %s | %s | %s | %s | %.0f s | %.2f GiB |\n", m.Meta().Params[simmatrix.DimensionsParam], m.Meta().Params[simmatrix.CrowdingParam],
				gains(dimensions, ""), gains(dimensions, threeTermsOnly), m.processor.Seconds(), m.memory/(1<<30))
		}
	}
}

// BenchmarkCrowding prints, for each judged collection and all in one index, the
// dimensions, crowding and share of rows whose nearest neighbor has a similarity
// of 0.99 or more: of S of 100 dimensions, of those that akin chooses, and of
// these with the built-in words. It does everything once: run it with
// -benchtime 1x.
func BenchmarkCrowding(b *testing.B) {
	e := productionEngine(b, qualityEngine)
	var all []*collection
	for _, name := range mixedCollections {
		all = append(all, loadCollection(b, name))
	}
	all = append(all, loadMixed(b)[0])
	fmt.Fprintf(os.Stdout, "\n| index | documents | dimensions | crowding | rows at 0.99 | dimensions | crowding | rows at 0.99 | with words, rows at 0.99 |\n|---|---|---|---|---|---|---|---|---|\n")
	for b.Loop() {
		for _, c := range all {
			index := judgedIndexName(c)
			e.remakeIndex(b, index, judgedIndex)
			e.index(b, index, withIDs(c.docs))
			fmt.Fprintf(os.Stdout, "| %s | %d |", index, len(c.docs))
			for _, args := range [][]string{{"--language-model", "none", "--dimensions", "100"}, {"--language-model", "none"}, nil} {
				m := buildMeasured(b, e, index, args...)
				meta, rows := m.Meta(), combine.Inspect(m.Matrix).Rows
				if args != nil {
					fmt.Fprintf(os.Stdout, " %s | %s |", meta.Params[simmatrix.DimensionsParam], meta.Params[simmatrix.CrowdingParam])
				}
				fmt.Fprintf(os.Stdout, " %.1f %% |", 100*float64(rows.Saturated)/float64(m.Len()))
			}
			fmt.Fprintln(os.Stdout)
		}
	}
}

// A measuredBuild is a matrix, its file, and what it took: wall time, processor
// time and the most memory in bytes.
type measuredBuild struct {
	*simmatrix.Matrix

	file            string
	wall, processor time.Duration
	memory          float64
}

// buildMeasured learns a matrix from an index.
func buildMeasured(b *testing.B, e *engine, index string, args ...string) measuredBuild {
	b.Helper()
	file := newPath(b, "s.akin")
	start := time.Now()
	r := runAkin(b, append([]string{"matrix", "build", "--cluster", e.url, "--index", index, "--field", "body", "--out", file}, args...)...)
	wall := time.Since(start)
	if r.status != 0 {
		b.Fatal(r.stderr)
	}
	used, _ := r.process.SysUsage().(*syscall.Rusage)
	return measuredBuild{readMatrix(b, file), file, wall, r.process.UserTime() + r.process.SystemTime(), float64(used.Maxrss) * (1 << 10)}
}
