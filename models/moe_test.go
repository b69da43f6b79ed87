package models

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
)

// variants calls f for every way to keep experts' weights and to reach experts.
func variants(t *testing.T, c MoEConfig, f func(t *testing.T, c MoEConfig)) {
	for _, sparse := range []bool{false, true} {
		for _, stacked := range []bool{false, true} {
			c.Sparse, c.Stacked = sparse, stacked
			t.Run(fmt.Sprintf("sparse=%t,stacked=%t", sparse, stacked), func(t *testing.T) {
				f(t, c)
			})
		}
	}
}

// TestParameters: the models of Wei's thesis have exactly
// 55,197,696 + 12·E·(1024·H + 512) parameters, which round to what it prints.
func TestParameters(t *testing.T) {
	for _, row := range []struct {
		experts, hidden int
		want            int64
	}{
		{12, 4096, 659_251_200},
		{32, 2048, 860_700_672},
		{64, 2048, 1_666_203_648},
		{48, 4096, 2_471_411_712},
		{52, 4096, 2_672_762_880},
		{56, 4096, 2_874_114_048},
		{160, 4096, 8_109_244_416},
		{200, 4096, 10_122_756_096},
		{400, 4096, 20_190_314_496},
	} {
		variants(t, config(t, "base"), func(t *testing.T, c MoEConfig) {
			c.Experts, c.ExpertHidden = row.experts, row.hidden
			if !longtest.Enabled() && c.Experts > 32 && !c.Stacked {
				t.Skip("builds a large graph")
			}
			formula := 55_197_696 + 12*int64(c.Experts)*(1024*int64(c.ExpertHidden)+512)
			got := build(t, c).Graph.Parameters()
			if got != row.want || c.Parameters() != row.want || formula != row.want {
				t.Errorf("%d experts of %d: %d parameters, want %d", c.Experts, c.ExpertHidden, got,
					row.want)
			}
		})
	}
}

func TestGraph(t *testing.T) {
	for _, size := range []string{"s512", "s64"} {
		variants(t, config(t, size), func(t *testing.T, c MoEConfig) {
			m := build(t, c)
			if err := m.Graph.Verify(); err != nil {
				t.Fatal(err)
			}
			for _, n := range m.Graph.Variables() {
				if len(m.Graph.Writers(n.ID)) != 1 {
					t.Errorf("%d updates of %s", len(m.Graph.Writers(n.ID)), n.Name)
				}
			}
			scalars := append([]Metric{{Name: "loss", Value: m.Objectives[0].Loss},
				{Name: "held-out loss", Value: m.EvalLoss}}, m.Objectives[0].Metrics...)
			for _, s := range append(scalars, m.EvalMetrics...) {
				if u := s.Value.Type(); u.Rank() != 0 || u.DType != graph.F32 {
					t.Errorf("%s is %s, want f32[]", s.Name, u)
				}
			}
			var b strings.Builder
			if err := m.Describe(&b); err != nil {
				t.Fatal(err)
			}
			t.Log(b.String())
		})
	}
}

func TestNames(t *testing.T) {
	names := map[string]bool{}
	for _, n := range build(t, config(t, "s512")).Graph.Variables() {
		names[n.Name] = true
	}
	for _, want := range []string{
		"embedding", "positional", "enc/norm", "enc/0/att/norm", "enc/0/att/qkvo",
		"dec/1/cross/qkvo", "enc/1/moe/norm",
		"dec/1/moe/gate", "enc/0/moe/expert7/w0", "enc/0/moe/expert7/w1", "embedding/second-rows",
		"enc/norm/second",
	} {
		if !names[want] {
			t.Errorf("there is no variable %s", want)
		}
	}
}

// TestReplica proves that s64 is base in small: the same graph but for sizes and
// for the optimizer's state, which differs for gates.
func TestReplica(t *testing.T) {
	base := config(t, "base")
	base.Pairs *= 4 // as many groups of tokens
	small, large := shape(build(t, config(t, "s64"))), shape(build(t, base))
	if len(small) != len(large) {
		t.Fatalf("%d nodes, base has %d", len(small), len(large))
	}
	for i := range small {
		if small[i] != large[i] {
			t.Fatalf("node %d is %s, in base %s", i, small[i], large[i])
		}
	}
}

// shape lists the nodes of a model but for the optimizer's state.
func shape(m *Model) []string {
	var list []string
	for _, n := range m.Graph.Nodes() {
		if !n.State {
			list = append(list, n.OpName()+" "+n.Name)
		}
	}
	return list
}

