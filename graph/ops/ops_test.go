package ops

import (
	stdbytes "bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/longtest"
)

// name is a sample's name for subtests.
func (s Sample) name() string { return fmt.Sprintf("%s%+v%v", s.Op.Name(), s.Op, s.In) }

// operands draws a sample's operands, the same for the same seed.
func (s Sample) operands(seed uint64) []tensor.View {
	rng := rand.New(rand.NewPCG(seed, 7))
	var in []tensor.View
	for i, t := range s.In {
		v := tensor.New(t)
		switch fill, size := s.Fill[i], int(t.DType.Size()); {
		case fill != nil && t.DType == graph.F32:
			fill(rng, v.F32())
		case fill != nil && truth(t.DType):
			fill(rng, v.U8())
		case fill != nil && t.DType == graph.I32:
			fill(rng, v.I32())
		case fill != nil && t.DType == graph.BF16:
			fill(rng, v.U16())
		case t.DType == graph.F32:
			for k := range v.F32() {
				v.F32()[k] = float32(rng.NormFloat64())
			}
		case t.DType == graph.F64:
			for k := range v.F64() {
				v.F64()[k] = rng.NormFloat64()
			}
		case t.DType == graph.I32:
			below(3)(rng, v.I32())
		case t.DType.Integer() && size > 1:
			for k := 0; k < len(v.Data); k += size {
				v.Data[k] = byte(1 + rng.IntN(100))
			}
		default:
			for k := range v.Data {
				v.Data[k] = 1
			}
		}
		in = append(in, v)
	}
	return in
}

// memory is how a test gives a kernel its memory.
type memory struct {
	poison byte  // what is there before
	shift  int64 // bytes by which it is off the alignment that a device gives
}

// compute runs a sample's kernel on operands into poisoned, guarded memory and
// returns the results; for an update, the operands it wrote.
func (s Sample) compute(t testing.TB, in []tensor.View, threads *pool.Pool) []tensor.View {
	t.Helper()
	out, err := s.run(t, in, threads, memory{poison: 0xff})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s Sample) run(t testing.TB, in []tensor.View, threads *pool.Pool,
	m memory) ([]tensor.View, error) {
	t.Helper()
	out, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatal(err)
	}
	fn, err := kernel.Lookup(kernel.CPU, s.Op)
	if err != nil {
		t.Fatal(err)
	}
	guards := &guarded{memory: m}
	c := kernel.Call{Pool: threads}
	for _, v := range in {
		own := tensor.View{Type: v.Type, Data: guards.alloc(int64(len(v.Data)))}
		copy(own.Data, v.Data)
		c.In = append(c.In, own)
	}
	before := snapshot(c.In[s.Update:])
	for _, ty := range out {
		c.Out = append(c.Out, tensor.View{Type: ty, Data: guards.alloc(ty.Bytes())})
	}
	c.Scratch = guards.alloc(s.Op.Cost(s.In, out).Scratch)
	err = fn(s.Op, &c)
	guards.check(t)
	for i, b := range snapshot(c.In[s.Update:]) {
		if !stdbytes.Equal(b, before[i]) {
			t.Fatalf("operand %d was written", s.Update+i)
		}
	}
	if s.Update > 0 {
		return c.In[:s.Update], err
	}
	return c.Out, err
}

func snapshot(views []tensor.View) [][]byte {
	var out [][]byte
	for _, v := range views {
		out = append(out, slices.Clone(v.Data))
	}
	return out
}

// guarded is poisoned memory with guard bytes on both sides.
type guarded struct {
	memory
	blocks [][]byte
}

const guard = 64

func (g *guarded) alloc(n int64) []byte {
	const alignment = 64
	raw := make([]byte, n+2*guard+2*alignment)
	off := g.shift + alignment - int64(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%alignment)
	b := raw[off : off+guard+n+guard]
	for i := range b {
		b[i] = g.poison
	}
	g.blocks = append(g.blocks, b)
	return b[guard : guard+n : guard+n]
}

