package images

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/gomediumitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/gofont/gomonobolditalic"
	"golang.org/x/image/font/gofont/gomonoitalic"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/libm"
)

// The size of the set of glyphs.
const (
	glyphsAll   = 51_000
	glyphsTrain = 50_000 // of them, unless a share is given
)

// characters are the kinds of glyphs.
const characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// face is a font.
type face struct {
	name string
	ttf  []byte
}

// faces lists the fonts that glyphs are drawn from.
func faces() []face {
	return []face{
		{"Go-Bold.ttf", gobold.TTF},
		{"Go-Bold-Italic.ttf", gobolditalic.TTF},
		{"Go-Italic.ttf", goitalic.TTF},
		{"Go-Medium.ttf", gomedium.TTF},
		{"Go-Medium-Italic.ttf", gomediumitalic.TTF},
		{"Go-Mono.ttf", gomono.TTF},
		{"Go-Mono-Bold.ttf", gomonobold.TTF},
		{"Go-Mono-Bold-Italic.ttf", gomonobolditalic.TTF},
		{"Go-Mono-Italic.ttf", gomonoitalic.TTF},
		{"Go-Regular.ttf", goregular.TTF},
	}
}

// readGlyphs prepares the outlines.
func (r *reader) readGlyphs() (*Set, error) {
	s := &Set{}
	for _, c := range characters {
		s.ClassNames = append(s.ClassNames, string(c))
	}
	var outlines [][]outline
	var files []data.File
	for i, f := range faces() {
		face, err := readOutlines(f.ttf)
		if err != nil {
			return nil, r.fail(f.name, err)
		}
		outlines = append(outlines, face)
		files = append(files, data.FileOf(f.name, f.ttf))
		r.step(i + 1)
	}
	s.Info.Path = "the Go fonts"
	s.Info.Summarize(files)
	train := glyphsTrain
	if r.opts.EvalShare > 0 {
		train = int(math.Round((1 - r.opts.EvalShare) * glyphsAll))
	}
	s.train = glyphs{outlines, r.opts.Seed, 0, r.limit(train)}
	s.heldOut = glyphs{outlines, r.opts.Seed, train, r.limit(glyphsAll - train)}
	return s, nil
}

// outline is a character's contours, in units of the size of the font, around
// the middle of its bounding box; y points down.
type outline struct {
	segments []segment
	half     point // of the bounding box's size
}

// segment is a piece of a contour, to its last point.
type segment struct {
	op     sfnt.SegmentOp
	points [3]point
}

type point struct{ x, y float32 }

// readOutlines loads the outlines of the characters of a font.
func readOutlines(ttf []byte) ([]outline, error) {
	font, err := opentype.Parse(ttf)
	if err != nil {
		return nil, err
	}
	var buffer sfnt.Buffer
	var outlines []outline
	for _, c := range characters {
		index, err := font.GlyphIndex(&buffer, c)
		if err != nil {
			return nil, err
		}
		const em = 1024
		contours, err := font.LoadGlyph(&buffer, index, fixed.I(em), nil)
		if err != nil {
			return nil, fmt.Errorf("glyph of %c: %w", c, err)
		}
		outlines = append(outlines, newOutline(contours, 64*em))
	}
	return outlines, nil
}

// newOutline copies contours, in which unit is the size of the font.
func newOutline(contours sfnt.Segments, unit float32) outline {
	box := contours.Bounds()
	middle := box.Min.Add(box.Max).Div(fixed.I(2))
	size := box.Max.Sub(box.Min)
	o := outline{half: point{float32(size.X) / 2 / unit, float32(size.Y) / 2 / unit}}
	for _, c := range contours {
		s := segment{op: c.Op}
		for i, p := range c.Args {
			p = p.Sub(middle)
			s.points[i] = point{float32(p.X) / unit, float32(p.Y) / unit}
		}
		o.segments = append(o.segments, s)
	}
	return o
}

// glyphs are the images first to first+n−1 of those of a seed.
type glyphs struct {
	outlines [][]outline // by face and character
	seed     uint64
	first, n int
}

func (g glyphs) len() int       { return g.n }
func (g glyphs) kind(i int) int { return (g.first + i) % len(characters) }

// paint draws image i. It is the same in every epoch: rng is not needed.
func (g glyphs) paint(dst *image.RGBA, i int, _ *rand.Rand) {
	rng := rand.New(rand.NewPCG(g.seed, uint64(g.first+i)))
	ink, paper := colours(rng)
	o := g.outlines[rng.IntN(len(g.outlines))][g.kind(i)]
	size := dst.Bounds().Dx()
	fill(dst, paper)
	pen := vector.NewRasterizer(size, size)
	trace(pen, o, place(rng, o, float32(size)))
	pen.Draw(dst, dst.Bounds(), image.NewUniform(ink), image.Point{})
	grain(dst, rng)
}

