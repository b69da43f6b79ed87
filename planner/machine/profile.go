package machine

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Rates price an operation: the slower of its arithmetic and its memory traffic,
// and what it takes however small it is.
type Rates struct {
	FLOPs  float64 `json:"flops_per_second"`
	Bytes  float64 `json:"bytes_per_second"`
	Launch float64 `json:"launch_ns"` // nanoseconds; 0 is none
}

// seconds is the time of so much work.
func (r Rates) seconds(flops, bytes float64) float64 {
	return max(flops/r.FLOPs, bytes/r.Bytes) + r.Launch/1e9
}

// Profile is a machine as a dozen rates. [Profile.For] makes it a [Model].
type Profile struct {
	Name   string `json:"name"`            // 40 characters at most
	About  string `json:"about,omitempty"` // what it is, in a few words
	Device Rates  `json:"device"`
	Host   Rates  `json:"host"` // of the host's processor, which updates variables there
	// In and Out are bytes per second of the copy engines towards and from the device,
	// which work at once.
	In  float64 `json:"in_bytes_per_second"`
	Out float64 `json:"out_bytes_per_second"`
	// Latency is what a copy takes however short it is, in nanoseconds.
	Latency float64 `json:"copy_latency_ns"`
	// DiskRead and DiskWrite are bytes per second between the host's memory and disk.
	DiskRead  float64 `json:"disk_read_bytes_per_second"`
	DiskWrite float64 `json:"disk_write_bytes_per_second"`
	// Network is bytes per second to the other workers of a job and, at the same time,
	// from them; 0 is as fast as can be.
	Network float64 `json:"network_bytes_per_second,omitempty"`
	// Peer is bytes per second from the devices of other workers that reach each other's memory; 0
	// is as fast as copies to the device.
	Peer float64 `json:"peer_bytes_per_second,omitempty"`
	// ElementBytes is what the device, and copies to and from it, have for the four
	// bytes of a graph's element: 2 on a machine that computes in half precision. All
	// bytes are scaled alike; the host's operations, on the optimizer's state in full
	// precision, are not scaled.
	ElementBytes int64 `json:"element_bytes"`
	// HalfFLOPs is the FLOP/s of the device's products and convolutions that read bfloat16, and
	// TF32FLOPs of all in a graph whose products are in TF32; 0 is the device's. Attention and
	// experts' products that read bfloat16 have half of the former; no other operations are
	// computed by tensor cores.
	HalfFLOPs float64 `json:"half_flops_per_second,omitempty"`
	TF32FLOPs float64 `json:"tf32_flops_per_second,omitempty"`
	// Achieved has, by model, the FLOP/s that all operations of a step come to together
	// where that is known to be other than by the rates: see [Profile.For].
	Achieved map[string]float64 `json:"achieved_flops_per_second,omitempty"`
	// Operations has rates of the device by name of operation where they differ.
	Operations map[string]Rates `json:"operations,omitempty"`
	// TF32 says that products are in TF32: see [Profile.InTF32].
	TF32 bool `json:"-"`
}

// Longest is the most that anything is said to take, so that sums of prices cannot
// overflow.
const Longest = time.Hour

// duration is seconds in whole nanoseconds.
func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(min(seconds, Longest.Seconds()) * 1e9))
}

// bound is a profile as a Model.
type bound struct {
	*Profile
	scale float64 // of the device's operations
}

// For is the profile as a Model for one model: "moe". Nodes are those that a training
// step executes. If the profile has the rate that the model achieves, all times on the
// device are scaled by one factor, with which the nodes' take their FLOPs at that rate.
func (p *Profile) For(model string, nodes []*graph.Node) Model {
	b := bound{p, 1}
	rate := p.Achieved[model]
	if rate == 0 {
		return b
	}
	var flops, seconds float64
	for _, n := range nodes {
		flops += float64(n.Cost().FLOPs)
		seconds += b.seconds(n)
	}
	if flops > 0 && seconds > 0 {
		b.scale = flops / rate / seconds
	}
	return b
}

