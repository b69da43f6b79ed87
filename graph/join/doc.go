// Package join has losses of large vocabularies computed together with their gradients, or by the
// operations that they stand for: graph to graph, with the same results to the bit.
//
// Autodiff makes of a loss ([ops.LinearCrossEntropy]) a second node, its gradient, which computes
// the logits again, a block at a time, and so has the losses, too. Where it can run when the losses
// are needed, since the gradient of the losses does not depend on them, Join has it take the loss's
// place: three products instead of four. Where a loss is asked for without its gradient, by another
// target, both stay. A gradient of rows and of the matrix becomes one of rows alone where nobody
// wants that of the matrix, as where it is not trained: one product less, and no result of the
// matrix's size.
//
// Apart makes logits values again. That is what can be cut into parts, divided over a mesh, or
// computed in bfloat16; and where there are few rows, it needs less: a product has the matrix or
// its gradient, and never both.
package join
