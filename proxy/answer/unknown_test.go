package answer

import (
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestUnknownParametersAreKeptAsTheyCame(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{"", ""},
		{"size=3&q=car&pretty", ""},
		{"jwt_token=a.b%2Ec&size=3", "jwt_token=a.b%2Ec"},
		{"size=3&jwt_token=a&akin=off&Access-Token=b&q=x", "jwt_token=a&Access-Token=b"},
		{"%73ize=3&%6awt_token=a", "%6awt_token=a"}, // names are compared as the engines read them
		{"size=3;jwt_token=a;from=1", "jwt_token=a"},
		{"&&=x&jwt_token", "jwt_token"},
		{"filter_path=x&terminate_after=9&allow_partial_search_results=false", ""}, // the check has its own
	} {
		check.Equal(t, tt.want, Unknown(tt.query), tt.query)
		check.Equal(t, "", Unknown(Known(tt.query)), tt.query)
	}
}
