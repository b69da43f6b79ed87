//go:build linux && amd64 && !nocuda

package laws_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/internal/workers"
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

func (n counted) Exchange(ctx context.Context, x gomem.Exchange, from, to gomem.Place) error {
	n.peers.Add(1)
	return n.Network.(gomem.Peer).Exchange(ctx, x, from, to)
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
		for _, o := range [][]gomem.Options{{{}, {}}, {{Partition: 2}, small}} {
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

// TestPeersOnGPUs: two GPUs whose copies read each other's memory learn what they learn over the
// network, to the bit, in any order of what streams do; in the long form all accesses are watched.
func TestPeersOnGPUs(t *testing.T) {
	twoEmulated(t)
	gpus, small := [2]string{"cuda:0", "cuda:1"}, gomem.Options{Policy: planner.Auto,
		DeviceBytes: cuda.Workspace + 12000, Effort: 60}
	for i, spec := range spreads(t) {
		want, weights, most, _ := paired(t, spec, gpus, gomem.Options{}, gomem.Options{})
		spec.Peers = true
		t.Setenv("EMU_JITTER_US", []string{"300", "100", "30"}[i])
		if watched := longtest.Count(0, 1) == 1; watched { // whose kernels are compiled anew
			t.Setenv("EMU_RACES", "1")
		}
		got, all, sent, peers := paired(t, spec, gpus, gomem.Options{Partition: 2}, small)
		if !slices.Equal(got, want) || peers == 0 || sent >= most {
			t.Errorf("%s: losses %v, over the network %v; %d from device to device, %d of %d not",
				spec, got, want, peers, sent, most)
		}
		for i := range all {
			if !slices.Equal(all[i].F32(), weights[i].F32()) {
				t.Errorf("%s: variable %d has other bits", spec, i)
			}
		}
	}
}

// TestPeerFails: a GPU that fails in the middle of a copy from another ends both sessions, that on
// the other GPU with what the failed one says, and leaves no goroutine.
func TestPeerFails(t *testing.T) {
	twoEmulated(t)
	alive := goleak.IgnoreCurrent()
	spec := spreads(t)[0]
	spec.Peers = true
	m := perceptron()
	for failed, copies := range []string{"5,0", "0,6"} {
		t.Setenv("EMU_PEERFAIL", copies)
		var errs [2]error
		_ = abreast(spec, func(rank int, o gomem.Options) error {
			_, _, errs[rank] = learnt(m, o, 10)
			return errs[rank]
		}, gomem.Options{Device: "cuda:0"}, gomem.Options{Device: "cuda:1"})
		left, ok := errors.AsType[*workers.LeftError](errs[1-failed])
		if _, step := errors.AsType[*gomem.StepError](errs[failed]); !step || !ok ||
			left.Rank != failed || !strings.Contains(left.Why, "peer") ||
			!strings.Contains(left.Why, "CUDA_ERROR_LAUNCH_FAILED") {
			t.Fatalf("%v; %v", errs[0], errs[1])
		}
	}
	goleak.VerifyNone(t, alive)
}

// TestPeersReach: devices reach each other's memory if all are the processor, or GPUs that the
// driver says so of. A mesh that counts on it is refused over another network.
func TestPeersReach(t *testing.T) {
	twoEmulated(t)
	check := func(want bool, devices ...string) {
		t.Helper()
		if gomem.Reach(devices) != want {
			t.Errorf("%v: %v", devices, !want)
		}
	}
	check(true, "cuda:0", "cuda:1")
	check(true, "cpu", "cpu")
	check(false, "cuda:0", "cpu")
	check(false, "cuda:0", "cuda:7")
	check(false, "cuda:0")
	t.Setenv("EMU_PEERS", "0")
	check(false, "cuda:0", "cuda:1")
	spec := spreads(t)[0]
	spec.Peers = true
	_, _, err := learnt(perceptron(), gomem.Options{Mesh: spec, Network: &trial.Echo{}}, 1)
	if err != nil && strings.Contains(err.Error(), "device to device") {
		t.Errorf("a network between devices is refused: %v", err)
	}
	type alone struct{ gomem.Network }
	_, _, err = learnt(perceptron(), gomem.Options{Mesh: spec, Network: alone{&trial.Echo{}}}, 1)
	if err == nil || !strings.Contains(err.Error(), "leave Options.Mesh.Peers out") {
		t.Errorf("another network: %v", err)
	}
}
