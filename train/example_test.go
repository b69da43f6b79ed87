package train_test

import (
	"context"
	"fmt"
	"os"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// line is a model of one number by another, and points are examples on y = 3x - 1.
func line() (*nn.Model, data.Batches, error) {
	const batch, n = 8, 64
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, batch, 1), m.Input("y", graph.F32, batch, 1)
	m.Minimize(nn.MSE(nn.Linear(m.Training(), x, 1), y), nn.SGD{},
		nn.MinimizeOptions{Rate: nn.Constant(0.3)})
	m.Evaluate(nn.MSE(nn.Linear(m.Evaluation(), x, 1), y))
	xs, ys := gomem.NewTensor(graph.Of(graph.F32, n, 1)), gomem.NewTensor(graph.Of(graph.F32, n, 1))
	for i := range n {
		xs.F32()[i] = float32(i)/n*2 - 1
		ys.F32()[i] = 3*xs.F32()[i] - 1
	}
	points, err := data.FromTensors(data.ExamplesOptions{Batch: batch}, xs, ys)
	return m, points, err
}

// Training under a budget, with a checkpoint at the end, and then from that on to more steps.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	m, points, err := line()
	if err != nil {
		fmt.Println(err)
		return
	}
	o := train.Options{Model: m, Loader: points, Steps: 30, Save: dir,
		Session: gomem.Options{DeviceBytes: 16 << 10}}
	for range 2 {
		s, err := train.Run(context.Background(), o)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("from step %d to step %d, a small loss: %v\n", s.ResumedFrom, s.Steps,
			s.LossLast < 1e-3)
		o.Resume, o.Steps = dir, 60
	}
	// Output:
	// from step 0 to step 30, a small loss: true
	// from step 30 to step 60, a small loss: true
}

// A classifier's mistakes, class by class.
func ExampleConfusion() {
	c := train.NewConfusion(3)
	for _, x := range [][2]int{{0, 0}, {0, 0}, {1, 1}, {1, 2}, {2, 2}} {
		c.Add(x[0], x[1])
	}
	fmt.Printf("accuracy %.2f\n", c.Accuracy())
	fmt.Printf("class 2: precision %.2f, recall %.2f\n", c.Precision(2), c.Recall(2))
	// Output:
	// accuracy 0.80
	// class 2: precision 0.50, recall 1.00
}

// When a loop of one's own should end: after two evaluations that are no better than the best.
func ExampleBest() {
	patience := train.Patience{Evaluations: 2}
	var best train.Best
	for i, loss := range []float64{0.9, 0.5, 0.6, 0.55} {
		better := best.See(patience, 100*(i+1), loss)
		fmt.Println(best.Last, better, best.Since >= patience.Evaluations)
	}
	fmt.Println("best after step", best.Step)
	// Output:
	// 100 true false
	// 200 true false
	// 300 false false
	// 400 false true
	// best after step 200
}
