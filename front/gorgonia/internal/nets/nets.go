package nets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Net is a graph with all that its training needs.
type Net struct {
	Loss       *G.Node
	Learnables G.Nodes
	Solver     G.Solver
	Feed       func(step int) error // gives the inputs their values for a step
}

// Sizes are those of a net.
type Sizes struct{ Batch, Width, Depth int }

// Kind is a net of any sizes.
type Kind struct {
	Name  string
	Small Sizes // of tests
	Large Sizes // of benchmarks
	New   func(Sizes) *Net
}

// Kinds are all nets.
func Kinds() []Kind {
	return []Kind{
		{"regression", Sizes{Batch: 100, Width: 4}, Sizes{Batch: 10000, Width: 50}, regression},
		{"perceptron", Sizes{Batch: 32, Width: 96, Depth: 14},
			Sizes{Batch: 100, Width: 300, Depth: 6}, perceptron},
		{"convnet", Sizes{Batch: 8, Width: 16, Depth: 28}, Sizes{Batch: 8, Width: 32, Depth: 28},
			convnet},
		{"lstm", Sizes{Width: 16, Depth: 10}, Sizes{Width: 100, Depth: 30}, lstm},
	}
}

// builder makes learnables with drawn values.
type builder struct {
	g     *G.ExprGraph
	rng   *rand.Rand
	learn G.Nodes
}

// newBuilder draws the same every time.
func newBuilder() *builder {
	return &builder{g: G.NewGraph(), rng: rand.New(rand.NewPCG(1, 0))}
}

// drawn are normal numbers.
func (b *builder) drawn(scale float64, shape ...int) *tensor.Dense {
	x := make([]float32, tensor.Shape(shape).TotalSize())
	for i := range x {
		x[i] = float32(scale * b.rng.NormFloat64())
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x))
}

// weight is a learnable of float32.
func (b *builder) weight(name string, scale float64, shape ...int) *G.Node {
	n := G.NewTensor(b.g, G.Float32, len(shape), G.WithShape(shape...), G.WithName(name),
		G.WithValue(b.drawn(scale, shape...)))
	b.learn = append(b.learn, n)
	return n
}

// regression is that of points on a plane with noise.
func regression(s Sizes) *Net {
	b := newBuilder()
	x := G.NewMatrix(b.g, G.Float64, G.WithShape(s.Batch, s.Width), G.WithName("x"))
	y := G.NewVector(b.g, G.Float64, G.WithShape(s.Batch), G.WithName("y"))
	w := G.NewVector(b.g, G.Float64, G.WithShape(s.Width), G.WithName("w"),
		G.WithValue(tensor.New(tensor.Of(G.Float64), tensor.WithShape(s.Width))))
	c := G.NewScalar(b.g, G.Float64, G.WithName("c"), G.WithValue(G.NewF64(0)))
	off := G.Must(G.Sub(G.Must(G.Add(G.Must(G.Mul(x, w)), c)), y))
	points, values := make([]float64, s.Batch*s.Width), make([]float64, s.Batch)
	for i := range points {
		points[i] = b.rng.NormFloat64()
		values[i/s.Width] += points[i] * float64(i%s.Width)
	}
	for i := range values {
		values[i] += 3 + b.rng.NormFloat64()/10
	}
	xs := tensor.New(tensor.WithShape(s.Batch, s.Width), tensor.WithBacking(points))
	ys := tensor.New(tensor.WithShape(s.Batch), tensor.WithBacking(values))
	return &Net{Loss: G.Must(G.Mean(G.Must(G.Square(off)))), Learnables: G.Nodes{w, c},
		Solver: G.NewVanillaSolver(G.WithLearnRate(0.1)),
		Feed:   func(int) error { return let(x, xs, y, ys) }}
}

// let gives two inputs values.
func let(x *G.Node, xs G.Value, y *G.Node, ys G.Value) error {
	if err := G.Let(x, xs); err != nil {
		return err
	}
	return G.Let(y, ys)
}

// pictures has x and y hold noise over stripes, as wide as the class says.
func (b *builder) pictures(x, y *G.Node) func(int) error {
	return func(step int) error {
		rng := rand.New(rand.NewPCG(2, uint64(step)))
		batch, pixels := x.Shape()[0], x.Shape().TotalSize()/x.Shape()[0]
		xs, ys := make([]float32, batch*pixels), make([]float32, batch*10)
		for i := range xs {
			class := i / pixels % 10
			xs[i] = float32(rng.Float64()) + float32(i%pixels/(class+1)%2)
			ys[i/pixels*10+class] = 1
		}
		return let(x, tensor.New(tensor.WithShape(x.Shape()...), tensor.WithBacking(xs)),
			y, tensor.New(tensor.WithShape(batch, 10), tensor.WithBacking(ys)))
	}
}

// entropy is the loss of the classes' logits.
func entropy(logits, y *G.Node) *G.Node {
	logs := G.Must(G.Log(G.Must(G.SoftMax(logits))))
	return G.Must(G.Neg(G.Must(G.Mean(G.Must(G.HadamardProd(logs, y))))))
}

// perceptron has layers of rectified units with biases, on pictures of 28 by 28.
func perceptron(s Sizes) *Net {
	b := newBuilder()
	x := G.NewMatrix(b.g, G.Float32, G.WithShape(s.Batch, 784), G.WithName("x"))
	y := G.NewMatrix(b.g, G.Float32, G.WithShape(s.Batch, 10), G.WithName("y"))
	h, width := x, 784
	for i := range s.Depth {
		w := b.weight(fmt.Sprintf("w%d", i), math.Sqrt(2/float64(width)), width, s.Width)
		bias := b.weight(fmt.Sprintf("b%d", i), 0.05, 1, s.Width)
		h = G.Must(G.Rectify(G.Must(G.BroadcastAdd(G.Must(G.Mul(h, w)), bias, nil, []byte{0}))))
		width = s.Width
	}
	logits := G.Must(G.Mul(h, b.weight("out", 0.05, width, 10)))
	return &Net{Loss: entropy(logits, y), Learnables: b.learn, Feed: b.pictures(x, y),
		Solver: G.NewVanillaSolver(G.WithLearnRate(0.3))}
}

