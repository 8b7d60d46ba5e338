# Needs only Go 1.26. `make test` also uses a JDK, Maven, redis-server and
# Chromium if they are installed, and says what is missing.

GO       ?= go
# nomsgpack drops gin's MessagePack codec, which akin does not use. Builds, tests,
# linters and the image use the same flags, so that they share compiled packages.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -tags=nomsgpack -trimpath
export CGO_ENABLED := 0
LINT     := $(GO) tool -modfile=.ci/lint/go.mod golangci-lint
FUZZTIME ?= 1m
BENCH    ?= .
WORDS    ?= 100000

.DEFAULT_GOAL := help
.PHONY: help build image demo picture release-files snapshot test test-fast test-deploy chaos e2e lint bench bench-build bench-collections bench-crowding bench-dimensions bench-forms bench-gensim bench-matching bench-modes bench-proxy bench-remembered bench-words fuzz

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the static binary bin/akin
	$(GO) build -o bin/akin ./cmd/akin

image: ## Build the container image akin, with its version
	docker build -t akin --build-arg VERSION="$$(git describe --tags --always --dirty)" .

release-files: ## Write the files of a release besides the program to bin/release
	$(GO) build -o bin/release/akin ./cmd/akin
	cd .ci/release && $(GO) build -o ../../bin/release/sbom ./sbom
	bin/release/akin man bin/release/man
	mkdir -p bin/release/completion
	for shell in bash fish zsh; do bin/release/akin completion $$shell >bin/release/completion/akin.$$shell || exit 1; done

snapshot: ## Make the files of a release in dist without publishing them; the image needs Docker
	cd .ci/release && GOFLAGS= $(GO) build -o ../../bin/goreleaser github.com/goreleaser/goreleaser/v2
	bin/goreleaser check
	bin/goreleaser release --snapshot --clean $$(docker version >/dev/null 2>&1 || echo --skip=docker)

demo: ## Search a small corpus without and with akin, in one process; PORT=9280 sets its first port
	@echo 'Compiling: 90 seconds on two cores and 62 MB of modules the first time, then seconds.'
	@$(GO) run ./cmd/akin demo $(if $(PORT),--port $(PORT))

picture: ## Take docs/playground.png again, in Chromium
	AKIN_PICTURE=1 $(GO) test ./cmd/akin/ -run '^TestPictureOfThePlayground$$' -count=1

# e2e takes the longest by far, so it starts first.
test: ## Run go vet and the tests, those of e2e on one engine; AKIN_TEST=all runs all tests on all engines, as .ci/run does
	$(GO) vet ./...
	$(GO) run ./.ci/gotest -vet=off -timeout 35m ./e2e ./...

test-fast: ## Run go vet and the tests that need no servers, within a minute
	$(GO) vet ./...
	$(GO) run ./.ci/gotest -vet=off -short $$($(GO) list ./... | grep -v '/e2e$$')

test-deploy: release-files ## Check the files of deploy and of releases with the libraries of the programs that read them
	for module in deploy release; do (cd .ci/$$module && $(GO) vet ./... && $(GO) test ./...) || exit 1; done

chaos: ## Break everything around akin while clients search, 15 minutes, and write e2e/testdata/faults.md
	AKIN_CHAOS=long $(GO) test ./e2e/ -run '^(TestChaos|TestSoak)$$' -update -v -count=1 -timeout 60m -parallel 2

e2e: ## Run the tests on real servers, with their output; AKIN_TEST as in test
	$(GO) test ./e2e/ -v -count=1 -timeout 30m

lint: ## Run the linters in the version pinned by .ci/lint/go.mod, and build for other systems
	$(LINT) run ./...
	GOOS=windows $(GO) build -o /dev/null ./cmd/akin
	GOOS=darwin $(GO) build -o /dev/null ./cmd/akin

bench: ## Run the benchmarks; BENCH=REGEXP selects some
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 30m \
		./expand/ ./simmatrix/source/ ./proxy/

bench-build: ## Print the time and memory of building a matrix from an index of an OpenSearch 2; DOCS=2000000 sets the number of documents
	AKIN_BENCH_DOCS=$(DOCS) $(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkBuild$$' -benchtime 1x -timeout 60m

bench-collections: ## Print the cost of searches of judged collections, on an OpenSearch 2; AKIN_E2E_COLLECTIONS=all takes all of them
	$(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkCollections$$' -benchtime 1x -timeout 60m

bench-crowding: ## Print dimensions, crowding and saturated rows of S of each judged collection, and of all in one index; AKIN_DATA is their folder
	$(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkCrowding$$' -benchtime 1x -timeout 60m

bench-dimensions: ## Print what S of 100 to 800 dimensions gains on all judged collections in one index, and costs to build; AKIN_DATA is their folder
	$(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkDimensions$$' -benchtime 1x -timeout 60m

bench-forms: ## Print the cost of searches in each form, without the engine's cache of queries; DOCS, ENGINE and SEGMENTS as for bench-matching
	AKIN_BENCH_DOCS=$(DOCS) AKIN_BENCH_ENGINE=$(ENGINE) AKIN_BENCH_SEGMENTS=$(SEGMENTS) $(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkForms$$' -benchtime 1x -timeout 90m

bench-gensim: build ## Compare the search for neighbors with gensim and NumPy; WORDS=N sets the number of words
	python3 -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -r tools/bench/requirements.txt
	.venv-bench/bin/python tools/bench/bench.py --akin bin/akin --folder .venv-bench/run --words $(WORDS)

bench-matching: ## Print the cost of searches by default, without the engine's cache of queries; DOCS=2000000 sets the number of documents, ENGINE=opensearch3 the engine, SEGMENTS=3 the number of segments
	AKIN_BENCH_DOCS=$(DOCS) AKIN_BENCH_ENGINE=$(ENGINE) AKIN_BENCH_SEGMENTS=$(SEGMENTS) $(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkMatching$$' -benchtime 1x -timeout 90m

bench-modes: ## Print the cost of searches in each mode, on 200,000 documents of an OpenSearch 2
	$(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkModes$$' -benchtime 1x -timeout 30m

bench-proxy: ## Print requests/s through akin and a bare httputil.ReverseProxy
	$(GO) test -run '^$$' -bench '^BenchmarkPassthrough$$' -benchtime 5s ./proxy/

bench-remembered: ## Print the cost of searches in the mode auto while akin learns what documents hold; DOCS=2000000 sets the number of documents, SHARDS that of shards
	AKIN_BENCH_DOCS=$(DOCS) AKIN_BENCH_SHARDS=$(SHARDS) $(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkRemembered$$' -benchtime 1x -timeout 60m

bench-words: ## Print what the built-in words gain on judged collections and what they cost to build; AKIN_DATA is their folder, AKIN_WORDS_EMBEDDINGS a model
	$(GO) test ./cmd/akin/ -run '^$$' -bench '^BenchmarkRelatedWords$$' -benchtime 1x -v -timeout 60m
	$(GO) test ./e2e/ -run '^$$' -bench '^BenchmarkBuildWords$$' -benchtime 1x -timeout 60m

fuzz: ## Fuzz every target for FUZZTIME (default 1m) each
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort -u | \
	while IFS=: read -r file target; do \
		$(GO) test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done
