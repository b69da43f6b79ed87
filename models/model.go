package models

import (
	"fmt"
	"io"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// Model is a graph with its entry points, and what commands know a model by.
type Model struct {
	nn.Model
	Name, Size string
	Domain     Domain
	// of what losses are averaged over and speed is counted in: "token", "image", "utterance",
	// "document"
	Unit    string
	Classes int // ids or labels are below it: sub-words, kinds of images, letters

	DeviceBytes, HostBytes int64 // the budgets that the size is meant for
}

// What models have of package nn.
type (
	// Objective is a loss with the updates that lower it.
	Objective = nn.Objective
	// Metric is a named number, f32[], that is computed beside a loss.
	Metric = nn.Metric
	// Schedule is a learning rate over steps.
	Schedule = nn.Schedule
	// Constant is the same learning rate at every step.
	Constant = nn.Constant
	// InverseSqrt is a learning rate that goes with the inverse square root of the step.
	InverseSqrt = nn.InverseSqrt
	// Stepwise is a learning rate that drops at some steps.
	Stepwise = nn.Stepwise
)

// Domain is what a model learns from, and so what its data are.
type Domain int

// The domains.
const (
	Texts     Domain = iota // pairs of texts: ids of the sources and of the targets
	Images                  // images and their labels
	Speech                  // features and labels of utterances, and how many of either
	Documents               // words of documents, and how much each of them counts
)

// unit is what is counted.
func (d Domain) unit() string { return [...]string{"token", "image", "utterance", "document"}[d] }

// Logits are what the loss of an evaluation is taken of, f32 with an axis of Classes: ids, kinds or
// letters by their likelihood. It is the zero Value of models without.
func (m *Model) Logits() graph.Value {
	if !m.EvalLoss.Valid() {
		return graph.Value{}
	}
	live := m.Graph.Ancestors([]graph.NodeID{m.EvalLoss.Node.ID})
	for _, n := range m.Graph.Nodes() {
		if !live[n.ID] || n.Leaf() {
			continue
		}
		if name := n.Op.Name(); name == "cross-entropy" || name == "ctc" {
			return n.In[0]
		}
	}
	return graph.Value{}
}

// Predicted is what a model predicts: its logits, or where it has none the first output of its
// evaluation, such as images. It is the zero Value of models without either.
func (m *Model) Predicted() graph.Value {
	if l := m.Logits(); l.Valid() || len(m.EvalOutputs) == 0 {
		return l
	}
	return m.EvalOutputs[0]
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
