package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// A file has fixed shapes, so what it computes of experts is computed for all rows by every expert,
// and the rows that are another's are left out: a file of n experts has n times the products.

// ofExperts are the forms of what routes tokens to experts.
func ofExperts() map[string]func(x exported) []string {
	return map[string]func(x exported) []string{
		"top2": chosen, "positions": queued, "route": routed,
		"take-last": func(x exported) []string {
			at := x.made("Unsqueeze", nil, x.atLeast0(x.in[1]), x.numbers(-1))
			taken := x.made("GatherElements", attributes{"axis": -1}, x.in[0], at)
			return x.is("Where", nil, x.below0(x.in[1]), x.number(0),
				x.made("Squeeze", nil, taken, x.numbers(-1)))
		},
		"dispatch": func(x exported) []string {
			slots := int(field(x.Op, "Slots").Int())
			return x.is("Cast", attributes{"to": int(dataType(graph.F32))},
				x.made("Or", nil, x.hot(x.in[0], slots), x.hot(x.in[1], slots)))
		},
		"combine": func(x exported) []string {
			var parts [2]string
			for k := range parts {
				hot := x.to(graph.F32, x.hot(x.in[k], int(field(x.Op, "Slots").Int())))
				gate := x.made("Unsqueeze", nil, x.in[2+k], x.numbers(-1))
				parts[k] = x.made("Mul", nil, hot, gate)
			}
			return x.is("Add", nil, parts[:]...)
		},
		"gather-rows": func(x exported) []string {
			none := x.made("Unsqueeze", nil, x.below0(x.in[1]), x.numbers(1))
			return x.is("Where", nil, none, x.number(0),
				x.made("Gather", attributes{"axis": 0}, x.in[0], x.atLeast0(x.in[1])))
		},
		"combine-rows": func(x exported) []string {
			gates := x.made("Where", nil, x.below0(x.in[2]), x.number(0), x.in[1])
			rows := x.made("Gather", attributes{"axis": 0}, x.in[0], x.atLeast0(x.in[2]))
			return x.is("ReduceSum", attributes{"keepdims": 0}, x.made("Mul", nil, rows,
				x.made("Unsqueeze", nil, gates, x.numbers(2))), x.numbers(1))
		},
		"expert-matmul": func(x exported) []string {
			e := int(field(x.Op, "Expert").Int())
			y := x.made("MatMul", nil, x.in[1], x.in[2])
			return x.is("Where", nil, x.rowsOf(e, x.in[3]), y, x.in[0])
		},
		"expert-join":    func(x exported) []string { return x.is("Identity", nil, x.in[0]) },
		"grouped-matmul": byExpert,
	}
}

// integer writes a number of i32.
func (e *exporter) integer(v int32) string { return e.constant(tensor.FromI32([]int32{v})) }

// integers writes numbers of i32, one axis.
func (e *exporter) integers(v ...int32) string { return e.constant(tensor.FromI32(v, len(v))) }

func (e *exporter) below0(v string) string { return e.made("Less", nil, v, e.integer(0)) }

func (e *exporter) atLeast0(v string) string { return e.made("Max", nil, v, e.integer(0)) }

