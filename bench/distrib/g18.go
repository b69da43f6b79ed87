package main

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
)

// covertypeTask is Bösen's example on drawn data: 40 epochs of 10 batches, step size
// 0.01 * 0.99^epoch.
func covertypeTask(quick bool) *workload.MLR {
	train, test := workload.Covertype(1, 500, 50)
	m := &workload.MLR{Train: train, Test: test, Epochs: 40, Clocks: 10, Rate: .01, Decay: .99}
	if quick {
		m.Epochs = 3
	}
	return m
}

// covertype prints where Bösen's example ends.
func covertype(t *testing.T, w io.Writer, quick bool) error {
	m := covertypeTask(quick)
	serial, err := m.Serial()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d + %d drawn samples of 54 features and 7 classes, %d epochs of 10 "+
		"batches.\n\n", m.Train.Len(), m.Test.Len(), m.Epochs)
	heading(w, "run", "entropy", "less serial", "train error", "test error")
	last := serial[m.Epochs]
	line := func(name string, p workload.Progress) {
		fmt.Fprintf(w, "| %s | %.4f | %+.4f | %.3f | %.2f |\n", name, p.Mean(),
			p.Mean()-last.Mean(), float64(p.Errors)/float64(p.Count),
			float64(p.TestErrors)/float64(p.TestCount))
	}
	line("serial, float64", last)
	for _, c := range []struct {
		s     scheme
		nodes int
		slack int
	}{{pushPull(), 4, 0}, {ring(), 4, 0}, {ssp("BSP", 0), 4, 0}, {ssp("SSP 2", 2), 4, 2},
		{ssp("SSP 2", 2), 8, 2}} {
		task := *m
		task.Slack = c.slack
		out, err := world{nodes: c.nodes}.run(t, c.s, func(ctx context.Context,
			s distrib.Synchronizer, w workload.Worker) error {
			return task.Run(ctx, s, w)
		})
		if err != nil {
			return err
		}
		p, _ := out.at(m.Epochs, c.nodes)
		line(fmt.Sprintf("%s, %d workers", c.s.name, c.nodes), p)
	}
	return nil
}
