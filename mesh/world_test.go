package mesh_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/mesh"
)

// target is what a step computes, of the first graph.
type target struct {
	fetches []graph.Value
	updates []graph.NodeID
}

// process evaluates what one rank of a mesh has of a graph, node by node in order of
// creation, updates last.
type process struct {
	res    *mesh.Result // nil: the graph itself, whole
	graph  *graph.Graph
	values map[graph.Value]tensor.View
	list   []*graph.Node // of a step
	next   int
	given  bool // the next one has been computed, and is an exchange
}

// world is the processes of a mesh, and a network: they meet at every exchange.
type world struct {
	g     *graph.Graph
	mesh  mesh.Mesh
	ranks []*process
	sent  map[graph.Fold]float64 // bytes, by all
	rows  map[string]int         // that exchanges of some have sent, in a step
	names map[string][]int       // of exchanges of a step, and the first ranks of their lines
}

// alone is a world in which one process has all of a graph.
func alone(g *graph.Graph) *world {
	w := &world{g: g, ranks: []*process{{graph: g}}}
	w.begin()
	return w
}

// over is the world of a graph that is divided over a mesh.
func over(g *graph.Graph, s mesh.Spec, targets []target) (*world, error) {
	var all target
	for _, t := range targets {
		all.fetches = append(all.fetches, t.fetches...)
		all.updates = append(all.updates, t.updates...)
	}
	w := &world{g: g, mesh: s.Mesh, sent: map[graph.Fold]float64{}}
	for rank := range s.Mesh.Processes() {
		r, err := mesh.Lower(g, s, rank, all.fetches, all.updates)
		if err != nil {
			return nil, err
		}
		w.ranks = append(w.ranks, &process{res: r, graph: r.Graph})
	}
	w.begin()
	return w, nil
}

// begin gives variables and constants their values: those of a variable follow from its
// name.
func (w *world) begin() {
	for _, p := range w.ranks {
		p.values = map[graph.Value]tensor.View{}
		for _, n := range p.graph.Nodes() {
			if n.Kind == graph.KindConstant {
				p.values[n.Value(0)] = n.Data
			}
		}
	}
	for _, n := range w.g.Variables() {
		w.set(n, initial(n))
	}
}

// initial is what a variable begins with.
func initial(n *graph.Node) tensor.View {
	x, h := tensor.New(n.Out[0]), fnv.New64()
	h.Write([]byte(n.Name))
	draw := rand.New(rand.NewPCG(h.Sum64(), 1))
	parts := n.Init.Each
	if parts == nil {
		parts = []graph.Init{n.Init}
	}
	all := x.F32()
	for i, init := range parts {
		for k := len(all) / len(parts) * i; k < len(all)/len(parts)*(i+1); k++ {
			all[k] = float32(init.Scale)
			if init.Dist != graph.Constant {
				all[k] *= float32(2*draw.Float64() - 1)
			}
		}
	}
	return x
}

// set sets a variable on all who have a piece of it.
func (w *world) set(n *graph.Node, x tensor.View) {
	for rank, p := range w.ranks {
		for _, o := range w.owned(p, n, rank) {
			p.values[p.variable(o.Name)] = tensor.View{Type: o.Type(x.Type),
				Data: slices.Clone(o.Of(x).Data)}
		}
	}
}

// owned are the pieces of a variable that a process has.
func (w *world) owned(p *process, n *graph.Node, rank int) (list []mesh.Owned) {
	if p.res == nil {
		return []mesh.Owned{{Piece: mesh.Piece{Name: n.Name}}}
	}
	for _, o := range p.res.Propagation.Owners(n.Name) {
		if slices.Contains(o.Ranks, rank) {
			list = append(list, o)
		}
	}
	return list
}

// get is a variable as it is; the error says where processes differ about it.
func (w *world) get(n *graph.Node) (tensor.View, error) {
	out, seen := tensor.New(n.Out[0]), map[string]string{}
	for rank, p := range w.ranks {
		for _, o := range w.owned(p, n, rank) {
			x := p.values[p.variable(o.Name)]
			if before, ok := seen[o.Name]; ok && before != string(x.Data) {
				return out, fmt.Errorf("%s differs at rank %d", o.Name, rank)
			}
			seen[o.Name] = string(x.Data)
			o.Into(out, x)
		}
	}
	return out, nil
}

func (p *process) variable(name string) graph.Value {
	for _, n := range p.graph.Variables() {
		if n.Name == name {
			return n.Value(0)
		}
	}
	panic("no variable " + name)
}

// step computes a target with some inputs, and returns what every process fetched.
func (w *world) step(t target, feeds map[graph.Value]tensor.View) (out [][]tensor.View, err error) {
	w.names, w.rows = map[string][]int{}, map[string]int{}
	for _, p := range w.ranks {
		if err := p.prepare(t); err != nil {
			return nil, err
		}
		for v, x := range feeds {
			if p.res != nil && p.res.Node(v.Node.ID) != nil {
				v = p.res.Node(v.Node.ID).Value(0)
			}
			p.values[v] = x
		}
	}
	for {
		for _, p := range w.ranks {
			if err := p.run(); err != nil {
				return nil, err
			}
		}
		done, err := w.meet()
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
	}
	for _, p := range w.ranks {
		var own []tensor.View
		for _, v := range t.fetches {
			if p.res != nil {
				v = p.res.Value(v)
			}
			own = append(own, p.values[v])
		}
		out = append(out, own)
	}
	return out, nil
}

