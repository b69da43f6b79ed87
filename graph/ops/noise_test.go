package ops_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// powerMeans are the means of the first four powers of elements.
func powerMeans(x []float32) (m [4]float64) {
	for _, v := range x {
		power := 1.0
		for i := range m {
			power *= float64(v)
			m[i] += power / float64(len(x))
		}
	}
	return m
}

// TestNoiseMoments: the first four are those of the distribution, within five
// deviations.
func TestNoiseMoments(t *testing.T) {
	const n = 100_001
	b := newBench(t)
	typ := tensor.Of(graph.F32, n)
	uniform, normal := ops.RandomUniform(b.seed(1), typ, "a"), ops.RandomNormal(b.seed(1), typ, "a")
	m := b.run()
	for _, c := range []struct {
		name      string
		have      []float32
		want      [4]float64
		deviation [4]float64 // of a power of one element
		low, high float32
	}{
		{"uniform", m.Value(uniform).F32(), [4]float64{1. / 2, 1. / 3, 1. / 4, 1. / 5},
			[4]float64{0.29, 0.30, 0.29, 0.27}, 0, 1},
		{"normal", m.Value(normal).F32(), [4]float64{0, 1, 0, 3}, [4]float64{1, 1.42, 3.88, 9.8},
			-6.7, 6.7},
	} {
		for i, have := range powerMeans(c.have) {
			if math.Abs(have-c.want[i]) > 5*c.deviation[i]/math.Sqrt(n) {
				t.Errorf("%s: moment %d is %v, want %v", c.name, i+1, have, c.want[i])
			}
		}
		if low, high := slices.Min(c.have), slices.Max(c.have); low < c.low || high >= c.high {
			t.Errorf("%s: elements from %v to %v", c.name, low, high)
		}
	}
}

// TestNoiseIsIndependent: neighbours, which are made of the same words, are not
// correlated, and neither are steps and names.
func TestNoiseIsIndependent(t *testing.T) {
	const n = 20_000
	b := newBench(t)
	typ := tensor.Of(graph.F32, n)
	seed := b.seed(1)
	x := ops.RandomNormal(seed, typ, "a")
	again, step, name := ops.RandomNormal(b.seed(1), typ, "a"),
		ops.RandomNormal(b.seed(2), typ, "a"),
		ops.RandomNormal(seed, typ, "b")
	m := b.run()
	data := m.Value(x).F32()
	if !slices.Equal(data, m.Value(again).F32()) {
		t.Error("the same seed, step and name give other noise")
	}
	for what, other := range map[string][]float32{
		"neighbours": data[1:], "steps": m.Value(step).F32(), "names": m.Value(name).F32(),
	} {
		sum := 0.0
		for i, v := range other {
			sum += float64(v) * float64(data[i])
		}
		if c := sum / n; math.Abs(c) > 5/math.Sqrt(n) {
			t.Errorf("%s have correlation %v", what, c)
		}
	}
}

// TestNoiseOfAnyLength: an element does not depend on how many there are.
func TestNoiseOfAnyLength(t *testing.T) {
	b := newBench(t)
	var long [2]graph.Value
	short := map[graph.Value]int{}
	for i, random := range []func(graph.Value, graph.Type, string) graph.Value{ops.RandomUniform,
		ops.RandomNormal} {
		long[i] = random(b.seed(1), tensor.Of(graph.F32, 700), "a")
		for _, n := range []int{1, 2, 255, 256, 257, 511} {
			short[random(b.seed(1), tensor.Of(graph.F32, n), "a")] = i
		}
	}
	m := b.run()
	for v, i := range short {
		if have := m.Value(v).F32(); !slices.Equal(have, m.Value(long[i]).F32()[:len(have)]) {
			t.Errorf("%s is no part of a longer one", v)
		}
	}
}

// TestBadRandomValues: what cannot be drawn is an error that says why.
func TestBadRandomValues(t *testing.T) {
	nine := slices.Repeat([]int{1}, 9)
	for _, c := range []struct {
		want  string
		build func(b *bench)
	}{
		{"random value of type i32[2], want f32", func(b *bench) {
			ops.RandomNormal(b.seed(1),
				tensor.Of(graph.I32, 2), "a")
		}},
		{"want i32[2]: seed and step", func(b *bench) {
			ops.RandomUniform(b.f32(ramp(2), 2),
				tensor.Of(graph.F32, 2), "a")
		}},
		{"want i32[2]: seed and step", func(b *bench) {
			ops.RandomNormal(b.i32([]int32{1, 2, 3}, 3), tensor.Of(graph.F32, 2), "a")
		}},
		{"has size -1", func(b *bench) {
			ops.RandomUniform(b.seed(1), tensor.Of(graph.F32, 2, -1),
				"a")
		}},
		{"9 axes are more than 8", func(b *bench) {
			ops.RandomNormal(b.seed(1),
				tensor.Of(graph.F32, nine...), "a")
		}},
	} {
		b := newBench(t)
		if c.build(b); b.Err() == nil || !strings.Contains(b.Err().Error(), c.want) {
			t.Errorf("%v does not say %q", b.Err(), c.want)
		}
	}
	if ops.RandomNormal(graph.Value{}, tensor.Of(graph.F32, 2), "a").Valid() {
		t.Error("there is noise without a seed")
	}
}
