package onnx

import (
	"github.com/gomem/gomem/graph/ops"
)

// images are operators of images, which have any number of axes behind those of samples and
// channels.
var images = each(map[string]func(n *node){
	"GlobalAveragePool": global(meanKeep), "GlobalMaxPool": global(maxKeep),
	"GlobalLpPool": func(n *node) {
		p := float32(order(n))
		global(func(x value, axes ...int) value {
			y := ops.SumKeep(ops.PowScalar(ops.Abs(x), p), axes...)
			return ops.PowScalar(y, 1/p)
		})(n)
	},
	"Conv": conv, "ConvTranspose": convTranspose, "MaxPool": maxPool, "AveragePool": averagePool,
	"LpPool": lpPool, "MaxUnpool": maxUnpool, "GridSample": gridSample, "Col2Im": columnsToImage,
	"Resize": resize, "Upsample": upsample, "AffineGrid": affineGrid,
})

// global reduces all axes of an image, which stay, of size 1.
func global(f reducer) func(n *node) {
	return func(n *node) {
		x := n.wide(0)
		var axes []int
		for i := 2; i < x.Type().Rank(); i++ {
			axes = append(axes, i)
		}
		if len(axes) == 0 {
			fail("%s is no image", x.Type())
		}
		n.give(n.narrow(f(x, axes...)))
	}
}

// maxKeep is a maximum whose axes stay, of size 1.
func maxKeep(x value, axes ...int) value { return ops.ExpandDims(ops.Max(x, axes...), axes...) }

// affineGrid are the places that matrices move those of an image's elements to.
func affineGrid(n *node) {
	theta, sizes := n.wide(0), n.ints(1)
	if len(sizes) < 3 {
		fail("the sizes %v are of no image", sizes)
	}
	sizes = sizes[2:]
	t, axes := theta.Type(), len(sizes)
	corners := n.flag("align_corners", false)
	if t.Rank() != 3 || t.Size(1) != axes || t.Size(2) != axes+1 {
		fail("matrices %s of images of %d axes", t, axes)
	}
	total := elems(sizes)
	places := steps(n, total, axes+1)
	v := places.Node.Data.F32()
	for i := range total {
		rest := i
		for a := axes - 1; a >= 0; a-- { // the last axis is the first coordinate
			v[i*(axes+1)+axes-1-a] = place(rest%sizes[a], sizes[a], corners)
			rest /= sizes[a]
		}
		v[i*(axes+1)+axes] = 1
	}
	y := ops.MatMulT(places, theta, false, true)
	n.give(n.narrow(ops.ReshapeSizes(y, append(append([]int{t.Size(0)}, sizes...), axes)...)))
}

// place is that of element i of so many, where the axis is from −1 to 1: its centres, or, of those
// of the outermost elements, the edges.
func place(i, size int, corners bool) float32 {
	switch {
	case !corners:
		return float32(float64(2*i+1)/float64(size) - 1)
	case size == 1:
		return 0
	}
	return float32(2*float64(i)/float64(size-1) - 1)
}
