package collective

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// plain is a transport without limits that allocates nothing in steady state: what it
// delivers is in buffers that are used again after so many messages of a stream that the
// windows of this package's groups have let go of them.
type plain struct {
	self  distrib.NodeID
	nodes []*plain
	h     distrib.Handler
	out   []chan *distrib.Msg
	ends  sync.WaitGroup
	chunk int
}

const rotating = 64

func plainNodes(n, chunk int) (nodes []*plain) {
	for i := range n {
		nodes = append(nodes, &plain{self: distrib.NodeID(i), chunk: chunk})
	}
	for _, p := range nodes {
		p.nodes = nodes
		for range n {
			p.out = append(p.out, make(chan *distrib.Msg, 4096))
		}
	}
	return nodes
}

func (p *plain) Self() distrib.NodeID                   { return p.self }
func (p *plain) Links() []distrib.Link                  { return nil }
func (p *plain) Serve(h distrib.Handler)                { p.h = h }
func (p *plain) Send(to distrib.NodeID, m *distrib.Msg) { p.out[to] <- m }
func (p *plain) start() {
	for to := range p.out {
		p.ends.Go(func() { p.carry(to) })
	}
}

func (p *plain) Close() error {
	for _, c := range p.out {
		close(c)
	}
	p.ends.Wait()
	return nil
}

// slot is what one message is delivered in.
type slot struct {
	msg  distrib.Msg
	head [distrib.MaxHead]byte
	body []byte
	one  [1][]byte
}

func (p *plain) carry(to int) {
	slots := make([]slot, rotating)
	var last slot // of messages without data, which nobody keeps
	i := 0
	for m := range p.out[to] {
		s := &last
		if len(m.Body) > 0 && len(m.Body[0]) > 0 {
			s = &slots[i%rotating]
			i++
		}
		if s.body == nil {
			s.body = make([]byte, p.chunk)
		}
		n := 0
		for _, b := range m.Body {
			n += copy(s.body[n:], b)
		}
		s.one[0] = s.body[:n]
		s.msg = distrib.Msg{Class: m.Class, Tag: m.Tag, Body: s.one[:],
			Head: s.head[:copy(s.head[:], m.Head)]}
		if m.Done != nil {
			m.Done(nil)
		}
		p.nodes[to].h.Receive(p.self, &s.msg)
	}
}

// plainGroups are groups of all of n nodes.
func plainGroups(tb testing.TB, n int, o Options) (gs []*Group) {
	nodes := plainNodes(n, MaxChunk)
	for _, p := range nodes {
		mux, err := NewMux(p, o)
		if err != nil {
			tb.Fatal(err)
		}
		g, err := mux.Group(members(n)...)
		if err != nil {
			tb.Fatal(err)
		}
		gs = append(gs, g)
	}
	for _, p := range nodes {
		p.start()
	}
	tb.Cleanup(func() {
		for _, g := range gs {
			g.mux.Close()
		}
	})
	return gs
}

// together runs f on all groups at once.
func together(tb testing.TB, gs []*Group, f func(r int, g *Group) error) {
	var all sync.WaitGroup
	for r, g := range gs {
		all.Go(func() {
			if err := f(r, g); err != nil {
				tb.Errorf("rank %d: %v", r, err)
			}
		})
	}
	all.Wait()
}

// TestChunksAllocateNothing: an operation on 64 times the data, in as many more messages,
// allocates no more often.
func TestChunksAllocateNothing(t *testing.T) {
	gs := plainGroups(t, 3, Options{Chunk: 4 << 10})
	for _, c := range []struct {
		name string
		do   func(g *Group, x []float32) error
	}{
		{"all-reduce", func(g *Group, x []float32) error {
			return AllReduce(background, g, x, Mean)
		}},
		{"push-pull", func(g *Group, x []float32) error {
			return PushPull(background, g, x, 3, Mean)
		}},
		{"broadcast", func(g *Group, x []float32) error { return Broadcast(background, g, x, 1) }},
	} {
		count := func(n int) float64 {
			x := [3][]float32{}
			for r := range x {
				x[r] = make([]float32, n)
			}
			return testing.AllocsPerRun(5, func() {
				together(t, gs, func(r int, g *Group) error { return c.do(g, x[r]) })
			})
		}
		few, many := count(1<<15), count(1<<21) // 32 and 2,048 messages of one rank's data
		if many > few+20 {
			t.Errorf("%s: %.0f allocations of 128 KiB, %.0f of 8 MiB", c.name, few, many)
		}
	}
}

// TestPlainTransport: what the benchmarks measure is right.
func TestPlainTransport(t *testing.T) {
	gs := plainGroups(t, 4, Options{Chunk: 4 << 10})
	const length = 300_007
	var parts [][]float32
	for r := range gs {
		parts = append(parts, numbers[float32](length, r, 1))
	}
	want := ringOrder(parts, Sum)
	together(t, gs, func(r int, g *Group) error {
		x := slices.Clone(parts[r])
		if err := AllReduce(background, g, x, Sum); err != nil {
			return err
		}
		return same(x, want, "ring")
	})
}

// BenchmarkAllReduce: bytes of data reduced a second, in memory: every byte is moved and
// added (n-1)/n times a rank, and moved as often again.
func BenchmarkAllReduce(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("ranks=%d/bytes=%d", n, size), func(b *testing.B) {
				benchmark(b, n, size, func(g *Group, x []float32) error {
					return AllReduce(background, g, x, Sum)
				})
			})
		}
	}
}

// BenchmarkPushPull: the same through servers in every rank.
func BenchmarkPushPull(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("ranks=%d/bytes=%d", n, 64<<20), func(b *testing.B) {
			benchmark(b, n, 64<<20, func(g *Group, x []float32) error {
				return PushPull(background, g, x, n, Sum)
			})
		})
	}
}

func benchmark(b *testing.B, n, size int, do func(g *Group, x []float32) error) {
	gs := plainGroups(b, n, Options{})
	x := make([][]float32, n)
	for r := range x {
		x[r] = make([]float32, size/4)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		together(b, gs, func(r int, g *Group) error { return do(g, x[r]) })
	}
}

// BenchmarkAdd: the sum alone.
func BenchmarkAdd(b *testing.B) {
	x, y := make([]float32, 64<<10), make([]float32, 64<<10)
	b.SetBytes(int64(len(x) * 4))
	for b.Loop() {
		add(x, y)
	}
}
