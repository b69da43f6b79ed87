package nn_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/nn"
)

// layerCase is a layer in place "layer" that PyTorch computes too. Inputs are x,
// f32, and others by name: keys and labels are ids.
type layerCase struct {
	inputs map[string][]int
	build  func(c *nn.Ctx, in map[string]graph.Value) graph.Value
	eval   bool
}

// layerCases are by their names in testdata/torch_layers.py.
func layerCases() map[string]layerCase {
	all := map[string]layerCase{}
	add := func(name string, build func(*nn.Ctx, map[string]graph.Value) graph.Value,
		x ...int) {
		all[name] = layerCase{inputs: map[string][]int{"x": x}, build: build}
	}
	addDense(add)
	addImages(add, all)
	addSequences(add)
	addAttention(all)
	addLosses(all)
	return all
}

type adder = func(name string, build func(*nn.Ctx, map[string]graph.Value) graph.Value, x ...int)

func addDense(add adder) {
	add("linear", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.Linear(c, in["x"], 5)
	}, 2, 3, 4)
	add("linear of a row", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.Linear(c, in["x"], 5, nn.LinearOptions{NoBias: true, Axis: "out"})
	}, 4)
	add("unembedding", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.Unembedding(c, in["x"], 7)
	}, 2, 3, 4)
	add("positions", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.Positions(c, in["x"], 9)
	}, 2, 3, 4)
	add("layer norm", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.LayerNorm(c, in["x"])
	}, 2, 3, 6)
	add("rms norm", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.RMSNorm(c, in["x"])
	}, 2, 3, 6)
	for name, o := range map[string]nn.FeedForwardOptions{
		"feed-forward": {}, "feed-forward gelu": {Activation: nn.Gelu},
		"feed-forward swiglu": {Gated: true},
	} {
		add(name, func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
			return nn.FeedForward(c, in["x"], 6, o)
		}, 2, 3, 4)
	}
}

func addImages(add adder, all map[string]layerCase) {
	for name, o := range map[string]nn.ConvOptions{
		"conv": {}, "conv with stride": {Stride: 2, Pad: 1}, "conv valid": {Valid: true},
		"conv dilated": {Dilation: 2}, "conv in groups": {Groups: 2},
	} {
		add(name, func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
			return nn.Conv2D(c, in["x"], 6, 3, o)
		}, 2, 4, 8, 7)
	}
	add("conv transposed", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.ConvTranspose2D(c, in["x"], 3, 4, nn.ConvOptions{Stride: 2, Pad: 1})
	}, 2, 4, 5, 3)
	norm := func(c *nn.Ctx, x graph.Value) graph.Value { return nn.BatchNorm(c, x) }
	for name, f := range map[string]func(*nn.Ctx, graph.Value) graph.Value{
		"max pool": func(_ *nn.Ctx, x graph.Value) graph.Value { return nn.MaxPool2D(x, 2) },
		"average pool": func(_ *nn.Ctx, x graph.Value) graph.Value {
			return nn.AvgPool2D(x, 3, nn.PoolOptions{Stride: 1})
		},
		"global mean": func(_ *nn.Ctx, x graph.Value) graph.Value { return nn.GlobalMean(x) },
		"group norm":  func(c *nn.Ctx, x graph.Value) graph.Value { return nn.GroupNorm(c, x, 2) },
		"group norm of one": func(c *nn.Ctx, x graph.Value) graph.Value {
			return nn.GroupNorm(c, x, 1)
		},
		"batch norm": norm, "batch norm evaluated": norm,
	} {
		add(name, func(c *nn.Ctx, in map[string]graph.Value) graph.Value { return f(c, in["x"]) },
			3, 4, 6, 8)
	}
	evaluated := all["batch norm evaluated"]
	evaluated.eval = true
	all["batch norm evaluated"] = evaluated
	add("batch norm of rows", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.BatchNorm(c, in["x"])
	}, 8, 5)
}

