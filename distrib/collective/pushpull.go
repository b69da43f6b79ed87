package collective

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/distrib"
)

// PushPull is an all-reduce through parameter servers: the first owners ranks hold a block
// of x each, take everybody's part of it, and send the result to everybody. It is the plain
// baseline: with as many owners as ranks it moves what a ring moves, and gives the same
// bits as the ring.
func PushPull[T Number](ctx context.Context, g distrib.Group, x []T, owners int, how Op) error {
	if owners < 1 || owners > g.Size() {
		return fmt.Errorf("collective: %d owners among %d ranks", owners, g.Size())
	}
	c := callOf(pushPull, uint64(how)<<15|uint64(owners), x)
	return run(ctx, g, c, how, x, func(l link, x []T, how Op) error {
		return pushPullIn(l, x, owners, how)
	})
}

func pushPullIn[T Number](l link, x []T, owners int, how Op) error {
	n, r := l.size(), l.rank()
	if n == 1 {
		return nil
	}
	block := func(owner int) []T {
		lo, hi := Block(len(x), owners, owner)
		return x[lo:hi]
	}
	each := func(f func(owner int) error) error { // from the next rank on, so that they spread
		for d := 1; d < n; d++ {
			if owner := (r + d) % n; owner < owners {
				if err := f(owner); err != nil {
					return err
				}
			}
		}
		return nil
	}
	each(func(owner int) error {
		return pieces(l, block(owner), func(part []T) error {
			l.post(owner, bytesOf(part), 0)
			return nil
		})
	})
	if r < owners {
		if err := own(l, block(r), how); err != nil {
			return err
		}
	}
	if err := l.flush(0); err != nil { // what was pushed is overwritten now
		return err
	}
	// A piece of each in turn: who took the whole of one block first would let the others fill
	// their windows, and links lie idle. The last block is the longest.
	step := l.chunk() / elemSize[T]()
	for off := 0; off == 0 || off < len(block(owners-1)); off += step {
		err := each(func(owner int) error {
			b := block(owner)
			if off > 0 && off >= len(b) {
				return nil
			}
			return get(l, owner, b[off:min(off+step, len(b))])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// own is an owner's part: it adds up its block in the order of the ring, itself last, and
// sends it out.
func own[T Number](l link, block []T, how Op) error {
	n, r := l.size(), l.rank()
	sum, err := viewOf[T](l.buffer(min(l.chunk(), len(bytesOf(block)))))
	if err != nil {
		return err
	}
	return pieces(l, block, func(part []T) error {
		sum := sum[:len(part)]
		for d := 1; d < n; d++ {
			from := (r + d) % n
			var err error
			if d == 1 {
				err = get(l, from, sum)
			} else {
				err = fold(l, from, sum)
			}
			if err != nil {
				return err
			}
		}
		add(part, sum)
		if how == Mean {
			divide(part, n)
		}
		for d := 1; d < n; d++ {
			l.post((r+d)%n, bytesOf(part), 1)
		}
		return nil
	})
}

// tiny is how many bytes a value must have for it to be divided among owners: one of fewer is
// with one of them as a whole, since what a message costs is not its bytes then.
const tiny = 8 << 10

// pushPullWhole is pushPullIn by way of one rank, with the same bits: it adds up the block of
// every owner in that owner's order.
func pushPullWhole[T Number](l link, x []T, owners, holder int, how Op) error {
	n, r := l.size(), l.rank()
	if n == 1 {
		return nil
	}
	if r != holder {
		l.post(holder, bytesOf(x), 0)
		if err := l.flush(0); err != nil { // what was pushed is overwritten now
			return err
		}
		return get(l, holder, x)
	}
	all, err := viewOf[T](l.buffer(n * len(bytesOf(x))))
	if err != nil {
		return err
	}
	part := func(rank int) []T { return all[rank*len(x) : (rank+1)*len(x)] }
	copy(part(r), x)
	for d := 1; d < n; d++ {
		if err := get(l, (r+d)%n, part((r+d)%n)); err != nil {
			return err
		}
	}
	for owner := range owners {
		lo, hi := Block(len(x), owners, owner)
		for d := 1; d < n; d++ {
			add(part((owner + d + 1) % n)[lo:hi], part((owner + d) % n)[lo:hi])
		}
		copy(x[lo:hi], part(owner)[lo:hi])
	}
	if how == Mean {
		divide(x, n)
	}
	for d := 1; d < n; d++ {
		l.post((r+d)%n, bytesOf(x), 1)
	}
	return nil
}
