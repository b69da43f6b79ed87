package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// DepthToSpace makes blocks of block×block elements of the channels of images
// x f32[n block²·c h w] → f32[n c h·block w·block]. A block's elements are the
// outer part of the channels, as in TensorFlow: result element (c, y·block+i,
// z·block+j) is operand element ((i·block+j)·channels+c, y, z).
func DepthToSpace(x graph.Value, block int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	if block < 1 || block > 1<<15 || t.Rank() != 4 || t.Size(1)%(block*block) != 0 {
		x.Graph().Fail(fmt.Errorf("channels of %s do not fall into blocks of %d×%d", t, block,
			block))
		return graph.Value{}
	}
	n, c, h, w := t.Size(0), t.Size(1)/(block*block), t.Size(2), t.Size(3)
	x = Transpose(ReshapeSizes(x, n, block, block, c, h, w), 0, 3, 4, 1, 5, 2)
	return Reshape(x, t.Shape[0], graph.Dim{Size: c}, graph.Dim{Size: h * block},
		graph.Dim{Size: w * block})
}

// SpaceToDepth is the inverse of DepthToSpace: f32[n c h·block w·block] →
// f32[n block²·c h w].
func SpaceToDepth(x graph.Value, block int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	if block < 1 || block > 1<<15 || t.Rank() != 4 || t.Size(2)%block != 0 || t.Size(3)%block != 0 {
		x.Graph().Fail(fmt.Errorf("images %s do not fall into blocks of %d×%d", t, block, block))
		return graph.Value{}
	}
	n, c, h, w := t.Size(0), t.Size(1), t.Size(2)/block, t.Size(3)/block
	x = Transpose(ReshapeSizes(x, n, c, h, block, w, block), 0, 3, 5, 1, 2, 4)
	return Reshape(x, t.Shape[0], graph.Dim{Size: c * block * block}, graph.Dim{Size: h},
		graph.Dim{Size: w})
}