func TestLearns(t *testing.T) {
	variants(t, config(t, "s512"), func(t *testing.T, c MoEConfig) {
		const steps = 60
		m := build(t, c)
		x := newMachine(t, m, true, m.Objectives[0].Loss, m.EvalLoss, m.EvalMetrics[0].Value)
		var loss, held [steps]float64
		for step := range steps {
			x.step(t, step)
			loss[step], held[step] = x.scalar(m.Objectives[0].Loss), x.scalar(m.EvalLoss)
		}
		accuracy := x.scalar(m.EvalMetrics[0].Value)
		t.Logf("loss %.3f to %.3f, held-out %.3f to %.3f, accuracy %.3f", loss[0], loss[steps-1],
			held[0], held[steps-1], accuracy)
		if even := math.Log(float64(c.Vocab)); math.Abs(held[0]-even) > 2 {
			t.Errorf("the first loss is %.3f, want about %.3f", held[0], even)
		}
		if !(held[steps-1] < held[0]-3) || !(loss[steps-1] < loss[0]-2) {
			t.Errorf("does not learn: loss %.3f to %.3f, held-out %.3f to %.3f", loss[0],
				loss[steps-1], held[0], held[steps-1])
		}
	})
}

// TestCopies takes long enough for attention to find the text to repeat.
func TestCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for a second")
	}
	c := config(t, "s512")
	c.Stacked = true
	m := build(t, c)
	accuracy := m.EvalMetrics[0].Value
	x := newMachine(t, m, true, m.EvalLoss, accuracy)
	for step := range 300 {
		x.step(t, step)
	}
	t.Logf("held-out loss %.3f, accuracy %.3f", x.scalar(m.EvalLoss), x.scalar(accuracy))
	if !(x.scalar(accuracy) > 0.6) {
		t.Errorf("repeats %.0f%% of the words", 100*x.scalar(accuracy))
	}
}

// TestForms proves that where an expert has room for all tokens, the ways to
// reach experts and to keep their weights compute the same, gradients included.
func TestForms(t *testing.T) {
	const steps = 4
	want := map[bool][]float64{} // by Stacked, in which Adafactor's scale differs
	roomy := config(t, "s512")
	roomy.CapacityTrain, roomy.CapacityEval = float64(roomy.Experts), float64(roomy.Experts)
	variants(t, roomy, func(t *testing.T, c MoEConfig) {
		m := build(t, c)
		x := newMachine(t, m, true, m.Objectives[0].Loss, m.EvalLoss)
		var have []float64
		for step := range steps {
			x.step(t, step)
			have = append(have, x.scalar(m.Objectives[0].Loss), x.scalar(m.EvalLoss))
		}
		if want[c.Stacked] == nil {
			want[c.Stacked] = have
		}
		for i, v := range have {
			if w := want[c.Stacked][i]; math.Abs(v-w) > 1e-3 {
				t.Errorf("loss %d is %v, want %v", i, v, w)
			}
		}
		if first := want[false]; math.Abs(have[0]-first[0]) > 1e-4 ||
			math.Abs(have[1]-first[1]) > 1e-4 {
			t.Errorf("first losses are %v, want %v", have[:2], first[:2])
		}
	})
}

// TestNoise: dropout, jitter and second choices depend on seed and step alone.
func TestNoise(t *testing.T) {
	m := build(t, config(t, "s512"))
	x := newMachine(t, m, false, m.Objectives[0].Loss, m.EvalLoss)
	loss := func(step int32) float64 {
		x.Value(m.Seed).I32()[1] = step
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		return x.scalar(m.Objectives[0].Loss)
	}
	x.step(t, 0)
	first := x.scalar(m.Objectives[0].Loss)
	if other := loss(1); other == first {
		t.Errorf("the loss is %v in either step", first)
	}
	if again := loss(0); again != first {
		t.Errorf("the loss is %v, was %v", again, first)
	}
}

// TestPadding: a batch without a token has loss zero, not NaN.
func TestPadding(t *testing.T) {
	c := config(t, "s512")
	c.AuxWeight = 0
	m := build(t, c)
	x := newMachine(t, m, false, m.Objectives[0].Loss, m.EvalLoss)
	for _, v := range m.Data {
		clear(x.Value(v).I32())
	}
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
	if loss, held := x.scalar(m.Objectives[0].Loss), x.scalar(m.EvalLoss); loss != 0 || held != 0 {
		t.Errorf("without tokens the losses are %v and %v, want 0", loss, held)
	}
}