// convnet has two convolutions with pools, and a layer of units. Depth is the picture's height.
func convnet(s Sizes) *Net {
	b := newBuilder()
	x := G.NewTensor(b.g, G.Float32, 4, G.WithShape(s.Batch, 1, s.Depth, s.Depth), G.WithName("x"))
	y := G.NewMatrix(b.g, G.Float32, G.WithShape(s.Batch, 10), G.WithName("y"))
	h, channels := x, 1
	for i, width := range []int{s.Width, 2 * s.Width} {
		w := b.weight(fmt.Sprintf("w%d", i), 0.2, width, channels, 3, 3)
		h = G.Must(G.Conv2d(h, w, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
		h = G.Must(G.MaxPool2D(G.Must(G.Rectify(h)), tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
		channels = width
	}
	many := h.Shape().TotalSize() / s.Batch
	h = G.Must(G.Reshape(h, tensor.Shape{s.Batch, many}))
	h = G.Must(G.Rectify(G.Must(G.Mul(h, b.weight("full", 0.05, many, 4*s.Width)))))
	logits := G.Must(G.Mul(h, b.weight("out", 0.1, 4*s.Width, 10)))
	return &Net{Loss: entropy(logits, y), Learnables: b.learn, Feed: b.pictures(x, y),
		Solver: G.NewAdamSolver(G.WithLearnRate(0.001))}
}

// lstm predicts the next of characters, unrolled over a text of Depth characters, one by one as in
// Gorgonia's example, with vectors.
func lstm(s Sizes) *Net {
	const symbols, width = 12, 10
	b := newBuilder()
	table := b.weight("embedding", 0.3, symbols, width)
	var gates [4]struct{ x, h, bias *G.Node }
	for i := range gates {
		gates[i].x = b.weight(fmt.Sprintf("wx%d", i), 0.2, s.Width, width)
		gates[i].h = b.weight(fmt.Sprintf("wh%d", i), 0.2, s.Width, s.Width)
		gates[i].bias = b.weight(fmt.Sprintf("bias%d", i), 0.01, s.Width)
	}
	out, bias := b.weight("decoder", 0.2, symbols, s.Width), b.weight("bias", 0.01, symbols)
	zero := func(name string) *G.Node {
		return G.NewVector(b.g, G.Float32, G.WithShape(s.Width), G.WithName(name),
			G.WithValue(tensor.New(tensor.Of(G.Float32), tensor.WithShape(s.Width))))
	}
	h, c := zero("hidden"), zero("cell")
	symbol := func(i int) int { return (i*i + 3*i) % symbols }
	var losses G.Nodes
	for i := range s.Depth {
		x := G.Must(G.Slice(table, G.S(symbol(i))))
		gate := func(k int) *G.Node {
			sum := G.Must(G.Add(G.Must(G.Mul(gates[k].x, x)), G.Must(G.Mul(gates[k].h, h))))
			return G.Must(G.Add(sum, gates[k].bias))
		}
		keep, write := G.Must(G.Sigmoid(gate(0))), G.Must(G.Sigmoid(gate(1)))
		show, fresh := G.Must(G.Sigmoid(gate(2))), G.Must(G.Tanh(gate(3)))
		c = G.Must(G.Add(G.Must(G.HadamardProd(keep, c)), G.Must(G.HadamardProd(write, fresh))))
		h = G.Must(G.HadamardProd(show, G.Must(G.Tanh(c))))
		logits := G.Must(G.Add(G.Must(G.Mul(out, h)), bias))
		logs := G.Must(G.Neg(G.Must(G.Log(G.Must(G.SoftMax(logits))))))
		losses = append(losses, G.Must(G.Slice(logs, G.S(symbol(i+1)))))
	}
	return &Net{Loss: G.Must(G.ReduceAdd(losses)), Learnables: b.learn,
		Feed:   func(int) error { return nil },
		Solver: G.NewMomentum(G.WithLearnRate(0.01), G.WithMomentum(0.9))}
}

// Train trains on Gorgonia's machine, and returns the losses, and the time of the steps but for
// the first. Done is called after the last, while the machine is there.
func (n *Net) Train(steps int, done func()) (losses []float64, took time.Duration, err error) {
	if _, err := G.Grad(n.Loss, n.Learnables...); err != nil {
		return nil, 0, err
	}
	var loss G.Value
	G.Read(n.Loss, &loss)
	m := G.NewTapeMachine(n.Loss.Graph(), G.BindDualValues(n.Learnables...))
	defer m.Close()
	for step := range steps {
		if err := n.Feed(step); err != nil {
			return nil, 0, err
		}
		began := time.Now()
		if err := m.RunAll(); err != nil {
			return nil, 0, err
		}
		if err := n.Solver.Step(G.NodesToValueGrads(n.Learnables)); err != nil {
			return nil, 0, err
		}
		losses = append(losses, Number(loss))
		m.Reset()
		if step > 0 {
			took += time.Since(began)
		}
	}
	done()
	return losses, took, nil
}

// Number is a scalar's.
func Number(v G.Value) float64 {
	switch x := v.Data().(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	}
	return 0
}
