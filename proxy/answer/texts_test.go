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
		if names := b.Names(); names[1] != "t/9" {
			t.Errorf("%v", names)
		}
		id, ninth := b.Hit(1)
		_, first := a.Hit(0)
		if id != "9" {
			t.Errorf("%s is hit 1", id)
		}
		got := a.WithTexts([][]byte{ninth, first}, b.HitList)
		again := reread(t, string(got), r)
		if _, second := again.Hit(1); !json.Valid(got) || !slices.Equal(again.Names(), []string{"t/9", "t/1"}) || !bytes.Equal(second, first) {
			t.Errorf("%s", got)
		}
		if best := string(again.maxScore.Of(got)); best != "2.5" {
			t.Errorf("max_score %s", best)
		}
		var own [][]byte
		for k := range a.Names() {
			_, hit := a.Hit(k)
			own = append(own, hit)
		}
		if same := a.WithTexts(own, a.HitList); string(same) != text {
			t.Errorf("its own hits change it: %s", same)
		}
		if none := a.WithTexts(nil, a.HitList); !json.Valid(none) || len(reread(t, string(none), r).hits) != 0 {
			t.Errorf("without hits %s", none)
		}
	}
	for _, bad := range [][2]string{{`"_id":"2",`, ""}, {`"_index":"t",`, ""}, {`"_id":"2"`, `"_id":2`}, {`"failed":0`, `"failed":1`}, {`}]}`, `}]`}} {
		if _, err := ReadHitList([]byte(strings.Replace(threeHits, bad[0], bad[1], 1)), 3); err == nil {
			t.Errorf("%s in place of %s is read", bad[1], bad[0])
		}
	}
	if _, err := ReadHitList([]byte(threeHits), 2); err == nil {
		t.Error("more hits than asked for are read")
	}
	if list, err := ReadHitList([]byte(threeHits), 3); err != nil || len(list.Names()) != 3 {
		t.Errorf("%v", err)
	}
}
