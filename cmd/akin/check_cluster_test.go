package main

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/serve"
)

func TestCertificatesAreSpokenOfBeforeTheyExpire(t *testing.T) {
	for left, want := range map[time.Duration]string{-time.Hour: Error, 24 * time.Hour: Warning, 90 * 24 * time.Hour: OK} {
		r := &Report{}
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
		{"expanded", serve.FieldReport{Texts: 20, Added: 3, Frequent: 50, Known: 45}, nil, OK},
		{"not bound", serve.FieldReport{Reason: reason.NoMatrix}, nil, OK},
		{"of another language", serve.FieldReport{Texts: 20, Added: 1, Frequent: 50, Known: 5}, nil, Warning},
		{"too few terms to tell", serve.FieldReport{Texts: 2, Added: 1, Frequent: 5, Known: 1}, nil, OK},
		{"no texts", serve.FieldReport{Reason: reason.NoNeighbors}, nil, OK},
		{"nothing added", serve.FieldReport{Texts: 20, Reason: reason.NoTerms}, nil, Warning},
		{"nothing within the limits", serve.FieldReport{Texts: 20, Reason: reason.NoNeighbors}, nil, Warning},
		{"no scripts", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoScripts}, nil, OK},
		{"segments that are not nested", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NotNested}, nil, Warning},
		{"segments without a matrix", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NoMatrix}, nil, Warning},
		{"no segments in this index", serve.FieldReport{Texts: 20, Added: 3, Segments: reason.NotText}, nil, OK},
		{"hard without a linear field", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoLinear}, nil, Warning},
		{"hard without lengths", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoNorms}, nil, Warning},
		{"hard without weights", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoWeights}, nil, Warning},
		{"no vectors", serve.FieldReport{Texts: 20, Added: 3, Reason: reason.NoVectors}, nil, Warning},
		{"by vectors", serve.FieldReport{Texts: 20, Form: "vectors", Frequent: 50, Known: 45}, nil, OK},
		{"n-grams", serve.FieldReport{Reason: reason.NotWords}, nil, Warning},
		{"a keyword", serve.FieldReport{Reason: reason.NotText}, nil, Error},
		{"no index", serve.FieldReport{Reason: reason.UnknownToCluster}, nil, Error},
		{"a failure", serve.FieldReport{}, errors.New("NOAUTH"), Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(&c.report, c.err); got.Verdict != c.verdict || c.verdict != OK && got.Says == "" {
				t.Errorf("%+v, want %s", got, c.verdict)
			}
		})
	}
	if f := judge(&serve.FieldReport{}, errors.New("NOAUTH")); !strings.Contains(f.Says, "AKIN_REDIS_URL") {
		t.Errorf("%s", f.Says)
	}
	left := []expand.LeftOut{{Term: "cost", From: "price", Similarity: 1, Reason: expand.LeftOutFrequent}, {Term: "gone", From: "price", Similarity: 0.5, Reason: expand.LeftOutAbsent}}
	want := "cost (for price, similarity 1) is in more than expansion.max_doc_share of the documents, gone (for price, similarity 0.5) is in no document"
	if f := judge(&serve.FieldReport{Texts: 20, Reason: reason.NeighborsTooFrequent, LeftOut: left}, nil); f.Verdict != Warning || !strings.HasSuffix(f.Says, want) {
		t.Errorf("what is left out is not named: %s", f.Says)
	}
}
