package collective

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/distrib"
)

// Counts say how many rows ranks send each other of a value that is as many equal blocks as
// there are ranks, of Most rows each. Every rank has its own: what it says goes to another one
// is what that one says comes from it.
type Counts struct {
	Most int
	// To are by rank how many rows, the first of its block, go there, and From how many come
	// from there. A rank's own stay.
	To, From []int32
}

// check reports counts that are not those of n ranks, rank being one of them, or of blocks that
// do not make up a value of so many bytes, in elements of a size.
func (c Counts) check(n, rank, bytes, each int) error {
	rows := n * c.Most
	switch {
	case len(c.To) != n || len(c.From) != n:
		return fmt.Errorf("rows go to %d ranks and come from %d, of %d", len(c.To), len(c.From), n)
	case c.Most < 0 || rows == 0 && bytes > 0 || rows > 0 && bytes%(rows*each) != 0:
		return fmt.Errorf("%d bytes are not %d blocks of %d rows", bytes, n, c.Most)
	case c.To[rank] != c.From[rank]:
		return fmt.Errorf("%d rows go to itself, and %d come", c.To[rank], c.From[rank])
	}
	for i := range n {
		for _, rows := range [...]int32{c.To[i], c.From[i]} {
			if rows < 0 || int(rows) > c.Most {
				return fmt.Errorf("%d rows of a block of %d are for rank %d, or from it", rows,
					c.Most, i)
			}
		}
	}
	return nil
}

// AllToAllSome is an all-to-all in place of the first rows of blocks: those of block i go to
// rank i, as many as counts say, and in their place are those that come from there, and zeros
// after them. Nothing else is sent.
func AllToAllSome[T Number](ctx context.Context, g distrib.Group, x []T, counts Counts) error {
	err := counts.check(g.Size(), g.Rank(), len(x)*elemSize[T](), elemSize[T]())
	if err != nil {
		return fmt.Errorf("collective: %w", err)
	}
	return run(ctx, g, callOf(swapSome, 0, x), Sum, x,
		func(l link, x []T, _ Op) error { return swapSomeIn(l, x, counts) })
}

func swapSomeIn[T Number](l link, x []T, counts Counts) error {
	width := len(x) / max(1, l.size()*counts.Most)
	block := func(with int) (own, goes, comes []T) {
		lo, hi := Block(len(x), l.size(), with)
		own = x[lo:hi]
		return own, own[:width*int(counts.To[with])], own[:width*int(counts.From[with])]
	}
	own, _, stays := block(l.rank())
	clear(own[len(stays):])
	return eachOther(l, func(with int) error {
		own, goes, comes := block(with)
		err := tradeSome(l, with, leading(goes), leading(comes),
			func(dst, src []T) { copy(dst, src) })
		if err == nil {
			clear(own[len(comes):])
		}
		return err
	})
}

// leading is all of x, to be traded.
func leading[T Number](x []T) portion[T] {
	return portion[T]{len(x), func(buffer []T, f func(here, buffer []T)) {
		f(x[:len(buffer)], buffer)
		x = x[len(buffer):]
	}}
}
