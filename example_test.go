package gomem_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
)

// Example trains a small perceptron on a function of two variables, under a
// budget.
func Example() {
	ctx := context.Background()
	g := graph.New()
	x, y := g.Input("x", graph.Of(graph.F32, 64, 2)), g.Input("y", graph.Of(graph.F32, 64, 1))
	normal := func(s float64) graph.Init { return graph.Init{Dist: graph.Normal, Scale: s} }
	w1 := g.Variable("w1", graph.Of(graph.F32, 2, 32), normal(1))
	w2 := g.Variable("w2", graph.Of(graph.F32, 32, 1), normal(0.2))
	guess := ops.MatMul(ops.Tanh(ops.MatMul(x, w1)), w2)
	loss := ops.Mean(ops.Square(ops.Sub(guess, y)))
	rate := ops.Full(g, graph.Of(graph.F32), 0.05)
	for i, d := range autodiff.Grad(loss, w1, w2) {
		ops.SGD([]graph.Value{w1, w2}[i], d, rate)
	}

	s, err := gomem.Compile(ctx, g, gomem.Options{DeviceBytes: 24 << 10}, gomem.Training(g, loss))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	in, out := gomem.NewTensor(x.Type()), gomem.NewTensor(y.Type())
	for i := range 64 {
		a, b := float32(i%8)/4-1, float32(i/8)/4-1
		in.F32()[2*i], in.F32()[2*i+1], out.F32()[i] = a, b, a*b
	}
	var first, last float32
	for step := range 500 {
		fetched, err := s.Step(ctx, "train", gomem.Feeds{x: in, y: out})
		if err != nil {
			fmt.Println(err)
			return
		}
		last = fetched[0].F32()[0]
		if step == 0 {
			first = last
		}
	}
	fmt.Println("the loss fell to a tenth:", last < first/10)
	for _, u := range s.Usage() {
		fmt.Printf("%s: predicted %d bytes, used %d\n", u.Space, u.Predicted, u.Actual)
	}
	// Output:
	// the loss fell to a tenth: true
	// device: predicted 17476 bytes, used 17476
	// host: predicted 1152 bytes, used 1152
}

// ExampleCompile_outOfMemory shows what is said of a budget that cannot be met.
func ExampleCompile_outOfMemory() {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 256, 256))
	sum := ops.Sum(ops.MatMul(x, x))
	o := gomem.Options{DeviceBytes: 300 << 10}
	_, err := gomem.Compile(context.Background(), g, o, gomem.Evaluation(sum))
	fmt.Println(err)
	// Output:
	// gomem: eval needs 512KiB (524288 bytes) of device memory, the budget is 300KiB; matmul (matmul) sets it: x f32[256 256] 256KiB, matmul f32[256 256] 256KiB; no other option of the plan is known to help: raise the budget to that, or shrink the batch or the model
}

// Example_batches trains on ten examples, four at a time: the last batch has two. Every
// size of batch is a target of its own. They share the variables, and the memory, of
// which the session takes what the largest needs.
func Example_batches() {
	ctx := context.Background()
	g := graph.New()
	w := g.Variable("w", graph.Of(graph.F32, 2, 1), graph.Init{})
	rate := ops.Full(g, graph.Of(graph.F32), 0.2)
	type pass struct {
		name string
		x, y graph.Value
	}
	var targets []gomem.Target
	passes := map[int]pass{}
	for _, size := range []int{4, 2} {
		p := pass{name: fmt.Sprint("batch", size)}
		leave := g.Scope(p.name)
		p.x = g.Input("x", graph.Of(graph.F32, size, 2))
		p.y = g.Input("y", graph.Of(graph.F32, size, 1))
		loss := ops.Mean(ops.Square(ops.Sub(ops.MatMul(p.x, w), p.y)))
		update := ops.SGD(w, autodiff.Grad(loss, w)[0], rate)
		leave()
		passes[size] = p
		targets = append(targets, gomem.Updating(p.name, []*graph.Node{update}, loss))
	}

	s, err := gomem.Compile(ctx, g, gomem.Options{}, targets...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for range 100 {
		for at := 0; at < 10; at += 4 {
			p := passes[min(4, 10-at)]
			x, y := gomem.NewTensor(p.x.Type()), gomem.NewTensor(p.y.Type())
			for i := range y.F32() {
				a, b := float32((at+i)%3)-1, float32((at+i)%4)-1.5
				x.F32()[2*i], x.F32()[2*i+1], y.F32()[i] = a, b, 3*a-2*b
			}
			if _, err := s.Step(ctx, p.name, gomem.Feeds{p.x: x, p.y: y}); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	learnt, err := s.Get(w)
	fmt.Println(learnt, err)
	// Output:
	// f32[2 1]
	// [[ 3]
	//  [-2]] <nil>
}

// ExampleSession_Save keeps what was trained and takes it up in another session, from
// the weights alone and under the names that another program has.
func ExampleSession_Save() {
	ctx := context.Background()
	open := func() (*gomem.Session, error) {
		g := graph.New()
		w := g.Variable("layer/w", graph.Of(graph.F32, 3), graph.Init{Scale: 1})
		m := g.State("layer/w/momentum", graph.Of(graph.F32, 3), graph.Init{})
		ops.Momentum(w, m, ops.Square(w), ops.Full(g, graph.Of(graph.F32), 0.25), 0.9)
		return gomem.Compile(ctx, g, gomem.Options{}, gomem.Training(g, ops.Sum(w)))
	}
	dir, err := os.MkdirTemp("", "weights")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "weights.safetensors")
	from, err1 := open()
	to, err2 := open()
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	defer from.Close()
	defer to.Close()
	_, errStep := from.Step(ctx, "train", nil)
	errSave := from.Save(path, gomem.SaveOptions{NoState: true,
		Rename: func(name string) string { return strings.ReplaceAll(name, "/", ".") }})
	report, errLoad := to.Load(path, gomem.LoadOptions{Partial: true,
		Rename: func(name string) string { return strings.ReplaceAll(name, ".", "/") }})
	fmt.Println(errors.Join(errStep, errSave, errLoad))
	fmt.Println("loaded", report.Loaded, "missing", report.Missing)
	w, err := to.Get(to.Variables()[0])
	fmt.Println(w, err)
	// Output:
	// <nil>
	// loaded [layer/w] missing [layer/w/momentum]
	// f32[3] [0.75 0.75 0.75] <nil>
}
