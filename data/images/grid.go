package images

import (
	"fmt"
	"image"
	"image/png"
	"io"

	"github.com/gomem/gomem/graph/tensor"
)

// EncodeGrid writes a PNG of images f32[N 3 H W] with levels from −1 to 1, so many
// beside each other, from the left and the top. Levels beyond are cut off, and
// what is no number is grey; cells behind the last image are transparent.
func EncodeGrid(w io.Writer, pixels tensor.View, columns int) error {
	t := pixels.Type
	switch {
	case t.DType != tensor.F32 || t.Rank() != 4 || t.Size(1) != 3 || t.Elems() == 0:
		return fmt.Errorf("image grid of %s: want f32[images 3 height width]", t)
	case columns < 1:
		return fmt.Errorf("image grid of %d columns: want 1 or more", columns)
	}
	n, height, width := t.Size(0), t.Size(2), t.Size(3)
	columns = min(columns, n)
	grid := image.NewNRGBA(image.Rect(0, 0, columns*width, (n+columns-1)/columns*height))
	x := pixels.F32()
	for i := range n {
		planes := x[i*3*height*width:][:3*height*width]
		for p := range height * width {
			at := grid.PixOffset(i%columns*width+p%width, i/columns*height+p/width)
			for c := range 3 {
				grid.Pix[at+c] = level(planes[c*height*width+p])
			}
			grid.Pix[at+3] = 255
		}
	}
	if err := png.Encode(w, grid); err != nil {
		return fmt.Errorf("writing an image grid: %w", err)
	}
	return nil
}

// level is the level of a colour from −1 to 1.
func level(v float32) uint8 {
	if v != v {
		v = 0
	}
	return uint8(float32((min(1, max(-1, v))+1)*127.5) + 0.5)
}