func addSequences(add adder) {
	type recurrent = func(*nn.Ctx, graph.Value, int, ...nn.RecurrentOptions) graph.Value
	for name, layer := range map[string]recurrent{"lstm": nn.LSTM, "gru": nn.GRU} {
		for _, unrolled := range []bool{false, true} {
			if unrolled && name == "gru" {
				continue
			}
			o := nn.RecurrentOptions{ForgetBias: 1, Unrolled: unrolled}
			if unrolled {
				name += " unrolled"
			}
			add(name, func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
				return layer(c, in["x"], 3, o)
			}, 5, 2, 4)
			add(name+" both ways", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
				return nn.Bidirectional(c, in["x"], 3, layer, o)
			}, 5, 2, 4)
		}
	}
	add("lstm per gate", func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
		return nn.LSTM(c, in["x"], 3, nn.RecurrentOptions{ForgetBias: 1, PerGate: true})
	}, 5, 2, 4)
}

func addAttention(all map[string]layerCase) {
	all["embedding"] = layerCase{inputs: map[string][]int{"keys": {2, 3}},
		build: func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
			return nn.Embedding(c, in["keys"], 5, 4)
		}}
	self := map[string][]int{"x": {2, 5, 8}, "keys": {2, 5}}
	for name, o := range map[string]nn.AttentionOptions{
		"attention":                   {Heads: 2},
		"attention causal and padded": {Heads: 2, Causal: true, Bias: true},
		"attention of PyTorch":        {Heads: 2, Causal: true, Bias: true},
		"attention to memory":         {Heads: 2},
		"attention of groups":         {Heads: 4, KeyValueHeads: 2, Causal: true},
		"attention rotary":            {Heads: 4, KeyValueHeads: 1, Rotary: &ops.Rotation{}},
	} {
		inputs := self
		if name == "attention to memory" {
			inputs = map[string][]int{"x": {2, 5, 8}, "keys": {2, 3}, "memory": {2, 3, 6}}
		}
		all[name] = layerCase{inputs: inputs,
			build: func(c *nn.Ctx, in map[string]graph.Value) graph.Value {
				o.Memory = in["memory"]
				if name != "attention" && name != "attention rotary" {
					o.Padding = in["keys"]
				}
				return nn.Attention(c, in["x"], o)
			}}
	}
}

func addLosses(all map[string]layerCase) {
	two, zero := 2, 0
	for name, o := range map[string]nn.CrossEntropyOptions{
		"cross-entropy": {}, "cross-entropy smoothed": {Smoothing: 0.1},
		"cross-entropy ignoring":   {Smoothing: 0.1, Ignore: &two},
		"cross-entropy of classes": {Smoothing: 0.1, Ignore: &zero},
		"cross-entropy weighted":   {},
	} {
		all[name] = layerCase{
			inputs: map[string][]int{"x": {2, 3, 5}, "labels": {2, 3}, "classes": {5},
				"weights": {2, 3}},
			build: func(_ *nn.Ctx, in map[string]graph.Value) graph.Value {
				switch name {
				case "cross-entropy of classes":
					o.Classes = in["classes"]
				case "cross-entropy weighted":
					o.Weights = in["weights"]
				}
				return nn.CrossEntropy(in["x"], in["labels"], o)
			}}
	}
	for name, loss := range map[string]func(x, y graph.Value) graph.Value{
		"mse": nn.MSE, "l1": nn.L1, "binary cross-entropy": nn.BinaryCrossEntropy,
		"huber": func(x, y graph.Value) graph.Value { return nn.Huber(x, y, 0.7) },
	} {
		all[name] = layerCase{inputs: map[string][]int{"x": {3, 4}, "y": {3, 4}},
			build: func(_ *nn.Ctx, in map[string]graph.Value) graph.Value {
				return loss(in["x"], in["y"])
			}}
	}
}

// tensorJSON is a tensor as Python reads it.
type tensorJSON struct {
	Float bool  `json:"float"`
	Sizes []int `json:"sizes"`
	Data  any   `json:"data"`
}

// exchanged is a case with its numbers, and the result and gradients by name.
type exchanged struct {
	Tensors   map[string]tensorJSON `json:"tensors"`
	Weights   []float32             `json:"weights"`
	Result    []float32             `json:"result"`
	Gradients map[string][]float32  `json:"gradients"`
}

// ids are of five classes, with padding at some ends; all classes are among them.
func ids(x []int32) {
	for i := range x {
		x[i] = int32((3*i + 1) % 5)
	}
}

// prepared is a case that can be executed: its result y is weighed, and summed.
type prepared struct {
	*machine
	y, weights, sum graph.Value
	floats, grads   []graph.Value // what there are gradients of, and these, or none
	tensors         map[string]tensorJSON
}

