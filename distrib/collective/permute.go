package collective

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// Permute puts every rank's x where to says: that of rank i is in the x of rank to[i] then,
// or nowhere if that is -1. A rank that nobody's goes to has zeros. All pass the same length
// and type and the same to, in which no rank is twice. Every rank whose x goes to another
// sends it once, and nothing else is sent.
func Permute[T Number](ctx context.Context, g distrib.Group, x []T, to []int) error {
	if err := checkPermutation(to, g.Size()); err != nil {
		return fmt.Errorf("collective: %w", err)
	}
	h := fnv.New64a()
	fmt.Fprint(h, to)
	return run(ctx, g, callOf(permute, h.Sum64(), x), Sum, x,
		func(l link, x []T, _ Op) error { return permuteIn(l, x, to) })
}

// checkPermutation reports what is no permutation of so many ranks, some of which may go nowhere.
func checkPermutation(to []int, ranks int) error {
	if len(to) != ranks {
		return fmt.Errorf("%v is no permutation of %d ranks", to, ranks)
	}
	for i, r := range to {
		switch {
		case r < -1 || r >= ranks:
			return fmt.Errorf("%v is no permutation: there is no rank %d of %d", to, r, ranks)
		case r >= 0 && slices.Index(to, r) < i:
			return fmt.Errorf("%v is no permutation: rank %d is in it twice", to, r)
		}
	}
	if slices.Max(to) < 0 {
		return errors.New("a permutation by which nothing goes anywhere")
	}
	return nil
}

// permuteIn is in place, for which there is no room for a second x: a piece that comes is at
// this node, in the window, before the one that it replaces may be written over.
func permuteIn[T Number](l link, x []T, to []int) error {
	next, from := to[l.rank()], slices.Index(to, l.rank())
	if next == l.rank() {
		return nil
	}
	err := pieces(l, x, func(part []T) error {
		switch {
		case next < 0 && from < 0:
			return nil
		case next < 0:
			return get(l, from, part)
		case from < 0:
			l.post(next, bytesOf(part), 0)
			return nil
		}
		return replace(l, next, from, part)
	})
	if err != nil || from >= 0 {
		return err
	}
	if err := l.flush(0); err != nil {
		return err
	}
	clear(x)
	return nil
}
