// Package e2e has the tests that drive the built akin binary over HTTP, in
// front of real engines and a real Redis, and the reproduction of the papers'
// results. akin runs as a program: of the project the tests import only what
// data is made with and results are compared with. The packages in it are what
// tests share: package requests the files of testdata/requests, clustertest a
// cluster of canned answers, amazontest one that checks signatures, matrixtest
// matrices, freeport free ports, check assertions.
//
// The engines are Elasticsearch and OpenSearch nodes started from Maven
// artifacts by engines/NAME/start.sh; they need bash, a JDK and mvn. What is
// missing skips the tests that need it.
//
//	AKIN_TEST             unset: what `make test` runs, on one engine, without
//	                      the tests that take long, unless -run chooses them.
//	                      Names of engines, comma separated: all tests, on
//	                      these. "all": all tests on all engines that JDK 17
//	                      runs, and what is missing fails a test
//	AKIN_DATA             the folder of the judged collections; the default
//	                      is ../shared/data next to the repository. "none"
//	                      skips the tests that need them
//	AKIN_E2E_COLLECTIONS  the judged collections to measure, names, comma
//	                      separated, or "all"; the default is med,cran. With
//	                      "all" everything is measured that documents show
//	AKIN_E2E_EMBEDDINGS   the URL of all-MiniLM-L6-v2 behind OpenAI's API, for
//	                      the rankings with a language model; without it a
//	                      model of spelling stands in its place
//	AKIN_E2E_VECTORS      a folder where the vectors of texts by that model are
//	                      kept for the next run
//	AKIN_BENCH_DOCS       how many documents the benchmarks of forms, of matching and
//	                      of builds index, comma separated; the default is
//	                      20000,200000. 2000000 take 1.2 GB and ten minutes to index
//	AKIN_BENCH_ENGINE     the engine of the benchmarks of forms and of matching; the
//	                      default is opensearch2
//	AKIN_BENCH_SEGMENTS   to how many segments these merge the index; without it
//	                      to none
//	AKIN_BENCH_KEEP       a folder in which the benchmarks on generated documents
//	                      keep these, indexed, for the next run; without it not
//	AKIN_E2E_RACE         1 builds akin with the race detector
//
// Each engine is started once for all tests. Tests run one after the other,
// except those that call t.Parallel: these have indices of their own, or
// share some that they only read (shareIndex), and run side by side at the
// end.
//
// setup starts akin before an engine, with all that a test wants of it. Logs of
// the child processes are kept, and their last lines printed, if a test fails.
package e2e
