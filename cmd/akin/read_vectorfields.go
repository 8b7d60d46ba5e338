package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
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
func prepareVectors(ctx context.Context, c documents.API, indices []string, meta vectors.Meta, write bool) error {
	path, model := vectors.Path(meta.Field), vectors.ModelPath(meta.Field)
	for _, index := range indices {
		vector, err := mapped(ctx, c, index, path)
		if err != nil {
			return err
		}
		id, err := mapped(ctx, c, index, model)
		if err != nil {
			return err
		}
		switch {
		case vector.Type == "" && id.Type == "":
			if !write {
				continue
			}
			err = put(ctx, c, index, meta)
		case vector.Type != string(meta.Store), id.Type != "keyword", vector.Dims+vector.Dimension != meta.Dims:
			err = fmt.Errorf("index %q: %w: it maps %s as %s of %d dimensions and %s as %s, the model wants %s of %d and keyword; use an index without these fields",
				index, errStore, path, typeOf(vector), vector.Dims+vector.Dimension, model, typeOf(id), meta.Store, meta.Dims)
		case meta.Store == vectors.DenseVector && meta.Normalization != vectors.Soft && vector.Similarity != "max_inner_product":
			err = fmt.Errorf("index %q: %w: %s has the similarity %q, vectors of the normalization %s want max_inner_product; use an index with that, or the normalization soft",
				index, errStore, path, vector.Similarity, meta.Normalization)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A vectorMapping is the mapping of a field, the zero value for one without.
type vectorMapping struct {
	Type       string `json:"type"`
	Dims       int    `json:"dims"`
	Dimension  int    `json:"dimension"`
	Similarity string `json:"similarity"`
}

func typeOf(m vectorMapping) string {
	if m.Type == "" {
		return "nothing"
	}
	return m.Type
}

func mapped(ctx context.Context, c documents.API, index, field string) (vectorMapping, error) {
	var answer map[string]struct {
		Mappings map[string]struct {
			Mapping map[string]vectorMapping `json:"mapping"`
		} `json:"mappings"`
	}
	r := esclient.Call{Path: esclient.IndexPath(index, "/_mapping/field/"+url.PathEscape(field))}
	if err := c.Client.Do(ctx, r, &answer); err != nil {
		return vectorMapping{}, err
	}
	return answer[index].Mappings[field].Mapping[field[strings.LastIndexByte(field, '.')+1:]], nil
}

func put(ctx context.Context, c documents.API, index string, meta vectors.Meta) error {
	if meta.Store == vectors.KNNVector {
		var answer map[string]struct {
			Settings struct {
				KNN string `json:"index.knn"`
			} `json:"settings"`
		}
		r := esclient.Call{Path: esclient.IndexPath(index, "/_settings/index.knn?flat_settings=true")}
		if err := c.Client.Do(ctx, r, &answer); err != nil {
			return err
		}
		if answer[index].Settings.KNN != "true" {
			return fmt.Errorf("index %q: %w: it has to be created with the setting index.knn, which needs the plugin k-NN", index, errStore)
		}
	}
	r := esclient.Call{Method: http.MethodPut, Path: esclient.IndexPath(index, "/_mapping"), Body: jsontext.Value(meta.Mapping())}
	if err := c.Client.Do(ctx, r, nil); err != nil {
		return fmt.Errorf("index %q: %w: the mapping %s: %w", index, errStore, meta.Mapping(), err)
	}
	return nil
}
