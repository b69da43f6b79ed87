package bound

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// key is a value, or a part of a leaf, as it is on the device.
type key struct {
	value     graph.Value
	off, size int64
}

// simulation carries out one plan, of which it makes up the rest as it goes.
type simulation struct {
	p      *program.Program
	m      prices
	draw   *rand.Rand
	budget int64
	free   int64      // bytes, at the time mem
	frees  [][2]int64 // time and bytes that will be free, by time

	compute, in, out, host, mem int64 // until when engines and memory are busy

	ready  map[key]int64 // of what is on the device, since when
	busy   map[key]int64 // until when it is read there
	copied map[key]int64 // of what is on the host, since when
	uses   map[key][]int // positions, rising
	fixed  map[graph.NodeID]bool
	log    strings.Builder
}

func up(bytes int64) int64 { return (bytes + 63) / 64 * 64 }

func newSimulation(p *program.Program, m prices, budget int64, seed uint64) *simulation {
	s := &simulation{p: p, m: m, draw: rand.New(rand.NewPCG(seed, 1)), budget: budget, free: budget,
		ready: map[key]int64{}, busy: map[key]int64{}, copied: map[key]int64{},
		uses: map[key][]int{}, fixed: map[graph.NodeID]bool{}}
	resident := s.draw.IntN(3) // none, some, all
	for _, n := range p.Graph.Nodes() {
		if n.Kind != graph.KindVariable {
			continue
		}
		s.fixed[n.ID] = p.Place == nil || resident == 2 || resident == 1 && s.draw.IntN(2) == 0
	}
	for _, n := range p.Graph.Nodes() {
		if n.Kind == graph.KindVariable {
			for _, w := range p.Graph.Writers(n.ID) { // together
				s.fixed[n.ID] = s.fixed[w.In[0].Node.ID]
			}
			if s.fixed[n.ID] {
				s.free -= up(n.Out[0].Bytes())
			}
		}
	}
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		if n.Executes() && !s.onHost(n) {
			for _, k := range s.operands(n) {
				s.uses[k] = append(s.uses[k], pos)
			}
		}
	}
	return s
}

// onHost reports whether an operation is executed there: one that leads to an update of
// what is there.
func (s *simulation) onHost(n *graph.Node) bool {
	if s.p.Place == nil || s.p.Place[n.ID] != space.Host {
		return false
	}
	if n.Kind == graph.KindUpdate {
		return !s.fixed[n.In[0].Node.ID]
	}
	for _, m := range s.p.Graph.Nodes() {
		for _, v := range m.In {
			if v.Node == n && s.onHost(m) {
				return true
			}
		}
	}
	return false
}

