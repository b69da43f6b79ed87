// Package ops is the operation set, one file an operation: constructor, shape
// rule, cost, gradient, CPU kernel and samples.
//
// An operation is a small comparable struct whose fields are its attributes.
// Its constructor applies it to values of a graph; a mistake in the operands is
// recorded in the graph (see [graph.Graph.Err]) and yields the zero value.
// Gradients are built from the same operations, so they can be differentiated
// again. The kernels are registered for the CPU when the package is
// initialised. They split their work over outputs, or a long sum into blocks that
// the shape alone fixes, so results do not depend on the number of threads.
//
// # What there is
//
// Elementwise, broadcasting: [Add] and its like, [Mod], [Pow], [Maximum], [Minimum], [Where],
// comparisons ([Less]) and logic ([And]), bits ([BitAnd], [ShiftLeft]); functions such as [Exp],
// [Abs], [Round], [Sin], [Erf], [Clip]; activations such as [Relu], [Gelu], [Silu], [Softplus].
//
// Along axes: [Sum], [Mean], [Max], [Min], [Prod], [LogSumExp], [Any], [All], [ArgMax],
// [TopK], [TopKAlong], [Sort], [CumSum], [Softmax], the norms.
//
// Products: [MatMul], whose batches broadcast; [Conv2D], and [ConvN] and [ConvTransposeN] of
// one to three axes; LSTMs and mixtures of experts; [Attention] in memory that grows with the
// length. Windows: [MaxPool2D], [AvgPool2D], and of
// one to three axes [MaxPool], [MaxPoolIndices], [MaxUnpool], [AvgPool],
// [LpPool]. Images of another size: [ResizeBilinear],
// [GridSample].
//
// Elements elsewhere: [Reshape], [ExpandDims], [Transpose], [Slice], [SliceStep],
// [Reverse], [Concat], [Stack], [Pad], [BroadcastTo], [Tile], [Repeat], [Tril]; by
// indices [Take], [Gather], [GatherND], [Scatter], [ScatterND], [ScatterAdd], [Embedding],
// [OneHot]; at a position that is an operand [SliceAt], [PutAt], [WriteAt], [Rotary],
// [CausalMaskAt].
//
// Losses: [CrossEntropy], [CrossEntropyIgnoring], [LinearCrossEntropy],
// [LinearCrossEntropyIgnoring], [LinearCrossEntropyPacked], [CTCLoss]. Updates of variables:
// [Assign], [Accumulate], the optimizers. [StopGradient] ends what is differentiated.
//
// Between the workers of a job: [Send], [Await].
//
// Semantics where there is a choice (NaN, ties, halves, the sign of zero, indices of
// equals) are PyTorch's, and bench/parity compares values, gradients and second gradients
// with it.
//
// # Element types
//
// What only moves or compares elements, and [Cast], take any type. Arithmetic ([Add], [Sub], [Mul],
// [Div], [Mod], [Remainder], [Maximum], [Minimum], [Pow], [Neg], [Abs], [Sign], [Square], [Relu])
// takes numbers of any type: integers wrap, and have no gradient; f64 is computed as such; and bf16
// and f16 are computed in f32 and rounded once. So are elementwise functions of those two. Of f64
// there are [Exp], [Log], [Sqrt], [Rsqrt], [Tanh], [Sigmoid], [Sin], [Cos] (NaN beyond 2²⁰),
// [Floor], [Ceil], [Trunc], [Round], [Reciprocal], [Scale] and [AddScalar]; no others. [Sum],
// [Mean] (not of integers), [Prod], [Max], [Min], [ArgMax] and [ArgMin] take numbers of any type;
// [CumSum] f32, f64 and integers of 32 bits or 64; [MatMul] all floating-point numbers and i32, and
// [MatMulInteger] bytes. Operations on bits take integers. All else takes f32: [Cast] converts
// others, and [InBF16] makes of an operation in f32 one that reads and writes bfloat16.
//
// # Parts
//
// An operation says over which of its axes it divides (graph.Splitter, in files rule*.go), and
// parts that are computed apart and joined have the bits of the whole, although bits depend
// on sizes: a product of few rows is summed in another order, and a sum in other blocks.
// Such a part is an operation of its own, which knows the sizes of the whole, and one of a
// random operation has a window on the stream of numbers. Convolutions and LSTMs divide into
// parts so large that they need no such thing. Where results are sums over an axis, parts of
// it are partial sums, which are the whole within rounding.
//
// # A new one
//
// Adding an operation touches one file: the samples that it lists are run by
// ops_test.go through every check there is (shape rule against kernel, bad
// operands, gradient and second gradient by central differences, recompute,
// threads, in-place, cost, benchmark). What it is on a GPU stands in the cuda_*.go of
// its family, and cuda_test.go runs the samples there, too. A program that wants one of its own
// need not change this package: see package custom.
package ops
