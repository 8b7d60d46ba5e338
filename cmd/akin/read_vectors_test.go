package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand/vectors"
)

func TestEnginesHoldWhatTheyHaveFieldsFor(t *testing.T) {
	for _, tt := range []struct {
		engine, version string
		store           vectors.Store
		normalization   vectors.Normalization
		dims            int
		want            string // part of the refusal, "" for none
	}{
		{"elasticsearch", "8.19.2", vectors.SparseVector, vectors.Soft, 0, ""},
		{"elasticsearch", "9.0.0", vectors.SparseVector, vectors.Soft, 0, ""},
		{"elasticsearch", "8.10.4", vectors.SparseVector, vectors.Soft, 0, "--store rank_features"},
		{"opensearch", "3.1.0", vectors.SparseVector, vectors.Soft, 0, "--store rank_features"},
		{"opensearch", "2.19.1", vectors.RankFeatures, vectors.None, 0, ""},
		{"opensearch", "1.0.0", vectors.RankFeatures, vectors.None, 0, "OpenSearch 1.1"},
		{"elasticsearch", "7.12.0", vectors.RankFeatures, vectors.None, 0, ""},
		{"elasticsearch", "7.10.2", vectors.RankFeatures, vectors.None, 0, "Elasticsearch 7.12"},
		{"elasticsearch", "8.19.2", vectors.DenseVector, vectors.None, 4096, ""},
		{"elasticsearch", "8.19.2", vectors.DenseVector, vectors.Soft, 4097, "--dims 4096"},
		{"elasticsearch", "8.8.0", vectors.DenseVector, vectors.Soft, 2049, "--dims 2048"},
		{"elasticsearch", "8.7.1", vectors.DenseVector, vectors.Soft, 1025, "--dims 1024"},
		{"elasticsearch", "8.7.1", vectors.DenseVector, vectors.Hard, 64, "--normalize soft"},
		{"elasticsearch", "7.17.0", vectors.DenseVector, vectors.Soft, 64, "from Elasticsearch 8"},
		{"opensearch", "2.19.1", vectors.DenseVector, vectors.Soft, 64, "--store knn_vector"},
		{"opensearch", "2.19.1", vectors.KNNVector, vectors.Soft, 16_000, ""},
		{"opensearch", "2.11.0", vectors.KNNVector, vectors.Soft, 64, "2.13"},
		{"elasticsearch", "8.19.2", vectors.KNNVector, vectors.Soft, 64, "--store dense_vector"},
	} {
		got := refusal(esclient.Info{Distribution: tt.engine, Version: tt.version}, vectors.Meta{Store: tt.store, Normalization: tt.normalization, Dims: tt.dims})
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s, %s of %d dimensions: %q, want %q", tt.engine, tt.version, tt.store, tt.dims, got, tt.want)
		}
	}
}

// A mappingCluster has the index docs.
type mappingCluster struct {
	vector, model, knn string // its mappings of the two fields, and index.knn
	put                []string
}

// ServeHTTP implements [http.Handler].
func (c *mappingCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPut {
		body, _ := io.ReadAll(r.Body)
		c.put = append(c.put, string(body))
		fmt.Fprint(w, `{}`)
		return
	}
	var more strings.Builder
	for object, mapping := range map[string]string{vectors.Object: c.vector, vectors.ModelObject: c.model} {
		if mapping != "" {
			fmt.Fprintf(&more, `,%q:{"properties":{"a__b":%s}}`, object, mapping)
		}
	}
	fmt.Fprintf(w, `{"docs":{"mappings":{"properties":{"a":{"properties":{"b":{"type":"text"}}}%s}},"settings":{"index.knn":%q}}}`, more.String(), c.knn)
}

