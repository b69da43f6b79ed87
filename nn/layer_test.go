package nn_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// operands are values of all ranks.
type operands struct{ row, rows, text, image, ids, scalar graph.Value }

// TestBadLayers: what a layer cannot be made of is one line with the caller's, and the
// result is no value.
func TestBadLayers(t *testing.T) {
	var c *nn.Ctx
	var x operands
	mixing := func(o nn.MixtureOptions) func() graph.Value {
		return func() graph.Value {
			y, _ := nn.MixtureOfExperts(c, x.text, o)
			return y
		}
	}
	for want, layer := range map[string]func() graph.Value{
		"linear of scalar, which is f32[]: want 1 axes or more": func() graph.Value {
			return nn.Linear(c, x.scalar, 3)
		},
		"linear with 0 outputs": func() graph.Value { return nn.Linear(c, x.rows, 0) },
		"2 sets of options": func() graph.Value {
			return nn.Linear(c, x.rows, 3, nn.LinearOptions{}, nn.LinearOptions{})
		},
		"embedding of -1 rows of width 4": func() graph.Value {
			return nn.Embedding(c, x.ids, -1, 4)
		},
		"want i32": func() graph.Value { return nn.Embedding(c, x.rows, 3, 4) },
		"unembedding of row, which is f32[batch:6]: want 2 axes": func() graph.Value {
			return nn.Unembedding(c, x.row, 3)
		},
		"convolution of text, which is f32[batch:2 5 6]: want 4 axes": func() graph.Value {
			return nn.Conv2D(c, x.text, 3, 3)
		},
		"windows of 0 by 0": func() graph.Value { return nn.Conv2D(c, x.image, 3, 0) },
		"convolution of 4 channels to 0 in 0 groups": func() graph.Value {
			return nn.Conv2D(c, x.image, 0, 3)
		},
		"convolution of 4 channels to 6 in 3 groups": func() graph.Value {
			return nn.Conv2D(c, x.image, 6, 3, nn.ConvOptions{Groups: 3})
		},
		"stride -1": func() graph.Value {
			return nn.Conv2D(c, x.image, 6, 3, nn.ConvOptions{Stride: -1})
		},
		"transposed convolution in groups": func() graph.Value {
			return nn.ConvTranspose2D(c, x.image, 6, 3, nn.ConvOptions{Groups: 2})
		},
		"max pooling of rows": func() graph.Value {
			return nn.MaxPool2D(x.rows, 2)
		},
		"average pooling with windows of -2": func() graph.Value {
			return nn.AvgPool2D(x.image, -2)
		},
		"layer norm of scalar": func() graph.Value {
			return nn.LayerNorm(c, x.scalar)
		},
		"epsilon is -1": func() graph.Value {
			return nn.LayerNorm(c, x.rows, nn.NormOptions{Eps: -1})
		},
		"RMS norm of scalar": func() graph.Value {
			return nn.RMSNorm(c, x.scalar)
		},
		"batch norm of row": func() graph.Value {
			return nn.BatchNorm(c, x.row)
		},
		"group norm of rows": func() graph.Value {
			return nn.GroupNorm(c, x.rows, 2)
		},
		"group norm of 4 channels in 3 groups": func() graph.Value {
			return nn.GroupNorm(c, x.image, 3)
		},
		"dropout rate 1 is outside [0, 1)": func() graph.Value {
			return nn.Dropout(c, x.rows, 1)
		},
		"attention of rows": func() graph.Value {
			return nn.Attention(c, x.rows)
		},
		"attention with 0 heads of queries": func() graph.Value {
			return nn.Attention(c, x.text)
		},
		"attention of width 6 with 4 heads": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 4})
		},
		"3 heads of queries and 2 of keys": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 3, KeyValueHeads: 2})
		},
		"packed attention has no biases": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 3, Packed: true, Bias: true})
		},
		"causal attention of 5 positions to 4": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 3, Causal: true,
				Memory: ops.Slice(x.text, 1, 0, 4)})
		},
		"attention that is composed": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 3, Causal: true, Window: 2,
				Plain: true})
		},
		"a window or a position without a causal mask": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 3, Window: 2})
		},
		"memory of attention of rows, which is f32[batch:2 6]": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 3, Memory: x.rows})
		},
		"cannot be turned in pairs": func() graph.Value {
			return nn.Attention(c, x.text, nn.AttentionOptions{Heads: 2, Rotary: &ops.Rotation{}})
		},
		"4 positions of text": func() graph.Value { return nn.Positions(c, x.text, 4) },
		"0 positions of width 4": func() graph.Value {
			return nn.Sinusoids(c.Graph(), 0, 4)
		},
		"2 positions of width 3": func() graph.Value {
			return nn.Sinusoids(c.Graph(), 2, 3)
		},
		"feed-forward layer of scalar": func() graph.Value {
			return nn.FeedForward(c, x.scalar, 3)
		},
		"linear with -3 outputs": func() graph.Value {
			return nn.FeedForward(c, x.rows, -3)
		},
		"LSTM of rows":         func() graph.Value { return nn.LSTM(c, x.rows, 3) },
		"GRU with 0 units":     func() graph.Value { return nn.GRU(c, x.text, 0) },
		"mixture of 1 experts": mixing(nn.MixtureOptions{Experts: 1, Hidden: 3}),
		"with a capacity of NaN": mixing(nn.MixtureOptions{Experts: 2, Hidden: 3,
			Capacity: math.NaN()}),
		"mixture of 40 experts for groups of 10 tokens": mixing(nn.MixtureOptions{Experts: 40,
			Hidden: 3}),
		"cross-entropy of scalar": func() graph.Value {
			return nn.CrossEntropy(x.scalar, x.ids)
		},
		"do not match labels": func() graph.Value {
			return nn.CrossEntropy(x.text, x.ids)
		},
		"label 3 and padding": func() graph.Value {
			three := 3
			return nn.Accuracy(x.rows, x.ids,
				nn.CrossEntropyOptions{Padding: true, Ignore: &three}).Value
		},
		"with delta 0": func() graph.Value { return nn.Huber(x.rows, x.rows, 0) },
	} {
		m := nn.NewModel()
		x = operands{row: m.Input("row", graph.F32, 6), rows: m.Input("rows", graph.F32, 2, 6),
			text:  m.Input("text", graph.F32, 2, 5, 6),
			image: m.Input("image", graph.F32, 2, 4, 5, 5),
			ids:   m.Input("ids", graph.I32, 2), scalar: m.Input("scalar", graph.F32)}
		c = m.Training().In("layer")
		if y := layer(); y.Valid() {
			t.Errorf("%s: there is a result, %s", want, y)
		}
		refused(t, m, want, "layer_test.go:")
	}
}

