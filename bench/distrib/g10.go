package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
)

// The regression of G10: weights of 200 x 300 and batches of 100, as factors.
const (
	factorRows  = 200
	factorCols  = 300
	factorBatch = 100
	factorNodes = 4
)

func factorTask(quick bool) task {
	n := 4000
	if quick {
		n = factorNodes * factorBatch
	}
	train, _ := workload.Linear(1, n, 0, factorCols, factorRows, 40, .1)
	m := &workload.MLR{Train: train, Epochs: 12, Factors: true,
		Clocks: train.Len() / factorNodes / factorBatch}
	if quick {
		m.Epochs = 2
	}
	return task{epochs: m.Epochs, target: 1, rates: []float64{1}, at: func(rate float64) runner {
		c := *m
		c.Rate = rate
		return &c
	}}
}

// factors prints what is lost when few pairs of factors are sent, and what that costs.
func factors(t *testing.T, w io.Writer, quick bool) error {
	k := factorTask(quick)
	u, err := batch(k)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "The change of a batch of %d in weights of %d x %d: relative error of what C "+
		"pairs say of it, mean of 5 draws.\n\n", factorBatch, factorRows, factorCols)
	heading(w, "C", "projected (SVSelect)", "PowerSGD, first step", "the chosen, plain",
		"the chosen, times B/C", "drawn evenly, times B/C")
	for _, c := range []int{10, 25, 50, 75, 100} {
		cells := []string{fmt.Sprint(c)}
		for _, pick := range pickers {
			sum := 0.0
			for draw := range 5 {
				sum += lost(u, pick(u, c, uint64(draw)))
			}
			cells = append(cells, fmt.Sprintf("%.3f", sum/5))
		}
		row(w, cells...)
		if quick {
			break
		}
	}
	return carried(t, w, k, quick)
}

// carried compares epochs to a target.
func carried(t *testing.T, w io.Writer, k task, quick bool) error {
	fmt.Fprintf(w, "\n%d workers, batches of %d, to an entropy of %g at step size %g; what is not "+
		"sent is kept and goes later.\n\n", factorNodes, factorBatch, k.target, k.rates[0])
	heading(w, "sent", "epochs", "MB", "fewer bytes than matrices")
	schemes := []scheme{pushPull(), upward("all factors", func() distrib.Filter { return nil })}
	for _, c := range []int{50, 25, 10} {
		schemes = append(schemes, upward(fmt.Sprintf("SVSelect, C = %d", c),
			func() distrib.Filter { return &distrib.SVSelect{C: c, Seed: 1} }))
	}
	for _, r := range []int{10, 4} {
		schemes = append(schemes, upward(fmt.Sprintf("PowerSGD, rank %d", r),
			func() distrib.Filter { return &distrib.PowerSGD{Rank: r} }))
	}
	if quick {
		schemes = schemes[:3]
	}
	var base int64
	for i, s := range schemes {
		r, err := world{nodes: factorNodes}.measure(t, s, k, k.rates[0])
		if err != nil {
			return err
		}
		if i == 0 {
			base = r.bytes
		}
		if r.epochs == 0 {
			row(w, s.name, fmt.Sprintf("never (%.4f)", r.final), "", "")
			continue
		}
		row(w, s.name, fmt.Sprint(r.epochs), fmt.Sprintf("%.1f", float64(r.bytes)/1e6),
			fmt.Sprintf("%.1fx", float64(base)/float64(r.bytes)))
	}
	return nil
}

// upward broadcasts factors, bulk-synchronous, through a filter.
func upward(name string, f func() distrib.Filter) scheme {
	return engine(name, func() distrib.Plan {
		return distrib.Plan{Topology: &distrib.All{}, Up: f()}
	})
}

// batch is the change that one worker pushes in its second clock.
func batch(k task) (distrib.Factored, error) {
	c := &captured{}
	err := k.at(k.rates[0]).Run(context.Background(), c, workload.Worker{Of: factorNodes})
	if c.u.R == 0 {
		return c.u, fmt.Errorf("no factors: %w", err)
	}
	return c.u, nil
}

// captured keeps the second update and refuses the third.
type captured struct {
	p *distrib.Param
	u distrib.Factored
	n int
}

