package distrib_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// bytesOfFactors runs five Orpheus workers on a weight of j x k for some clocks and says
// how many bytes of updates one sends in a clock, in how many messages.
func bytesOfFactors(t *testing.T, j, k, batch, pairs, q int) (bytes, messages float64) {
	const nodes, clocks = 5, 8
	ts := memnet.New(nodes, memnet.Options{})
	var view []distrib.Node
	for _, id := range nodeIDs(0, nodes) {
		view = append(view, distrib.Node{ID: id})
	}
	var wg sync.WaitGroup
	worked := make(chan struct{})
	for i := range nodes {
		plan := distrib.Plan{Topology: &distrib.RandomMulticast{Q: q},
			Consistency: distrib.SSP{S: 1000}, Up: &distrib.SVSelect{C: pairs}}
		e, err := distrib.New(distrib.Config{Transport: ts[i], Plan: plan,
			View: distrib.View{Self: distrib.NodeID(i), Nodes: view}})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			pushFactors(t, e.Worker(0), j, k, batch, clocks, worked)
			<-e.Done()
		})
	}
	synctest.Wait()
	for _, tr := range ts {
		sent, _ := tr.(*memnet.Node).Stats()
		bytes += float64(sent[distrib.Updates].Bytes) / nodes / clocks
		messages += float64(sent[distrib.Updates].Messages) / nodes / clocks
	}
	close(worked)
	wg.Wait()
	for _, tr := range ts {
		tr.Close()
	}
	return bytes, messages
}

// pushFactors is a worker that makes a batch of pairs in every clock, and ends when told.
func pushFactors(t *testing.T, s distrib.Synchronizer, j, k, batch, clocks int,
	worked chan struct{}) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(4, 4))
	if err := s.Attach(&distrib.Param{Name: "w", Rows: j, Cols: k,
		Data: make([]float32, j*k)}); err != nil {
		t.Error(err)
	}
	for range clocks {
		u := distrib.Factored{R: batch, J: j, K: k, A: normals(rng, batch*j),
			B: normals(rng, batch*k)}
		if err := s.Push(ctx, distrib.Ref{}, u); err != nil {
			t.Error(err)
		}
		if _, err := s.Tick(ctx); err != nil {
			t.Error(err)
		}
	}
	<-worked
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFactorsOnTheWire is G9: a worker sends Q messages of C pairs in a clock, and twice
// the rows and columns are twice the bytes, not four times.
func TestFactorsOnTheWire(t *testing.T) {
	const pairs, q, header = 5, 3, 120
	sent := map[int]float64{}
	for _, size := range []int{300, 600} {
		synctest.Test(t, func(t *testing.T) {
			bytes, messages := bytesOfFactors(t, size, size, 8, pairs, q)
			least := float64(q * 4 * pairs * 2 * size)
			if messages != q || bytes < least || bytes > least+q*header {
				t.Errorf("%d x %d: %v bytes in %v messages, want %v in %d and headers", size, size,
					bytes, messages, least, q)
			}
			sent[size] = bytes
		})
	}
	if ratio := sent[600] / sent[300]; ratio < 1.98 || ratio > 2 {
		t.Errorf("twice the rows and columns are %v times the bytes", ratio)
	}
}