// TestNoValueIsPassedOn: a layer of no value is no value, and does not say anything.
func TestNoValueIsPassedOn(t *testing.T) {
	m := nn.NewModel()
	c, none := m.Training().In("layer"), graph.Value{}
	y, balance := nn.MixtureOfExperts(c, none, nn.MixtureOptions{Experts: 2, Hidden: 2})
	for i, v := range []graph.Value{
		y, balance, nn.Linear(c, none, 2), nn.Embedding(c, none, 2, 2), nn.Unembedding(c, none, 2),
		nn.Conv2D(c, none, 2, 2), nn.ConvTranspose2D(c, none, 2, 2), nn.MaxPool2D(none, 2),
		nn.AvgPool2D(none, 2), nn.GlobalMean(none), nn.Flatten(none), nn.LayerNorm(c, none),
		nn.RMSNorm(c, none), nn.GroupNorm(c, none, 1), nn.BatchNorm(c, none),
		nn.Dropout(c, none, 0.5), nn.Attention(c, none), nn.FeedForward(c, none, 2),
		nn.LSTM(c, none, 2), nn.GRU(c, none, 2), nn.Bidirectional(c, none, 2, nn.GRU),
		nn.Positions(c, none, 2), nn.Rotary(c, none, ops.Rotation{}), nn.Relu(none), nn.Gelu(none),
		nn.Silu(none), nn.Tanh(none), nn.Sigmoid(none), nn.Softmax(none),
		nn.CrossEntropy(none, none), nn.Accuracy(none, none).Value, nn.MSE(none, none),
		nn.L1(none, none), nn.Huber(none, none, 1), nn.BinaryCrossEntropy(none, none),
		nn.MeanOver(none, none), nn.CTC(none, none, none, none),
	} {
		if v.Valid() {
			t.Errorf("layer %d of nothing is %s", i, v)
		}
	}
	if err := m.Err(); err != nil || len(m.Parameters()) > 0 {
		t.Errorf("error is %v, parameters are %v", err, m.Parameters())
	}
}

