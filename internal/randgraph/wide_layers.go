package randgraph

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// conv moves a filter over images, or the other way.
func conv(b *wide) []graph.Value {
	groups := b.size(2)
	in, out := groups*b.size(2), groups*b.size(2)
	n, h, w := b.size(2), 3+b.pick(4), 3+b.pick(4)
	kh, kw := b.size(3), b.size(3)
	c := ops.Conv{Stride: [2]int{b.size(2), b.size(2)}, Groups: groups}
	for i := range c.Pad {
		c.Pad[i] = b.pick(2)
	}
	if kh < 3 && kw < 3 {
		c.Dilation = [2]int{b.size(2), b.size(2)}
	}
	if b.pick(4) == 0 {
		c.Pad = [4]int{}
		return one(ops.ConvTranspose2D(b.of(n, out, 2, 2), b.weight(out, in/groups, kh, kw), c,
			[2]int{}))
	}
	y := ops.Conv2D(b.of(n, in, h, w), b.weight(out, in/groups, kh, kw), c)
	if b.pick(2) == 0 {
		y = ops.Relu(ops.Add(y, b.weight(out, 1, 1)))
	}
	return one(y)
}

// pooled takes the largest or the mean of windows.
func pooled(b *wide) []graph.Value {
	x := b.of(b.size(2), b.size(3), 3+b.pick(4), 3+b.pick(4))
	w := ops.Window{Size: [2]int{2 + b.pick(2), 2 + b.pick(2)},
		Stride: [2]int{b.size(2), b.size(2)}}
	for i := range w.Pad {
		w.Pad[i] = b.pick(2)
	}
	switch b.pick(3) {
	case 0:
		return one(ops.MaxPool2D(x, w))
	case 1:
		return one(ops.AvgPool2D(x, w))
	}
	return one(ops.GlobalMean(x))
}

// resized gives images other sizes.
func resized(b *wide) []graph.Value {
	n, c, h, w := b.size(2), b.size(2), b.size(3), b.size(3)
	switch b.pick(4) {
	case 0:
		return one(ops.ResizeBilinear(b.of(n, c, h, w), b.size(5), b.size(5)))
	case 1:
		return one(ops.ResizeNearest(b.of(n, c, h, w), 2))
	case 2:
		return one(ops.DepthToSpace(b.of(n, 4*c, h, w), 2))
	}
	return one(ops.SpaceToDepth(b.of(n, c, 2*h, 2*w), 2))
}

// norm normalises rows or images.
func norm(b *wide) []graph.Value {
	sizes := b.sizes(2, 4, 5)
	x, d := b.of(sizes...), sizes[len(sizes)-1]
	from := 1 + b.pick(len(sizes)-1)
	scale, bias := b.weight(sizes[from]), b.weight(sizes[from])
	switch b.pick(4) {
	case 0:
		return one(ops.LayerNorm(x, b.weight(d), b.weight(d), 1e-3))
	case 1:
		return one(ops.RMSNorm(x, b.weight(d), 1e-3))
	case 2:
		return one(ops.LayerNormOver(x, scale, bias, from, 1e-3))
	}
	return one(ops.LayerNormComposed(x, scale, bias, from, 1e-3))
}

// batchNorm normalises channels, by the batch or by running averages that it keeps.
func batchNorm(b *wide) []graph.Value {
	sizes := append([]int{1 + b.size(3), b.size(4)}, b.sizes(0, 2, 3)...)
	x, row := b.of(sizes...), tensor.Of(graph.F32, sizes[1])
	scale, bias := b.weight(sizes[1]), b.weight(sizes[1])
	mean := b.g.State("mean", row, graph.Init{})
	variance := b.g.State("variance", row, graph.Init{Scale: 1})
	if b.pick(3) == 0 {
		return one(ops.BatchNormInference(x, scale, bias, mean, variance, 1e-3))
	}
	y, m, v := ops.BatchNorm(x, scale, bias, 1e-3)
	b.more = append(b.more, ops.RunningAverage(mean, m, 0.9).ID,
		ops.RunningAverage(variance, v, 0.9).ID)
	return one(y)
}

// table looks rows up, whole or of parts of a table, and counts what is to be counted.
func table(b *wide) []graph.Value {
	n, d := 2*b.size(4), b.size(5)
	ids := b.ids(n, b.sizes(1, 2, 5)...)
	w := b.weight(n, d)
	switch b.pick(4) {
	case 0:
		parts := ops.Split(w, 2)
		return one(ops.Add(ops.EmbeddingPart(parts[0], ids, 0),
			ops.EmbeddingPart(parts[1], ids, n/2)))
	case 1:
		return one(ops.MatMul(ops.OneHot(ids, n), w))
	case 2:
		others := b.ids(n, ids.Type().Sizes()...)
		return one(ops.Add(ops.Embedding(w, ids), ops.Embedding(w, others)))
	}
	return one(ops.Embedding(w, ids))
}

