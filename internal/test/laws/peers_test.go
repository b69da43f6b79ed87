//go:build linux && amd64 && !nocuda

package laws_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/planner"
)

// counted counts what goes over a network, and what goes from device to device.
type counted struct {
	gomem.Network
	sent, peers *atomic.Int64
}

func (n counted) Send(ctx context.Context, x gomem.Exchange) error {
	n.sent.Add(1)
	return n.Network.Send(ctx, x)
}

func (n counted) Exchange(ctx context.Context, x gomem.Exchange, from, to executor.Place) error {
	n.peers.Add(1)
	return n.Network.(executor.Peer).Exchange(ctx, x, from, to)
}

// paired is what two devices learn in some steps of the perceptron, and how many values they send
// and have from each other.
func paired(t *testing.T, spec *mesh.Spec, devices [2]string, o ...gomem.Options) (losses []float32,
	all []gomem.Tensor, sent, peers int64) {
	t.Helper()
	var n [2]atomic.Int64
	o = slices.Clone(o)
	o[0].Device, o[1].Device = devices[0], devices[1]
	m := perceptron()
	err := abreast(spec, func(rank int, o gomem.Options) error {
		o.Network = counted{o.Network, &n[0], &n[1]}
		l, v, err := learnt(m, o, 4)
		if rank == 0 {
			losses, all = l, v
		}
		return err
	}, o...)
	if err != nil {
		t.Fatalf("%s, %v: %v", spec, devices, err)
	}
	return losses, all, n[0].Load(), n[1].Load()
}

// spreads are ways in which two processes divide the perceptron: its batch, its matrices by columns
// and rows, and its layers.
func spreads(t *testing.T) (all []*mesh.Spec) {
	t.Helper()
	for _, layout := range []string{"x:0=d,y:0=d", "*a/weight:1=d,*b/weight:0=d,*c/weight:1=d",
		"x:0=d,*b/weight:1=d,*out/weight:0=d"} {
		s, err := mesh.Parse("d:2x1", layout)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// TestPeers: two devices that exchange from one to the other learn what they do over the network,
// to the bit, under every policy and within every budget, and send less.
func TestPeers(t *testing.T) {
	devices, small := [2]string{gomem.CPU, gomem.CPU}, gomem.Options{Policy: planner.Auto,
		DeviceBytes: 12000, Effort: 60}
	alive := goleak.IgnoreCurrent()
	for _, spec := range spreads(t) {
		want, weights, most, none := paired(t, spec, devices, gomem.Options{}, gomem.Options{})
		if none != 0 {
			t.Fatalf("%s: %d go from device to device", spec, none)
		}
		spec.Peers = true
		for _, o := range [][]gomem.Options{{{}, {}}, {{Partition: 2}, small}, {small, small}} {
			got, all, sent, peers := paired(t, spec, devices, o...)
			if !slices.Equal(got, want) {
				t.Errorf("%s: losses %v, over the network %v", spec, got, want)
			}
			for i := range all {
				if !slices.Equal(all[i].F32(), weights[i].F32()) {
					t.Errorf("%s: variable %d has other bits", spec, i)
				}
			}
			if peers == 0 || sent >= most {
				t.Errorf("%s: %d go from device to device, %d over the network, all are %d", spec,
					peers, sent, most)
			}
		}
	}
	goleak.VerifyNone(t, alive)
}