// prepare builds a case and gives its inputs and variables numbers.
func (k layerCase) prepare(t *testing.T) prepared {
	t.Helper()
	m := nn.NewModel()
	p := prepared{tensors: map[string]tensorJSON{}}
	in := map[string]graph.Value{}
	for _, name := range slices.Sorted(maps.Keys(k.inputs)) {
		d := graph.F32
		if name == "keys" || name == "labels" {
			d = graph.I32
		}
		in[name] = m.Input(name, d, k.inputs[name]...)
		if d == graph.F32 {
			p.floats = append(p.floats, in[name])
		}
	}
	c := m.Training()
	if k.eval {
		c = m.Evaluation()
	}
	p.y = k.build(c.In("layer"), in)
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	p.weights = m.Graph.Input("result-weights", p.y.Type())
	p.floats = append(p.floats, m.Parameters()...)
	p.sum = ops.Sum(ops.Mul(p.y, p.weights))
	p.grads = autodiff.Grad(p.sum, p.floats...)
	values := append([]graph.Value{p.y, p.weights, p.sum}, p.floats...)
	for _, g := range p.grads {
		if g.Valid() {
			values = append(values, g)
		}
	}
	p.machine = run(t, m, false, values...)
	for name, v := range in {
		p.tensors[name] = fill(p.machine, v)
	}
	for _, n := range m.Graph.Variables() {
		p.tensors[n.Name] = fill(p.machine, n.Value(0))
	}
	noise(99, p.f32(p.weights))
	return p
}

// execute computes a case.
func (k layerCase) execute(t *testing.T) exchanged {
	t.Helper()
	p := k.prepare(t)
	p.step()
	out := exchanged{Tensors: p.tensors, Weights: p.f32(p.weights), Result: p.f32(p.y),
		Gradients: map[string][]float32{}}
	for i, v := range p.floats {
		if p.grads[i].Valid() {
			out.Gradients[v.Node.Name] = p.f32(p.grads[i])
		}
	}
	return out
}

// TestGradients: the gradients of every layer and every loss are what differences say.
func TestGradients(t *testing.T) {
	const eps = 1.0 / 256
	for name, k := range layerCases() {
		p := k.prepare(t)
		for i, v := range p.floats {
			if !p.grads[i].Valid() {
				continue
			}
			x := p.f32(v)
			for at := 0; at < len(x); at += 1 + len(x)/3 {
				keep := x[at]
				value := func(shift float32) float64 {
					x[at] = keep + shift
					p.step()
					return float64(p.f32(p.sum)[0])
				}
				want := (value(eps) - value(-eps)) / (2 * eps)
				value(0)
				have := float64(p.f32(p.grads[i])[at])
				if !(math.Abs(have-want) <= 0.02*(1+math.Abs(want))) {
					t.Errorf("%s: the gradient of element %d of %s is %v, by differences %v", name,
						at, v, have, want)
				}
			}
		}
	}
}

// fill gives a value its numbers; variances and weights are positive.
func fill(e *machine, v graph.Value) tensorJSON {
	j := tensorJSON{Float: v.Type().DType == graph.F32, Sizes: v.Type().Sizes()}
	if !j.Float {
		ids(e.Value(v).I32())
		j.Data = e.Value(v).I32()
		return j
	}
	x := noise(uint64(len(v.Node.Name)), e.f32(v))
	if name := v.Node.Name; name == "layer/variance" || name == "classes" || name == "weights" {
		for i := range x {
			x[i] = 0.05 + float32(math.Abs(float64(x[i])))/10
		}
	}
	j.Data = x
	return j
}

// learning is a linear regression that is trained.
type learning struct {
	X, Y       [][][]float32
	W          [][]float32
	B          []float32
	Rate       float32
	Clip       float32
	Accumulate int

	by      nn.Optimizer
	options nn.MinimizeOptions
}

// MarshalJSON has the names that Python reads.
func (l learning) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"x": l.X, "y": l.Y, "w": l.W, "b": l.B, "rate": l.Rate,
		"clip": l.options.Clip, "accumulate": max(1, l.options.Accumulate)})
}

