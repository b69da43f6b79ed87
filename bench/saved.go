package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// saved prints how much of the peak fewer bits would say: what a lossless compression of
// saved values could gain at most.
func saved(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "What is on the device at `vanilla`'s peak and needed after it, of the first "+
		"objective, operation by operation (nothing fused), in MiB: variables and all other "+
		"values; of these bytes (u8), whole numbers (i32), and numbers of which only the sign is "+
		"read again. The gain is what one bit for a sign, and one byte for a whole number, would "+
		"save of the peak.")
	fmt.Fprintln(w, "\n| model | size | peak | variables | values | u8 | i32 | signs | gain |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	for _, m := range thesisModels {
		if err := savedOf(ctx, w, m.build); err != nil {
			return err
		}
	}
	for _, kind := range models5 {
		build := func() (*models.Model, error) { return kind.build("s64") }
		if err := savedOf(ctx, w, build); err != nil {
			return err
		}
	}
	return nil
}

func savedOf(ctx context.Context, w io.Writer, build func() (*models.Model, error)) error {
	m, err := build()
	if err != nil {
		return err
	}
	o := planner.Options{Policy: planner.Vanilla}
	r, err := planner.Compile(ctx, m.Graph, train.Targets(&m.Model)[0], o)
	if err != nil {
		return err
	}
	peak := r.Plan.Peak(space.Device, 0)
	s := holdings(r.Plan, m.Graph, peak.Step)
	gain := float64(s.signs-s.signs/32+s.whole-s.whole/4) / float64(peak.Bytes)
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %.2f %% |\n", m.Name, m.Size,
		mib(peak.Bytes), mib(peak.Fixed), mib(s.values), mib(s.bytes), mib(s.whole), mib(s.signs),
		100*gain)
	return nil
}

// held are bytes of values, by what is in them.
type held struct{ values, bytes, whole, signs int64 }

// holdings are what operations have made before a step and read after it.
func holdings(p *plan.Plan, g *graph.Graph, at int) held {
	made, sign := map[graph.Value]bool{}, map[graph.Value]bool{}
	for i, s := range p.Steps {
		n := g.Node(s.Node)
		if _, launch := s.Do.(plan.Launch); !launch {
			continue
		}
		for k, v := range n.In {
			root, _ := v.Resolve()
			if i <= at || !made[root] {
				continue
			}
			signs := k == 0 && (n.OpName() == "relu-grad" || n.OpName() == "clipped-relu-grad")
			if before, read := sign[root]; read {
				signs = signs && before
			}
			sign[root] = signs
		}
		for k := range n.Out {
			made[n.Value(k)] = i <= at
		}
	}
	return tally(sign)
}

// tally adds up values, by whether only their sign counts.
func tally(sign map[graph.Value]bool) held {
	var h held
	for v, only := range sign {
		bytes := v.Type().Bytes()
		h.values += bytes
		switch {
		case v.Type().DType == graph.U8:
			h.bytes += bytes
		case v.Type().DType == graph.I32:
			h.whole += bytes
		case only:
			h.signs += bytes
		}
	}
	return h
}
