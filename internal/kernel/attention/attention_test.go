package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// data are a problem's operands and results.
type data struct {
	q, k, v, out, d, dq, dk, dv, sums, delta Rows
}

// rowsOf are vectors of n elements, heads first or places first.
func rowsOf(rng *rand.Rand, batch, heads, places, n int, headsFirst bool) Rows {
	r := Rows{F32: make([]float32, batch*heads*places*n), Batch: heads * places * n}
	r.Head, r.Next = n, heads*n
	if headsFirst {
		r.Head, r.Next = places*n, n
	}
	for i := range r.F32 {
		if r.F32[i] = float32(math.NaN()); rng != nil {
			r.F32[i] = float32(rng.NormFloat64())
		}
	}
	return r
}

func draw(x Problem, seed uint64, headsFirst bool) *data {
	rng := rand.New(rand.NewPCG(seed, 1))
	queries := func(rng *rand.Rand, n int) Rows {
		return rowsOf(rng, x.Batch, x.Heads, x.Queries, n, headsFirst)
	}
	keys := func(rng *rand.Rand, n int) Rows {
		return rowsOf(rng, x.Batch, x.Groups, x.Keys, n, headsFirst)
	}
	return &data{q: queries(rng, x.Size), k: keys(rng, x.Size), v: keys(rng, x.ValueSize),
		out: queries(nil, x.ValueSize), d: queries(rng, x.ValueSize), dq: queries(nil, x.Size),
		dk: keys(nil, x.Size), dv: keys(nil, x.ValueSize),
		sums: queries(nil, 1), delta: queries(nil, 1)}
}

// run computes results and gradients.
func (d *data) run(p *pool.Pool, x Problem) {
	Forward(p, x, d.q, d.k, d.v, d.out, d.sums, make([]float32, ScratchForward(x)/4))
	for b := range x.Batch {
		for h := range x.Heads {
			for i := range x.Queries {
				n := x.ValueSize
				d.delta.at(b, h, i)[0] = vec.Dot(d.out.at(b, h, i)[:n], d.d.at(b, h, i)[:n])
			}
		}
	}
	Backward(p, x, d.q, d.k, d.v, Gradients{Sums: d.sums, DOut: d.d, Delta: d.delta, DQ: d.dq,
		DK: d.dk, DV: d.dv}, make([]float32, ScratchBackward(x)/4))
}

// plain computes both in 64 bits, one number after the other, and compares.
func (d *data) plain(t *testing.T, x Problem) {
	per := x.Heads / x.Groups
	dk, dv := make([]float64, len(d.k.F32)), make([]float64, len(d.v.F32))
	for b := range x.Batch {
		for h := range x.Heads {
			for i := range x.Queries {
				d.plainRow(t, x, b, h, h/per, i, dk, dv)
			}
		}
	}
	for i, want := range dk {
		near(t, "dk", d.dk.F32[i], want)
	}
	for i, want := range dv {
		near(t, "dv", d.dv.F32[i], want)
	}
}

func near(t *testing.T, what string, got float32, want float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= 3e-4*(1+math.Abs(want))) {
		t.Fatalf("%s is %g, want %g", what, got, want)
	}
}

// visible says whether a query sees a key, from the definition.
func visible(x Problem, b, i, j int) bool {
	at := i + x.Place
	if x.Places != nil {
		at += int(x.Places[b%len(x.Places)])
	}
	switch {
	case x.Causal && j > at,
		x.Causal && x.Window > 0 && j <= at-x.Window && j >= x.Sinks,
		x.Padding != nil && x.Padding[b*x.Keys+j] == 0,
		x.Documents != nil && x.Documents[b*x.Keys+j] != x.Documents[b*x.Keys+at]:
		return false
	}
	return true
}

// factor is what a weight is multiplied by.
func factor(x Problem, b, h, i, j int) float64 {
	if !x.drops() {
		return 1
	}
	one := []float32{1}
	vec.Dropout(one, one, x.Keep, x.Key, uint64(x.From+b*x.ByBatch+h*x.ByHead+i*x.ByQuery+j))
	return float64(one[0])
}

func (d *data) plainRow(t *testing.T, x Problem, b, h, g, i int, dk, dv []float64) {
	q, dout := d.q.at(b, h, i)[:x.Size], d.d.at(b, h, i)[:x.ValueSize]
	weights, slopes := make([]float64, x.Keys), make([]float64, x.Keys)
	total := 0.0
	for j := range weights {
		s := float64(x.Scale) * dot(q, d.k.at(b, g, j))
		if slopes[j] = 1; x.Softcap > 0 {
			c := math.Tanh(s / float64(x.Softcap))
			s, slopes[j] = c*float64(x.Softcap), 1-c*c
		}
		if visible(x, b, i, j) {
			weights[j] = math.Exp(s)
			total += weights[j]
		}
	}
	sum, at := d.sums.at(b, h, i)[0], 0.0
	if total == 0 {
		total = 1
		at = math.Inf(-1)
	}
	if at += math.Log(total); float64(sum) != at {
		near(t, "sum", sum, at)
	}
	out, delta := make([]float64, x.ValueSize), 0.0
	for j := range weights {
		weights[j] /= total
		for e, v := range d.v.at(b, g, j)[:x.ValueSize] {
			out[e] += weights[j] * factor(x, b, h, i, j) * float64(v)
		}
	}
	for e, want := range out {
		near(t, "result", d.out.at(b, h, i)[e], want)
		delta += want * float64(dout[e])
	}
	dq := make([]float64, x.Size)
	for j, w := range weights {
		kept := factor(x, b, h, i, j)
		slope := w * (kept*dot(dout, d.v.at(b, g, j)) - delta) * slopes[j] * float64(x.Scale)
		key, from := d.k.at(b, g, j)[:x.Size], b*d.k.Batch+g*d.k.Head+j*d.k.Next
		for e := range dq {
			dq[e] += slope * float64(key[e])
			dk[from+e] += slope * float64(q[e])
		}
		from = b*d.v.Batch + g*d.v.Head + j*d.v.Next
		for e := range dout {
			dv[from+e] += w * kept * float64(dout[e])
		}
	}
	for e, want := range dq {
		near(t, "dq", d.dq.at(b, h, i)[e], want)
	}
}

