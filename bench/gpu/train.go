//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// limits are what memory is for a run, in bytes; 0 is no limit.
type limits struct{ device, host int64 }

// result is what was measured of a side.
type result struct {
	Parameters int64
	Seconds    float64 // of a step, the median
	Peak, Host int64   // bytes of the GPU's memory, and of the host's that is pinned
	Loss       float64 // of the last step
	Hidden     float64 // part of the copies that could be hidden that was; 0 is not known
	Refused    string  // why there was no step
	Load       float64 // PyTorch's part of the memory that there is; 0 is not known
}

// steps are how many steps are counted at least and at most, after those that warm up, how long
// they may take, and whether operations are launched one by one, rather than as CUDA graphs. In the
// second step they are captured.
type steps struct {
	warm, least, most int
	seconds           float64
	eager             bool
}

// options are those of gomem's side.
func (l limits) options(in precision.Precision) gomem.Options {
	return gomem.Options{Policy: planner.Auto, Device: gomem.CUDA, DeviceBytes: l.device,
		HostBytes: l.host, Precision: in, Seed: 1}
}

// trained plans a model for the GPU and runs steps of it. That it needs too much memory is a
// result; that a space was used otherwise than predicted is an error.
func trained(ctx context.Context, c config, l limits, in precision.Precision, n steps) (r result,
	err error) {
	m, err := c.build()
	if err != nil {
		return r, err
	}
	r.Parameters = parameters(m)
	o := l.options(in)
	o.NoCUDAGraphs = n.eager
	p, err := gomem.Plan(ctx, m.Graph, o, training(m))
	if e, ok := errors.AsType[*planner.ErrOutOfMemory](err); ok {
		r.Refused = fmt.Sprintf("needs %s MiB", mib(e.Need))
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := r.open(ctx, p, o, m, n); err != nil || l.device == 0 || n.eager {
		return r, err
	}
	return r, r.trace(ctx, p, o, m, n.least)
}

// open runs steps of a plan in a session of their own.
func (r *result) open(ctx context.Context, p *gomem.Planned, o gomem.Options, m *models.Model,
	n steps) (err error) {
	s, err := gomem.Open(p, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := r.run(ctx, s, m, n); err != nil {
		return err
	}
	return r.usage(s)
}

// trace runs a few steps again, each task between two events, which the steps that are timed
// are spared, and says how much of the copies was hidden.
func (r *result) trace(ctx context.Context, p *gomem.Planned, o gomem.Options,
	m *models.Model, n int) error {
	x, err := traced(ctx, p, o, m, n)
	if err != nil {
		return err
	}
	r.Hidden = hidden(x.Report.Copies)
	return nil
}

// hidden is how much of what could be hidden of copies was, as they were measured; 0 if nothing
// could be.
func hidden(copies []profile.Copies) float64 {
	var was, could float64
	for _, c := range copies {
		was, could = was+c.Measured.HiddenMS, could+c.Measured.HideableMS
	}
	if could == 0 {
		return 0
	}
	return was / could
}

// training is a step of a model's first objective.
func training(m *models.Model) gomem.Target {
	o := m.Objectives[0]
	t := gomem.Target{Name: o.Name, Fetches: []graph.Value{o.Loss}}
	for _, u := range o.Updates {
		t.Updates = append(t.Updates, u.ID)
	}
	return t
}

// parameters are the elements of variables that are no state.
func parameters(m *models.Model) (n int64) {
	for _, v := range m.Graph.Variables() {
		if !v.State {
			n += int64(v.Out[0].Elems())
		}
	}
	return n
}

// run takes the time of steps.
func (r *result) run(ctx context.Context, s *gomem.Session, m *models.Model, n steps) error {
	feeds := thesis.Feeds(m)
	var times []float64
	began := time.Now()
	for i := range n.warm + n.most {
		if i == n.warm {
			began = time.Now()
		}
		if i >= n.warm+n.least && time.Since(began).Seconds() > n.seconds {
			break
		}
		feeds[m.Seed] = gomem.Pair(1, int32(i))
		feeds[m.Step] = gomem.Scalar(float32(i + 1))
		start := time.Now()
		out, err := s.Step(ctx, m.Objectives[0].Name, feeds)
		if err != nil {
			return err
		}
		if i >= n.warm {
			times = append(times, time.Since(start).Seconds())
		}
		r.Loss = float64(out[0].F32()[0])
	}
	r.Seconds = gauge.Median(times)
	if math.IsNaN(r.Loss) || math.IsInf(r.Loss, 0) {
		return fmt.Errorf("the loss is %v", r.Loss)
	}
	return nil
}

// usage checks that every space was used as predicted.
func (r *result) usage(s *gomem.Session) error {
	for i, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return fmt.Errorf("%s used %d bytes, predicted %d", u.Space, u.Actual, u.Predicted)
		}
		if i == 0 {
			r.Peak = u.Actual
		} else {
			r.Host += u.Actual
		}
	}
	return nil
}
