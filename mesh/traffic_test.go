package mesh_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
)

// parse reads a mesh and a layout.
func parse(t *testing.T, text, layout string) mesh.Spec {
	t.Helper()
	s, err := mesh.Parse(text, layout)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// TestTrafficOfExperts: with experts over n processes and all else on every one, a process
// sends, for every layer and step, what all-reduces of the layer's output and of its input's
// gradient take, and of the gradients of both gates of every token; dense or sparse, however
// many slices it has. An evaluation takes the first of these.
func TestTrafficOfExperts(t *testing.T) {
	longtest.Skip(t)
	c, err := models.NewMoEConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	tokens, layers := c.Pairs*c.Length, 2*c.Layers
	for _, name := range []string{"moe", "moe sparse", "moe stacked", "moe sparse stacked"} {
		m, layout, norms := built(t, name), "", int64(0)
		if strings.Contains(name, "stacked") {
			// Of each of two variables, the norms by which its optimizer limits a step.
			layout, norms = stacked, int64(layers*2*2*4)
		}
		targets, _ := workload(m)
		for n, rounds := range map[int]int64{2: 1, 4: 2} { // of sums of less than 64 KiB
			for slices := 1; slices <= 8/n; slices *= 2 {
				w, err := over(m.Graph, parse(t, fmt.Sprintf("experts:%dx%d", n, slices), layout),
					targets)
				if err != nil {
					t.Fatal(err)
				}
				rows := int64(layers * tokens * c.Width * 4)
				gates := int64(layers * tokens * 2 * 4)
				for i, want := range []int64{rounds * (2*rows + gates + norms), rounds * rows} {
					got := w.ranks[n-1].res.Traffic(targets[i].fetches, targets[i].updates)
					if len(got) != 1 || got[0].Kind != mesh.Reduce || got[0].Bytes != want {
						t.Errorf("%s over %dx%d, target %d: %v, want %d bytes", name, n, slices,
							i, got, want)
					}
				}
			}
		}
	}
}

// TestTrafficOfExpertParallelism: with experts and the batch along one axis, a process sends of
// a dense layer what all-to-alls of the experts' slots and of what they make of them take,
// forward and backward, whether experts have variables of their own or all one; and weights
// never move. Of a sparse layer it gathers the choices of every token, and of tokens, and what
// comes of them, each way, at most those that two others want; of the weights of choices, and
// their gradients, at most one for each.
func TestTrafficOfExpertParallelism(t *testing.T) {
	for _, n := range []int{2, 4} {
		for _, name := range []string{"", "stacked", "sparse", "sparse stacked"} {
			c, err := models.NewMoEConfig("s512")
			c.Group = c.Pairs * c.Length / n // a group or more for every process
			c.Sparse = strings.Contains(name, "sparse")
			c.Stacked = strings.Contains(name, "stacked")
			m, err := made(c, err, models.MoE)
			if err != nil {
				t.Fatal(err)
			}
			layout := "experts=experts"
			if c.Stacked {
				layout = stacked
			}
			targets, _ := workload(m)
			spec := parse(t, fmt.Sprintf("experts:%dx1", n), layout+",batch=experts")
			all := targets[0]
			r, err := mesh.Lower(m.Graph, spec, 0, all.fetches, all.updates)
			if err != nil {
				t.Fatal(err)
			}
			want, layers, share := map[mesh.ConversionKind]int64{}, 2*c.Layers, (n-1)*4
			tokens := c.Pairs * c.Length
			if c.Sparse {
				choices := tokens * 2
				want[mesh.Gather] = int64(layers * share * choices / n)
				most := int64(layers * 4 * (2*min(2, n-1)*tokens*c.Width + choices) / n)
				want[mesh.GatherSome], want[mesh.ScatterSome] = most, most
			} else {
				slots := n * c.Experts * int(float64(c.Group)*c.CapacityTrain/float64(c.Experts))
				want[mesh.Swap] = int64(layers * share * 4 * slots * c.Width / (n * n))
			}
			got := map[mesh.ConversionKind]int64{}
			for _, x := range r.Traffic(all.fetches, all.updates) {
				if x.Kind != mesh.Reduce { // gradients of what every process has
					got[x.Kind] = x.Bytes
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s over %d: %v, want %v", name, n, got, want)
			}
		}
	}
}

// TestTrafficOfLayouts: of two layers, what each layout makes necessary, and nothing else.
// w is [4 8], u [8 4] and the batch 8.
func TestTrafficOfLayouts(t *testing.T) {
	n := newNetwork(t, plain)
	all := target{[]graph.Value{n.loss}, n.updates}
	const scalar, weights, rows = 4, 4 * 8 * 4, 8 * 4 * 4
	for _, c := range []struct {
		mesh, layout string
		want         []mesh.Traffic
	}{
		// Data parallelism: the gradients and the loss.
		{"batch:2x1", "", []mesh.Traffic{{Kind: mesh.Reduce, Count: 3,
			Bytes: 2*weights + scalar}}},
		{"batch:4x2", "", []mesh.Traffic{{Kind: mesh.Reduce, Count: 3,
			Bytes: 2 * (2*weights + scalar)}}},
		// Hidden units: the sum at the end of the second layer; the input needs no gradient.
		{"m:2x1", "w:1=m", []mesh.Traffic{{Kind: mesh.Reduce, Count: 1, Bytes: rows}}},
		// The batch, and each weight on one process: it is gathered before it is used, as its
		// gradient needs the other, and what comes of the gradients is in pieces.
		{"b:2x1", "batch=b,w:0=b,u:0=b", []mesh.Traffic{
			{Kind: mesh.Gather, Count: 2, Bytes: weights},
			{Kind: mesh.Reduce, Count: 1, Bytes: scalar},
			{Kind: mesh.Scatter, Count: 2, Bytes: weights}}},
		// One process has all: nothing is sent.
		{"b:1x4", "batch=b", nil},
	} {
		for rank := range parse(t, c.mesh, c.layout).Mesh.Processes() {
			r, err := mesh.Lower(n.g, parse(t, c.mesh, c.layout), rank, all.fetches, all.updates)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Traffic(all.fetches, all.updates)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s %s, rank %d: %v, want %v", c.mesh, c.layout, rank, got, c.want)
			}
		}
	}
}

// TestKept: a sum over processes that only one of them reads is made by all of them: the
// others have an update that keeps it. A target that does not need it has none.
func TestKept(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Named(graph.F32, graph.Dim{Name: "rows", Size: 4},
		graph.Dim{Size: 4}))
	w := g.Variable("w", tensor.Of(graph.F32, 4), graph.Init{Dist: graph.Normal, Scale: 1})
	g.Place(w, "rows", 3, 4)
	total := ops.Sum(ops.Tanh(x), 0)
	update := ops.SGD(w, ops.Mul(total, w), ops.Sum(ops.Mean(x)))
	y := ops.Relu(x)
	targets := []target{{nil, []graph.NodeID{update.ID}}, {[]graph.Value{y}, nil}}
	feeds := map[graph.Value]tensor.View{x: tensor.New(x.Type())}
	for i := range 16 {
		feeds[x].F32()[i] = float32(i) / 4
	}
	world := compare(t, g, parse(t, "rows:2x1", ""), targets, feeds)
	for rank, want := range []bool{true, false} {
		r := world.ranks[rank].res
		kept, err := r.Kept(targets[0].fetches, targets[0].updates)
		if err != nil || len(kept) > 0 != want {
			t.Errorf("rank %d keeps %v, %v", rank, kept, err)
		}
		if kept, _ := r.Kept(targets[1].fetches, targets[1].updates); len(kept) > 0 {
			t.Errorf("rank %d keeps %v of a target without sums", rank, kept)
		}
		if len(r.Updates(update.ID)) > 0 == want {
			t.Errorf("rank %d has updates %v", rank, r.Updates(update.ID))
		}
	}
}

