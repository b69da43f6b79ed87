package workers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
)

// grid is workers in a mesh, of one line of all of them too.
type grid struct {
	mesh    collective.Mesh
	members []*Member
}

// inGrid makes workers that lie in a mesh.
func inGrid(t *testing.T, mesh collective.Mesh) *grid {
	t.Helper()
	members, leave, err := Together(mesh, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := leave(); err != nil {
			t.Error(err)
		}
	})
	return &grid{mesh, members}
}

// line is the ranks that exchange with one along an axis, and its place among them.
func (g *grid) line(axis string, rank int) (ranks []int, place int) {
	for r := range g.members {
		same := true
		for i, name := range g.mesh.Names {
			if axis != "" && name != axis {
				same = same && g.mesh.Coord(r)[i] == g.mesh.Coord(rank)[i]
			}
		}
		if same {
			ranks = append(ranks, r)
		}
	}
	return ranks, slices.Index(ranks, rank)
}

// step runs a step of a target on every worker, each in a session of its own, and returns
// what each has fetched.
func (g *grid) step(t *testing.T, o gomem.Options,
	build func(rank int) *share) [][]gomem.Tensor {
	t.Helper()
	out, errs := make([][]gomem.Tensor, len(g.members)), make([]error, len(g.members))
	var all sync.WaitGroup
	for rank, m := range g.members {
		all.Go(func() { out[rank], errs[rank] = build(rank).run(t, m, o) })
	}
	all.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", rank, err)
		}
	}
	return out
}

// share is a worker's part of a computation.
type share struct {
	graph   *graph.Graph
	fetches []graph.Value
	feeds   gomem.Feeds
}

