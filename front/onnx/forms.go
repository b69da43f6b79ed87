package onnx

import (
	"maps"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// forms are what operations of ours are in ONNX: nodes whose results they name.
var forms map[string]func(x exported) []string

func init() {
	forms = map[string]func(x exported) []string{
		"cast": func(x exported) []string {
			return x.is("Cast", attributes{"to": int(dataType(x.Out[0].DType))}, x.in...)
		},
		"concat": func(x exported) []string {
			return x.is("Concat", attributes{"axis": int(field(x.Op, "Axis").Int())}, x.in...)
		},
		"transpose": func(x exported) []string {
			perm := make([]int, x.Out[0].Rank())
			for i := range perm {
				perm[i] = int(field(x.Op, "Perm").Index(i).Int())
			}
			return x.is("Transpose", attributes{"perm": perm}, x.in...)
		},
		"reshape": func(x exported) []string {
			return x.is("Reshape", nil, x.in[0], x.numbers(x.Out[0].Sizes()...))
		},
		"broadcast": func(x exported) []string {
			return x.is("Expand", nil, x.in[0], x.numbers(x.Out[0].Sizes()...))
		},
		"fill": func(x exported) []string { return x.none("of no constant") },
		"where": func(x exported) []string {
			c := x.in[0]
			if x.In[0].Type().DType != graph.Bool {
				c = x.made("Cast", attributes{"to": int(dataType(graph.Bool))}, c)
			}
			return x.is("Where", nil, c, x.in[1], x.in[2])
		},
		"sum": summed, "matmul": multiplied, "slice": sliced, "split": unstacked, "pad": padded,
		"weigh": func(x exported) []string {
			zero := x.number(0)
			return x.is("Where", nil, x.made("Equal", nil, x.in[1], zero), zero,
				x.made("Mul", nil, x.in...))
		},
		"scale": exportedScale, "add-scalar": exportedScale,
		"clipped-relu": func(x exported) []string {
			return x.is("Clip", nil, x.in[0], x.number(0),
				x.number(float32(field(x.Op, "Limit").Float())))
		},
		"embedding": func(x exported) []string {
			return x.is("Gather", attributes{"axis": 0}, x.in...)
		},
		"take": func(x exported) []string {
			return x.is("Gather", attributes{"axis": int(field(x.Op, "Axis").Int())}, x.in...)
		},
		"gather": func(x exported) []string {
			a := attributes{"axis": int(field(x.Op, "Axis").Int())}
			return x.is("GatherElements", a, x.in...)
		},
	}
	maps.Copy(forms, ofLayers())
	maps.Copy(forms, ofNoise())
	maps.Copy(forms, ofExperts())
	forms["scan"] = exportedScan
	for ours, theirs := range map[string]string{"add": "Add", "sub": "Sub", "mul": "Mul",
		"div": "Div", "maximum": "Max", "minimum": "Min", "pow": "Pow", "relu": "Relu",
		"tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sigmoid": "Sigmoid",
		"neg": "Neg", "abs": "Abs", "sign": "Sign", "erf": "Erf", "floor": "Floor",
		"ceil": "Ceil", "round": "Round", "sin": "Sin", "cos": "Cos", "softplus": "Softplus",
		"reciprocal": "Reciprocal", "equal": "Equal", "less": "Less",
		"less-equal": "LessOrEqual", "and": "And", "or": "Or", "xor": "Xor", "not": "Not"} {
		forms[ours] = func(x exported) []string { return x.is(theirs, nil, x.in...) }
	}
}

// ofLayers are the forms of what layers are made of.
func ofLayers() map[string]func(x exported) []string {
	return map[string]func(x exported) []string{
		"conv2d": exportedConv, "max-pool": exportedPool, "avg-pool": exportedPool,
		"conv2d_input_grad": transposedConv, "batch-norm": exportedNorm, "lstm-cell": cell,
		"sum-pool-grad": repeated,
		"layer-norm": func(x exported) []string {
			a := attributes{"axis": -1, "epsilon": float32(field(x.Op, "Eps").Float())}
			return x.is("LayerNormalization", a, x.in...)
		},
		"rms-norm": rootMeanSquare, "rotary": turned, "attention": attended, "lstm": remembered,
		"not-zero": func(x exported) []string {
			zero := x.constant(tensor.FromI32([]int32{0}))
			no := x.made("Equal", nil, x.in[0], zero)
			return x.is("Cast", attributes{"to": int(dataType(graph.F32))}, x.made("Not", nil, no))
		},
		"padding-mask": func(x exported) []string {
			zero := x.constant(tensor.FromI32([]int32{0}))
			mask := x.made("Where", nil, x.made("Equal", nil, x.in[0], zero), x.number(-1e9),
				x.number(0))
			return x.is("Unsqueeze", nil, mask, x.numbers(1, 2))
		},
		"not-equal": func(x exported) []string {
			return x.is("Not", nil, x.made("Equal", nil, x.in...))
		},
		"softmax": rows("Softmax"), "masked-softmax": rows("Softmax"),
		"log-softmax": rows("LogSoftmax"),
		"rsqrt": func(x exported) []string {
			return x.is("Reciprocal", nil, x.made("Sqrt", nil, x.in...))
		},
		"square": func(x exported) []string { return x.is("Mul", nil, x.in[0], x.in[0]) },
		"silu": func(x exported) []string {
			return x.is("Mul", nil, x.in[0], x.made("Sigmoid", nil, x.in[0]))
		},
		"gelu": func(x exported) []string { return x.is("Gelu", nil, x.in...) },
		"gelu-tanh": func(x exported) []string {
			return x.is("Gelu", attributes{"approximate": "tanh"}, x.in...)
		},
		"top-k": func(x exported) []string {
			k := x.numbers(int(field(x.Op, "K").Int()))
			name, at := x.name("topk"), x.name("topk_places")
			x.put("TopK", nil, []string{x.in[0], k}, name, at)
			return []string{name, x.made("Cast", attributes{"to": int(dataType(graph.I32))}, at)}
		},
	}
}

// is is one node.
func (x exported) is(op string, a attributes, in ...string) []string {
	name := x.name(x.Node.Name)
	x.put(op, a, in, name)
	return []string{name}
}

// put writes a node with named results.
func (e *exporter) put(op string, a attributes, in []string, out ...string) {
	e.file.Nodes = append(e.file.Nodes, exportedNode(op, a, in, slices.Clone(out)))
}

func rows(op string) func(x exported) []string {
	return func(x exported) []string { return x.is(op, attributes{"axis": -1}, x.in...) }
}

func summed(x exported) []string {
	lo, hi, keep := int(field(x.Op, "Lo").Int()), int(field(x.Op, "Hi").Int()), 0
	if field(x.Op, "Keep").Bool() {
		keep = 1
	}
	var axes []int
	for a := lo; a < hi; a++ {
		axes = append(axes, a)
	}
	return x.is("ReduceSum", attributes{"keepdims": keep}, x.in[0], x.numbers(axes...))
}

// multiplied transposes operands where the operation does, and adds up the matrices of a batch.
func multiplied(x exported) []string {
	in := []string{x.in[0], x.in[1]}
	for i, trans := range []string{"TransA", "TransB"} {
		if !field(x.Op, trans).Bool() {
			continue
		}
		perm := upTo(x.In[i].Type().Rank())
		last := len(perm) - 1
		perm[last], perm[last-1] = perm[last-1], perm[last]
		in[i] = x.made("Transpose", attributes{"perm": perm}, in[i])
	}
	if !field(x.Op, "Reduce").Bool() {
		return x.is("MatMul", nil, in...)
	}
	axes := upTo(x.In[0].Type().Rank() - 2)
	return x.is("ReduceSum", attributes{"keepdims": 0}, x.made("MatMul", nil, in...),
		x.numbers(axes...))
}

func sliced(x exported) []string {
	a := 0
	if f := field(x.Op, "Axis"); f.IsValid() {
		a = int(f.Int())
	}
	lo, hi := int(field(x.Op, "Lo").Int()), int(field(x.Op, "Hi").Int())
	return x.is("Slice", nil, x.in[0], x.numbers(lo), x.numbers(hi), x.numbers(a))
}

// unstacked is in parts along the first axis, which may be dropped.
func unstacked(x exported) []string {
	var parts []string
	for range x.Out {
		parts = append(parts, x.name("part"))
	}
	x.put("Split", attributes{"axis": 0, "num_outputs": len(parts)}, x.in[:1], parts...)
	if field(x.Op, "Drop").Bool() {
		for i, p := range parts {
			parts[i] = x.made("Squeeze", nil, p, x.numbers(0))
		}
	}
	return parts
}

func padded(x exported) []string {
	rank := x.Out[0].Rank()
	pads := make([]int, 2*rank)
	a := int(field(x.Op, "Axis").Int())
	pads[a], pads[rank+a] = int(field(x.Op, "Before").Int()), int(field(x.Op, "After").Int())
	return x.is("Pad", nil, x.in[0], x.numbers(pads...))
}

func exportedScale(x exported) []string {
	factor, shift := float32(field(x.Op, "Factor").Float()), float32(field(x.Op, "Shift").Float())
	switch {
	case shift == 0:
		return x.is("Mul", nil, x.in[0], x.number(factor))
	case factor == 1:
		return x.is("Add", nil, x.in[0], x.number(shift))
	}
	return x.is("Add", nil, x.made("Mul", nil, x.in[0], x.number(factor)), x.number(shift))
}

// ints are the elements of a field that is an array, zeros as given.
func ints(x exported, name string, zero int) (out []int) {
	f := field(x.Op, name)
	for i := range f.Len() {
		v := int(f.Index(i).Int())
		if v == 0 {
			v = zero
		}
		out = append(out, v)
	}
	return out
}

func exportedConv(x exported) []string {
	groups := max(1, int(field(x.Op, "Groups").Int()))
	return x.is("Conv", attributes{"strides": ints(x, "Stride", 1), "pads": ints(x, "Pad", 0),
		"dilations": ints(x, "Dilation", 1), "group": groups}, x.in...)
}

// transposedConv is a convolution the other way, to images of a size.
func transposedConv(x exported) []string {
	strides, pads, gaps := ints(x, "Stride", 1), ints(x, "Pad", 0), ints(x, "Dilation", 1)
	var more []int
	for i := range 2 {
		span := gaps[i]*(x.In[1].Type().Size(2+i)-1) + 1
		more = append(more, x.Out[0].Size(2+i)+pads[i]+pads[i+2]-span-
			(x.In[0].Type().Size(2+i)-1)*strides[i])
	}
	return x.is("ConvTranspose", attributes{"strides": strides, "pads": pads, "dilations": gaps,
		"output_padding": more, "group": max(1, int(field(x.Op, "Groups").Int()))}, x.in...)
}

// repeated are elements that are as large as windows side by side.
func repeated(x exported) []string {
	size, strides, pads := ints(x, "Size", 1), ints(x, "Stride", 0), ints(x, "Pad", 0)
	for i := range size {
		if strides[i] != 0 && strides[i] != size[i] || slices.Max(pads) > 0 ||
			x.Out[0].Size(2+i) != x.In[0].Type().Size(2+i)*size[i] {
			return x.none("of windows that are not side by side")
		}
	}
	return x.is("Resize", attributes{"mode": "nearest", "nearest_mode": "floor",
		"coordinate_transformation_mode": "asymmetric"}, x.in[0], "", "",
		x.numbers(x.Out[0].Sizes()...))
}

// exportedNorm is by the batch's mean and variance, which are results, too.
func exportedNorm(x exported) []string {
	rank := x.Out[0].Rank()
	var axes []int
	along := make([]int, 0, rank-1)
	along = append(along, x.Out[0].Size(1))
	for i := range rank {
		if i != 1 {
			axes = append(axes, i)
		}
		if i > 1 {
			along = append(along, 1)
		}
	}
	mean := func(v string) string {
		return x.made("ReduceMean", attributes{"keepdims": 1}, v, x.numbers(axes...))
	}
	of := func(v string, sizes ...int) string {
		return x.made("Reshape", nil, v, x.numbers(sizes...))
	}
	mu := mean(x.in[0])
	centred := x.made("Sub", nil, x.in[0], mu)
	variance := mean(x.made("Mul", nil, centred, centred))
	root := x.made("Sqrt", nil, x.made("Add", nil, variance,
		x.number(float32(field(x.Op, "Eps").Float()))))
	scaled := x.made("Mul", nil, x.made("Div", nil, centred, root), of(x.in[1], along...))
	return append(x.is("Add", nil, scaled, of(x.in[2], along...)), of(mu, along[0]),
		of(variance, along[0]))
}

// cell has gates in our order: input, candidate, forget, output.
func cell(x exported) []string {
	var gates []string
	for range 4 {
		gates = append(gates, x.name("gate"))
	}
	x.put("Split", attributes{"axis": 1, "num_outputs": 4}, x.in[:1], gates...)
	sigmoid := func(v string) string { return x.made("Sigmoid", nil, v) }
	forget := x.made("Add", nil, gates[2], x.number(float32(field(x.Op, "ForgetBias").Float())))
	next := x.made("Add", nil, x.made("Mul", nil, sigmoid(forget), x.in[1]),
		x.made("Mul", nil, sigmoid(gates[0]), x.made("Tanh", nil, gates[1])))
	return append(x.is("Mul", nil, sigmoid(gates[3]), x.made("Tanh", nil, next)), next)
}

func exportedPool(x exported) []string {
	size := ints(x, "Size", 1)
	strides := ints(x, "Stride", 0)
	for i, s := range strides {
		if s == 0 {
			strides[i] = size[i]
		}
	}
	op := "MaxPool"
	if x.Op.Name() == "avg-pool" {
		op = "AveragePool"
	}
	return x.is(op, attributes{"kernel_shape": size, "strides": strides, "pads": ints(x, "Pad", 0)},
		x.in...)
}

func rootMeanSquare(x exported) []string {
	mean := x.made("ReduceMean", attributes{"keepdims": 1}, x.made("Mul", nil, x.in[0], x.in[0]),
		x.numbers(-1))
	root := x.made("Sqrt", nil, x.made("Add", nil, mean,
		x.number(float32(field(x.Op, "Eps").Float()))))
	return x.is("Mul", nil, x.made("Div", nil, x.in[0], root), x.in[1])
}

// turned is by angles that are computed in 64 bits, as ours are.
func turned(x exported) []string {
	width := int(field(x.Op, "Width").Int())
	rank := x.In[1].Type().Rank()
	if field(x.Op, "Interleaved").Bool() || width != x.Out[0].Size(-1) || rank > 1 {
		return x.none("of pairs of neighbours, of a part of a row, or of a position for each text")
	}
	half := width / 2
	rates := tensor.New(tensor.Of(tensor.F64, half))
	sign := 1.0
	if field(x.Op, "Back").Bool() {
		sign = -1
	}
	for i := range rates.F64() {
		rates.F64()[i] = sign * math.Pow(field(x.Op, "Base").Float(), -2*float64(i)/float64(width))
	}
	by := x.constant(rates)
	if field(x.Op, "Rated").Bool() {
		by = x.made("Mul", nil, x.in[2], x.constant(tensor.FromF32([]float32{float32(sign)}).To(
			graph.F64)))
	}
	length := -2
	if field(x.Op, "Heads").Bool() {
		length = -3
	}
	double, single := attributes{"to": int(dataType(graph.F64))},
		attributes{"to": int(dataType(graph.F32))}
	at := x.made("Cast", double, x.in[1])
	if rank == 0 { // of the first row
		at = x.made("Add", nil, at, x.constant(longs([]int{x.Out[0].Size(length)},
			upTo(x.Out[0].Size(length))...).To(graph.F64)))
	}
	angles := x.made("Mul", nil, x.made("Unsqueeze", nil, at, x.numbers(1)), by)
	if length == -3 {
		angles = x.made("Unsqueeze", nil, angles, x.numbers(1))
	}
	c := x.made("Cast", single, x.made("Cos", nil, angles))
	s := x.made("Cast", single, x.made("Sin", nil, angles))
	part := func(lo, hi int) string {
		return x.made("Slice", nil, x.in[0], x.numbers(lo), x.numbers(hi), x.numbers(-1))
	}
	a, b := part(0, half), part(half, width)
	first := x.made("Sub", nil, x.made("Mul", nil, a, c), x.made("Mul", nil, b, s))
	second := x.made("Add", nil, x.made("Mul", nil, b, c), x.made("Mul", nil, a, s))
	return x.is("Concat", attributes{"axis": -1}, first, second)
}

// remembered has the gates in ONNX's order: input, output, forget, candidate; ours are input,
// candidate, forget, output.
func remembered(x exported) []string {
	width, n := x.In[0].Type().Size(2), x.In[3].Type().Size(1)
	order := []int{0, 3, 2, 1}
	gates := func(w string, axis int) string {
		var parts []string
		for _, k := range order {
			parts = append(parts, x.made("Slice", nil, w, x.numbers(k*n), x.numbers((k+1)*n),
				x.numbers(axis)))
		}
		return x.made("Concat", attributes{"axis": axis}, parts...)
	}
	part := func(lo, hi int) string {
		w := x.made("Slice", nil, x.in[1], x.numbers(lo), x.numbers(hi), x.numbers(0))
		return x.made("Unsqueeze", nil, x.made("Transpose", attributes{"perm": []int{1, 0}},
			gates(w, 1)), x.numbers(0))
	}
	more := tensor.New(tensor.Of(tensor.F32, 8*n)) // of the forget gate, in the second half
	for i := 6 * n; i < 7*n; i++ {
		more.F32()[i] = float32(field(x.Op, "ForgetBias").Float())
	}
	zeros := x.constant(tensor.New(tensor.Of(tensor.F32, 4*n)))
	bias := x.made("Add", nil, x.made("Concat", attributes{"axis": 0}, gates(x.in[2], 0), zeros),
		x.constant(more))
	state := func(h string) string { return x.made("Unsqueeze", nil, h, x.numbers(0)) }
	y := x.made("LSTM", attributes{"hidden_size": n}, x.in[0], part(0, width), part(width, width+n),
		x.made("Unsqueeze", nil, bias, x.numbers(0)), "", state(x.in[3]), state(x.in[4]))
	return []string{x.made("Squeeze", nil, y, x.numbers(1))}
}
