package wire_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/distrib/collective"
)

// TestExchanges: gradients of all sizes and by all ways are exchanged over sockets, with
// the same bits on all nodes, and go round all of them and back to where they were.
func TestExchanges(t *testing.T) {
	for name, o := range map[string]wire.Options{"plain": {}, "TLS": encrypted(t)} {
		t.Run(name, func(t *testing.T) {
			ts := listen(t, 3, o).open(t, 1)
			sums := make([][]float32, len(ts))
			errs := make([]error, len(ts))
			var all sync.WaitGroup
			for r, tr := range ts {
				all.Go(func() { sums[r], errs[r] = exchange(tr) })
			}
			all.Wait()
			for r := range ts {
				if errs[r] != nil {
					t.Fatalf("node %d: %v", r, errs[r])
				}
				for i, v := range sums[r] {
					if v != sums[0][i] {
						t.Fatalf("node %d has %v in place %d, node 0 %v", r, v, i, sums[0][i])
					}
				}
			}
		})
	}
}

// exchange does two steps of a node of three, whose values are its number plus one, and
// returns what they have become.
func exchange(tr distrib.Transport) (out []float32, err error) {
	ctx := context.Background()
	mux, err := collective.NewMux(tr, collective.Options{})
	if err != nil {
		return nil, err
	}
	g, err := mux.Group(0, 1, 2)
	if err != nil {
		return nil, err
	}
	e, err := collective.NewExchanger(g, collective.ExchangerOptions{})
	if err != nil {
		return nil, err
	}
	for range 2 {
		var data [][]float32
		for i, n := range []int{1, 1 << 10, 100_001, 1 << 18} {
			x := make([]float32, n)
			for j := range x {
				x[j] = 1 / float32(1+g.Rank()+j%7)
			}
			data = append(data, x)
			b := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*n)
			err := e.Send(collective.Exchange{Name: fmt.Sprint(i), Op: collective.Mean,
				Via: collective.Via(i % 3), Data: b})
			if err != nil {
				return nil, err
			}
		}
		for i := range data {
			if err := e.Await(ctx, fmt.Sprint(i)); err != nil {
				return nil, err
			}
			if err := round(ctx, g, data[i]); err != nil {
				return nil, err
			}
			out = append(out, data[i]...)
		}
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return out, mux.Close()
}

// round has x, which differs from node to node once its rank is added, visit every node and
// come home.
func round(ctx context.Context, g distrib.Group, x []float32) error {
	mine := x[0] + float32(g.Rank())
	y := slices.Repeat([]float32{mine}, len(x))
	for hop := range 3 {
		if err := collective.Permute(ctx, g, y, []int{1, 2, 0}); err != nil {
			return err
		}
		home := x[0] + float32((g.Rank()+2-hop)%3)
		if y[0] != home || y[len(y)-1] != home {
			return fmt.Errorf("after %d hops node %d has %v, want %v", hop+1, g.Rank(), y[0], home)
		}
	}
	return nil
}
