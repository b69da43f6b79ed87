package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/planner"
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

const rounds = 5

// times are the cells of a network's inferences.
func (n *network) times(ctx context.Context, p *peer) (cells []string, err error) {
	for _, threads := range threads {
		ours, theirs, err := n.timed(ctx, p, threads)
		if err != nil {
			return nil, err
		}
		cells = append(cells, fmt.Sprintf("%.2f", ours), fmt.Sprintf("%.2f", theirs))
	}
	return cells, nil
}

// timed are the medians of milliseconds of both sides, which take turns after one of warming up.
func (n *network) timed(ctx context.Context, p *peer, threads int) (ours, theirs float64,
	err error) {
	o := gomem.Options{Policy: planner.Vanilla, Threads: threads, NoInitialize: true}
	s, err := gomem.Compile(ctx, n.model.Graph, o, gomem.Evaluation(n.outputs...))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := n.net.Load(s.Variables(), s.Set); err != nil {
		return 0, 0, err
	}
	begin, err := json.Marshal(map[string]any{"path": n.path, "threads": threads,
		"arrays": strings.TrimSuffix(n.path, ".onnx") + ".npz"})
	if err != nil {
		return 0, 0, err
	}
	var all [2][]float64
	request := string(begin)
	for i := range rounds + 1 {
		start := time.Now()
		if _, err := s.Step(ctx, "eval", n.feeds); err != nil {
			return 0, 0, err
		}
		took := time.Since(start)
		var reply struct{ MS float64 }
		if err := p.Ask(request, &reply); err != nil {
			return 0, 0, err
		}
		if request = "run"; i > 0 {
			all[0], all[1] = append(all[0], took.Seconds()*1e3), append(all[1], reply.MS)
		}
	}
	return gauge.Median(all[0]), gauge.Median(all[1]), nil
}
