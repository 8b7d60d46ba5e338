// Package e2e has the tests that drive the built akin binary over HTTP, in
// front of real engines and a real Redis, and the reproduction of the papers'
// results. Of the project it imports only the mathematics, to compare with. The
// packages in it are what tests share: package requests the files of
// testdata/requests, clustertest a cluster of canned answers, matrixtest
// matrices, freeport free ports.
//
// The engines are Elasticsearch and OpenSearch nodes started from Maven
// artifacts by engines/NAME/start.sh; they need bash, a JDK and mvn. What is
// missing skips the tests that need it and says how to run them:
//
//	AKIN_E2E_ENGINES       names, comma separated, or "all"; the default is
//	                       opensearch2,elasticsearch7,elasticsearch8
//	AKIN_E2E_ENGINE_URL    a running engine to use instead of starting any;
//	                       the tests make and delete indices named akin-e2e-*
//	AKIN_E2E_REDIS_URL     a running Redis to use where a test does not have
//	                       to stop it; it writes the keys of akin's matrices
//	AKIN_DATA              the folder of the judged collections; the default
//	                       is ../shared/data next to the repository
//	AKIN_E2E_COLLECTIONS   the judged collections to measure, names, comma
//	                       separated, or "all"; the default is med,cran. With
//	                       "all" the reproduction runs its sweeps, too
//	AKIN_E2E_EMBEDDINGS    the URL of all-MiniLM-L6-v2 behind OpenAI's API, for the
//	                       rankings with a language model; without it a model of
//	                       spelling stands in its place
//	AKIN_E2E_FEEDBACK_GRID 1 tries settings of feedback on all collections, which
//	                       takes half an hour
//	AKIN_BENCH_DOCS        how many documents the benchmark of forms indexes,
//	                       comma separated; the default is 20000,200000. 2000000
//	                       take 1.2 GB and some ten minutes to index
//	AKIN_REQUIRE_SERVERS   1 makes a missing server a failure, not a skip
//	AKIN_E2E_RACE          1 builds akin with the race detector
//
// Each engine is started once for all tests. Tests run one after the other,
// except those that call t.Parallel: these have indices of their own, or
// share some that they only read (shareIndex), and run side by side at the
// end.
//
// Logs of the child processes are kept, and their last lines printed, when a
// test fails.
package e2e
