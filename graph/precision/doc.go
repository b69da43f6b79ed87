// Package precision says in what numbers a graph is computed, and makes the graph of it.
//
// # TF32
//
// The graph says: f32, but for indices. A GPU multiplies matrices several times as fast if it may
// round what it multiplies to 10 bits behind the point first ([TF32]): values stay f32, in memory
// and in all other operations, and sums are of f32. The graph stays as it is.
//
// # Bfloat16
//
// [Lower] makes a graph that computes in bfloat16, which has the range of f32 and 8 bits of it:
// so gradients neither vanish nor overflow where they would not in f32, and losses need not be
// scaled, as they would for 16-bit floats of other kinds.
//
// Variables stay as they are, f32, and so do optimizers' states and updates. In the forward and
// the backward pass a product of matrices, a convolution or a table takes its operands rounded,
// and a recurrent layer its input, but neither its weights nor what it keeps for its gradient. A
// weight is rounded once in a step, by a node of its own that is named after it. What these make
// is bfloat16, and what is made of bfloat16 is, too, with its gradients: activations and
// residuals, norms, softmax. Each operation computes in f32 and rounds its results once
// ([ops.InBF16]); sums, losses, statistics of norms and gradients of their scales stay f32
// ([ops.HalvingOf]). Gradients become f32 where updates read them, in the update phase, so that
// what moves to the host is bfloat16. What is fetched has the type that it had.
//
// That is what others call training in bfloat16 with master weights: activations take half the
// memory, residuals too. PyTorch's autocast keeps residuals and norms' results in f32.
//
// What is made by one node is rounded once. What is added up by many, as the gradients of a
// weight that is read at every step of an unrolled network, is rounded after every addition.
//
// What only moves elements, to where all who read them take them rounded, has them rounded first,
// which comes to the same bits: windows over frames are never there in f32. Slices of weights are
// rounded themselves.
//
// Lower comes after a mesh has divided the graph and before operations are fused or split: those
// keep bits, and an operation in bfloat16 is one like any other to them.
package precision
