package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric/daemon"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
)

// The job of the fabric's table: workers that learn a regression, whose rows the first of them
// serves. A model takes as long at a link's full rate as MLfabric's 100 MB at 10 Gbit/s.
const (
	fabricNodes, fabricClasses, fabricFeatures = 16, 20, 500

	fabricModel    = 4 * fabricClasses * fabricFeatures
	fabricTransfer = 80 * time.Millisecond
	fabricCompute  = 100 * time.Millisecond
)

// busy is how much of its rate a link has left: drawn anew for each node every 5 s (MLfabric, 7).
type busy struct {
	name   string
	chance [5]float64 // of 1, 2.5, 3.3, 5 and 10 Gbit/s of 10
	served float64    // what the node that serves has left to receive by, beside that
}

func busies() []busy {
	even := [5]float64{0, 0, 0, 0, 1}
	return []busy{{"even", even, 1}, {"N2", [5]float64{0, .1, .1, .1, .7}, 1},
		{"N3", [5]float64{.5, 0, 0, 0, .5}, 1}, {"server receives at a quarter", even, .25}}
}

// trace is what others leave of links, for so long.
func (b busy) trace(full float64, nodes int, lasts time.Duration) (all []memnet.Rate) {
	rng := rand.New(rand.NewPCG(5, 8))
	for at := time.Duration(0); at < lasts; at += 5 * time.Second {
		for n := range nodes {
			x, share := rng.Float64(), 1.0
			for i, part := range []float64{.1, .25, .33, .5, 1} {
				if x -= b.chance[i]; x < 0 {
					share = part
					break
				}
			}
			r := memnet.Rate{At: at, Node: distrib.NodeID(n), Up: share * full, Down: share * full}
			if n == 0 {
				r.Down *= b.served
			}
			all = append(all, r)
		}
	}
	return all
}

// fabricRun is a scheme whose rows the first node has, and what it counts there.
type fabricRun struct {
	scheme
	audit    *distrib.Audit
	received *int64 // bytes of updates over its link
	stats    *daemon.Stats
}

// asynchronous is workers that wait for nobody; with options, by a schedule.
func asynchronous(name string, delay distrib.Version, o *daemon.Options) fabricRun {
	s := fabricRun{audit: &distrib.Audit{}, received: new(int64), stats: &daemon.Stats{}}
	s.scheme = scheme{name, func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		t := n
		var d *daemon.Daemon
		if o != nil {
			own := *o
			for _, m := range v.Nodes {
				own.Nodes = append(own.Nodes, m.ID)
			}
			d = daemon.Wrap(n, own)
			t = d
		}
		e, err := distrib.New(distrib.Config{View: v, Transport: t, Message: 1 << 28,
			Plan: distrib.Plan{Topology: even{1}, Consistency: distrib.Async{Delay: delay}}})
		if err != nil {
			return nil, nil, err
		}
		return e.Worker(0), func() error {
			<-e.Done()
			if n.Self() == 0 {
				*s.audit = e.Audit()
				_, in := n.(*memnet.Node).Stats()
				*s.received = in[distrib.Updates].Bytes
			}
			if d != nil {
				s.stats.Dropped += d.Stats().Dropped
				s.stats.Summed += d.Stats().Summed
			}
			return errors.Join(e.Close(), t.Close())
		}, nil
	}}
	return s
}

// delays are the middle, the ninth of ten and the most of what was counted.
func delays(counts []int64) (mid, high, most int) {
	var all, seen int64
	for _, n := range counts {
		all += n
	}
	for by, n := range counts {
		if n == 0 {
			continue
		}
		if seen <= all/2 {
			mid = by
		}
		if seen <= all*9/10 {
			high = by
		}
		most, seen = by, seen+n
	}
	return mid, high, most
}

// scheduled prints what MLfabric's schedules come to as a job runs by them.
func scheduled(t *testing.T, w io.Writer, quick bool) error {
	train, _ := workload.Linear(1, 1600, 10, fabricFeatures, fabricClasses, 40, .1)
	m := &workload.MLR{Train: train, Epochs: 20, Clocks: 5, Decay: .98}
	settings, rates := busies(), []float64{1}
	if quick {
		m.Epochs, settings, rates = 1, settings[:1], rates[:1]
	}
	k := task{epochs: m.Epochs, target: fabricLoss, compute: fabricCompute, slow: stragglers[2],
		rates: rates, at: func(rate float64) runner {
			c := *m
			c.Rate = rate
			return &c
		}}
	fmt.Fprintf(w, "%d workers, the first of which has all rows; %d bytes a model, which take %v "+
		"at a link's full rate; %v a clock, a tenth of them twice as long; loss %v.\n\n",
		fabricNodes, fabricModel, fabricTransfer, fabricCompute, k.target)
	heading(w, "links", "scheme", "step", "epochs", "seconds", "received, MB",
		"of a thousand updates", "delay: middle", "9 of 10", "most", "too late", "added up")
	for _, b := range settings {
		net := perSecond(fabricModel, fabricTransfer)
		net.Trace = b.trace(net.Bps, fabricNodes, 10*time.Minute)
		link := net.Bps
		for _, make := range []func() fabricRun{
			func() fabricRun { return asynchronous("async", 1<<20, nil) },
			func() fabricRun { return asynchronous("async, 30 late at most", 30, nil) },
			func() fabricRun { return asynchronous("fabric", 30, &daemon.Options{Bps: link}) },
			func() fabricRun {
				return asynchronous("fabric, 4 aggregators", 30,
					&daemon.Options{Bps: link, Aggregators: 4})
			},
		} {
			if err := scheduledRow(t, w, b, net, k, make); err != nil {
				return err
			}
		}
	}
	return nil
}

// fabricLoss is what the job is to come to.
const fabricLoss = 0.6

// scheduledRow is the best step size's row of a scheme.
func scheduledRow(t *testing.T, w io.Writer, b busy, net memnet.Options, k task,
	make func() fabricRun) error {
	var top result
	var of fabricRun
	for i, rate := range k.rates {
		s := make()
		r, err := world{fabricNodes, net}.measure(t, s.scheme, k, rate)
		if err != nil {
			return fmt.Errorf("%s at %g: %w", s.name, rate, err)
		}
		if i == 0 || r.epochs > 0 && (top.epochs == 0 || r.took < top.took) {
			top, of = r, s
		}
	}
	var folded int64
	for _, n := range of.audit.Delays {
		folded += n
	}
	mid, high, most := delays(of.audit.Delays)
	late := of.audit.Stale + of.stats.Dropped
	cells := top.cells()
	row(w, b.name, of.name, cells[0], cells[1], cells[2],
		fmt.Sprintf("%.1f", float64(*of.received)/1e6),
		fmt.Sprintf("%.1f", float64(*of.received)/1e3/float64(max(1, folded))),
		fmt.Sprint(mid), fmt.Sprint(high), fmt.Sprint(most),
		fmt.Sprintf("%.1f %%", 100*float64(late)/float64(max(1, late+folded))),
		fmt.Sprint(of.stats.Summed))
	return nil
}
