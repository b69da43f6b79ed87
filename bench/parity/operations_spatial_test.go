package main

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// spatialOperations pool and convolve values of one to three spatial axes.
func spatialOperations() []operation {
	one := func(expression string, x tensor.View, f func(graph.Value) graph.Value) operation {
		return operation{expression: expression, in: []tensor.View{x},
			build: func(in values) graph.Value { return f(in[0]) }}
	}
	type v = graph.Value
	two := func(expression string, x, y tensor.View, f func(a, b v) v) operation {
		return operation{expression: expression, in: []tensor.View{x, y},
			build: func(in values) graph.Value { return f(in[0], in[1]) }}
	}
	return []operation{
		one("F.max_pool1d(x[0], 3, 2, 1)", normals(1, 2, 3, 9), func(x v) v {
			return ops.MaxPool(x, ops.Pool{Size: []int{3}, Stride: []int{2}, Before: []int{1},
				After: []int{1}})
		}),
		one("F.max_pool2d(x[0], (3, 2), 2, (1, 1), 2, True)", ties(1, 2, 3, 8, 7), func(x v) v {
			return ops.MaxPool(x, ops.Pool{Size: []int{3, 2}, Stride: []int{2, 2},
				Dilation: []int{2, 2}, Before: []int{1, 1}, After: []int{1, 1}, Ceil: true})
		}),
		one("F.max_pool3d(x[0], 2, ceil_mode=True)", ties(1, 2, 3, 5, 4, 3), func(x v) v {
			return ops.MaxPool(x, ops.Pool{Size: []int{2, 2, 2}, Ceil: true})
		}),
		one("F.avg_pool1d(x[0], 3, 2, 1, ceil_mode=True)", normals(1, 2, 3, 8), func(x v) v {
			return ops.AvgPool(x, ops.Pool{Size: []int{3}, Stride: []int{2}, Before: []int{1},
				After: []int{1}, Ceil: true, CountPad: true})
		}),
		one("F.avg_pool3d(x[0], 3, 2, 1, True, False)", normals(1, 2, 3, 6, 5, 4), func(x v) v {
			return ops.AvgPool(x, ops.Pool{Size: []int{3, 3, 3}, Stride: []int{2, 2, 2},
				Before: []int{1, 1, 1}, After: []int{1, 1, 1}, Ceil: true})
		}),
		one("F.lp_pool2d(x[0], 3, 2)", positives(1, 2, 3, 4, 6), func(x v) v {
			return ops.LpPool(x, 3, ops.Pool{Size: []int{2, 2}})
		}),
		two("F.conv1d(x[0], x[1], None, 2, 1, 2, 2)", normals(1, 2, 4, 9), normals(2, 6, 2, 3),
			func(a, b v) v {
				return ops.ConvN(a, b, ops.ConvOptions{Stride: []int{2}, Dilation: []int{2},
					Before: []int{1}, After: []int{1}, Groups: 2})
			}),
		two("F.conv3d(x[0], x[1], None, (2, 1, 2), (1, 0, 1), (1, 2, 1), 2)",
			normals(1, 2, 4, 5, 6, 5), normals(2, 6, 2, 3, 2, 2), func(a, b v) v {
				return ops.ConvN(a, b, ops.ConvOptions{Stride: []int{2, 1, 2},
					Dilation: []int{1, 2, 1}, Before: []int{1, 0, 1}, After: []int{1, 0, 1},
					Groups: 2})
			}),
		two("F.conv_transpose1d(x[0], x[1], None, 3, 1, 2, 2, 2)", normals(1, 2, 6, 5),
			normals(2, 6, 2, 3), func(a, b v) v {
				return ops.ConvTransposeN(a, b, ops.ConvOptions{Stride: []int{3},
					Dilation: []int{2}, Before: []int{1}, After: []int{1}, Groups: 2}, []int{2})
			}),
		two("F.conv_transpose3d(x[0], x[1], None, (2, 1, 2), 1, (1, 0, 1))",
			normals(1, 2, 3, 2, 3, 4), normals(2, 3, 2, 3, 3, 2), func(a, b v) v {
				return ops.ConvTransposeN(a, b, ops.ConvOptions{Stride: []int{2, 1, 2},
					Before: []int{1, 1, 1}, After: []int{1, 1, 1}}, []int{1, 0, 1})
			}),
	}
}

// gridOperations take what is between the elements of images, in all ways.
func gridOperations() []operation {
	var list []operation
	for mode, m := range map[string]ops.GridMode{"bilinear": ops.GridBilinear,
		"nearest": ops.GridNearest, "bicubic": ops.GridBicubic} {
		for outside, b := range map[string]ops.GridOutside{"zeros": ops.GridZeros,
			"border": ops.GridBorder, "reflection": ops.GridReflection} {
			for align, name := range map[bool]string{false: "False", true: "True"} {
				o := ops.Grid{Mode: m, Outside: b, AlignCorners: align}
				list = append(list, operation{expression: "F.grid_sample(x[0], x[1], '" + mode +
					"', '" + outside + "', " + name + ")", firstOnly: true,
					in: []tensor.View{normals(1, 2, 3, 5, 4), normals(2, 2, 6, 3, 2)},
					build: func(in values) graph.Value {
						return ops.GridSample(in[0], in[1], o)
					}})
			}
		}
	}
	return list
}
