package collective

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib/memnet"
)

// ringOrder is what the essay says of a ring: block b is added up from rank b+1 on.
func ringOrder[T Number](parts [][]T, how Op) []T {
	n := len(parts)
	out := make([]T, len(parts[0]))
	for b := range n {
		lo, hi := Block(len(out), n, b)
		for i := lo; i < hi; i++ {
			sum := parts[(b+1)%n][i]
			for d := 2; d <= n; d++ {
				sum += parts[(b+d)%n][i]
			}
			out[i] = mean(sum, n, how)
		}
	}
	return out
}

// treeOrder is what it says of recursive doubling: neighbours first, then pairs of pairs.
func treeOrder[T Number](parts [][]T, how Op) []T {
	n := len(parts)
	extra := n - 1<<(bits.Len(uint(n))-1)
	out := make([]T, len(parts[0]))
	for i := range out {
		var leaves []T
		for r := 0; r < n; r++ {
			x := parts[r][i]
			if r < 2*extra {
				r++
				x += parts[r][i]
			}
			leaves = append(leaves, x)
		}
		for len(leaves) > 1 {
			var up []T
			for j := 0; j < len(leaves); j += 2 {
				up = append(up, leaves[j]+leaves[j+1])
			}
			leaves = up
		}
		out[i] = mean(leaves[0], n, how)
	}
	return out
}

func mean[T Number](sum T, n int, how Op) T {
	if how == Mean {
		return sum / T(n)
	}
	return sum
}

// drawn is a random case: ranks, elements, options and a network.
type drawn struct {
	n, length int
	seed      uint64
	o         Options
	net       memnet.Options
}

func draw(t *rapid.T) drawn {
	ranks := rapid.OneOf(rapid.IntRange(1, 6), rapid.IntRange(1, 17))
	d := drawn{n: ranks.Draw(t, "ranks"), seed: rapid.Uint64().Draw(t, "seed")}
	d.length = rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 1000)).Draw(t, "length")
	d.o.Chunk = 64 * rapid.IntRange(1, 12).Draw(t, "chunk/64")
	d.o.Window = d.o.Chunk * rapid.IntRange(2, 5).Draw(t, "window/chunk")
	d.net = memnet.Options{Seed: d.seed, Latency: time.Millisecond, Jitter: 3 * time.Millisecond,
		Window: rapid.SampledFrom([]int{1, 1000, 1 << 20}).Draw(t, "net window")}
	return d
}

// check runs an operation twice on drawn worlds, at times that differ by rank, and compares
// with what want makes of all ranks' values.
func check[T Number](t *testing.T, do func(x *node, data []T) error,
	want func(d drawn, parts [][]T, rank int) (lo, hi int, out []T)) {
	rapid.Check(t, func(r *rapid.T) {
		d := draw(r)
		parts := make([][]T, d.n)
		for i := range parts {
			parts[i] = numbers[T](d.length, i, d.seed)
		}
		inWorld(t, d.n, d.net, d.o, func(w *world) {
			for range 2 {
				w.must(func(x *node) error {
					late(rand.New(rand.NewPCG(d.seed, uint64(x.rank))), 5)
					data := append([]T(nil), parts[x.rank]...)
					if err := do(x, data); err != nil {
						return err
					}
					lo, hi, out := want(d, parts, x.rank)
					return same(data[lo:hi], out[lo:hi], "%+v, rank %d", d, x.rank)
				})
			}
		})
	})
}

func testAllReduce[T Number](t *testing.T, how Op) {
	check(t, func(x *node, data []T) error {
		return AllReduce(background, x.group, data, how)
	}, func(d drawn, parts [][]T, _ int) (int, int, []T) {
		return 0, d.length, treeOrder(parts, how)
	})
}

// TestAllReduce: small ones, in the order of the tree.
func TestAllReduce(t *testing.T) {
	t.Run("float32 sum", func(t *testing.T) { testAllReduce[float32](t, Sum) })
	t.Run("float32 mean", func(t *testing.T) { testAllReduce[float32](t, Mean) })
	t.Run("float64 mean", func(t *testing.T) { testAllReduce[float64](t, Mean) })
	t.Run("int64 sum", func(t *testing.T) { testAllReduce[int64](t, Sum) })
	t.Run("int32 sum", func(t *testing.T) { testAllReduce[int32](t, Sum) })
}

// TestRing: a reduce-scatter and an all-gather are an all-reduce in the order of the ring.
func TestRing(t *testing.T) {
	check(t, func(x *node, data []float32) error {
		if err := ReduceScatter(background, x.group, data, Mean); err != nil {
			return err
		}
		return AllGather(background, x.group, data)
	}, func(d drawn, parts [][]float32, _ int) (int, int, []float32) {
		return 0, d.length, ringOrder(parts, Mean)
	})
}

