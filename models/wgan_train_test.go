package models

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
)

// contest is the machines of a pair's objectives, and of its evaluation.
type contest struct {
	objectives []machine
	eval       machine
	turns      int
}

func newContest(t testing.TB, m *Model) *contest {
	x := &contest{}
	for _, o := range m.Objectives {
		alone := *m
		alone.Objectives = []Objective{o}
		values := []graph.Value{o.Loss}
		for _, metric := range o.Metrics {
			values = append(values, metric.Value)
		}
		x.objectives = append(x.objectives, newMachine(t, &alone, true, values...))
	}
	x.eval = newMachine(t, m, false, append(slices.Clone(m.EvalOutputs), m.EvalLoss)...)
	return x
}

// step executes an objective once, on squares, and gives its weights to the
// others.
func (x *contest) step(t testing.TB, i, turn int) {
	t.Helper()
	from := x.objectives[i]
	from.feedSquares(x.turns, turn)
	if err := from.Step(); err != nil {
		t.Fatal(err)
	}
	x.turns++
	for _, to := range append(slices.Clone(x.objectives), x.eval) {
		for _, n := range from.model.Graph.Variables() {
			if !n.State {
				copy(to.Value(n.Value(0)).Data, from.Value(n.Value(0)).Data)
			}
		}
	}
}

// feedSquares feeds images of a bright square somewhere on a dark ground, and no
// labels but in evaluation.
func (x machine) feedSquares(execution, turn int) {
	m := x.model
	rng := rand.New(rand.NewPCG(uint64(execution), 3))
	images := x.Value(m.Data[0])
	pixels, side := images.F32(), images.Type.Size(2)
	for i := range pixels {
		pixels[i] = -0.9
	}
	for image := range images.Type.Size(0) {
		at := [2]int{rng.IntN(side / 2), rng.IntN(side / 2)}
		for i := range 3 * side / 2 * side / 2 {
			c, y, x := i/(side*side/4), i/(side/2)%(side/2), i%(side/2)
			pixels[((image*3+c)*side+at[0]+y)*side+at[1]+x] = 0.9
		}
	}
	for i := range x.Value(m.Data[1]).I32() {
		x.Value(m.Data[1]).I32()[i] = 1
	}
	copy(x.Value(m.Seed).I32(), []int32{7, int32(execution)})
	x.Value(m.LearningRate).F32()[0] = m.Schedule.At(0)
	x.Value(m.Step).F32()[0] = float32(turn + 1)
}

// TestWGANLearns: while the critic alone trains, the distance that it sees grows;
// against it, the generator makes it smaller; the slope comes near 1.
func TestWGANLearns(t *testing.T) {
	longtest.Skip(t)
	for _, nets := range []string{"resnet", "good"}[:longtest.Count(1, 2)] {
		t.Run(nets, func(t *testing.T) {
			c := wganConfig(t, "s512")
			c.Nets, c.Images = nets, 2
			m := buildWGAN(t, c)
			x := newContest(t, m)
			const turns = 200
			var distance, penalty []float64
			for turn := range turns {
				x.step(t, 0, turn)
				metric := m.Objectives[0].Metrics[0]
				distance = append(distance, x.objectives[0].scalar(metric.Value))
				penalty = append(penalty, x.objectives[0].scalar(m.Objectives[0].Metrics[1].Value))
			}
			for turn := range 20 {
				x.step(t, 1, turn)
			}
			x.step(t, 0, turns)
			after := x.objectives[0].scalar(m.Objectives[0].Metrics[0].Value)
			t.Logf("distance %.3f, %.3f, then %.3f; penalty %.3f, %.3f", distance[0],
				distance[turns-1], after, penalty[0], penalty[turns-1])
			if !(distance[turns-1] > distance[0]+2) || !(penalty[turns-1] < 10) ||
				!(after < 0.9*distance[turns-1]) {
				t.Errorf("nothing was learnt")
			}
		})
	}
}

// TestWGANAlternates: both objectives in turn, 20 steps; nothing gets out of
// hand, and an evaluation draws images.
func TestWGANAlternates(t *testing.T) {
	longtest.Skip(t)
	m := buildWGAN(t, wganConfig(t, "s512"))
	x := newContest(t, m)
	first := 0.0
	for step := range 20 {
		for turn := range m.Objectives[0].Times {
			x.step(t, 0, step*m.Objectives[0].Times+turn)
		}
		x.step(t, 1, step)
		for i, o := range m.Objectives {
			if loss := x.objectives[i].scalar(o.Loss); !(math.Abs(loss) < 100) {
				t.Fatalf("step %d: %s has loss %v", step, o.Name, loss)
			}
		}
		if step == 0 {
			first = x.objectives[0].scalar(m.Objectives[0].Metrics[0].Value)
		}
	}
	last := x.objectives[0].scalar(m.Objectives[0].Metrics[0].Value)
	if math.Abs(last-first) < 0.05 {
		t.Errorf("the distance was %v and is %v", first, last)
	}
	var samples [2][]float32
	for i := range samples {
		x.eval.feedSquares(1000+i, 0)
		if err := x.eval.Step(); err != nil {
			t.Fatal(err)
		}
		samples[i] = slices.Clone(x.eval.Value(m.EvalOutputs[0]).F32())
	}
	if !slices.Equal(samples[0], samples[1]) {
		t.Error("samples are not of the same noise")
	}
	if low, high := slices.Min(samples[0]), slices.Max(samples[0]); !(low >= -1) || !(high <= 1) ||
		low == high {
		t.Errorf("samples have levels from %v to %v", low, high)
	}
}