// run runs a step of it.
func (p *share) run(t *testing.T, m *Member, o gomem.Options) ([]gomem.Tensor, error) {
	bound, err := m.Bytes(p.graph)
	if err != nil {
		return nil, err
	}
	fresh := m.Exchanged().Memory == 0
	o.Network = m.Network()
	s, err := gomem.Compile(t.Context(), p.graph, o,
		gomem.Target{Name: "step", Fetches: p.fetches})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out, err := s.Step(t.Context(), "step", p.feeds)
	if err != nil {
		return nil, err
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return nil, fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	if x := m.Exchanged(); fresh && x.Memory > bound {
		return nil, fmt.Errorf("exchanging took %d bytes, %d were said", x.Memory, bound)
	}
	return out, nil
}

// joint is a collective on a grid.
type joint struct {
	fold graph.Fold
	axis string
	root int // of a permutation, by how much it is shifted
}

// do applies it to a value, among the workers of a line.
func (j joint) do(x graph.Value, name string, parts int) graph.Value {
	switch j.fold {
	case graph.Gather:
		return ops.AllGather(x, name, j.axis, parts)
	case graph.Scatter:
		return ops.ReduceScatter(x, name, j.axis, parts)
	case graph.Swap:
		return ops.AllToAll(x, name, j.axis, parts)
	case graph.Copy:
		return ops.Broadcast(x, name, j.axis, parts, j.root%parts)
	case graph.Reduce:
		return ops.ReduceTo(x, name, j.axis, parts, j.root%parts)
	case graph.Permute:
		return ops.CollectivePermute(x, name, j.axis, j.to(parts)...)
	case graph.GatherSome:
		ranks := x.Graph().Constant(name+"/ranks", j.ranks(parts*x.Type().Size(0), parts))
		return ops.AllGatherSome(x, ranks, name, j.axis, parts)
	case graph.ScatterSome:
		ranks := x.Graph().Constant(name+"/ranks", j.ranks(x.Type().Size(0), parts))
		return ops.ReduceScatterSome(x, ranks, name, j.axis, parts)
	}
	return ops.AllReduce(x, name, j.axis, parts)
}

// ranks are those that have to do with rows: of each two, one or none; the last of all workers
// with no more than the first row.
func (j joint) ranks(rows, parts int) tensor.View {
	x := tensor.New(tensor.Of(graph.I32, rows, 2))
	for i := range x.I32() {
		x.I32()[i] = int32((i*i/3+j.root)%(parts+1)) - 1
		if i > 1 && int(x.I32()[i]) == parts-1 {
			x.I32()[i] = -1
		}
	}
	return x
}

// masked has zeros for the rows that a worker has nothing to do with.
func (j joint) masked(x []byte, rows, place, parts int) []byte {
	x = slices.Clone(x)
	for i, size := 0, len(x)/rows; i < rows && parts > 1; i++ {
		if of := j.ranks(rows, parts).I32()[2*i : 2*i+2]; !slices.Contains(of, int32(place)) {
			clear(x[i*size : (i+1)*size])
		}
	}
	return x
}

// to shifts all workers but one, if there are others.
func (j joint) to(parts int) []int {
	to := make([]int, parts)
	for i := range to {
		to[i] = (i + j.root) % parts
	}
	if parts > 1 {
		to[j.root%parts] = -1
	}
	return to
}

// want is what a worker gets of what those of its line have, in elements of any type that
// are added up by a function.
func (j joint) want(in [][]byte, rows, place int, add func(sum, x []byte)) []byte {
	n, size := len(in), len(in[0])
	if in = slices.Clone(in); j.fold == graph.ScatterSome {
		for r := range in {
			in[r] = j.masked(in[r], rows, r, n)
		}
	}
	block := func(of, i int) []byte { return in[of][i*size/n : (i+1)*size/n] }
	sum := slices.Clone(in[0])
	for _, x := range in[1:] {
		if j.fold.Adds() {
			add(sum, x)
		}
	}
	switch j.fold {
	case graph.Gather:
		return slices.Concat(in...)
	case graph.GatherSome:
		return j.masked(slices.Concat(in...), n*rows, place, n)
	case graph.Scatter, graph.ScatterSome:
		return sum[place*size/n : (place+1)*size/n]
	case graph.Swap:
		var out []byte
		for r := range n {
			out = append(out, block(r, place)...)
		}
		return out
	case graph.Copy:
		return in[j.root%n]
	case graph.Reduce:
		if place != j.root%n {
			clear(sum)
		}
	case graph.Permute:
		if from := slices.Index(j.to(n), place); from >= 0 {
			return in[from]
		}
		clear(sum)
	}
	return sum
}

// adder adds elements of a type up.
func adder(d graph.DType) func(sum, x []byte) {
	return func(sum, x []byte) {
		n := len(sum) / int(d.Size())
		a := tensor.View{Type: tensor.Of(d, n), Data: sum}
		b := tensor.View{Type: tensor.Of(d, n), Data: x}
		for i := range n {
			if d == graph.F64 {
				a.F64()[i] += b.F64()[i]
			} else {
				a.F32()[i] += b.F32()[i]
			}
		}
	}
}

// whole fills a tensor with small whole numbers, whose sums are exact, that differ from
// worker to worker.
func whole(x gomem.Tensor, rank int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(rank)))
	for i := range x.Type.Elems() {
		v := rng.IntN(200) - 100
		switch x.Type.DType {
		case graph.F32:
			tensor.View(x).F32()[i] = float32(v)
		case graph.F64:
			tensor.View(x).F64()[i] = float64(v)
		case graph.Bool:
			x.Data[i] = byte(v & 1)
		default:
			x.Data[i*int(x.Type.DType.Size())] = byte(v)
		}
	}
}

// grids are meshes of up to six workers.
func grids() []collective.Mesh {
	list := []collective.Mesh{{Shape: []int{1, 1}, Names: []string{"a", "b"}}}
	for _, shape := range [][]int{{1, 2}, {3, 1}, {2, 2}, {5, 1}, {2, 3}} {
		list = append(list, collective.Mesh{Shape: shape, Names: []string{"a", "b"}})
	}
	return list
}

// TestCollectives: on every mesh, along every axis, under every policy, every fold of every
// type of element gives each worker what brute force says, to the bit; every space is used
// to the predicted byte, and the network's buffers are within what was said.
func TestCollectives(t *testing.T) {
	longtest.Skip(t)
	policies := []gomem.Options{{Policy: planner.Vanilla}, {Policy: planner.Thesis, Partition: 1},
		{Policy: planner.Auto}, {Policy: planner.Grappler}, {Policy: planner.Thesis}}
	for i, mesh := range grids() {
		for k, d := range tensor.DTypes() {
			g := inGrid(t, mesh)
			sizes := [][2]int{{1, 1}, {2, 3}, {3, 0}, {1, 2003}}
			size := sizes[(i+k)%len(sizes)]
			g.collect(t, policies[(i+k)%len(policies)], d, 60*size[0], size[1])
		}
	}
}

