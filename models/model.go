package models

import (
	"fmt"
	"io"

	"github.com/gomem/gomem/graph"
)

// Model is a graph with its entry points. Two targets are made of it: a training
// step computes Loss, TrainMetrics and Updates, an evaluation EvalLoss and
// EvalMetrics, of the same inputs and variables.
type Model struct {
	Graph      *graph.Graph
	Name, Size string
	Vocab      int // ids are below it

	// The inputs. All are fed at every training step; an evaluation reads Source,
	// Target and Seed.
	Source       graph.Value // ids i32[batch length], 0 is padding
	Target       graph.Value // ids i32[batch length], 0 is padding
	Seed         graph.Value // i32[2]: the run's seed and the number of the step
	LearningRate graph.Value // f32[]: see Schedule
	Step         graph.Value // f32[]: the number of the step, from 1

	Loss         graph.Value   // f32[]: what training minimises, auxiliary losses included
	TrainMetrics []Metric      // of the training pass
	EvalLoss     graph.Value   // f32[]: cross-entropy in nats a target token
	EvalMetrics  []Metric      // of the evaluation pass
	Updates      []*graph.Node // one for every parameter, the last parameter first

	Schedule               Schedule // of the learning rate
	DeviceBytes, HostBytes int64    // the budgets that the size is meant for
}

// Metric is a named number, f32[], that a pass computes beside its loss.
type Metric struct {
	Name  string
	Value graph.Value
}

// Work is what one execution of a part of the graph takes.
type Work struct {
	Nodes        int // operations that are executed, views excluded
	FLOPs, Bytes int64
}

// Work sums the costs of the nodes that the given values and updates need, by
// phase: forward, backward, update.
func (m *Model) Work(values []graph.Value, updates []*graph.Node) [3]Work {
	var roots []graph.NodeID
	for _, v := range values {
		if v.Valid() {
			roots = append(roots, v.Node.ID)
		}
	}
	for _, n := range updates {
		roots = append(roots, n.ID)
	}
	live := m.Graph.Ancestors(roots)
	var w [3]Work
	for _, n := range m.Graph.Nodes() {
		if _, view := n.Op.(graph.Viewer); view || n.Leaf() || !live[n.ID] {
			continue
		}
		c := n.Cost()
		w[n.Phase].Nodes++
		w[n.Phase].FLOPs += c.FLOPs
		w[n.Phase].Bytes += c.Bytes
	}
	return w
}

// Describe prints what the model is made of: parameters, nodes by operation, and
// the work of a training step by phase.
func (m *Model) Describe(w io.Writer) error {
	var parameters, states int
	var bytes, stateBytes int64
	for _, n := range m.Graph.Variables() {
		if n.State {
			states++
			stateBytes += n.Out[0].Bytes()
		} else {
			parameters++
			bytes += n.Out[0].Bytes()
		}
	}
	work := m.Work([]graph.Value{m.Loss}, m.Updates)
	_, err := fmt.Fprintf(w, `%s %s: %d nodes
variables  %6d   %15d elements   %13d bytes
states     %6d                              %13d bytes
forward    %6d operations   %8.2f GFLOP   %13d bytes
backward   %6d operations   %8.2f GFLOP   %13d bytes
update     %6d operations   %8.2f GFLOP   %13d bytes
`, m.Name, m.Size, m.Graph.Len(), parameters, m.Graph.Parameters(), bytes, states, stateBytes,
		work[0].Nodes, float64(work[0].FLOPs)/1e9, work[0].Bytes,
		work[1].Nodes, float64(work[1].FLOPs)/1e9, work[1].Bytes,
		work[2].Nodes, float64(work[2].FLOPs)/1e9, work[2].Bytes)
	return err
}
