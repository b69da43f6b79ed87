package randgraph

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// moved is a value whose elements are elsewhere.
func moved(b *wide) []graph.Value {
	sizes := b.sizes(2, 4, 5)
	x, along := b.of(sizes...), b.pick(len(sizes))
	n := sizes[along]
	switch b.pick(10) {
	case 0:
		return one(ops.Transpose(x, b.rng.Perm(len(sizes))...))
	case 1:
		return one(ops.Reverse(x, along))
	case 2:
		lo := b.pick(n)
		return one(ops.Slice(x, along, lo, lo+b.size(n-lo)))
	case 3:
		return one(ops.SliceStep(x, along, b.pick(n), n, b.size(3)))
	case 4:
		return one(ops.Pad(x, along, b.pick(3), b.pick(3)))
	case 5:
		return one(ops.Repeat(x, along, b.size(2)))
	case 6:
		return one(ops.Tile(x, b.size(2), b.size(2)))
	case 7:
		return one(ops.Tril(x, b.pick(4)-2))
	case 8:
		return one(ops.Triu(x, b.pick(4)-2))
	}
	return one(ops.Squeeze(ops.ExpandDims(x, along), along))
}

// indexed takes elements, or adds to them, where indices say.
func indexed(b *wide) []graph.Value {
	sizes := b.sizes(2, 3, 5)
	along := b.pick(len(sizes))
	x := b.of(sizes...)
	where := append([]int{}, sizes...)
	where[along] = b.size(4)
	at := b.ids(sizes[along], where...)
	switch b.pick(7) {
	case 0:
		return one(ops.Gather(x, at, along))
	case 1:
		return one(ops.ScatterAdd(x, at, b.of(where...), along))
	case 2:
		return one(ops.Take(x, b.ids(sizes[along], b.sizes(0, 2, 3)...), along))
	case 3:
		return one(ops.Reorder(x, b.ids(sizes[0], b.size(4))))
	case 4: // of another type than f32, which has no gradient
		x = ops.StopGradient(ops.Cast(x, graph.BF16))
		return one(ops.Take(x, b.ids(sizes[along], b.size(3)), along))
	case 5:
		lead, e := sizes[:len(sizes)-1], sizes[len(sizes)-1]
		return one(ops.PutLast(b.ids(e, lead...), b.of(lead...), e))
	}
	return one(ops.TakeLast(x, b.ids(sizes[len(sizes)-1], sizes[:len(sizes)-1]...)))
}

// placed reads and replaces rows at a position that is an operand.
func placed(b *wide) []graph.Value {
	sizes := b.sizes(2, 3, 5)
	along := b.pick(len(sizes))
	x, n := b.of(sizes...), b.size(sizes[along])
	at := b.ids(sizes[along] - n + 1)
	if b.pick(2) == 0 {
		return one(ops.SliceAt(x, at, along, n))
	}
	part := append([]int{}, sizes...)
	part[along] = n
	return one(ops.PutAt(x, b.of(part...), at, along))
}

// joined puts values together and takes them apart.
func joined(b *wide) []graph.Value {
	sizes := b.sizes(1, 4, 4)
	along := b.pick(len(sizes))
	xs := []graph.Value{b.of(sizes...)}
	for range b.pick(3) {
		sizes = append([]int{}, sizes...)
		sizes[along] = b.size(4)
		xs = append(xs, b.of(sizes...))
	}
	all := ops.Concat(along, xs...)
	switch b.pick(3) {
	case 0:
		return ops.Unstack(all)
	case 1:
		return one(ops.Stack(all, ops.Tanh(all)))
	}
	return one(all)
}

// masked hides positions.
func masked(b *wide) []graph.Value {
	batch, heads, length := b.size(2), b.size(2), b.size(4)
	logits := b.of(batch, heads, length, length)
	switch b.pick(4) {
	case 0:
		return one(ops.Softmax(ops.Add(logits, ops.CausalMask(b.g, length))))
	case 1:
		return one(ops.Softmax(ops.Add(logits, ops.CausalMaskAt(b.ids(3), length, length))))
	case 2:
		ids := b.ids(3, batch, length)
		return one(ops.MaskedSoftmax(ops.Add(logits, ops.PaddingMask(ids))))
	}
	return one(ops.MaskedSoftmax(ops.Where(b.choice(length, length), logits,
		ops.Full(b.g, logits.Type(), -1e9))))
}
