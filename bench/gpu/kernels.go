//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/models"
)

// roof is what a GPU can at most, as it was measured.
type roof struct{ bytes, flops float64 } // a second

// kernels measures every kind of operation of the models' steps, at the sizes that they have.
func kernels(ctx context.Context, b *bench) error {
	b.title("Kernels", "A step of each model, of which every task is between two events: all "+
		"operations of a kind together, medians of 5 steps, the slowest kinds first. The roof is "+
		"the time that the kind's multiplications and additions take at the rate of a large "+
		"product in that precision, or its bytes, of operands and results, at the rate of "+
		"the driver's fill, whichever is longer; what stays in the GPU's cache may be faster.")
	b.head(3, "model", "precision", "operation", "number", "ms a step", "TFLOP/s", "GB/s",
		"% of the roof")
	all, err := configs(b.emulate)
	if err != nil {
		return err
	}
	var cut []string
	for _, in := range []precision.Precision{precision.F32, precision.BF16} {
		for _, c := range all {
			row := fmt.Sprintf("%s in %s", c.Kind, in)
			cells, err := b.once(ctx, row, func(ctx context.Context) (outcome, error) {
				cells, err := kinds(ctx, b, c, in)
				o, _ := outcomeOf(result{}, own[0], err)
				if err == nil {
					o.cells = cells
				}
				return o, nil
			})
			if errors.Is(err, errTime) {
				cut = append(cut, row)
			} else if err != nil {
				return err
			}
			b.rowsOf([]string{c.Kind, string(in)}, cells)
		}
	}
	b.missed(cut)
	return nil
}

// kinds are the rows of a model.
func kinds(ctx context.Context, b *bench, c config, in precision.Precision) ([][]string, error) {
	top, err := measured(b, in)
	if err != nil {
		return nil, err
	}
	m, err := c.build()
	if err != nil {
		return nil, err
	}
	o := limits{}.options(in)
	p, err := gomem.Plan(ctx, m.Graph, o, training(m))
	if err != nil {
		return nil, err
	}
	count := 5
	if b.emulate {
		count = 1
	}
	x, err := traced(ctx, p, o, m, count)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, k := range x.Report.Kinds {
		if k.MeasuredMS != nil && *k.MeasuredMS > 0 {
			rows = append(rows, top.row(k))
		}
	}
	return rows, nil
}

// row is that of a kind.
func (t roof) row(k profile.Kind) []string {
	seconds := *k.MeasuredMS / 1e3
	least := max(float64(k.FLOPs)/t.flops, float64(k.Bytes)/t.bytes)
	return []string{k.Op, fmt.Sprint(k.Count), fmt.Sprintf("%.3f", *k.MeasuredMS),
		fmt.Sprintf("%.2f", float64(k.FLOPs)/seconds/1e12),
		fmt.Sprintf("%.0f", float64(k.Bytes)/seconds/1e9),
		fmt.Sprintf("%.0f", 100*least/seconds)}
}

// measured is the GPU's roof: that of a fill of much memory, and of a large product.
func measured(b *bench, in precision.Precision) (t roof, err error) {
	n, bytes := 8192, int64(1<<30)
	if b.emulate {
		n, bytes = 32, 64<<10
	}
	err = onGPU(b.dirs(), func(r *rig) error {
		at, err := r.room(bytes)
		if err != nil {
			return err
		}
		s, err := r.stream()
		if err != nil {
			return err
		}
		const rounds, times = 5, 4
		took, err := r.timed(rounds, func() error {
			var errs [times]error
			for i := range errs {
				errs[i] = s.Fill(at, 1, bytes/4)
			}
			return errors.Join(errs[:]...)
		})
		if err != nil {
			return err
		}
		t.bytes = times * float64(bytes) / took
		m, err := r.matrices(n)
		if err != nil {
			return err
		}
		t.flops, err = m.rate(n, number{half: in == precision.BF16})
		return err
	})
	return t, err
}

// traced is a profile of steps of which each task is between two events, after one that warms
// up.
func traced(ctx context.Context, p *gomem.Planned, o gomem.Options, m *models.Model, n int) (
	*profile.Profile, error) {
	var t result
	o.Trace = new(gomem.TraceRecorder)
	if err := t.open(ctx, p, o, m, steps{warm: 1, least: n, most: n}); err != nil {
		return nil, err
	}
	runs := profile.Runs(p.Results[0].Plan, o.Trace.Events())
	if len(runs) < 2 {
		return nil, fmt.Errorf("%d of %d steps were traced", len(runs), 1+n)
	}
	return profile.New(profile.Input{Plan: p.Results[0].Plan, Graph: p.Graph,
		Measured: runs[1:]})
}
