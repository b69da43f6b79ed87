package ops

import "github.com/gomem/gomem/internal/kernel/cuda"

// What is exact has the host's bits on a GPU: what moves, compares and draws elements, what
// computes each of them by itself, sums, and all updates. So these may be computed where a plan
// finds best. Of others, products of matrices before all, only forward and backward passes are
// made, which are the device's in every plan; see [github.com/gomem/gomem/program.Program.Hosted].
func init() {
	exactMoves()
	exactElements()
	exactSums()
	exactUpdates()
}

func exactMoves() {
	cuda.Exact[broadcast](nil)
	cuda.Exact[transpose](nil)
	cuda.Exact[concat](nil)
	cuda.Exact[cut](nil)
	cuda.Exact[stride](nil)
	cuda.Exact[unstride](nil)
	cuda.Exact[pad](nil)
	cuda.Exact[embedding](nil)
	cuda.Exact[embeddingPart](nil)
	cuda.Exact[take](nil)
	cuda.Exact[reorder](nil)
	cuda.Exact[gather](nil)
	cuda.Exact[gatherND](nil)
	cuda.Exact[scatterAt](nil)
	cuda.Exact[scatterND](nil)
	cuda.Exact[gatherLast](nil)
	cuda.Exact[takeLast](nil)
	cuda.Exact[putLast](nil)
	cuda.Exact[oneHot](nil)
	cuda.Exact[writeAt](nil)
	cuda.Exact[putAt](nil)
	cuda.Exact[sliceAt](nil)
	cuda.Exact[fill](nil)
	cuda.Exact[paddingMask](nil)
	cuda.Exact[causalMask](nil)
	cuda.Exact[causalMaskAt](nil)
	cuda.Exact[triangle](nil)
	cuda.Exact[send](nil)
	cuda.Exact[sendPart](nil)
	cuda.Exact[await](nil)
	cuda.Exact[sent](nil)
	cuda.Exact[arrive](nil)
}

func exactElements() {
	cuda.Exact[binary](nil)
	cuda.Exact[unary](nil)
	cuda.Exact[slope](nil)
	cuda.Exact[function](nil)
	cuda.Exact[siluGrad](nil)
	cuda.Exact[geluTanh](nil)
	cuda.Exact[geluTanhGrad](nil)
	cuda.Exact[affine](nil)
	cuda.Exact[clip](nil)
	cuda.Exact[clipGrad](nil)
	cuda.Exact[clippedRelu](nil)
	cuda.Exact[clippedReluGrad](nil)
	cuda.Exact[powScalar](nil)
	cuda.Exact[dropout](nil)
	cuda.Exact[jitter](nil)
	cuda.Exact[noiseWindow](nil)
	cuda.Exact[noiseAt](nil)
	cuda.Exact[noise](nil)
	cuda.Exact[noisePart](nil)
	cuda.Exact[foldIn](nil)
	cuda.Exact[chain](nil)
	cuda.Exact[notZero](nil)
	cuda.Exact[not](nil)
	cuda.Exact[cast](nil)
	cuda.Exact[compare](nil)
	cuda.Exact[numeric](nil)
	cuda.Exact[logic](nil)
	cuda.Exact[where](nil)
	cuda.Exact[keptLabels](nil)
	cuda.Exact[rotary](nil)
}

func exactSums() {
	cuda.Exact[sum](nil)
	cuda.Exact[sumLike](nil)
	cuda.Exact[sumPart](nil)
	cuda.Exact[sumSquares](nil)
	cuda.Exact[normFactor](nil)
	cuda.Exact[prod](nil)
	cuda.Exact[others](nil)
	cuda.Exact[cumSum](nil)
	cuda.Exact[extreme](nil)
	cuda.Exact[fold](nil)
	cuda.Exact[matMulNumbers](nil)
	cuda.Exact[arg](nil)
	cuda.Exact[correct](nil)
	cuda.Exact[topK](nil)
}

func exactUpdates() {
	cuda.Exact[sgd](nil)
	cuda.Exact[momentum](nil)
	cuda.Exact[nesterov](nil)
	cuda.Exact[lion](nil)
	cuda.Exact[adam](nil)
	cuda.Exact[adamW](nil)
	cuda.Exact[adamW16](nil)
	cuda.Exact[adamW8](nil)
	cuda.Exact[adafactor](nil)
	cuda.Exact(func(o every) bool { // else there is no kernel, and every plan has it on the host
		_, gated := o.Op.(gatedUpdate)
		return gated && cuda.IsExact(o.Op)
	})
	cuda.Exact[accumulate](nil)
	cuda.Exact[accumulateUntil](nil)
	cuda.Exact[assign](nil)
	cuda.Exact[runningAverage](nil)
}
