package memnet_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// BenchmarkAllToAll is a message from each node to every other one, at once: what an exchange of
// n nodes costs to simulate.
func BenchmarkAllToAll(b *testing.B) {
	for _, bps := range []float64{0, 1e9} {
		for _, n := range []int{16, 32, 64, 128} {
			b.Run(fmt.Sprintf("bps=%.0e/n=%d", bps, n), func(b *testing.B) {
				for b.Loop() {
					bubble(b, func() { allToAll(n, bps) })
				}
			})
		}
	}
}

// bubble runs f in virtual time.
func bubble(b *testing.B, f func()) {
	done := make(chan struct{})
	go testing.RunTests(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "bubble", F: func(t *testing.T) {
			defer close(done)
			synctest.Test(t, func(*testing.T) { f() })
		}}})
	<-done
}

type nobody struct{}

func (nobody) Receive(distrib.NodeID, *distrib.Msg) {}
func (nobody) Down(distrib.NodeID, error)           {}

func allToAll(n int, bps float64) {
	ts := memnet.New(n, memnet.Options{Seed: 1, Latency: time.Millisecond,
		Jitter: time.Millisecond, Bps: bps})
	for _, t := range ts {
		t.Serve(nobody{})
	}
	for i, t := range ts {
		for j := range ts {
			if i != j {
				t.Send(distrib.NodeID(j), &distrib.Msg{
					Head: make([]byte, 64), Body: [][]byte{make([]byte, 1+i*j%997)}})
			}
		}
	}
	for _, t := range ts {
		t.Close()
	}
}
