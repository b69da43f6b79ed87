package main

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// scatterOperations put updates to places, several to some, and elements in order.
func scatterOperations() []operation {
	var list []operation
	for name, how := range map[string]ops.ScatterHow{"sum": ops.ScatterSum,
		"prod": ops.ScatterProduct, "amax": ops.ScatterMax, "amin": ops.ScatterMin} {
		for _, in := range [][]tensor.View{
			{normals(1, 3, 4), indices(2, 4, 2, 9), normals(3, 2, 9)},
			{ties(1, 3, 4), indices(2, 4, 3, 5), ties(3, 3, 5)},
		} {
			list = append(list, operation{
				expression: "x[0].scatter_reduce(1, x[1], x[2], '" + name + "')", in: in,
				firstOnly: how == ops.ScatterProduct,
				build: func(in values) graph.Value {
					return ops.Scatter(in[0], in[1], in[2], 1, how)
				}})
		}
	}
	return append(list,
		operation{expression: "x[0].sort(stable=True, dim=1)[0]",
			in: []tensor.View{normals(1, 3, 9, 2)}, build: func(in values) graph.Value {
				y, _ := ops.Sort(in[0], 1, false)
				return y
			}},
		operation{expression: "x[0].topk(2, 0, False)[0]", in: []tensor.View{normals(1, 5, 4)},
			build: func(in values) graph.Value {
				y, _ := ops.TopKAlong(in[0], 0, 2, true)
				return y
			}},
		operation{expression: "x[0][x[1][..., 0], x[1][..., 1]]",
			in: []tensor.View{normals(1, 4, 4, 3), indices(2, 4, 5, 2)},
			build: func(in values) graph.Value {
				return ops.GatherND(in[0], in[1], 0)
			}},
		operation{expression: "x[0].index_put((x[1][..., 0], x[1][..., 1]), x[2], True)",
			in: []tensor.View{normals(1, 4, 4, 3), indices(2, 4, 9, 2), normals(3, 9, 3)},
			build: func(in values) graph.Value {
				return ops.ScatterND(in[0], in[1], in[2], ops.ScatterSum)
			}},
	)
}
