package main

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/internal/embed"
)

// TestMistakesOfTheUserExitWithStatus2 has lines of arguments, by how they begin,
// and what is said of each. Two quotes are an empty argument, and _ is a blank.
func TestMistakesOfTheUserExitWithStatus2(t *testing.T) {
	t.Setenv("AKIN_REDIS_URL", "")
	t.Setenv(embed.EnvKey, " ")
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	file := write(t, "file.tsv", "a\tb\t0.5\n")
	files := strings.NewReplacer(
		"FILE", file, "CA", ca, "FOLDER", os.TempDir(), "OUT", filepath.Join(t.TempDir(), "out"), "NOBODY", "http://127.0.0.1:1", "_", " ",
		"BAD", write(t, "bad.yml", "listen: {address: nowhere}\nfrob: 1\nexpansion: {max_added_terms: 900}\n"), "INFER", "_ml/trained_models/x/_infer",
		"MATRIX", pairsFile(t, "m.akin", "a\tb\t0.5\n"), "LOG", write(t, "log.txt", "couch\n"),
	)
	for base, lines := range map[string]map[string][]string{
		"": {
			"frob":                    {`no command "frob"; see akin --help`},
			"evla":                    {"did you mean eval?"},
			"demo extra":              {`"extra"`, "akin demo --help"},
			"serve":                   {"config"},
			"serve --frob":            {"--frob"},
			"serve --config BAD":      {"bad.yml:1:", "bad.yml:2:", "bad.yml:3:"},
			"serve --config BAD frob": {`"frob"`},
			"serve --cluster NOBODY":  {"give --config FILE, or --cluster URL and --matrix FILE"},
			"serve --cluster NOBODY --matrix MATRIX --config BAD": {"give --config FILE, or"},
			"serve --cluster 127.0.0.1:9200 --matrix MATRIX":      {"http://"},
			"init --cluster 127.0.0.1:9200 --out -":               {"--cluster 127.0.0.1:9200: give it with http://"},
			"init --url NOBODY":                                   {"--url", "this is --cluster now"},
			"demo load --url NOBODY":                              {"this is --cluster now"},
			"matrix build --from-index NOBODY --index x":          {"this is --cluster now"},
			"tune":                     {"give --cluster URL, or write a configuration that names it: akin init"},
			"init":                     {"--cluster"},
			"norms snapshot --index x": {"this is akin index norms now"},
			"segments backfill":        {"this is akin index segments now"},
			"vectors":                  {"this is akin index vectors now"},
			"index norms snapshot":     {"--cluster", "--index", "--field", "--out"},
			"index norms snapshot --config nowhere.yml": {"nowhere.yml"},
			"matrix show x":                                       {"word"},
			"matrix show --name x y":                              {"there is no akin.yml that has it"},
			"matrix push --redis redis://h":                       {"give FILE, or a configuration"},
			"matrix build --name x --from-tsv FILE --out OUT":     {"--name x"},
			"matrix show x --top -1 car":                          {"-1"},
			"matrix show x car ''":                                {"empty"},
			"matrix show --redis redis://127.0.0.1:1 x@active ''": {"empty"},
			"matrix check docs@active":                            {"--redis"},
			"matrix export MATRIX":                                {"--out"},
			"matrix export MATRIX --out /no/such/folder/x":        {"/no/such/folder"},
			"matrix list":                                         {"--redis"},
			"matrix learn m.akin":                                 {"give --cluster, --index, --field and --out"},
			"compare":                                             {"give --log FILE"},
			"compare --log LOG":                                   {"give two arms"},
			"compare --log LOG --arm a=direct --arm b=direct --arm c=direct":    {"give two arms"},
			"compare --log LOG --arm a=direct --arm b=direct --judge pairs.csv": {"--title FIELD"},
			"index norms backfill --cluster NOBODY --index i --field f":         {"--weights"},
		},
		"matrix learn m.akin --cluster NOBODY --index i --field f --out OUT": {
			"":                         {"one of --judgments and --clicks"},
			"--judgments j --clicks c": {"one of --judgments and --clicks"},
			"--clicks c --queries q":   {"--queries goes with --judgments"},
		},
		"matrix build": {
			"--from-vectors BAD --out /no/such/folder/x": {"/no/such/folder"},
			"--from-vectors BAD --out /dev/null":         {"regular file"},
		},
		"matrix build --out OUT": {
			"":                                    {"give --cluster, --index and --field, or a configuration"},
			"--from-tsv FILE --from-vectors FILE": {"give one of"},
			"--from-tsv /no/p.tsv --overrides /no/o.txt":                                     {"--from-tsv: ", "/no/p.tsv", "--overrides: ", "/no/o.txt"},
			"--from-matrices /no/a,,/no/b --combine regression:/no/s":                        {"/no/a", "/no/b", "/no/s"},
			"--from-vectors FOLDER":                                                          {"is a folder"},
			"--from-tsv '' --overrides '' --exclude '' --field ''":                           {"--from-tsv is empty", "--overrides is", "--exclude is", "--field is"},
			"--from-matrices ''":                                                             {"--from-matrices is empty"},
			"--from-tsv FILE --similarity 0.2 --recall 0.5":                                  {"--similarity does not go with --from-tsv", "--recall does not"},
			"--from-tsv FILE --index i":                                                      {"--cluster, --index and --field together"},
			"--from-tsv FILE --top 0 --min-similarity 2 --exclude (":                         {"--top: 0", "--min-similarity: 2", "--exclude: "},
			"--from-vectors FILE --top -1 --min-similarity NaN":                              {"akin: --top: -1 not in [1, 10000]\n--min-similarity: NaN not in [0, 1)\n"},
			"--from-vectors FILE --top 10001 --recall 2":                                     {"--top: 10001 not in [1, 10000]\n", "recall"},
			"--from-vectors FILE --max-docs 5":                                               {"--max-docs"},
			"--from-vectors FILE --power 0":                                                  {"--power: 0"},
			"--from-matrices a,b --combine average:1,2":                                      {"average takes nothing"},
			"--from-matrices a,b --combine weighted:1":                                       {"1 numbers for 2 matrices"},
			"--from-matrices a,b --combine weighted:0,inf":                                   {`"0" is not`, `"inf" is not`},
			"--from-matrices a,b --combine regression":                                       {"regression:FILE"},
			"--from-matrices a,b --combine mode":                                             {`"mode" is not average`},
			"--from-matrices a,b --combine mode:3":                                           {`"mode" is not average`},
			"--from-matrices a,b --combine median:3":                                         {"median takes nothing"},
			"--from-matrices a,b --combine percentile":                                       {`percentile:P: "" is not a number from 0 to 100: write percentile:90`},
			"--from-matrices a,b --combine percentile:":                                      {`"" is not a number from 0 to 100`},
			"--from-matrices a,b --combine percentile:-1":                                    {`"-1" is not a number from 0 to 100`},
			"--from-matrices a,b --combine percentile:101":                                   {`"101" is not a number from 0 to 100`},
			"--from-matrices a,b --combine percentile:NaN":                                   {`"NaN" is not a number from 0 to 100`},
			"--from-matrices a,b --combine percentile:abc":                                   {`"abc" is not a number from 0 to 100: write percentile:90`},
			"--from-edit-distance FILE --formula cubic":                                      {`formula: "cubic" is not thesis, inverse, linear, root or square`},
			"--from-edit-distance FILE --formula ''":                                         {"--formula is empty"},
			"--from-edit-distance FILE --theta1 0 --theta2 -1":                               {"theta1: 0 is not above 0", "theta2: -1 is not above 0"},
			"--from-edit-distance FILE --theta1 NaN":                                         {"theta1: NaN is not above 0"},
			"--from-edit-distance FILE --theta2 five":                                        {`"five"`, "--theta2"},
			"--from-edit-distance FILE --formula inverse --theta2 5":                         {"--theta1 and --theta2 go with --formula thesis only"},
			"--from-edit-distance FILE --max-distance 5":                                     {"max distance: 5 not in [1, 4]"},
			"--from-tsv FILE --formula root":                                                 {"--formula does not go with --from-tsv"},
			"--cluster NOBODY":                                                               {"--index"},
			"--cluster NOBODY --index x":                                                     {"--field"},
			"--index x --field y --from-tsv FILE --embeddings NOBODY --embedding-model tiny": {"--embeddings does not go with --from-tsv"},
		},
		"matrix build --out OUT --cluster NOBODY --index x --field y": {
			"--query {": {"query", "JSON"},
			`--query {"term":{"a":1},"term":{"a":2}}`: {"twice"},

			"--query []":                 {"want an object"},
			"--max-docs -1":              {"--max-docs"},
			"--words --exact-analysis":   {"--words"},
			"--max-memory 3000":          {"--max-memory", "GB"},
			"--max-memory 1MB":           {"--max-memory", "64MiB"},
			"--resume FILE":              {"--resume", "no folder"},
			"--resume /no/such/folder/x": {"--resume", "/no/such/folder"},
			"--power -1":                 {"power"},
			"--max-docs few":             {"--max-docs", "few"},
			"--dimensions 0":             {"--dimensions", "auto"},
			"--dimensions 1001":          {"dimensions: 1001"},
			"--embedding-model tiny":     {"--embedding-model needs --embeddings"},
			"--embeddings NOBODY":        {"--embeddings needs --embedding-model"},
			"--embeddings tiny":          {"--embeddings: want http://HOST:PORT"},

			"--embeddings file:FILE --embedding-prefix q": {"--embedding-prefix is for a model"},
			"--embeddings file:nowhere":                   {"--embeddings: stat nowhere"},

			"--embeddings http://u:p@127.0.0.1:1 --embedding-model tiny": {"--embeddings: give the key apart"},
			"--language-model tiny":                                                         {`--language-model: "tiny" is neither builtin nor none`},
			"--language-model none --embedding-share 0.5":                                   {"--embedding-share needs --embeddings"},
			"--embedding-share 1":                                                           {"--embedding-share: 1 is not above 0"},
			"--embeddings INFER --language-model builtin":                                   {"--language-model does not go with --embeddings"},
			"--embeddings INFER --embedding-share 1":                                        {"--embedding-share: 1 is not above 0"},
			"--embeddings INFER --embedding-share 0":                                        {"--embedding-share: 0 is not above 0"},
			"--embeddings NOBODY --embedding-model tiny --embeddings-cache FILE --out FILE": {"is the file of --embeddings-cache"},
			"--embeddings file:FILE --out FILE":                                             {"is the file of --embeddings:"},
			"--embeddings NOBODY --embedding-model tiny":                                    {"$AKIN_EMBEDDINGS_KEY is empty"},
			"--embeddings INFER --embeddings-cache nowhere/x":                               {"nowhere is no folder"},
			"--embeddings INFER --embeddings-cache FILE":                                    {"the cache of vectors " + file},
		},
		"matrix": {
			"list --redis redis://h --name a_b":                     {"letters, digits"},
			"prune --redis redis://h":                               {"--keep"},
			"prune --redis redis://h --keep 0":                      {"--keep"},
			"prune --redis redis://h --keep 1 x":                    {"x"},
			"push --redis redis://h a b":                            {"arg"},
			"list --redis redis+cluster://u:hunter2@h/1":            {"no databases"},
			"list --redis rediss://h --redis-ca-file /no/such/file": {"/no/such/file"},
			"list --redis rediss://h --redis-ca-file MATRIX":        {"no certificate in it"},
			"list --redis redis://h --redis-ca-file CA":             {"rediss only"},
		},
	} {
		for line, want := range lines {
			var args []string
			for arg := range strings.FieldsSeq(base + " " + line) {
				args = append(args, files.Replace(strings.Trim(arg, "'")))
			}
			if said := ends(t, exitUsage, args, want...); strings.Contains(said, "hunter2") {
				t.Errorf("%s tells the password", line)
			}
		}
	}
}
