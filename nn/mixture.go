package nn

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// MixtureOptions are those of [MixtureOfExperts].
type MixtureOptions struct {
	Experts int // 2 or more
	Hidden  int // units of an expert

	// Sparse gathers every expert's tokens instead of multiplying by 0/1 tensors; it
	// passes over none, and the next three numbers do not count but in gating.
	Sparse bool

	Group        int     // tokens that are gated together, at most; 0 means all
	Capacity     float64 // slots of an expert in training: Group·Capacity/Experts; 0: 1.25
	EvalCapacity float64 // the same in other passes; 0 means 2

	// Threshold is the gate at which a token's second expert is certain to be kept; with
	// less it is left out at random. 0 keeps all.
	Threshold float32

	// Stacked has the weights of all experts in two parameters, instead of two an expert.
	Stacked bool
}

// Groups splits tokens for gating: the fewest equal groups of at most Group tokens.
func (o MixtureOptions) Groups(tokens int) (n, size int) {
	most := o.Group
	if most < 1 {
		most = tokens
	}
	for n = (tokens + most - 1) / most; tokens%n != 0; n++ {
	}
	return n, tokens / n
}

// Slots is the number of tokens of a group that an expert takes, by a factor such as
// Capacity.
func (o MixtureOptions) Slots(group int, factor float64) int {
	return min(group, int(float64(group)*factor/float64(o.Experts)))
}

// factor is the capacity in a pass.
func (o MixtureOptions) factor(training bool) float64 {
	factor, otherwise := o.EvalCapacity, 2.0
	if training {
		factor, otherwise = o.Capacity, 1.25
	}
	if factor == 0 {
		factor = otherwise
	}
	return factor
}

// check reports what no mixture can have.
func (o MixtureOptions) check(group int, factor float64) error {
	switch {
	case o.Experts < 2 || o.Hidden < 1:
		return errorf("mixture of %d experts with %d units: want 2 or more, and 1 or more",
			o.Experts, o.Hidden)
	case !(factor > 0) || math.IsInf(factor, 0):
		return errorf("mixture with a capacity of %v: want a positive number", factor)
	case !o.Sparse && o.Slots(group, factor) < 1:
		return errorf("mixture of %d experts for groups of %d tokens, which leave an expert none: "+
			"want %d or fewer, larger groups, or Sparse", o.Experts, group,
			int(float64(group)*factor))
	}
	return nil
}

// MixtureOfExperts sends every token to two of many feed-forward layers, the experts
// (Shazeer et al. 2017, as Tensor2Tensor has it): x f32[batch length width] → y of
// the same shape. In a training pass it also gives the balance, f32[], which is 1
// where tokens are spread evenly over the experts, and up to the number of experts
// where they are not; add some of it to the loss.
//
// Its parameters are gate f32[width experts], and of every expert i expert⟨i⟩/w0
// f32[width hidden] and expert⟨i⟩/w1 f32[hidden width], so that they can be brought to
// a device one at a time; or, stacked, experts/w0 and experts/w1 of rank 3.
func MixtureOfExperts(c *Ctx, x graph.Value, o MixtureOptions) (y, balance graph.Value) {
	if !exact("mixture of experts", x, 3, "batch, length and width") {
		return graph.Value{}, graph.Value{}
	}
	shape := x.Type().Shape
	groups, size := o.Groups(shape[0].Size * shape[1].Size)
	if err := o.check(size, o.factor(c.Training())); err != nil {
		c.Graph().Fail(err)
		return graph.Value{}, graph.Value{}
	}
	defer c.Enter()()
	m := mixture{Ctx: c, MixtureOptions: o, groups: groups, size: size, width: shape[2].Size}
	m.weights()
	x = ops.ReshapeSizes(x, groups, size, m.width)
	r := m.route(x)
	if o.Sparse {
		y = m.sparse(x, r)
	} else {
		y = m.dense(x, r)
	}
	return ops.Reshape(y, c.like(shape[0]), c.like(shape[1]), c.like(shape[2])), r.balance
}

// mixture builds one mixture of experts.
type mixture struct {
	*Ctx
	MixtureOptions
	groups, size, width int // tokens fall into groups of a size

	gate   graph.Value
	w0, w1 []graph.Value // of each expert, or one for all
}

// routing says which experts each token goes to, [groups tokens]: i32 choices,
// the second −1 where there is none, and f32 weights.
type routing struct{ first, second, weight1, weight2, balance graph.Value }