// firstOf are the numbers below n.
func firstOf(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

// hot has a last axis of n, and there true where v says.
func (e *exporter) hot(v string, n int) string {
	return e.made("Equal", nil, e.made("Unsqueeze", nil, v, e.numbers(-1)),
		e.integers(firstOf(n)...))
}

// chosen are the two largest gates, and the second by chance.
func chosen(x exported) []string {
	gates, at := x.name("topk"), x.name("topk_places")
	x.put("TopK", nil, []string{x.in[0], x.numbers(2)}, gates, at)
	part := func(v string, i int) string {
		return x.made("Squeeze", nil, x.made("Slice", nil, v, x.numbers(i), x.numbers(i+1),
			x.numbers(-1)), x.numbers(-1))
	}
	const tiny = 1e-9
	second := part(gates, 1)
	sum := x.made("Add", nil, x.made("Add", nil, part(gates, 0), second), x.number(tiny))
	share := x.made("Div", nil, x.made("Div", nil, second, sum),
		x.number(max(float32(field(x.Op, "Threshold").Float()), tiny)))
	chance := x.made("Reshape", nil, x.chances(x.in[1], x.Out[0].Elems()),
		x.numbers(x.Out[0].Sizes()...))
	all := x.to(graph.I32, at)
	return []string{part(all, 0), x.made("Where", nil, x.made("Less", nil, chance, share),
		part(all, 1), x.integer(-1))}
}

// queued counts those that are ahead in a group: all first choices, then second ones.
func queued(x exported) []string {
	experts, capacity := int(field(x.Op, "Experts").Int()), int32(field(x.Op, "Capacity").Int())
	all := x.made("Concat", attributes{"axis": 1}, x.in...)
	place := x.ahead(x.hot(all, experts), 1)
	slot := x.made("Add", nil, x.made("Mul", nil, all, x.integer(capacity)), place)
	none := x.made("Or", nil, x.below0(all),
		x.made("GreaterOrEqual", nil, place, x.integer(capacity)))
	slots := x.made("Where", nil, none, x.integer(-1), slot)
	first, second := x.name("part"), x.name("part")
	x.put("Split", attributes{"axis": 1, "num_outputs": 2}, []string{slots}, first, second)
	return []string{first, second}
}

// ahead is how many of the same kind are before each element along an axis; the kinds are the last
// axis.
func (e *exporter) ahead(hot string, axis int) string {
	one := e.to(graph.I32, hot)
	before := e.made("CumSum", attributes{"exclusive": 1}, one, e.constant(longs(nil, axis)))
	return e.made("ReduceSum", attributes{"keepdims": 0}, e.made("Mul", nil, before, one),
		e.numbers(-1))
}

// routed is a counting sort. Choices that are none come last, as those of one more expert.
func routed(x exported) []string {
	experts, tokens := int(field(x.Op, "Experts").Int()), x.Out[1].Size(0)
	var flat [2]string
	for k, v := range x.in {
		flat[k] = x.made("Reshape", nil, v, x.numbers(-1))
	}
	all := x.made("Concat", attributes{"axis": 0}, flat[:]...)
	none := x.below0(all)
	hot := x.hot(x.made("Where", nil, none, x.integer(int32(experts)), all), experts+1)
	one := x.to(graph.I32, hot)
	counts := x.made("ReduceSum", attributes{"keepdims": 0}, one, x.numbers(0))
	offsets := x.made("CumSum", attributes{"exclusive": 1}, counts, x.constant(longs(nil, 0)))
	begin := x.made("ReduceSum", attributes{"keepdims": 0}, x.made("Mul", nil, one, offsets),
		x.numbers(-1))
	at := x.made("Add", nil, begin, x.ahead(hot, 0))
	ids := firstOf(tokens)
	rows := x.made("ScatterElements", attributes{"axis": 0}, x.integers(append(ids, ids...)...), at,
		x.made("Where", nil, none, x.integer(-1), x.integers(append(ids, ids...)...)))
	inv := x.made("Reshape", nil, x.made("Where", nil, none, x.integer(-1), at),
		x.numbers(2, tokens))
	return []string{rows, x.made("Transpose", attributes{"perm": []int{1, 0}}, inv), offsets}
}

// rowsOf is true for the rows of an expert, bool[R 1].
func (x exported) rowsOf(expert int, offsets string) string {
	r := x.constant(tensor.FromI32(firstOf(x.Out[0].Size(0)), x.Out[0].Size(0), 1))
	part := func(i int) string {
		return x.made("Slice", nil, offsets, x.numbers(i), x.numbers(i+1), x.numbers(0))
	}
	return x.made("And", nil, x.made("GreaterOrEqual", nil, r, part(expert)),
		x.made("Less", nil, r, part(expert+1)))
}

// byExpert are the rows of one expert after the other.
func byExpert(x exported) []string {
	if field(x.Op, "Trans").Bool() {
		return x.none("of gradients")
	}
	y := x.made("Expand", nil, x.number(0), x.numbers(x.Out[0].Sizes()...))
	for e := range x.In[1].Type().Size(0) {
		w := x.made("Gather", attributes{"axis": 0}, x.in[1], x.constant(longs(nil, e)))
		y = x.made("Where", nil, x.rowsOf(e, x.in[2]), x.made("MatMul", nil, x.in[0], w), y)
	}
	return []string{y}
}
