package distrib_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

// viewOf is n nodes with all roles.
func viewOf(n int) (v distrib.View) {
	for _, id := range nodeIDs(0, n) {
		v.Nodes = append(v.Nodes, distrib.Node{ID: id, Addr: fmt.Sprintf("host%d:1", id)})
	}
	return v
}

func bound[T any](t interface{ Fatal(...any) }, top T, v distrib.View, ps ...*distrib.Param) T {
	b, ok := any(top).(distrib.Binder)
	if !ok {
		t.Fatal("it is no Binder")
	}
	if err := b.Bind(v, ps); err != nil {
		t.Fatal(err)
	}
	return top
}

// TestShardsMoveLittle: of n servers one more takes a share of one in n+1, all from the
// others to it; and all have about as much.
func TestShardsMoveLittle(t *testing.T) {
	const rows, block = 16 * 4000, 16
	p := &distrib.Param{Name: "w", Rows: rows, Cols: 1}
	owners := func(n int) []distrib.NodeID {
		s := bound(t, &distrib.Shards{Block: 4 * block}, viewOf(n), p)
		out := make([]distrib.NodeID, rows)
		for r := range out {
			out[r], _ = s.Owner(distrib.Ref{Row: int32(r), N: 1})
		}
		return out
	}
	before := owners(1)
	for n := 2; n <= 9; n++ {
		after := owners(n)
		moved, share := 0, make([]int, n)
		for r := range after {
			share[after[r]]++
			if after[r] != before[r] {
				moved++
				if int(after[r]) != n-1 {
					t.Fatalf("n=%d: row %d moved to %d, which was there before", n, r, after[r])
				}
			}
			if after[r] != after[r/block*block] {
				t.Fatalf("row %d is not where its block is", r)
			}
		}
		if want := rows / n; math.Abs(float64(moved-want)) > 0.12*float64(want) {
			t.Errorf("n=%d: %d rows moved of %d", n, moved, rows)
		}
		for id, have := range share {
			if want := rows / n; math.Abs(float64(have-want)) > 0.15*float64(want) {
				t.Errorf("n=%d: server %d has %d rows of %d", n, id, have, rows)
			}
		}
		before = after
	}
}

// TestShardsAreEven: the busiest of eight servers has not half as much again as the mean,
// of a table of small rows and of a large weight.
func TestShardsAreEven(t *testing.T) {
	for _, p := range []*distrib.Param{{Rows: 10_000, Cols: 40}, {Rows: 4096, Cols: 4096}} {
		s := bound(t, &distrib.Shards{}, viewOf(8), p)
		rows := make([]int, 8)
		for r := range int32(p.Rows) {
			id, _ := s.Owner(distrib.Ref{Row: r, N: 1})
			rows[id]++
		}
		if most := slices.Max(rows); most > p.Rows/8*3/2 {
			t.Errorf("%d x %d: servers have %v rows", p.Rows, p.Cols, rows)
		}
	}
}

// TestShardsKnowNodesByAddress: who is numbered anew keeps what it has.
func TestShardsKnowNodesByAddress(t *testing.T) {
	p := &distrib.Param{Rows: 500, Cols: 64 << 10}
	v := viewOf(5)
	a := bound(t, &distrib.Shards{}, v, p)
	w := viewOf(5)
	for i := range w.Nodes {
		w.Nodes[i].Addr = v.Nodes[(i+2)%5].Addr
	}
	b := bound(t, &distrib.Shards{}, w, p)
	for r := range p.Rows {
		was, _ := a.Owner(distrib.Ref{Row: int32(r)})
		is, _ := b.Owner(distrib.Ref{Row: int32(r)})
		if v.Nodes[was].Addr != w.Nodes[is].Addr {
			t.Fatalf("row %d moved from %s to %s", r, v.Nodes[was].Addr, w.Nodes[is].Addr)
		}
	}
}

