package answer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand"
)

func TestHitsOfTwoAnswersShareAPage(t *testing.T) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(threeHits), "", "  "); err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer(`"max_score":1.5`, `"max_score":2.5`, `"_id":"2"`, `"_id":"9"`).Replace(threeHits)
	for _, text := range []string{threeHits, indented.String()} {
		r := &expand.Rerank{Size: 3, KeepSeqNo: true, KeepVersion: true}
		a, b := reread(t, text, r), reread(t, other, r)
		names, ids, ok := b.Names()
		if !ok || names[1] != "t/9" || ids[1] != "9" {
			t.Errorf("%v %v %v", names, ids, ok)
		}
		page := [][]byte{b.Texts()[1], a.Texts()[0]}
		got := a.WithTexts(page, b.HitList)
		again := reread(t, string(got), r)
		_, ids, _ = again.Names()
		if !json.Valid(got) || !slices.Equal(ids, []string{"9", "1"}) || !bytes.Equal(again.Texts()[1], a.Texts()[0]) {
			t.Errorf("%s", got)
		}
		if best := string(again.maxScore.Of(got)); best != "2.5" {
			t.Errorf("max_score %s", best)
		}
		if same := a.WithTexts(a.Texts(), a.HitList); string(same) != text {
			t.Errorf("its own hits change it: %s", same)
		}
		if none := a.WithTexts(nil, a.HitList); !json.Valid(none) || len(reread(t, string(none), r).hits) != 0 {
			t.Errorf("without hits %s", none)
		}
	}
	if _, _, ok := reread(t, strings.Replace(threeHits, `"_id":"2",`, "", 1), &expand.Rerank{Size: 3}).Names(); ok {
		t.Error("a hit without id has a name")
	}
}
