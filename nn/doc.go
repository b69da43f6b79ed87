// Package nn has what networks are made of: layers, initial values, losses,
// optimizers and schedules of the learning rate. Like package models it builds
// graphs and nothing else: a layer is a function that appends nodes, and
// takes none of the memory that computing them would.
//
//	m := nn.NewModel()
//	x, y := m.Input("x", graph.F32, 64, 784), m.Input("y", graph.I32, 64)
//	net := func(c *nn.Ctx) graph.Value {
//		h := nn.Relu(nn.Linear(c.In("hidden"), x, 256))
//		return nn.Linear(c.In("out"), h, 10)
//	}
//	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{})
//	logits := net(m.Evaluation())
//	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y))
//
// # Passes and places
//
// A network is a function of a [Ctx], the place where its layers are made, and is
// called once for every pass: one for training, in which dropout acts and norms use
// the batch's statistics, one for evaluation, and more as one likes. All are parts
// of one graph, so that they can be planned together.
//
// A place has a name, and so has a parameter: [Ctx.In] extends the one, [Ctx.Param]
// the other, and "hidden/weight" is what checkpoints call it. The first pass that asks
// for a parameter makes it, later passes find it; if they want another size, that
// is an error which says both lines. Within a pass a name stands for one use: two
// layers in one place by mistake are an error, not two layers that silently share
// their weights. Those that are to share say so, with [Ctx.Share]:
//
//	x := nn.Embedding(c.In("embedding"), ids, vocabulary, width)
//	…
//	logits := nn.Unembedding(c.Share("embedding"), x, vocabulary)
//
// # Errors
//
// Building has no `if err`. A mistake is recorded in the graph, with the line of the
// caller's program, the layers made of it are no values, and [Model.Err] says what
// the first one was.
//
// # Axes
//
// Axes have names, by which layouts refer to them: batch, length, heads, experts,
// vocabulary, and whatever inputs and options call theirs. Layers keep the names of
// what they are given, but for rows of a product: those get theirs back where a sum
// follows whose other operand has them, as every residual one does. A view that gave
// it at once would keep what follows from being fused with the product.
//
// # Training
//
// [Model.Minimize] differentiates a loss and appends the updates. An update needs
// its own gradient only, so that a planner starts it when that is done and the
// gradient's memory is free at once; the updates of the last layer are over when
// the first layer's gradient is computed.
//
// Clipping by the norm of all gradients has to wait: no update may start before the
// last gradient is done. It is made in two phases. When a gradient is done, its
// squares are summed, and it leaves the device, if updates are placed on the host:
// sum and scaling are of phase Update, like the optimizer's operations, and the
// policies place them together, so that a gradient moves once. When all sums are
// there, each update scales its gradient by the common factor. Clipping therefore
// costs host memory, for all gradients at once, but no device memory, and the
// traffic is the same. With variables on the device, it costs what all gradients
// take.
//
// Gradient accumulation makes one update of several executions. The objective has a
// variable for each parameter, the sum of the gradients so far, to which every
// execution adds; the last one, which the input "step" tells, updates with the mean
// and clears the sum ([ops.Gate]). The plan is the same for all of them, so the
// predicted peak holds for each.
//
// The mean is over all positions that count in the loss, as of one batch with those of all
// executions, and of all workers that exchange gradients: a batch weighs as much as it has
// of them. The losses of this package say how many those are, and so does any loss that is a
// sum divided by a sum which no parameter has a part in; of others see
// [MinimizeOptions].Counts. A term that is not a mean, such as a penalty, weighs as much.
// Running averages fold in, once an update, the mean of what the executions and workers have.
//
// # What it does not do
//
// There are no objects that hold weights, and nothing is computed while a network
// is built: shapes are known then, values are not. The elements that are trained
// are f32. Loops over a batch's data, saving and plans are other packages' (see
// package train), and so are ready networks (package models).
package nn
