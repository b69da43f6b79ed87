package collective

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib/memnet"
)

// flow is how many rows of at most so many go from each rank to each.
type flow struct {
	most int
	rows [][]int32
}

// countsFor are counts of so many elements among n ranks: many of nothing, or of all.
func countsFor(elements, n int, seed uint64) flow {
	rng := rand.New(rand.NewPCG(seed, 9))
	f := flow{most: 1, rows: make([][]int32, n)}
	if block := elements / n; block > 0 {
		for width := 1 + rng.IntN(20); width > 0; width-- {
			if block%width == 0 {
				f.most = block / width
				break
			}
		}
	} else {
		f.most = rng.IntN(3)
	}
	for i := range f.rows {
		f.rows[i] = make([]int32, n)
		for j := range f.rows[i] {
			switch rng.IntN(4) {
			case 0: // nothing
			case 1:
				f.rows[i][j] = int32(f.most)
			default:
				f.rows[i][j] = rng.Int32N(int32(f.most) + 1)
			}
		}
	}
	return f
}

// of is what a rank knows of it.
func (f flow) of(rank int) Counts {
	c := Counts{Most: f.most, To: f.rows[rank]}
	for _, row := range f.rows {
		c.From = append(c.From, row[rank])
	}
	return c
}

// swapped is what a rank has in the end.
func (f flow) swapped(parts [][]float32, rank int) []float32 {
	var out []float32
	n := len(parts)
	for from, x := range parts {
		block := make([]float32, len(x)/n)
		width := len(block) / max(1, f.most)
		copy(block[:width*int(f.rows[from][rank])], x[rank*len(block):])
		out = append(out, block...)
	}
	return out
}

// crossing is how many rows go from one rank to another.
func (f flow) crossing() (rows int64) {
	for i, to := range f.rows {
		for j, count := range to {
			if i != j {
				rows += int64(count)
			}
		}
	}
	return rows
}

// TestCountedRows: of any numbers of rows each rank has in the end those that are for it, to the
// bit, and zeros after them; and nothing else is sent, whatever the sizes of messages and who is
// late.
func TestCountedRows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(r, "ranks")
		elements := n * rapid.SampledFrom([]int{0, 1, 3, 16, 17, 100, 600}).Draw(r, "block")
		seed := rapid.Uint64().Draw(r, "seed")
		f := countsFor(elements, n, seed)
		o := Options{Chunk: 64 * rapid.IntRange(1, 3).Draw(r, "chunk"), Window: 384}
		inWorld(t, n, memnet.Options{Latency: time.Millisecond}, o, func(w *world) {
			w.must(func(x *node) error {
				var parts [][]float32
				for r := range n {
					parts = append(parts, signed(elements, r, seed))
				}
				late(rand.New(rand.NewPCG(seed, uint64(x.rank))), 5)
				data := slices.Clone(parts[x.rank])
				err := AllToAllSome(background, x.group, data, f.of(x.rank))
				if err != nil {
					return err
				}
				return same(data, f.swapped(parts, x.rank), "swapped, rank %d", x.rank)
			})
			sent := int64(0)
			for _, x := range w.nodes {
				sent += x.group.Stats().Sent
			}
			width := elements / max(1, n*f.most)
			if want := f.crossing() * 4 * int64(width); sent != want {
				t.Errorf("%d ranks sent %d bytes of %v, want %d", n, sent, f, want)
			}
		})
	})
}

// TestCountsAreChecked: what has no sense is refused before anything is sent.
func TestCountsAreChecked(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
		x := w.nodes[0]
		e, err := x.exchanger(ExchangerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		two := []int32{0, 1}
		for _, c := range []struct {
			counts Counts
			bytes  int
			want   string
		}{
			{Counts{}, 8, "rows go to 0 ranks and come from 0, of 2"},
			{Counts{Most: 1, To: two, From: []int32{0}}, 8, "to 2 ranks and come from 1, of 2"},
			{Counts{Most: 3, To: two, From: two}, 16, "16 bytes are not 2 blocks of 3 rows"},
			{Counts{Most: 0, To: two, From: two}, 8, "8 bytes are not 2 blocks of 0 rows"},
			{Counts{Most: -1, To: two, From: two}, 8, "8 bytes are not 2 blocks of -1 rows"},
			{Counts{Most: 1, To: two, From: []int32{1, 0}}, 8, "0 rows go to itself, and 1 come"},
			{Counts{Most: 1, To: []int32{0, 2}, From: two}, 8, "2 rows of a block of 1"},
			{Counts{Most: 1, To: two, From: []int32{0, -1}}, 8, "-1 rows of a block of 1 are for " +
				"rank 1"},
			{Counts{Most: 0, To: two, From: two}, 0, "1 rows of a block of 0"},
		} {
			data := make([]byte, c.bytes)
			sent := e.Send(Exchange{Name: "x", Via: SwappedSome, Counts: c.counts, Data: data})
			v, _ := viewOf[float32](data)
			for _, err := range []error{sent, AllToAllSome(background, x.group, v, c.counts)} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v: %v, want %s", c.counts, err, c.want)
				}
			}
		}
		if s := x.group.Stats().Sent; s != 0 {
			t.Errorf("%d bytes are sent", s)
		}
	})
}

// TestCountsMustAgree: ranks of which one sends other rows than the other expects are told so,
// and so are those whose rows are of other lengths.
func TestCountsMustAgree(t *testing.T) {
	for want, counts := range map[string][]Counts{
		"4 rows at most": {{Most: 4, To: []int32{1, 1}, From: []int32{1, 1}},
			{Most: 2, To: []int32{1, 1}, From: []int32{1, 1}}},
		"4 bytes from one to the other": {{Most: 2, To: []int32{0, 2}, From: []int32{0, 1}},
			{Most: 2, To: []int32{2, 0}, From: []int32{2, 0}}},
	} {
		inWorld(t, 2, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			errs := w.each(func(x *node) error {
				e, err := x.exchanger(ExchangerOptions{})
				if err == nil {
					err = e.Send(Exchange{Name: "x", Via: SwappedSome, Elem: U8,
						Counts: counts[x.rank], Data: make([]byte, 16)})
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
