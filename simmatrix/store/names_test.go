package store

import (
	"testing"
)

func TestMatricesAreListedWithWhatIsActive(t *testing.T) {
	s := startRedis(t)
	a := s.admin(t)
	c := s.client(t)
	for _, key := range []string{"other", "akin:{}:versions", "akin:{bad name}:versions", "akin:{a}:versions:more"} {
		must(t, c.Set(t.Context(), key, "x", 0).Err())
	}
	var last string
	for _, name := range []string{"products", "help", "help"} {
		v, err := a.Push(t.Context(), name, newMatrix(t, "one", 50), "", nil)
		must(t, err)
		last = v.ID
	}
	must(t, a.Activate(t.Context(), "help", last))
	all, whole, err := a.Matrices(t.Context())
	must(t, err)
	if len(all) != 2 || !whole {
		t.Fatalf("%+v, whole %t", all, whole)
	}
	if help := all[0]; help.Name != "help" || help.Versions != 2 || help.Active != last || help.Terms != 51 || help.Neighbors != 50 || help.Bytes == 0 {
		t.Errorf("%+v", help)
	}
	if products := all[1]; products.Name != "products" || products.Versions != 1 || products.Active != "" {
		t.Errorf("%+v", products)
	}
}
