package main

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/serve"
	"github.com/akin-search/akin/simmatrix/store"
)

func TestCertificatesAreSpokenOfBeforeTheyExpire(t *testing.T) {
	for left, want := range map[time.Duration]string{-time.Hour: verdictError, 24 * time.Hour: verdictWarning, 90 * 24 * time.Hour: verdictOK} {
		r := &checkReport{}
		r.certificate("listen.tls.cert_file", &x509.Certificate{NotAfter: time.Now().Add(left)})
		if got := r.Checks[0]; got.Verdict != want {
			t.Errorf("%s left: %+v, want %s", left, got, want)
		}
	}
}

func TestFieldsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  serve.FieldReport
		err     error
		verdict string
	}{
		{"expanded", serve.FieldReport{Texts: 20, Added: 3, Frequent: 50, Known: 45}, nil, verdictOK},
		{"not bound", serve.FieldReport{Reason: reason.NoMatrix}, nil, verdictOK},
		{"of another language", serve.FieldReport{Texts: 20, Added: 1, Frequent: 50, Known: 5}, nil, verdictWarning},
		{"too few terms to tell", serve.FieldReport{Texts: 2, Added: 1, Frequent: 5, Known: 1}, nil, verdictOK},
		{"no texts", serve.FieldReport{Reason: reason.NoNeighbors}, nil, verdictOK},
		{"nothing added", serve.FieldReport{Texts: 20, Reason: reason.NoTerms}, nil, verdictWarning},
		{"nothing within the limits", serve.FieldReport{Texts: 20, Reason: reason.NoNeighbors}, nil, verdictWarning},
		{"no scripts", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoScripts}, nil, verdictOK},
		{"segments that are not nested", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NotNested}, nil, verdictWarning},
		{"segments without a matrix", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NoMatrix}, nil, verdictWarning},
		{"no segments in this index", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NotText}, nil, verdictOK},
		{"hard without a linear field", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoLinear}, nil, verdictWarning},
		{"hard without lengths", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoNorms}, nil, verdictWarning},
		{"hard without weights", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoWeights}, nil, verdictWarning},
		{"no vectors", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoVectors}, nil, verdictWarning},
		{"by vectors", serve.FieldReport{Texts: 20, Form: "vectors", Frequent: 50, Known: 45}, nil, verdictOK},
		{"n-grams", serve.FieldReport{Reason: reason.NotWords}, nil, verdictWarning},
		{"a keyword", serve.FieldReport{Reason: reason.NotText}, nil, verdictError},
		{"no index", serve.FieldReport{Reason: reason.UnknownToCluster}, nil, verdictError},
		{"a failure", serve.FieldReport{}, errors.New("NOAUTH"), verdictError},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(&c.report, c.err); got.Verdict != c.verdict || c.verdict != verdictOK && got.Says == "" {
				t.Errorf("%+v, want %s", got, c.verdict)
			}
		})
	}
	if f := judge(&serve.FieldReport{}, errors.New("NOAUTH")); !strings.Contains(f.Says, "AKIN_REDIS_URL") {
		t.Errorf("%s", f.Says)
	}
	left := []expand.LeftOut{{Term: "cost", From: "price", Similarity: 1, Reason: expand.LeftOutFrequent}, {Term: "gone", From: "price", Similarity: 0.5, Reason: expand.LeftOutAbsent}}
	want := "cost (for price, similarity 1) is in more than expansion.max_doc_share of the documents, gone (for price, similarity 0.5) is in no document"
	if f := judge(&serve.FieldReport{Texts: 20, Reason: reason.NeighborsTooFrequent, LeftOut: left}, nil); f.Verdict != verdictWarning || !strings.HasSuffix(f.Says, want) {
		t.Errorf("what is left out is not named: %s", f.Says)
	}
}

func TestCheckTellsWhatAMatrixKeptAndOfWhichNoWordsAreKnown(t *testing.T) {
	r := &checkReport{}
	matrix := store.State{Name: "main", Source: store.SourceRedis, Version: "1", NoWords: "an earlier akin has pushed it: push it once more", Tallies: "acronyms: 2 kept; 0 left out\njoined words: 1 kept; 0 left out"}
	r.served("matrix ", []configs.Matrix{{Name: "main"}}, []store.State{matrix})
	last := r.Checks[len(r.Checks)-1]
	if len(r.Checks) != 4 || r.Checks[1].Says != "acronyms: 2 kept; 0 left out" || r.Checks[2].Says != "joined words: 1 kept; 0 left out" || last.Verdict != verdictWarning || !strings.HasSuffix(last.Says, "(expansion.nearest_words): "+matrix.NoWords) {
		t.Errorf("%+v", r.Checks)
	}
}