// TestShardsSplit: parts are in order, without gaps, and each is its owner's; all nodes
// agree.
func TestShardsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "cols")
		ps := []*distrib.Param{{Rows: 3, Cols: 7}, {Rows: rows, Cols: cols}}
		v := viewOf(rapid.IntRange(1, 5).Draw(t, "nodes"))
		v.Nodes[0].Roles = []string{"worker"}
		if len(v.Nodes) == 1 {
			v.Nodes[0].Roles = []string{"server"}
		}
		s := bound(t, &distrib.Shards{Block: rapid.IntRange(1, 100).Draw(t, "block")}, v, ps...)
		from := int32(rapid.IntRange(0, rows-1).Draw(t, "row"))
		n := rapid.IntRange(1, rows-int(from)).Draw(t, "n")
		r := distrib.Ref{Param: 1, Row: from, N: int32(n)}
		next, last := r.Row, distrib.NodeID(-1)
		s.Split(r, func(part distrib.Ref, owner distrib.NodeID) {
			if part.Param != 1 || part.Row != next || part.N < 1 || owner == last {
				t.Fatalf("part %+v of %d after row %d of %d", part, owner, next, last)
			}
			for row := part.Row; row < part.Row+part.N; row++ {
				if id, ok := s.Owner(distrib.Ref{Param: 1, Row: row}); !ok || id != owner {
					t.Fatalf("row %d is %d's, not %d's", row, id, owner)
				}
			}
			if dests := s.Dests(nil, 3, part, 9); !slices.Equal(dests, []distrib.NodeID{owner}) {
				t.Fatalf("%v get updates of %d's rows", dests, owner)
			}
			next, last = part.Row+part.N, owner
		})
		if next != r.Row+r.N {
			t.Fatalf("parts of %+v end at %d", r, next)
		}
		if len(v.Nodes) > 1 {
			if id, _ := s.Owner(r); id == 0 {
				t.Fatal("a worker owns rows")
			}
		}
	})
}

func TestShardsNeedAServer(t *testing.T) {
	v := viewOf(2)
	v.Nodes[0].Roles, v.Nodes[1].Roles = []string{"worker"}, []string{"worker"}
	err := (&distrib.Shards{}).Bind(v, nil)
	if err == nil || !strings.Contains(err.Error(), "none of 2 nodes is a server") {
		t.Error(err)
	}
	err = (&distrib.Shards{Tree: &distrib.Trees{Degree: 1, Depth: 1}}).Bind(viewOf(4), nil)
	if err == nil || !strings.Contains(err.Error(), "reach 1 workers, not 4") {
		t.Error(err)
	}
}

// TestSumsReachEveryWorker, flat or along trees, from every server.
func TestSumsReachEveryWorker(t *testing.T) {
	for _, tree := range []*distrib.Trees{nil, {}, {Shared: true}, {Degree: 2, Depth: 4}} {
		v := viewOf(13)
		v.Nodes[12].Roles = []string{"server"}
		s := bound(t, &distrib.Shards{Tree: tree}, v, &distrib.Param{Rows: 3, Cols: 3})
		for _, root := range nodeIDs(0, 13) {
			got := map[distrib.NodeID]int{}
			for queue := []distrib.NodeID{root}; len(queue) > 0; queue = queue[1:] {
				for _, kid := range s.Children(nil, root, queue[0]) {
					got[kid]++
					queue = append(queue, kid)
				}
			}
			for _, w := range nodeIDs(0, 12) {
				if want := 1; w != root && got[w] != want || w == root && got[w] != 0 {
					t.Errorf("%+v: worker %d gets %d copies from %d", tree, w, got[w], root)
				}
			}
		}
	}
}

// hopsOf is how many hops each of n workers is from the first, -1 if there is no way.
func hopsOf(top distrib.Topology, n int) (hops []int) {
	for range n {
		hops = append(hops, -1)
	}
	hops[0] = 0
	for queue := []distrib.NodeID{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, to := range top.Dests(nil, at, distrib.Ref{}, 0) {
			if hops[to] < 0 {
				hops[to] = hops[at] + 1
				queue = append(queue, to)
			}
		}
	}
	return hops
}

// TestPartialTopologiesConnect all, at every size, with so many hops.
func TestPartialTopologiesConnect(t *testing.T) {
	farthest := map[string]map[int]int{}
	for n := 1; n <= 130; n++ {
		for name, top := range map[string]distrib.Topology{"halton": &distrib.Halton{},
			"exponential": &distrib.Exponential{}, "ring": &distrib.Ring{}} {
			bound(t, top, viewOf(n))
			hops := hopsOf(top, n)
			if slices.Contains(hops, -1) {
				t.Errorf("%s: %d workers are not connected", name, n)
			}
			if farthest[name] == nil {
				farthest[name] = map[int]int{}
			}
			farthest[name][n] = slices.Max(hops)
			for _, id := range nodeIDs(0, n) {
				dests := top.Dests(nil, id, distrib.Ref{}, 0)
				slices.Sort(dests)
				if len(slices.Compact(slices.Clone(dests))) != len(dests) ||
					slices.Contains(dests, id) {
					t.Errorf("%s: of %d, worker %d sends to %v", name, n, id, dests)
				}
			}
			if _, owned := top.Owner(distrib.Ref{}); owned {
				t.Errorf("%s has owners", name)
			}
		}
		if most := int(math.Ceil(math.Log2(float64(n)))); farthest["exponential"][n] > most {
			t.Errorf("exponential: %d hops of %d workers", farthest["exponential"][n], n)
		}
	}
	for name, want := range map[string][2]int{"halton": {9, 16}, "exponential": {6, 7},
		"ring": {63, 127}} {
		if got := [2]int{farthest[name][64], farthest[name][128]}; got != want {
			t.Errorf("%s: %v hops of 64 and 128 workers, want %v", name, got, want)
		}
	}
}

