package gbt

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
)

// together runs n workers who have a group.
func together(n int, part func(g *collective.Group) error) error {
	return errors.Join(collective.Together(memnet.New(n, memnet.Options{}), collective.Options{},
		part)...)
}

// drawnData is samples whose label depends on some features, and on two of them together. Some
// features have few values.
func drawnData(seed uint64, rows, cols int, loss Loss) (*Data, [][]float32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([][]float32, cols)
	for j := range x {
		x[j] = make([]float32, rows)
		for i := range x[j] {
			x[j][i] = float32(rng.NormFloat64())
			if j%3 == 1 {
				x[j][i] = float32(rng.IntN(4))
			}
		}
	}
	d := &Data{Rows: rows, Cols: cols, Label: make([]float64, rows),
		Column: func(j int, to []float32) { copy(to, x[j]) }}
	for i := range d.Label {
		y := 2*float64(x[0][i]) - float64(x[cols/2][i]*x[0][i]) + 0.3*rng.NormFloat64()
		if loss == Logistic && y > 0.2 {
			y = 1
		} else if loss == Logistic {
			y = 0
		}
		d.Label[i] = y
	}
	return d, x
}

// learnt is the forest that all of n workers come to, what they said, and whether they divided
// samples.
func learnt(t *testing.T, n int, d *Data, o Options, from *Forest) (*Forest, []Progress, bool) {
	t.Helper()
	forests, bySample := make([]*Forest, n), false
	said := make([][]Progress, n)
	err := together(n, func(g *collective.Group) error {
		f := &Forest{}
		if from != nil {
			f = &Forest{from.Base, slices.Clone(from.Trees)}
		}
		w := &Worker{Options: o, Data: d, Group: g,
			After: func(_ context.Context, p Progress) error {
				said[g.Rank()] = append(said[g.Rank()], p)
				return nil
			}}
		err := w.Run(t.Context(), f)
		if forests[g.Rank()] = f; g.Rank() == 0 {
			bySample = w.bySample()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank, f := range forests {
		if !reflect.DeepEqual(f, forests[0]) || !reflect.DeepEqual(said[rank], said[0]) {
			t.Fatalf("worker %d of %d has another forest than the first, or says so", rank, n)
		}
	}
	return forests[0], said[0], bySample
}

// TestSameTrees: any number of workers, of whom some may have nothing to do, come to the same bits,
// whether samples or features are divided; and so do those that go on from what others had.
func TestSameTrees(t *testing.T) {
	ways := map[bool]bool{}
	for _, c := range []struct {
		rows, cols int
		loss       Loss
	}{{900, 2, Squares}, {150, 9, Logistic}, {1700, 3, Logistic}, {60, 5, Squares},
		{700, 1, Squares}, {60, 2, Logistic}} {
		d, _ := drawnData(1, c.rows, c.cols, c.loss)
		o := Options{Loss: c.loss, Trees: 5, Depth: 4, Rate: 0.3, L2: 1, MinLeaf: 5}
		want, first, _ := learnt(t, 1, d, o, nil)
		for n := 2; n <= 4; n++ {
			have, said, bySample := learnt(t, n, d, o, nil)
			ways[bySample] = true
			if !reflect.DeepEqual(have, want) {
				t.Fatalf("%+v by %d workers: another forest", c, n)
			}
			for i, p := range said {
				if math.Abs(p.Loss-first[i].Loss) > 1e-9*first[i].Loss ||
					p.Errors != first[i].Errors || p.Trees != i {
					t.Errorf("%+v by %d workers: %+v, want %+v", c, n, p, first[i])
				}
			}
			half := &Forest{want.Base, want.Trees[:2]}
			if have, said, _ = learnt(t, n, d, o, half); !reflect.DeepEqual(have, want) ||
				len(said) != 4 {
				t.Errorf("%+v by %d workers: another forest from the middle on", c, n)
			}
		}
		if !(first[5].Loss < first[0].Loss*0.7) {
			t.Errorf("%+v: loss %g, and %g at first", c, first[5].Loss, first[0].Loss)
		}
	}
	if len(ways) != 2 {
		t.Errorf("only one way to divide was chosen: %v", ways)
	}
}

// greedy grows a tree by trying every split of every leaf on the numbers as they are.
type greedy struct {
	Options
	*Data
	x    [][]float32
	says []float64
	tree Tree
}

func (w *greedy) score(rows []int) (score, value float64) {
	var g, h float64
	for _, i := range rows {
		_, a, b := w.Loss.at(w.Label[i], w.says[i])
		g, h = g+a, h+b
	}
	return g * g / (h + w.L2), -w.Rate * g / (h + w.L2)
}

func (w *greedy) grow(node int, rows []int) {
	whole, value := w.score(rows)
	w.tree[node] = Node{Feature: -1, Value: float32(value)}
	if 2*node+2 >= len(w.tree) {
		return
	}
	most, left, right := 1e-9, []int(nil), []int(nil)
	for j := range w.x {
		for _, at := range limits(w.x[j]) {
			var parts [2][]int
			for _, i := range rows {
				k := 0
				if w.x[j][i] > at {
					k = 1
				}
				parts[k] = append(parts[k], i)
			}
			if min(len(parts[0]), len(parts[1])) < w.MinLeaf {
				continue
			}
			a, _ := w.score(parts[0])
			b, _ := w.score(parts[1])
			if gain := a + b - whole; gain > most*(1+1e-6) {
				most, left, right = gain, parts[0], parts[1]
				w.tree[node].Feature, w.tree[node].Limit = int32(j), at
			}
		}
	}
	if left != nil {
		w.grow(2*node+1, left)
		w.grow(2*node+2, right)
	}
}

// TestGreedy: each tree has the questions that a search of all splits comes to, and its values.
func TestGreedy(t *testing.T) {
	for _, loss := range []Loss{Squares, Logistic} {
		d, x := drawnData(3, 160, 4, loss)
		o := Options{Loss: loss, Trees: 3, Depth: 3, Rate: 0.5, L2: 0.7, MinLeaf: 4}
		have, _, _ := learnt(t, 2, d, o, nil)
		says := slices.Repeat([]float64{float64(have.Base)}, d.Rows)
		for k, tree := range have.Trees {
			w := &greedy{o, d, x, says, newTree(o.Depth)}
			w.grow(0, span{0, d.Rows}.list())
			for i, n := range w.tree {
				h := tree[i]
				if n.Feature != h.Feature || n.Limit != h.Limit || n.Feature < 0 &&
					math.Abs(float64(n.Value-h.Value)) > 1e-5*max(1, math.Abs(float64(n.Value))) {
					t.Fatalf("%v, tree %d, node %d: %+v, want %+v", loss, k, i, h, n)
				}
			}
			for i := range says {
				says[i] += float64(tree.At(func(j int32) float32 { return x[j][i] }))
			}
		}
	}
}

// TestBest: of splits that are equally good the first is taken, one that gains nothing is none, and
// a leaf has what it takes.
func TestBest(t *testing.T) {
	o, one := Options{MinLeaf: 2}, units{1, 1}
	same := []sums{{4, 4, 4}, {0, 1, 1}, {-4, 4, 4}}
	for _, c := range []struct {
		bins      []sums
		feature   int32
		bin, left int64
	}{
		{[]sums{{4, 4, 4}, {0, 4, 4}, {4, 4, 4}, {-8, 4, 4}}, 7, 2, 12},
		{[]sums{{4, 4, 4}, {-2, 4, 4}, {4, 4, 4}}, 7, 0, 4},
		{[]sums{{4, 4, 4}, {4, 4, 4}}, -1, 0, 0},
		{[]sums{{9, 1, 1}, {1, 4, 4}}, -1, 0, 0},
		{[]sums{{9, 0, 4}, {1, 4, 4}}, -1, 0, 0},
	} {
		s := o.bestBy(7, c.bins, one)
		if s.feature != c.feature || int64(s.bin) != c.bin || s.left.n != c.left {
			t.Errorf("%v: %+v, want %+v", c.bins, s, c)
		}
	}
	a, b := o.bestBy(1, same, one), o.bestBy(2, same, one)
	if have := b.better(a); have.feature != 1 || a.better(b).feature != 1 || a.gain != b.gain {
		t.Errorf("%+v", have)
	}
}

// TestLimits: bins are between the values that there are, or have as many samples each as can be;
// and a value is in the bin of its limits.
func TestLimits(t *testing.T) {
	next := math.Nextafter32(1, 2)
	after := math.Nextafter32(next, 2) // the middle of these two is rounded up
	for _, c := range []struct{ x, want []float32 }{
		{[]float32{3}, nil}, {[]float32{5, 1, 5, 1}, []float32{3}},
		{[]float32{1, next, 2}, []float32{1, (next + 2) / 2}},
		{[]float32{next, after}, []float32{next}},
		{[]float32{-math.MaxFloat32, math.MaxFloat32}, []float32{0}},
	} {
		if have := limits(c.x); !slices.Equal(have, c.want) {
			t.Errorf("%v: %v, want %v", c.x, have, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(5, 5))
	x := make([]float32, 255*40)
	for i := range x {
		x[i] = float32(rng.ExpFloat64())
	}
	signed := []float32{0, -3, 2, float32(math.Copysign(0, -1)), -1e-40, 1e30, -1e30}
	for range x {
		signed = append(signed, float32(rng.NormFloat64()))
	}
	sorted := slices.Sorted(slices.Values(signed))
	if have := ascending(signed); !slices.Equal(have, sorted) {
		t.Error("numbers are not in order")
	}
	cuts, had := limits(x), map[uint8]int{}
	for i, b := range quantise(x, cuts) {
		had[b]++
		if b > 0 && x[i] <= cuts[b-1] || int(b) < len(cuts) && x[i] > cuts[b] {
			t.Fatalf("%g is in bin %d", x[i], b)
		}
	}
	for b, n := range had {
		if n != 40 || len(had) != MaxBins {
			t.Errorf("bin %d of %d has %d samples", b, len(had), n)
		}
	}
}

// TestAbsurd: what cannot be learnt from is refused, what has nothing to tell apart is one leaf,
// and numbers may be large.
func TestAbsurd(t *testing.T) {
	ok := Options{Trees: 2, Depth: 3, Rate: 0.1, MinLeaf: 1}
	d, _ := drawnData(1, 20, 2, Squares)
	run := func(o Options, d *Data) error {
		return together(2, func(g *collective.Group) error {
			return (&Worker{Options: o, Data: d, Group: g}).Run(t.Context(), &Forest{})
		})
	}
	for name, change := range map[string]func(o *Options, d *Data){
		"no trees":        func(o *Options, _ *Data) { o.Trees = 0 },
		"no loss":         func(o *Options, _ *Data) { o.Loss = 2 },
		"flat":            func(o *Options, _ *Data) { o.Depth = 0 },
		"deep":            func(o *Options, _ *Data) { o.Depth = maxDepth + 1 },
		"no rate":         func(o *Options, _ *Data) { o.Rate = math.NaN() },
		"a negative L2":   func(o *Options, _ *Data) { o.L2 = -1 },
		"empty leaves":    func(o *Options, _ *Data) { o.MinLeaf = 0 },
		"no samples":      func(_ *Options, d *Data) { d.Rows, d.Label = 0, nil },
		"no features":     func(_ *Options, d *Data) { d.Cols = 0 },
		"a label missing": func(_ *Options, d *Data) { d.Label = d.Label[:19] },
		"no number": func(_ *Options, d *Data) {
			d.Label = slices.Repeat([]float64{math.NaN()}, 20)
		},
		"it diverges": func(o *Options, _ *Data) { o.Rate, o.Trees = 1e200, 9 },
	} {
		o, own := ok, *d
		change(&o, &own)
		if run(o, &own) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	same := *d
	same.Column = func(_ int, to []float32) { clear(to) }
	f, _, _ := learnt(t, 3, &same, ok, nil)
	if len(f.Trees) != 2 || f.Trees[1][0].Feature >= 0 {
		t.Errorf("features that say nothing: %+v", f)
	}
	huge := *d
	huge.Label = slices.Clone(d.Label)
	for i := range huge.Label {
		huge.Label[i] *= 1e30
	}
	if f, said, _ := learnt(t, 2, &huge, ok, nil); !(said[2].Loss < said[0].Loss) ||
		f.Trees[0][0].Feature < 0 {
		t.Errorf("huge labels: %+v", said)
	}
	one := &Data{Rows: 1, Cols: 1, Label: []float64{1}, Column: same.Column}
	logistic := ok
	logistic.Loss = Logistic
	if f, _, _ := learnt(t, 4, one, logistic, nil); len(f.Trees) != 2 {
		t.Errorf("one sample: %+v", f)
	}
}
