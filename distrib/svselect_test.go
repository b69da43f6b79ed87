package distrib_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// regression is multinomial logistic regression of classes on drawn features, whose
// gradient of a batch is a sum of outer products: of probabilities less labels, and
// features.
type regression struct {
	classes, features int
	w                 []float32 // classes x features
	x                 [][]float32
	label             []int
}

func newRegression(classes, features, examples int) *regression {
	rng := rand.New(rand.NewPCG(1, 2))
	r := &regression{classes: classes, features: features}
	truth := normals(rng, classes*features)
	r.w = normals(rng, classes*features)
	for range examples {
		x := normals(rng, features)
		best, score := 0, math.Inf(-1)
		for c := range classes {
			s := 0.0
			for k, v := range x {
				s += float64(v * truth[c*features+k])
			}
			if s += 3 * rng.NormFloat64(); s > score {
				best, score = c, s
			}
		}
		r.x, r.label = append(r.x, x), append(r.label, best)
	}
	return r
}

// gradient is the sum over a batch, factored, and the batch's mean loss.
func (r *regression) gradient(batch []int) (g distrib.Factored, loss float64) {
	g = distrib.Factored{R: len(batch), J: r.classes, K: r.features}
	for _, i := range batch {
		p := make([]float64, r.classes)
		var sum float64
		for c := range p {
			for k, v := range r.x[i] {
				p[c] += float64(v * r.w[c*r.features+k])
			}
			p[c] = math.Exp(p[c])
			sum += p[c]
		}
		loss -= math.Log(p[r.label[i]]/sum) / float64(len(batch))
		for c := range p {
			d := p[c] / sum
			if c == r.label[i] {
				d--
			}
			g.A = append(g.A, float32(d))
		}
		g.B = append(g.B, r.x[i]...)
	}
	return g, loss
}

func (r *regression) batch(step, size int) []int {
	out := make([]int, size)
	for i := range out {
		out[i] = (step*size + i) % len(r.x)
	}
	return out
}

func (r *regression) loss() float64 {
	_, loss := r.gradient(r.batch(0, len(r.x)))
	return loss
}

// subset is Orpheus' selection: the sum of c original pairs, drawn by what Gram and
// Schmidt leave of them.
func subset(u distrib.Factored, c int, rng *rand.Rand) distrib.Factored {
	double := func(x []float32, n int) (out [][]float64) {
		for i := range u.R {
			row := make([]float64, n)
			for j := range row {
				row[j] = float64(x[i*n+j])
			}
			out = append(out, row)
		}
		return out
	}
	a, b := double(u.A, u.J), double(u.B, u.K)
	product := func(x, y []float64) (s float64) {
		for i := range x {
			s += x[i] * y[i]
		}
		return s
	}
	remove := func(rows [][]float64, i int) {
		q, len2 := append([]float64(nil), rows[i]...), product(rows[i], rows[i])
		for _, row := range rows {
			m := product(row, q) / len2
			for j := range row {
				row[j] -= m * q[j]
			}
		}
	}
	out := distrib.Factored{J: u.J, K: u.K}
	for range c {
		var sum float64
		weight := make([]float64, u.R)
		for i := range weight {
			weight[i] = product(a[i], a[i]) * product(b[i], b[i])
			sum += weight[i]
		}
		i, at := 0, rng.Float64()*sum
		for ; i < u.R-1 && at >= weight[i]; i++ {
			at -= weight[i]
		}
		remove(a, i)
		remove(b, i)
		out.R++
		out.A = append(out.A, u.A[i*u.J:(i+1)*u.J]...)
		out.B = append(out.B, u.B[i*u.K:(i+1)*u.K]...)
	}
	return out
}

// missing is how far part is from u, relative to u.
func missing(u, part distrib.Update) float64 {
	minus := make(distrib.Dense, distrib.Elements(part))
	part.AddTo(minus, len(minus)/max(1, rowsOf(part)), -1)
	return distrib.Add(u, minus).Norm() / u.Norm()
}

func rowsOf(u distrib.Update) int {
	if f, ok := u.(distrib.Factored); ok {
		return f.J
	}
	return 1
}

// errorsOfSelection are, of one gradient of a regression, the errors of the projection and
// of Orpheus' sum, with equal bytes.
func errorsOfSelection(classes, features, batch, c int, seed uint64) (projected, plain float64) {
	r := newRegression(classes, features, batch)
	u, _ := r.gradient(r.batch(0, batch))
	f := &distrib.SVSelect{C: c, Seed: seed}
	send, _ := f.Split(&distrib.Entry{U: u}, 0, distrib.Link{})
	return missing(u, send), missing(u, subset(u, c, rand.New(rand.NewPCG(seed, 1))))
}

// TestSVSelectBeatsThePlainSum at every C, with the same bytes, and is exact at the last.
func TestSVSelectBeatsThePlainSum(t *testing.T) {
	const classes, features, batch = 20, 30, 12
	last := 1.0
	for c := 1; c <= batch; c++ {
		var projected, plain float64
		for seed := range uint64(20) {
			p, s := errorsOfSelection(classes, features, batch, c, seed)
			projected, plain = projected+p/20, plain+s/20
		}
		if projected > plain+1e-5 || projected > last+1e-5 {
			t.Errorf("C=%d: projected %.3f, after %.3f with one less; plain %.3f", c, projected,
				last, plain)
		}
		last = projected
		r := newRegression(classes, features, batch)
		u, _ := r.gradient(r.batch(0, batch))
		f := &distrib.SVSelect{C: c}
		send, _ := f.Split(&distrib.Entry{U: u}, 0, distrib.Link{})
		if want := c * 4 * (classes + features); send.WireSize() != want {
			t.Errorf("C=%d: %d bytes, want %d", c, send.WireSize(), want)
		}
	}
	if last > 1e-6 {
		t.Errorf("all pairs miss %v", last)
	}
}

