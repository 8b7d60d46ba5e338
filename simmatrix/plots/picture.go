package plots

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"

	"git.sr.ht/~sbinet/gg"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// Where a text is anchored, in SVG's terms.
const (
	start  = "start"
	middle = "middle"
	end    = "end"
)

// A point of a picture, in points from its top left corner.
type point struct{ x, y float64 }

// A mark is a text, a line (width > 0) or an area.
type mark struct {
	color  color.RGBA
	points []point // of a text, its anchor on the base line
	width  float64
	text   string
	size   float64
	anchor string
	turned bool // by 90° to the left
}

// A picture is a list of marks, the first at the back.
type picture struct {
	width, height float64
	marks         []mark
	font          *opentype.Font
}

// line adds a line, or the area within it where width is 0.
func (p *picture) line(c color.RGBA, width float64, points ...point) {
	p.marks = append(p.marks, mark{color: c, points: points, width: width})
}

func (p *picture) dot(c color.RGBA, radius float64, at point) {
	const corners = 24
	round := make([]point, corners)
	for k := range round {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / corners)
		round[k] = point{at.x + radius*cos, at.y + radius*sin}
	}
	p.line(c, 0, round...)
}

func (p *picture) text(text string, x, y, size float64, c color.RGBA, anchor string) {
	p.marks = append(p.marks, mark{color: c, points: []point{{x, y}}, text: text, size: size, anchor: anchor})
}

// face returns the letters of a size, dpi of 72 for points.
func (p *picture) face(size, dpi float64) font.Face {
	face, _ := opentype.NewFace(p.font, &opentype.FaceOptions{Size: size, DPI: dpi}) // cannot fail with these options
	return face
}

// writeSVG writes the picture with the names of fonts of the same widths, as
// fallbacks for one that is not installed.
func (p *picture) writeSVG(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.2fpt" height="%.2fpt" viewBox="0 0 %[1]f %[2]f" xml:space="preserve">`+
		"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", p.width, p.height)
	for _, m := range p.marks {
		paint := fmt.Sprintf("#%02x%02x%02x", m.color.R, m.color.G, m.color.B)
		if m.text != "" {
			at, turn := m.points[0], ""
			if m.turned {
				turn = fmt.Sprintf(` transform="rotate(-90 %.2f %.2f)"`, at.x, at.y)
			}
			fmt.Fprintf(&b, `<text x="%.2f" y="%.2f" fill="%s" text-anchor="%s"%s style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`+
				"font-size:%gpx\">%s</text>\n", at.x, at.y, paint, m.anchor, turn, m.size, html.EscapeString(m.text))
			continue
		}
		b.WriteString(`<polyline points="`)
		for _, at := range m.points {
			fmt.Fprintf(&b, "%.2f,%.2f ", at.x, at.y)
		}
		if m.width > 0 {
			fmt.Fprintf(&b, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%g\"/>\n", paint, m.width)
		} else {
			fmt.Fprintf(&b, "\" fill=\"%s\"/>\n", paint)
		}
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// writePNG writes the picture with 150 dots an inch.
func (p *picture) writePNG(w io.Writer) error {
	const dotsPerInch, perPoint = 150, 150 / 72.0
	c := gg.NewContext(int(p.width*perPoint), int(p.height*perPoint))
	c.SetColor(color.White)
	c.Clear()
	for _, m := range p.marks {
		c.SetColor(m.color)
		for _, at := range m.points {
			c.LineTo(at.x*perPoint, at.y*perPoint)
		}
		switch {
		case m.text != "":
			at := gg.Point{X: m.points[0].x * perPoint, Y: m.points[0].y * perPoint}
			c.ClearPath()
			c.Push()
			if m.turned {
				c.RotateAbout(-math.Pi/2, at.X, at.Y)
			}
			c.SetFontFace(p.face(m.size, dotsPerInch))
			c.DrawStringAnchored(m.text, at.X, at.Y, map[string]float64{middle: 0.5, end: 1}[m.anchor], 0)
			c.Pop()
		case m.width > 0:
			c.SetLineWidth(m.width * perPoint)
			c.Stroke()
		default:
			c.Fill()
		}
	}
	return c.EncodePNG(w)
}
