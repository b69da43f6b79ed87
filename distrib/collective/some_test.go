package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib/memnet"
)

// rowsFor are rows, as many for each of n ranks, of which so many elements are made up.
func rowsFor(elements, n int, seed uint64) Rows {
	rng := rand.New(rand.NewPCG(seed, 5))
	r := Rows{Each: 1 + rng.IntN(3)}
	count := n
	for width := 1 + rng.IntN(4); width > 0 && elements > 0; width-- {
		if elements%(n*width) == 0 {
			count = elements / width
			break
		}
	}
	if elements == 0 {
		count = 0
	}
	most := 1 + rng.IntN(n) // ranks from here on have nothing
	for range count * r.Each {
		r.Ranks = append(r.Ranks, int32(rng.IntN(most+1)-1))
	}
	return r
}

// masked is a rank's value with zeros for the rows that it has nothing to do with.
func (r Rows) masked(x []float32, rank int) []float32 {
	out := make([]float32, len(x))
	for i := range x {
		if row := i * r.count() / len(x); slices.Contains(r.of(row), int32(rank)) {
			out[i] = x[i]
		}
	}
	return out
}

// gathered is what a rank has in the end of the blocks of all.
func (r Rows) gathered(parts [][]float32, rank int) []float32 {
	out := make([]float32, len(parts[0]))
	for from := range parts {
		lo, hi := Block(len(out), len(parts), from)
		copy(out[lo:hi], parts[from][lo:hi])
	}
	if len(parts) == 1 {
		return out
	}
	return r.masked(out, rank)
}

// scattered is a rank's block of the sum in the order that is said: of two terms and zeros any
// order has the same bits.
func (r Rows) scattered(parts [][]float32, rank int, how Op) []float32 {
	n := len(parts)
	lo, hi := Block(len(parts[0]), n, rank)
	if n == 1 {
		return parts[0]
	}
	out := slices.Clone(r.masked(parts[rank], rank)[lo:hi])
	for round := range n {
		if from := (round - rank + n) % n; from != rank {
			for i, v := range r.masked(parts[from], from)[lo:hi] {
				out[i] += v
			}
		}
	}
	for i := range out {
		out[i] = mean(out[i], n, how)
	}
	return out
}

// crossing is how many rows go from one rank to another.
func (r Rows) crossing(n int) (rows int64) {
	for row := range r.count() {
		for rank := range n {
			if slices.Contains(r.of(row), int32(rank)) && row*n/r.count() != rank {
				rows++
			}
		}
	}
	return rows
}

// signed are numbers of which some are zero, of either sign.
func signed(length, rank int, seed uint64) []float32 {
	x := numbers[float32](length, rank, seed)
	for i := range x {
		switch (i*7 + rank + int(seed)) % 5 {
		case 0:
			x[i] = 0
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		}
	}
	return x
}

// TestSomeRows: of any rows, wherever they have to be, each rank has in the end what is its
// own of them, to the bit, zeros of either sign too; and what is sent is each row once for
// every other rank that has to do with it, whatever the sizes of messages and who is late.
func TestSomeRows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(r, "ranks")
		width := rapid.SampledFrom([]int{1, 3, 16, 17, 100}).Draw(r, "width")
		elements := n * width * rapid.IntRange(0, 12).Draw(r, "rows")
		seed := rapid.Uint64().Draw(r, "seed")
		rows := rowsFor(elements, n, seed)
		how := Op(rapid.IntRange(0, 1).Draw(r, "op"))
		o := Options{Chunk: 64 * rapid.IntRange(1, 3).Draw(r, "chunk"), Window: 384}
		inWorld(t, n, memnet.Options{Latency: time.Millisecond}, o, func(w *world) {
			w.must(func(x *node) error { return x.some(rows, elements, how, seed) })
			sent, want := int64(0), int64(0)
			if count := rows.count(); count > 0 {
				want = 2 * rows.crossing(n) * 4 * int64(elements/count)
			}
			for _, x := range w.nodes {
				sent += x.group.Stats().Sent
			}
			if sent != want {
				t.Errorf("%d ranks sent %d bytes of %v, want %d", n, sent, rows, want)
			}
		})
	})
}

