//go:build linux && amd64 && !nocuda

package driver

// Numbers of cuda.h.
const (
	attributeUnits   = 16 // CU_DEVICE_ATTRIBUTE_...
	attributeThreads = 39
	attributeCopiers = 40
	attributeMajor   = 75
	attributeMinor   = 76
	attributeShared  = 97

	nonBlocking      = 1 // CU_STREAM_...
	threadLocal      = 1 // CU_STREAM_CAPTURE_MODE_...
	blockingSync     = 1 // CU_EVENT_...
	disableTiming    = 2
	portable         = 1 // CU_MEMHOSTREGISTER_...
	localSize        = 3 // CU_FUNC_ATTRIBUTE_...
	maxDynamicShared = 8

	paramEnd           = 0 // CU_LAUNCH_PARAM_...
	paramBufferPointer = 1
	paramBufferSize    = 2

	notReady    = 600 // CUDA_ERROR_...
	peerEnabled = 704
)

// Number of nvml.h.
const insufficientSize = 7 // NVML_ERROR_...

// Numbers of cublas_v2.h and what it includes.
const (
	real32     = 0 // CUDA_R_...
	bfloat16   = 14
	compute32  = 68 // CUBLAS_COMPUTE_...; no TF32
	fastTF32   = 77
	standard   = -1 // CUBLAS_GEMM_DFALT
	plain      = 0  // CUBLAS_OP_...
	transposed = 1

	majorVersion    = 0  // MINOR_VERSION and PATCH_LEVEL follow
	wholeReductions = 16 // CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
)

// Numbers of cudnn.h, in versions 8 and 9.
const (
	nchw             = 0 // CUDNN_TENSOR_...
	dataFloat        = 0
	dataBFloat16     = 9
	crossCorrelation = 1
	defaultMath      = 0 // which may be TF32
	tensorMath       = 1
	fmaMath          = 3
	precompGEMM      = 1 // CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_...
	dataAlgo1        = 1 // CUDNN_CONVOLUTION_BWD_...
	filterAlgo1      = 1
	archMismatch8    = 6 // CUDNN_STATUS_..., in version 8
	notSupported8    = 9
	notSupported     = 3000 // and the thousand from there, from version 9
)