// colours are two that a reader can tell apart, by their luminance.
func colours(rng *rand.Rand) (ink, paper color.RGBA) {
	const apart = 70
	for {
		ink, paper = colour(rng), colour(rng)
		if math.Abs(luminance(ink)-luminance(paper)) > apart {
			return ink, paper
		}
	}
}

func colour(rng *rand.Rand) color.RGBA {
	return color.RGBA{uint8(rng.IntN(256)), uint8(rng.IntN(256)), uint8(rng.IntN(256)), 255}
}

// luminance is that of ITU-R BT.601.
func luminance(c color.RGBA) float64 {
	return float64(0.299*float64(c.R)) + float64(0.587*float64(c.G)) + float64(0.114*float64(c.B))
}

// affine maps an outline to pixels: a·x + b·y + c and d·x + e·y + f.
type affine struct{ a, b, c, d, e, f float32 }

func (t affine) at(p point) (x, y float32) {
	return float32(t.a*p.x) + float32(t.b*p.y) + t.c, float32(t.d*p.x) + float32(t.e*p.y) + t.f
}

// place draws a size, a slant and a place for an outline, inside a square of so
// many pixels and near its middle.
func place(rng *rand.Rand, o outline, pixels float32) affine {
	const slant = math.Pi / 18
	sin, cos := libm.Sincos(2 * slant * (float64(rng.Float64()) - 0.5))
	s, c := float32(math.Abs(sin)), float32(cos)
	// of the box around it, once turned
	half := point{
		float32(c*o.half.x) + float32(s*o.half.y), float32(s*o.half.x) + float32(c*o.half.y),
	}
	scale := pixels * (0.75 + float32(0.35*rng.Float32()))
	scale = min(scale, 0.48*pixels/max(half.x, half.y))
	t := affine{a: c * scale, b: -float32(sin) * scale, d: float32(sin) * scale, e: c * scale}
	t.c = float32(pixels/2) + shift(rng, pixels, float32(half.x*scale))
	t.f = float32(pixels/2) + shift(rng, pixels, float32(half.y*scale))
	return t
}

// shift draws how far from the middle of so many pixels something is placed.
func shift(rng *rand.Rand, pixels, half float32) float32 {
	return float32(2 * (float32(rng.Float32()) - 0.5) * min(pixels/10, float32(pixels/2)-half))
}

// trace draws the contours of o.
func trace(pen *vector.Rasterizer, o outline, t affine) {
	for _, s := range o.segments {
		var x, y [3]float32
		for i, p := range s.points {
			x[i], y[i] = t.at(p)
		}
		switch s.op {
		case sfnt.SegmentOpMoveTo:
			pen.ClosePath()
			pen.MoveTo(x[0], y[0])
		case sfnt.SegmentOpLineTo:
			pen.LineTo(x[0], y[0])
		case sfnt.SegmentOpQuadTo:
			curve(pen, point{x[0], y[0]}, point{x[1], y[1]})
		}
	}
	pen.ClosePath()
}

// curve draws a quadratic Bézier curve from the pen past b to c, the only kind that
// the Go fonts have. It is the rasterizer's QuadTo, but with the same bits on every
// architecture.
func curve(pen *vector.Rasterizer, b, c point) {
	var a point
	a.x, a.y = pen.Pen()
	dx, dy := a.x-float32(2*b.x)+c.x, a.y-float32(2*b.y)+c.y
	if bend := float32(dx*dx) + float32(dy*dy); bend >= 0.333 {
		n := 1 + int(math.Sqrt(math.Sqrt(3*float64(bend))))
		t := float32(0)
		for range n - 1 {
			t += 1 / float32(n)
			p := between(t, between(t, a, b), between(t, b, c))
			pen.LineTo(p.x, p.y)
		}
	}
	pen.LineTo(c.x, c.y)
}

// between is the point a part t of the way from p to q.
func between(t float32, p, q point) point {
	return point{p.x + float32(t*(q.x-p.x)), p.y + float32(t*(q.y-p.y))}
}

// grain adds triangular noise of a random strength to every pixel, up to 23
// levels.
func grain(dst *image.RGBA, rng *rand.Rand) {
	strength := rng.IntN(24)
	for i := 0; i < len(dst.Pix); i += 4 {
		bits := rng.Uint64()
		for c := range 3 {
			noise := int(bits&255) + int(bits>>8&255) - 255
			bits >>= 16
			dst.Pix[i+c] = uint8(min(255, max(0, int(dst.Pix[i+c])+noise*strength/255)))
		}
	}
}