// prepare lists the nodes of a step.
func (p *process) prepare(t target) error {
	var roots []graph.NodeID
	if p.res == nil {
		roots = slices.Clone(t.updates)
		for _, v := range t.fetches {
			roots = append(roots, v.Node.ID)
		}
	} else {
		kept, err := p.res.Kept(t.fetches, t.updates)
		if err != nil {
			return err
		}
		for _, v := range t.fetches {
			roots = append(roots, p.res.Value(v).Node.ID)
		}
		for _, id := range t.updates {
			kept = append(kept, p.res.Updates(id)...)
		}
		for _, n := range kept {
			roots = append(roots, n.ID)
		}
	}
	p.list, p.next, p.given = nil, 0, false
	live := p.graph.Ancestors(roots)
	for _, last := range []bool{false, true} {
		for _, n := range p.graph.Nodes() {
			if live[n.ID] && !n.Leaf() && (n.Kind == graph.KindUpdate) == last {
				p.list = append(p.list, n)
			}
		}
	}
	return nil
}

// run computes nodes until there is something to send, which it has done.
func (p *process) run() error {
	for ; p.next < len(p.list); p.next++ {
		n := p.list[p.next]
		if err := p.compute(n); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if _, p.given = n.Gives(); p.given {
			return nil
		}
	}
	return nil
}

func (p *process) compute(n *graph.Node) error {
	c := kernel.Call{Scratch: tensor.New(tensor.Of(tensor.U8, int(n.Cost().Scratch))).Data}
	for _, v := range n.In {
		x, ok := p.values[v]
		if !ok {
			return fmt.Errorf("operand %s has no value", v)
		}
		c.In = append(c.In, x)
	}
	if view, ok := n.Op.(graph.Viewer); ok {
		for i, at := range view.View(n.InTypes(), n.Out) {
			p.values[n.Value(i)] = tensor.View{Type: n.Out[i],
				Data: c.In[0].Data[at : at+n.Out[i].Bytes()]}
		}
		return nil
	}
	for i, t := range n.Out {
		c.Out = append(c.Out, tensor.New(t))
		p.values[n.Value(i)] = c.Out[i]
	}
	fn, err := kernel.Lookup(kernel.CPU, n.Op)
	if err != nil {
		return err
	}
	return fn(n.Op, &c)
}

// meet exchanges what all processes have come to, and reports whether all are done.
func (w *world) meet() (done bool, err error) {
	var waiting []string
	met := false
	for rank, p := range w.ranks {
		n := p.at()
		if n == nil {
			continue
		}
		x, _ := n.Gives()
		waiting = append(waiting, fmt.Sprintf("rank %d for %+v of %s", rank, x, n.In[0].Type()))
		group := w.group(rank, x.How.Along)
		if group[0] != rank || !w.together(group) {
			continue
		}
		if met = true; slices.Contains(w.names[x.Name], rank) {
			return false, fmt.Errorf("%s is exchanged twice", x.Name)
		}
		w.names[x.Name] = append(w.names[x.Name], rank)
		if err := w.exchange(x, group); err != nil {
			return false, err
		}
		for _, r := range group {
			w.ranks[r].next++
			w.ranks[r].given = false
		}
	}
	if !met && waiting != nil {
		return false, fmt.Errorf("all wait for others: %s", waiting)
	}
	return !met, nil
}

// at is the exchange that a process has come to; nil if it has been, or there is none left.
func (p *process) at() *graph.Node {
	if p.given {
		return p.list[p.next]
	}
	return nil
}

// together reports whether all processes of a group have come to the same exchange.
func (w *world) together(group []int) bool {
	first := w.ranks[group[0]].at()
	x, _ := first.Gives()
	for _, rank := range group {
		n := w.ranks[rank].at()
		if n == nil {
			return false
		}
		y, _ := n.Gives()
		if !reflect.DeepEqual(x, y) || !n.In[0].Type().Equal(first.In[0].Type()) {
			return false
		}
	}
	return true
}

// group are the ranks along an axis of the mesh from one, in order.
func (w *world) group(rank int, along string) (list []int) {
	m := w.mesh.Axis(along)
	step := 1
	for _, c := range w.mesh.Cluster[m+1:] {
		step *= c
	}
	n := w.mesh.Cluster[m]
	for i := range n {
		list = append(list, rank-rank/step%n*step+i*step)
	}
	return list
}