// TestHaltonAsPublished: of six workers, worker i sends to i+3 and i+1, which is the
// survey's way 1, 2, 5, 6.
func TestHaltonAsPublished(t *testing.T) {
	top := bound(t, &distrib.Halton{}, viewOf(6))
	for id, want := range map[distrib.NodeID][]distrib.NodeID{0: {3, 1}, 1: {4, 2}, 4: {1, 5}} {
		if got := top.Dests(nil, id, distrib.Ref{}, 0); !slices.Equal(got, want) {
			t.Errorf("worker %d sends to %v, want %v", id, got, want)
		}
	}
}

// TestRandomMulticast: Q others in each clock, other ones each time, all alike in the end,
// and the same for all parameters.
func TestRandomMulticast(t *testing.T) {
	const n, q, clocks = 9, 3, 4000
	top := bound(t, &distrib.RandomMulticast{Q: q, Seed: 5}, viewOf(n))
	count := make([]int, n)
	for c := range distrib.Clock(clocks) {
		dests := top.Dests(nil, 4, distrib.Ref{}, c)
		if again := top.Dests(nil, 4, distrib.Ref{Param: 2}, c); !slices.Equal(dests, again) {
			t.Fatal("parameters go different ways")
		}
		slices.Sort(dests)
		if len(slices.Compact(dests)) != q || slices.Contains(dests, 4) {
			t.Fatalf("worker 4 sends to %v", dests)
		}
		for _, d := range dests {
			count[d]++
		}
	}
	for id, have := range count {
		want := float64(clocks*q) / (n - 1)
		if id != 4 && math.Abs(float64(have)-want) > 0.08*want {
			t.Errorf("worker %d gets %d of %d messages", id, have, clocks)
		}
	}
	few := bound(t, &distrib.RandomMulticast{}, viewOf(3))
	if dests := few.Dests(nil, 0, distrib.Ref{}, 0); len(dests) != 2 {
		t.Errorf("of 3 workers one sends to %v", dests)
	}
}

// TestTurnsAndFixed: by turns a worker sends to all others equally often, in a circle, and to the
// same in every clock where they are fixed, so that each receives from as many.
func TestTurnsAndFixed(t *testing.T) {
	const n, q = 6, 2
	turns := bound(t, &distrib.TurnMulticast{Q: q}, viewOf(n))
	var order []distrib.NodeID
	for c := range distrib.Clock(5) {
		order = turns.Dests(order, 4, distrib.Ref{}, c)
	}
	if want := []distrib.NodeID{5, 0, 1, 2, 3, 5, 0, 1, 2, 3}; !slices.Equal(order, want) {
		t.Errorf("by turns worker 4 sends to %v, want %v", order, want)
	}
	fixed := bound(t, &distrib.FixedMulticast{Q: q}, viewOf(n))
	count := make([]int, n)
	for id := range distrib.NodeID(n) {
		dests := fixed.Dests(nil, id, distrib.Ref{}, 0)
		if again := fixed.Dests(nil, id, distrib.Ref{Param: 1}, 7); !slices.Equal(dests, again) {
			t.Errorf("worker %d sends to %v and then to %v", id, dests, again)
		}
		for _, d := range dests {
			count[d]++
		}
	}
	if slices.Min(count) != q || slices.Max(count) != q {
		t.Errorf("fixed: workers receive from %v others", count)
	}
	for _, top := range []distrib.Topology{&distrib.TurnMulticast{}, &distrib.FixedMulticast{}} {
		dests := bound(t, top, viewOf(3)).Dests(nil, 1, distrib.Ref{}, 9)
		slices.Sort(dests)
		if !slices.Equal(dests, []distrib.NodeID{0, 2}) {
			t.Errorf("%T of 3 workers: one sends to %v", top, dests)
		}
	}
}

// TestAllAndNobody: broadcasting, with nodes that are no workers left out; and nothing.
func TestAllAndNobody(t *testing.T) {
	v := viewOf(4)
	v.Nodes[2].Roles = []string{"server"}
	all := bound(t, &distrib.All{}, v).Dests(nil, 1, distrib.Ref{}, 0)
	if !slices.Equal(all, []distrib.NodeID{0, 3}) {
		t.Errorf("worker 1 sends to %v", all)
	}
	if got := bound(t, &distrib.Local{}, v).Dests(nil, 1, distrib.Ref{}, 0); len(got) > 0 {
		t.Errorf("local updates go to %v", got)
	}
}
