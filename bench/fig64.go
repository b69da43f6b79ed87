package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
)

// stage is a row of figure 6.4.
type stage struct {
	name    string
	options planner.Options
}

var stages = []stage{
	{"vanilla", planner.Options{Policy: planner.Vanilla}},
	{"+partition, 200", planner.Options{NoPlacement: true, Partition: 200}},
	{"+placement, 200", planner.Options{Partition: 200}},
	{"+partition, 20", planner.Options{NoPlacement: true, Partition: 20}},
	{"+placement, 20", planner.Options{Partition: 20}},
	{"+placement, 5", planner.Options{Partition: 5, Lookahead: 1}},
}

// figure64 prints the device's peak and the step time as the thesis' techniques
// are added, for the 1/64 replica. The thesis went from 9.5 to 6.8 to 3.3 GB.
func figure64(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "Thesis: vanilla 9.5 GB → +partition 6.8 GB (÷1.40, 2.5× the time) → "+
		"+placement 3.3 GB (÷2.88).")
	for _, sparse := range []bool{false, true} {
		for _, pairs := range []int{4, 16} {
			if err := stagesOf(ctx, w, pairs, sparse); err != nil {
				return err
			}
		}
	}
	return nil
}

// replicaKappa is the thesis' κ of 730 (Titan X, 12 GB/s) scaled like the inner
// dimensions of the replica, by 1/8.
const replicaKappa = 730.0 / 8

func stagesOf(ctx context.Context, w io.Writer, pairs int, sparse bool) error {
	m, err := build("s64", pairs, func(c *models.MoEConfig) { c.Sparse = sparse })
	if err != nil {
		return err
	}
	free, err := timeStages(ctx, m, 0)
	if err != nil {
		return err
	}
	speed, err := copySpeed(ctx)
	if err != nil {
		return err
	}
	// F·e/(2·b) for e = 4 bytes an element: F is the speed of a vanilla step.
	perKappa := 2 * flops(m) / free[0].time.Seconds()
	slow, err := timeStages(ctx, m, int64(perKappa/replicaKappa))
	if err != nil {
		return err
	}
	form := map[bool]string{false: "dense", true: "sparse"}[sparse]
	fmt.Fprintf(w, "\nMoE s64, %s, 32 experts, %d pairs, %d parameters; κ = %.1f, and %.0f with "+
		"copies slowed down to %.2f GB/s\n\n",
		form, pairs, m.Graph.Parameters(), perKappa/speed, replicaKappa, perKappa/replicaKappa/1e9)
	fmt.Fprintf(w, "| stage, operations a partition | device peak MiB | vanilla / this | "+
		"smallest budget MiB | host peak MiB | in MiB/step | out MiB/step | ms/step | time / "+
		"vanilla | time / vanilla, κ = %.0f |\n", replicaKappa)
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|")
	for i, r := range free {
		least, err := planner.MinDevice(ctx, m.Graph, gomem.Training(m.Graph, m.Objectives[0].Loss),
			stages[i].options)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %s | %.2f | %s | %s | %s | %s | %s | %.2f | %.2f |\n",
			stages[i].name, mib(r.device), float64(free[0].device)/float64(r.device),
			mib(least), mib(r.host), mib(r.traffic.In()), mib(r.traffic.Out()), ms(r.time),
			r.time.Seconds()/free[0].time.Seconds(), slow[i].time.Seconds()/slow[0].time.Seconds())
	}
	return nil
}

// outcome is what a stage needs and takes.
type outcome struct {
	device, host int64
	traffic      plan.Traffic
	time         time.Duration
}

// timeStages runs all stages in turn, with copies slowed down to a speed in
// bytes a second, or not if it is zero. Actual peaks must be the predicted ones.
func timeStages(ctx context.Context, m *models.Model, speed int64) ([]outcome, error) {
	var sessions []*gomem.Session
	var steps []func() error
	in := feeds(m)
	for _, st := range stages {
		s, err := gomem.Compile(ctx, m.Graph,
			gomem.Options{CopyBytesPerSecond: speed}.With(st.options),
			gomem.Training(m.Graph, m.Objectives[0].Loss))
		if err != nil {
			return nil, err
		}
		defer s.Close()
		sessions = append(sessions, s)
		steps = append(steps, func() error { _, err := s.Step(ctx, "train", in); return err })
	}
	times, err := interleaved(ctx, 9, steps...)
	if err != nil {
		return nil, err
	}
	var out []outcome
	for i, s := range sessions {
		u := s.Usage()
		for _, x := range u {
			if x.Predicted != x.Actual {
				return nil, fmt.Errorf("%s: %s used %d bytes, predicted %d", stages[i].name,
					x.Space, x.Actual, x.Predicted)
			}
		}
		out = append(out, outcome{u[0].Actual, u[1].Actual, s.Plan("train").Traffic(), times[i]})
	}
	return out, nil
}

// copySpeed is the speed of a copy in memory, in bytes a second.
func copySpeed(ctx context.Context) (float64, error) {
	const size = 64 << 20
	a, b := make([]byte, size), make([]byte, size)
	for i := range b { // untouched memory is one page of zeros, and that is in the cache
		b[i] = byte(i)
	}
	times, err := interleaved(ctx, 5, func() error { copy(a, b); return nil })
	if err != nil {
		return 0, err
	}
	return size / times[0].Seconds(), nil
}

// flops is the work of a training step.
func flops(m *models.Model) float64 {
	total := 0.0
	for _, w := range m.Work(m.Objectives[0]) {
		total += float64(w.FLOPs)
	}
	return total
}