func (g *guarded) check(t testing.TB) {
	t.Helper()
	for _, b := range g.blocks {
		for i := range guard {
			if b[i] != g.poison || b[len(b)-1-i] != g.poison {
				t.Fatal("memory outside the results was written")
			}
		}
	}
}

func same(a, b []tensor.View) bool {
	return slices.EqualFunc(a, b, func(x, y tensor.View) bool {
		return stdbytes.Equal(x.Data, y.Data)
	})
}

func isView(s Sample) bool {
	_, ok := s.Op.(graph.Viewer)
	return ok
}

// eachSample runs a subtest for every registered sample that has a kernel.
func eachSample(t *testing.T, f func(t *testing.T, s Sample)) {
	for _, s := range Samples() {
		t.Run(s.name(), func(t *testing.T) {
			if isView(s) {
				t.Skip("a view has no kernel")
			}
			f(t, s)
		})
	}
}

// TestKernelsWriteTheirResults: every element of every result is written, and
// nothing else; what was in the results' memory or the scratch does not matter.
func TestKernelsWriteTheirResults(t *testing.T) {
	eachSample(t, func(t *testing.T, s Sample) {
		in := s.operands(1)
		want := s.compute(t, in, nil)
		if got, _ := s.run(t, in, nil, memory{poison: 0x3e}); !same(want, got) {
			t.Error("the results depend on what was in memory")
		}
		for _, v := range want {
			if v.Type.DType != graph.F32 {
				continue
			}
			for i, x := range v.F32() {
				if math.IsNaN(float64(x)) {
					t.Fatalf("element %d was not written, or is no number", i)
				}
			}
		}
	})
}

// TestAlignment: the bits do not depend on where memory starts.
func TestAlignment(t *testing.T) {
	eachSample(t, func(t *testing.T, s Sample) {
		in := s.operands(1)
		if got, _ := s.run(t, in, nil, memory{shift: 4}); !same(s.compute(t, in, nil), got) {
			t.Error("the results depend on the alignment")
		}
	})
}

// TestRecompute: an operation computed again gives the same bits.
func TestRecompute(t *testing.T) {
	eachSample(t, func(t *testing.T, s Sample) {
		in := s.operands(2)
		if !same(s.compute(t, in, nil), s.compute(t, in, nil)) {
			t.Error("a second run differs")
		}
	})
}

// TestThreadsDoNotAffectResults: bit for bit.
func TestThreadsDoNotAffectResults(t *testing.T) {
	longtest.Skip(t)
	pools := []*pool.Pool{pool.New(2), pool.New(3)}
	for _, p := range pools {
		defer p.Close()
	}
	eachSample(t, func(t *testing.T, s Sample) {
		s = s.enlarged()
		in := s.operands(3)
		want := s.compute(t, in, nil)
		for _, p := range pools {
			if !same(want, s.compute(t, in, p)) {
				t.Errorf("%d threads give other bits", p.Threads())
			}
		}
	})
}

// enlarged is the sample with its first axis long enough to be split over
// threads, if the operation accepts that.
func (s Sample) enlarged() Sample {
	const enough = 1 << 18 // elements
	size, elems := 0, 1
	for _, t := range s.In {
		elems = max(elems, t.Elems())
		if t.Rank() > 0 {
			size = max(size, t.Size(0))
		}
	}
	big := s
	big.In = nil
	for _, t := range s.In {
		if t.Rank() > 0 && t.Size(0) == size && size > 1 {
			t = resized(t, 0, size*max(1, min(3001, enough/elems)))
		}
		big.In = append(big.In, t)
	}
	if _, err := s.Op.Infer(big.In); err != nil {
		return s
	}
	return big
}

