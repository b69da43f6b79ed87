package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// items are axes of values of a sequence that have the batch's items: the first of states
// [b n], the second of what every step has, [t b …].
func items(t graph.Type, batch []int) [][]int {
	own := entire(t)
	own[t.Rank()-2] = batch
	return own
}

// Split is between items, of which a part has so many that its products sum as those of all.
func (o lstm) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	s := sequenceOf(in[0], in[3], o.ForgetBias)
	batch := coarse(&r, s.b, func(b int) bool { return s.orders(b) == s.orders(s.b) })
	r.In = [][][]int{items(in[0], batch), entire(in[1]), entire(in[2]), items(in[3], batch),
		items(in[4], batch)}
	for _, t := range out {
		r.Out = append(r.Out, items(t, batch))
	}
	return r, true
}

// Split is between items, over which the gradients of weights and bias are sums.
func (o lstmGrad) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	s := sequenceOf(in[0], in[2], o.ForgetBias)
	batch := coarse(&r, s.b, func(b int) bool { return s.backward(b) == s.backward(s.b) })
	if len(batch) > 0 {
		sums(&r, batch[:1])
	}
	for _, t := range in {
		r.In = append(r.In, items(t, batch))
	}
	r.In[1] = entire(in[1])
	r.Out = [][][]int{items(out[0], batch), entire(out[1]), entire(out[2]), items(out[3], batch),
		items(out[4], batch)}
	return r, true
}

// orders are those of the products of all steps, and of one, with so many items.
func (s sequence) orders(items int) [2]gemm.Order {
	all := gemm.Product{M: s.t * items, N: 4 * s.n, K: s.i}
	step := gemm.Product{M: items, N: 4 * s.n, K: s.n}
	return [2]gemm.Order{all.Order(), step.Order()}
}

// backward are the orders of the gradients of states, and of the inputs of a chunk of steps
// and of the one that is left over.
func (s sequence) backward(items int) [3]gemm.Order {
	s.b = items
	rows := s.chunk() * items
	rest := s.t*items - (s.t-1)/max(1, s.chunk())*rows
	order := func(rows, columns int) gemm.Order {
		x := gemm.Product{M: rows, N: columns, K: 4 * s.n}
		x.B.Trans = true
		return x.Order()
	}
	return [3]gemm.Order{order(items, s.n), order(rows, s.i), order(rest, s.i)}
}