func TestMappingIsPutOnceAndFits(t *testing.T) {
	dense := vectors.Meta{Store: vectors.DenseVector, Normalization: vectors.Soft, Field: "a.b", Dims: 64}
	plain := vectors.Meta{Store: vectors.DenseVector, Normalization: vectors.None, Field: "a.b", Dims: 64}
	knn := vectors.Meta{Store: vectors.KNNVector, Normalization: vectors.Soft, Field: "a.b", Dims: 64}
	const keyword = `{"type":"keyword"}`
	for name, tt := range map[string]struct {
		meta    vectors.Meta
		cluster mappingCluster
		dryRun  bool
		puts    int
		want    string
	}{
		"an index without":         {meta: dense, puts: 1},
		"a dry run":                {meta: dense, dryRun: true},
		"an index that has it":     {meta: dense, cluster: mappingCluster{vector: `{"type":"dense_vector","dims":64,"index_options":{"m":32}}`, model: keyword}},
		"another store":            {meta: dense, cluster: mappingCluster{vector: `{"type":"rank_features"}`, model: keyword}, want: "rank_features of 0 dimensions"},
		"other dimensions":         {meta: dense, cluster: mappingCluster{vector: `{"type":"dense_vector","dims":65}`, model: keyword}, want: "65 dimensions"},
		"inner products":           {meta: plain, cluster: mappingCluster{vector: `{"type":"dense_vector","dims":64,"similarity":"max_inner_product"}`, model: keyword}},
		"cosines for products":     {meta: plain, cluster: mappingCluster{vector: `{"type":"dense_vector","dims":64,"similarity":"cosine"}`, model: keyword}, want: "max_inner_product"},
		"no field for the model":   {meta: dense, cluster: mappingCluster{vector: `{"type":"dense_vector","dims":64}`}, want: "as nothing"},
		"text where the model is":  {meta: dense, cluster: mappingCluster{vector: `{"type":"dense_vector","dims":64}`, model: `{"type":"text"}`}, want: "as text"},
		"OpenSearch":               {meta: knn, cluster: mappingCluster{knn: "true"}, puts: 1},
		"OpenSearch without knn":   {meta: knn, cluster: mappingCluster{}, want: "index.knn"},
		"OpenSearch that has it":   {meta: knn, cluster: mappingCluster{vector: `{"type":"knn_vector","dimension":64}`, model: keyword}},
		"OpenSearch, another size": {meta: knn, cluster: mappingCluster{vector: `{"type":"knn_vector","dimension":65}`, model: keyword}, want: "65 dimensions"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&tt.cluster)
			defer server.Close()
			client, err := esclient.New(esclient.Options{URL: server.URL})
			check.OK(t, err)
			defer client.Close()
			cluster := documents.API{Client: client}
			indices, err := cluster.Countable(t.Context(), "docs", "a.b")
			check.OK(t, err)
			err = prepareVectors(t.Context(), cluster, indices, tt.meta, !tt.dryRun)
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, errStore) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			check.That(t, len(tt.cluster.put) == tt.puts, "%d mappings were put, want %d", len(tt.cluster.put), tt.puts)
			for _, body := range tt.cluster.put {
				check.That(t, json.Valid([]byte(body)) && strings.Contains(body, `"a__b"`), "the mapping is %s", body)
			}
		})
	}
}

func TestLossesAreSaidInWords(t *testing.T) {
	sparse, dense := vectors.Meta{Store: vectors.SparseVector, Terms: 10}, vectors.Meta{Store: vectors.DenseVector, Dims: 9}
	var l vectorLosses
	l.add(&vectors.Loss{Empty: true})
	if got := l.Describe(sparse); got != "" {
		t.Errorf("of no vectors: %q", got)
	}
	l.add(&vectors.Loss{})
	if got := l.Describe(sparse); got != "1 vectors, none of them cut" {
		t.Errorf("of one that is not cut: %q", got)
	}
	l.add(&vectors.Loss{Cut: vectors.Cut{Coordinates: 3, Share: 0.5, Largest: 0.25}})
	if got := l.Describe(sparse); !strings.Contains(got, "2 vectors, 1 of them cut to 10 terms: they lack 25.0% of the sum of their values on average, 50.0% at most") ||
		!strings.Contains(got, "too low by 0.25 times") {
		t.Errorf("of one that is cut: %q", got)
	}
	var d vectorLosses
	d.add(&vectors.Loss{Dense: 0.125})
	if got := d.Describe(dense); got != "1 vectors of 9 dimensions lack 12.5% of the squares of their lengths on average, 12.5% at most" {
		t.Errorf("of a dense one: %q", got)
	}
}
