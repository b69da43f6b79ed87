package cuda

// Info describes a GPU and the libraries that drive it.
type Info struct {
	Name        string `json:"name"`
	Memory      int64  `json:"memory_bytes"`
	Free        int64  `json:"free_bytes"`
	Capability  string `json:"compute_capability"` // "9.0"
	Units       int    `json:"multiprocessors"`
	CopyEngines int    `json:"copy_engines"`
	Driver      string `json:"driver"`             // "CUDA 13.0"
	Compiler    string `json:"compiler,omitempty"` // "NVRTC 13.0"
	Products    string `json:"cublas,omitempty"`   // the library's file
	Why         string `json:"why_not,omitempty"`  // it is not usable
}

// Workspace is the bytes of the GPU's memory that matrix products work in, for each stream
// of the compute engine: what NVIDIA advises for its recent GPUs.
const Workspace = 32 << 20