// TestAxesKeepTheirNames: through layers, and none is there in a model without names.
func TestAxesKeepTheirNames(t *testing.T) {
	build := func(unnamed bool) (types []string) {
		m := nn.NewModel()
		m.Unnamed = unnamed
		c := m.Training()
		batch, length := c.Dim("batch", 2), c.Dim("length", 4)
		ids := m.InputOf("ids", tensor.Named(graph.I32, batch, length))
		x := nn.Embedding(c.In("embedding"), ids, 9, 6, nn.EmbeddingOptions{Axis: "hidden"})
		a := nn.Attention(c.In("attention"), x, nn.AttentionOptions{Heads: 2, Causal: true})
		a = ops.Add(x, a)
		y, _ := nn.MixtureOfExperts(c.In("mixture"), a, nn.MixtureOptions{Experts: 2, Hidden: 3})
		logits := nn.Unembedding(c.Share("embedding"), y, 9)
		if err := m.Err(); err != nil {
			t.Fatal(err)
		}
		for _, v := range []graph.Value{x, a, y, logits, nn.Linear(c.In("linear"), x, 3,
			nn.LinearOptions{Axis: "out"}), m.Parameter("embedding/table"),
			m.Parameter("mixture/gate")} {
			types = append(types, v.Type().String())
		}
		return types
	}
	want := []string{"f32[batch:2 length:4 hidden:6]", "f32[batch:2 length:4 hidden:6]",
		"f32[batch:2 length:4 hidden:6]", "f32[batch:2 length:4 vocabulary:9]",
		"f32[batch:2 4 out:3]", "f32[vocabulary:9 hidden:6]", "f32[6 experts:2]"}
	if have := build(false); !slices.Equal(have, want) {
		t.Errorf("types are %q, want %q", have, want)
	}
	want = []string{"f32[2 4 6]", "f32[2 4 6]", "f32[2 4 6]", "f32[2 4 9]", "f32[2 4 3]",
		"f32[9 6]", "f32[6 2]"}
	if have := build(true); !slices.Equal(have, want) {
		t.Errorf("types without names are %q, want %q", have, want)
	}
}

// TestMixtureOfExperts against a plain loop over tokens, for all four ways to compute
// one; a dense mixture has room for every token.
func TestMixtureOfExperts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := nn.MixtureOptions{Hidden: rapid.IntRange(1, 5).Draw(rt, "hidden"),
			Experts: rapid.IntRange(2, 5).Draw(rt, "experts"), Capacity: 100,
			Sparse: rapid.Bool().Draw(rt, "sparse"), Stacked: rapid.Bool().Draw(rt, "stacked"),
			Group: rapid.IntRange(1, 12).Draw(rt, "group")}
		const batch, length, width = 2, 3, 4
		m := nn.NewModel()
		x := m.Input("x", graph.F32, batch, length, width)
		y, balance := nn.MixtureOfExperts(m.Training().In("m"), x, o)
		e := run(t, m, false, y, balance)
		noise(rapid.Uint64().Draw(rt, "seed"), e.f32(x))
		e.step()
		for token := range batch * length {
			row := e.f32(x)[token*width : (token+1)*width]
			want := mixed(e, o, row)
			for i, w := range want {
				have := float64(e.f32(y)[token*width+i])
				if math.Abs(have-w) > 1e-5*(1+math.Abs(w)) {
					rt.Fatalf("%+v: element %d of token %d is %v, want %v", o, i, token, have, w)
				}
			}
		}
		if b := e.f32(balance)[0]; !(b > 0 && b <= float32(o.Experts)+1e-4) {
			rt.Errorf("balance of %d experts is %v", o.Experts, b)
		}
	})
}

// mixed is the mixture of one token.
func mixed(e *machine, o nn.MixtureOptions, x []float32) []float64 {
	gates := make([]float64, o.Experts)
	sum := 0.0
	for k := range gates {
		for i, v := range x {
			gates[k] += float64(v) * float64(e.f32(e.model.Parameter("m/gate"))[i*o.Experts+k])
		}
		gates[k] = math.Exp(gates[k])
		sum += gates[k]
	}
	order := make([]int, o.Experts)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case gates[a] > gates[b]:
			return -1
		case gates[a] < gates[b]:
			return 1
		}
		return 0
	})
	best, second := order[0], order[1]
	out := make([]float64, len(x))
	for _, k := range []int{best, second} {
		share := gates[k] / (gates[best] + gates[second] + 1e-9*sum)
		for i, v := range expert(e, o, k, x) {
			out[i] += share * v
		}
	}
	return out
}

