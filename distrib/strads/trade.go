package strads

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// The tags of messages: of rounds, and of what workers have moved on their own.
const (
	roundTag = 0x73747264 << 32
	staleTag = roundTag + 1
)

// trade sends every other worker of a group its numbers, and receives its own of each. Who has
// none for another sends nothing, and both know that.
func trade(ctx context.Context, g distrib.Group, out, in [][]float64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, g.Size())
	var sending sync.WaitGroup
	for to, x := range out {
		if to != g.Rank() && len(x) > 0 {
			sending.Go(func() {
				if errs[to] = g.Send(ctx, to, roundTag, bytesOf(x)); errs[to] != nil {
					cancel()
				}
			})
		}
	}
	err := receiveAll(ctx, g, in)
	if err != nil {
		cancel()
	}
	sending.Wait()
	return errors.Join(append(errs, err)...)
}

func receiveAll(ctx context.Context, g distrib.Group, in [][]float64) error {
	for from, x := range in {
		if from == g.Rank() || len(x) == 0 {
			continue
		}
		b := make([]byte, 8*len(x))
		if err := g.Recv(ctx, from, roundTag, b); err != nil {
			return err
		}
		floatsOf(b, x)
	}
	return nil
}

func bytesOf(x []float64) []byte {
	b := make([]byte, 0, 8*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func floatsOf(b []byte, x []float64) {
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// sum replaces numbers by their sums over a group: a worker adds a part of them up, in the order of
// ranks, and tells all others, so that all have the same bits.
func sum(ctx context.Context, g distrib.Group, x []float64) error {
	n := g.Size()
	part := func(k int) []float64 { return x[len(x)*k/n : len(x)*(k+1)/n] }
	out, in := make([][]float64, n), make([][]float64, n)
	own := part(g.Rank())
	for k := range n {
		out[k], in[k] = part(k), make([]float64, len(own))
	}
	in[g.Rank()] = append([]float64(nil), own...)
	if err := trade(ctx, g, out, in); err != nil {
		return err
	}
	fold(own, in)
	for k := range n {
		out[k], in[k] = own, part(k)
	}
	return trade(ctx, g, out, in)
}

// fold adds up in the order of ranks.
func fold(to []float64, parts [][]float64) {
	copy(to, parts[0])
	for _, p := range parts[1:] {
		for i, v := range p {
			to[i] += v
		}
	}
}
