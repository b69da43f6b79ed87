package conv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/longtest"
)

// operands are the slices of a convolution, each with a guard behind it.
type operands struct{ x, w, y []float32 }

func random(rng *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = rng.Float32()*2 - 1
	}
	return s
}

func draw(s Shape) operands {
	rng := rand.New(rand.NewPCG(1, uint64(s.in())))
	return operands{random(rng, s.in()), random(rng, s.filter()), random(rng, s.out())}
}

// pass is one of the three computations.
type pass struct {
	name    string
	scratch func(Shape) int64
	run     func(p *pool.Pool, s Shape, o operands, to, scratch []float32)
	size    func(Shape) int
	// fanIn bounds the products that are added up in an element.
	fanIn func(Shape) int
	// at returns the operands' elements that a product is made of, and the
	// result's.
	at func(o operands, x, w, y int) (a, b float32, to int)
}

var passes = []pass{
	{"forward", ScratchForward, func(p *pool.Pool, s Shape, o operands, to, scratch []float32) {
		Forward(p, s, o.x, o.w, to, scratch, nil)
	}, Shape.out, func(s Shape) int { return s.InC * s.taps() },
		func(o operands, x, w, y int) (float32, float32, int) {
			return o.x[x], o.w[w], y
		}},
	{"input gradient", ScratchGradInput,
		func(p *pool.Pool, s Shape, o operands, to, scratch []float32) {
			GradInput(p, s, o.y, o.w, to, scratch)
		}, Shape.in, func(s Shape) int { return s.OutC * s.taps() },
		func(o operands, x, w, y int) (float32, float32, int) {
			return o.y[y], o.w[w], x
		}},
	{"filter gradient", ScratchGradFilter,
		func(p *pool.Pool, s Shape, o operands, to, scratch []float32) {
			GradFilter(p, s, o.x, o.y, to, scratch)
		}, Shape.filter, func(s Shape) int { return s.Batch * s.OutH() * s.OutW() },
		func(o operands, x, w, y int) (float32, float32, int) {
			return o.x[x], o.y[y], w
		}},
}

// eachProduct calls fn with the indices of the factors of every product of a
// convolution.
func (s Shape) eachProduct(fn func(x, w, y int)) {
	in, out := s.InC/s.Groups, s.OutC/s.Groups
	for i := range s.out() {
		ow, oh, o, n := i%s.OutW(), i/s.OutW()%s.OutH(), i/s.OutW()/s.OutH()%s.OutC,
			i/s.OutW()/s.OutH()/s.OutC
		for k := range in * s.taps() {
			kw, kh, c := k%s.KW, k/s.KW%s.KH, k/s.taps()
			ih, iw := oh*s.StrideH+kh*s.DilH-s.PadTop, ow*s.StrideW+kw*s.DilW-s.PadLeft
			if ih >= 0 && ih < s.InH && iw >= 0 && iw < s.InW {
				fn(((n*s.InC+o/out*in+c)*s.InH+ih)*s.InW+iw, o*in*s.taps()+k, i)
			}
		}
	}
}

// compute runs a pass into poisoned memory, and checks that what lies behind is
// left alone.
func (c *pass) compute(t interface{ Fatalf(string, ...any) }, p *pool.Pool, s Shape, o operands,
	poison float32) []float32 {
	const guard = 32
	size, scratch := c.size(s), int(c.scratch(s)/4)
	memory, work := make([]float32, size+guard), make([]float32, scratch+guard)
	for _, m := range [][]float32{memory, work} {
		for i := range m {
			m[i] = poison
		}
	}
	c.run(p, s, o, memory[:size:size], work[:scratch:scratch])
	for _, x := range append(slices.Clone(memory[size:]), work[scratch:]...) {
		if math.Float32bits(x) != math.Float32bits(poison) {
			t.Fatalf("%s of %+v writes past its memory", c.name, s)
		}
	}
	return memory[:size]
}