// collect checks all folds of values of so many rows and columns.
func (g *grid) collect(t *testing.T, o gomem.Options, d graph.DType, rows, cols int) {
	t.Helper()
	var list []joint
	for fold := graph.Sum; fold <= graph.ScatterSome; fold++ {
		for i, axis := range []string{"", "a", "b"} {
			if !fold.Adds() || d == graph.F32 || d == graph.F64 {
				list = append(list, joint{fold, axis, i + int(fold)})
			}
		}
	}
	in := make([]gomem.Tensor, len(g.members))
	got := g.step(t, o, func(rank int) *share {
		p := &share{graph: graph.New()}
		x := p.graph.Input("x", graph.Of(d, rows, cols))
		for i, j := range list {
			ranks, _ := g.line(j.axis, rank)
			y := j.do(x, fmt.Sprint("x", i), len(ranks))
			if i%2 == 0 { // by way of the device
				y = ops.Concat(0, y, y)
			}
			p.fetches = append(p.fetches, y)
		}
		in[rank] = gomem.NewTensor(x.Type())
		whole(in[rank], rank, 7)
		p.feeds = gomem.Feeds{x: in[rank]}
		return p
	})
	for i, j := range list {
		for rank := range g.members {
			ranks, place := g.line(j.axis, rank)
			var parts [][]byte
			for _, r := range ranks {
				parts = append(parts, in[r].Data)
			}
			want := j.want(parts, rows, place, adder(d))
			if i%2 == 0 {
				want = slices.Concat(want, want)
			}
			if !slices.Equal(got[rank][i].Data, want) {
				t.Errorf("mesh %v, %s[%d %d], policy %s: worker %d has another %s along %q",
					g.mesh.Shape, d, rows, cols, o.Policy, rank, j.fold, j.axis)
			}
		}
	}
}

// TestCollectiveGradients: of the sum of what all workers weigh their results by. Since
// collectives are linear, it is also the sum of what they weigh their operands by with the
// gradients: in whole numbers exactly.
func TestCollectiveGradients(t *testing.T) {
	for _, mesh := range grids() {
		g := inGrid(t, mesh)
		for fold := graph.Sum; fold <= graph.ScatterSome; fold++ {
			for i, axis := range []string{"", "a", "b"} {
				j := joint{fold, axis, i + 1}
				got := g.step(t, gomem.Options{}, func(rank int) *share {
					ranks, _ := g.line(axis, rank)
					p := &share{graph: graph.New()}
					x := p.graph.Input("x", graph.Of(graph.F32, 60, 2))
					y := j.do(x, "y", len(ranks))
					w := p.graph.Input("w", y.Type())
					loss := ops.Sum(ops.Mul(y, w))
					dx := autodiff.Grad(loss, x)[0]
					p.fetches = []graph.Value{loss, ops.Sum(ops.Mul(dx, x))}
					p.feeds = gomem.Feeds{x: gomem.NewTensor(x.Type()),
						w: gomem.NewTensor(w.Type())}
					whole(p.feeds[x], rank, 1)
					whole(p.feeds[w], rank, 2)
					return p
				})
				var forward, backward float64
				for _, out := range got {
					forward += float64(tensor.View(out[0]).F32()[0])
					backward += float64(tensor.View(out[1]).F32()[0])
				}
				if forward != backward {
					t.Errorf("mesh %v: the gradient of %s along %q weighs %v, not %v", mesh.Shape,
						fold, axis, backward, forward)
				}
			}
		}
	}
}

