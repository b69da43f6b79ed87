package collective

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib/memnet"
)

// TestSpeed: how long operations take on links of 1 MB a second, beside what the links
// allow. Chunks are small beside the data, so the latency of steps is little.
func TestSpeed(t *testing.T) {
	const elements = 1 << 18 // 1 MiB: 1.05 s over one link
	const once = float64(4*elements) / 1e6
	for _, n := range []int{2, 3, 4, 8} {
		share := float64(n-1) / float64(n)
		for _, c := range []struct {
			name string
			do   func(*node, []float32) error
			want float64 // seconds
		}{
			{"ring", func(x *node, v []float32) error {
				return AllReduce(background, x.group, v, Sum)
			}, 2 * share * once},
			{"push-pull", func(x *node, v []float32) error {
				return PushPull(background, x.group, v, n, Sum)
			}, 2 * share * once},
			{"gather", func(x *node, v []float32) error {
				return AllGather(background, x.group, v)
			}, share * once},
			{"broadcast", func(x *node, v []float32) error {
				return Broadcast(background, x.group, v, 0)
			}, once},
			{"all-to-all", func(x *node, v []float32) error {
				return AllToAll(background, x.group, v[:len(v)/n*n], make([]float32, len(v)/n*n))
			}, share * once},
		} {
			net := memnet.Options{Latency: time.Millisecond, Bps: 8e6}
			inWorld(t, n, net, Options{Chunk: 8 << 10}, func(w *world) {
				w.must(func(x *node) error { return c.do(x, make([]float32, elements)) })
				took := w.passed().Seconds()
				t.Logf("| %s | %d | %.3f | %.3f |", c.name, n, took, c.want)
				if took < 0.99*c.want || took > 1.1*c.want+0.05 {
					t.Errorf("%s of %d ranks: %.3f s, the links allow %.3f", c.name, n, took,
						c.want)
				}
			})
		}
	}
}

// TestSmallExchangesOverlap: the latencies of many small exchanges are not added up.
func TestSmallExchangesOverlap(t *testing.T) {
	const latency = 10 * time.Millisecond
	inWorld(t, 4, memnet.Options{Latency: latency}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			const many = 40
			data := make([]float32, many)
			for i := range many {
				ex := Exchange{Name: fmt.Sprint("w", i), Data: bytesOf(data[i : i+1])}
				if err := e.Send(ex); err != nil {
					return err
				}
			}
			for i := range many {
				if err := e.Await(background, fmt.Sprint("w", i)); err != nil {
					return err
				}
			}
			// Two steps each, on as many lanes as there are.
			if most := many * 2 * latency / (lanes - smallLanes); w.passed() > most {
				return fmt.Errorf("%v, want %v at most", w.passed(), most)
			}
			return nil
		})
	})
}

// TestAddBytes: a message may come in parts that begin and end anywhere.
func TestAddBytes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 1500).Draw(r, "elements")
		dst, src := numbers[float64](n, 0, 1), numbers[float64](n, 1, 1)
		want := make([]float64, n)
		for i := range want {
			want[i] = src[i] + dst[i]
		}
		skew := rapid.IntRange(0, 7).Draw(r, "skew")
		b := append(make([]byte, skew), bytesOf(src)...)[skew:]
		var parts [][]byte
		for len(b) > 0 {
			k := rapid.IntRange(0, min(len(b), 5000)).Draw(r, "part")
			parts, b = append(parts, b[:k]), b[k:]
		}
		addBytes(dst, parts)
		if err := same(dst, want, "in %d parts", len(parts)); err != nil {
			r.Error(err)
		}
	})
}

// TestAnotherGroup: after a loss, those who are left make a group and go on.
func TestAnotherGroup(t *testing.T) {
	inWorld(t, 4, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
		w.net.Kill(1)
		w.must(func(x *node) error {
			if x.rank == 1 {
				return nil
			}
			v := []int64{1 << x.rank}
			if err := AllReduce(background, x.group, v, Sum); lostNode(err) != 1 {
				return fmt.Errorf("with a lost node: %v", err)
			}
			if _, err := x.mux.Group(0, 1, 2, 3); err != nil {
				return err // it may be made, and fails when it is used
			}
			g, err := x.mux.Group(0, 2, 3)
			if err != nil {
				return err
			}
			v[0] = 1 << x.rank
			if err := AllReduce(background, g, v, Sum); err != nil || v[0] != 13 {
				return fmt.Errorf("%v: %w", v, err)
			}
			return nil
		})
	})
}
