package fabric

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// grouping is algorithm 3 for one order.
type grouping struct {
	b     *Batch
	order []int
}

// best is how many updates go to the servers directly so that the last group arrives first. All
// numbers are tried, by as many goroutines as there are processors; one whose groups arrive later
// than those of another is given up.
func (g *grouping) best(n *Network) int {
	if g.b.groups() == 0 {
		return len(g.order)
	}
	workers := min(runtime.GOMAXPROCS(0), len(g.order)/sequential+1)
	tries := make([]try, workers)
	var bound atomic.Uint64
	bound.Store(math.Float64bits(math.Inf(1)))
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() { tries[w] = g.some(n.Clone(), w, workers, &bound) })
	}
	all.Wait()
	best := tries[0]
	for _, t := range tries[1:] {
		if t.before(best) {
			best = t
		}
	}
	return best.direct
}

// sequential is how many updates are no work for a second goroutine.
const sequential = 64

// try is how many go directly, and when the last group arrives then.
type try struct {
	direct int
	end    float64
}

// before orders by time, and the same time by fewer transfers to the servers.
func (t try) before(o try) bool {
	return t.end < o.end || t.end == o.end && t.direct < o.direct
}

// some tries every so many-th number, on a network of its own.
func (g *grouping) some(n *Network, first, stride int, bound *atomic.Uint64) try {
	best := try{len(g.order), math.Inf(1)}
	sent := 0.0 // when all that go directly have arrived
	for direct := 0; direct <= len(g.order); direct++ {
		if direct > 0 {
			sent = max(sent, g.b.reserve(n, &g.b.Updates[g.order[direct-1]]))
		}
		limit := math.Float64frombits(bound.Load())
		if sent > limit { // and later ones arrive later
			break
		}
		if direct%stride != first {
			continue
		}
		m := n.mark()
		t := try{direct, g.assign(n, direct, sent, limit, nil)}
		n.back(m)
		if t.before(best) {
			best = t
			lower(bound, t.end)
		}
	}
	return best
}

// lower makes a bound no higher than a time.
func lower(bound *atomic.Uint64, to float64) {
	for {
		old := bound.Load()
		if math.Float64frombits(old) <= to || bound.CompareAndSwap(old, math.Float64bits(to)) {
			return
		}
	}
}

// assign puts the updates from one on into groups, and is when the last group arrives; it gives up
// when that is after a limit. What it reserves it tells, if somebody wants to know.
func (g *grouping) assign(n *Network, from int, busy, limit float64, tell *teller) float64 {
	groups := g.b.groups()
	for a := 0; from < len(g.order) && busy <= limit; a++ {
		begin, last := from, 0.0 // last: when the group's last update has arrived
		for from < len(g.order) {
			u := &g.b.Updates[g.order[from]]
			end := g.gathered(n, u, a)
			if from > begin && a < groups-1 && end > busy {
				break
			}
			g.gather(n, from, a, tell)
			last = max(last, end)
			from++
		}
		busy = max(busy, g.forward(n, g.order[begin:from], a, last, tell))
	}
	return busy
}

// gathered is when all components of an update have arrived at a group's aggregators.
func (g *grouping) gathered(n *Network, u *Update, a int) float64 {
	end := 0.0
	for j, bytes := range u.Bytes {
		end = max(end, n.Finish(u.From, g.b.Aggregators[j][a], 0, bytes))
	}
	return end
}

// gather reserves that, of the update at a place of the order.
func (g *grouping) gather(n *Network, at, a int, tell *teller) (arrives float64) {
	u, ids := &g.b.Updates[g.order[at]], tell.ids(g, g.order[at:at+1])
	for j, bytes := range u.Bytes {
		to := g.b.Aggregators[j][a]
		start, end := n.Reserve(u.From, to, 0, bytes)
		arrives = max(arrives, end)
		tell.transfer(Transfer{ids, u.From, to, j, bytes, start, end})
	}
	return arrives
}

