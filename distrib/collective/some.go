package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// Rows says of every row of a value which ranks have to do with it. All ranks have the same, so
// that those who send and those who receive know what there is, and nobody says how much comes.
type Rows struct {
	// Ranks are, row after row, so many ranks as Each is: a row has to do with each of them, and
	// with nobody else. -1 is none; a rank that is there twice counts once.
	Ranks []int32
	Each  int
}

// count is how many rows there are.
func (r Rows) count() int { return len(r.Ranks) / r.Each }

// of are the ranks of a row.
func (r Rows) of(row int) []int32 { return r.Ranks[row*r.Each : (row+1)*r.Each] }

// check reports rows that are not as many for each of n ranks, or do not make up a value of so
// many bytes, in elements of a size; and ranks that there are none of.
func (r Rows) check(n, bytes, each int) error {
	if r.Each < 1 || len(r.Ranks)%r.Each != 0 {
		return fmt.Errorf("%d ranks are not %d for each row", len(r.Ranks), r.Each)
	}
	rows := r.count()
	if rows%n != 0 {
		return fmt.Errorf("%d rows are not equal parts of %d nodes", rows, n)
	}
	if rows == 0 && bytes > 0 || rows > 0 && bytes%(rows*each) != 0 {
		return fmt.Errorf("%d bytes are not %d rows", bytes, rows)
	}
	for i, rank := range r.Ranks {
		if rank < -1 || int(rank) >= n {
			return fmt.Errorf("row %d has to do with rank %d of %d", i/r.Each, rank, n)
		}
	}
	return nil
}

// AllGatherSome is an [AllGather] of those rows only that ranks have to do with: each brings
// its own [Block] of the rows, and has in the end those that are its own by rows, and zeros in
// place of all others. A row is sent once to every other rank that has to do with it, and
// nothing else is. A rank alone keeps x.
func AllGatherSome[T Number](ctx context.Context, g distrib.Group, x []T, rows Rows) error {
	return some(ctx, g, gatherSome, Sum, x, rows, gatherSomeIn[T])
}

// ReduceScatterSome is a [ReduceScatter] of those rows only that ranks have to do with: of
// every row in this rank's [Block] of them it leaves there the sum or mean of what they have,
// itself first, then the others, rank r those of ranks -r, 1-r and so on, modulo how many there
// are; what others have counts as zero. The rest of x does not matter then. A row is sent once by
// every other rank that has to do with it, and nothing else is. A rank alone keeps x.
func ReduceScatterSome[T Number](ctx context.Context, g distrib.Group, x []T, how Op,
	rows Rows) error {
	return some(ctx, g, scatterSome, how, x, rows, scatterSomeIn[T])
}

func some[T Number](ctx context.Context, g distrib.Group, op uint64, how Op, x []T, rows Rows,
	do func(link, []T, Op, Rows) error) error {
	if err := rows.check(g.Size(), len(x)*elemSize[T](), elemSize[T]()); err != nil {
		return fmt.Errorf("collective: %w", err)
	}
	return run(ctx, g, callOf(op, uint64(how), x), how, x,
		func(l link, x []T, how Op) error { return do(l, x, how, rows) })
}

func gatherSomeIn[T Number](l link, x []T, _ Op, rows Rows) error {
	if l.size() == 1 {
		return nil
	}
	own, put := int32(l.rank()), func(dst, src []T) { copy(dst, src) }
	err := eachOther(l, func(with int) error {
		return tradeSome(l, with, cut(l, x, rows, l.rank(), with).all(),
			cut(l, x, rows, with, l.rank()).all(), put)
	})
	if err != nil {
		return err
	}
	width := len(x) / max(1, rows.count())
	for row := range rows.count() {
		if !slices.Contains(rows.of(row), own) {
			clear(x[row*width : (row+1)*width])
		}
	}
	return nil
}

