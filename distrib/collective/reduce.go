package collective

import (
	"context"
	"errors"
	"math/bits"

	"github.com/gomem/gomem/distrib"
)

// Small is how many bytes an all-reduce must have for the ring: what has less goes by
// recursive doubling, in fewer steps.
const Small = 64 << 10

// AllReduce leaves in x, on all ranks, the sum or mean of every rank's x, with the same
// bits. All pass the same length and type. It sends 2(n-1)/n of x's bytes from each of n
// ranks, or below [Small] about log2 n times x's bytes.
//
// The order of additions depends on nothing but n and the length; see the package's essay.
func AllReduce[T Number](ctx context.Context, g distrib.Group, x []T, how Op) error {
	return run(ctx, g, callOf[T](allReduce, uint64(how), x), how, x, allReduceIn[T])
}

// ReduceScatter leaves in this rank's [Block] of x the sum or mean of every rank's; the rest
// of x holds sums of some ranks then. With [AllGather] after it, it is an all-reduce by
// ring.
func ReduceScatter[T Number](ctx context.Context, g distrib.Group, x []T, how Op) error {
	return run(ctx, g, callOf[T](reduceScatter, uint64(how), x), how, x, scatterIn[T])
}

var errMean = errors.New("collective: there is no mean of integers: sum them")

func callOf[T Number](op, arg uint64, x []T) call {
	return call{sig: signature(op, elemCode[T](), arg, len(x)*elemSize[T]())}
}

// run does an operation from its beginning to its end.
func run[T Number](ctx context.Context, g distrib.Group, c call, how Op, x []T,
	f func(link, []T, Op) error) error {
	if how > Mean || how == Mean && whole[T]() {
		return errMean
	}
	l, err := begin(ctx, g, c)
	if err != nil {
		return err
	}
	return l.end(f(l, x, how))
}

// allReduceIn chooses by size.
func allReduceIn[T Number](l link, x []T, how Op) error {
	if len(x)*elemSize[T]() < Small {
		return double(l, x, how)
	}
	if err := scatterIn(l, x, how); err != nil {
		return err
	}
	if err := l.flush(0); err != nil { // what was sent is overwritten now
		return err
	}
	return gatherIn(l, x, 1)
}

// scatterIn goes round the ring: in step k, rank r sends block r-1-k, which is complete but
// for the ranks that it has yet to pass, and adds its own part to block r-2-k.
func scatterIn[T Number](l link, x []T, how Op) error {
	if err := ring(l, x, l.rank()-1, 0, fold[T]); err != nil {
		return err
	}
	if how == Mean {
		lo, hi := Block(len(x), l.size(), l.rank())
		divide(x[lo:hi], l.size())
	}
	return nil
}

// gatherIn goes round once more: in step k, rank r passes on block r-k.
func gatherIn[T Number](l link, x []T, pass int) error {
	return ring(l, x, l.rank(), pass, get[T])
}

// ring sends a block to the next rank, and then n-1 times puts the block before it, which
// comes from the rank before, where it belongs, and passes it on, but for the last one. A
// message is passed on as soon as it is there, so that the links never wait for a step to
// end.
func ring[T Number](l link, x []T, first, pass int, put func(link, int, []T) error) error {
	n, r := l.size(), l.rank()
	block := func(i int) []T {
		lo, hi := Block(len(x), n, (i+2*n)%n)
		return x[lo:hi]
	}
	send := func(part []T) error {
		l.post((r+1)%n, bytesOf(part), pass)
		return nil
	}
	if n > 1 {
		pieces(l, block(first), send)
	}
	for k := 1; k < n; k++ {
		err := pieces(l, block(first-k), func(part []T) error {
			err := put(l, (r+n-1)%n, part)
			if err == nil && k < n-1 {
				send(part)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// double is recursive doubling. With 2^d ranks, in step k everybody exchanges all of x with
// the rank that differs in bit k. Of more ranks than 2^d, n = 2^d + e, the first 2e make
// pairs, whose odd one takes part for both.
func double[T Number](l link, x []T, how Op) error {
	n, r := l.size(), l.rank()
	p := 1 << (bits.Len(uint(n)) - 1)
	e := n - p
	at := func(i int) int { // the rank of place i
		if i < e {
			return 2*i + 1
		}
		return i + e
	}
	if r < 2*e && r%2 == 0 {
		l.post(r+1, bytesOf(x), 0)
		if err := l.flush(0); err != nil {
			return err
		}
		return get(l, r+1, x)
	}
	place := r - e
	if r < 2*e {
		place = r / 2
		if err := fold(l, r-1, x); err != nil {
			return err
		}
	}
	for bit := 1; bit < p; bit <<= 1 {
		with := at(place ^ bit)
		err := pieces(l, x, func(part []T) error { return trade(l, with, part) })
		if err != nil {
			return err
		}
	}
	if how == Mean {
		divide(x, n)
	}
	if r < 2*e {
		l.post(r-1, bytesOf(x), 0)
	}
	return nil
}

// trade adds a rank's part to ours, which it gets meanwhile: ours stays as it is until it
// has been sent.
func trade[T Number](l link, with int, part []T) error {
	msg, err := meet(l, with, with, bytesOf(part))
	if err == nil {
		addBytes(part, msg)
	}
	return err
}