// TestCollectivesRepeat: sums of any numbers have the same bits on all workers, in every run.
func TestCollectivesRepeat(t *testing.T) {
	var first []byte
	for range longtest.Count(3, 30) {
		g := inGrid(t, collective.Mesh{Shape: []int{5}, Names: []string{"a"}})
		got := g.step(t, gomem.Options{}, func(rank int) *share {
			p := &share{graph: graph.New()}
			x := p.graph.Input("x", graph.Of(graph.F32, 30, 1000))
			p.fetches = []graph.Value{ops.AllReduce(x, "large", "a", 5),
				ops.AllReduce(ops.Sum(x), "small", "", 5)}
			data := gomem.NewTensor(x.Type())
			rng := rand.New(rand.NewPCG(1, uint64(rank)))
			for i := range data.F32() {
				data.F32()[i] = float32(rng.NormFloat64())
			}
			p.feeds = gomem.Feeds{x: data}
			return p
		})
		for rank, out := range got {
			bits := slices.Concat(out[0].Data, out[1].Data)
			if first == nil {
				first = bits
			}
			if !slices.Equal(bits, first) {
				t.Errorf("worker %d has other bits", rank)
			}
		}
	}
}

// TestWorkersMustAgree: before anything is sent, every worker says which exchange differs
// first, and on whom.
func TestWorkersMustAgree(t *testing.T) {
	longtest.Skip(t)
	sum := func(name string, cols int) func(x graph.Value) graph.Value {
		return func(x graph.Value) graph.Value {
			return ops.AllReduce(ops.Slice(x, 1, 0, cols), name, "", 3)
		}
	}
	along := func(x graph.Value) graph.Value { return ops.AllReduce(x, "c", "a", 3) }
	some := func(x graph.Value) graph.Value {
		ranks := x.Graph().Constant("ranks", tensor.FromI32([]int32{0, 1, 0, 1, 0, 1}, 6, 1))
		return ops.AllGatherSome(x, ranks, "a", "", 3)
	}
	counted := func(x graph.Value) graph.Value {
		x = ops.Concat(0, x, x, x)
		counts := x.Graph().Constant("counts", tensor.FromI32([]int32{0, 1, 2}, 3))
		y, _ := ops.AllToAllV(x, counts, "a", "", 3)
		return y
	}
	permute := func(x graph.Value) graph.Value {
		return ops.CollectivePermute(x, "a", "", 1, 2, -1)
	}
	type list = []func(x graph.Value) graph.Value
	for want, other := range map[string]list{
		`number 2 is "step: b f32[2 3] sum of 3, root 0" on worker 0 and "step: c f32[2 3] sum ` +
			`of 3, root 0" on worker 2`: {sum("a", 3), sum("c", 3)},
		`"step: b f32[2 2] sum of 3, root 0" on worker 2`: {sum("a", 3), sum("b", 2)},
		`number 1 is`: {sum("b", 3), sum("a", 3)},
		`number 2 is "step: b f32[2 3] sum of 3, root 0" on worker 0 and "none" on worker 2`: {
			sum("a", 3)},
		`number 3 is "none" on worker 0 and`: {
			sum("a", 3), sum("b", 3), sum("c", 1)},
		`"step: b f32[2 3] sum of 3, root 0" on worker 2`: {along, sum("b", 3)},
		`and "step: c f32[2 3] sum@a of 3, root 0" on worker 2`: {
			sum("a", 3), sum("b", 3), along},
		`"step: a f32[2 3] permute of 3, root 0, to [1 2 -1]" on`:   {permute, sum("b", 3)},
		`a f32[6 3] gather-some of 3, root 0, by 1 of 6 rows" on`:   {some, sum("b", 3)},
		`and "step: a/counts i32[3] swap of 3, root 0" on worker 2`: {counted, sum("b", 3)},
	} {
		g := inGrid(t, collective.Mesh{Shape: []int{3}, Names: []string{"a"}})
		var all sync.WaitGroup
		for rank, m := range g.members {
			all.Go(func() {
				p := &share{graph: graph.New()}
				x := p.graph.Input("x", graph.Of(graph.F32, 2, 3))
				own := list{sum("a", 3), sum("b", 3)}
				if rank == 2 {
					own = other
				}
				for _, do := range own {
					p.fetches = append(p.fetches, do(x))
				}
				p.feeds = gomem.Feeds{x: gomem.NewTensor(x.Type())}
				_, err := p.run(t, m, gomem.Options{})
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("worker %d: %v, want %s", rank, err, want)
				}
			})
		}
		all.Wait()
	}
}