// TestInPlace: a result that takes an operand's bytes is the same.
func TestInPlace(t *testing.T) {
	eachSample(t, func(t *testing.T, s Sample) {
		op, ok := s.Op.(graph.InPlacer)
		if !ok {
			t.Skip("works out of place only")
		}
		out, _ := s.Op.Infer(s.In)
		want := s.compute(t, s.operands(4), nil)
		fn, _ := kernel.Lookup(kernel.CPU, s.Op)
		for _, k := range op.InPlace(s.In, out) {
			if s.In[k].Bytes() != out[0].Bytes() {
				t.Fatalf("operand %d is %s, the result %s", k, s.In[k], out[0])
			}
			c := kernel.Call{In: s.operands(4),
				Scratch: tensor.New(tensor.Of(tensor.U8, int(s.Op.Cost(s.In, out).Scratch))).Data}
			for i, ty := range out {
				v := tensor.New(ty)
				if i == 0 {
					v = tensor.View{Type: ty, Data: c.In[k].Data}
				}
				c.Out = append(c.Out, v)
			}
			if err := fn(s.Op, &c); err != nil {
				t.Fatal(err)
			}
			if !same(want, c.Out) {
				t.Errorf("over operand %d the result differs", k)
			}
		}
	})
}

// TestViews: a view's results lie within operand 0.
func TestViews(t *testing.T) {
	for _, s := range Samples() {
		view, ok := s.Op.(graph.Viewer)
		if !ok {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			out, err := s.Op.Infer(s.In)
			if err != nil {
				t.Fatal(err)
			}
			checkView(t, view, s.In, out)
		})
	}
}

// TestCost: computing costs something, and not less if an axis doubles.
func TestCost(t *testing.T) {
	eachSample(t, func(t *testing.T, s Sample) {
		out, err := s.Op.Infer(s.In)
		if err != nil {
			t.Fatal(err)
		}
		base := s.Op.Cost(s.In, out)
		if base.Bytes <= 0 || base.FLOPs < 0 || base.Scratch < 0 {
			t.Errorf("cost is %+v", base)
		}
		for i, ty := range s.In {
			for k := range ty.Shape {
				in := slices.Clone(s.In)
				in[i] = resized(ty, k, 2*ty.Size(k))
				if out, err := s.Op.Infer(in); err == nil {
					if c := s.Op.Cost(in, out); c.Bytes < base.Bytes || c.FLOPs < base.FLOPs {
						t.Errorf("%v costs %+v, %v only %+v", s.In, base, in, c)
					}
				}
			}
		}
	})
}

// TestUpdatesAreDeterministicAndFinite: an update changes its first variable, to
// numbers.
func TestUpdatesAreDeterministicAndFinite(t *testing.T) {
	for _, s := range Samples() {
		if s.Update == 0 {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			in := s.operands(5)
			got := s.compute(t, in, nil)
			for i, v := range got {
				if v.Type.DType != graph.F32 {
					continue
				}
				for _, x := range v.F32() {
					if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
						t.Fatalf("operand %d becomes %g", i, x)
					}
				}
			}
			if same(got[:1], in[:1]) {
				t.Error("the update changes nothing")
			}
		})
	}
}

// BenchmarkOps reports every sample's speed, at a larger size where the
// operation allows.
func BenchmarkOps(b *testing.B) {
	for _, s := range Samples() {
		if isView(s) {
			continue
		}
		s = s.enlarged()
		b.Run(s.name(), func(b *testing.B) {
			out, err := s.Op.Infer(s.In)
			if err != nil {
				b.Fatal(err)
			}
			cost := s.Op.Cost(s.In, out)
			fn, _ := kernel.Lookup(kernel.CPU, s.Op)
			c := kernel.Call{In: s.operands(6),
				Scratch: tensor.New(tensor.Of(tensor.U8, int(cost.Scratch))).Data}
			for _, ty := range out {
				c.Out = append(c.Out, tensor.New(ty))
			}
			for b.Loop() {
				if err := fn(s.Op, &c); err != nil {
					b.Fatal(err)
				}
			}
			seconds := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(float64(cost.FLOPs)/seconds/1e9, "GFLOP/s")
			b.ReportMetric(float64(cost.Bytes)/seconds/1e9, "GB/s")
		})
	}
}
