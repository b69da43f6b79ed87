package collective

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// chanGroup is somebody else's group, whose Send waits for the Recv of it.
type chanGroup struct {
	rank  int
	pipes [][]chan []byte // from, to
}

var _ distrib.Group = (*chanGroup)(nil)

func chanGroups(n int) (gs []*chanGroup) {
	pipes := make([][]chan []byte, n)
	for i := range pipes {
		for range n {
			pipes[i] = append(pipes[i], make(chan []byte))
		}
		gs = append(gs, &chanGroup{i, pipes})
	}
	return gs
}

func (g *chanGroup) Rank() int { return g.rank }
func (g *chanGroup) Size() int { return len(g.pipes) }

func (g *chanGroup) Send(ctx context.Context, to int, _ uint64, b []byte) error {
	select {
	case g.pipes[g.rank][to] <- slices.Clone(b):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *chanGroup) Recv(ctx context.Context, from int, _ uint64, b []byte) error {
	select {
	case got := <-g.pipes[from][g.rank]:
		if len(got) != len(b) {
			return fmt.Errorf("%d bytes where %d are expected", len(got), len(b))
		}
		copy(b, got)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestForeignGroups: all operations run on any implementation of distrib.Group, with the
// same bits.
func TestForeignGroups(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		gs := chanGroups(n)
		const length = 70_001
		var parts [][]float32
		for r := range n {
			parts = append(parts, numbers[float32](length, r, 3))
		}
		ring, tree := ringOrder(parts, Mean), treeOrder(parts, Sum)
		errs := make([]error, n)
		var all sync.WaitGroup
		for r, g := range gs {
			all.Go(func() { errs[r] = useAll(g, parts[r], ring, tree) })
		}
		all.Wait()
		for r, err := range errs {
			if err != nil {
				t.Errorf("rank %d of %d: %v", r, n, err)
			}
		}
	}
}

func useAll(g distrib.Group, mine, ring, tree []float32) error {
	x := slices.Clone(mine)
	if err := errors.Join(AllReduce(background, g, x, Mean), same(x, ring, "ring")); err != nil {
		return err
	}
	x = slices.Clone(mine)
	if err := errors.Join(PushPull(background, g, x, g.Size(), Mean),
		same(x, ring, "servers")); err != nil {
		return err
	}
	x = slices.Clone(mine[:100])
	if err := errors.Join(AllReduce(background, g, x, Sum), same(x, tree[:100], "tree"),
		Barrier(background, g)); err != nil {
		return err
	}
	if err := Broadcast(background, g, x, g.Size()-1); err != nil {
		return err
	}
	x, to := slices.Clone(mine), make([]int, g.Size())
	for i := range to {
		to[i] = (i + 1) % len(to)
	}
	if err := Permute(background, g, x, to); err != nil {
		return err
	}
	before := (g.Rank() + g.Size() - 1) % g.Size()
	if err := same(x, numbers[float32](len(x), before, 3), "permute"); err != nil {
		return err
	}
	rows := rowsFor(60*g.Size(), g.Size(), 1)
	x = numbers[float32](60*g.Size(), 0, 3)
	if err := AllGatherSome(background, g, x, rows); err != nil {
		return err
	}
	parts := slices.Repeat([][]float32{numbers[float32](len(x), 0, 3)}, g.Size())
	if err := same(x, rows.gathered(parts, g.Rank()), "gather of some"); err != nil {
		return err
	}
	counts := countsFor(60*g.Size(), g.Size(), 1)
	x = numbers[float32](60*g.Size(), 0, 3)
	if err := AllToAllSome(background, g, x, counts.of(g.Rank())); err != nil {
		return err
	}
	if err := same(x, counts.swapped(parts, g.Rank()), "swap of some"); err != nil {
		return err
	}
	send, recv := make([]float32, 3*g.Size()), make([]float32, 3*g.Size())
	for i := range send {
		send[i] = float32(g.Rank())
	}
	if err := AllToAll(background, g, send, recv); err != nil {
		return err
	}
	for i, v := range recv {
		if v != float32(i/3) {
			return fmt.Errorf("all-to-all: %v", recv)
		}
	}
	return nil
}

// TestForeignContext: the end of a context ends an operation on any group.
func TestForeignContext(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	err := AllReduce(ctx, chanGroups(2)[0], make([]float32, 1<<20), Sum)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
