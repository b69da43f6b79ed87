package distrib

import "slices"

// problem is a tree that is looked for, over workers by number. Its places have a shape,
// who is below whom, and an occupant each: a swap of two workers leaves the shape alone.
type problem struct {
	ids    []NodeID
	alpha  float64
	uneven bool      // do edges cost different amounts?
	cost   []float64 // from worker i to j at i*n+j
	root   []float64

	up       []int   // the place above, -1: the root
	kids     [][]int // the places below
	depth    []int
	who      []int // a place's worker
	rootKids int
}

func newProblem(ids []NodeID, alpha float64, uneven bool, price func(a, b NodeID) float64,
	root func(NodeID) float64) *problem {
	n := len(ids)
	p := &problem{ids: ids, alpha: alpha, uneven: uneven, cost: make([]float64, n*n),
		root: make([]float64, n)}
	for i, from := range ids {
		p.root[i] = root(from)
		for j, to := range ids {
			p.cost[i*n+j] = price(from, to)
		}
	}
	return p
}

// edge is what the edge above worker w costs, if place up is there.
func (p *problem) edge(up, w int) float64 {
	if up < 0 {
		return p.root[w]
	}
	return p.cost[p.who[up]*len(p.ids)+w]
}

// attach puts a worker below a place.
func (p *problem) attach(w, up int) {
	at := len(p.who)
	p.who, p.up, p.kids = append(p.who, w), append(p.up, up), append(p.kids, nil)
	p.depth = append(p.depth, 1)
	p.hang(at, up)
}

func (p *problem) hang(at, up int) {
	p.up[at] = up
	if up < 0 {
		p.depth[at] = 1
		p.rootKids++
		return
	}
	p.depth[at] = p.depth[up] + 1
	p.kids[up] = append(p.kids[up], at)
}

// unhang takes a place that has none below from where it is.
func (p *problem) unhang(at int) {
	if up := p.up[at]; up >= 0 {
		p.kids[up] = slices.DeleteFunc(p.kids[up], func(k int) bool { return k == at })
	} else {
		p.rootKids--
	}
}

// open reports whether a place, -1 for the root, may have one more below it.
func (p *problem) open(up, root, degree, depth int) bool {
	if up < 0 {
		return p.rootKids < root
	}
	return len(p.kids[up]) < degree && p.depth[up] < depth
}

// leaf is what one more below a place adds to the price of leaves: nothing, if the place
// was one itself.
func (p *problem) leaf(up int) float64 {
	if up >= 0 && len(p.kids[up]) == 0 {
		return 0
	}
	return p.alpha
}

// grow attaches one worker after the other, the cheapest first; of equal ones the one
// whose place above has least below it, so that all have about as much.
func (p *problem) grow(root, degree, depth int) {
	n := len(p.ids)
	attached := make([]bool, n)
	for range n {
		bestW, bestUp, least, load := -1, -1, 0.0, 0
		for up := -1; up < len(p.who); up++ {
			if !p.open(up, root, degree, depth) {
				continue
			}
			below := p.load(up)
			for w := range n {
				if attached[w] {
					continue
				}
				c := p.edge(up, w) + p.leaf(up)
				if bestW < 0 || c < least || c == least && below < load {
					bestW, bestUp, least, load = w, up, c, below
				}
			}
		}
		p.attach(bestW, bestUp)
		attached[bestW] = true
	}
}

func (p *problem) load(up int) int {
	if up < 0 {
		return p.rootKids
	}
	return len(p.kids[up])
}

// skeleton attaches those that relay, level by level, and then the others, each where it
// costs least.
func (p *problem) skeleton(degree, depth int, relay []bool) {
	for _, relays := range []bool{true, false} {
		for w := range p.ids {
			if relay[w] == relays {
				p.attach(w, p.cheapest(w, degree, depth, relay, relays))
			}
		}
	}
}

// cheapest is where a worker costs least: of those that relay, as high as there is room.
func (p *problem) cheapest(w, degree, depth int, relay []bool, high bool) int {
	best, least, level := -2, 0.0, 0
	for up := -1; up < len(p.who); up++ {
		if !p.open(up, degree, degree, depth) || up >= 0 && !relay[p.who[up]] {
			continue
		}
		l := 0
		if high && up >= 0 {
			l = p.depth[up]
		}
		if c := p.edge(up, w); best == -2 || l < level || l == level && c < least {
			best, least, level = up, c, l
		}
	}
	return best
}

// passes is how often all pairs are looked at: what is left to gain after some is little.
const passes = 12

// improve swaps workers and moves leaves while that makes the tree cheaper. With relay,
// those that relay stay so, and the others.
func (p *problem) improve(root, degree, depth int, relay []bool) {
	if !p.uneven {
		return
	}
	for range passes {
		better := false
		for a := range p.who {
			for b := range a {
				if relay == nil || relay[p.who[a]] == relay[p.who[b]] {
					better = p.swap(a, b) || better
				}
			}
			better = p.move(a, root, degree, depth, relay) || better
		}
		if !better {
			return
		}
	}
}

// gain is the least that a change must save: less is rounding.
const gain = 1e-9

// swap exchanges the workers of two places if that saves something.
func (p *problem) swap(a, b int) bool {
	before := p.around(a, b)
	p.who[a], p.who[b] = p.who[b], p.who[a]
	if p.around(a, b) < before-gain {
		return true
	}
	p.who[a], p.who[b] = p.who[b], p.who[a]
	return false
}

// around is what the edges at two places cost.
func (p *problem) around(a, b int) float64 {
	sum := p.edge(p.up[a], p.who[a]) + p.edge(p.up[b], p.who[b])
	for _, k := range p.kids[a] {
		if k != b {
			sum += p.edge(a, p.who[k])
		}
	}
	for _, k := range p.kids[b] {
		if k != a {
			sum += p.edge(b, p.who[k])
		}
	}
	return sum
}

// move hangs a leaf where it costs least.
func (p *problem) move(at, root, degree, depth int, relay []bool) bool {
	if len(p.kids[at]) > 0 {
		return false
	}
	w, from := p.who[at], p.up[at]
	p.unhang(at)
	best, least := from, p.edge(from, w)+p.leaf(from)
	for up := -1; up < len(p.who); up++ {
		if up == at || !p.open(up, root, degree, depth) ||
			relay != nil && up >= 0 && !relay[p.who[up]] {
			continue
		}
		if c := p.edge(up, w) + p.leaf(up); c < least-gain {
			best, least = up, c
		}
	}
	p.hang(at, best)
	return best != from
}

// total is what the tree costs.
func (p *problem) total() (sum float64) {
	for at, w := range p.who {
		sum += p.edge(p.up[at], w)
		if len(p.kids[at]) == 0 {
			sum += p.alpha
		}
	}
	return sum
}

// tree names the workers.
func (p *problem) tree(root NodeID) *Tree {
	t := &Tree{Root: root, Cost: p.total(), kids: map[NodeID][]NodeID{}}
	for at, w := range p.who {
		above := root
		if p.up[at] >= 0 {
			above = p.ids[p.who[p.up[at]]]
		}
		t.kids[above] = append(t.kids[above], p.ids[w])
	}
	for _, kids := range t.kids {
		slices.Sort(kids)
	}
	return t
}
