package images

import (
	"image"
	"image/color"
	"math/rand/v2"

	"golang.org/x/image/draw"
)

// grey shows where an image is transparent.
var grey = color.RGBA{128, 128, 128, 255}

// fill paints all of dst.
func fill(dst *image.RGBA, c color.RGBA) {
	draw.Draw(dst, dst.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
}

// crop scales a square of src to dst: the one in the middle, or with rng a random
// one of 3/4 of the shorter side or more.
func crop(dst *image.RGBA, src image.Image, rng *rand.Rand) {
	b := src.Bounds()
	side := min(b.Dx(), b.Dy())
	if rng != nil {
		side -= rng.IntN(side/4 + 1)
	}
	free := image.Pt(b.Dx()-side, b.Dy()-side)
	at := free.Div(2)
	if rng != nil {
		at = image.Pt(rng.IntN(free.X+1), rng.IntN(free.Y+1))
	}
	square := image.Rect(0, 0, side, side).Add(b.Min).Add(at)
	fill(dst, grey)
	draw.BiLinear.Scale(dst, dst.Bounds(), src, square, draw.Over, nil)
}

// mirror turns left to right.
func mirror(dst *image.RGBA) {
	n := dst.Bounds().Dx()
	for y := range n {
		row := dst.Pix[y*dst.Stride:][:4*n]
		for l, r := 0, 4*(n-1); l < r; l, r = l+4, r-4 {
			for c := range 4 {
				row[l+c], row[r+c] = row[r+c], row[l+c]
			}
		}
	}
}

// distort crops src and mirrors one of two, if there is an rng to ask.
func distort(dst *image.RGBA, src image.Image, rng *rand.Rand, mirrored bool) {
	crop(dst, src, rng)
	if mirrored && rng != nil && rng.IntN(2) == 1 {
		mirror(dst)
	}
}
