package conv

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOrder: parts of one order, some images or some channels of the result, give elements
// the bits of the whole.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := square(rapid.IntRange(1, 6).Draw(t, "images"),
			rapid.SampledFrom([]int{1, 3, 17, 64, 200}).Draw(t, "in"),
			rapid.SampledFrom([]int{3, 8, 17}).Draw(t, "size"),
			rapid.SampledFrom([]int{1, 5, 64, 130}).Draw(t, "out"),
			rapid.SampledFrom([]int{1, 3}).Draw(t, "filter"),
			rapid.IntRange(1, 2).Draw(t, "stride"), rapid.IntRange(0, 1).Draw(t, "pad"))
		lo := rapid.IntRange(0, s.Batch-1).Draw(t, "first image")
		hi := rapid.IntRange(lo+1, s.Batch).Draw(t, "image behind")
		o := draw(s)
		part, some := s, o
		part.Batch = hi - lo
		some.x, some.y = images(s, o.x, lo, hi), images(s, o.y, lo, hi)
		if OrderForward(part) == OrderForward(s) {
			same(t, s, passes[0].result(t, part, some),
				images(s, passes[0].result(t, s, o), lo, hi))
		}
		if OrderGradInput(part) == OrderGradInput(s) {
			same(t, s, passes[1].result(t, part, some),
				images(s, passes[1].result(t, s, o), lo, hi))
		}
		part, some = s, o
		from := rapid.IntRange(0, s.OutC-1).Draw(t, "first channel")
		to := rapid.IntRange(from+1, s.OutC).Draw(t, "channel behind")
		part.OutC = to - from
		filter := s.InC * s.taps()
		some.w, some.y = o.w[from*filter:to*filter], channels(s, o.y, from, to)
		if OrderForward(part) == OrderForward(s) {
			same(t, s, passes[0].result(t, part, some),
				channels(s, passes[0].result(t, s, o), from, to))
		}
		if OrderGradFilter(part) == OrderGradFilter(s) {
			same(t, s, passes[2].result(t, part, some),
				passes[2].result(t, s, o)[from*filter:to*filter])
		}
	})
}

func (c *pass) result(t *rapid.T, s Shape, o operands) []float32 {
	return c.compute(t, nil, s, o, float32(math.NaN()))
}

// images are some of the images of values of a shape.
func images(s Shape, v []float32, lo, hi int) []float32 {
	size := len(v) / s.Batch
	return v[lo*size : hi*size]
}

// channels are some of the channels of all images of a result.
func channels(s Shape, y []float32, lo, hi int) (list []float32) {
	size := s.OutH() * s.OutW()
	for i := range s.Batch {
		at := i * s.OutC * size
		list = append(list, y[at+lo*size:at+hi*size]...)
	}
	return list
}

// same wants the same bits.
func same(t *rapid.T, s Shape, got, want []float32) {
	if !slices.EqualFunc(got, want, func(a, b float32) bool {
		return math.Float32bits(a) == math.Float32bits(b)
	}) {
		t.Fatalf("%+v: a part has other bits", s)
	}
}

// TestFilterParts: a filter's gradient that is added up in two parts has the bits of the whole, and
// so has one of the images that Fewest allows.
func TestFilterParts(t *testing.T) {
	seen := map[ways]bool{}
	rapid.Check(t, func(t *rapid.T) {
		s := square(rapid.IntRange(2, 40).Draw(t, "images"),
			rapid.SampledFrom([]int{1, 3, 17, 150}).Draw(t, "in"),
			rapid.SampledFrom([]int{3, 8, 17}).Draw(t, "size"),
			rapid.SampledFrom([]int{1, 5, 64, 130}).Draw(t, "out"),
			rapid.SampledFrom([]int{1, 3, 8}).Draw(t, "filter"),
			rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "stride"),
			rapid.IntRange(0, 1).Draw(t, "pad"))
		if s.Validate() != nil {
			t.Skip("the filter is larger than the image")
		}
		o := draw(s)
		block, elements, end := FilterSums(s)
		at := rapid.IntRange(0, (s.Batch-1)/block).Draw(t, "blocks") * block
		seen[OrderGradFilter(s).way] = seen[OrderGradFilter(s).way] || at > 0
		sums, dw := make([]float32, elements), make([]float32, s.filter())
		scratch := make([]float32, ScratchFilterPart(s)/4)
		for i := range sums {
			sums[i] = float32(math.NaN())
		}
		for _, part := range [][2]int{{0, at}, {at, s.Batch}} {
			if part[1] > part[0] {
				AddFilter(nil, s, part[0], part[1]-part[0],
					Source{F32: images(s, o.x, part[0], part[1])},
					images(s, o.y, part[0], part[1]), sums, scratch)
			}
		}
		if end {
			EndFilter(nil, s, sums, dw)
		} else {
			copy(dw, sums)
		}
		same(t, s, dw, passes[2].result(t, s, o))
		for _, order := range []func(Shape) Order{OrderForward, OrderGradInput} {
			some := s
			some.Batch = rapid.IntRange(Fewest(s, order), s.Batch).Draw(t, "images")
			if order(some) != order(s) {
				t.Fatalf("%+v: %d images are computed in another way", s, some.Batch)
			}
		}
	})
	for _, way := range []ways{shifts, patches, products, dots, tiles} {
		if !seen[way] {
			t.Errorf("nothing was drawn that is computed in way %d, in two parts", way)
		}
	}
}
