// Package onnx makes networks of package nn of ONNX's files: graphs with gradients, which are
// planned, trained and run like any other.
//
//	net, err := onnx.Open("resnet50.onnx", onnx.Options{Sizes: map[string]int{"batch": 8}})
//	m := nn.NewModel()
//	in := net.Inputs(m)
//	labels := m.Input("labels", graph.I32, 8)
//	m.Minimize(nn.CrossEntropy(net.Apply(m.Training(), in...)[0], labels), nn.Adam{})
//	…
//	err = net.Load(session.Set)
//
// # What becomes of a file
//
// A graph's shapes are fixed when it is built, and so is a plan. So symbolic axes of inputs are
// bound to sizes first, and what the file computes of shapes is computed while the network is
// built: a node all of whose operands are known then is executed at once (if its result is small),
// and what an operator needs to know, such as the sizes of a Reshape, has to come from there. If
// it depends on data, it is refused with the node's name.
//
// Initialisers of floating-point numbers are parameters, by their names, which training changes;
// scalars among them, and all integers, are constants, for exporters write those as initialisers,
// too. Options.Frozen says what is not to be trained; it has the file's type in memory. Means and
// variances of norms are averages.
//
// All operators that are not known are named in one error before anything is built. An attribute
// that is there and that nobody asks for is an error of its node: nothing is passed over in
// silence, and what cannot be kept exactly is refused, never approximated.
//
// Loops and branches are unrolled, or chosen, where what decides them is known, and operations of
// package control otherwise; a loop whose end depends on data needs a bound.
//
// # Networks that are not trained
//
// Of such (Options.Untrained) what is the same at every step is computed when weights are loaded: a
// norm that uses averages becomes part of the filters, or the matrix, before it and their bias, and
// a weight that a Transpose turns round is stored so. That changes results by rounding, so it is
// what the network is, and no plan's choice; its variables are other than those of one that is
// trained. What something else reads, too, is as it is.
//
// # The other way
//
// Export writes what outputs of a graph are computed of as a file, for operations that ONNX has a
// form of. What depends on constants alone is written as a constant.
//
// # Passes
//
// A network may be applied in several passes, in training and in evaluation ones, which share its
// parameters. Dropout acts in training passes. A norm uses the batch's statistics where the file
// says that it trains, and then in training passes only.
package onnx
