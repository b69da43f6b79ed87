package models

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// Training replaces what a model says of its updates; the zero value replaces nothing.
type Training struct {
	Optimizer  nn.Optimizer // nil: the model's
	Clip       float32      // of the norm of all gradients; 0: the model's, which is mostly none
	Accumulate int          // executions whose gradients an update averages; 0: one
	Workers    int          // that train together, each with batches of its own; 0: one
	Frozen     []string     // scopes whose parameters are not trained, or the parameters
	Adapters   *nn.Adapters // of linear layers, which alone are trained, in gpt; nil: none
	Exchange   graph.How    // how these exchange gradients
	Factoring  nn.Factoring // which of them by factors; nil: none
	// Given says which parameters are updated by who keeps workers in step between steps, from
	// factors of gradients; nil: none. Adversarial networks have none: their objectives read
	// each other's updates within a step. See [nn.Model.Given].
	Given nn.Factoring
}

// Validate reports the first number that no model can have.
func (t Training) Validate() error {
	switch {
	case !(t.Clip >= 0) || math.IsInf(float64(t.Clip), 0):
		return fmt.Errorf("--clip is %v: want a positive number", t.Clip)
	case t.Accumulate < 0 || t.Accumulate > maxAccumulated:
		return fmt.Errorf("--accumulate is %d: want 1 to %d", t.Accumulate, maxAccumulated)
	case t.Workers < 0:
		return fmt.Errorf("%d workers: want 1 or more", t.Workers)
	}
	if t.Adapters != nil {
		if err := t.Adapters.Validate(); err != nil {
			return err
		}
	}
	return t.Exchange.Check()
}

// maxAccumulated is the most executions of an update.
const maxAccumulated = 1 << 12

// Minimize is [nn.Model.Minimize] with what is replaced of by and o.
func (t Training) Minimize(m *nn.Model, loss graph.Value, by nn.Optimizer,
	o nn.MinimizeOptions) {
	if t.Optimizer != nil {
		by = t.Optimizer
	}
	if t.Clip > 0 {
		o.Clip = t.Clip
	}
	if t.Accumulate > 0 {
		o.Accumulate = t.Accumulate
	}
	if t.Adapters != m.Adapters {
		m.Graph.Fail(errors.New("only gpt has adapters"))
	}
	o.Frozen = append(slices.Clone(o.Frozen), t.Frozen...)
	if o.Name == "" {
		m.Given = t.Given
	}
	m.Workers, m.Exchange, m.Factoring = t.Workers, t.Exchange, t.Factoring
	m.Minimize(loss, by, o)
}
