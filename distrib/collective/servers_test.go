package collective

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/memnet"
)

// gradients are sizes as of a residual network, in the order in which it hands them over: a
// filter's, and then two vectors'.
func gradients() (sizes []int) {
	for _, filter := range []int{2 << 10, 512, 128, 64, 32, 16, 9} {
		sizes = append(sizes, filter<<10, 2<<10, 4)
	}
	return sizes
}

// gradientStep sends exchanges of such sizes at once, and awaits them.
func gradientStep(e *Exchanger, sizes []int, via Via) error {
	for i, n := range sizes {
		x := Exchange{Name: fmt.Sprint("w", i), Via: via, Data: make([]byte, n)}
		if err := e.Send(x); err != nil {
			return err
		}
	}
	for i := range sizes {
		if err := e.Await(background, fmt.Sprint("w", i)); err != nil {
			return err
		}
	}
	return nil
}

// TestServersSpeed: many gradients, large ones or mostly small ones, take little more by owners
// than their bytes do on the links.
func TestServersSpeed(t *testing.T) {
	mixed := gradients()
	for _, sizes := range [][]int{mixed, {2 << 20, 2 << 20, 2 << 20, 2 << 20, 2 << 20}} {
		const bps, latency = 100e6, 100 * time.Microsecond
		for _, n := range []int{2, 4, 8} {
			want := 0.0
			for _, size := range sizes {
				want += 2 * float64(n-1) / float64(n) * float64(size) * 8 / bps
			}
			inWorld(t, n, memnet.Options{Latency: latency, Bps: bps}, Options{}, func(w *world) {
				w.must(func(x *node) error {
					e, err := x.exchanger(ExchangerOptions{})
					if err != nil {
						return err
					}
					return gradientStep(e, sizes, Servers)
				})
				if took := w.passed().Seconds(); took > 1.1*want {
					t.Errorf("%v among %d ranks: %.3f s, the links take %.3f", sizes, n, took, want)
				}
			})
		}
	}
}

// TestTinyAreWhole: what is tiny goes to one owner, and comes from there, and owners take turns.
func TestTinyAreWhole(t *testing.T) {
	const n, many = 4, 12
	inWorld(t, n, memnet.Options{}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			sizes := make([]int, many)
			for i := range sizes {
				sizes[i] = tiny - 4
			}
			if err := gradientStep(e, sizes, Servers); err != nil {
				return err
			}
			// Of four it has one, which it sends to three, and sends three to others.
			sent, want := e.Stats().Sent, int64(6*(tiny-4)*many/n)
			if sent < want || sent > want+many*noticeSize {
				return fmt.Errorf("%d bytes were sent, want %d and names", sent, want)
			}
			return nil
		})
	})
}

// TestMemoryOfSteps: however far apart ranks are, step after step, what waits is within what was
// said, and most of that.
func TestMemoryOfSteps(t *testing.T) {
	sizes := gradients()
	for _, n := range []int{2, 3, 4, 7} {
		for _, owners := range []int{1, n} {
			o := ExchangerOptions{Owners: owners}
			specs := make([]Spec, len(sizes))
			for i, size := range sizes {
				specs[i] = Spec{size, Servers}
			}
			bound, err := Bytes(specs, n, Options{}, o)
			if err != nil {
				t.Fatal(err)
			}
			held := make([]int64, n)
			inWorld(t, n, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
				w.must(func(x *node) error {
					e, err := x.exchanger(o)
					if err != nil {
						return err
					}
					rng := rand.New(rand.NewPCG(uint64(n), uint64(x.rank)))
					for step := range 8 {
						if step%n == x.rank {
							late(rng, 1000)
						}
						if err := gradientStep(e, sizes, Servers); err != nil {
							return err
						}
					}
					held[x.rank] = e.Stats().PeakHeld + e.Stats().Scratch
					return nil
				})
			})
			var most int64
			for _, h := range held {
				most = max(most, h)
			}
			if most > bound || most < bound/2 {
				t.Errorf("%d ranks, %d owners: %d bytes were held, of at most %d", n, owners, most,
					bound)
			}
		}
	}
}

// TestBlocksOfUnequalPieces: an owner whose block is an element longer than another's has a
// message more.
func TestBlocksOfUnequalPieces(t *testing.T) {
	const n, each = 3, serversChunk / 4
	inWorld(t, n, memnet.Options{}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			v := make([]float32, n*each+1)
			for i := range v {
				v[i] = float32(i + x.rank)
			}
			if err := e.Send(Exchange{Name: "w", Via: Servers, Data: bytesOf(v)}); err != nil {
				return err
			}
			if err := e.Await(background, "w"); err != nil {
				return err
			}
			for i := range v {
				if want := float32(n*i + n*(n-1)/2); v[i] != want {
					return fmt.Errorf("element %d is %v, want %v", i, v[i], want)
				}
			}
			return nil
		})
	})
}
