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
//	x := g.Input("x", …)
//	w := g.Variable("w", …)
//	loss := …
//	grads := autodiff.Grad(loss, w)
//	ops.SGD(w, grads[0], lr)
//	s, err := gomem.Compile(ctx, g, gomem.Options{}, gomem.Training(g, loss))
//	out, err := s.Step(ctx, "train", gomem.Feeds{x: batch})
//
// A session outlives errors: a step that is refused changes nothing, and one that
// fails says which variables it had begun to write (see [StepError]).
//
// Plans do not affect results: any policy, budget, partition size or number of
// streams and threads gives bit-identical values on the same kind of device.
package gomem
