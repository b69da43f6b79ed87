package machine

import (
	"fmt"
	"strings"
)

// disk is a solid-state disk on four lanes of PCIe 4.
const diskRead, diskWrite = 6e9, 4e9

// The names of the profiles that are built in.
const (
	// TitanX is the thesis' machine: an NVIDIA Titan X of 12 GiB on PCIe 3, with the
	// 4.38 TFLOP/s in convolutions at which ResNet-152 has the thesis' speed, three
	// quarters of 480 GB/s of memory bandwidth, and κ 730.
	TitanX = "titanx"
	// TitanXThesis is the same with MoE and WGAN-GP as slow as the thesis has them
	// (table 6.6): 0.77 and 0.50 TFLOP/s over a whole step.
	TitanXThesis = "titanx-thesis"
	// H200 is an NVIDIA H200 on PCIe 5, two bytes an element: a fifth of its peak, as
	// convolutions achieve, two thirds of its memory bandwidth, κ 3,500.
	H200 = "h200-pcie5"
	// GH200 computes like H200 beside a host that it reaches at 400 GB/s each way
	// (NVLink-C2C): κ 481. Its memory and the host's, 4,000 and 512 GB/s, are had at
	// two thirds.
	GH200 = "gh200"
	// RTX4090, A100, H100 and H200SXM are an NVIDIA GeForce RTX 4090, an A100 of 80 GB, an H100 and
	// an H200 (all three SXM), by their data sheets: seven tenths of the peak in f32, two fifths of
	// that of their tensor cores with sums in f32 (165, 312, 989 and 989 TFLOP/s in bfloat16, half
	// in TF32), two thirds of the memory's bandwidth, 80 % of what PCIe 4 or 5 has of 16 lanes, and
	// 0.7 µs an operation within a CUDA graph: on a laptop's RTX 5070 Ti 117 empty kernels took
	// 82.9 µs as a graph and 735 one by one, of which giving each to the stream was 2.65
	// (github.com/ahrefs/ocannl/issues/488). Nothing of it was measured by gomem.
	RTX4090 = "rtx4090"
	A100    = "a100"
	H100    = "h100"
	H200SXM = "h200"
)

// sheet is what a GPU's data sheet says, in units a second: f32, bfloat16 with sums in f32, TF32,
// bytes of its memory, and bytes of its link each way.
type sheet struct{ flops, half, tf32, bytes, link float64 }

// of fills a profile in.
func (s sheet) of(p *Profile, about string) {
	p.About = about
	p.Device = Rates{FLOPs: s.flops * 7 / 10, Bytes: s.bytes * 2 / 3, Launch: 700}
	p.HalfFLOPs, p.TF32FLOPs = s.half*2/5, s.tf32*2/5
	p.Host = Rates{FLOPs: 1e12, Bytes: 200e9}
	p.In, p.Out = s.link*4/5, s.link*4/5
}

// Builtin are the names of the profiles that are built in.
func Builtin() []string {
	return []string{TitanX, TitanXThesis, H200, GH200, RTX4090, A100, H100, H200SXM}
}

// Named is a profile that is built in.
func Named(name string) (*Profile, error) {
	p := titanX(name)
	switch name {
	case TitanX:
		p.About = "Titan X on PCIe 3"
	case TitanXThesis:
		p.About = "the same, as slow as the thesis has it"
		p.Achieved = map[string]float64{"moe": 0.77e12, "wgan": 0.50e12}
	case H200:
		p.About = "H200 on PCIe 5, two bytes an element"
		p.Device = Rates{FLOPs: 192.5e12, Bytes: 3.2e12, Launch: 1000}
		p.Host = Rates{FLOPs: 1e12, Bytes: 200e9}
		p.In, p.Out, p.ElementBytes = 55e9, 55e9, 2
	case GH200:
		p.About = "GH200: 400 GB/s to its host"
		p.Device = Rates{FLOPs: 192.5e12, Bytes: 2.7e12, Launch: 1000}
		p.Host = Rates{FLOPs: 1e12, Bytes: 340e9}
		p.In, p.Out, p.ElementBytes = 400e9, 400e9, 2
	case RTX4090:
		sheet{82.6e12, 165.2e12, 82.6e12, 1008e9, 31.5e9}.of(p, "RTX 4090 on PCIe 4, by its sheet")
	case A100:
		sheet{19.5e12, 312e12, 156e12, 2039e9, 31.5e9}.of(p, "A100 80 GB on PCIe 4, by its sheet")
	case H100:
		sheet{66.9e12, 989.4e12, 494.7e12, 3350e9, 63e9}.of(p, "H100 on PCIe 5, by its sheet")
	case H200SXM:
		sheet{66.9e12, 989.4e12, 494.7e12, 4800e9, 63e9}.of(p, "H200 on PCIe 5, by its sheet")
	default:
		return nil, fmt.Errorf("unknown profile %.60q: want %s or the path of a .json file", name,
			strings.Join(Builtin(), ", "))
	}
	return p, nil
}

func titanX(name string) *Profile {
	return &Profile{Name: name,
		Device: Rates{FLOPs: 4.38e12, Bytes: 360e9, Launch: 5000},
		Host:   Rates{FLOPs: 200e9, Bytes: 40e9},
		In:     12e9, Out: 12e9, DiskRead: diskRead, DiskWrite: diskWrite, ElementBytes: 4,
	}
}
