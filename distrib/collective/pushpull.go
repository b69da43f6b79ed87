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
	return each(func(owner int) error {
		return pieces(l, block(owner), func(part []T) error { return get(l, owner, part) })
	})
}

// own is an owner's part: it adds up its block in the order of the ring, itself last, and
// sends it out.
func own[T Number](l link, block []T, how Op) error {
	n, r := l.size(), l.rank()
	sum, err := viewOf[T](l.buffer(l.chunk()))
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