// losses are those of classes.
func losses(b *wide) []graph.Value {
	sizes, v := b.sizes(1, 2, 4), 2+b.pick(4)
	labels := b.ids(v, sizes...)
	if d := b.size(3); b.pick(3) == 0 {
		x := b.of(append(sizes[:len(sizes):len(sizes)], d)...)
		switch b.pick(3) {
		case 0:
			return one(ops.LinearCrossEntropy(x, b.weight(v, d), labels, true, 0))
		case 1:
			w := ops.Cast(b.weight(v, d), graph.BF16)
			return one(ops.LinearCrossEntropyPacked(x, w, labels, "bf16", 0.1))
		}
		return one(ops.LinearCrossEntropy(x, b.weight(d, v), labels, false, 0.1))
	}
	logits := b.of(append(sizes[:len(sizes):len(sizes)], v)...)
	switch b.pick(4) {
	case 0:
		return []graph.Value{ops.CrossEntropy(logits, labels, 0.1), ops.Correct(logits, labels)}
	case 1:
		loss, count := ops.CrossEntropyIgnoring(logits, labels, b.positive(v), 0, 0.1)
		return []graph.Value{loss, count}
	case 2:
		loss, count := ops.CrossEntropyIgnoring(logits, labels, graph.Value{}, 1, 0)
		return []graph.Value{loss, count, ops.NotZero(labels)}
	}
	return one(ops.CrossEntropy(logits, labels, 0))
}

// ctc reads labels from frames.
func ctc(b *wide) []graph.Value {
	frames, batch, labels, symbols := 2+b.pick(4), b.size(3), b.size(3), 2+b.pick(3)
	y := b.ids(symbols-1, batch, labels)
	have := b.ids(labels+1, batch)
	from := b.ids(frames+1, batch)
	return []graph.Value{ops.CTCLoss(b.of(frames, batch, symbols), y, have, from),
		ops.CTCReadable(y, have, from)}
}

// lstm runs a recurrence, whole or a step of it at a time.
func lstm(b *wide) []graph.Value {
	steps, batch, in, n := b.size(4), b.size(3), b.size(3), b.size(3)
	h, c := b.of(batch, n), b.of(batch, n)
	w, bias := b.weight(in+n, 4*n), b.weight(4*n)
	x := b.of(steps, batch, in)
	if b.pick(2) == 0 {
		y, states := ops.LSTM(x, w, bias, h, c, 1)
		return []graph.Value{y, ops.StopGradient(states)}
	}
	for _, frame := range ops.Unstack(x) {
		h, c = ops.LSTMCell(ops.Add(ops.MatMul(ops.Concat(1, frame, h), w), bias), c, 1)
	}
	return []graph.Value{h, c}
}

// experts dispatches tokens of groups to experts with places for some.
func experts(b *wide) []graph.Value {
	groups, tokens, n, d, room := b.size(2), b.size(4), 2+b.pick(2), b.size(3), b.size(3)
	x, gates := b.of(groups, tokens, d), ops.Softmax(b.of(groups, tokens, n))
	first, second := ops.Top2(gates, b.seed, b.name(), 0.2)
	at1, at2 := ops.Positions(first, second, n, room)
	there := ops.MatMulT(ops.Dispatch(at1, at2, n*room), x, true, false)
	back := ops.Combine(at1, at2, ops.TakeLast(gates, first), ops.TakeLast(gates, second), n*room)
	return one(ops.MatMul(back, ops.Relu(ops.MatMul(there, b.weight(d, d)))))
}

// chosen packs the best choices of tokens, however many they are.
func chosen(b *wide, x, gates graph.Value, experts int) []graph.Value {
	best, choices := ops.TopK(gates, 1+b.pick(experts))
	rows, inv, offsets := ops.RouteChoices(choices, experts)
	weights, n := make([]graph.Value, experts), b.size(3)
	for i := range weights {
		weights[i] = b.variable(n, x.Type().Size(1))
	}
	y := ops.ExpertMatMulT(ops.GatherRows(x, rows, inv), weights, offsets)
	return one(ops.CombineRows(y, best, inv, rows))
}

// routed packs tokens by expert, and none is dropped.
func routed(b *wide) []graph.Value {
	tokens, n, d, k := b.size(5), 2+b.pick(2), b.size(3), b.size(3)
	x, gates := b.of(tokens, d), ops.Softmax(b.of(tokens, n))
	first, second := ops.Top2(gates, b.seed, b.name(), 0.2)
	rows, inv, offsets := ops.Route(first, second, n)
	packed := ops.GatherRows(x, rows, inv)
	var y graph.Value
	if b.pick(2) == 0 {
		y = ops.GroupedMatMul(packed, b.weight(n, d, k), offsets)
	} else {
		weights := make([]graph.Value, n)
		for i := range weights {
			weights[i] = b.variable(d, k)
		}
		y = ops.ExpertMatMul(packed, weights, offsets)
	}
	if b.pick(3) == 0 {
		return one(ops.SumRows(y, inv, rows))
	}
	if b.pick(4) == 0 {
		return chosen(b, x, gates, n)
	}
	both := ops.Stack(ops.TakeLast(gates, first), ops.TakeLast(gates, second))
	return one(ops.CombineRows(y, ops.Transpose(both, 1, 0), inv, rows))
}
