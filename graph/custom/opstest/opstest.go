// Package opstest has the checks that operations are held to, as tests, for those that a
// program brings with package custom.
package opstest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// Sample is one use of an operation, of which every check is made. Several, of sizes that are no
// multiples of each other, find more.
type Sample struct {
	Op graph.Op
	In []graph.Type
	// Fill gives operand i its value; without, f32 elements are standard normal, those of i32
	// in [0, 3), and others 1.
	Fill map[int]func(rng *rand.Rand, v tensor.View)
	// Want computes results plainly, to compare with within Tol; nil: not compared.
	Want func(in, out []tensor.View)
	// Update is the number of leading operands that are written: it is an update.
	Update int
	// NoGrad lists operands of f32 without a gradient.
	NoGrad []int
	// Second says that the gradient can be differentiated again.
	Second bool
	Tol    float64 // relative to 1 + what is compared; 0 means 0.01 for gradients, 1e-5 for Want
	Eps    float64 // the step of finite differences; 0 means 0.01
}

// Check checks that the operation of each sample is a comparable struct that rejects operands
// without a panic; that its kernel writes all of its results and nothing else, computes what Want
// does, and depends neither on what was in memory, where that is, how much scratch there is
// beyond what is declared, nor on threads; that it works in place where it says so; that its
// gradient is that of finite differences, and the gradient's where it has one; all that on operands
// without elements, too, unless the shape rule refuses them, or the kernel by an error; and that
// plans of every policy, at a small budget too, leave the same bits of a training step.
func Check(t *testing.T, samples ...Sample) {
	t.Helper()
	for _, s := range samples {
		t.Run(fmt.Sprintf("%s%+v%v", s.Op.Name(), s.Op, s.In), func(t *testing.T) {
			s.checkRules(t)
			_, view := s.Op.(graph.Viewer)
			if !view {
				s.checkKernel(t)
				s.checkThreads(t)
				s.checkInPlace(t)
			}
			s.checkNothing(t)
			if s.Update == 0 {
				s.checkGradients(t)
				s.checkPlans(t)
			}
		})
	}
}

// infer is the types of the results.
func (s Sample) infer(t *testing.T) []graph.Type {
	t.Helper()
	out, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatalf("the sample is rejected: %v", err)
	}
	return out
}

// checkRules: the operation is one of a graph, and rejects operands by an error.
func (s Sample) checkRules(t *testing.T) {
	if v := reflect.TypeOf(s.Op); v.Kind() != reflect.Struct || !v.Comparable() {
		t.Fatalf("%T is no comparable struct", s.Op)
	}
	out := s.infer(t)
	if c := s.Op.Cost(s.In, out); c.Bytes < 0 || c.FLOPs < 0 || c.Scratch < 0 {
		t.Errorf("the cost is %+v", c)
	}
	for _, in := range s.mutations() {
		s.accepts(t, in)
	}
}

// accepts reports whether the operation takes operands. It may not panic.
func (s Sample) accepts(t *testing.T, in []graph.Type) bool {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("of %v it panics: %v", in, p)
		}
	}()
	out, err := s.Op.Infer(in)
	if err == nil {
		s.Op.Cost(in, out)
	}
	return err == nil
}

// mutations are operands that are too few, too many, and of other types and shapes.
func (s Sample) mutations() [][]graph.Type {
	list := [][]graph.Type{nil, append(slices.Clone(s.In), graph.Of(graph.F32, 2))}
	for i, u := range s.In {
		list = append(list, slices.Delete(slices.Clone(s.In), i, i+1))
		for _, other := range []graph.Type{graph.Of(graph.F32), graph.Of(graph.F32, 3, 0),
			graph.Of(graph.F64, u.Sizes()...), graph.Of(graph.I32, u.Sizes()...),
			graph.Of(u.DType, append(u.Sizes(), 2)...)} {
			in := slices.Clone(s.In)
			in[i] = other
			list = append(list, in)
		}
	}
	return list
}

// operands draws the operands, the same for the same seed.
func (s Sample) operands(seed uint64) []tensor.View {
	rng := rand.New(rand.NewPCG(seed, 7))
	in := make([]tensor.View, len(s.In))
	for i, u := range s.In {
		v := tensor.New(u)
		switch fill := s.Fill[i]; {
		case u.Elems() == 0: // a fill need not think of that
		case fill != nil:
			fill(rng, v)
		case u.DType == graph.F32:
			for k := range v.F32() {
				v.F32()[k] = float32(rng.NormFloat64())
			}
		case u.DType == graph.I32:
			for k := range v.I32() {
				v.I32()[k] = rng.Int32N(3)
			}
		default:
			tensor.Convert(v, ones(u), 0, u.Elems())
		}
		in[i] = v
	}
	return in
}

func ones(u graph.Type) tensor.View {
	v := tensor.New(graph.Type{DType: graph.U8, Shape: u.Shape})
	for i := range v.U8() {
		v.U8()[i] = 1
	}
	return v
}

// memory is how a kernel is given its memory: what is there before, how far off the alignment of
// a device, and by how many threads it runs.
type memory struct {
	poison  byte
	shift   int
	threads *pool.Pool
}

// guard is the bytes on both sides of a value that nobody may write.
const guard = 64

// run is what the kernel makes of operands, which it may not refuse.
func (s Sample) run(t *testing.T, in []tensor.View, m memory) []tensor.View {
	t.Helper()
	out, err := s.try(t, in, m)
	if err != nil {
		t.Fatalf("the kernel: %v", err)
	}
	return out
}

