package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// A classifier of two layers learns which of two numbers is larger.
func Example() {
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, 20, 2), m.Input("y", graph.I32, 20)
	net := func(c *nn.Ctx) graph.Value {
		h := nn.Relu(nn.Linear(c.In("hidden"), x, 16))
		return nn.Linear(c.In("out"), h, 2)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{},
		nn.MinimizeOptions{Rate: nn.Constant(0.03)})
	logits := net(m.Evaluation())
	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y))

	numbers, larger := tensor.New(graph.Of(graph.F32, 400, 2)), tensor.New(graph.Of(graph.I32, 400))
	for i := range larger.I32() {
		a, b := float32(i*7%400)/400, float32(i*11%401)/400
		copy(numbers.F32()[2*i:], []float32{a, b})
		if b > a {
			larger.I32()[i] = 1
		}
	}
	examples, err := data.FromTensors(data.ExamplesOptions{Batch: 20}, numbers, larger)
	if err != nil {
		log.Fatal(err)
	}
	s, err := train.Run(context.Background(), train.Options{Model: m, Loader: examples, Epochs: 10,
		Session: gomem.Options{Policy: "auto", DeviceBytes: 64 << 10}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("mostly right:", s.EvalMetrics["accuracy"] > 0.9)
	// Output: mostly right: true
}

// One table is an embedding and, transposed, the last layer's weights.
func ExampleCtx_Share() {
	m := nn.NewModel()
	ids := m.Input("ids", graph.I32, 4, 8)
	c := m.Training()
	x := nn.Embedding(c.In("embedding"), ids, 100, 16)
	x = ops.Add(x, nn.FeedForward(c.In("hidden"), x, 32))
	logits := nn.Unembedding(c.Share("embedding"), x, 100)
	for _, p := range m.Parameters() {
		fmt.Println(p, p.Type())
	}
	fmt.Println("logits", logits.Type(), m.Err())
	// Output:
	// embedding/table f32[vocabulary:100 16]
	// hidden/w0 f32[16 32]
	// hidden/b0 f32[32]
	// hidden/w1 f32[32 16]
	// hidden/b1 f32[16]
	// logits f32[batch:4 8 vocabulary:100] <nil>
}

// A mistake is one line with the line of the program, and nothing panics.
func ExampleModel_Err() {
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 4, 8)
	c := m.Training()
	x = nn.Linear(c.In("layer"), x, 8)
	x = nn.Linear(c.In("layer"), x, 8)
	m.Minimize(nn.MSE(x, x), nn.SGD{})
	fmt.Println(m.Err() != nil, len(m.Objectives))
	// Output: true 0
}

// Batches of 8 are trained on as batches of 64 would be, with gradients clipped and
// weight decay for matrices only.
func ExampleModel_Minimize() {
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, 8, 5), m.Input("y", graph.F32, 8, 1)
	m.Minimize(nn.MSE(nn.Linear(m.Training().In("layer"), x, 1), y),
		nn.AdamW{Decay: 0.1, Exempt: nn.Vectors},
		nn.MinimizeOptions{
			Rate: nn.CosineDecay{Rate: 1e-3, Warmup: 10, Total: 1000},
			Clip: 1, Accumulate: 8,
		})
	o := m.Objectives[0]
	fmt.Println(o.Name, "is executed", o.Times, "times a step")
	for _, n := range o.Updates {
		fmt.Println(n.Op.Name(), n.In[0])
	}
	// Output:
	// train is executed 8 times a step
	// every-adam layer/bias
	// every-adamw layer/weight
	// accumulate-until layer/bias/gradient
	// accumulate-until layer/weight/gradient
}
