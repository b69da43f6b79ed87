package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
)

// stage is a row of figure 6.4.
type stage struct {
	name    string
	options compile.Options
}

var stages = []stage{
	{"vanilla", compile.Options{Policy: compile.Vanilla}},
	{"+partition, 200", compile.Options{NoPlacement: true, Partition: 200}},
	{"+placement, 200", compile.Options{Partition: 200}},
	{"+partition, 20", compile.Options{NoPlacement: true, Partition: 20}},
	{"+placement, 20", compile.Options{Partition: 20}},
	{"+placement, 5", compile.Options{Partition: 5, Lookahead: 1}},
}

// figure64 prints the device's peak and the step time as the thesis' techniques
// are added, for the 1/64 replica. The thesis went from 9.5 to 6.8 to 3.3 GB.
func figure64(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "Thesis: vanilla 9.5 GB → +partition 6.8 GB (÷1.40, 2.5× the time) → +placement 3.3 GB (÷2.88).")
	for _, sparse := range []bool{false, true} {
		for _, pairs := range []int{4, 16} {
			if err := stagesOf(ctx, w, pairs, sparse); err != nil {
				return err
			}
		}
	}
	return nil
}

func stagesOf(ctx context.Context, w io.Writer, pairs int, sparse bool) error {
	m, err := build("s64", pairs, func(c *models.MoEConfig) { c.Sparse = sparse })
	if err != nil {
		return err
	}
	var sessions []*gomem.Session
	var steps []func() error
	in := feeds(m)
	for _, st := range stages {
		s, err := gomem.Compile(ctx, m.Graph, gomem.Options{Options: st.options}, gomem.Training(m.Graph, m.Loss))
		if err != nil {
			return err
		}
		defer s.Close()
		sessions = append(sessions, s)
		steps = append(steps, func() error { _, err := s.Step(ctx, "train", in); return err })
	}
	times, err := interleaved(ctx, 5, steps...)
	if err != nil {
		return err
	}
	form := "dense"
	if sparse {
		form = "sparse"
	}
	kappa, err := kappa(ctx, m, times[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nMoE s64, %s, 32 experts, %d pairs, %d parameters; κ = %.1f\n\n", form, pairs, m.Graph.Parameters(), kappa)
	fmt.Fprintln(w, "| stage, operations a partition | device peak MiB | vanilla / this | smallest budget MiB | host peak MiB | in MiB/step | out MiB/step | ms/step | time / vanilla |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	base := sessions[0].Usage()[0].Predicted
	for i, s := range sessions {
		u, t := s.Usage(), s.Plan("train").Traffic()
		for _, x := range u {
			if x.Predicted != x.Actual {
				return fmt.Errorf("%s: %s used %d bytes, predicted %d", stages[i].name, x.Space, x.Actual, x.Predicted)
			}
		}
		least, err := compile.MinDevice(ctx, m.Graph, gomem.Training(m.Graph, m.Loss), stages[i].options)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %s | %.2f | %s | %s | %s | %s | %s | %.2f |\n", stages[i].name, mib(u[0].Predicted), float64(base)/float64(u[0].Predicted),
			mib(least), mib(u[1].Predicted), mib(t.In()), mib(t.Out()), ms(times[i]), float64(times[i])/float64(times[0]))
	}
	return nil
}

// kappa is F·e/(2·b) for the achieved FLOP/s F of a vanilla step, e = 4 bytes an
// element, and the speed b of a copy: the inner dimension of a matrix product
// that takes as long as the copy of its operand.
func kappa(ctx context.Context, m *models.Model, step time.Duration) (float64, error) {
	const size = 64 << 20
	a, b := make([]byte, size), make([]byte, size)
	times, err := interleaved(ctx, 5, func() error { copy(a, b); return nil })
	if err != nil {
		return 0, err
	}
	var flops int64
	for _, w := range m.Work([]graph.Value{m.Loss}, m.Updates) {
		flops += w.FLOPs
	}
	return float64(flops) / step.Seconds() * 4 / (2 * size / times[0].Seconds()), nil
}
