package distrib_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

func nodeIDs(from, n int) (ids []distrib.NodeID) {
	for i := range n {
		ids = append(ids, distrib.NodeID(from+i))
	}
	return ids
}

// racks is the paper's cost, of nodes in racks of 4 and rows of 4 racks.
func racks(a, b distrib.NodeID) float64 {
	switch {
	case a/4 == b/4:
		return 0.1
	case a/16 == b/16:
		return 0.5
	}
	return 1
}

// checkTree: all workers but the root are there once, within the bounds.
func checkTree(t interface{ Fatalf(string, ...any) }, tree *distrib.Tree, workers []distrib.NodeID,
	rootDegree, degree, depth int) {
	above := map[distrib.NodeID]int{}
	count := func(from distrib.NodeID, most int) {
		kids := tree.Children(nil, from)
		if len(kids) > most {
			t.Fatalf("node %d has %d below it", from, len(kids))
		}
		for _, k := range kids {
			above[k]++
		}
	}
	count(tree.Root, rootDegree)
	for _, w := range workers {
		if w != tree.Root {
			count(w, degree)
		}
	}
	for _, w := range workers {
		want := 1
		if w == tree.Root {
			want = 0
		}
		if above[w] != want {
			t.Fatalf("worker %d is below %d nodes in the tree of %d", w, above[w], tree.Root)
		}
	}
	if d := tree.Depth(); d > depth {
		t.Fatalf("depth %d", d)
	}
}

// TestTreesSpan: any number of workers, servers among them or not, costs or not.
func TestTreesSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := distrib.Trees{Degree: rapid.IntRange(1, 5).Draw(t, "degree"),
			Depth: rapid.IntRange(1, 4).Draw(t, "depth"), Shared: rapid.Bool().Draw(t, "shared")}
		if rapid.Bool().Draw(t, "costs") {
			s.Cost = racks
		}
		n := rapid.IntRange(1, 40).Draw(t, "workers")
		workers := nodeIDs(0, n)
		servers := nodeIDs(rapid.IntRange(0, n).Draw(t, "first"), rapid.IntRange(1, 5).Draw(t, "p"))
		trees, err := s.Build(servers, workers)
		if err != nil {
			if most := reach(s); most >= n {
				t.Fatalf("%v: %d can be reached", err, most)
			}
			return
		}
		if len(trees) != len(servers) {
			t.Fatalf("%d trees", len(trees))
		}
		for _, root := range servers {
			most := s.Degree
			if s.Shared {
				most *= 2 // a server that is a worker has two roles
			}
			checkTree(t, trees[root], workers, most, s.Degree, s.Depth)
		}
	})
}

func reach(s distrib.Trees) (total int) {
	level := 1
	for range s.Depth {
		level *= s.Degree
		total += level
	}
	return total
}

