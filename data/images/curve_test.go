package images

import (
	"image"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/image/vector"
)

// TestCurvesAreTheRasterizers: where the compiler fuses nothing, the rasterizer
// draws the same pixels.
func TestCurvesAreTheRasterizers(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the compiler may fuse the rasterizer's products and sums")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	const size = 48
	draw := func(points []point, quad func(pen *vector.Rasterizer, b, c point)) []uint8 {
		pen := vector.NewRasterizer(size, size)
		pen.MoveTo(points[0].x, points[0].y)
		for i := 1; i+1 < len(points); i += 2 {
			quad(pen, points[i], points[i+1])
		}
		pen.ClosePath()
		dst := image.NewRGBA(image.Rect(0, 0, size, size))
		pen.Draw(dst, dst.Bounds(), image.Black, image.Point{})
		return dst.Pix
	}
	for range 2000 {
		points := make([]point, 7)
		for i := range points {
			points[i] = point{size * rng.Float32(), size * rng.Float32()}
		}
		want := draw(points, func(pen *vector.Rasterizer, b, c point) {
			pen.QuadTo(b.x, b.y, c.x, c.y)
		})
		if !slices.Equal(draw(points, curve), want) {
			t.Fatalf("%v is drawn otherwise", points)
		}
	}
}
