package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
)

// The regression of Orpheus' tables, at its number of machines and with its ratio of vectors that
// are selected to those of a batch, 25 of 100; smaller in all else.
const (
	orpheusNodes  = 34
	orpheusRows   = 200
	orpheusCols   = 300
	orpheusBatch  = 4
	orpheusSelect = 1
	orpheusClocks = 10 // an epoch
	orpheusTarget = 4.0
	orpheusBps    = 100e6
	orpheusRate   = 1
)

// orpheusTask is the regression, of as many nodes.
func orpheusTask(nodes, rotate int, quick bool) task {
	train, _ := workload.Linear(1, nodes*orpheusBatch*orpheusClocks, 0, orpheusCols, orpheusRows,
		40, .1)
	m := &workload.MLR{Train: train, Epochs: 4, Factors: true, Clocks: orpheusClocks,
		Rotate: rotate}
	if quick {
		m.Epochs = 1
	}
	return task{epochs: m.Epochs, target: orpheusTarget, rates: []float64{orpheusRate},
		compute: 5 * time.Millisecond, at: func(rate float64) runner {
			c := *m
			c.Rate = rate
			return &c
		}}
}

// ablation prints Orpheus' table 3.
func ablation(t *testing.T, w io.Writer, quick bool) error {
	nodes := orpheusNodes
	if quick {
		nodes = 4
	}
	fmt.Fprintf(w, "%d workers, batches of %d, of which %d are selected, weights of %d x %d, "+
		"links of %.0f Mbit/s, 5 ms of computing a clock, staleness 4: seconds to an entropy of "+
		"%g. Orpheus has 34 machines, 25 of batches of 100, weights of 325,000 x 20,000.\n\n",
		nodes, orpheusBatch, orpheusSelect, orpheusRows, orpheusCols, orpheusBps/1e6, orpheusTarget)
	heading(w, "scheme", "epochs", "seconds", "MB", "of matrices' time", "Orpheus, hours",
		"of matrices' hours")
	base := 0.0
	for i, c := range []struct {
		name   string
		hours  float64
		rotate int
		plan   func() distrib.Plan
	}{
		{"matrices, parameter servers", 7.1, 0, func() distrib.Plan { return distrib.Plan{} }},
		{"vectors, broadcast (SVB)", 2.7, 0, func() distrib.Plan {
			return distrib.Plan{Topology: &distrib.All{}}
		}},
		{"and selected (SVS)", 2.3, 0, func() distrib.Plan {
			return distrib.Plan{Topology: &distrib.All{}, Up: orpheusSelected()}
		}},
		{"and to 4 at random (RM), lost to others", 2.1, 0, func() distrib.Plan {
			return multicasting(&distrib.RandomMulticast{Lossy: true}, 1<<20)
		}},
		{"or to others later", 2.1, 0, func() distrib.Plan {
			return multicasting(&distrib.RandomMulticast{}, 1<<20)
		}},
		{"and averages (PCS)", 2.0, 0, func() distrib.Plan {
			return multicasting(&distrib.RandomMulticast{}, 20)
		}},
		{"and rotation (PRR)", 1.9, 10, func() distrib.Plan {
			return multicasting(&distrib.RandomMulticast{}, 20)
		}},
	} {
		k := orpheusTask(nodes, c.rotate, quick)
		if i == 0 {
			inner := k.at
			k.at = func(rate float64) runner {
				m := inner(rate).(*workload.MLR)
				m.Factors = false
				return m
			}
		}
		r, err := orpheusRun(t, nodes, c.name, c.plan, k)
		if err != nil {
			return err
		}
		if i == 0 {
			base = r.took.Seconds()
		}
		row(w, c.name, epochsOf(r), fmt.Sprintf("%.2f", r.took.Seconds()),
			fmt.Sprintf("%.1f", float64(r.bytes)/1e6),
			fmt.Sprintf("%.2f", r.took.Seconds()/base), fmt.Sprint(c.hours),
			fmt.Sprintf("%.2f", c.hours/7.1))
	}
	return nil
}

// orpheusRun measures a plan.
func orpheusRun(t *testing.T, nodes int, name string, plan func() distrib.Plan, k task) (result,
	error) {
	s := scheme{name, func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		p := plan()
		p.Consistency = distrib.SSP{S: 4}
		if p.Topology == nil {
			p.Topology = even{distrib.NodeID(nodes)}
		}
		return grouped(n, v, p)
	}}
	return world{nodes: nodes, net: memnet.Options{Bps: orpheusBps,
		Latency: 100 * time.Microsecond}}.measure(t, s, k, orpheusRate)
}

