// Package gorgonia trains and runs graphs of Gorgonia (gorgonia.org/gorgonia, G below) by plans,
// within a budget of memory.
//
//	g := G.NewGraph()
//	… // x, y, learnables and loss as ever, but no G.Grad and no machine
//	p, err := gorgonia.New(ctx, loss, learnables, gorgonia.Options{
//		Solver: G.NewAdamSolver(), Gomem: gomem.Options{DeviceBytes: 64 << 20}})
//	for … {
//		G.Let(x, batch)
//		err = p.Step(ctx) // loss.Value() and the learnables' values are new
//	}
//
// # Graphs
//
// What the loss depends on is translated, node by node: nodes without an operation become inputs,
// whose values every step takes from the nodes, learnables become variables, and operations those
// of graph/ops. Everything that cannot be honoured is named at once, with its nodes, by
// [ErrRefused]; nothing is computed in another way than it says. A convolution, which Gorgonia
// makes of im2col and a product of matrices, is one again where numbers are f32.
//
// Gradients are by graph/autodiff, of the translated graph. What G.Grad has added to Gorgonia's
// graph, before or after, does not matter, since no loss depends on it.
//
// Operations say by unexported fields what they are. Package reflect reads them, of the version of
// Gorgonia that go.mod requires; of another one, a field that is missing is an error.
//
// # Where values differ
//
// Results are those of Gorgonia's TapeMachine within rounding, which the tests hold all operations
// to, but for these:
//
//   - Dropout and random nodes draw other numbers, by [Options.Seed].
//   - Elements that share a maximum share its gradient; Gorgonia gives each the whole of it.
//
// # Memory
//
// Values of inputs and learnables are Gorgonia's, in host memory and outside of budgets. Variables
// live in the session; after a step their values are copied to the nodes.
package gorgonia
