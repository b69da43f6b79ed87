package cuda

import "errors"

// Info describes a GPU and the libraries that drive it.
type Info struct {
	Name        string `json:"name"`
	Bus         string `json:"pci_bus"` // its PCI address, as nvidia-smi shows it: "0000:3B:00.0"
	Memory      int64  `json:"memory_bytes"`
	Free        int64  `json:"free_bytes"`
	Capability  string `json:"compute_capability"` // "9.0"
	Units       int    `json:"multiprocessors"`
	CopyEngines int    `json:"copy_engines"`
	Driver      string `json:"driver"`             // "CUDA 13.0"
	Compiler    string `json:"compiler,omitempty"` // "NVRTC 13.0"
	Products    string `json:"cublas,omitempty"`   // "cuBLAS 13.0.0"
	// Convolutions says what computes those that are no matrix products: "cuDNN 9.1.0", or
	// kernels of our own; or why a cuDNN that is there cannot be loaded, which plans with such
	// convolutions are refused for.
	Convolutions string `json:"convolutions,omitempty"`

	Why string `json:"why_not,omitempty"` // it is not usable

	ProductsFile string `json:"cublas_file,omitempty"`
}

// ErrNone says that the machine has no driver of GPUs, or shows no GPU: nothing is wrong.
var ErrNone = errors.New("no NVIDIA GPU")

// Workspace is the bytes of the GPU's memory that matrix products work in, for each stream
// of the compute engine: what NVIDIA advises for its recent GPUs.
const Workspace = 32 << 20

// Convolved says of a convolution whether cuDNN computes it, and in how many bytes of scratch,
// which are its plan's.
type Convolved struct {
	Can     bool
	Scratch int64
}