// TestLargeAllReduce: large ones go round the ring.
func TestLargeAllReduce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		inWorld(t, n, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			const length = 1<<20 + 7
			var parts [][]float32
			for r := range n {
				parts = append(parts, numbers[float32](length, r, 1))
			}
			want := ringOrder(parts, Sum)
			w.must(func(x *node) error {
				data := append([]float32(nil), parts[x.rank]...)
				if err := AllReduce(background, x.group, data, Sum); err != nil {
					return err
				}
				return same(data, want, "%d ranks", n)
			})
		})
	}
}

func TestReduceScatter(t *testing.T) {
	check(t, func(x *node, data []float64) error {
		return ReduceScatter(background, x.group, data, Sum)
	}, func(d drawn, parts [][]float64, rank int) (int, int, []float64) {
		lo, hi := Block(d.length, d.n, rank)
		return lo, hi, ringOrder(parts, Sum)
	})
}

// TestPushPull: any number of owners; with all, the bits of the ring.
func TestPushPull(t *testing.T) {
	check(t, func(x *node, data []float32) error {
		return PushPull(background, x.group, data, x.group.Size(), Mean)
	}, func(d drawn, parts [][]float32, _ int) (int, int, []float32) {
		return 0, d.length, ringOrder(parts, Mean)
	})
	check(t, func(x *node, data []int64) error {
		return PushPull(background, x.group, data, 1+len(data)%x.group.Size(), Sum)
	}, func(d drawn, parts [][]int64, _ int) (int, int, []int64) {
		return 0, d.length, treeOrder(parts, Sum)
	})
}

func TestAllGather(t *testing.T) {
	check(t, func(x *node, data []int64) error {
		lo, hi := Block(len(data), x.group.Size(), x.rank)
		clear(data[:lo])
		clear(data[hi:])
		return AllGather(background, x.group, data)
	}, func(d drawn, parts [][]int64, _ int) (int, int, []int64) {
		out := make([]int64, d.length)
		for r := range d.n {
			lo, hi := Block(d.length, d.n, r)
			copy(out[lo:hi], parts[r][lo:hi])
		}
		return 0, d.length, out
	})
}

func TestBroadcast(t *testing.T) {
	root := func(length, n int) int { return length % n }
	check(t, func(x *node, data []float32) error {
		return Broadcast(background, x.group, data, root(len(data), x.group.Size()))
	}, func(d drawn, parts [][]float32, _ int) (int, int, []float32) {
		return 0, d.length, parts[root(d.length, d.n)]
	})
}

func TestAllToAll(t *testing.T) {
	check(t, func(x *node, data []float32) error {
		n := x.group.Size()
		data = data[:len(data)/n*n]
		out := make([]float32, len(data))
		if err := AllToAll(background, x.group, data, out); err != nil {
			return err
		}
		copy(data, out)
		return nil
	}, func(d drawn, parts [][]float32, rank int) (int, int, []float32) {
		each := d.length / d.n
		var out []float32
		for r := range d.n {
			out = append(out, parts[r][each*rank:each*(rank+1)]...)
		}
		return 0, each * d.n, out
	})
}

// TestAllToAllV: rank i sends rank j something of a length that only the two know.
func TestAllToAllV(t *testing.T) {
	length := func(d drawn, i, j int) int { return (i*31 + j*17 + d.length) % 97 * (i + j) % 400 }
	rapid.Check(t, func(r *rapid.T) {
		d := draw(r)
		inWorld(t, d.n, d.net, d.o, func(w *world) {
			w.must(func(x *node) error {
				send, recv := make([][]int32, d.n), make([][]int32, d.n)
				for i := range d.n {
					send[i] = numbers[int32](length(d, x.rank, i), x.rank*100+i, d.seed)
					recv[i] = make([]int32, length(d, i, x.rank))
				}
				if err := AllToAllV(background, x.group, send, recv); err != nil {
					return err
				}
				for i := range d.n {
					want := numbers[int32](length(d, i, x.rank), i*100+x.rank, d.seed)
					err := same(recv[i], want, "%+v, rank %d from %d", d, x.rank, i)
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

// TestBarrier: nobody leaves before the last has come.
func TestBarrier(t *testing.T) {
	for n := 1; n <= 17; n++ {
		inWorld(t, n, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			w.must(func(x *node) error {
				if x.rank == n/2 {
					time.Sleep(time.Second)
				}
				if err := Barrier(background, x.group); err != nil {
					return err
				}
				steps := time.Duration(math.Ceil(math.Log2(float64(n))))
				if d := w.passed(); d < time.Second || d > time.Second+steps*time.Millisecond {
					return fmt.Errorf("%d ranks leave after %v", n, d)
				}
				return nil
			})
		})
	}
}
