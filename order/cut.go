package order

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
)

// longest is how many operations a partition has at most.
const longest = 1024

// Cut cuts the order of a program into partitions by bytes, not by number: what two
// neighbouring partitions touch is at most window bytes together, with what is fixed,
// and of all such cuts those are chosen over whose boundaries the fewest bytes live,
// together. It fills Part; the error names an operation that the window has no room for
// beside a partition before it.
//
// Where a partition may begin depends on how large the one before it is. So the best
// ways to cut what comes before a position are kept by the size of their last
// partition, each cheaper than all with a smaller one.
func Cut(window int64) pass.Pass {
	return pass.Pass{Name: "cut", Run: func(p *pass.Program) error {
		c := newCutter(p, window)
		for start := range p.Order {
			c.extend(start)
		}
		if len(c.ways[len(p.Order)]) == 0 {
			return c.refusal()
		}
		c.fill()
		return nil
	}}
}

// way is a way to cut what comes before a position.
type way struct {
	start  int   // of the last partition
	before int   // index of the way to cut what comes before that
	bytes  int64 // that the last partition touches
	cost   int64 // bytes over all boundaries
}

// cutter finds the best cuts.
type cutter struct {
	*Account
	p        *pass.Program
	window   int64
	boundary []int64 // by position: bytes that live from before it to it or after
	ways     [][]way // by end: bytes fall, costs rise
	seen     []int32 // by value: one more than the start for which it has been counted
}

func newCutter(p *pass.Program, window int64) *cutter {
	n := len(p.Order)
	c := &cutter{Account: NewAccount(p), p: p, boundary: make([]int64, n),
		ways: make([][]way, n+1), seen: make([]int32, p.Values())}
	c.window = window - c.Fixed
	c.ways[0] = []way{{}}
	s := c.begin()
	for i, id := range p.Order {
		c.boundary[i] = s.live - c.Fixed
		s.run(id)
	}
	return c
}

// extend finds the ways of which the last partition begins at a position.
func (c *cutter) extend(start int) {
	before, k := c.ways[start], 0
	var touched, aside int64
	for end := start + 1; end <= min(len(c.p.Order), start+longest); end++ {
		id := c.p.Order[end-1]
		touched += c.touches(id, int32(start+1))
		aside = max(aside, c.Scratch[id]+c.Staged[id])
		for k < len(before) && before[k].bytes+touched+aside > c.window {
			k++
		}
		if k == len(before) {
			return
		}
		c.add(end, way{start, k, touched + aside, before[k].cost + c.boundary[start]})
	}
}

// touches is what a node touches that has not been counted for a mark.
func (c *cutter) touches(id graph.NodeID, mark int32) int64 {
	if !c.Runs[id] {
		return 0
	}
	var bytes int64
	count := func(v int32) {
		if c.seen[v] != mark {
			c.seen[v] = mark
			bytes += c.Bytes[v]
		}
	}
	for _, v := range c.Reads[id] {
		count(v)
	}
	n := c.p.Graph.Node(id)
	for i := range n.Out {
		count(int32(c.p.ValueIndex(n.Value(i))))
	}
	return bytes
}

// add keeps a way, which has a smaller last partition than those that were found
// before it, unless one of these costs no more and is no larger.
func (c *cutter) add(end int, w way) {
	ways := c.ways[end]
	for len(ways) > 0 && ways[len(ways)-1].cost >= w.cost {
		ways = ways[:len(ways)-1]
	}
	if len(ways) == 0 || ways[len(ways)-1].bytes > w.bytes {
		ways = append(ways, w)
	}
	c.ways[end] = ways
}

// fill notes the cheapest way in Part.
func (c *cutter) fill() {
	p := c.p
	p.Part = make([]int32, p.Graph.Len())
	for i := range p.Part {
		p.Part[i] = -1
	}
	var starts []int
	for end, k := len(p.Order), 0; end > 0; {
		w := c.ways[end][k]
		starts = append(starts, w.start)
		end, k = w.start, w.before
	}
	slices.Reverse(starts)
	part := int32(-1)
	for i, id := range p.Order {
		if int(part)+1 < len(starts) && starts[part+1] == i {
			part++
		}
		p.Part[id] = part
	}
}

// refusal says where no way goes on.
func (c *cutter) refusal() error {
	end := len(c.p.Order)
	for len(c.ways[end]) == 0 {
		end--
	}
	return fmt.Errorf("%s and what is before it need more than %d bytes in two partitions",
		c.p.Graph.Node(c.p.Order[end]).Name, c.window+c.Fixed)
}