func TestTreesSayHowFarTheyReach(t *testing.T) {
	for _, c := range []struct {
		s    distrib.Trees
		n    int
		want string
	}{
		{distrib.Trees{Depth: 3}, 156, "trees of degree 5 and depth 3 reach 155 workers, not 156"},
		{distrib.Trees{Degree: 1, Depth: 2}, 3, "degree 1 and depth 2 reach 2 workers, not 3"},
		{distrib.Trees{Degree: -1}, 3, "none may be negative"},
		{distrib.Trees{Alpha: -1}, 3, "none may be negative"},
		{distrib.Trees{}, 156, ""}, // deeper
	} {
		_, err := c.s.Build(nodeIDs(200, 1), nodeIDs(0, c.n))
		if c.want == "" && err != nil || err != nil && !strings.Contains(err.Error(), c.want) ||
			err == nil && c.want != "" {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestBroadcastTimes are G7: how many times S/B until n workers have what p servers have,
// by pulling, one shared tree and a tree for each server.
func TestBroadcastTimes(t *testing.T) {
	for _, c := range []struct {
		n, p                int
		pull, shared, dealt float64
	}{
		{40, 10, 4, 3, 1},
		{64, 8, 8, 3, 1}, // with a degree of 4; 1.25 with 5
		{16, 4, 4, 2, 1},
	} {
		workers, servers := nodeIDs(0, c.n), nodeIDs(c.n, c.p)
		for _, k := range []struct {
			name string
			s    distrib.Trees
			want float64
		}{
			{"pull", distrib.Trees{Degree: c.n, Depth: 1}, c.pull},
			{"shared", distrib.Trees{Shared: true}, c.shared},
			{"dealt", distrib.Trees{}, c.dealt},
			{"dealt by racks", distrib.Trees{Cost: racks}, c.dealt},
		} {
			trees, err := k.s.Build(servers, workers)
			if err != nil {
				t.Fatal(err)
			}
			if got := distrib.BroadcastTime(trees); math.Abs(got-k.want) > 1e-9 {
				t.Errorf("n=%d p=%d %s: %.2f S/B, want %.2f", c.n, c.p, k.name, got, k.want)
			}
		}
	}
}

// leastTree is the cost of the best tree, by dynamic programming over subsets: best[v][S]
// with so many levels left is the least cost of the tree of v that has S below it.
func leastTree(n, root, degree, depth int, alpha float64, rootCost float64,
	cost func(a, b distrib.NodeID) float64) float64 {
	full := 1<<n - 1
	// forest(v, S, k, h): S split into at most k trees below v, of h levels.
	memo := map[[4]int]float64{}
	var below func(v, set, k, h int) float64
	whole := func(v, set, h int) float64 {
		if set == 0 {
			return alpha
		}
		return below(v, set, degree, h)
	}
	below = func(v, set, k, h int) float64 {
		if set == 0 {
			return 0
		}
		if k == 0 || h == 0 {
			return math.Inf(1)
		}
		key := [4]int{v, set, k, h}
		if c, ok := memo[key]; ok {
			return c
		}
		least := math.Inf(1)
		low := set & -set
		for part := set; part > 0; part = (part - 1) & set {
			if part&low == 0 {
				continue
			}
			rest := below(v, set&^part, k-1, h)
			for heads := part; heads > 0; heads &= heads - 1 {
				u := bits.TrailingZeros(uint(heads))
				edge := rootCost
				if v < n {
					edge = cost(distrib.NodeID(v), distrib.NodeID(u))
				}
				least = min(least, rest+edge+whole(u, part&^(1<<u), h-1))
			}
		}
		memo[key] = least
		return least
	}
	return below(n, full, root, depth)
}

// TestSharedTreesAreNearTheBest: of a few workers in random places, beside the best tree
// of all.
func TestSharedTreesAreNearTheBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 8))
	worst, sum := 1.0, 0.0
	const cases = 40
	for range cases {
		n := 4 + rng.IntN(4)
		place := make([]distrib.NodeID, n+1)
		for i := range place {
			place[i] = distrib.NodeID(rng.IntN(40))
		}
		cost := func(a, b distrib.NodeID) float64 { return racks(place[a], place[b]) }
		s := distrib.Trees{Degree: 2, Depth: 3, Cost: cost, Shared: true}
		workers := nodeIDs(0, n)
		// One server at place n; an edge from it costs the same wherever it leads.
		s.Cost = func(a, b distrib.NodeID) float64 {
			if int(a) == n {
				return 1
			}
			return cost(a, b)
		}
		trees, err := s.Build(nodeIDs(n, 1), workers)
		if err != nil {
			t.Fatal(err)
		}
		degree := 1
		if n > 6 {
			degree = 2
		}
		best := leastTree(n, 2, degree, 3, 0.1, 1, cost)
		got := trees[distrib.NodeID(n)].Cost
		if got < best-1e-9 {
			t.Fatalf("n=%d: cost %v is less than the least, %v", n, got, best)
		}
		worst, sum = max(worst, got/best), sum+got/best/cases
	}
	t.Logf("cost over the least: %.3f on average, %.3f at worst", sum, worst)
	if sum > 1.05 || worst > 1.35 {
		t.Errorf("cost over the least: %.3f on average, %.3f at worst", sum, worst)
	}
}

// TestTreesKeepToRacks: with costs, edges are near where they can be.
func TestTreesKeepToRacks(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	place := rng.Perm(64)
	cost := func(a, b distrib.NodeID) float64 {
		return racks(distrib.NodeID(place[a%64]), distrib.NodeID(place[b%64]))
	}
	for _, shared := range []bool{true, false} {
		s := distrib.Trees{Cost: cost, Shared: shared}
		trees, err := s.Build(nodeIDs(64, 1), nodeIDs(0, 64))
		if err != nil {
			t.Fatal(err)
		}
		// Blind edges cost 0.86 on average. Who must relay is given where roles are dealt.
		most := 0.65
		if shared {
			most = 0.4
		}
		if c := trees[64].Cost; c > 64*most {
			t.Errorf("shared %v: 64 edges cost %.1f", shared, c)
		}
	}
}

// TestRelaysAreDealtRound: no worker relays in two trees more than another.
func TestRelaysAreDealtRound(t *testing.T) {
	trees, err := distrib.Trees{}.Build(nodeIDs(0, 16), nodeIDs(0, 16))
	if err != nil {
		t.Fatal(err)
	}
	roles := make([]int, 16)
	for root, tree := range trees {
		for _, w := range nodeIDs(0, 16) {
			if w != root && len(tree.Children(nil, w)) > 0 {
				roles[w]++
			}
		}
	}
	for w, n := range roles {
		if n < 1 || n > 3 { // 2 in each of 16 trees
			t.Errorf("worker %d relays in %d trees: %v", w, n, roles)
		}
	}
}

func BenchmarkTrees(b *testing.B) {
	place := rand.New(rand.NewPCG(6, 6)).Perm(160)
	cost := func(a, b distrib.NodeID) float64 {
		return racks(distrib.NodeID(place[a]), distrib.NodeID(place[b]))
	}
	for _, s := range []distrib.Trees{{}, {Shared: true}, {Cost: cost},
		{Cost: cost, Shared: true}} {
		b.Run(fmt.Sprintf("n=155/shared=%v/racks=%v", s.Shared, s.Cost != nil), func(b *testing.B) {
			for range b.N {
				if _, err := s.Build(nodeIDs(155, 1), nodeIDs(0, 155)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
