package main

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/akin-search/akin/e2e/browser"
	"github.com/akin-search/akin/e2e/check"
)

// TestPictureOfThePlayground looks at the picture that README shows. With
// AKIN_PICTURE=1 (make picture) it takes it again.
func TestPictureOfThePlayground(t *testing.T) {
	const width, height, most = 1100, 846, 100_000
	file := filepath.Join(root, "docs", "playground.png")
	if os.Getenv("AKIN_PICTURE") == "1" {
		check.OK(t, os.WriteFile(file, takePicture(t, width, height), 0o644))
	}
	content, err := os.ReadFile(file)
	check.OK(t, err)
	size, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil || size.Width != width || size.Height != height {
		t.Errorf("the picture is %d by %d, %v; make picture takes it again", size.Width, size.Height, err)
	}
	check.That(t, len(content) < most, "the picture has %d bytes, want less than %d", len(content), most)
	if !strings.Contains(userTexts(t)["README.md"], "](docs/playground.png)") {
		t.Error("README does not show it")
	}
}

// takePicture returns what the playground of the demo shows of a search for nappies.
func takePicture(t *testing.T, width, height int64) []byte {
	t.Helper()
	ctx, _ := browser.Open(t)
	page := playgroundOf(t, startDemo(t).String())
	do(ctx, t, chromedp.EmulateViewport(width, height), chromedp.Navigate(page+" for a newborn"))
	inPage[any](ctx, t, `await ready()`)
	do(ctx, t, chromedp.KeyEvent("\r"))
	inPage[any](ctx, t, `await until(() => shown); await settled(); document.activeElement.blur()`)
	taken, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	check.OK(t, err)
	shown, err := png.Decode(bytes.NewReader(taken))
	check.OK(t, err)
	var content bytes.Buffer
	check.OK(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&content, inFewColors(shown)))
	return content.Bytes()
}

// inFewColors returns the picture in its 256 most frequent colors, so that a byte
// is enough for a pixel.
func inFewColors(page image.Image) image.Image {
	counts := map[color.Color]int{}
	for y := page.Bounds().Min.Y; y < page.Bounds().Max.Y; y++ {
		for x := page.Bounds().Min.X; x < page.Bounds().Max.X; x++ {
			counts[page.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	few := image.NewPaletted(page.Bounds(), colors[:min(len(colors), 256)])
	draw.Draw(few, few.Bounds(), page, page.Bounds().Min, draw.Src)
	return few
}