func scatterSomeIn[T Number](l link, x []T, how Op, rows Rows) error {
	if l.size() == 1 {
		return nil
	}
	cut(l, x, rows, l.rank(), l.rank()).begin(l.size())
	err := eachOther(l, func(with int) error {
		return tradeSome(l, with, cut(l, x, rows, with, l.rank()).all(),
			cut(l, x, rows, l.rank(), with).all(), add[T])
	})
	if err == nil && how == Mean {
		lo, hi := Block(len(x), l.size(), l.rank())
		divide(x[lo:hi], l.size())
	}
	return err
}

// eachOther calls f with every other rank, such that two do it with each other at a time, as in
// an all-to-all.
func eachOther(l link, f func(with int) error) error {
	n, r := l.size(), l.rank()
	for round := range n {
		if with := (round - r + n) % n; with != r {
			if err := f(with); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutting is the rows of a block that have to do with a rank, one after the other: what is
// sent at once, though it lies apart.
type cutting[T Number] struct {
	rows      Rows
	x         []T
	width     int
	rank      int32
	first     int // row of the block
	row, last int // that is next, of the block; and the one after it
	done      int // elements of that row
}

func cut[T Number](l link, x []T, rows Rows, block, rank int) *cutting[T] {
	lo, hi := Block(rows.count(), l.size(), block)
	return &cutting[T]{rows: rows, x: x, width: len(x) / max(1, rows.count()), rank: int32(rank),
		first: lo, row: lo, last: hi}
}

// elements is how many there are.
func (c *cutting[T]) elements() (n int) {
	for row := c.first; row < c.last; row++ {
		if slices.Contains(c.rows.of(row), c.rank) {
			n += c.width
		}
	}
	return n
}

// all is the elements, to be traded.
func (c *cutting[T]) all() portion[T] { return portion[T]{c.elements(), c.with} }

// with calls f with the next elements where they are, in order, and as many of a buffer.
func (c *cutting[T]) with(buffer []T, f func(here, buffer []T)) {
	for len(buffer) > 0 {
		if !slices.Contains(c.rows.of(c.row), c.rank) {
			c.row++
			continue
		}
		at, n := c.row*c.width+c.done, min(c.width-c.done, len(buffer))
		f(c.x[at:at+n], buffer[:n])
		buffer = buffer[n:]
		if c.done += n; c.done == c.width {
			c.row, c.done = c.row+1, 0
		}
	}
}

// begin makes sums of a block of this rank's rows: what is not its own is zero, and so is what
// others do not have, which makes zero of a negative one.
func (c *cutting[T]) begin(ranks int) {
	for row := c.first; row < c.last; row++ {
		x, of := c.x[row*c.width:(row+1)*c.width], c.rows.of(row)
		if !slices.Contains(of, c.rank) {
			clear(x)
			continue
		}
		if distinct(of) == ranks {
			continue
		}
		for i := range x {
			x[i] += 0
		}
	}
}

// distinct is how many ranks there are in a list.
func distinct(ranks []int32) (n int) {
	for i, r := range ranks {
		if r >= 0 && !slices.Contains(ranks[:i], r) {
			n++
		}
	}
	return n
}

// portion is elements that are sent, or come, one after the other.
type portion[T Number] struct {
	elements int
	with     func(buffer []T, f func(here, buffer []T)) // calls f with the next, and the buffer
}

// tradeSome sends what one portion has to a rank, and puts what comes from there where the
// other one says, in messages of half a chunk: the other half is for what is sent. The two may
// begin at one place: what comes is put where as much has been sent.
func tradeSome[T Number](l link, with int, out, in portion[T], put func(dst, src []T)) error {
	work, err := viewOf[T](l.buffer(l.chunk()))
	if err != nil {
		return err
	}
	half := len(work) / 2
	for send, get := out.elements, in.elements; send > 0 || get > 0; {
		if some := work[:min(half, send)]; len(some) > 0 {
			out.with(some, func(here, buffer []T) { copy(buffer, here) })
			l.post(with, bytesOf(some), 0)
			send -= len(some)
		}
		if some := work[half:][:min(half, get)]; len(some) > 0 {
			if err := receive(l, with, bytesOf(some)); err != nil {
				return err
			}
			in.with(some, put)
			get -= len(some)
		}
		if err := l.flush(0); err != nil {
			return err
		}
	}
	return nil
}
