package onnx

import (
	"cmp"
	"math"
	"slices"

	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// boxes are operators of places of objects.
var boxes = each(map[string]func(n *node){"NonMaxSuppression": suppress, "RoiAlign": roiAlign})

// suppress selects boxes that are known: how many there are decides the result's shape.
func suppress(n *node) {
	centre := n.flag("center_point_box", false)
	all, scores := n.known(0), n.floats(1)
	most, overlap, least := n.scalar(2, 0), n.scalar(3, 0), n.scalar(4, math.Inf(-1))
	list := all.To(tensor.F64).F64()
	sizes, classes := all.Type.Sizes(), n.x(1).Type().Size(1)
	batch, many := sizes[0], sizes[1]
	var out []int
	for b := range batch {
		edges := make([][4]float64, many)
		for i := range edges {
			edges[i] = corners([4]float64(list[(b*many+i)*4:]), centre)
		}
		for c := range classes {
			row := scores[(b*classes+c)*many:][:many]
			for _, i := range selected(edges, row, int(most), overlap, least) {
				out = append(out, b, c, i)
			}
		}
	}
	n.giveKnown(longs([]int{len(out) / 3, 3}, out...))
}

// corners are a box's lower corner and its upper one.
func corners(b [4]float64, centre bool) [4]float64 {
	if centre {
		w, h := float64(b[2]/2), float64(b[3]/2)
		return [4]float64{b[0] - w, b[1] - h, b[0] + w, b[1] + h}
	}
	return [4]float64{min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3])}
}

// selected are boxes by their scores, the highest first, without those that overlap one before.
func selected(boxes [][4]float64, scores []float64, most int, overlap, least float64) []int {
	var order, taken []int
	for i, s := range scores {
		if s > least {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	for _, i := range order {
		if len(taken) >= most {
			break
		}
		if !slices.ContainsFunc(taken, func(j int) bool {
			return shared(boxes[i], boxes[j]) > overlap
		}) {
			taken = append(taken, i)
		}
	}
	return taken
}

// shared is the area that two boxes share, of that which either has.
func shared(a, b [4]float64) float64 {
	area := func(b [4]float64) float64 { return float64(max(0, b[2]-b[0]) * max(0, b[3]-b[1])) }
	both := area([4]float64{max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])})
	if both <= 0 {
		return 0
	}
	return both / (area(a) + area(b) - both)
}

// roiAlign has the means of regions' bins, by samples between elements. What a sample has of the
// elements along an axis is a row of a matrix, and so is the mean of a bin's samples: each region
// is its image between two matrices.
func roiAlign(n *node) {
	x, rois := n.wide(0), n.wide(1)
	mode := n.text("mode", "avg")
	n.only("mode", mode, "avg")
	transform := "output_half_pixel"
	if n.version() >= 16 {
		transform = n.text("coordinate_transformation_mode", "half_pixel")
	}
	n.only("coordinate_transformation_mode", transform, "half_pixel", "output_half_pixel")
	if x.Type().Rank() != 4 || rois.Type().Rank() != 2 || rois.Type().Size(1) != 4 {
		fail("regions %s of images %s", rois.Type(), x.Type())
	}
	many := rois.Type().Size(0)
	r := regions{n: n, rois: ops.Scale(rois, n.float("spatial_scale", 1)), many: many,
		half: transform == "half_pixel", ratio: n.int("sampling_ratio", 0)}
	rows := r.matrix(1, x.Type().Size(2), n.int("output_height", 1))
	columns := r.matrix(0, x.Type().Size(3), n.int("output_width", 1))
	if x.Type().Size(0) != 1 { // one image is the same for all
		x = ops.Take(x, n.index(2, x.Type().Size(0)), 0)
	}
	y := ops.MatMul(ops.ExpandDims(rows, 1), x)
	n.give(n.narrow(ops.MatMulT(y, ops.ExpandDims(columns, 1), false, true)))
}

// regions of images.
type regions struct {
	n     *node
	rois  value // f32[regions 4], in elements
	many  int
	half  bool // elements' centres are halves
	ratio int  // samples of a bin along an axis; 0: as many as elements
}

// matrix says what every bin has of the elements along the axis of a coordinate:
// f32[regions bins size].
func (r regions) matrix(coordinate, size, bins int) value {
	lo, hi := ops.Slice(r.rois, 1, coordinate, coordinate+1),
		ops.Slice(r.rois, 1, coordinate+2, coordinate+3)
	extent := ops.Sub(hi, lo)
	if r.half {
		lo = ops.AddScalar(lo, -0.5)
	} else {
		extent = ops.Maximum(extent, like(extent, 1))
	}
	at, share := r.samples(coordinate, bins)
	at = ops.Mul(at, ops.ReshapeSizes(extent, r.many, 1, 1, 1))
	at = ops.Add(at, ops.ReshapeSizes(lo, r.many, 1, 1, 1))
	inside := ops.And(ops.GreaterEqual(at, like(at, -1)),
		ops.LessEqual(at, like(at, float64(size))))
	near := ops.Abs(ops.Sub(ops.Clip(at, 0, float32(size-1)), steps(r.n, 1, size)))
	weight := ops.Relu(ops.Sub(like(near, 1), near))
	weight = ops.Mul(ops.Where(inside, weight, like(weight, 0)), share)
	return ops.Sum(weight, 2)
}

// samples are where those of bins are, in shares of a region, and what each counts for:
// f32[regions bins samples 1]. As many as a region has elements are known only if the region is.
func (r regions) samples(coordinate, bins int) (at, share value) {
	counts := make([]int, r.many)
	for i := range counts {
		counts[i] = r.ratio
	}
	if r.ratio == 0 {
		scale := float64(r.n.float("spatial_scale", 1))
		list := r.n.floats(1)
		for i := range counts {
			extent := (list[4*i+coordinate+2] - list[4*i+coordinate]) * scale
			if !r.half {
				extent = max(extent, 1)
			}
			counts[i] = max(1, int(math.Ceil(extent/float64(bins))))
		}
	}
	most := slices.Max(append([]int{1}, counts...))
	a := tensor.New(tensor.Of(tensor.F32, r.many, bins, most, 1))
	s := tensor.New(tensor.Of(tensor.F32, r.many, 1, most, 1))
	for i, count := range counts {
		for k := range count {
			for b := range bins {
				place := (float64(b) + (float64(k)+0.5)/float64(count)) / float64(bins)
				a.F32()[(i*bins+b)*most+k] = float32(place)
			}
			s.F32()[i*most+k] = 1 / float32(count)
		}
	}
	return r.n.b.g.Constant("samples", a), r.n.b.g.Constant("share", s)
}
