package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data/arrays"
	"github.com/gomem/gomem/front/onnx"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/predict"
	"github.com/gomem/gomem/train"
)

// isNetwork reports whether a checkpoint is a network's file.
func isNetwork(path location) bool {
	return strings.EqualFold(filepath.Ext(string(path)), ".onnx")
}

// openNetworkAs is a network's file as a checkpoint.
func openNetworkAs(path location) (checkpointed, error) {
	name := filepath.Base(string(path))
	k, err := kindOf(networks)
	return checkpointed{kind: k, network: true,
		Checkpoint: train.Checkpoint{Path: string(path), Model: networks, Size: name},
		flags:      modelFlags{Model: networks + ":" + string(path), Size: name}}, err
}

// outcomeOf is the line of an output. What is not finite, or of no elements, has no numbers.
type outcomeOf struct {
	Type   string   `json:"type"`
	Output string   `json:"output"`
	Tensor string   `json:"tensor"` // its type, such as f32[8 10]
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
	Mean   *float64 `json:"mean"`
	File   string   `json:"file,omitempty"` // that it was written to
}

// application is the task of a network of a file: outputs of the arrays of one input.
func application(_ context.Context, e *env, c *predictCmd, x checkpointed) (*task, error) {
	if len(c.Inputs) != 1 {
		return nil, usagef("%d inputs: want one, a file of arrays: IN.npz", len(c.Inputs))
	}
	if err := (outputs{{"--out", string(c.Out)}}).ready(); err != nil {
		return nil, err
	}
	set, err := openArrays(e.stderr, arraysOf(c.Inputs[0]))
	if err != nil {
		return nil, err
	}
	n, m, err := c.network(x, set)
	if err != nil {
		return nil, err
	}
	inputs, err := set.Columns(columnsOf(m))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Inputs[0], err)
	}
	load := x.weights()
	if x.network {
		load = func(s *gomem.Session, vars []graph.Value) error { return m.Values(vars, s.Set) }
	}
	return &task{graph: m.Graph, targets: []gomem.Target{predict.FunctionTarget(&m.Model)},
		unit: m.Unit,
		run: func(ctx context.Context, p *gomem.Planned, o gomem.Options, r *reply) error {
			f, err := predict.OpenFunction(p, o, &m.Model, load)
			if err != nil {
				return err
			}
			began := time.Now()
			answers, err := f.Apply(ctx, inputs)
			r.busy, r.usage = time.Since(began), f.Usage()
			if err = cmp.Or(err, f.Close()); err != nil {
				return err
			}
			r.inputs, r.units = 1, rowsOf(inputs)
			return c.showOutputs(r, n.Outputs(), answers)
		}}, nil
}

// arraysOf is the spec of an input.
func arraysOf(input string) string {
	switch {
	case strings.HasPrefix(input, "npz:") || strings.HasPrefix(input, "tensors:"):
		return input
	case strings.EqualFold(filepath.Ext(input), ".safetensors"):
		return "tensors:" + input
	}
	return "npz:" + input
}

// network is the network of a checkpoint, without a loss. Where the file leaves the number of
// examples open, it is that of the arrays, or --batch where they have more.
func (c *predictCmd) network(x checkpointed, set *arrays.Set) (*network, *models.Model, error) {
	f := x.flags
	f.Batch, f.Loss, f.Target, f.Output = 0, "", "", ""
	if c.Axis != "" {
		if err := f.Axis.UnmarshalText([]byte(c.Axis)); err != nil {
			return nil, nil, usagef("--axis: %w", err)
		}
	}
	n, m, err := newNetwork(f)
	if _, open := errors.AsType[*onnx.UnboundError](err); open && len(set.Arrays) > 0 {
		f.Batch = min(c.Batch, count(max(1, rowsOf([]tensor.View{set.Arrays[0].View}))))
		n, m, err = newNetwork(f)
	}
	return n, m, err
}

// columnsOf are the inputs of a model, by name.
func columnsOf(m *models.Model) (list []arrays.Column) {
	for _, v := range m.Data {
		list = append(list, arrays.Column{Name: v.Node.Name, Type: v.Type()})
	}
	return list
}

// rowsOf is how many examples arrays have.
func rowsOf(list []tensor.View) int {
	if len(list) == 0 || list[0].Type.Rank() == 0 {
		return 1
	}
	return list[0].Type.Size(0)
}

// showOutputs writes outputs to a file, if there is to be one, and says what they are.
func (c *predictCmd) showOutputs(r *reply, names []string, answers []tensor.View) error {
	var list []arrays.Array
	for i, a := range answers {
		list = append(list, arrays.Array{Name: names[i], View: a})
	}
	if c.Out != "" {
		err := writeFile(string(c.Out), func(w io.Writer) error { return arrays.Write(w, list) })
		if err != nil {
			return err
		}
	}
	for _, a := range list {
		line := outcomeOf{Type: "prediction", Output: a.Name, Tensor: a.Type.String(),
			File: string(c.Out)}
		text := fmt.Sprintf("%s %s", a.Name, a.Type)
		if low, high, mean, ok := extent(a.View); ok {
			line.Min, line.Max, line.Mean = &low, &high, &mean
			text += fmt.Sprintf("  min %.6g  max %.6g  mean %.6g", low, high, mean)
		}
		r.show(line, text+"\n")
	}
	return nil
}

// extent is between what numbers elements are, and their mean; ok is false where there are none,
// or some are not finite.
func extent(v tensor.View) (low, high, mean float64, ok bool) {
	all := v.As(tensor.F64).F64()
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range all {
		low, high, mean = min(low, x), max(high, x), mean+float64(x/float64(len(all)))
	}
	return low, high, mean, len(all) > 0 && !math.IsNaN(mean) && !math.IsInf(high-low, 0)
}
