package calibrate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// Link is how fast a GPU copies from and to pinned memory of the host, in bytes a second.
type Link struct {
	In   float64 `json:"in_bytes_per_second"`
	Out  float64 `json:"out_bytes_per_second"`
	Both float64 `json:"each_way_at_once_bytes_per_second"`
}

// sound reports whether a link could be so; that of a processor is zero.
func (l Link) sound() bool { return l.In >= 0 && l.Out >= 0 && l.Both >= 0 }

// OpenGPU gets what was measured of a GPU before, or measures the rates that every GPU has:
// the clock is the GPU's own. Beside it is what is known of this machine's processor, which
// updates variables. The error says why there is no such GPU, or none that can be used.
func OpenGPU(ctx context.Context, number int, o Options) (*Machine, error) {
	byDefault := o.Bytes == 0
	if err := o.ensureDefaults(); err != nil {
		return nil, err
	}
	info, err := cuda.Find(nil, number)
	if err == nil && info.Why != "" {
		err = fmt.Errorf("%s: %s", info.Name, info.Why)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	if byDefault {
		o.Bytes = min(o.Bytes, info.Memory/4)
	}
	renew := o.Renew
	o.Renew = false // the processor's are not what was asked for again
	host, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	m := &Machine{options: o, target: gpu(number, o), host: host,
		cache: cacheFor(o, gpuKey(info, o))}
	known, ok := m.cache.load()
	ok = ok && !renew
	if m.known = known; ok && known.Basics.settled() {
		return m, nil
	}
	if err := m.gpuBasics(ctx, info.Name); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	if ok {
		m.known = known.with(m.known)
	}
	m.stale = m.cache.store(m.known)
	return m, nil
}

// Link is what was measured of a GPU's copies; zero of the processor.
func (m *Machine) Link() Link { return m.known.Link }

// gpuKey is all that the speed of a GPU depends on.
func gpuKey(g cuda.Info, o Options) string {
	return fmt.Sprintf("%s, %s, %s, %s, %s, TF32 %v, kernels %d %.8x", g.Name, g.Driver, g.Compiler,
		g.Products, g.Convolutions, o.TF32, version,
		sha256.Sum256([]byte(kernels.Source()+kernels.WrittenSource(nil))))
}

// gpu is a GPU as a target.
func gpu(number int, o Options) target {
	return target{trusts: true, many: 512,
		computedBy: (*graph.Node).Library,
		scratch: func(n *graph.Node) int64 {
			return kernels.ScratchOf(n.Op, n.InTypes(), n.Out)
		},
		open: func(l trace.Listener) (device.Device, error) {
			d, err := cuda.Open(cuda.Options{GPU: number, Source: kernels.Source(),
				Threads: o.Threads, Listener: l, TF32: o.TF32})
			if err != nil {
				return nil, err // not d: a nil pointer in an interface is not nil
			}
			return d, nil
		}}
}

// updating are the nodes that a plan may have the host execute.
func updating(nodes []*graph.Node) []*graph.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *graph.Node) bool {
		return n.Phase != graph.Update && n.Kind != graph.KindUpdate
	})
}

// gpuBasics measures a GPU's rates and its link's.
func (m *Machine) gpuBasics(ctx context.Context, name string) error {
	s, err := newStage(m.target, 5*copyBytes, true)
	if err != nil {
		return err
	}
	m.known = record{When: time.Now().UTC().Truncate(time.Second), Samples: map[string]sample{},
		Basics: trust{Rounds: rounds, Noise: 1}} // by the GPU's own clock, the best of several
	r, err := s.gpuRates(ctx, &m.known.Gap)
	if err == nil {
		m.known.Link, err = s.links()
	}
	var latency float64
	if err == nil {
		latency, err = s.latency()
	}
	m.known.Profile = machine.Profile{Name: "local GPU", About: name, Device: r,
		Host: m.host.known.Profile.Device, In: m.known.Link.Both, Out: m.known.Link.Both,
		Latency: latency, DiskRead: diskRate, DiskWrite: diskRate, ElementBytes: 4}
	return errors.Join(err, s.close(), context.Cause(ctx))
}

