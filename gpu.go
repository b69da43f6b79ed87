package gomem

import (
	"log/slog"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// CUDA is the machine's first NVIDIA GPU; "cuda:1" is its second. Of the device's budget,
// matrix products have 32 MiB a compute stream beside the plans, and Options.ReserveBytes are for
// the GPU's context, kernels and libraries.
const CUDA = "cuda"

// GPU is the number of the GPU that a device's name says, and whether it says one.
func GPU(device string) (number int, ok bool) {
	if device == CUDA {
		return 0, true
	}
	text, ok := strings.CutPrefix(device, CUDA+":")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil
}

// GPUInfo describes a GPU and the libraries that drive it.
type GPUInfo struct {
	Name        string `json:"name"`
	Bus         string `json:"pci_bus"` // its PCI address, as nvidia-smi shows it: "0000:3B:00.0"
	Memory      int64  `json:"memory_bytes"`
	Free        int64  `json:"free_bytes"`         // of Memory, for everybody
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

	Why string `json:"why_not,omitempty"` // the GPU cannot be used; "" if it can

	ProductsFile string `json:"cublas_file,omitempty"` // the library's file
}

// GPUs describes the machine's NVIDIA GPUs; the error says in one line why there are none.
func GPUs() ([]GPUInfo, error) {
	found, err := cuda.GPUs(nil)
	var all []GPUInfo
	for _, g := range found {
		all = append(all, GPUInfo(g))
	}
	return all, err
}

// cuda are the options of a GPU's device.
func (o Options) cuda(number int) cuda.Options {
	c := cuda.Options{GPU: number, Source: kernels.Source(), Threads: o.Threads, DiskDir: o.Disk,
		TF32: o.Precision == precision.TF32, Eager: o.NoCUDAGraphs,
		Interpret: o.InterpretChains, Logger: o.Logger}
	if o.Trace != nil {
		c.Listener = o.Trace.Listen
	}
	return c
}

// openGPU makes the device of a GPU.
func (o Options) openGPU(number int) (device.Device, error) {
	d, err := cuda.Open(o.cuda(number))
	if err != nil {
		return nil, err // not d: a nil pointer in an interface is not nil
	}
	return d, nil
}

// Beside is what of a device's budget is not for plans, in bytes: on a GPU, what matrix products
// work in, for each compute stream, and ReserveBytes.
func (o Options) Beside() int64 {
	if _, ok := GPU(o.Device); ok {
		return o.ReserveBytes + cuda.Workspace*int64(max(o.Streams, 1))
	}
	return o.ReserveBytes
}

// workspaces is what the compute streams of plans have for matrix products.
func workspaces(results []*planner.Result) int64 {
	streams := map[plan.Stream]bool{}
	for _, r := range results {
		for _, s := range r.Plan.Streams {
			if s.Engine == space.Compute {
				streams[s] = true
			}
		}
	}
	return cuda.Workspace * int64(len(streams))
}

// onGPU is what a GPU runs, and what it needs for it.
type onGPU struct {
	number int
	tf32   bool
	log    *slog.Logger // may be nil
}

// plannedFor is what plans are for; nil is the reference.
func (o Options) plannedFor() machine.Device {
	if number, ok := GPU(o.Device); ok {
		return onGPU{number, o.Precision == precision.TF32, o.Logger}
	}
	return nil
}

// gpuPrices are those by which plans for a GPU are made that come with none: those of its data
// sheet, if there is a profile of it, and else an H100's.
func gpuPrices(number int) (*machine.Profile, error) {
	name := machine.H100
	if g, err := cuda.Find(nil, number); err == nil {
		name = profileOf(g.Name)
	}
	p, err := machine.Named(name)
	if err == nil {
		p.Name = CUDA
	}
	return p, err
}

// profileOf is the profile that suits a GPU best, by its name as the driver has it.
func profileOf(gpu string) string {
	for _, known := range []struct{ part, name string }{{"GH200", machine.H100},
		{"H200", machine.H200SXM}, {"A100", machine.A100},
		{"RTX 4090", machine.RTX4090}, {"RTX 40", machine.RTX4090}} {
		if strings.Contains(gpu, known.part) {
			return known.name
		}
	}
	return machine.H100
}

// Runs reports whether there are commands for an operation.
func (onGPU) Runs(op graph.Op) bool { return kernels.Supports(op) }

// Exact reports whether the commands for an operation come to the bits of the host's kernel.
func (onGPU) Exact(op graph.Op) bool { return kernels.IsExact(op) }

// Computing says which convolutions are cuDNN's: where it is found those that it computes, as it
// says and shows when it is asked now. The GPU's memory is given back.
func (d onGPU) Computing(nodes []*graph.Node) (machine.Computing, error) {
	can := map[kernels.Conv]cuda.Convolved{}
	var asked []kernels.Conv
	var first []*graph.Node // by question: the first that has it
	for _, n := range nodes {
		c, ok := convolution(n)
		if _, known := can[c]; ok && !known {
			can[c] = cuda.Convolved{}
			asked, first = append(asked, c), append(first, n)
		}
	}
	answers, err := cuda.Convolves(cuda.Options{GPU: d.number, TF32: d.tf32, Logger: d.log}, asked)
	if err != nil {
		n := first[len(answers)]
		return machine.Computing{}, &graph.Error{Node: n.Name, Op: n.OpName(), Pos: n.Pos,
			In: n.InTypes(), Err: err}
	}
	for i, c := range asked {
		can[c] = answers[i]
	}
	return machine.Computing{Library: func(n *graph.Node) string {
		if c, ok := convolution(n); ok && can[c].Can {
			return kernels.DNN
		}
		return ""
	}, Scratch: func(n *graph.Node) int64 {
		c, ok := convolution(n)
		if !ok || !can[c].Can {
			return scratch(n, kernels.ScratchOf(n.Op, n.InTypes(), n.Out))
		}
		return scratch(n, can[c].Scratch)
	}, Align: space.Wide}, nil
}

// convolution is what a library can be asked for.
func convolution(n *graph.Node) (kernels.Conv, bool) {
	if !n.Executes() {
		return kernels.Conv{}, false
	}
	return kernels.Convolution(n.Op, n.InTypes(), n.Out)
}

// scratch is what the GPU needs for a node, and for what may be on the host, what the kernel there
// does.
func scratch(n *graph.Node, bytes int64) int64 {
	if n.Phase == graph.Update || n.Kind == graph.KindUpdate {
		bytes = max(bytes, n.Op.Cost(n.InTypes(), n.Out).Scratch)
	}
	return bytes
}
