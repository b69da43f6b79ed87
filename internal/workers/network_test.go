package workers

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/graph"
)

// members are workers that exchange within steps, on a network in memory.
func members(t *testing.T, n int, scheme string) (ms []*Member) {
	t.Helper()
	net := memnet.NewNetwork(n, memnet.Options{})
	v := distrib.View{Epoch: 1}
	for i := range n {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	for i := range n {
		v.Self = distrib.NodeID(i)
		s, err := ParseScheme(scheme, SchemeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Join(v, net.Node(v.Self), s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	return ms
}

// TestGathers: all workers have all parts, by rank, of any size, and the network has taken
// the bytes that the formula says, and of memory no more than was said before.
func TestGathers(t *testing.T) {
	const n = 3
	for _, rows := range []int{0, 1, 50, 40000} {
		synctest.Test(t, func(t *testing.T) {
			ms := members(t, n, "hybrid")
			whole := graph.Of(graph.F32, n*rows, 2)
			want := make([]byte, 0, whole.Bytes())
			for rank := range n {
				want = append(want, bytes.Repeat([]byte{byte(rank + 1)}, 8*rows)...)
			}
			bound, err := collective.Bytes([]collective.Spec{{Size: len(want),
				Via: collective.Gathered}}, n, collective.Options{}, collective.ExchangerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			all(n, func(rank int) {
				data := make([]byte, whole.Bytes())
				copy(data, bytes.Repeat([]byte{byte(rank + 1)}, 8*rows))
				network := ms[rank].Network()
				err := network.Send(t.Context(), gomem.Exchange{Name: "x", Type: whole,
					How: graph.How{Fold: graph.Gather}, Parts: n, Data: data})
				if err == nil {
					err = network.Await(t.Context(), "x")
				}
				if err != nil || !bytes.Equal(data, want) {
					t.Errorf("%d rows, worker %d: %v", rows, rank, err)
				}
			})
			for _, m := range ms {
				traffic := collective.TrafficOf(2, 0, rows, n, n).Factors
				s := m.at().exchanger.Stats()
				if got := s.Sent + s.Received; got-2*n*1024 > traffic || got < traffic ||
					s.Scratch+s.PeakHeld > bound {
					t.Errorf("%d rows: %d bytes, by the formula %d; %d of memory, at most %d", rows,
						got, traffic, s.Scratch+s.PeakHeld, bound)
				}
			}
			closeAll(ms)
		})
	}
}

// closeAll closes members side by side.
func closeAll(ms []*Member) {
	var wg sync.WaitGroup
	for _, m := range ms {
		wg.Go(func() { m.Close(nil) })
	}
	wg.Wait()
}

// TestGathersOfOthers: parts of another number of workers are refused.
func TestGathersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := members(t, 2, "factors")
		for _, x := range []gomem.Exchange{
			{Parts: 3, Data: make([]byte, 24)}, {Parts: 2, Data: make([]byte, 3)}, {}} {
			x.Name, x.Type, x.How = "x", graph.Of(graph.F32, 6), graph.How{Fold: graph.Gather}
			err := ms[0].Network().Send(t.Context(), x)
			if err == nil || !strings.Contains(err.Error(), "parts, of 2 workers") {
				t.Errorf("%d parts: %v", x.Parts, err)
			}
		}
		closeAll(ms)
	})
}

// TestFactoringOfFew: where workers come and go, no graph is for one number of them.
func TestFactoringOfFew(t *testing.T) {
	for _, c := range []struct {
		scheme      string
		least, most int
		fixed       bool
		err         string
	}{
		{"hybrid", 1, 2, false, ""},
		{"hybrid", 2, 2, true, ""},
		{"factors", 2, 2, true, ""},
		{"factors", 1, 2, false, "scheme factors is for workers that do not come and go, not for " +
			"1 to 2 of them"},
	} {
		s, err := ParseScheme(c.scheme, SchemeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		net := memnet.NewNetwork(1, memnet.Options{})
		m, err := Join(distrib.View{Epoch: 1, Nodes: []distrib.Node{{}}}, net.Node(0), s,
			Options{Elastic: &Elastic{Least: c.least, Most: c.most}})
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || (m.Factoring() != nil) != c.fixed {
			t.Errorf("%+v: %v, %v", c, m.Factoring(), err)
		}
		m.Close(nil)
	}
}

// TestFactoring: which schemes exchange factors, and of what.
func TestFactoring(t *testing.T) {
	var some []string
	for _, name := range Schemes() {
		s, err := ParseScheme(name, SchemeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := s.Factoring(4)
		if f == nil {
			continue
		}
		some = append(some, name)
		if !f.Factors(1<<20, 1<<10) || f.Factors(1<<10, 1<<20) != (name == "factors") {
			t.Errorf("%s chooses otherwise", name)
		}
	}
	if !slices.Equal(some, []string{"hybrid", "factors"}) {
		t.Errorf("factors are exchanged by %v", some)
	}
}
