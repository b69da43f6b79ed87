package planner

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
)

// maxSize is the largest number of operations or partitions that options may have.
const maxSize = 1_000_000_000

// growthOptions are policies with the settings that make one thing large.
func growthOptions() map[string]Options {
	return map[string]Options{
		"thesis":                               {},
		"vanilla":                              {Policy: Vanilla},
		"auto":                                 {Policy: Auto},
		"one partition":                        {Partition: maxSize},
		"partitions of 1, look-ahead over all": {Partition: 1, Lookahead: maxSize, Streams: 8},
		"by depth, nothing placed":             {Strategy: "depth", NoPlacement: true},
	}
}

// TestGrowth: what planning takes, fusion and verification included, grows with
// the graph and not with its square, whatever there is much of in it. Memory is
// what is counted, since time is no one's promise: every table and every list that
// was searched in turn took some.
func TestGrowth(t *testing.T) {
	longtest.Skip(t)
	const n = 400
	for _, s := range randgraph.Shapes() {
		t.Run(s.Name, func(t *testing.T) {
			small, large := s.Build(n), s.Build(4*n)
			growsLinearly(t, "fuse", func(m *randgraph.Model) error {
				_, err := fuse.Fuse(m.Graph, m.Fetches, m.Updates)
				return err
			}, small, large)
			for name, o := range growthOptions() {
				growsLinearly(t, name, func(m *randgraph.Model) error {
					_, err := Compile(context.Background(), m.Graph, training(m), o)
					return err
				}, small, large)
			}
		})
	}
}

// growsLinearly fails if the work for a graph that is four times as large takes
// more than eight times the memory.
func growsLinearly(t *testing.T, name string, work func(*randgraph.Model) error,
	small, large *randgraph.Model) {
	t.Helper()
	taken := func(m *randgraph.Model) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := work(m); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	a, b := taken(small), taken(large)
	if b > 8*a {
		t.Errorf("%s: %d bytes, %d for a graph four times as large", name, a, b)
	}
}

// TestHugeOptions: the largest numbers of operations and partitions mean what they
// say, one partition and nothing idle for that long, and larger ones are refused.
func TestHugeOptions(t *testing.T) {
	m := randgraph.Synthetic(200)
	if p := compiled(t, m, Options{Partition: maxSize}); p.Parts != 1 {
		t.Errorf("partitions of %d: there are %d", maxSize, p.Parts)
	}
	far := compiled(t, m, Options{Lookahead: maxSize})
	near := compiled(t, m, Options{Lookahead: 1000})
	if far.Traffic() != near.Traffic() {
		t.Errorf("look-ahead %d copies %v, 1000 copies %v", maxSize, far.Traffic(), near.Traffic())
	}
	for _, o := range []Options{{Partition: maxSize + 1}, {Lookahead: maxSize + 1}} {
		if _, err := Compile(t.Context(), m.Graph, training(m), o); err == nil {
			t.Errorf("%s is accepted", o)
		}
	}
}

// BenchmarkGrowth plans every shape at two sizes: ns/node should hardly grow.
func BenchmarkGrowth(b *testing.B) {
	for _, s := range randgraph.Shapes() {
		for _, policy := range []Policy{Thesis, Vanilla} {
			for _, n := range []int{5_000, 20_000, 80_000} {
				name := fmt.Sprintf("%s/%s/n=%d", strings.ReplaceAll(s.Name, " ", "-"), policy, n)
				b.Run(name, func(b *testing.B) {
					m := s.Build(n)
					for b.Loop() {
						if _, err := Compile(context.Background(), m.Graph, training(m),
							Options{Policy: policy}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n),
						"ns/item")
				})
			}
		}
	}
}