// exchange folds what some ranks have sent, in their order.
func (w *world) exchange(x graph.Exchange, group []int) error {
	if len(group) != x.Parts {
		return fmt.Errorf("%s is among %d, there are %d", x.Name, x.Parts, len(group))
	}
	var in, out [][]byte
	for _, rank := range group {
		n := w.ranks[rank].list[w.ranks[rank].next]
		in = append(in, slices.Clone(w.ranks[rank].values[n.In[0]].Data))
		out = append(out, w.ranks[rank].values[n.Value(0)].Data)
	}
	if x.How.Fold.Some() {
		return w.exchangeSome(x, group, in, out)
	}
	size, n := len(in[0]), len(group)
	moved := float64(size) * float64(n-1)
	var sum tensor.View
	if x.How.Fold == graph.Sum || x.How.Fold == graph.Scatter {
		sum = tensor.New(tensor.Of(graph.F32, size/4))
		for i, data := range in {
			for k, v := range (tensor.View{Type: sum.Type, Data: data}).F32() {
				if i == 0 {
					sum.F32()[k] = v
				} else {
					sum.F32()[k] += v
				}
			}
		}
	}
	for i := range group {
		switch block := size / n; x.How.Fold {
		case graph.Sum:
			copy(out[i], sum.Data)
		case graph.Scatter:
			copy(out[i], sum.Data[i*block:(i+1)*block])
		case graph.Gather:
			for k, data := range in {
				copy(out[i][k*size:], data)
			}
		case graph.Swap:
			for k, data := range in {
				copy(out[i][k*block:(k+1)*block], data[i*block:])
			}
		case graph.Copy:
			copy(out[i], in[x.Root])
		case graph.Permute:
			clear(out[i])
			if from := slices.Index(x.To, i); from >= 0 {
				copy(out[i], in[from])
			}
		default:
			return fmt.Errorf("%s: fold %s", x.Name, x.How.Fold)
		}
	}
	switch x.How.Fold {
	case graph.Sum:
		w.sent[x.How.Fold] += summed(size, n)
	case graph.Gather:
		w.sent[x.How.Fold] += moved * float64(n)
	case graph.Permute: // one sends
		w.sent[x.How.Fold] += float64(size)
	default:
		w.sent[x.How.Fold] += moved
	}
	return nil
}

// summed is what n ranks send for a sum: twice round a ring or, if it is small, each to
// another one in every round of doubling, before which those of the first that are too many
// for it make pairs, of whom one takes part.
func summed(size, n int) (all float64) {
	if size >= mesh.RingFrom {
		return float64(2 * size * (n - 1))
	}
	rounds, most := 0, 1
	for ; 2*most <= n; most *= 2 {
		rounds++
	}
	for rank := range n {
		paired := rank < 2*(n-most)
		if !paired || rank%2 == 1 {
			all += float64(rounds * size)
		}
		if paired {
			all += float64(size)
		}
	}
	return all
}

// exchangeSome folds those rows of what some ranks have sent that each has to do with.
func (w *world) exchangeSome(x graph.Exchange, group []int, in, out [][]byte) error {
	var ranks []int32
	for i, rank := range group {
		p := w.ranks[rank]
		own := p.values[p.list[p.next].In[1]].I32()
		if i > 0 && !slices.Equal(own, ranks) {
			return fmt.Errorf("%s: rank %d has other rows", x.Name, rank)
		}
		ranks = own
	}
	if len(ranks) != x.Rows*x.Each || x.Rows%len(group) != 0 {
		return fmt.Errorf("%s: %d ranks of %d rows", x.Name, len(ranks), x.Rows)
	}
	block, gathers := x.Rows/len(group), x.How.Fold == graph.GatherSome
	width := len(in[0]) / x.Rows
	if gathers {
		width = len(in[0]) / block
	}
	w.rows[x.Name] = 0
	for i := range group {
		clear(out[i])
	}
	for row := range x.Rows {
		home, at := row/block, row%block
		for i := range group {
			mine := slices.Contains(ranks[row*x.Each:(row+1)*x.Each], int32(i))
			if mine && i != home {
				w.rows[x.Name]++
				w.sent[x.How.Fold] += float64(width)
			}
			switch {
			case gathers && mine:
				copy(out[i][row*width:(row+1)*width], in[home][at*width:])
			case mine:
				t := tensor.Of(graph.F32, width/4)
				from := tensor.View{Type: t, Data: in[i][row*width : (row+1)*width]}
				to := tensor.View{Type: t, Data: out[home][at*width : (at+1)*width]}
				for k, v := range from.F32() {
					to.F32()[k] += v
				}
			}
		}
	}
	return nil
}

// apart is how far two values are apart, relative to the larger of the norm and one.
func apart(a, b tensor.View) float64 {
	if a.Type.DType != graph.F32 {
		if string(a.Data) != string(b.Data) {
			return math.Inf(1)
		}
		return 0
	}
	diff, norm := 0.0, 1.0
	for i, x := range a.F32() {
		d := float64(x) - float64(b.F32()[i])
		diff, norm = diff+d*d, norm+float64(x)*float64(x)
	}
	return math.Sqrt(diff / norm)
}
