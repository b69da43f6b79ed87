package randgraph

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// exchanged is what workers make of a value together, beside what Collective draws: of some rows
// only, as many as a table says, and of one worker's for another.
func exchanged(b *wide) []graph.Value {
	name, parts, n, d := fmt.Sprint("of", b.made), b.size(3), b.size(3), b.size(3)
	switch b.pick(5) {
	case 0:
		all := ops.AllGatherSome(b.of(n, d), b.ranks(parts*n, parts), name, "a", parts)
		return ops.Split(all, parts)
	case 1:
		x, ranks := b.of(parts*n, d), b.ranks(parts*n, parts)
		return one(ops.ReduceScatterSome(x, ranks, name, "", parts))
	case 2:
		return one(ops.CollectivePermute(b.of(n, d), name, "b", b.rng.Perm(parts)...))
	case 3:
		counts := b.ids(n+1, parts)
		rows, came := ops.AllToAllV(b.of(parts*n, d), counts, name, "a", parts)
		return []graph.Value{rows, came}
	}
	return one(ops.AllReduce(b.of(n, d), name, "", parts))
}

// ranks are those workers that have to do with each of some rows.
func (b *wide) ranks(rows, parts int) graph.Value {
	t := tensor.New(tensor.Of(graph.I32, rows, parts))
	for r := range rows {
		for k, rank := range b.rng.Perm(parts) {
			if t.I32()[r*parts+k] = int32(rank); b.rng.IntN(4) == 0 {
				t.I32()[r*parts+k] = -1
			}
		}
	}
	return b.g.Constant("ranks", t)
}

// exchange replaces gradients by what all workers have for them, or by the parts of all.
func (b *wide) exchange(grads []graph.Value) {
	for i, dw := range grads {
		if !dw.Valid() || b.pick(2) == 0 {
			continue
		}
		name := fmt.Sprint("gradient", i)
		if b.pick(2) == 0 || dw.Type().Rank() == 0 {
			grads[i] = ops.Await(ops.Send(dw, name, graph.How{}, b.gate()...))
			continue
		}
		all := ops.Await(ops.SendPart(dw, name, 2, b.gate()...))
		b.g.InPhase(graph.Update, func() {
			parts := ops.Split(all, 2)
			grads[i] = ops.Add(parts[0], parts[1])
		})
	}
}