// TestLinesAgree: what workers exchange along an axis of their mesh those of another line need
// not have; but those of a line must, and all workers hear of the one that has not.
func TestLinesAgree(t *testing.T) {
	mesh := collective.Mesh{Shape: []int{2, 2}, Names: []string{"a", "b"}}
	build := func(rank int, odd bool) *share {
		p := &share{graph: graph.New()}
		x := p.graph.Input("x", graph.Of(graph.F32, 2))
		y := ops.AllReduce(x, "first", "a", 2)
		if rank < 2 { // one of the lines along b
			y = ops.AllReduce(y, "second", "b", 2)
		}
		if odd {
			y = ops.AllReduce(y, "odd", "b", 2)
		}
		p.fetches = []graph.Value{ops.AllReduce(y, "third", "a", 2)}
		p.feeds = gomem.Feeds{x: gomem.NewTensor(x.Type())}
		whole(p.feeds[x], 1, 1)
		return p
	}
	g := inGrid(t, mesh)
	out := g.step(t, gomem.Options{}, func(rank int) *share { return build(rank, false) })
	for rank, x := range out { // 2·2 of one line, and 2 of the other
		in := build(rank, false).feeds
		for v := range in {
			want := 6 * tensor.View(in[v]).F32()[0]
			if got := tensor.View(x[0]).F32()[0]; got != want {
				t.Errorf("worker %d has %v, want %v", rank, got, want)
			}
		}
	}
	g = inGrid(t, mesh)
	var all sync.WaitGroup
	for rank, m := range g.members {
		all.Go(func() {
			_, err := build(rank, rank == 3).run(t, m, gomem.Options{})
			want := `is "none" on worker 2 and "step: odd`
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("worker %d: %v, want to hear of worker 3", rank, err)
			}
		})
	}
	all.Wait()
}

// TestCollectivesOfOthers: an axis that there is none of, and another number of workers, are
// refused, and so is a mesh that is none of the workers'.
func TestCollectivesOfOthers(t *testing.T) {
	longtest.Skip(t)
	g := inGrid(t, collective.Mesh{Shape: []int{2, 1}, Names: []string{"a", "b"}})
	n := g.members[0].Network()
	for want, x := range map[string]gomem.Exchange{
		`no axis "c" to exchange along: there are ["a" "b"]`: {How: graph.How{Along: "c"}},
		"among 3 workers, of whom there are 2": {Parts: 3,
			How: graph.How{Fold: graph.Swap}},
		"among 2 workers, of whom there are 1": {Parts: 2,
			How: graph.How{Fold: graph.Copy, Along: "b"}},
		"rows go to 1 ranks and come from 2, of 2": {Parts: 2, Going: []int32{1},
			Coming: []int32{1, 0}, Type: graph.Of(graph.F32, 2), Data: make([]byte, 8),
			How: graph.How{Fold: graph.SwapSome}},
		"2 ranks are not 2 for each of 4 rows": {Parts: 2, Rows: 4, Each: 2,
			Ranks: []int32{0, 1}, Data: make([]byte, 8), How: graph.How{Fold: graph.GatherSome}},
		"row 0 has to do with rank 2 of 2": {Parts: 2, Rows: 2, Each: 1,
			Ranks: []int32{2, 1}, Data: make([]byte, 8), How: graph.How{Fold: graph.GatherSome}},
		"workers add up f32 and f64, not bf16[2]": {Type: graph.Of(graph.BF16, 2)},
	} {
		x.Name = "x"
		if err := n.Send(t.Context(), x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := n.Await(t.Context(), "x"); err == nil {
		t.Error("what nobody has sent is there")
	}
	v := distrib.View{Epoch: 1, Nodes: []distrib.Node{{}}}
	for scheme, o := range map[string]Options{
		"bosen": {Mesh: collective.Mesh{Shape: []int{1}, Names: []string{"a"}}},
		"ring":  {Mesh: collective.Mesh{Shape: []int{2}, Names: []string{"a"}}},
	} {
		s, err := ParseScheme(scheme, SchemeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Join(v, memnet.NewNetwork(1, memnet.Options{}).Node(0), s, o)
		if err == nil || !strings.Contains(err.Error(), "mesh") {
			t.Errorf("%s: %v", scheme, err)
			m.Close(nil)
		}
	}
}