// grouped is an engine beside a group of all nodes, by which averages are made.
func grouped(n distrib.Transport, v distrib.View, p distrib.Plan) (distrib.Synchronizer,
	func() error, error) {
	mux, err := collective.NewMux(n, collective.Options{})
	if err != nil {
		return nil, nil, err
	}
	var all []distrib.NodeID
	for _, node := range v.Nodes {
		all = append(all, node.ID)
	}
	group, err := mux.Group(all...)
	if err != nil {
		return nil, nil, err
	}
	e, err := distrib.New(distrib.Config{View: v, Transport: mux.Transport(), Plan: p,
		Group: group})
	if err != nil {
		return nil, nil, err
	}
	return e.Worker(0), func() error {
		<-e.Done()
		return errors.Join(e.Close(), group.Close(), mux.Close(), n.Close())
	}, nil
}

// orpheusSelected sends what matters most.
func orpheusSelected() distrib.Filter { return &distrib.SVSelect{C: orpheusSelect, Seed: 1} }

// multicasting sends selected vectors to some, and averages every so many clocks.
func multicasting(to distrib.Topology, every distrib.Clock) distrib.Plan {
	return distrib.Plan{Topology: to, Up: orpheusSelected(),
		Every: []distrib.Periodic{distrib.Average(every,
			func(ctx context.Context, g distrib.Group, x []float32) error {
				return collective.AllReduce(ctx, g, x, collective.Sum)
			})}}
}

// epochsOf is how many a run took.
func epochsOf(r result) string {
	if r.epochs == 0 {
		return fmt.Sprintf("never (%.4f)", r.final)
	}
	return fmt.Sprint(r.epochs)
}

// breaking prints Orpheus' figure 12.
func breaking(t *testing.T, w io.Writer, quick bool) error {
	nodes := orpheusNodes
	if quick {
		nodes = 6
	}
	fmt.Fprintf(w, "The same regression, selected vectors to some of %d, and lost to the others; "+
		"in each clock the connections between 10 %% of all pairs are broken, drawn anew, and "+
		"what would go over them is lost, too. The mean entropy of all workers after 40 "+
		"clocks.\n\n", nodes)
	heading(w, "receivers", "entropy", "with broken pairs", "more", "MB", "with broken pairs")
	for _, c := range []struct {
		name string
		to   func() distrib.Topology
	}{
		{"4 at random", func() distrib.Topology { return &distrib.RandomMulticast{Lossy: true} }},
		{"the same 4", func() distrib.Topology { return &distrib.FixedMulticast{} }},
		{"4 in turn", func() distrib.Topology { return &distrib.TurnMulticast{Lossy: true} }},
		{"all", func() distrib.Topology {
			return &distrib.RandomMulticast{Q: nodes - 1, Lossy: true}
		}},
	} {
		var loss, megabytes [2]float64
		for i, share := range []float64{0, .1} {
			k := orpheusTask(nodes, 0, quick)
			k.target = 0 // to the end
			r, err := orpheusRun(t, nodes, c.name, func() distrib.Plan {
				return multicasting(&breaks{Topology: c.to(), share: share}, 1<<20)
			}, k)
			if err != nil {
				return err
			}
			loss[i], megabytes[i] = r.final, float64(r.bytes)/1e6
		}
		row(w, c.name, fmt.Sprintf("%.4f", loss[0]), fmt.Sprintf("%.4f", loss[1]),
			fmt.Sprintf("%+.4f", loss[1]-loss[0]), fmt.Sprintf("%.1f", megabytes[0]),
			fmt.Sprintf("%.1f", megabytes[1]))
	}
	return nil
}

// breaks is a topology without a share of all pairs of nodes in each clock.
type breaks struct {
	distrib.Topology
	share float64
}

// Bind binds the topology.
func (b *breaks) Bind(v distrib.View, ps []*distrib.Param) error {
	if inner, ok := b.Topology.(distrib.Binder); ok {
		return inner.Bind(v, ps)
	}
	return nil
}

// Drawn tells the node that Dests are another choice in each clock.
func (b *breaks) Drawn() bool { return true }

// Loses is true: who is not reached goes without.
func (b *breaks) Loses() bool { return true }

// Dests are those of the topology whose pairs are whole.
func (b *breaks) Dests(dst []distrib.NodeID, self distrib.NodeID, r distrib.Ref,
	c distrib.Clock) []distrib.NodeID {
	for _, to := range b.Topology.Dests(nil, self, r, c) {
		low, high := min(self, to), max(self, to)
		rng := rand.New(rand.NewPCG(uint64(c)<<20|uint64(low)<<10|uint64(high), 5))
		if rng.Float64() >= b.share {
			dst = append(dst, to)
		}
	}
	return dst
}
