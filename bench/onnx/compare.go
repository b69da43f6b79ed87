package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// Differences that are too large, relative to the largest element.
const (
	mostOutput   = 1e-5
	mostGradient = 1e-4
)

// result is one comparison.
type result struct {
	name                        string
	file, nodes, grads, weights int
	output, gradient            float64 // the largest differences
	worst                       string  // the parameter whose gradient differs most
	vanilla, planned            int64   // bytes of the device's memory
	third                       bool    // planned is within a third of vanilla
}

func (r result) agrees() bool { return r.output < mostOutput && r.gradient < mostGradient }

// target is what is computed.
func (n *network) target() gomem.Target {
	return gomem.Target{Name: "gradients", Fetches: slices.Concat(n.outputs, n.grads)}
}

// compare runs the network by two plans and compares what they give.
func (n *network) compare(ctx context.Context) (r result, err error) {
	r = result{name: title(n.path), file: n.file, nodes: n.nodes, grads: len(n.wrt),
		weights: n.elements()}
	got, taken, err := n.run(ctx, gomem.Options{Policy: planner.Vanilla})
	if err != nil {
		return r, err
	}
	r.vanilla = taken
	o := gomem.Options{Policy: planner.Auto, Draft: true, DeviceBytes: taken / 3}
	within, taken, err := n.run(ctx, o)
	if _, refused := errors.AsType[*gomem.ErrOutOfMemory](err); refused {
		if o.DeviceBytes, err = gomem.MinDevice(ctx, n.model.Graph, o, n.target()); err == nil {
			within, taken, err = n.run(ctx, o)
		}
	}
	if err != nil {
		return r, err
	}
	r.planned, r.third = taken, taken <= r.vanilla/3
	for i := range got {
		if !bytes.Equal(got[i].Data, within[i].Data) {
			return r, fmt.Errorf("result %d has other bits within %d bytes", i, o.DeviceBytes)
		}
	}
	return r, n.measure(&r, got)
}

// run computes outputs and gradients once, and tells what memory of the device that took.
func (n *network) run(ctx context.Context, o gomem.Options) (got []tensor.View, taken int64,
	err error) {
	o.NoInitialize = true
	plan, err := gomem.Plan(ctx, n.model.Graph, o, n.target())
	if err != nil {
		return nil, 0, err
	}
	s, err := gomem.Open(plan, o)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := n.net.Load(s.Variables(), s.Set); err != nil {
		return nil, 0, err
	}
	got, err = s.Step(ctx, "gradients", n.feeds)
	return got, plan.Peak(space.Device), err
}

// measure compares results with PyTorch's.
func (n *network) measure(r *result, got []tensor.View) error {
	for i, y := range got[:len(n.outputs)] {
		want, err := n.get(fmt.Sprintf("out.%d", i))
		if err != nil {
			return err
		}
		d, err := difference(y, want, 0)
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		r.output = max(r.output, d)
	}
	var wants []tensor.View
	floor := 0.0
	for _, p := range n.wrt {
		want, err := n.get("grad." + p.Node.Name)
		if err != nil {
			return err
		}
		wants = append(wants, want)
		floor = max(floor, 1e-3*largest(want.To(tensor.F64).F64()))
	}
	for i, d := range got[len(n.outputs):] {
		d, err := difference(d, wants[i], floor)
		if err != nil {
			return fmt.Errorf("the gradient of %q: %w", n.wrt[i].Node.Name, err)
		}
		if r.worst == "" || !(d <= r.gradient) {
			r.gradient, r.worst = max(r.gradient, d), n.wrt[i].Node.Name
		}
	}
	return nil
}

// largest is the largest magnitude; NaN if there is one.
func largest(x []float64) (most float64) {
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	return most
}

// difference is the largest of any element, relative to the largest element, or to a floor where
// that is larger.
func difference(got, want tensor.View, floor float64) (float64, error) {
	if !slices.Equal(got.Type.Sizes(), want.Type.Sizes()) {
		return 0, fmt.Errorf("it is %s, want %s", got.Type, want.Type)
	}
	x, y := got.To(tensor.F64).F64(), want.To(tensor.F64).F64()
	apart := make([]float64, len(x))
	for i := range x {
		apart[i] = x[i] - y[i]
	}
	return largest(apart) / max(largest(y), floor, math.SmallestNonzeroFloat64), nil
}