func dot(a, b []float32) (sum float64) {
	for i, v := range a {
		sum += float64(float64(v) * float64(b[i]))
	}
	return sum
}

func problems() []Problem {
	base := Problem{Batch: 2, Queries: 5, Keys: 5, Heads: 2, Groups: 2, Size: 3, ValueSize: 4,
		Scale: 0.7}
	vary := func(f func(*Problem)) Problem {
		x := base
		f(&x)
		return x
	}
	ids := func(n int, f func(i int) int32) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	long := func(x *Problem) { x.Queries, x.Keys, x.Size, x.ValueSize = 300, 300, 16, 8 }
	return []Problem{
		base,
		vary(func(x *Problem) { x.Groups, x.Heads, x.Keys, x.Size = 2, 6, 9, 8 }),
		vary(func(x *Problem) { long(x); x.Causal = true }),
		vary(func(x *Problem) { long(x); x.Groups = 1 }),
		vary(func(x *Problem) { long(x); x.Causal, x.Window = true, 40 }),
		vary(func(x *Problem) { long(x); x.Causal, x.Window, x.Sinks = true, 140, 3 }),
		vary(func(x *Problem) { long(x); x.Causal, x.Window, x.Sinks = true, 1, 200 }),
		vary(func(x *Problem) { long(x); x.Queries, x.Place, x.Causal = 130, 170, true }),
		vary(func(x *Problem) {
			x.Queries, x.Keys, x.Places, x.Causal = 1, 400, []int32{13, 290}, true
		}),
		vary(func(x *Problem) { x.Queries, x.Keys, x.Places, x.Causal = 3, 40, []int32{30}, true }),
		vary(func(x *Problem) { long(x); x.Softcap = 1.5 }),
		vary(func(x *Problem) {
			long(x)
			x.Padding = ids(600, func(i int) int32 { return int32((i % 600) / 200 % 2) })
		}),
		vary(func(x *Problem) { x.Padding = make([]int32, 10) }),
		vary(func(x *Problem) {
			long(x)
			x.Causal, x.Documents = true, ids(600, func(i int) int32 { return int32(i % 300 / 45) })
		}),
		vary(func(x *Problem) {
			long(x)
			x.Documents = ids(600, func(i int) int32 { return int32(i % 3) })
			x.Softcap, x.Causal, x.Groups = 3, true, 1
			x.Noise = Noise{Keep: 0.8, Key: 99, From: 5, ByBatch: 180000, ByHead: 90000,
				ByQuery: 300}
		}),
		vary(func(x *Problem) { x.Noise = Noise{Keep: 0.5, Key: 7, ByHead: 5} }),
	}
}

func TestAttentionIsItsDefinition(t *testing.T) {
	for i, x := range problems() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			d := draw(x, uint64(i), i%2 == 0)
			d.run(nil, x)
			d.plain(t, x)
		})
	}
}

// TestThreadsGiveTheSameBits: few threads compute both gradients at once, many apart.
func TestThreadsGiveTheSameBits(t *testing.T) {
	many := pool.New(7)
	defer many.Close()
	for i, x := range problems() {
		one, other := draw(x, uint64(i), false), draw(x, uint64(i), false)
		one.run(nil, x)
		other.run(many, x)
		for name, pair := range map[string][2][]float32{
			"result": {one.out.F32, other.out.F32}, "sums": {one.sums.F32, other.sums.F32},
			"dq": {one.dq.F32, other.dq.F32}, "dk": {one.dk.F32, other.dk.F32},
			"dv": {one.dv.F32, other.dv.F32},
		} {
			if !slices.Equal(pair[0], pair[1]) {
				t.Errorf("problem %d: %s differs", i, name)
			}
		}
	}
}

// TestRowsAreTheirOwn: some queries have the results that they have among all.
func TestRowsAreTheirOwn(t *testing.T) {
	for i, x := range problems() {
		if x.Queries < 200 || x.Documents != nil {
			continue
		}
		whole := draw(x, uint64(i), true)
		whole.run(nil, x)
		for _, some := range [][2]int{{0, 1}, {7, 20}, {100, 300}, {299, 300}} {
			lo, hi := some[0], some[1]
			y, part := x, *whole
			y.Rows, y.Queries, y.Place = x.Queries, hi-lo, x.Place+lo
			y.From += lo * y.ByQuery
			part.q.F32 = whole.q.F32[lo*x.Size:]
			part.out = rowsOf(nil, x.Batch, x.Heads, x.Queries, x.ValueSize, true)
			part.sums = rowsOf(nil, x.Batch, x.Heads, x.Queries, 1, true)
			Forward(nil, y, part.q, part.k, part.v, part.out, part.sums,
				make([]float32, ScratchForward(y)/4))
			for b := range x.Batch {
				for h := range x.Heads {
					for r := range y.Queries {
						got := part.out.at(b, h, r)[:x.ValueSize]
						if !slices.Equal(got, whole.out.at(b, h, lo+r)[:x.ValueSize]) {
							t.Fatalf("problem %d: row %d of %v differs", i, r, some)
						}
					}
				}
			}
		}
	}
}
