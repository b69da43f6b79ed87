//go:build linux && amd64 && !nocuda

package driver

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// headers are functions' forms and numbers' values, as testdata/headers.txt has them.
func headers(t *testing.T) (forms map[string]string, numbers map[string]int) {
	t.Helper()
	text, err := os.ReadFile("testdata/headers.txt")
	if err != nil {
		t.Fatal(err)
	}
	forms, numbers = map[string]string{}, map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, value, ok := strings.Cut(line, " = "); ok {
			if numbers[name], err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
			continue
		}
		name, form, _ := strings.Cut(line, " ")
		forms[name] = form
	}
	return forms, numbers
}

// TestBoundAsDeclared: every function that is bound is declared by NVIDIA's headers, and nothing
// else is said to be.
func TestBoundAsDeclared(t *testing.T) {
	forms, _ := headers(t)
	bound := slices.Sorted(slices.Values(slices.Concat(driverSymbols(), nvrtcSymbols(),
		cublasSymbols(), cudnnSymbols(), nvmlSymbols())))
	var declared []string
	for name := range forms {
		declared = append(declared, name)
	}
	slices.Sort(declared)
	if !slices.Equal(bound, declared) {
		t.Errorf("bound are %q, declared %q", bound, declared)
	}
}

// TestEmulatedAsDeclared: the emulator's functions, by which calls are tested, return and take
// what NVIDIA's do.
func TestEmulatedAsDeclared(t *testing.T) {
	forms, _ := headers(t)
	files, err := filepath.Glob("../emu/src/*.cpp")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	function := regexp.MustCompile(`(?m)^API ([^(;]+?)(\w+)\(([^)]*)\)\s*\{`)
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			seen++
			if got, want := form(m[1], m[3]), forms[m[2]]; got != want {
				t.Errorf("%s: %s is %q, declared %q", file, m[2], got, want)
			}
		}
	}
	if seen != len(forms) {
		t.Errorf("%d functions are emulated, %d declared", seen, len(forms))
	}
}

// form is how a function's result and parameters are passed.
func form(result, parameters string) string {
	s := class(result)
	if parameters == "" {
		return s
	}
	s += " "
	for p := range strings.SplitSeq(parameters, ",") {
		s += class(p)
	}
	return s
}

// class is how a value of a type is passed.
func class(declared string) string {
	switch {
	case strings.Contains(declared, "*"):
		return "p"
	case strings.Contains(declared, "char"):
		return "c"
	case regexp.MustCompile(`\b(size_t|uint64_t|long)\b`).MatchString(declared):
		return "l"
	}
	return "i"
}

