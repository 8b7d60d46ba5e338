package learn

import (
	"context"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestDenseProductsHeedTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := newDense(1000, 10)
	check.Error(t, context.Canceled, orthonormalize(ctx, a))
	check.Error(t, context.Canceled, check.ErrOf(crossProduct(ctx, a, a)))
	check.Error(t, context.Canceled, check.ErrOf(timesSmall(ctx, a, newDense(10, 3))))
}