// weights makes the parameters.
func (m *mixture) weights() {
	experts, width, hidden := m.Dim("experts", m.Experts), m.width, m.Hidden
	m.gate = m.ParamOf("gate", LeCun, graph.Type{DType: graph.F32,
		Shape: []graph.Dim{{Size: width}, experts}})
	if m.Stacked {
		stacked := func(name string, in, out int) []graph.Value {
			init := Exactly(LeCun(in, out))
			return []graph.Value{m.ParamOf(name, init, graph.Type{DType: graph.F32,
				Shape: []graph.Dim{experts, {Size: in}, {Size: out}}})}
		}
		m.w0, m.w1 = stacked("experts/w0", width, hidden), stacked("experts/w1", hidden, width)
		return
	}
	for i := range m.Experts {
		expert := m.Of(fmt.Sprintf("expert%d", i))
		m.w0 = append(m.w0, expert.Param("w0", LeCun, width, hidden))
		m.w1 = append(m.w1, expert.Param("w1", LeCun, hidden, width))
		c := m.Graph()
		c.Place(m.w0[i], "experts", i, m.Experts)
		c.Place(m.w1[i], "experts", i, m.Experts)
	}
}

// route gives every token of x, f32[groups tokens width], its two best experts.
// Both count in the weights, even if the second is then left out by chance.
func (m *mixture) route(x graph.Value) (r routing) {
	c := m.In("gate")
	defer c.Enter()()
	noise := c.Noise("")
	gates := ops.Softmax(ops.MatMul(x, m.gate))
	first, second := ops.Top2(gates, c.Seed(), noise, 0)
	_, kept := ops.Top2(gates, c.Seed(), noise, m.Threshold)
	g1, g2 := ops.TakeLast(gates, first), ops.TakeLast(gates, second)
	if m.Training() {
		r.balance = m.balance(gates, first)
	}
	total := ops.AddScalar(ops.Add(g1, g2), 1e-9)
	r.first, r.second, r.weight1, r.weight2 = first, kept, ops.Div(g1, total), ops.Div(g2, total)
	return r
}

// balance is the mean over groups and experts of the share of first choices times
// the mean gate, by the experts' number squared. Only the gates have a gradient.
func (m *mixture) balance(gates, first graph.Value) graph.Value {
	share := ops.Mean(ops.OneHot(first, m.Experts), 1)
	e := float32(m.Experts)
	return ops.Scale(ops.Mean(ops.Mul(ops.Mean(gates, 1), share)), e*e)
}

// dense moves tokens to experts and back by matrix products with 0/1 and weight
// matrices [groups tokens slots]. An expert has capacity slots in a group;
// tokens that find none left are passed over.
func (m *mixture) dense(x graph.Value, r routing) graph.Value {
	capacity := m.Slots(m.size, m.factor(m.Training()))
	slot1, slot2 := ops.Positions(r.first, r.second, m.Experts, capacity)
	dispatch := ops.Dispatch(slot1, slot2, m.Experts*capacity)
	e, groups := m.Experts, m.groups
	y := ops.MatMulT(dispatch, x, true, false) // [groups experts·capacity width]
	if groups > 1 {
		y = ops.Transpose(ops.ReshapeSizes(y, groups, e, capacity, m.width), 1, 0, 2, 3)
	}
	y = m.experts(ops.ReshapeSizes(y, e, groups*capacity, m.width))
	if groups > 1 {
		y = ops.Transpose(ops.ReshapeSizes(y, e, groups, capacity, m.width), 1, 0, 2, 3)
	}
	combine := ops.Combine(slot1, slot2, r.weight1, r.weight2, e*capacity)
	return ops.MatMul(combine, ops.ReshapeSizes(y, groups, e*capacity, m.width))
}

// experts is every expert on its tokens, f32[experts tokens width].
func (m *mixture) experts(x graph.Value) graph.Value {
	if m.Stacked {
		return ops.MatMul(ops.Relu(ops.MatMul(x, m.w0[0])), m.w1[0])
	}
	parts := ops.Unstack(x)
	for i, x := range parts {
		leave := m.In(fmt.Sprintf("expert%d", i)).Enter()
		parts[i] = ops.MatMul(ops.Relu(ops.MatMul(x, m.w0[i])), m.w1[i])
		leave()
	}
	return ops.Stack(parts...)
}

// sparse moves tokens to experts and back by gathering rows, packed by expert.
// No token is passed over: there is room for two choices of every token.
func (m *mixture) sparse(x graph.Value, r routing) graph.Value {
	tokens := m.groups * m.size
	rows, inv, offsets := ops.Route(r.first, r.second, m.Experts)
	y := ops.GatherRows(ops.ReshapeSizes(x, tokens, m.width), rows, inv)
	y = m.packed(m.w1, ops.Relu(m.packed(m.w0, y, offsets)), offsets)
	weights := ops.Concat(1, ops.ReshapeSizes(r.weight1, tokens, 1),
		ops.ReshapeSizes(r.weight2, tokens, 1))
	return ops.CombineRows(y, weights, inv, rows)
}

// packed multiplies rows, packed by expert, by their experts' weights.
func (m *mixture) packed(w []graph.Value, x, offsets graph.Value) graph.Value {
	if m.Stacked {
		return ops.GroupedMatMul(x, w[0], offsets)
	}
	return ops.ExpertMatMul(x, w, offsets)
}
