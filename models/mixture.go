package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// routing says which experts each token goes to, [groups tokens]: i32 choices,
// the second −1 where there is none, and f32 weights.
type routing struct{ first, second, weight1, weight2 graph.Value }

// mixture is the mixture of experts of x, f32[pairs length width].
func (p *moe) mixture(w mixture, x graph.Value) graph.Value {
	groups, size := p.groups()
	x = ops.ReshapeSizes(x, groups, size, p.Width)
	r := p.route(w.gate, x)
	if p.Sparse {
		x = p.sparse(w, x, r)
	} else {
		x = p.dense(w, x, r)
	}
	return ops.ReshapeSizes(x, p.Pairs, p.Length, p.Width)
}

// route gives every token of x, f32[groups tokens width], its two best experts.
// Both count in the weights, even if the second is then left out by chance.
func (p *moe) route(gate, x graph.Value) routing {
	defer p.scope("gate")()
	gates := ops.Softmax(ops.MatMul(x, gate))
	first, second := ops.Top2(gates, p.seed, p.path, 0)
	_, kept := ops.Top2(gates, p.seed, p.path, p.SecondThreshold)
	g1, g2 := ops.TakeLast(gates, first), ops.TakeLast(gates, second)
	if p.training {
		p.balance = append(p.balance, p.balanceLoss(gates, first))
	}
	total := ops.AddScalar(ops.Add(g1, g2), 1e-9)
	return routing{first, kept, ops.Div(g1, total), ops.Div(g2, total)}
}

// balanceLoss is 1 where a group's tokens are spread evenly over the experts, and
// up to the number of experts where they are not: the mean over groups and
// experts of the share of first choices times the mean gate, by E². Only the
// gates have a gradient.
func (p *moe) balanceLoss(gates, first graph.Value) graph.Value {
	share := ops.Mean(ops.OneHot(first, p.Experts), 1)
	e := float32(p.Experts)
	return ops.Scale(ops.Mean(ops.Mul(ops.Mean(gates, 1), share)), e*e)
}

// dense moves tokens to experts and back by matrix products with 0/1 and weight
// matrices [groups tokens slots]. An expert has capacity slots in a group;
// tokens that find none left are passed over.
func (p *moe) dense(w mixture, x graph.Value, r routing) graph.Value {
	factor := p.CapacityEval
	if p.training {
		factor = p.CapacityTrain
	}
	capacity := p.capacity(factor)
	slot1, slot2 := ops.Positions(r.first, r.second, p.Experts, capacity)
	dispatch := ops.Dispatch(slot1, slot2, p.Experts*capacity)
	groups, _ := p.groups()
	e := p.Experts
	y := ops.MatMulT(dispatch, x, true, false) // [groups experts·capacity width]
	if groups > 1 {
		y = ops.Transpose(ops.ReshapeSizes(y, groups, e, capacity, p.Width), 1, 0, 2, 3)
	}
	y = p.experts(w, ops.ReshapeSizes(y, e, groups*capacity, p.Width))
	if groups > 1 {
		y = ops.Transpose(ops.ReshapeSizes(y, e, groups, capacity, p.Width), 1, 0, 2, 3)
	}
	combine := ops.Combine(slot1, slot2, r.weight1, r.weight2, e*capacity)
	return ops.MatMul(combine, ops.ReshapeSizes(y, groups, e*capacity, p.Width))
}

// experts is every expert on its tokens, f32[experts tokens width].
func (p *moe) experts(w mixture, x graph.Value) graph.Value {
	if p.Stacked {
		return ops.MatMul(ops.Relu(ops.MatMul(x, w.w0[0])), w.w1[0])
	}
	parts := ops.Unstack(x)
	for i, x := range parts {
		leave := p.scope(fmt.Sprintf("expert%d", i))
		parts[i] = ops.MatMul(ops.Relu(ops.MatMul(x, w.w0[i])), w.w1[i])
		leave()
	}
	return ops.Stack(parts...)
}

// sparse moves tokens to experts and back by gathering rows, packed by expert.
// No token is passed over: there is room for two choices of every token.
func (p *moe) sparse(w mixture, x graph.Value, r routing) graph.Value {
	tokens := p.Pairs * p.Length
	rows, inv, offsets := ops.Route(r.first, r.second, p.Experts)
	y := ops.GatherRows(ops.ReshapeSizes(x, tokens, p.Width), rows, inv)
	y = p.packed(w.w1, ops.Relu(p.packed(w.w0, y, offsets)), offsets)
	weights := ops.Concat(1, ops.ReshapeSizes(r.weight1, tokens, 1),
		ops.ReshapeSizes(r.weight2, tokens, 1))
	return ops.CombineRows(y, weights, inv, rows)
}

// packed multiplies rows, packed by expert, by their experts' weights.
func (p *moe) packed(w []graph.Value, x, offsets graph.Value) graph.Value {
	if p.Stacked {
		return ops.GroupedMatMul(x, w[0], offsets)
	}
	return ops.ExpertMatMul(x, w, offsets)
}