// TestSVSelectTakesTheBetterSide: where one side has few directions, those are all.
func TestSVSelectTakesTheBetterSide(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, flip := range []bool{false, true} {
		narrow, wide := []float32{}, normals(rng, 6*10)
		one := normals(rng, 10)
		for i := range 6 {
			for _, v := range one {
				narrow = append(narrow, v*float32(i+1))
			}
		}
		u := distrib.Factored{R: 6, J: 10, K: 10, A: narrow, B: wide}
		if flip {
			u.A, u.B = wide, narrow
		}
		f := &distrib.SVSelect{C: 1}
		send, keep := f.Split(&distrib.Entry{U: u}, 0, distrib.Link{})
		if keep != nil || missing(u, send) > 1e-6 {
			t.Errorf("a sum of rank 1 misses %v, and %v is kept", missing(u, send), keep)
		}
	}
}

// TestSVSelectKeepsLessThanItGot: what is kept has C pairs less, until they are too many.
func TestSVSelectKeepsLessThanItGot(t *testing.T) {
	r := newRegression(40, 60, 24)
	f := &distrib.SVSelect{C: 5, Pool: 20}
	bindFilter(f, 40, 60)
	var kept distrib.Update
	for step := range 6 {
		u, _ := r.gradient(r.batch(step, 12))
		send, keep := f.Split(&distrib.Entry{U: distrib.Add(kept, u)}, distrib.Clock(step),
			distrib.Link{})
		if s, ok := send.(distrib.Factored); !ok || s.R != 5 {
			t.Fatalf("step %d: %T is sent", step, send)
		}
		before, _ := kept.(distrib.Factored)
		switch k := keep.(type) {
		case distrib.Factored:
			if k.R != before.R+12-5 || k.R > 20 {
				t.Errorf("step %d: %d pairs are kept of %d", step, k.R, before.R+12)
			}
		case distrib.Dense:
			if step < 2 {
				t.Errorf("step %d: a matrix is kept", step)
			}
		}
		kept = keep
	}
	if _, ok := kept.(distrib.Dense); !ok {
		t.Errorf("%T is kept in the end", kept)
	}
}

// TestSVSelectIsReproducible: the same entry and clock, the same bits; another clock,
// another draw.
func TestSVSelectIsReproducible(t *testing.T) {
	r := newRegression(20, 30, 12)
	u, _ := r.gradient(r.batch(0, 12))
	at := func(clock distrib.Clock, dest distrib.NodeID) string {
		f := &distrib.SVSelect{C: 3}
		send, _ := f.Split(&distrib.Entry{U: u, Dest: dest}, clock, distrib.Link{})
		return fmt.Sprint(send)
	}
	first := at(1, 2)
	if again := at(1, 2); again != first {
		t.Error("not the same twice")
	}
	if first == at(2, 2) || first == at(1, 3) {
		t.Error("the draw is always the same")
	}
}

// stepsTo trains a regression until a loss, through a filter, and says in how many steps.
func stepsTo(r *regression, f distrib.Filter, batch, most int, target float64) (int, float64) {
	clear(r.w)
	var kept distrib.Update
	for step := range most {
		u, _ := r.gradient(r.batch(step, batch))
		send, keep := f.Split(&distrib.Entry{U: distrib.Add(kept, u)}, distrib.Clock(step),
			distrib.Link{})
		send.AddTo(r.w, r.features, -0.5/float32(batch))
		kept = keep
		if loss := r.loss(); loss <= target {
			return step + 1, loss
		}
	}
	return most, r.loss()
}

// everything is the filter that keeps nothing.
type everything struct{}

func (everything) Split(e *distrib.Entry, _ distrib.Clock, _ distrib.Link) (a, b distrib.Update) {
	return e.U, nil
}

// TestSVSelectTrains: with what is not sent carried along, a quarter of the pairs takes
// nearly as few steps as all.
func TestSVSelectTrains(t *testing.T) {
	r := newRegression(20, 40, 200)
	const batch, steps = 40, 60
	_, target := stepsTo(r, everything{}, batch, steps, 0)
	f := &distrib.SVSelect{C: 10}
	bindFilter(f, 20, 40)
	got, loss := stepsTo(r, f, batch, 2*steps, target)
	t.Logf("loss %.4f in %d steps; with SVSelect %.4f in %d", target, steps, loss, got)
	if got > steps*21/20 {
		t.Errorf("%d steps to the loss that the full batch has in %d", got, steps)
	}
}

// BenchmarkSVSelect is G10: errors of one gradient, J=200, K=300, B=100, and the steps to
// the loss that the full batch has after 100.
func BenchmarkSVSelect(b *testing.B) {
	for _, c := range []int{10, 25, 50, 75} {
		b.Run(fmt.Sprintf("error/C=%d", c), func(b *testing.B) {
			var projected, plain float64
			for i := range b.N {
				p, s := errorsOfSelection(200, 300, 100, c, uint64(i))
				projected, plain = projected+p, plain+s
			}
			b.ReportMetric(projected/float64(b.N), "projected")
			b.ReportMetric(plain/float64(b.N), "plain")
		})
	}
	b.Run("steps/C=25", func(b *testing.B) {
		for range b.N {
			r := newRegression(50, 80, 400)
			_, target := stepsTo(r, everything{}, 100, 100, 0)
			f := &distrib.SVSelect{C: 25}
			bindFilter(f, 50, 80)
			got, _ := stepsTo(r, f, 100, 200, target)
			b.ReportMetric(float64(got)/100, "of-full-batch")
		}
	})
}
