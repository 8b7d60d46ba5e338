package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/vectors"
)

// errStore says that an index cannot hold the vectors of a model.
var errStore = errors.New("it cannot hold these vectors")

// checkVectorEngine returns an error that wraps [errStore] where the cluster
// has no field type for the vectors, or none of so many dimensions.
func checkVectorEngine(ctx context.Context, c documents.API, meta vectors.Meta) error {
	info, err := c.Client.Info(ctx)
	if err != nil {
		return err
	}
	if reason := refusal(info, meta); reason != "" {
		return fmt.Errorf("%s %s: %w: %s", info.Distribution, info.Version, errStore, reason)
	}
	return nil
}

// refusal returns why a cluster cannot hold vectors, "" where it can.
func refusal(info esclient.Info, meta vectors.Meta) string {
	var major, minor int
	_, _ = fmt.Sscanf(info.Version, "%d.%d", &major, &minor) // 0 where it is not known
	version := 100*major + minor
	openSearch := info.Distribution == "opensearch"
	const renewed = 811 // the version of Elasticsearch that has all
	switch meta.Store {
	case vectors.SparseVector:
		if openSearch || version < renewed {
			return "sparse_vector is in Elasticsearch from 8.11; --store rank_features is in other versions, too"
		}
	case vectors.DenseVector:
		most := 1024
		switch {
		case openSearch:
			return "OpenSearch has no dense_vector; make the model with --store knn_vector"
		case major < 8:
			return "dense_vector has an index for kNN from Elasticsearch 8"
		case version >= renewed:
			most = 4096
		case meta.Normalization != vectors.Soft:
			return "inner products of any size are from Elasticsearch 8.11; make the model with --normalize soft"
		case version >= 808:
			most = 2048
		}
		if meta.Dims > most {
			return fmt.Sprintf("%d dimensions, and its dense_vector has %d at most; make the model with --dims %d", meta.Dims, most, most)
		}
	case vectors.KNNVector:
		if !openSearch {
			return "knn_vector is in OpenSearch only; make the model with --store dense_vector"
		}
		if version < 213 {
			return "inner products in Lucene's kNN are from OpenSearch 2.13"
		}
	case vectors.RankFeatures:
		if openSearch && version < 101 || !openSearch && version < 712 {
			return "the function linear of rank_feature is from Elasticsearch 7.12 and OpenSearch 1.1"
		}
	}
	return ""
}

// prepareVectors puts the mapping for the vectors into the indices that lack
// it, unless it may not write: then it says what they lack. The error wraps
// [errStore] where an index has another mapping, such as for other dimensions.
func prepareVectors(ctx context.Context, c documents.API, indices []mapping.Inspection, meta vectors.Meta, write bool) error {
	path, model := vectors.Path(meta.Field), vectors.ModelPath(meta.Field)
	for k := range indices {
		i := &indices[k]
		vector, err := mapping.Find(i.Properties, path)
		id, errID := mapping.Find(i.Properties, model)
		if err = cmp.Or(err, errID); err != nil {
			return fmt.Errorf("mapping of index %q: %w", i.Index, err)
		}
		if vector == nil && id == nil {
			if write {
				err = put(ctx, c, i, meta)
			}
			if err != nil {
				return err
			}
			continue
		}
		nothing := &mapping.Property{Type: "nothing"}
		vector, id = cmp.Or(vector, nothing), cmp.Or(id, nothing)
		dims := cmp.Or(string(vector.Dims), string(vector.Dimension), "0")
		switch {
		case vector.Type != string(meta.Store), id.Type != "keyword", dims != strconv.Itoa(meta.Dims):
			return fmt.Errorf("index %q: %w: it maps %s as %s of %s dimensions and %s as %s, the model wants %s of %d and keyword; use an index without these fields",
				i.Index, errStore, path, vector.Type, dims, model, id.Type, meta.Store, meta.Dims)
		case meta.Store == vectors.DenseVector && meta.Normalization != vectors.Soft && vector.Similarity != "max_inner_product":
			return fmt.Errorf("index %q: %w: %s has the similarity %q, vectors of the normalization %s want max_inner_product; use an index with that, or the normalization soft",
				i.Index, errStore, path, vector.Similarity, meta.Normalization)
		}
	}
	return nil
}

func put(ctx context.Context, c documents.API, i *mapping.Inspection, meta vectors.Meta) error {
	if meta.Store == vectors.KNNVector && i.Settings.Text("index.knn") != "true" {
		return fmt.Errorf("index %q: %w: it has to be created with the setting index.knn, which needs the plugin k-NN", i.Index, errStore)
	}
	r := esclient.Call{Method: http.MethodPut, Path: esclient.IndexPath(i.Index, "/_mapping"), Body: jsontext.Value(meta.Mapping())}
	if err := c.Client.Do(ctx, r, nil); err != nil {
		return fmt.Errorf("index %q: %w: the mapping %s: %w", i.Index, errStore, meta.Mapping(), err)
	}
	return nil
}
