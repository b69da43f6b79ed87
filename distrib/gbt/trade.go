package gbt

import (
	"context"
	"errors"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// tag is that of all messages: workers do the same exchanges in the same order.
const tag = 0x67627473 << 32

// trade sends every other worker of a group its bytes, and receives its own of each. Who has none
// for another sends nothing, and both know that.
func trade(ctx context.Context, g distrib.Group, out, in [][]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, g.Size())
	var sending sync.WaitGroup
	for to, b := range out {
		if to != g.Rank() && len(b) > 0 {
			sending.Go(func() {
				if errs[to] = g.Send(ctx, to, tag, b); errs[to] != nil {
					cancel()
				}
			})
		}
	}
	err := receive(ctx, g, in)
	if err != nil {
		cancel()
	}
	sending.Wait()
	return errors.Join(append(errs, err)...)
}

func receive(ctx context.Context, g distrib.Group, in [][]byte) error {
	for from, b := range in {
		if from != g.Rank() && len(b) > 0 {
			if err := g.Recv(ctx, from, tag, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell tells all others something, and is what all say, who say as much.
func tell(ctx context.Context, g distrib.Group, own []byte) ([][]byte, error) {
	out, in := make([][]byte, g.Size()), make([][]byte, g.Size())
	for k := range out {
		out[k], in[k] = own, make([]byte, len(own))
	}
	in[g.Rank()] = own
	return in, trade(ctx, g, out, in)
}