// TestTrafficOfPlaces: what is at one place is sent once where one other wants it, and to all
// others where they do; of what is at one place along another axis, only those who lie there
// send anything.
func TestTrafficOfPlaces(t *testing.T) {
	for _, c := range []struct {
		mesh, layout string
		readers      []int // of six elements: where what element 0 makes is read
		want         []mesh.Traffic
	}{
		{"e:3x1", "e=e", []int{0}, nil},
		{"e:3x1", "e=e", []int{4}, []mesh.Traffic{{Kind: mesh.Send, Count: 1, Bytes: 32 / 3}}},
		{"e:3x2", "e=e", []int{2, 3, 5},
			[]mesh.Traffic{{Kind: mesh.Send, Count: 2, Bytes: 2 * (32 / 3)}}},
		{"e:2x3", "e=e", []int{3, 4}, []mesh.Traffic{{Kind: mesh.Copy, Count: 1, Bytes: 32 / 2}}},
		{"e:3x1", "e=e", nil, []mesh.Traffic{{Kind: mesh.Copy, Count: 1, Bytes: 32 * 2 / 3}}},
		// A gradient, of a batch in two, of a weight at one of three places.
		{"e:3x1,b:2x1", "e=e,x:0=b", []int{0},
			[]mesh.Traffic{{Kind: mesh.Reduce, Count: 1, Bytes: 2 * 32 / (2 * 3)}}},
	} {
		g := graph.New()
		x, rate := g.Input("x", tensor.Of(graph.F32, 4, 8)), g.Input("rate", tensor.Of(graph.F32))
		var w []graph.Value
		for i := range 6 {
			w = append(w, g.Variable(fmt.Sprint("w", i), tensor.Of(graph.F32, 8),
				graph.Init{Dist: graph.Normal, Scale: 1}))
			g.Place(w[i], "e", i, 6)
		}
		y := ops.Sum(ops.Mul(x, ops.Tanh(w[0])), 0)
		all := target{fetches: []graph.Value{y}}
		for _, i := range c.readers {
			all = target{updates: append(all.updates, ops.SGD(w[i], y, rate).ID)}
		}
		feeds := map[graph.Value]tensor.View{x: tensor.New(x.Type()), rate: tensor.New(rate.Type())}
		for i := range feeds[x].F32() {
			feeds[x].F32()[i] = float32(i) / 4
		}
		world := compare(t, g, parse(t, c.mesh, c.layout), []target{all}, feeds)
		got := world.ranks[0].res.Traffic(all.fetches, all.updates)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, read at %v: %v, want %v", c.mesh, c.readers, got, c.want)
		}
	}
}

