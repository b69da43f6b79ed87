package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/front/onnx"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/predict"
)

//go:embed peer.py
var peerSource string

// peer is a process with onnxruntime.
type peer struct{ *torch.Process }

// startPeer starts it. The error is a *torch.ErrMissing where there is none.
func startPeer(ctx context.Context, python string) (*peer, error) {
	p, err := torch.Start(ctx, python, peerSource)
	return &peer{p}, err
}

// threads are those that inferences are timed with, and rounds how often.
var threads = []int{1, 2}

const rounds = 15

// times are the cells of a network's inferences: of one thread by the processor's time, and of more
// by the clock.
func (n *network) times(ctx context.Context, p *peer, batch int) (cells []string, err error) {
	for _, threads := range threads {
		ours, theirs, err := n.timed(ctx, p, threads, batch)
		if err != nil {
			return nil, err
		}
		cells = append(cells, fmt.Sprintf("%.2f", ours), fmt.Sprintf("%.2f", theirs),
			fmt.Sprintf("%.2f", ours/theirs))
	}
	return cells, nil
}

// timed are the least milliseconds of both sides, which take turns after one of warming up.
func (n *network) timed(ctx context.Context, p *peer, threads, batch int) (ours, theirs float64,
	err error) {
	f, inputs, err := n.function(ctx, threads, batch)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	begin, err := json.Marshal(map[string]any{"path": n.path, "threads": threads, "batch": batch,
		"arrays": strings.TrimSuffix(n.path, ".onnx") + ".npz"})
	if err != nil {
		return 0, 0, err
	}
	var all [2][]float64
	request := string(begin)
	for i := range rounds + 1 {
		start, processor := time.Now(), gauge.CPUTime()
		if _, err := f.Apply(ctx, inputs); err != nil {
			return 0, 0, err
		}
		took := time.Since(start)
		if threads == 1 {
			took = gauge.CPUTime() - processor
		}
		var reply struct{ MS, Processor float64 }
		if err := p.Ask(request, &reply); err != nil {
			return 0, 0, err
		}
		if threads == 1 {
			reply.MS = reply.Processor
		}
		if request = "run"; i > 0 {
			all[0], all[1] = append(all[0], took.Seconds()*1e3), append(all[1], reply.MS)
		}
	}
	return slices.Min(all[0]), slices.Min(all[1]), nil
}

// function is the network as one that is not trained, and its inputs, repeated to a batch where
// that is not 0 and the file leaves it open.
func (n *network) function(ctx context.Context, threads, batch int) (f *predict.Function,
	inputs []gomem.Tensor, err error) {
	sizes, err := n.sizes()
	if err != nil {
		return nil, nil, err
	}
	for axis := range sizes {
		if batch > 0 && strings.HasSuffix(axis, ".0") {
			sizes[axis] = batch
		}
	}
	net, err := onnx.Open(n.path, onnx.Options{Sizes: sizes, Untrained: true})
	if err != nil {
		return nil, nil, err
	}
	m := nn.NewModel()
	in := net.Inputs(m)
	m.Output(net.Apply(m.Evaluation(), in...)...)
	if err := m.Err(); err != nil {
		return nil, nil, err
	}
	for _, v := range in {
		x, err := n.get("in." + v.Node.Name)
		if err != nil {
			return nil, nil, err
		}
		inputs = append(inputs, repeated(x, v.Type()))
	}
	o := gomem.Options{Policy: planner.Vanilla, Threads: threads}
	planned, err := gomem.Plan(ctx, m.Graph, o, predict.FunctionTarget(m))
	if err != nil {
		return nil, nil, err
	}
	f, err = predict.OpenFunction(planned, o, m, func(s *gomem.Session, v []graph.Value) error {
		return net.Load(v, s.Set)
	})
	return f, inputs, err
}

// repeated is an array as one of a type that has more rows.
func repeated(x tensor.View, t tensor.Type) tensor.View {
	y := tensor.New(t)
	for at := 0; at < len(y.Data) && len(x.Data) > 0; at += len(x.Data) {
		copy(y.Data[at:], x.Data)
	}
	return y
}