// operands are what an operation needs to have copied or made, each once.
func (s *simulation) operands(n *graph.Node) []key {
	var out []key
	for _, v := range n.In {
		root, off := v.Resolve()
		k := key{root, 0, root.Type().Bytes()}
		if root.Node.Kind == graph.KindVariable {
			if s.fixed[root.Node.ID] {
				continue
			}
			k.off, k.size = off, v.Type().Bytes()
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// next is the position of the next use of a value, or a large number.
func (s *simulation) next(k key, pos int) int {
	for _, u := range s.uses[k] {
		if u >= pos {
			return u
		}
	}
	return 1 << 30
}

// step carries out a plan; ok is false if it leads nowhere.
func (s *simulation) step() (time.Duration, bool) {
	if s.free < 0 {
		return 0, false
	}
	for pos, id := range s.p.Order {
		n := s.p.Graph.Node(id)
		switch {
		case !n.Executes():
		case s.onHost(n):
			s.runHost(n)
		default:
			if !s.run(n, pos, nil) {
				return 0, false
			}
			if s.draw.IntN(2) == 0 {
				s.prefetch(pos + 1)
			}
		}
	}
	return time.Duration(max(s.compute, s.in, s.out, s.host)), true
}

func (s *simulation) runHost(n *graph.Node) {
	start := s.host
	for _, v := range n.In {
		root, _ := v.Resolve()
		if k := (key{root, 0, root.Type().Bytes()}); root.Node.Kind == graph.KindCompute {
			start = max(start, s.copied[k])
		}
	}
	s.host = start + int64(s.m.Time(n, space.Host))
	for i := range n.Out {
		s.copied[key{n.Value(i), 0, n.Out[i].Bytes()}] = s.host
	}
}

// run executes a node on the device, again if its results are there already.
func (s *simulation) run(n *graph.Node, pos int, keep []key) bool {
	operands := s.operands(n)
	keep = append(slices.Clone(keep), operands...)
	for i := range n.Out {
		keep = append(keep, key{n.Value(i), 0, n.Out[i].Bytes()})
	}
	for _, k := range operands {
		if !s.fetch(k, pos, keep) {
			return false
		}
	}
	need := up(n.Cost().Scratch)
	var makes []key
	for i, t := range n.Out {
		if k := (key{n.Value(i), 0, t.Bytes()}); !s.there(k) {
			makes = append(makes, k)
			need += up(t.Bytes())
		}
	}
	over := s.over(n, pos, keep[:len(keep)-len(n.Out)-len(operands)], makes)
	if over != nil {
		need -= up(over.size)
	}
	if !s.alloc(need, pos, keep) {
		return false
	}
	start := max(s.compute, s.mem)
	for _, k := range operands {
		start = max(start, s.ready[k])
	}
	if over != nil {
		start = max(start, s.busy[*over])
		delete(s.ready, *over)
	}
	s.compute = start + int64(s.m.Time(n, space.Device))
	fmt.Fprintf(&s.log, "%d run %s until %d\n", start, n.Name, s.compute)
	s.release(up(n.Cost().Scratch), s.compute)
	s.settle(n, pos, operands, makes, keep)
	return true
}

// settle copies results that are wanted on the host, and drops what is not read again.
func (s *simulation) settle(n *graph.Node, pos int, operands, makes, keep []key) {
	for _, k := range makes {
		s.ready[k], s.busy[k] = s.compute, s.compute
		if s.copied[k] == 0 && s.wanted(k) {
			s.copyOut(k)
		}
	}
	for _, k := range operands {
		if s.there(k) {
			s.busy[k] = max(s.busy[k], s.compute)
		}
	}
	own := len(operands) + len(n.Out)
	for _, k := range slices.Concat(operands, makes) {
		if s.there(k) && s.next(k, pos+1) == 1<<30 && !slices.Contains(keep[:len(keep)-own], k) {
			s.drop(k)
		}
	}
}

func (s *simulation) there(k key) bool { _, ok := s.ready[k]; return ok }

// wanted reports whether a value is fetched or read on the host.
func (s *simulation) wanted(k key) bool {
	for _, v := range s.p.Fetches {
		if root, _ := v.Resolve(); root == k.value {
			return true
		}
	}
	for _, n := range s.p.Graph.Nodes() {
		if n.Executes() && s.p.Live[n.ID] && s.onHost(n) {
			for _, v := range n.In {
				if root, _ := v.Resolve(); root == k.value {
					return true
				}
			}
		}
	}
	return false
}

// over is an operand whose bytes the first result takes over.
func (s *simulation) over(n *graph.Node, pos int, keep, makes []key) *key {
	op, ok := n.Op.(graph.InPlacer)
	if !ok || len(n.Out) == 0 || len(makes) == 0 || makes[0].value != n.Value(0) {
		return nil
	}
	for _, i := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[i].Resolve()
		k := key{root, 0, root.Type().Bytes()}
		times := 0
		for _, v := range n.In {
			if r, _ := v.Resolve(); r == root {
				times++
			}
		}
		movable := root.Node.Kind == graph.KindCompute || root.Node.Kind == graph.KindInput
		if movable && times == 1 && !slices.Contains(keep, k) &&
			(s.next(k, pos+1) == 1<<30 || s.draw.IntN(4) == 0) {
			return &k
		}
	}
	return nil
}

// fetch brings a value to the device.
func (s *simulation) fetch(k key, pos int, keep []key) bool {
	if s.there(k) {
		return true
	}
	_, onHost := s.copied[k]
	leaf := k.value.Node.Leaf()
	if !leaf && (!onHost || s.draw.IntN(4) == 0) {
		return s.run(k.value.Node, pos, keep)
	}
	if !s.alloc(up(k.size), pos, keep) {
		return false
	}
	s.copyIn(k)
	return true
}

func (s *simulation) copyIn(k key) {
	start := max(s.in, s.mem, s.copied[k])
	s.in = start + int64(s.m.Copy(space.Host, space.Device, k.size))
	s.ready[k], s.busy[k] = s.in, s.in
	fmt.Fprintf(&s.log, "%d in %s until %d\n", start, k.value, s.in)
}

func (s *simulation) copyOut(k key) {
	start := max(s.out, s.ready[k])
	s.out = start + int64(s.m.Copy(space.Device, space.Host, k.size))
	s.copied[k], s.busy[k] = s.out, max(s.busy[k], s.out)
	fmt.Fprintf(&s.log, "%d out %s until %d\n", start, k.value, s.out)
}

// prefetch copies what is needed soon, if there is room for it now.
func (s *simulation) prefetch(pos int) {
	var soon []key
	for k := range s.uses {
		_, onHost := s.copied[k]
		if n := s.next(k, pos); n < pos+4 && !s.there(k) && (k.value.Node.Leaf() || onHost) {
			soon = append(soon, k)
		}
	}
	slices.SortFunc(soon, func(x, y key) int {
		return cmp.Or(s.next(x, pos)-s.next(y, pos), int(x.value.Node.ID-y.value.Node.ID),
			int(x.off-y.off))
	})
	for _, k := range soon {
		if s.room() >= up(k.size) && s.draw.IntN(3) > 0 {
			s.alloc(up(k.size), pos, nil)
			s.copyIn(k)
		}
	}
}

// room is what is free, or will be without more decisions.
func (s *simulation) room() int64 {
	room := s.free
	for _, f := range s.frees {
		room += f[1]
	}
	return room
}

// alloc takes bytes, and waits for those that are to be free; if there are not enough,
// something leaves.
func (s *simulation) alloc(bytes int64, pos int, keep []key) bool {
	for s.room() < bytes {
		if !s.evict(pos, keep) {
			return false
		}
	}
	for s.free < bytes {
		s.free += s.frees[0][1]
		s.mem = max(s.mem, s.frees[0][0])
		s.frees = s.frees[1:]
	}
	s.free -= bytes
	return true
}

// release notes that bytes will be free.
func (s *simulation) release(bytes, at int64) {
	i, _ := slices.BinarySearchFunc(s.frees, at, func(f [2]int64, t int64) int {
		return int(f[0] - t)
	})
	s.frees = slices.Insert(s.frees, i, [2]int64{at, bytes})
}

func (s *simulation) drop(k key) {
	delete(s.ready, k)
	s.release(up(k.size), s.busy[k])
}

// evict drops something, mostly what is needed last; it may have to be copied out.
func (s *simulation) evict(pos int, keep []key) bool {
	var victims []key
	for k := range s.ready {
		if !slices.Contains(keep, k) {
			victims = append(victims, k)
		}
	}
	if len(victims) == 0 {
		return false
	}
	slices.SortFunc(victims, func(x, y key) int {
		return cmp.Or(s.next(y, pos)-s.next(x, pos), int(x.value.Node.ID-y.value.Node.ID),
			int(x.off-y.off), x.value.Index-y.value.Index)
	})
	k := victims[0]
	if s.draw.IntN(3) == 0 {
		k = victims[s.draw.IntN(len(victims))]
	}
	_, onHost := s.copied[k]
	if !k.value.Node.Leaf() && !onHost && s.next(k, pos) < 1<<30 && s.draw.IntN(3) > 0 {
		s.copyOut(k)
	}
	s.drop(k)
	return true
}