// check compares the three passes with sums in float64.
func check(t interface{ Fatalf(string, ...any) }, p *pool.Pool, s Shape) {
	o := draw(s)
	for _, c := range passes {
		want, size := make([]float64, c.size(s)), make([]float64, c.size(s))
		s.eachProduct(func(x, w, y int) {
			a, b, to := c.at(o, x, w, y)
			want[to] += float64(a) * float64(b)
			size[to] += math.Abs(float64(a) * float64(b))
		})
		got := c.compute(t, p, s, o, float32(math.NaN()))
		for i, x := range got {
			limit := float64(c.fanIn(s)+3) * 0x1p-24 * size[i]
			if diff := math.Abs(float64(x) - want[i]); !(diff <= limit) {
				t.Fatalf("%s of %+v: element %d is %v, want %v", c.name, s, i, x, want[i])
			}
		}
	}
}

func drawShape(t *rapid.T) Shape {
	size := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	pad := func(name string) int { return rapid.IntRange(0, 3).Draw(t, name) }
	groups := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "groups")
	s := Shape{
		Batch: size("batch", 3), Groups: groups,
		InC: groups * size("in", 20), OutC: groups * size("out", 20), InH: size("height",
			14), InW: size("width", 14),
		KH: size("filter height", 4), KW: size("filter width", 4),
		StrideH: size("vertical stride", 3), StrideW: size("horizontal stride", 3),
		DilH: size("vertical dilation", 3), DilW: size("horizontal dilation", 3),
		PadTop: pad("top"), PadLeft: pad("left"), PadBottom: pad("bottom"), PadRight: pad("right"),
	}
	s.InH = max(s.InH, s.DilH*(s.KH-1)+1-s.PadTop-s.PadBottom)
	s.InW = max(s.InW, s.DilW*(s.KW-1)+1-s.PadLeft-s.PadRight)
	return s
}

func TestAgainstDefinition(t *testing.T) {
	p := pool.New(3)
	defer p.Close()
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		check(t, p, s)
	})
}

// square is a convolution of square images and filters.
func square(batch, in, size, out, k, stride, pad int) Shape {
	return Shape{
		Batch: batch, InC: in, InH: size, InW: size, OutC: out, KH: k, KW: k, StrideH: stride,
		StrideW: stride,
		PadTop:  pad, PadLeft: pad, PadBottom: pad, PadRight: pad, DilH: 1, DilW: 1, Groups: 1,
	}
}

func grouped(batch, groups, in, size, out, k int) Shape {
	s := square(batch, in, size, out, k, 1, k/2)
	s.Groups = groups
	return s
}

func depthwise(batch, channels, size, k, stride, pad int) Shape {
	s := square(batch, channels, size, channels, k, stride, pad)
	s.Groups = channels
	return s
}

// large are shapes that take every path, and several tasks on it.
var large = []Shape{
	square(2, 20, 40, 17, 3, 1, 1),
	square(3, 20, 13, 300, 3, 2, 1),
	square(1, 3, 50, 24, 7, 2, 3),
	square(2, 24, 33, 3, 5, 1, 2),
	square(2, 40, 14, 30, 1, 1, 0),
	square(40, 33, 3, 17, 3, 1, 1),
	square(5, 600, 4, 20, 1, 2, 0),
	square(1, 3, 40, 66, 7, 2, 3),  // patches of few channels, written in place
	square(1, 60, 5, 64, 3, 1, 1),  // multiplied in two parts
	square(3, 16, 13, 64, 3, 1, 1), // of several images
	square(3, 40, 14, 130, 1, 1, 0),
	square(1, 66, 9, 60, 3, 2, 1),     // of several views
	square(5, 512, 2, 130, 1, 1, 0),   // with copied filters
	square(2, 40, 36, 70, 1, 2, 0),    // of some rows of an image
	square(2, 3, 40, 17, 8, 8, 0),     // patches side by side
	square(1, 19, 161, 30, 10, 10, 0), // of some rows of an image at a time
	square(1, 130, 3, 66, 3, 1, 1),    // at few places
	square(3, 1100, 4, 70, 1, 2, 0),   // of several images
	grouped(2, 2, 40, 9, 128, 3),
	grouped(1, 2, 260, 3, 128, 3),
	depthwise(2, 19, 40, 3, 1, 1),
	depthwise(2, 5, 40, 3, 2, 1),
}