func (x *node) some(rows Rows, elements int, how Op, seed uint64) error {
	var parts [][]float32
	for r := range x.group.Size() {
		parts = append(parts, signed(elements, r, seed))
	}
	late(rand.New(rand.NewPCG(seed, uint64(x.rank))), 5)
	data := slices.Clone(parts[x.rank])
	if err := AllGatherSome(background, x.group, data, rows); err != nil {
		return err
	}
	err := same(data, rows.gathered(parts, x.rank), "gathered, rank %d", x.rank)
	if err != nil {
		return err
	}
	data = slices.Clone(parts[x.rank])
	if err := ReduceScatterSome(background, x.group, data, how, rows); err != nil {
		return err
	}
	lo, hi := Block(len(data), len(parts), x.rank)
	return same(data[lo:hi], rows.scattered(parts, x.rank, how), "scattered, rank %d", x.rank)
}

// TestSomeIsAll: with two ranks a row at most, sums have the bits of a reduce-scatter of what
// is zero elsewhere.
func TestSomeIsAll(t *testing.T) {
	for n := 2; n <= 5; n++ {
		inWorld(t, n, memnet.Options{}, Options{}, func(w *world) {
			w.must(func(x *node) error {
				for seed := range uint64(20) {
					rows, rng := Rows{Each: 2}, rand.New(rand.NewPCG(seed, 1))
					for range n * 20 * rows.Each {
						rows.Ranks = append(rows.Ranks, int32(rng.IntN(n+1)-1))
					}
					some := signed(n*60, x.rank, seed)
					all := rows.masked(some, x.rank)
					if err := ReduceScatterSome(background, x.group, some, Sum, rows); err != nil {
						return err
					}
					if err := ReduceScatter(background, x.group, all, Sum); err != nil {
						return err
					}
					lo, hi := Block(len(all), n, x.rank)
					err := same(some[lo:hi], all[lo:hi], "rank %d of %d", x.rank, n)
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// TestSomeRowsAreChecked: what has no sense is refused before anything is sent.
func TestSomeRowsAreChecked(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
		x := w.nodes[0]
		e, err := x.exchanger(ExchangerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			rows  Rows
			bytes int
			want  string
		}{
			{Rows{}, 8, "0 ranks are not 0 for each row"},
			{Rows{Ranks: []int32{0, 1, 0}, Each: 2}, 8, "3 ranks are not 2 for each row"},
			{Rows{Ranks: []int32{0, 1, 0}, Each: 1}, 8, "3 rows are not equal parts of 2"},
			{Rows{Ranks: []int32{0, 1, 0, 1}, Each: 1}, 24, "24 bytes are not 4 rows"},
			{Rows{Each: 1}, 8, "8 bytes are not 0 rows"},
			{Rows{Ranks: []int32{0, 1, 2, 0}, Each: 2}, 8, "row 1 has to do with rank 2 of 2"},
			{Rows{Ranks: []int32{0, -2}, Each: 1}, 8, "row 1 has to do with rank -2 of 2"},
		} {
			data := make([]byte, c.bytes)
			sent := e.Send(Exchange{Name: "x", Via: ScatteredSome, Rows: c.rows, Data: data})
			v, _ := viewOf[float32](data)
			for _, err := range []error{sent, AllGatherSome(background, x.group, v, c.rows)} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v: %v, want %s", c.rows, err, c.want)
				}
			}
		}
		if s := x.group.Stats().Sent; s != 0 {
			t.Errorf("%d bytes are sent", s)
		}
	})
}

// TestSomeRowsMustAgree: ranks that have other rows are told so: where there are other numbers
// of ranks for each by both of these, and else by how many bytes there should have been.
func TestSomeRowsMustAgree(t *testing.T) {
	for want, rows := range map[string][]Rows{
		"by 1 of 4 ranks": {{Ranks: []int32{1, 0, 1, 0}, Each: 1},
			{Ranks: []int32{1, 0, 1, 0, 1, 0, 1, 0}, Each: 2}},
		"8 bytes from one to the other": {{Ranks: []int32{1, 0, 0, 0}, Each: 1},
			{Ranks: []int32{1, 1, 0, 0}, Each: 1}},
	} {
		inWorld(t, 2, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			errs := w.each(func(x *node) error {
				e, err := x.exchanger(ExchangerOptions{})
				if err == nil {
					err = e.Send(Exchange{Name: "x", Via: GatheredSome, Elem: U8,
						Rows: rows[x.rank], Data: make([]byte, 16)})
				}
				if err != nil {
					return err
				}
				return e.Await(background, "x")
			})
			if text := fmt.Sprint(errs); !strings.Contains(text, want) {
				t.Errorf("%s, want %s", text, want)
			}
		})
	}
}
