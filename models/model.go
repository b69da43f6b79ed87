package models

import (
	"fmt"
	"io"

	"github.com/gomem/gomem/graph"
)

// Model is a graph with its entry points: what a training step computes, and
// what an evaluation does, of the same inputs and variables.
type Model struct {
	Graph      *graph.Graph
	Name, Size string
	Domain     Domain
	// of what losses are averaged over and speed is counted in: "token", "image", "utterance"
	Unit    string
	Classes int // ids or labels are below it: sub-words, kinds of images, letters

	// The inputs. Data is what a batch of the model's data brings, in the order that
	// the model's function says; an execution may read some of it only.
	Data         []graph.Value
	Seed         graph.Value // i32[2]: the run's seed and the number of the execution
	LearningRate graph.Value // f32[]: see Schedule
	Step         graph.Value // f32[]: how often the objective has been executed, from 1

	Objectives  []Objective   // what a training step executes, in order
	EvalLoss    graph.Value   // f32[]: the mean over units
	EvalMetrics []Metric      // of the evaluation, means over units
	EvalOutputs []graph.Value // of the evaluation: what other metrics are computed of

	Schedule               Schedule // of the learning rate
	DeviceBytes, HostBytes int64    // the budgets that the size is meant for
}

// Domain is what a model learns from, and so what its data are.
type Domain int

// The domains.
const (
	Texts  Domain = iota // pairs of texts: ids of the sources and of the targets
	Images               // images and their labels
	Speech               // features and labels of utterances, and how many of either
)

// unit is what is counted.
func (d Domain) unit() string { return [...]string{"token", "image", "utterance"}[d] }

// Objective is a loss with the updates that lower it. Most models have one;
// adversarial ones alternate.
type Objective struct {
	Name    string        // "train" if there is one
	Times   int           // executions a training step, each with a batch of its own
	Loss    graph.Value   // f32[]: what is minimised, auxiliary losses included
	Metrics []Metric      // computed beside it
	Updates []*graph.Node // of its parameters, the last parameter first, and of running averages
}

// Executions is the number of executions, and of batches, of a training step.
func (m *Model) Executions() int {
	n := 0
	for _, o := range m.Objectives {
		n += o.Times
	}
	return n
}

// Metric is a named number, f32[], that is computed beside a loss.
type Metric struct {
	Name  string
	Value graph.Value
}

// Work is what one execution of a part of the graph takes.
type Work struct {
	Nodes        int // operations that are executed, views excluded
	FLOPs, Bytes int64
}

// Work sums the costs of an objective's nodes by phase: forward, backward,
// update.
func (m *Model) Work(o Objective) [3]Work {
	roots := []graph.NodeID{o.Loss.Node.ID}
	for _, n := range o.Updates {
		roots = append(roots, n.ID)
	}
	live := m.Graph.Ancestors(roots)
	var w [3]Work
	for _, n := range m.Graph.Nodes() {
		if !n.Executes() || !live[n.ID] {
			continue
		}
		c := n.Cost()
		w[n.Phase].Nodes++
		w[n.Phase].FLOPs += c.FLOPs
		w[n.Phase].Bytes += c.Bytes
	}
	return w
}

// Describe prints what the model is made of: parameters, and the work of each
// objective by phase.
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
	_, err := fmt.Fprintf(w, `%s %s: %d nodes
variables  %6d   %15d elements   %13d bytes
states     %6d                              %13d bytes
`, m.Name, m.Size, m.Graph.Len(), parameters, m.Graph.Parameters(), bytes, states, stateBytes)
	for _, o := range m.Objectives {
		for phase, work := range m.Work(o) {
			if err == nil {
				_, err = fmt.Fprintf(w, "%-9s %-9s %6d operations   %8.2f GFLOP   %13d bytes\n",
					o.Name, graph.Phase(phase), work.Nodes, float64(work.FLOPs)/1e9, work.Bytes)
			}
		}
	}
	return err
}