func TestLargeShapes(t *testing.T) {
	longtest.Skip(t)
	for _, s := range large {
		check(t, nil, s)
	}
}

// larger are shapes that take several tasks of many places.
var larger = []Shape{
	square(2, 20, 40, 70, 3, 1, 1),
	square(3, 70, 13, 300, 3, 2, 1),
	square(4, 150, 20, 64, 3, 1, 1),
	square(3, 16, 40, 64, 7, 1, 3),
	square(5, 130, 24, 520, 1, 2, 0),
	square(9, 130, 7, 130, 3, 2, 1),
	grouped(2, 2, 260, 15, 256, 3),
}

// TestAdjoint: the three passes are the derivatives of one trilinear form.
func TestAdjoint(t *testing.T) {
	for _, s := range larger {
		o := draw(s)
		var forms [3]float64
		var size float64
		for i, other := range [][]float32{o.y, o.x, o.w} {
			var products float64
			for j, v := range passes[i].compute(t, nil, s, o, float32(math.NaN())) {
				forms[i] += float64(v) * float64(other[j])
				products += float64(v) * float64(v) * float64(other[j]) * float64(other[j])
			}
			size = max(size, math.Sqrt(products))
		}
		for i, form := range forms {
			if diff := math.Abs(form - forms[0]); !(diff <= 1e-4*size) {
				t.Errorf("%s of %+v: the form is %v, not %v", passes[i].name, s, form, forms[0])
			}
		}
	}
}

// TestThreads: the bits depend neither on the number of threads nor on what was
// in memory.
func TestThreads(t *testing.T) {
	for _, threads := range []int{2, 5, MaxThreads + 1} {
		p := pool.New(threads)
		defer p.Close()
		for _, s := range slices.Concat(large, larger) {
			o := draw(s)
			for _, c := range passes {
				want := c.compute(t, nil, s, o, float32(math.NaN()))
				for i, x := range c.compute(t, p, s, o, 3) {
					if math.Float32bits(x) != math.Float32bits(want[i]) {
						t.Fatalf("%s of %+v on %d threads: element %d is %v, want %v", c.name, s,
							threads, i, x, want[i])
					}
				}
			}
		}
	}
}

// TestDone: every element of a result is complete once, whatever computes it, and what is made
// of it stays.
func TestDone(t *testing.T) {
	for _, threads := range []int{1, 3} {
		p := pool.New(threads)
		defer p.Close()
		for _, s := range slices.Concat(large, larger) {
			o := draw(s)
			want := passes[0].compute(t, nil, s, o, 3)
			for i := range want {
				want[i] = -want[i]
			}
			got, scratch := make([]float32, s.out()), make([]float32, ScratchForward(s)/4)
			Forward(p, s, o.x, o.w, got, scratch, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					got[i] = -got[i]
				}
			})
			if !slices.Equal(got, want) {
				t.Errorf("%+v on %d threads: some elements are not done once", s, threads)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	good := square(1, 4, 5, 6, 3, 1, 1)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Shape){
		"batch":        func(s *Shape) { s.Batch = -1 },
		"channels":     func(s *Shape) { s.InC = -1 },
		"stride":       func(s *Shape) { s.StrideW = 0 },
		"padding":      func(s *Shape) { s.PadLeft = -1 },
		"dilation":     func(s *Shape) { s.DilH = 0 },
		"large":        func(s *Shape) { s.DilH = math.MaxInt },
		"groups":       func(s *Shape) { s.Groups = 3 },
		"no groups":    func(s *Shape) { s.Groups = 0 },
		"tall filter":  func(s *Shape) { s.KH = 8 },
		"wide filter":  func(s *Shape) { s.DilW = 4 },
		"filter width": func(s *Shape) { s.KW = 0 },
	} {
		s := good
		spoil(&s)
		if s.Validate() == nil {
			t.Errorf("%s: %+v is accepted", name, s)
		}
	}
}