// expert is an expert's result of a token.
func expert(e *machine, o nn.MixtureOptions, k int, x []float32) []float64 {
	weights := func(name string) []float32 {
		if !o.Stacked {
			return e.f32(e.model.Parameter("m/expert" + string(rune('0'+k)) + "/" + name))
		}
		all := e.f32(e.model.Parameter("m/experts/" + name))
		n := len(all) / o.Experts
		return all[k*n : (k+1)*n]
	}
	w0, w1 := weights("w0"), weights("w1")
	out := make([]float64, len(x))
	for h := range o.Hidden {
		unit := 0.0
		for i, v := range x {
			unit += float64(v) * float64(w0[i*o.Hidden+h])
		}
		for i := range out {
			out[i] += max(0, unit) * float64(w1[h*len(x)+i])
		}
	}
	return out
}

// TestBatchNormAverages: a step moves the averages towards the batch's statistics.
func TestBatchNormAverages(t *testing.T) {
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 8, 3)
	y := nn.BatchNorm(m.Training().In("norm"), x, nn.BatchNormOptions{Momentum: 0.75})
	m.Minimize(ops.Mean(ops.Square(y)), nn.SGD{})
	e := run(t, m, true)
	noise(1, e.f32(x))
	e.step()
	averages := m.Graph.Variables()[2:4]
	for c := range 3 {
		mean, variance := 0.0, 0.0
		for i := range 8 {
			mean += float64(e.f32(x)[i*3+c]) / 8
		}
		for i := range 8 {
			d := float64(e.f32(x)[i*3+c]) - mean
			variance += d * d / 8
		}
		haveMean, haveVariance := e.f32(averages[0].Value(0))[c], e.f32(averages[1].Value(0))[c]
		if math.Abs(float64(haveMean)-0.25*mean) > 1e-5 ||
			math.Abs(float64(haveVariance)-0.75-0.25*variance) > 1e-5 {
			t.Errorf("channel %d: averages are %v and %v, statistics %v and %v", c, haveMean,
				haveVariance, mean, variance)
		}
	}
}

// TestTransposedConvolutionSizes: images grow by the stride, or as the formula says.
func TestTransposedConvolutionSizes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, stride := rapid.IntRange(1, 5).Draw(rt, "k"), rapid.IntRange(1, 4).Draw(rt, "stride")
		n := rapid.IntRange(1, 6).Draw(rt, "n")
		m := nn.NewModel()
		x, c := m.Input("x", graph.F32, 1, 2, n, n+1), m.Training()
		y := nn.ConvTranspose2D(c.In("a"), x, 3, k, nn.ConvOptions{Stride: stride, Valid: true})
		if want := (n-1)*stride + k; y.Type().Size(2) != want || y.Type().Size(3) != want+stride {
			rt.Fatalf("%s grows to %s by %d with stride %d", x.Type(), y.Type(), k, stride)
		}
		if k < stride {
			return // some elements would have nothing to be made of
		}
		y = nn.ConvTranspose2D(c.In("b"), x, 3, k, nn.ConvOptions{Stride: stride})
		if err := m.Err(); err != nil {
			rt.Fatal(err)
		}
		if want := n * stride; y.Type().Size(2) != want || y.Type().Size(3) != want+stride {
			rt.Fatalf("%s grows to %s with stride %d", x.Type(), y.Type(), stride)
		}
	})
}

// TestConvolutionSizes: an image has ⌈size/stride⌉ elements behind a convolution.
func TestConvolutionSizes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, stride := rapid.IntRange(1, 5).Draw(rt, "k"), rapid.IntRange(1, 4).Draw(rt, "stride")
		n := rapid.IntRange(1, 9).Draw(rt, "n")
		m := nn.NewModel()
		x := m.Input("x", graph.F32, 1, 2, n, n+1)
		y := nn.Conv2D(m.Training(), x, 3, k, nn.ConvOptions{Stride: stride})
		if err := m.Err(); err != nil {
			rt.Fatal(err)
		}
		up := func(n int) int { return (n + stride - 1) / stride }
		if y.Type().Size(2) != up(n) || y.Type().Size(3) != up(n+1) {
			rt.Fatalf("%s shrinks to %s by %d with stride %d", x.Type(), y.Type(), k, stride)
		}
	})
}
