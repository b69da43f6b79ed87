package fabric

import "slices"

// few is how many updates there may be for a partition to be improved step by step: of a few, any
// one counts, and there is time. [Ours.]
const few = 12

// improve looks for a partition whose last group arrives earlier, by moving one update at a time to
// another group, by exchanging two, and by exchanging groups' aggregators, until none of that
// helps. Where delays are bounded the order stays.
func (g *grouping) improve(n *Network, c cutting) cutting {
	free := g.b.MaxDelay < 0
	if len(g.order) > few || g.b.groups() == 0 && !free {
		return c
	}
	s := &search{g: g, n: n, free: free, ways: waysOf(g.order, c)}
	s.end = s.cost(s.ways)
	for s.better() {
	}
	g.order, c = s.ways.cutting()
	return c
}

// ways is where each update of an order goes: first those that go directly, then groups.
type ways struct {
	groups [][]int // the first goes directly, and may be empty; the others are not
	via    []int   // of the groups but the first
}

func waysOf(order []int, c cutting) ways {
	w := ways{groups: [][]int{slices.Clone(order[:c.direct])}, via: slices.Clone(c.via)}
	at := c.direct
	for _, size := range c.groups {
		w.groups = append(w.groups, slices.Clone(order[at:at+size]))
		at += size
	}
	return w
}

func (w ways) clone() ways {
	out := ways{via: slices.Clone(w.via)}
	for _, g := range w.groups {
		out.groups = append(out.groups, slices.Clone(g))
	}
	return out
}

// cutting is the order and its partition, without empty groups.
func (w ways) cutting() (order []int, c cutting) {
	c.direct = len(w.groups[0])
	order = slices.Clone(w.groups[0])
	for i, g := range w.groups[1:] {
		if len(g) > 0 {
			order = append(order, g...)
			c.groups, c.via = append(c.groups, len(g)), append(c.via, w.via[i])
		}
	}
	return order, c
}

// search is a walk to better ones.
type search struct {
	g    *grouping
	n    *Network
	free bool // the order may change
	ways ways
	end  float64
}

// cost is when the last group arrives.
func (s *search) cost(w ways) float64 {
	m := s.n.mark()
	defer s.n.back(m)
	order, c := w.cutting()
	g := &grouping{b: s.g.b, order: order}
	return g.lay(s.n, c, c.direct+len(c.groups), nil)
}

// better takes the first step that helps, if there is one.
func (s *search) better() bool {
	s.spare()
	if s.free {
		return s.moves() || s.exchanges() || s.vias()
	}
	return s.borders() || s.vias()
}

// spare adds a group without updates for each aggregator that has none.
func (s *search) spare() {
	for a := range s.g.b.groups() {
		if !slices.Contains(s.ways.via, a) {
			s.ways.groups, s.ways.via = append(s.ways.groups, nil), append(s.ways.via, a)
		}
	}
}

// try takes a step if it helps.
func (s *search) try(change func(w *ways)) bool {
	w := s.ways.clone()
	change(&w)
	end := s.cost(w)
	if end >= s.end {
		return false
	}
	s.ways, s.end = w, end
	return true
}

// moves puts one update into another group, at any place.
func (s *search) moves() bool {
	for from, group := range s.ways.groups {
		for i, u := range group {
			for to := range s.ways.groups {
				for at := 0; at <= len(s.ways.groups[to]) && to != from; at++ {
					if s.try(func(w *ways) {
						w.groups[from] = slices.Delete(w.groups[from], i, i+1)
						w.groups[to] = slices.Insert(w.groups[to], at, u)
					}) {
						return true
					}
				}
			}
		}
	}
	return false
}

// exchanges puts two updates each in the other's place.
func (s *search) exchanges() bool {
	for a, first := range s.ways.groups {
		for i := range first {
			for b := a; b < len(s.ways.groups); b++ {
				for k := range s.ways.groups[b] {
					if (b > a || k > i) && s.try(func(w *ways) {
						w.groups[a][i], w.groups[b][k] = w.groups[b][k], w.groups[a][i]
					}) {
						return true
					}
				}
			}
		}
	}
	return false
}

// vias exchanges two groups' aggregators.
func (s *search) vias() bool {
	for a := range s.ways.via {
		for b := range a {
			if s.try(func(w *ways) { w.via[a], w.via[b] = w.via[b], w.via[a] }) ||
				s.free && s.try(func(w *ways) {
					w.via[a], w.via[b] = w.via[b], w.via[a]
					w.groups[a+1], w.groups[b+1] = w.groups[b+1], w.groups[a+1]
				}) {
				return true
			}
		}
	}
	return false
}

// borders moves the end of one group, or all of it, to the next one, and the other way.
func (s *search) borders() bool {
	for a := range len(s.ways.groups) - 1 {
		for size := range len(s.ways.groups[a]) + len(s.ways.groups[a+1]) + 1 {
			if s.try(func(w *ways) {
				both := slices.Concat(w.groups[a], w.groups[a+1])
				w.groups[a], w.groups[a+1] = slices.Clone(both[:size]), slices.Clone(both[size:])
			}) {
				return true
			}
		}
	}
	return false
}
