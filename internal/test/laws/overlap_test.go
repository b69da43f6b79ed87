package laws_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
)

// tower is a deep perceptron whose weights are as large as its activations.
func tower(depth, width int) (*graph.Graph, graph.Value, graph.Value) {
	g := graph.New()
	x := g.Input("x", graph.Type{DType: graph.F32,
		Shape: []graph.Dim{{Size: width}, {Size: width}}})
	h := x
	var weights []graph.Value
	for i := range depth {
		w := g.Variable(fmt.Sprintf("w%d", i), x.Type(),
			graph.Init{Dist: graph.Normal, Scale: 0.05})
		weights = append(weights, w)
		h = ops.Tanh(ops.MatMul(h, w))
	}
	loss := ops.Mean(ops.Square(h))
	lr := ops.Full(g, graph.Type{DType: graph.F32}, 0.1)
	for i, d := range autodiff.Grad(loss, weights...) {
		ops.SGD(weights[i], d, lr)
	}
	return g, x, loss
}

// TestCopiesOverlapComputing: with copies slowed down until they are always
// under way, most operations run during a copy. If either waited for the other
// to end, none would.
func TestCopiesOverlapComputing(t *testing.T) {
	g, x, loss := tower(12, 192)
	rec := &gomem.TraceRecorder{}
	o := gomem.Options{
		Partition: 4, Lookahead: 1, Threads: 1,
		CopyBytesPerSecond: 60 << 20, Trace: rec,
	}
	ctx := context.Background()
	s, err := gomem.Compile(ctx, g, o, gomem.Training(g, loss))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Step(ctx, "train", gomem.Feeds{x: gomem.NewTensor(x.Type())}); err != nil {
		t.Fatal(err)
	}
	var launches, during int
	for _, k := range rec.Events() {
		if k.Bytes > 0 {
			continue
		}
		launches++
		for _, c := range rec.Events() {
			if c.Bytes > 0 && c.Start < k.End && k.Start < c.End {
				during++
				break
			}
		}
	}
	if launches < 50 || during*2 < launches {
		t.Errorf("%d of %d operations run during a copy", during, launches)
	}
}

// TestTraceIsATimeline: the recorder's JSON has a lane a stream and an event a
// task.
func TestTraceIsATimeline(t *testing.T) {
	g, x, loss := tower(2, 8)
	rec := &gomem.TraceRecorder{Limit: 10}
	ctx := context.Background()
	s, err := gomem.Compile(ctx, g, gomem.Options{Trace: rec}, gomem.Training(g, loss))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Step(ctx, "train", gomem.Feeds{x: gomem.NewTensor(x.Type())}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rec.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var timeline struct {
		TraceEvents []struct{ Name, Ph string }
	}
	if err := json.Unmarshal(b.Bytes(), &timeline); err != nil {
		t.Fatal(err)
	}
	tasks := 0
	for _, e := range timeline.TraceEvents {
		if e.Ph == "X" {
			tasks++
		}
	}
	if tasks != 10 || len(timeline.TraceEvents) <= tasks {
		t.Errorf("%d events, %d of them tasks", len(timeline.TraceEvents), tasks)
	}
}
