package models

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
)

func lstmLMConfig(t testing.TB, size string) LSTMLMConfig {
	t.Helper()
	c, err := NewLSTMLMConfig(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buildLSTMLM(t testing.TB, c LSTMLMConfig) *Model {
	t.Helper()
	m, err := LSTMLM(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLSTMLMParameters: every matrix of base has the paper's 40 K rows and columns, of any
// size there are as many numbers as the formula says.
func TestLSTMLMParameters(t *testing.T) {
	for _, size := range []string{"base", "s64", "s512"} {
		for layers := range 3 {
			c := lstmLMConfig(t, size)
			c.Layers += layers
			if got := buildLSTMLM(t, c).Graph.Parameters(); got != c.Parameters() {
				t.Errorf("%s: %d parameters, by formula %d", size, got, c.Parameters())
			}
		}
	}
	matrices := 0
	for _, n := range buildLSTMLM(t, lstmLMConfig(t, "base")).Graph.Variables() {
		if v := n.Value(0).Type(); v.Rank() == 2 {
			matrices++
			if !slices.Equal(v.Sizes(), []int{40000, 40000}) {
				t.Errorf("%s is %s", n.Name, v)
			}
		}
	}
	if matrices != 9 {
		t.Errorf("%d matrices, want nine", matrices)
	}
}

// TestLSTMLMIsJoined: the gradient of every matrix is one product, whatever the number of
// steps, and the table's has the rows that were looked up added.
func TestLSTMLMIsJoined(t *testing.T) {
	for _, size := range []string{"s512", "s64", "base"} {
		m := buildLSTMLM(t, lstmLMConfig(t, size))
		for _, u := range m.Objectives[0].Updates {
			w, g := u.In[0], u.In[1].Node
			switch {
			case w.Type().Rank() < 2:
			case w.Node.Name == "embedding/weight":
				if g.OpName() != "add" || g.In[0].Node.OpName() != "matmul" ||
					g.In[1].Node.OpName() != "embedding-grad" {
					t.Errorf("%s: the gradient of %s is %s", size, w, g.OpName())
				}
			case g.OpName() != "matmul" || g.In[0].Type().Rank() == 2 &&
				g.In[0].Type().Size(0) != m.Data[0].Type().Elems()-m.Data[0].Type().Size(0):
				t.Errorf("%s: the gradient of %s is %s of %s", size, w, g.OpName(), g.In[0].Type())
			}
		}
	}
}

// TestLSTMLMReplica: s64 is base in small, but for the sizes.
func TestLSTMLMReplica(t *testing.T) {
	small, large := lstmLMConfig(t, "s64"), lstmLMConfig(t, "base")
	if !slices.Equal(shape(buildLSTMLM(t, small)), shape(buildLSTMLM(t, large))) {
		t.Error("the replica's graph is another one")
	}
}

// TestLSTMLMLearns: the loss begins with that of a guess, whatever the width, and falls.
func TestLSTMLMLearns(t *testing.T) {
	const steps = 60
	c := lstmLMConfig(t, "s512")
	c.Vocab = 100
	m := buildLSTMLM(t, c)
	x := newMachine(t, m, true, m.EvalLoss, m.EvalMetrics[0].Value)
	var held [steps]float64
	for step := range steps {
		x.stepGPT(t, step)
		held[step] = x.scalar(m.EvalLoss)
	}
	t.Logf("held-out loss %.3f to %.3f", held[0], held[steps-1])
	if even := math.Log(float64(m.Classes)); math.Abs(held[0]-even) > 0.5 {
		t.Errorf("the first loss is %.3f, want about %.3f", held[0], even)
	}
	if !(held[steps-1] < 0.5) {
		t.Errorf("held-out loss %.3f to %.3f", held[0], held[steps-1])
	}
}

// TestLSTMLMSeesNoFuture: no position's loss depends on tokens after it, and each depends on
// all before it.
func TestLSTMLMSeesNoFuture(t *testing.T) {
	c := lstmLMConfig(t, "s512")
	c.Layers = 2
	m := buildLSTMLM(t, c)
	losses := m.EvalOutputs[0]
	x := newMachine(t, m, false, losses)
	chant(x, 1)
	run := func() []float32 {
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(x.Value(losses).F32()[:c.Length])
	}
	before, tokens := run(), x.Value(m.Data[0]).I32()
	for at := range c.Length {
		keep := tokens[at]
		tokens[at] = int32(c.Vocab - 1)
		after := run()
		tokens[at] = keep
		for i := range after {
			if changed := after[i] != before[i]; changed != (i >= at) {
				t.Errorf("token %d changes the loss at %d: %t", at, i, changed)
			}
		}
	}
}

// TestLSTMLMDropout: units are left out in training and not in evaluation.
func TestLSTMLMDropout(t *testing.T) {
	c := lstmLMConfig(t, "s512")
	c.Dropout = 0.5
	m := buildLSTMLM(t, c)
	drops := func(v graph.Value) (n int) {
		for id, live := range m.Graph.Ancestors([]graph.NodeID{v.Node.ID}) {
			if live && strings.Contains(m.Graph.Node(graph.NodeID(id)).OpName(), "dropout") {
				n++
			}
		}
		return n
	}
	if n := drops(m.Objectives[0].Loss); n != 2 {
		t.Errorf("%d dropouts in training, want one before the layer and one behind it", n)
	}
	if n := drops(m.EvalLoss); n > 0 {
		t.Errorf("%d dropouts in evaluation", n)
	}
}

// TestLSTMLMRefuses: what no model can have is a line that names the option.
func TestLSTMLMRefuses(t *testing.T) {
	for want, change := range map[string]func(*LSTMLMConfig){
		"unknown size":            func(c *LSTMLMConfig) { c.Size = "large" },
		"--batch is 0":            func(c *LSTMLMConfig) { c.Texts = 0 },
		"--length is 1":           func(c *LSTMLMConfig) { c.Length = 1 },
		"--length is 20000":       func(c *LSTMLMConfig) { c.Length = 20000 },
		"--depth is 0":            func(c *LSTMLMConfig) { c.Layers = 0 },
		"--depth times --length":  func(c *LSTMLMConfig) { c.Layers, c.Length = 1000, 1000 },
		"units is -1":             func(c *LSTMLMConfig) { c.Units = -1 },
		"units is 600000000":      func(c *LSTMLMConfig) { c.Units = 600000000 },
		"vocabulary is 1":         func(c *LSTMLMConfig) { c.Vocab = 1 },
		"learning rate is NaN":    func(c *LSTMLMConfig) { c.Schedule = Constant(math.NaN()) },
		"learning rate is 0":      func(c *LSTMLMConfig) { c.Schedule = 0 },
		"dropout is 1":            func(c *LSTMLMConfig) { c.Dropout = 1 },
		"learning rate is +Inf: ": func(c *LSTMLMConfig) { c.Schedule = Constant(math.Inf(1)) },
	} {
		c := lstmLMConfig(t, "s512")
		change(&c)
		_, err := LSTMLM(c)
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