// TestRows: rows of every length are taken, put back and interleaved, and what is
// between them is left alone.
func TestRows(t *testing.T) {
	const rows, gap = 3, 5
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 50; n++ {
		for step := 1; step <= 3; step++ {
			src, got, back := random(rng, rows*(n*step+gap)), make([]float32, rows*(n+gap)),
				make([]float32, rows*(n*step+gap))
			takeRows(got, n+gap, src[:len(src)-gap-step+1], n*step+gap, rows, n, step)
			putRows(back, n*step+gap, got, n+gap, rows, n, step)
			for i, x := range got {
				row, col := i/(n+gap), i%(n+gap)
				from := row*(n*step+gap) + col*step
				if col < n && (x != src[from] || back[from] != x) || col >= n && x != 0 {
					t.Fatalf("%d elements, %d apart: %v of %v, back %v", n, step, got, src, back)
				}
			}
		}
		even, odd, dst := random(rng, rows*(n+gap)), random(rng, n), make([]float32, rows*(n+gap))
		interleaveRows(dst, n+gap, even, n+gap, odd, 0, rows, n)
		for i, x := range dst {
			row, col := i/(n+gap), i%(n+gap)
			want := float32(0)
			switch {
			case col < n && col%2 == 0:
				want = even[row*(n+gap)+col/2]
			case col < n:
				want = odd[col/2]
			}
			if x != want {
				t.Fatalf("%d elements: element %d is %v, want %v", n, i, x, want)
			}
		}
	}
}

// TestSteadyCallsAllocateLittle: nothing that grows with the operands.
func TestSteadyCallsAllocateLittle(t *testing.T) {
	small, large := square(1, 20, 20, 20, 3, 2, 1), square(8, 80, 40, 80, 3, 2, 1)
	for _, c := range passes {
		count := func(s Shape) float64 {
			o, to, scratch := draw(s), make([]float32, c.size(s)), make([]float32, c.scratch(s)/4)
			return testing.AllocsPerRun(3, func() { c.run(nil, s, o, to, scratch) })
		}
		if a, b := count(small), count(large); b > a+5 {
			t.Errorf("%s: %v allocations, %v of larger operands", c.name, a, b)
		}
	}
}

// BenchmarkConv measures the layers of a residual network.
func BenchmarkConv(b *testing.B) {
	for _, s := range []Shape{
		square(8, 64, 56, 64, 3, 1, 1),
		square(8, 256, 56, 64, 1, 1, 0),
		square(8, 128, 56, 128, 3, 2, 1),
		square(8, 128, 28, 128, 3, 1, 1),
		square(8, 256, 14, 256, 3, 1, 1),
		square(8, 512, 7, 512, 3, 1, 1),
		square(8, 512, 7, 2048, 1, 1, 0),
		square(8, 256, 56, 512, 1, 2, 0),
		square(8, 3, 224, 64, 7, 2, 3),
		depthwise(8, 128, 56, 3, 1, 1),
	} {
		o := draw(s)
		for _, c := range passes {
			to, scratch := make([]float32, c.size(s)), make([]float32, c.scratch(s)/4)
			for _, threads := range []int{1, 2} {
				name := fmt.Sprintf("%dx%dx%d→%d/%dx%d,%d/%s/threads=%d", s.InC, s.InH, s.InW,
					s.OutC, s.KH, s.KW, s.StrideH, c.name, threads)
				b.Run(name, func(b *testing.B) {
					p := pool.New(threads)
					defer p.Close()
					for b.Loop() {
						c.run(p, s, o, to, scratch)
					}
					b.ReportMetric(float64(s.FLOPs())*float64(b.N)/1e9/b.Elapsed().Seconds(),
						"GFLOP/s")
				})
			}
		}
	}
}