// TestWGANHeldOut: a row without an image does not count among the real ones.
func TestWGANHeldOut(t *testing.T) {
	m := buildWGAN(t, wganConfig(t, "s512"))
	x := newMachine(t, m, false, m.EvalLoss)
	run := func(change func(pixels []float32, labels []int32)) float64 {
		x.feedSquares(1, 0)
		change(x.Value(m.Data[0]).F32(), x.Value(m.Data[1]).I32())
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		return x.scalar(m.EvalLoss)
	}
	marked := func(_ []float32, labels []int32) { clear(labels[2:]) }
	all, half := run(func([]float32, []int32) {}), run(marked)
	blank := run(func(pixels []float32, labels []int32) {
		marked(pixels, labels)
		clear(pixels[len(pixels)/2:])
	})
	if all == half || half != blank {
		t.Errorf("losses of four images, two of them, and two beside blanks: %v, %v and %v", all,
			half, blank)
	}
}

// TestWGANFine: the fine lowering computes the same updates, up to rounding.
func TestWGANFine(t *testing.T) {
	c := wganConfig(t, "s512")
	var losses [2][4]float64
	for i := range losses {
		c.Fine = i == 1
		m := buildWGAN(t, c)
		x := newContest(t, m)
		for step := range losses[i] {
			x.step(t, step%2, step/2)
			losses[i][step] = x.objectives[step%2].scalar(m.Objectives[step%2].Loss)
		}
	}
	for step, want := range losses[0] {
		if have := losses[1][step]; math.Abs(have-want) > 2e-2*(1+math.Abs(want)) {
			t.Errorf("step %d: losses %v and %v", step, want, have)
		}
	}
}

// TestWGANNoise: an execution draws its own, and the same again.
func TestWGANNoise(t *testing.T) {
	m := buildWGAN(t, wganConfig(t, "s512"))
	loss := m.Objectives[1].Loss
	x := newMachine(t, m, false, loss)
	run := func(execution int) float64 {
		x.feedSquares(execution, 0)
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		return x.scalar(loss)
	}
	if first, second, again := run(1), run(2), run(1); first == second || first != again {
		t.Errorf("executions 1, 2 and 1 have losses %v, %v and %v", first, second, again)
	}
}

// TestWGANPenalty: the gradient of the penalty, which is a gradient of a gradient,
// is that of finite differences.
func TestWGANPenalty(t *testing.T) {
	longtest.Skip(t)
	for _, c := range []struct {
		nets string
		fine bool
	}{{"resnet", false}, {"resnet", true}, {"good", false}} {
		t.Run(fmt.Sprint(c.nets, c.fine), func(t *testing.T) {
			config := wganConfig(t, "s512")
			config.Nets, config.Fine, config.Images, config.Pixels = c.nets, c.fine, 2, 16
			m := buildWGAN(t, config)
			penalty := m.Objectives[0].Metrics[1].Value
			var w []graph.Value
			for _, n := range m.Graph.Variables() {
				if !n.State && strings.HasPrefix(n.Name, "critic/") {
					w = append(w, n.Value(0))
				}
			}
			grads := autodiff.Grad(penalty, w...)
			if m.Graph.Err() != nil {
				t.Fatal(m.Graph.Err())
			}
			checkGradients(t, m, penalty, w, grads)
		})
	}
}

// checkGradients compares gradients with finite differences along their own
// direction, parameter by parameter, at a point where nothing is equal or zero. A
// few may be off, where a rectifier's operand changes sign in between and the
// slope jumps.
func checkGradients(t *testing.T, m *Model, y graph.Value, w, grads []graph.Value) {
	values := []graph.Value{y}
	for _, g := range grads {
		if g.Valid() {
			values = append(values, g)
		}
	}
	x := newMachine(t, m, false, values...)
	x.feedSquares(1, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	shake := func(v graph.Value) {
		for i := range x.Value(v).F32() {
			x.Value(v).F32()[i] += 0.2 * float32(rng.NormFloat64())
		}
	}
	for _, v := range append(slices.Clone(w), m.Data[0]) {
		shake(v)
	}
	run := func() float64 {
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		return x.scalar(y)
	}
	run()
	var all [][]float32
	for i := range w {
		if grads[i].Valid() {
			all = append(all, slices.Clone(x.Value(grads[i]).F32()))
		} else {
			all = append(all, nil)
		}
	}
	checked, off := 0, 0
	for i, v := range w {
		length := norm(all[i])
		if length < 1e-3 {
			continue
		}
		data := x.Value(v)
		before := tensor.FromF32(slices.Clone(data.F32()), v.Type().Sizes()...)
		const h = 3e-4
		at := func(h float64) float64 {
			for k, g := range all[i] {
				data.F32()[k] = before.F32()[k] + float32(h*float64(g)/length)
			}
			return run()
		}
		have := (at(h) - at(-h)) / (2 * h)
		copy(data.Data, before.Data)
		checked++
		if math.Abs(have-length) > 0.02*length+1e-3 {
			off++
			t.Logf("%s: finite difference %v, gradient %v", v, have, length)
		}
	}
	t.Logf("%d of %d checked, %d off", checked, len(w), off)
	if checked < 10 || off > checked/10 {
		t.Errorf("%d of %d gradients are off", off, checked)
	}
}

func norm(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}
