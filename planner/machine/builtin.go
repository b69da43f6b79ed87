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
)

// Builtin are the names of the profiles that are built in.
func Builtin() []string { return []string{TitanX, TitanXThesis, H200, GH200} }

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