// try runs the kernel in guarded memory, and returns the results, or what an update wrote.
func (s Sample) try(t *testing.T, in []tensor.View, m memory) ([]tensor.View, error) {
	t.Helper()
	fn, err := kernel.Lookup(kernel.CPU, s.Op)
	if err != nil {
		t.Fatalf("%v: register one", err)
	}
	var rooms [][]byte
	place := func(n int64) []byte {
		room := bytes.Repeat([]byte{m.poison}, int(n)+2*guard+m.shift+63)
		at := guard + m.shift + int(-addressOf(room)&63)
		rooms = append(rooms, room[:at], room[at+int(n):])
		return room[at : at+int(n) : at+int(n)]
	}
	c := kernel.Call{Pool: m.threads}
	for _, v := range in {
		own := tensor.View{Type: v.Type, Data: place(v.Type.Bytes())}
		copy(own.Data, v.Data)
		c.In = append(c.In, own)
	}
	out := s.infer(t)
	for _, u := range out {
		c.Out = append(c.Out, tensor.View{Type: u, Data: place(u.Bytes())})
	}
	c.Scratch = place(s.Op.Cost(s.In, out).Scratch)
	if err := fn(s.Op, &c); err != nil {
		return nil, err
	}
	for _, room := range rooms {
		if len(bytes.Trim(room, string([]byte{m.poison}))) > 0 {
			t.Fatal("memory beside operands, results and scratch was written")
		}
	}
	for i, v := range c.In[s.Update:] {
		if !bytes.Equal(v.Data, in[s.Update+i].Data) {
			t.Fatalf("operand %d was written", s.Update+i)
		}
	}
	if s.Update > 0 {
		return c.In[:s.Update], nil
	}
	return c.Out, nil
}

func same(a, b []tensor.View) bool {
	return slices.EqualFunc(a, b, func(x, y tensor.View) bool {
		return bytes.Equal(x.Data, y.Data)
	})
}

// checkKernel: results are what Want makes, wherever they are and whatever was there.
func (s Sample) checkKernel(t *testing.T) {
	in := s.operands(1)
	got := s.run(t, in, memory{poison: 0xff})
	if !same(got, s.run(t, in, memory{poison: 0xff})) {
		t.Error("a second run gives other bits")
	}
	if !same(got, s.run(t, in, memory{poison: 0x3e})) {
		t.Error("the results depend on what was in memory: not all of them is written, or the " +
			"scratch is read before it is")
	}
	if !same(got, s.run(t, in, memory{poison: 0xff, shift: 8})) {
		t.Error("the results depend on the alignment of memory")
	}
	if s.Want == nil {
		return
	}
	var want []tensor.View
	for _, v := range got {
		want = append(want, tensor.New(v.Type))
	}
	s.Want(in, want)
	for k, w := range want {
		s.near(t, k, got[k], w)
	}
}

// near compares a result with what it should be.
func (s Sample) near(t *testing.T, k int, got, want tensor.View) {
	t.Helper()
	if want.Type.DType != graph.F32 {
		if !bytes.Equal(got.Data, want.Data) {
			t.Errorf("result %d is %v, want %v", k, got, want)
		}
		return
	}
	for i, w := range want.F32() {
		g := got.F32()[i]
		if !(math.Abs(float64(g-w)) <= orElse(s.Tol, 1e-5)*(1+math.Abs(float64(w)))) && g != w &&
			!(g != g && w != w) {
			t.Fatalf("element %d of result %d is %g, want %g", i, k, g, w)
		}
	}
}

func orElse(x, y float64) float64 {
	if x == 0 {
		return y
	}
	return x
}

// checkThreads: bit for bit.
func (s Sample) checkThreads(t *testing.T) {
	s = s.enlarged()
	in := s.operands(3)
	want := s.run(t, in, memory{poison: 0xff})
	for _, n := range []int{2, 3} {
		threads := pool.New(n)
		if !same(want, s.run(t, in, memory{poison: 0xff, threads: threads})) {
			t.Errorf("%d threads give other bits", n)
		}
		threads.Close()
	}
}

// enlarged is the sample with its first axis long enough to be divided among threads, if the
// operation accepts that.
func (s Sample) enlarged() Sample {
	size, elems := 0, 1
	for _, u := range s.In {
		if elems = max(elems, u.Elems()); u.Rank() > 0 {
			size = max(size, u.Size(0))
		}
	}
	big := s
	big.In = slices.Clone(s.In)
	for i, u := range big.In {
		if u.Rank() > 0 && u.Size(0) == size && size > 1 {
			u.Shape = slices.Clone(u.Shape)
			u.Shape[0].Size *= max(1, (1<<17)/elems)
			big.In[i] = u
		}
	}
	if _, err := s.Op.Infer(big.In); err != nil {
		return s
	}
	return big
}

// checkInPlace: a result that takes an operand's bytes is the same.
func (s Sample) checkInPlace(t *testing.T) {
	op, ok := s.Op.(graph.InPlacer)
	if !ok {
		return
	}
	out := s.infer(t)
	want := s.run(t, s.operands(4), memory{})
	fn, _ := kernel.Lookup(kernel.CPU, s.Op) // run has found it
	for _, k := range op.InPlace(s.In, out) {
		if s.In[k].Bytes() != out[0].Bytes() {
			t.Fatalf("operand %d is %s, but result 0, which may take its place, %s", k, s.In[k],
				out[0])
		}
		c := kernel.Call{In: s.operands(4), Scratch: make([]byte, s.Op.Cost(s.In, out).Scratch)}
		for i, u := range out {
			v := tensor.New(u)
			if i == 0 {
				v.Data = c.In[k].Data
			}
			c.Out = append(c.Out, v)
		}
		if err := fn(s.Op, &c); err != nil || !same(want, c.Out) {
			t.Errorf("over operand %d the result differs (%v)", k, err)
		}
	}
}