// gpuRates are those of products and sums that are large enough to take long, up to what
// there is memory for; and what an operation takes however small it is. gap is what an
// operation among others takes longer than its own clock says.
func (s *stage) gpuRates(ctx context.Context, gap *float64) (r machine.Rates, err error) {
	one, least, err := s.best(tensor.Of(tensor.F32), ops.Add)
	if err != nil {
		return r, err
	}
	inside, err := s.inside(one.task)
	if err != nil {
		return r, err
	}
	if *gap, err = s.gap(one.node, inside); err != nil {
		return r, err
	}
	r.Launch = max(1, float64(least)+*gap)
	const long = time.Millisecond
	for side, took := 256, least; side <= 4096 && took < long && ctx.Err() == nil; side *= 2 {
		var t *trial
		if t, took, err = s.best(tensor.Of(tensor.F32, side, side), ops.MatMul); err != nil {
			return r, err
		}
		r.FLOPs = float64(t.node.Cost().FLOPs) / max(took-least, time.Microsecond).Seconds()
	}
	for n, took := 1<<18, least; n <= elements && took < long && ctx.Err() == nil; n *= 4 {
		var t *trial
		if t, took, err = s.best(tensor.Of(tensor.F32, n), ops.Add); err != nil {
			return r, err
		}
		r.Bytes = float64(t.node.Cost().Bytes) / max(took-least, time.Microsecond).Seconds()
	}
	return r, context.Cause(ctx)
}

// best is the shortest time of an operation on two values of a type.
func (s *stage) best(ty tensor.Type, op func(a, b graph.Value) graph.Value) (*trial,
	time.Duration, error) {
	g := graph.New()
	v := op(g.Input("a", ty), g.Input("b", ty))
	if err := g.Err(); err != nil {
		return nil, 0, err
	}
	s.room = newRoom(s.target, s.room.memory, s.room.limit)
	t, err := s.prepare(want{node: v.Node}, 0, newUses(nil, nil))
	if err != nil {
		return nil, 0, err
	}
	trials, err := s.time([]*trial{t}, time.Now().Add(time.Second))
	if err == nil && len(trials) == 0 {
		err = fmt.Errorf("%s cannot be timed", v.Node.OpName())
	}
	if err != nil {
		return nil, 0, err
	}
	return t, slices.Min(t.times), nil
}

// links measures copies of a size at which links are as fast as they are, each way alone,
// and both at once.
func (s *stage) links() (l Link, err error) {
	host, err := s.device.Alloc(space.Host, 2*copyBytes)
	if err != nil {
		return l, err
	}
	in, errIn := s.link(space.CopyIn, host, 0)
	out, errOut := s.link(space.CopyOut, host, copyBytes)
	if err := errors.Join(errIn, errOut); err != nil {
		return l, err
	}
	for _, w := range []struct {
		rate  *float64
		which []link
	}{{&l.In, []link{in}}, {&l.Out, []link{out}}, {&l.Both, []link{in, out}}} {
		took, err := fastest(w.which...)
		if err != nil {
			return l, err
		}
		*w.rate = copyBytes / took.Seconds()
	}
	return l, nil
}

// link is a copy in a stream of its own.
type link struct {
	stream device.Stream
	task   device.Task
}

// link is one of copyBytes between an offset of the host's memory and of the device's.
func (s *stage) link(e space.Engine, host device.Memory, off int64) (l link, err error) {
	if l.stream, err = s.device.Stream(fmt.Sprint(e), e); err != nil {
		return l, err
	}
	c := device.Copy{Engine: e, What: "stage", Src: device.Region{Mem: host, Off: off,
		Bytes: copyBytes}, Dst: device.Region{Mem: s.room.memory, Off: off, Bytes: copyBytes}}
	if e == space.CopyOut {
		c.Src, c.Dst = c.Dst, c.Src
	}
	l.task, err = s.device.Copy(c)
	return l, err
}

// fastest is the least time in which copies that begin at once have all ended.
func fastest(links ...link) (time.Duration, error) {
	var times []time.Duration
	for i := range rounds + 1 {
		start := time.Now()
		for _, l := range links {
			l.stream.Run(l.task)
		}
		for _, l := range links {
			if err := l.stream.Sync(); err != nil {
				return 0, err
			}
		}
		if i > 0 { // the first waits until memory is pinned
			times = append(times, time.Since(start))
		}
	}
	return max(slices.Min(times), time.Microsecond), nil
}

// latency is how long a copy among others takes however short it is, in nanoseconds.
func (s *stage) latency() (float64, error) {
	const many, bytes = 256, 64
	in, task, err := s.copyIn("latency", bytes)
	if err != nil {
		return 0, err
	}
	took, err := fastest(link{in, task})
	if err != nil {
		return 0, err
	}
	start := time.Now()
	in.Run(slices.Repeat([]device.Task{task}, many)...)
	err = in.Sync()
	return min(float64(time.Since(start))/many, float64(took)), err
}