// TestOwners: every process knows which of them have what part of a variable.
func TestOwners(t *testing.T) {
	n := newNetwork(t, plain)
	bias := n.g.Variable("bias", tensor.Of(graph.F32, 3), graph.Init{})
	spec := parse(t, "b:2x1,m:2x2", "batch=b,w:1=m")
	for rank := range 4 {
		r, err := mesh.Lower(n.g, spec, rank, []graph.Value{n.loss}, n.updates)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, name := range []string{"w", bias.Node.Name, "none"} {
			for _, o := range r.Propagation.Owners(name) {
				list = append(list, fmt.Sprint(o.Name, o.Ranks, o.Cut))
			}
		}
		want := []string{"w@0[0 2] [{0 0} {4 0}]", "w@1[0 2] [{0 0} {4 1}]",
			"w@2[1 3] [{0 0} {4 2}]", "w@3[1 3] [{0 0} {4 3}]", "bias[0 1 2 3] []"}
		if !slices.Equal(list, want) {
			t.Errorf("rank %d: %v", rank, list)
		}
		own := []string{"w@0", "w@1"}
		if rank%2 == 1 {
			own = []string{"w@2", "w@3"}
		}
		if p := r.Pieces["w"]; len(p) != 2 || p[0].Name != own[0] || p[1].Name != own[1] {
			t.Errorf("rank %d has pieces %v", rank, p)
		}
	}
}

// TestNoRank: there is a graph for the ranks of the mesh only, and of graphs that do not
// exchange values among replicas of themselves.
func TestNoRank(t *testing.T) {
	n := newNetwork(t, plain)
	for rank, why := range map[int]string{-1: "no rank -1 of 4", 4: "no rank 4 of 4"} {
		_, err := mesh.Lower(n.g, parse(t, "batch:4x2", ""), rank, []graph.Value{n.loss}, n.updates)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	sent := ops.Await(ops.Send(n.loss, "loss", graph.How{}))
	_, err := mesh.Lower(n.g, parse(t, "batch:4x2", ""), 0, []graph.Value{sent}, nil)
	if err == nil || !strings.Contains(err.Error(), "has exchanges of its own") {
		t.Errorf("a graph with exchanges: %v", err)
	}
	if _, err := mesh.Lower(n.g, parse(t, "batch:4", ""), 0, []graph.Value{sent}, nil); err != nil {
		t.Errorf("a graph with exchanges, in slices: %v", err)
	}
}

// TestRepeats: two runs over processes have the same bits, step after step, though sums are
// made in parts.
func TestRepeats(t *testing.T) {
	m := built(t, "moe")
	targets, feeds := workload(m)
	var worlds []*world
	for range 2 {
		w, err := over(m.Graph, parse(t, "batch:2x1,experts:2x2", ""), targets)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := w.step(targets[0], feeds); err != nil {
				t.Fatal(err)
			}
		}
		worlds = append(worlds, w)
	}
	for _, n := range m.Graph.Variables() {
		a, err := worlds[0].get(n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := worlds[1].get(n)
		if err != nil || string(a.Data) != string(b.Data) {
			t.Errorf("%s differs: %v", n.Name, err)
		}
	}
}
