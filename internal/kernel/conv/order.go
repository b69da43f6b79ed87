package conv

import "github.com/gomem/gomem/internal/kernel/gemm"

// Order is how a convolution, or a gradient of one, adds up an element of its result. Of two
// shapes that differ only in what elements there are (images and channels of the result, or
// groups), those of one order give an element the same bits.
type Order struct {
	way           ways
	product       gemm.Order
	chunk         int // channels of the source at a time
	parts         int // of the places, added up one after the other
	images, lines int // of a block of places
}

// ways of computing a destination.
type ways uint8

const (
	shifts ways = iota
	patches
	products // of matrices as they stand
	dots     // of single channels
	tiles    // patches side by side
	vectors  // of what is seen at few places
)

// OrderForward is the order of Forward.
func OrderForward(s Shape) Order {
	if s.pointwise() {
		return Order{way: products, product: gemm.Product{
			M: s.OutC / s.Groups, N: s.pixels(), K: s.InC / s.Groups}.Order()}
	}
	if s.Batch > 0 && s.few() {
		return Order{way: vectors, product: s.product().Order()}
	}
	return forwardPlan(s).order()
}

// OrderGradInput is the order of GradInput.
func OrderGradInput(s Shape) Order {
	if s.pointwise() {
		x := gemm.Product{M: s.InC / s.Groups, N: s.pixels(), K: s.OutC / s.Groups}
		x.A.Trans = true
		return Order{way: products, product: x.Order()}
	}
	return backwardPlan(s).order()
}

// Fewest is the fewest images that a convolution of a shape's kind has which, as every number of
// them up to the shape's, gives elements the bits of all, by [OrderForward] or [OrderGradInput].
func Fewest(s Shape, order func(Shape) Order) int {
	same := func(images int) bool {
		some := s
		some.Batch = images
		return order(some) == order(s)
	}
	n := 1
	if way := order(s).way; way == products || way == patches {
		for !same(n) { // at few places there is another way, of more images none
			n++
		}
		return n
	}
	for n = s.Batch; n > 1 && same(n-1); {
		n--
	}
	return n
}

func (p *plan) order() Order {
	if p.batch == 0 {
		return Order{}
	}
	if p.usePatches() {
		return Order{way: patches, chunk: newPatchPlan(p).chunk}
	}
	p.block()
	return Order{way: shifts, chunk: p.chunk}
}

// OrderGradFilter is the order of GradFilter, which adds up over the images: it compares
// shapes with as many.
func OrderGradFilter(s Shape) Order {
	switch {
	case s.Batch == 0:
		return Order{}
	case s.pointwise():
		x := gemm.Product{M: s.OutC / s.Groups, N: s.InC / s.Groups, K: s.pixels()}
		x.B.Trans = true
		return Order{way: products, product: x.Order()}
	}
	switch p := filterWayOf(s).(type) {
	case *filterPlan:
		o := Order{way: shifts, parts: p.parts, images: p.images, lines: p.blockRows}
		if p.single {
			o.way = dots
		}
		return o
	case *tilePlan:
		return Order{way: tiles, product: p.product().Order(), lines: p.lines}
	case *patchFilterPlan:
		return Order{way: patches, images: p.images, lines: p.blockRows}
	}
	return Order{}
}
