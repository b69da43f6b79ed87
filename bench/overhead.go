package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/models"
)

// overhead compares a step with everything resident with a plain loop over the
// same kernels.
func overhead(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "Everything resident (`vanilla`), beside the same kernels in a plain loop with a value's memory to itself.")
	fmt.Fprintln(w, "\n| model | operations | plain loop ms | executor ms | executor / loop |\n|---|---|---|---|---|")
	for _, size := range []string{"s64", "s512"} {
		for _, sparse := range []bool{false, true} {
			if err := overheadOf(ctx, w, size, sparse); err != nil {
				return err
			}
		}
	}
	return nil
}

func overheadOf(ctx context.Context, w io.Writer, size string, sparse bool) error {
	m, err := build(size, 0, func(c *models.MoEConfig) { c.Sparse = sparse })
	if err != nil {
		return err
	}
	target := gomem.Training(m.Graph, m.Loss)
	s, err := gomem.Compile(ctx, m.Graph, gomem.Options{Options: compile.Options{Policy: compile.Vanilla}}, target)
	if err != nil {
		return err
	}
	defer s.Close()
	threads := pool.New(0)
	defer threads.Close()
	live := m.Graph.Ancestors(append([]graph.NodeID{m.Loss.Node.ID}, target.Updates...))
	loop, err := reference.New(m.Graph, live, threads)
	if err != nil {
		return err
	}
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			return err
		}
		if live[v.Node.ID] {
			copy(loop.Value(v).Data, x.Data)
		}
	}
	in := feeds(m)
	for v, x := range in {
		copy(loop.Value(v).Data, x.Data)
	}
	times, err := interleaved(ctx, 21, loop.Step, func() error { _, err := s.Step(ctx, "train", in); return err })
	if err != nil {
		return err
	}
	form := map[bool]string{false: "dense", true: "sparse"}[sparse]
	fmt.Fprintf(w, "| %s %s | %d | %s | %s | %.3f |\n", size, form, s.Plan("train").Launches(), ms(times[0]), ms(times[1]), float64(times[1])/float64(times[0]))
	return nil
}
