package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// elementwise is an operation whose result at a place depends on nothing but
// its operands at that place, so that a chain can compute it tile by tile.
type elementwise interface {
	graph.Op
	// tile sets dst to the elements of the result from at on. x and y are the
	// same elements of the operands; y is nil if there is one, or if the second
	// is the seed. The bits are those of the operation on its own.
	tile(dst, x, y []float32, seed []int32, at int)
}

// isElementwise reports whether an operation is, with these attributes, and
// with the operands' shapes agreeing or broadcast.
func isElementwise(op graph.Op) (elementwise, bool) {
	switch o := op.(type) {
	case inBF16:
		if _, ok := isElementwise(o.Op); !ok {
			return nil, false
		}
	case dropout:
		if o.Shared != 0 {
			return nil, false
		}
	case noiseWindow:
		if _, shared := o.shared(); shared {
			return nil, false
		}
	}
	e, ok := op.(elementwise)
	return e, ok
}

func (b binary) tile(dst, x, y []float32, _ []int32, _ int) { binaryRuns[b.Kind].both(dst, x, y) }

func (u unary) tile(dst, x, _ []float32, _ []int32, _ int) { unaryOps[u.Kind].run(dst, x) }

func (s slope) tile(dst, y, d []float32, _ []int32, _ int) { slopes[s.Kind](dst, y, d) }

func (a affine) tile(dst, x, _ []float32, _ []int32, _ int) {
	if a.Factor == 1 {
		vec.AddScalar(dst, x, a.Shift)
		return
	}
	vec.MulScalar(dst, x, a.Factor)
}

func (o dropout) tile(dst, x, _ []float32, seed []int32, at int) {
	vec.Dropout(dst, x, 1-o.Rate, streamKey(seed, o.Salt), uint64(at))
}

func (o jitter) tile(dst, x, _ []float32, seed []int32, at int) {
	key := streamKey(seed, o.Salt)
	var words [256]uint32
	for lo := 0; lo < len(dst); lo += len(words) {
		n := min(len(words), len(dst)-lo)
		vec.Philox(words[:n], key, uint64(at+lo))
		for i, w := range words[:n] {
			dst[lo+i] = x[lo+i] * (1 + float32(o.Eps*(float32(2*unit(w))-1)))
		}
	}
}