// TestNumbersAsDeclared: numbers are those of NVIDIA's headers.
func TestNumbersAsDeclared(t *testing.T) {
	_, want := headers(t)
	got := map[string]int{
		"CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT":              attributeUnits,
		"CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT":                attributeCopiers,
		"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR":          attributeMajor,
		"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR":          attributeMinor,
		"CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": attributeShared,
		"CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR":    attributeThreads,
		"CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES":                    localSize,
		"NVML_ERROR_INSUFFICIENT_SIZE":                          insufficientSize,
		"CU_STREAM_NON_BLOCKING":                                nonBlocking,
		"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL":                   threadLocal,
		"CU_EVENT_BLOCKING_SYNC":                                blockingSync,
		"CU_EVENT_DISABLE_TIMING":                               disableTiming,
		"CU_MEMHOSTREGISTER_PORTABLE":                           portable,
		"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES":       maxDynamicShared,
		"CU_LAUNCH_PARAM_END":                                   paramEnd,
		"CU_LAUNCH_PARAM_BUFFER_POINTER":                        paramBufferPointer,
		"CU_LAUNCH_PARAM_BUFFER_SIZE":                           paramBufferSize,
		"CUDA_ERROR_NOT_READY":                                  notReady,
		"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED":                peerEnabled,
		"CUBLAS_OP_N":                                           plain,
		"CUBLAS_OP_T":                                           transposed,
		"CUDA_R_32F":                                            real32,
		"CUDA_R_16BF":                                           bfloat16,
		"CUBLAS_COMPUTE_32F":                                    compute32,
		"CUBLAS_COMPUTE_32F_FAST_TF32":                          fastTF32,
		"CUBLAS_GEMM_DFALT":                                     standard,
		"CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION":      wholeReductions,
		"CUDNN_TENSOR_NCHW":                                     nchw,
		"CUDNN_DATA_FLOAT":                                      dataFloat,
		"CUDNN_DATA_BFLOAT16":                                   dataBFloat16,
		"CUDNN_TENSOR_OP_MATH":                                  tensorMath,
		"CUDNN_CROSS_CORRELATION":                               crossCorrelation,
		"CUDNN_DEFAULT_MATH":                                    defaultMath,
		"CUDNN_FMA_MATH":                                        fmaMath,
		"CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM":      precompGEMM,
		"CUDNN_CONVOLUTION_BWD_DATA_ALGO_1":                     dataAlgo1,
		"CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1":                   filterAlgo1,
		"CUDNN_STATUS_NOT_SUPPORTED":                            notSupported,
		"MAJOR_VERSION":                                         majorVersion,
		"MINOR_VERSION":                                         majorVersion + 1,
		"PATCH_LEVEL":                                           majorVersion + 2,
	}
	got["offsetof(nvmlProcessInfo_t, pid)"] = int(unsafe.Offsetof(process{}.pid))
	got["offsetof(nvmlProcessInfo_t, usedGpuMemory)"] = int(unsafe.Offsetof(process{}.bytes))
	for name, at := range written() {
		got[name] = int(at)
	}
	for name, value := range want {
		if n, ok := got[name]; !ok || n != value {
			t.Errorf("%s is %d here (%v), %d in the header", name, n, ok, value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d numbers, %d are declared", len(got), len(want))
	}
}

// written are the bytes that there are where functions write.
func written() map[string]uintptr {
	var (
		number int32 // the variables of calls that have no name
		size   uint64
		handle uintptr
		ms     float32
		gpu    GPU
	)
	sizes := map[string]uintptr{
		"cuDeviceTotalMem_v2, 0":                     unsafe.Sizeof(gpu.Memory),
		"cuDeviceGet, 0":                             unsafe.Sizeof(gpu.ordinal),
		"cuDevicePrimaryCtxRetain, 0":                unsafe.Sizeof(gpu.context),
		"cuEventElapsedTime, 0":                      unsafe.Sizeof(ms),
		"nvmlDeviceGetComputeRunningProcesses_v3, 2": unsafe.Sizeof(process{}),
	}
	for _, name := range []string{"cuDriverGetVersion, 0", "cuDeviceGetCount, 0",
		"cuDeviceGetAttribute, 0", "cuDeviceCanAccessPeer, 0", "nvrtcVersion, 0", "nvrtcVersion, 1",
		"nvrtcGetNumSupportedArchs, 0", "nvrtcGetSupportedArchs, 0", "cublasGetVersion_v2, 1",
		"cublasGetProperty, 1", "cuFuncGetAttribute, 0",
		"nvmlDeviceGetComputeRunningProcesses_v3, 1"} {
		sizes[name] = unsafe.Sizeof(number)
	}
	for _, name := range []string{"cuMemGetInfo_v2, 0", "cuMemGetInfo_v2, 1", "cuMemAlloc_v2, 0",
		"nvrtcGetProgramLogSize, 1", "nvrtcGetCUBINSize, 1", "nvrtcGetPTXSize, 1",
		"cudnnGetConvolutionForwardWorkspaceSize, 6",
		"cudnnGetConvolutionBackwardDataWorkspaceSize, 6",
		"cudnnGetConvolutionBackwardFilterWorkspaceSize, 6"} {
		sizes[name] = unsafe.Sizeof(size)
	}
	for _, name := range []string{"cuStreamCreate, 0", "cuStreamEndCapture, 1",
		"cuGraphInstantiateWithFlags, 0", "cuEventCreate, 0", "cuModuleLoadData, 0",
		"cuModuleGetFunction, 0", "nvrtcCreateProgram, 0", "cublasCreate_v2, 0", "cudnnCreate, 0",
		"cudnnCreateTensorDescriptor, 0", "cudnnCreateFilterDescriptor, 0",
		"cudnnCreateConvolutionDescriptor, 0",
		"nvmlDeviceGetHandleByPciBusId_v2, 1"} {
		sizes[name] = unsafe.Sizeof(handle)
	}
	all := map[string]uintptr{}
	for name, size := range sizes {
		all["WRITTEN("+name+")"] = size
	}
	return all
}
