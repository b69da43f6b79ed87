package onnx

import (
	"maps"
	"math"
	"slices"

	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// resizing says how an image's axes become longer or shorter.
type resizing struct {
	mode, nearest, transform string
	a                        float64 // of cubic
	antialias, inside        bool
	extrapolation            float32
}

// axisSize is what becomes of an axis.
type axisSize struct {
	axis, have, want int
	scale            float64
	lo, hi           float64 // the region, in shares of the axis
}

func upsample(n *node) {
	r := resizing{mode: n.text("mode", "nearest"), nearest: "floor", transform: "asymmetric"}
	n.only("mode", r.mode, "nearest", "linear", "bilinear")
	var scales []float64
	if n.version() >= 9 {
		scales = n.floats(1)
	} else if a := n.attribute("scales", onnx.FloatsKind); a != nil {
		for _, s := range a.Floats {
			scales = append(scales, float64(s))
		}
	}
	n.give(r.apply(n, resized(n, n.x(0), scales, nil, nil)))
}

func resize(n *node) {
	if n.version() < 11 {
		upsample(n) // of the same meaning in version 10
		return
	}
	r := resizing{mode: n.text("mode", "nearest"),
		nearest:       n.text("nearest_mode", "round_prefer_floor"),
		transform:     n.text("coordinate_transformation_mode", "half_pixel"),
		a:             float64(n.float("cubic_coeff_a", -0.75)),
		antialias:     n.flag("antialias", false),
		inside:        n.flag("exclude_outside", false),
		extrapolation: n.float("extrapolation_value", 0)}
	n.only("mode", r.mode, "nearest", "linear", "cubic")
	n.only("nearest_mode", r.nearest, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
	n.only("coordinate_transformation_mode", r.transform, "half_pixel", "half_pixel_symmetric",
		"pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
		"tf_crop_and_resize")
	optional := func(i int) []float64 {
		if !n.has(i) || n.x(i).Type().Elems() == 0 {
			return nil
		}
		return n.floats(i)
	}
	var region []float64
	if r.transform == "tf_crop_and_resize" {
		region = optional(1)
	}
	n.give(r.apply(n, resized(n, n.x(0), optional(2), optional(3), region)))
}

// resized says what becomes of x's axes, by scales or by sizes.
func resized(n *node, x value, scales, sizes, region []float64) []axisSize {
	axes := n.list("axes")
	if axes == nil {
		for i := range x.Type().Rank() {
			axes = append(axes, i)
		}
	}
	if len(scales) != len(axes) && len(sizes) != len(axes) ||
		region != nil && len(region) != 2*len(axes) {
		fail("%d scales, %d sizes and a region of %d for %d axes", len(scales), len(sizes),
			len(region), len(axes))
	}
	policy := n.text("keep_aspect_ratio_policy", "stretch")
	n.only("keep_aspect_ratio_policy", policy, "stretch", "not_larger", "not_smaller")
	var list []axisSize
	for i, a := range axes {
		a = axis(a, x.Type().Rank())
		s := axisSize{axis: a, have: x.Type().Size(a), hi: 1}
		if region != nil {
			s.lo, s.hi = region[i], region[len(axes)+i]
		}
		if sizes != nil {
			s.want, s.scale = int(sizes[i]), sizes[i]/float64(s.have)
		} else {
			s.want, s.scale = int(float64(s.have)*scales[i]), scales[i]
		}
		if s.have == 0 || !(s.scale > 0) {
			fail("axis %d of %d is scaled by %v", a, s.have, s.scale)
		}
		list = append(list, s)
	}
	if sizes == nil || policy == "stretch" {
		return list
	}
	choose := slices.MaxFunc[[]axisSize]
	if policy == "not_larger" {
		choose = slices.MinFunc[[]axisSize]
	}
	scale := choose(list, func(a, b axisSize) int {
		return int(math.Copysign(1, a.scale-b.scale))
	}).scale
	for i := range list {
		list[i].scale = scale
		list[i].want = int(float64(scale*float64(list[i].have)) + 0.5)
	}
	return list
}

// apply resizes operand 0, one axis after the other.
func (r resizing) apply(n *node, list []axisSize) value {
	x := n.x(0)
	if r.mode != "nearest" {
		x = n.wide(0)
	}
	for _, s := range list {
		if s.scale == 1 && s.want == s.have && s.lo == 0 && s.hi == 1 {
			continue
		}
		places := make([]float64, s.want)
		outside := make([]int, s.want)
		for i := range places {
			places[i] = r.place(float64(i), s)
			if r.transform == "tf_crop_and_resize" &&
				(places[i] < 0 || places[i] > float64(s.have-1)) {
				outside[i] = 1
			}
		}
		if r.mode == "nearest" {
			x = r.taken(n, x, s, places)
		} else {
			x = r.weighed(n, x, s, places)
		}
		if slices.Contains(outside, 1) {
			sizes := make([]int, x.Type().Rank()-s.axis)
			for i := range sizes {
				sizes[i] = 1
			}
			sizes[0] = s.want
			out := n.b.g.Constant("outside", longs(sizes, outside...).To(tensor.Bool))
			x = ops.Where(out, like(x, float64(r.extrapolation)), x)
		}
	}
	return n.narrow(x)
}

// place is where element i of the result is along the axis, in elements.
func (r resizing) place(i float64, s axisSize) float64 {
	have, wide := float64(s.have), float64(s.scale*float64(s.have))
	half := (i+0.5)/s.scale - 0.5
	switch r.transform {
	case "align_corners":
		if wide == 1 {
			return 0
		}
		return i * (have - 1) / (wide - 1)
	case "asymmetric":
		return i / s.scale
	case "tf_half_pixel_for_nn":
		return (i + 0.5) / s.scale
	case "tf_crop_and_resize":
		at := (s.hi - s.lo) * (have - 1) / 2
		if wide != 1 {
			at = i * (s.hi - s.lo) * (have - 1) / (wide - 1)
		}
		return at + float64(s.lo*(have-1))
	case "pytorch_half_pixel":
		if wide == 1 {
			return -0.5
		}
	case "half_pixel_symmetric":
		return float64(have/2*(1-float64(s.want)/wide)) + half
	}
	return half
}

// taken has the nearest elements.
func (r resizing) taken(n *node, x value, s axisSize, places []float64) value {
	list := make([]int, len(places))
	repeated := s.want%s.have == 0
	for i, p := range places {
		switch r.nearest {
		case "round_prefer_floor":
			p = math.Ceil(p - 0.5)
		case "round_prefer_ceil":
			p = math.Floor(p + 0.5)
		case "floor":
			p = math.Floor(p)
		case "ceil":
			p = math.Ceil(p)
		}
		list[i] = min(max(int(p), 0), s.have-1)
		repeated = repeated && list[i] == i*s.have/s.want
	}
	if repeated {
		return ops.Repeat(x, s.axis, s.want/s.have)
	}
	return ops.Take(x, n.b.indices(list), s.axis)
}

// weighed has sums of elements around places.
func (r resizing) weighed(n *node, x value, s axisSize, places []float64) value {
	rows := make([]map[int]float64, len(places))
	for i, p := range places {
		rows[i] = r.weights(p, s)
	}
	return weighed(n, x, s.axis, rows)
}

// weighed has weighted sums of elements along an axis: by a matrix, or, where that were larger
// than what the elements take that are summed, by taking these.
func weighed(n *node, x value, a int, rows []map[int]float64) value {
	most := 0
	for _, row := range rows {
		most = max(most, len(row))
	}
	sizes := slices.Clone(x.Type().Sizes())
	before, after := elems(sizes[:a]), elems(sizes[a+1:])
	few := sizes[a] <= most*before*after
	switch {
	case few && after == 1: // one product, not one of a vector for each row
		x = ops.ReshapeSizes(x, before, sizes[a])
		x = ops.MatMulT(x, matrix(n, rows, sizes[a]), false, true)
	case few:
		x = ops.MatMul(matrix(n, rows, sizes[a]), ops.ReshapeSizes(x, before, sizes[a], after))
	default:
		x = taps(n, ops.ReshapeSizes(x, before, sizes[a], after), rows, most)
	}
	sizes[a] = len(rows)
	return ops.ReshapeSizes(x, sizes...)
}

// matrix has rows of weights.
func matrix(n *node, rows []map[int]float64, width int) value {
	v := tensor.New(tensor.Of(tensor.F32, len(rows), width))
	for i, row := range rows {
		for k, w := range row {
			v.F32()[i*width+k] = float32(w)
		}
	}
	return n.b.g.Constant("weights", v)
}

// taps are weighted sums of at most so many elements of [a n b].
func taps(n *node, x value, rows []map[int]float64, most int) value {
	var sum value
	for k := range most {
		list := make([]int, len(rows))
		weights := tensor.New(tensor.Of(tensor.F32, len(rows), 1))
		for i, row := range rows {
			keys := slices.Sorted(maps.Keys(row))
			if k < len(keys) {
				list[i], weights.F32()[i] = keys[k], float32(row[keys[k]])
			}
		}
		part := ops.Mul(ops.Take(x, n.b.indices(list), 1), n.b.g.Constant("weights", weights))
		if sum.Valid() {
			part = ops.Add(sum, part)
		}
		sum = part
	}
	return sum
}

// weights are those of the elements around a place. An element that is outside counts as the
// outermost one, or not at all.
func (r resizing) weights(p float64, s axisSize) map[int]float64 {
	kernel, radius, by := linear, 1.0, 1.0
	if r.mode == "cubic" {
		kernel, radius = r.cubic, 2
	}
	if r.antialias {
		by = min(s.scale, 1)
	}
	row, total := map[int]float64{}, 0.0
	for i := math.Ceil(p - radius/by); i <= p+radius/by; i++ {
		w := kernel(math.Abs(i-p) * by)
		if w == 0 || r.inside && (i < 0 || i >= float64(s.have)) {
			continue
		}
		row[min(max(int(i), 0), s.have-1)] += w
		total += w
	}
	if total != 0 {
		for i := range row {
			row[i] /= total
		}
	}
	return row
}

// linear interpolation's weight at a distance.
func linear(d float64) float64 { return max(0, 1-d) }

// cubic is Keys' (1981).
func (r resizing) cubic(d float64) float64 {
	a := r.a
	switch {
	case d <= 1:
		return float64((float64((a+2)*d)-(a+3))*d*d) + 1
	case d < 2:
		near := float64((float64(a*d)-float64(5*a))*d) + float64(8*a)
		return float64(near*d) - float64(4*a)
	}
	return 0
}
