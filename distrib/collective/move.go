package collective

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/gomem/gomem/distrib"
)

// AllGather fills x on all ranks: each brings its own [Block] of it. It sends (n-1)/n of
// x's bytes from each of n ranks.
func AllGather[T Number](ctx context.Context, g distrib.Group, x []T) error {
	return run(ctx, g, callOf[T](allGather, 0, x), Sum, x,
		func(l link, x []T, _ Op) error { return gatherIn(l, x, 0) })
}

// Broadcast copies root's x to all ranks, a chunk at a time: of at least as many chunks as
// ranks along a chain, so that every link carries x once, and of fewer down a binary tree,
// in fewer steps. All together they send x n-1 times.
func Broadcast[T Number](ctx context.Context, g distrib.Group, x []T, root int) error {
	if root < 0 || root >= g.Size() {
		return fmt.Errorf("collective: broadcast from rank %d of %d", root, g.Size())
	}
	return run(ctx, g, callOf(broadcast, uint64(root), x), Sum, x,
		func(l link, x []T, _ Op) error { return broadcastIn(l, x, root) })
}

func broadcastIn[T Number](l link, x []T, root int) error {
	fan := 2
	if len(x)*elemSize[T]() >= l.size()*l.chunk() {
		fan = 1
	}
	return spread(l, x, root, fan)
}

// spread has every rank pass x on to so many others: along a chain by rank, or down a tree.
func spread[T Number](l link, x []T, root, fan int) error {
	n := l.size()
	place := (l.rank() - root + n) % n
	return pieces(l, x, func(part []T) error {
		if place > 0 {
			if err := get(l, ((place-1)/fan+root)%n, part); err != nil {
				return err
			}
		}
		for below := fan*place + 1; below <= fan*place+fan && below < n; below++ {
			l.post((below+root)%n, bytesOf(part), 0)
		}
		return nil
	})
}

// swapIn is an all-to-all in place, for which there is no room for a second x: in each of n
// rounds the ranks make pairs, whose numbers add up to the round's, and each pair trades a
// block a piece at a time. The piece that comes is at this node, in the window, before the
// one that it replaces may be written over.
func swapIn[T Number](l link, x []T) error {
	n, r := l.size(), l.rank()
	for round := range n {
		with := (round - r + n) % n
		if with == r {
			continue
		}
		lo, hi := Block(len(x), n, with)
		err := pieces(l, x[lo:hi], func(part []T) error { return replace(l, with, with, part) })
		if err != nil {
			return err
		}
	}
	return nil
}

// replace sends part to a rank, and puts what comes from one in its place.
func replace[T Number](l link, to, from int, part []T) error {
	b := bytesOf(part)
	msg, err := meet(l, to, from, b)
	if err != nil {
		return err
	}
	for _, p := range msg {
		b = b[copy(b, p):]
	}
	return nil
}

// meet sends bytes to a rank, and returns as many that come from one, when ours have been
// sent.
func meet(l link, to, from int, b []byte) ([][]byte, error) {
	l.post(to, b, 0)
	msg, n, err := l.next(from, len(b), 0)
	if err != nil {
		return nil, err
	}
	if n != len(b) {
		return nil, errHead
	}
	return msg, l.flush(0)
}

// Barrier returns when all ranks have called it.
func Barrier(ctx context.Context, g distrib.Group) error {
	return run(ctx, g, call{sig: signature(barrier, 0, 0, 0)}, Sum, nil, barrierIn)
}

// barrierIn disseminates: after step k a rank knows of the 2^(k+1) before it.
func barrierIn(l link, _ []float32, _ Op) error {
	n, r := l.size(), l.rank()
	for d := 1; d < n; d <<= 1 {
		l.post((r+d)%n, nil, 0)
		if err := receive(l, (r-d+n)%n, nil); err != nil {
			return err
		}
	}
	return nil
}

// AllToAll sends the i-th of n equal parts of send to rank i, and puts what comes from rank
// i into the i-th of recv. The two must not overlap.
func AllToAll[T Number](ctx context.Context, g distrib.Group, send, recv []T) error {
	n := g.Size()
	if len(send) != len(recv) || len(send)%n != 0 {
		return fmt.Errorf("collective: all-to-all of %d and %d elements among %d ranks: both "+
			"must be the same multiple of %d", len(send), len(recv), n, n)
	}
	split := func(x []T) (parts [][]T) {
		for i := range n {
			lo, hi := Block(len(x), n, i)
			parts = append(parts, x[lo:hi])
		}
		return parts
	}
	return AllToAllV(ctx, g, split(send), split(recv))
}

// AllToAllV sends send[i] to rank i and fills recv[i] with what comes from there; lengths may
// differ and be zero, but that of recv[i] must be what rank i sends. The two must not
// overlap.
func AllToAllV[T Number](ctx context.Context, g distrib.Group, send, recv [][]T) error {
	n, r := g.Size(), g.Rank()
	switch {
	case len(send) != n || len(recv) != n:
		return fmt.Errorf("collective: all-to-all of %d and %d parts among %d ranks", len(send),
			len(recv), n)
	case len(send[r]) != len(recv[r]):
		return fmt.Errorf("collective: all-to-all sends itself %d elements and expects %d",
			len(send[r]), len(recv[r]))
	case overlap(send, recv):
		return fmt.Errorf("collective: what an all-to-all sends overlaps with what it receives")
	}
	c := call{sig: signature(allToAll, elemCode[T](), 0, 0)}
	return run(ctx, g, c, Sum, nil, func(l link, _ []T, _ Op) error {
		copy(recv[r], send[r])
		for d := 1; d < n; d++ {
			l.post((r+d)%n, bytesOf(send[(r+d)%n]), 0)
		}
		for d := 1; d < n; d++ {
			from := (r - d + n) % n
			if err := get(l, from, recv[from]); err != nil {
				return err
			}
		}
		return nil
	})
}

// overlap reports whether memory is in both.
func overlap[T Number](a, b [][]T) bool {
	for _, x := range a {
		for _, y := range b {
			if len(x) == 0 || len(y) == 0 {
				continue
			}
			p := uintptr(unsafe.Pointer(unsafe.SliceData(x)))
			q := uintptr(unsafe.Pointer(unsafe.SliceData(y)))
			each := uintptr(elemSize[T]())
			if p < q+uintptr(len(y))*each && q < p+uintptr(len(x))*each {
				return true
			}
		}
	}
	return false
}