// learnings are by their names in testdata/torch_layers.py.
func learnings() map[string]learning {
	all := map[string]learning{
		"sgd": {by: nn.SGD{}, Rate: 0.1},
		"sgd decayed": {by: nn.SGD{}, Rate: 0.1,
			options: nn.MinimizeOptions{Decay: 0.3, Exempt: nn.Vectors}},
		"momentum": {by: nn.Momentum{Mu: 0.8}, Rate: 0.05},
		"nesterov": {by: nn.Momentum{Mu: 0.8, Nesterov: true}, Rate: 0.05},
		"adam":     {by: nn.Adam{}, Rate: 0.05},
		"adamw": {by: nn.AdamW{Betas: []float32{0.8, 0.95}, Decay: 0.1, Exempt: nn.Vectors},
			Rate: 0.05},
		"clipped": {by: nn.Adam{}, Rate: 0.05, options: nn.MinimizeOptions{Clip: 0.5}},
		"accumulated": {by: nn.Adam{}, Rate: 0.05,
			options: nn.MinimizeOptions{Accumulate: 3}},
		"accumulated and clipped": {by: nn.Momentum{}, Rate: 0.05,
			options: nn.MinimizeOptions{Accumulate: 2, Clip: 0.3}},
	}
	rng := rand.New(rand.NewPCG(3, 3))
	matrix := func(rows, columns int) (m [][]float32) {
		for range rows {
			m = append(m, noise(rng.Uint64(), make([]float32, columns)))
		}
		return m
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l := all[name]
		for range 6 {
			l.X, l.Y = append(l.X, matrix(4, 3)), append(l.Y, matrix(4, 2))
		}
		l.W, l.B = matrix(3, 2), matrix(1, 2)[0]
		all[name] = l
	}
	return all
}

// execute trains.
func (l learning) execute(t *testing.T) []float32 {
	t.Helper()
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, 4, 3), m.Input("y", graph.F32, 4, 2)
	o := l.options
	o.Rate = nn.Constant(l.Rate)
	m.Minimize(nn.MSE(nn.Linear(m.Training().In("layer"), x, 2), y), l.by, o)
	e := run(t, m, true)
	w, b := e.f32(m.Parameter("layer/weight")), e.f32(m.Parameter("layer/bias"))
	copy(w, slices.Concat(l.W...))
	copy(b, l.B)
	for i := range l.X {
		copy(e.f32(x), slices.Concat(l.X[i]...))
		copy(e.f32(y), slices.Concat(l.Y[i]...))
		e.step()
	}
	return slices.Concat(w, b)
}

// noTorch is the exit status of the script where there is no PyTorch.
const noTorch = 77

// TestPyTorch: every layer and every loss has PyTorch's results and gradients, and
// every optimizer its parameters after some steps.
func TestPyTorch(t *testing.T) {
	longtest.Skip(t)
	have, learnt, trained := map[string]exchanged{}, map[string][]float32{}, learnings()
	for name, k := range layerCases() {
		have[name] = k.execute(t)
	}
	for name, l := range trained {
		learnt[name] = l.execute(t)
	}
	in, err := json.Marshal(map[string]any{"layers": have, "training": trained})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", "testdata/torch_layers.py")
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &stderr
	if err := cmd.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() == noTorch {
			t.Skip("nothing to compare with: ", err)
		}
		t.Fatalf("%v\n%s", err, &stderr)
	}
	want := map[string]exchanged{}
	if err := json.Unmarshal(out.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	for name, h := range have {
		compare(t, name, h.Result, want[name].Result)
		if len(want[name].Gradients) == 0 || len(h.Gradients) < len(want[name].Gradients)-1 {
			t.Errorf("%s: %d gradients, PyTorch has %d", name, len(h.Gradients),
				len(want[name].Gradients))
		}
		for v, g := range want[name].Gradients {
			if v != "weights" && v != "classes" && v != "y" {
				compare(t, name+": gradient of "+v, h.Gradients[v], g)
			}
		}
	}
	for name, h := range learnt {
		compare(t, name, h, want[name].Result)
	}
}

// compare allows for rounding.
func compare(t *testing.T, what string, have, want []float32) {
	t.Helper()
	if len(have) != len(want) {
		t.Errorf("%s: %d elements, PyTorch has %d", what, len(have), len(want))
		return
	}
	most := 1.0
	for _, x := range want {
		most = max(most, math.Abs(float64(x)))
	}
	for i := range want {
		if !(math.Abs(float64(have[i])-float64(want[i])) <= 1e-5*most) {
			t.Errorf("%s: element %d is %v, PyTorch has %v", what, i, have[i], want[i])
			return
		}
	}
}
