// Package gomem trains and runs neural networks that do not fit in device
// memory, under a hard memory budget.
//
// A model is a dataflow graph (package graph, with the operations of graph/ops
// and gradients from graph/autodiff). [Compile] decides everything about its
// execution before the first step: partitions, order, what lives on the host,
// what is swapped and when, and the address of every value. The result is a
// plan that can be printed and is verified; the peak it predicts is the peak
// that the run has, to the byte, and a budget that cannot be met is refused
// with the smallest one that can.
//
//	g := graph.New()
//	x, y := g.Input("x", graph.Of(graph.F32, 64, 2)), g.Input("y", graph.Of(graph.F32, 64, 1))
//	w := g.Variable("w", graph.Of(graph.F32, 2, 1), graph.Init{Dist: graph.Normal, Scale: 1})
//	loss := ops.Mean(ops.Square(ops.Sub(ops.MatMul(x, w), y)))
//	ops.SGD(w, autodiff.Grad(loss, w)[0], ops.Full(g, graph.Of(graph.F32), 0.1))
//	s, err := gomem.Compile(ctx, g, gomem.Options{DeviceBytes: 1 << 20}, gomem.Training(g, loss))
//	…
//	out, err := s.Step(ctx, "train", gomem.Feeds{x: points, y: values})
//	err = s.Save("weights.safetensors", gomem.SaveOptions{})
//
// Layers, losses and optimizers are in package nn, whose models build such graphs, and
// the loop over data is in package train.
//
// # Targets
//
// A session runs targets: what one kind of step fetches and which variables it updates.
// A graph may have any number of them, planned together and sharing the variables:
// evaluation beside training, batches of several sizes, a prompt and its continuation.
// Shapes are fixed when a graph is built, so that another size of batch is another
// target: another pass over the model in the same graph, with inputs, nodes and an
// update of its own for every variable ([Updating], and the example with batches). Build
// it within [graph.Graph.Rerun] if it has random operations. The session takes what the
// largest target needs, not the sum. Any value can be fetched; a variable as it was
// before the step.
//
// # Errors and results
//
// A session outlives errors: a step that is refused changes nothing, and one that
// fails says which variables it had begun to write (see [StepError]).
//
// Plans do not affect results: any policy, budget, partition size or number of
// streams and threads gives bit-identical values on the same kind of device.
package gomem
