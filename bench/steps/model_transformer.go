package main

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// transformer is the loss of Vaswani et al. (2017): encoder and decoder,
// normalised after every residual, one embedding for source, target and logits.
func transformer(b *builder) graph.Value {
	source, target, labels := b.input("source"), b.input("target"), b.input("labels")
	x := b.embed(source)
	for i := range b.Layers {
		x = b.encode(fmt.Sprintf("encoder%d", i), x, graph.Value{}, b.forward)
	}
	causal := ops.CausalMask(b.graph, b.Length)
	y := b.embed(target)
	for i := range b.Layers {
		y = b.decode(fmt.Sprintf("decoder%d", i), y, x, causal)
	}
	return b.entropy(y, labels)
}

// decode is a layer of the decoder.
func (b *builder) decode(name string, y, memory, mask graph.Value) graph.Value {
	defer b.graph.Scope(name)()
	y = b.norm("norm1", ops.Add(y, b.attend("attention", y, y, mask)))
	y = b.norm("norm2", ops.Add(y, b.attend("cross", y, memory, graph.Value{})))
	return b.norm("norm3", ops.Add(y, b.forward(y)))
}