// Attach takes the parameter.
func (c *captured) Attach(ps ...*distrib.Param) error {
	c.p = ps[0]
	return nil
}

// Push keeps.
func (c *captured) Push(_ context.Context, _ distrib.Ref, u distrib.Update) error {
	if c.n++; c.n > 2 {
		return io.EOF
	}
	u.AddTo(c.p.Data, c.p.Cols, 1)
	c.u = u.(distrib.Factored)
	return nil
}

// Pull has nothing to bring.
func (c *captured) Pull(context.Context, distrib.Ref) (distrib.Version, error) { return 0, nil }

// Tick does nothing.
func (c *captured) Tick(context.Context) (distrib.Clock, error) { return 0, nil }

// Close does nothing.
func (c *captured) Close() error { return nil }

// lost is the relative error of an update that stands for another.
func lost(u, sent distrib.Update) float64 {
	d := distrib.AsDense(u)
	all := d.Norm()
	sent.AddTo(d, factorCols, -1)
	return d.Norm() / all
}

// pickers send c pairs, or as many bytes.
var pickers = []func(u distrib.Factored, c int, draw uint64) distrib.Update{
	func(u distrib.Factored, c int, draw uint64) distrib.Update {
		send, _ := (&distrib.SVSelect{C: c, Seed: draw}).Split(&distrib.Entry{U: u}, 0,
			distrib.Link{})
		return send
	},
	func(u distrib.Factored, c int, draw uint64) distrib.Update {
		f := &distrib.PowerSGD{Rank: c, Seed: draw}
		if err := f.Bind(distrib.View{}, []*distrib.Param{{Name: "w", Rows: factorRows,
			Cols: factorCols}}); err != nil {
			return u
		}
		send, _ := f.Split(&distrib.Entry{Ref: distrib.Ref{N: factorRows}, U: u}, 0,
			distrib.Link{})
		return send
	},
	func(u distrib.Factored, c int, draw uint64) distrib.Update {
		return some(u, chosen(u, c, draw), 1)
	},
	func(u distrib.Factored, c int, draw uint64) distrib.Update {
		return some(u, chosen(u, c, draw), float32(u.R)/float32(c))
	},
	func(u distrib.Factored, c int, draw uint64) distrib.Update {
		return some(u, rand.New(rand.NewPCG(draw, 1)).Perm(u.R)[:c], float32(u.R)/float32(c))
	},
}

// some is the sum of some pairs, scaled.
func some(u distrib.Factored, which []int, scale float32) distrib.Update {
	out := distrib.Factored{R: len(which), J: u.J, K: u.K}
	for _, i := range which {
		for _, v := range u.A[i*u.J : (i+1)*u.J] {
			out.A = append(out.A, scale*v)
		}
		out.B = append(out.B, u.B[i*u.K:(i+1)*u.K]...)
	}
	return out
}

// chosen is Orpheus' selection, as its listing has it: pairs drawn by the product of the
// squared lengths of what directions chosen before leave of their factors.
func chosen(u distrib.Factored, c int, draw uint64) []int {
	rng := rand.New(rand.NewPCG(draw, 2))
	a, b := doubles(u.A, u.J), doubles(u.B, u.K)
	var out []int
	for len(out) < c {
		sum, weight := 0.0, make([]float64, u.R)
		for i := range weight {
			weight[i] = dot(a[i], a[i]) * dot(b[i], b[i])
			sum += weight[i]
		}
		at, x := 0, rng.Float64()*sum
		for at < u.R-1 && x >= weight[at] {
			x -= weight[at]
			at++
		}
		out = append(out, at)
		project(a, at)
		project(b, at)
	}
	return out
}

func doubles(x []float32, n int) [][]float64 {
	var out [][]float64
	for i := 0; i < len(x); i += n {
		r := make([]float64, n)
		for j := range r {
			r[j] = float64(x[i+j])
		}
		out = append(out, r)
	}
	return out
}

// project takes a direction out of all rows.
func project(x [][]float64, at int) {
	d := append([]float64(nil), x[at]...)
	scale := 1 / math.Sqrt(max(dot(d, d), 1e-300))
	for i := range d {
		d[i] *= scale
	}
	for _, r := range x {
		s := dot(r, d)
		for i := range r {
			r[i] -= s * d[i]
		}
	}
}

func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}
