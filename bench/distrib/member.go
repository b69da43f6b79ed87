package main

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/distrib/wrap"
)

// memberEnv makes this program a node of a table that runs in several processes.
const memberEnv = "GOMEM_BENCH_MEMBER"

// labFast is how many bits a second a stream between namespaces has at least that is not on
// the throttled link: three share one of 10 Mbit/s, and that one has 2 for all.
const labFast = 2e6

// order is what a node is told.
type order struct {
	Self    int
	Addrs   []string
	Scheme  string  // as of named
	Rate    float64 // step size of a factorisation; 0: it is the regression
	Compute time.Duration
	Quick   bool
}

// line is what a node tells: what its worker reports, and how many bytes it has sent. The
// last line is Ended.
type line struct {
	workload.Progress
	Sent  int64
	Ended bool
}

// labEpochs is how many epochs a factorisation has at most.
const labEpochs = 14

// task is what a node learns.
func (o order) task() task {
	if o.Rate > 0 {
		return taskOf(ratings(o.Quick, labEpochs), o.Compute, []float64{o.Rate})
	}
	k, _ := regression(o.Quick)
	return k
}

// named is a scheme by name: push-pull, ring, eager, pf:LOW and pf:LOW:UP with the bounds of
// Parameter Flow's filter, for links that are slower than fast too, or absmag:MODELS and
// random:MODELS with the budget of managed communication, a second and node.
func named(name string, fast float64) (scheme, error) {
	words := strings.Split(name, ":")
	var bounds [2]float64
	for i, word := range words[1:] {
		x, err := strconv.ParseFloat(word, 32)
		if err != nil || i == len(bounds) {
			return scheme{}, fmt.Errorf("scheme %q: no bound %q", name, word)
		}
		bounds[i] = x
	}
	switch words[0] {
	case "push-pull":
		return pushPull(), nil
	case "ring":
		return ring(), nil
	case "eager":
		return ssp("BSP, eager", 0), nil
	case "absmag":
		return managed(distrib.AbsMag, bounds[0]*4*mfRank*mfCols), nil
	case "random":
		return managed(distrib.Random, bounds[0]*4*mfRank*mfCols), nil
	case "pf":
		return flow(3, float32(bounds[0]), float32(bounds[1]), fast), nil
	}
	return scheme{}, fmt.Errorf("no scheme %q", name)
}

// member is a node's life: it ends when all have ended, which in says.
func member(spec string, in io.Reader, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(spec), &o); err != nil {
		return err
	}
	v := distrib.View{Self: distrib.NodeID(o.Self)}
	for i, addr := range o.Addrs {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i), Addr: addr})
	}
	s, err := named(o.Scheme, labFast)
	if err != nil {
		return err
	}
	port, err := wire.Listen(o.Addrs[o.Self], wire.Options{Insecure: true})
	if err != nil {
		return err
	}
	t, err := port.Open(v)
	if err != nil {
		return err
	}
	var meter wrap.Meter
	sync, end, err := s.join(meter.Wrap(t), v)
	if err != nil {
		return err
	}
	err = o.work(sync, &meter, out)
	_, waited := io.Copy(io.Discard, in)
	return errors.Join(err, waited, end(), port.Close())
}

func (o order) work(s distrib.Synchronizer, m *wrap.Meter, out io.Writer) error {
	tell := gob.NewEncoder(out) // JSON has no word for a loss beyond all bounds
	w := workload.Worker{Rank: o.Self, Of: len(o.Addrs),
		Compute: slow{}.compute(o.Compute, o.Self),
		Report: func(p workload.Progress) {
			_ = tell.Encode(line{Progress: p, Sent: sentBy(m)}) // who reads sees the end
		}}
	k := o.task()
	err := errors.Join(k.at(k.rates[0]).Run(context.Background(), s, w), s.Close())
	return errors.Join(err, tell.Encode(line{Sent: sentBy(m), Ended: err == nil}))
}

func sentBy(m *wrap.Meter) (bytes int64) {
	for c := range distrib.Class(distrib.Classes) {
		bytes += m.Sent(c).Bytes
	}
	return bytes
}

// hear notes what a node tells.
func (o *outcome) hear(n line) {
	if n.Ended {
		o.bytes += n.Sent
		return
	}
	o.totals.Add(n.Progress)
	o.sent[n.Epoch] += n.Sent
	if n.Epoch == 0 && n.At.After(o.start) {
		o.start = n.At
	}
}

// listen reads a node's lines until its last one.
func listen(r io.Reader, hear func(line)) error {
	lines := gob.NewDecoder(r)
	for {
		var n line
		if err := lines.Decode(&n); err != nil {
			return fmt.Errorf("a node ended early: %w", err)
		}
		hear(n)
		if n.Ended {
			return nil
		}
	}
}