// InTF32 is the profile for graphs whose products are in TF32.
func (p *Profile) InTF32() *Profile {
	q := *p
	q.TF32 = true
	return &q
}

// cores is the FLOP/s of tensor cores if they compute a node, and else 0: of products, which
// libraries compute, and of attention and experts' products, of which kernels of our own come to
// half of that, or to what others do. LSTMs have products, but in bfloat16 they are converted
// first.
func (p *Profile) cores(n *graph.Node) float64 {
	has := func(prefix string) bool { return strings.HasPrefix(n.OpName(), prefix) }
	switch product := has("matmul") || has("conv2d"); {
	case product && reads(n, graph.BF16):
		return p.HalfFLOPs
	case p.TF32 && (product || has("lstm")):
		return p.TF32FLOPs
	case ownCores.MatchString(n.OpName()) && reads(n, graph.BF16):
		return max(p.HalfFLOPs/2, p.Device.FLOPs)
	}
	return 0
}

// ownCores are names of operations of which bfloat16 is multiplied by tensor cores, by kernels of
// our own.
var ownCores = regexp.MustCompile(`^(attention(-grad)?|(grouped|expert)-(matmul|outer))\.bf16`)

// Name is the profile's.
func (b bound) Name() string { return b.Profile.Name }

// seconds is the time of a node on the device before it is scaled.
func (b bound) seconds(n *graph.Node) float64 {
	if !n.Executes() {
		return 0
	}
	c, r := n.Cost(), b.Device
	if own, ok := b.Operations[n.OpName()]; ok {
		r = own
	} else if rate := b.cores(n); rate > 0 {
		r.FLOPs = rate
	}
	return r.seconds(float64(c.FLOPs), b.bytes(c.Bytes))
}

// reads reports whether a node has an operand of a type.
func reads(n *graph.Node, t graph.DType) bool {
	return slices.ContainsFunc(n.In, func(v graph.Value) bool { return v.Type().DType == t })
}

// bytes is what so many bytes of a graph are on the device.
func (b bound) bytes(n int64) float64 { return float64(n) * float64(b.ElementBytes) / 4 }

// Time is nothing for what is not executed, leaves and views, and for exchanges, which
// Copy prices.
func (b bound) Time(n *graph.Node, in space.ID) time.Duration {
	switch {
	case !n.Executes() || n.Exchanges():
		return 0
	case in == space.Device:
		return duration(b.seconds(n) * b.scale)
	}
	c := n.Cost()
	return duration(b.Host.seconds(float64(c.FLOPs), float64(c.Bytes)))
}

// Copy is nothing for no bytes. Spaces beyond the host's are disks and the network, over
// which bytes go as they are.
func (b bound) Copy(from, to space.ID, bytes int64) time.Duration {
	switch {
	case bytes == 0:
		return 0
	case from == space.Network && to == space.Device:
		return duration(b.bytes(bytes)/cmp.Or(b.Peer, b.In) + b.Latency/1e9)
	case max(from, to) == space.Network && b.Network == 0:
		return 0
	case max(from, to) == space.Network:
		return duration(float64(bytes) / b.Network)
	}
	return duration(b.bytes(bytes)/b.rate(from, to) + b.Latency/1e9)
}

// rate is how fast copies between two spaces are. One inside a memory reads and
// writes it.
func (b bound) rate(from, to space.ID) float64 {
	switch {
	case from > space.Host:
		return b.DiskRead
	case to > space.Host:
		return b.DiskWrite
	case from == to && to == space.Device:
		return b.Device.Bytes / 2
	case from == to:
		return b.Host.Bytes / 2
	case to == space.Device:
		return b.In
	}
	return b.Out
}

// Shared is nothing: a profile is of a device with engines of its own.
func (b bound) Shared() float64 { return 0 }

// Kappa takes the slower of the two links, and the rate that is achieved.
func (b bound) Kappa() float64 {
	return b.Device.FLOPs / b.scale * float64(b.ElementBytes) / (2 * min(b.In, b.Out))
}