// forward reserves the way of a group's sum to the servers, when the last of it has arrived at the
// aggregators. It is when all of the sum has arrived.
func (g *grouping) forward(n *Network, group []int, a int, from float64, tell *teller) float64 {
	arrives := 0.0
	for j, server := range g.b.Servers {
		bytes := 0.0
		for _, i := range group {
			bytes = max(bytes, g.b.Updates[i].Bytes[j])
		}
		at := g.b.Aggregators[j][a]
		start, end := n.Reserve(at, server, from, bytes)
		arrives = max(arrives, end)
		tell.transfer(Transfer{tell.ids(g, group), at, server, j, bytes, start, end})
	}
	tell.group(Group{Updates: tell.ids(g, group), Arrives: arrives})
	return arrives
}

func (g *grouping) ids(group []int) []ID {
	ids := make([]ID, len(group))
	for i, u := range group {
		ids[i] = g.b.Updates[u].ID
	}
	return ids
}

// cutting is how an order is partitioned.
type cutting struct {
	direct int
	groups []int // how many updates each has
	via    []int // the number of its aggregators
}

// cut is the partition of algorithm 3.
func (g *grouping) cut(n *Network) cutting {
	c := cutting{direct: g.best(n)}
	m := n.mark()
	defer n.back(m)
	s := &Schedule{}
	g.assign(n, c.direct, g.direct(n, c.direct, nil), math.Inf(1), &teller{s})
	for a, x := range s.Groups {
		c.groups, c.via = append(c.groups, len(x.Updates)), append(c.via, a)
	}
	return c
}

// lay reserves the ways of a partition's first groups, those that go directly being groups of one,
// and is when all have arrived.
func (g *grouping) lay(n *Network, c cutting, count int, tell *teller) float64 {
	end := g.direct(n, min(c.direct, count), tell)
	for a := range count - c.direct {
		end = max(end, g.group(n, c, a, tell))
	}
	return end
}

// hold reserves what the last group needs before it leaves for the servers. The rest is reserved
// when somebody says when it leaves, at the earliest.
func (g *grouping) hold(n *Network, c cutting, tell *teller) (rest func(from float64)) {
	a := len(c.groups) - 1
	if a < 0 {
		return func(from float64) { g.send(n, c.direct-1, from, tell) }
	}
	group, gathered := g.collect(n, c, a, tell)
	return func(from float64) { g.forward(n, group, c.via[a], max(from, gathered), tell) }
}

// group reserves the ways of a group that is added up.
func (g *grouping) group(n *Network, c cutting, a int, tell *teller) float64 {
	group, gathered := g.collect(n, c, a, tell)
	return g.forward(n, group, c.via[a], gathered, tell)
}

// collect reserves the ways of a group to its aggregators, and is the group and when it is there.
func (g *grouping) collect(n *Network, c cutting, a int, tell *teller) (group []int, all float64) {
	at := c.direct
	for _, size := range c.groups[:a] {
		at += size
	}
	for i := at; i < at+c.groups[a]; i++ {
		all = max(all, g.gather(n, i, c.via[a], tell))
	}
	return g.order[at : at+c.groups[a]], all
}

// direct reserves the ways of the first updates to the servers, and is when they have arrived.
func (g *grouping) direct(n *Network, count int, tell *teller) float64 {
	busy := 0.0
	for i := range count {
		busy = max(busy, g.send(n, i, 0, tell))
	}
	return busy
}

// send reserves the way of the update at a place of the order to the servers.
func (g *grouping) send(n *Network, at int, from float64, tell *teller) (arrives float64) {
	u, ids := &g.b.Updates[g.order[at]], tell.ids(g, g.order[at:at+1])
	for j, bytes := range u.Bytes {
		start, end := n.Reserve(u.From, g.b.Servers[j], from, bytes)
		arrives = max(arrives, end)
		tell.transfer(Transfer{ids, u.From, g.b.Servers[j], j, bytes, start, end})
	}
	tell.group(Group{Updates: ids, Direct: true, Arrives: arrives})
	return arrives
}

// teller writes a schedule down; nil: nobody does.
type teller struct{ s *Schedule }

func (t *teller) transfer(x Transfer) {
	if t != nil {
		t.s.Transfers = append(t.s.Transfers, x)
	}
}

func (t *teller) ids(g *grouping, group []int) []ID {
	if t == nil {
		return nil
	}
	return g.ids(group)
}

func (t *teller) group(x Group) {
	if t != nil {
		t.s.Groups = append(t.s.Groups, x)
	}
}
