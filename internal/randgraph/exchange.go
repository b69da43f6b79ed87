package randgraph

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// exchange replaces some of the gradients by what workers make of them: all sends before
// all awaits, or each await after its send; some by a gate. It exchanges other values too,
// among them leaves, views and what came of an exchange, and returns some to be fetched.
func (b *builder) exchange(grads []graph.Value, step graph.Value) (fetches []graph.Value) {
	apart := b.pick(2) == 0
	var pending []func()
	send := func(v graph.Value, done func(graph.Value)) {
		name := fmt.Sprintf("x%d", b.sent)
		b.sent++
		how := []graph.How{{}, {Fold: graph.Sum}, {Via: "ring"}, {Fold: graph.Gather}}[b.pick(4)]
		var gate []ops.Gate
		if b.pick(4) == 0 {
			gate = append(gate, ops.Gate{Every: 2, Step: step})
		}
		var await func()
		if how.Fold == graph.Gather {
			await = b.gather(v, name, gate, done)
		} else {
			flying := ops.Send(v, name, how, gate...)
			await = func() { done(ops.Await(flying)) }
		}
		if pending = append(pending, await); !apart {
			await()
		}
	}
	for i, dw := range grads {
		if dw.Valid() && b.pick(4) > 0 {
			send(dw, func(v graph.Value) { grads[i] = v })
		}
	}
	for range b.pick(3) {
		v := b.any()
		switch b.pick(4) {
		case 0:
			v = b.vars[b.pick(len(b.vars))]
		case 1:
			v = ops.ReshapeSizes(v, b.rows*b.cols)
		}
		send(v, func(v graph.Value) {
			if b.pick(3) == 0 {
				send(ops.Scale(v, 0.5), func(v graph.Value) { fetches = append(fetches, v) })
			} else if b.pick(2) == 0 {
				v = ops.Tanh(v)
			}
			fetches = append(fetches, v)
		})
	}
	for i := 0; apart && i < len(pending); i++ {
		pending[i]()
	}
	return fetches
}

// gather sends a value as one of up to three parts, and has what comes back as one of them,
// or as the sum of all.
func (b *builder) gather(v graph.Value, name string, gate []ops.Gate,
	done func(graph.Value)) (await func()) {
	parts := 1 + b.pick(3)
	flying := ops.SendPart(v, name, parts, gate...)
	return func() {
		all := ops.Split(ops.Await(flying), parts)
		x := all[b.pick(parts)]
		for i := 0; b.pick(2) == 0 && i < parts; i++ {
			x = ops.Add(x, all[i])
		}
		done(x)
	}
}

// jointly is what workers make of a value together, in the value's type.
func (b *builder) jointly(v graph.Value) graph.Value {
	name, along := fmt.Sprintf("c%d", b.sent), []string{"", "a", "b"}[b.pick(3)]
	b.sent++
	any, even := 1+b.pick(3), 1+b.pick(2) // workers; of those, that divide the rows
	switch b.pick(8) {
	case 0:
		v = ops.AllGather(v, name, along, any)
		return ops.Split(v, any)[b.pick(any)]
	case 1:
		block := ops.ReduceScatter(v, name, along, even)
		return ops.Concat(0, block, ops.Slice(v, 0, b.rows/even, b.rows))
	case 2:
		if b.sent%2 == 0 {
			counts := tensor.New(tensor.Of(graph.I32, even))
			counts.I32()[0] = int32(b.pick(b.rows/even + 1))
			v, _ = ops.AllToAllV(v, b.g.Constant(name+"/rows", counts), name, along, even)
			return v
		}
		return ops.AllToAll(v, name, along, even)
	case 3:
		return ops.Broadcast(v, name, along, any, b.pick(any))
	case 4:
		return ops.ReduceTo(ops.Tanh(v), name, along, any, b.pick(any))
	case 5: // a byte each, and all of them
		all := ops.AllGather(ops.Less(v, b.any()), name, along, any)
		return ops.Where(ops.Split(all, any)[b.pick(any)], v, ops.Neg(v))
	case 6: // of a variable
		return ops.MatMul(v, ops.AllReduce(b.weight(), name, along, any))
	}
	return ops.AllReduce(v, name, along, any)
}
