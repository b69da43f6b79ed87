package ops

import "github.com/gomem/gomem/graph"

// Halving is how an operation goes over to bfloat16: which operands of f32 it takes rounded, and
// which results are.
type Halving struct {
	Operands bool  // operands of f32 are rounded, even if all are
	Results  uint8 // those that are rounded if an operand is: 1 for the first
}

// HalvingOf says how an operation that is forward or backward, and computes, goes over. Products
// of matrices, convolutions and tables take their operands rounded, as mixed precision in other
// frameworks has it (PyTorch's autocast); all else follows its operands. What is added up over
// elements or positions stays f32: sums, losses, statistics of norms, gradients of their scales,
// and choices of experts.
func HalvingOf(op graph.Op) Halving {
	switch op.(type) {
	case matMul, matMulBroadcast, matMulPart, matMulLike, conv2D, convInputGrad, convFilterGrad,
		embedding, embeddingPart, expertMatMul,
		expertJoin, expertJoinT, expertOuter, groupedMatMul, groupedOuter, groupedMatMulPart,
		groupedOuterPart:
		return Halving{true, every16}
	case batchNorm, batchNormGrad, layerOverGrad,
		lstm: // not what a recurrent layer keeps for its gradient
		return Halving{false, 1}
	case lstmGrad: // not those of weights and bias, which kernels read and write in f32
		return Halving{false, every16 &^ 6}
	case sum, sumLike, sumPart, prod, others, cumSum, logSumExp, crossEntropy, correct, ctc,
		ctcGrad, sumSquares, layerScaleGrad, rmsScaleGrad, top2, top2Window, dotRows:
		return Halving{}
	}
	return Halving{false, every16}
}

// every16 is all results.
const every16 = 0xff
