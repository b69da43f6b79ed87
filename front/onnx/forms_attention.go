package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// attended is attention by products and a softmax: ONNX's operator for it is younger than what
// most programs read, and has no documents.
func attended(x exported) []string {
	if field(x.Op, "Rate").Float() != 0 || field(x.Op, "Placed").Bool() {
		return x.none("with dropout, or a position")
	}
	a := attendedParts(x)
	q, k, v := a.headsFirst(x.in[0]), a.headsFirst(x.in[1]), a.headsFirst(x.in[2])
	k = x.made("Transpose", attributes{"perm": []int{0, 1, 3, 2}}, k)
	logits := x.made("MatMul", nil, a.grouped(q, x.In[0].Type().Size(3)), k)
	logits = x.made("Mul", nil, logits, x.number(float32(field(x.Op, "Scale").Float())))
	if limit := float32(field(x.Op, "Softcap").Float()); limit != 0 {
		logits = x.made("Tanh", nil, x.made("Div", nil, logits, x.number(limit)))
		logits = x.made("Mul", nil, logits, x.number(limit))
	}
	logits = a.apart(logits, a.keys)
	seen := a.seen()
	if seen != "" {
		logits = x.made("Where", nil, seen, logits, x.number(-1e9))
	}
	weights := x.made("Softmax", attributes{"axis": -1}, logits)
	if seen != "" { // a query that sees nothing has nothing
		weights = x.made("Mul", nil, weights, x.to(graph.F32, seen))
	}
	y := x.made("MatMul", nil, a.grouped(weights, a.keys), v)
	return []string{a.headsFirst(a.apart(y, x.Out[0].Size(3)))}
}

// attending has the sizes of an attention.
type attending struct {
	exported
	first                               bool // heads are before the length
	batch, heads, groups, queries, keys int
}

func attendedParts(x exported) attending {
	a := attending{exported: x, first: field(x.Op, "HeadsFirst").Bool()}
	q, k := x.In[0].Type(), x.In[1].Type()
	a.batch, a.queries, a.heads, a.keys, a.groups = q.Size(0), q.Size(1), q.Size(2), k.Size(1),
		k.Size(2)
	if a.first {
		a.queries, a.heads, a.keys, a.groups = a.heads, a.queries, a.groups, a.keys
	}
	return a
}

// headsFirst has heads before the length, or after it again.
func (a attending) headsFirst(v string) string {
	if a.first {
		return v
	}
	return a.made("Transpose", attributes{"perm": []int{0, 2, 1, 3}}, v)
}

// grouped has the queries of a group's heads as rows beside each other, apart takes them apart.
func (a attending) grouped(v string, width int) string {
	return a.made("Reshape", nil, v, a.numbers(a.batch, a.groups,
		a.heads/a.groups*a.queries, width))
}

func (a attending) apart(v string, width int) string {
	return a.made("Reshape", nil, v, a.numbers(a.batch, a.heads, a.queries, width))
}

// seen is which keys queries see, bool that broadcasts to the logits; "" for all.
func (a attending) seen() string {
	var all []string
	if field(a.Op, "Causal").Bool() {
		all = append(all, a.places())
	}
	more := a.in[3:]
	if field(a.Op, "Padded").Bool() {
		none := a.made("Equal", nil, more[0], a.constant(tensor.FromI32([]int32{0})))
		all = append(all, a.made("Unsqueeze", nil, a.made("Not", nil, none), a.numbers(1, 2)))
		more = more[1:]
	}
	if field(a.Op, "Documented").Bool() {
		own := a.made("Slice", nil, more[0], a.numbers(a.keys-a.queries), a.numbers(a.keys),
			a.numbers(1))
		all = append(all, a.made("Equal", nil, a.made("Unsqueeze", nil, own, a.numbers(1, 3)),
			a.made("Unsqueeze", nil, more[0], a.numbers(1, 2))))
	}
	if len(all) == 0 {
		return ""
	}
	for _, s := range all[1:] {
		all[0] = a.made("And", nil, all[0], s)
	}
	return all[0]
}

// places is which keys a causal mask and a window leave to each query.
func (a attending) places() string {
	window, sinks := int(field(a.Op, "Window").Int()), int(field(a.Op, "Sinks").Int())
	x := tensor.New(tensor.Of(graph.Bool, a.queries, a.keys))
	for q := range a.queries {
		at := a.keys - a.queries + q
		for k := range at + 1 {
			if window == 0 || k > at-window || k < sinks {
				x.Data[q*a.keys+k] = 1
			}
		}
	}
	return a.constant(x)
}
