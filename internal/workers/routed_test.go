package workers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/planner"
)

// bodies is a transport that counts the bytes of values that it sends to others. By notices,
// all of one size, workers compare in their own time which exchanges are new.
type bodies struct {
	distrib.Transport
	sent *atomic.Int64
}

func (b bodies) Send(to distrib.NodeID, m *distrib.Msg) {
	const notice = 256 // no value of the test has as many bytes
	size := 0
	for _, part := range m.Body {
		size += len(part)
	}
	if to != b.Self() && size != notice {
		b.sent.Add(int64(size))
	}
	b.Transport.Send(to, m)
}

// counted are the workers of a mesh, and what all of them send.
func counted(t *testing.T, m collective.Mesh) (all []*Member, sent *atomic.Int64) {
	t.Helper()
	sent = &atomic.Int64{}
	net, v := memnet.NewNetwork(m.Size(), memnet.Options{}), distrib.View{Epoch: 1}
	for i := range m.Size() {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	for i := range m.Size() {
		v.Self = distrib.NodeID(i)
		s, err := ParseScheme("ring", SchemeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := Join(v, bodies{net.Node(v.Self), sent}, s, Options{Mesh: m})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	t.Cleanup(func() {
		var done sync.WaitGroup
		for _, w := range all {
			done.Go(func() {
				if err := w.Close(nil); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	})
	return all, sent
}

// TestSumsAreForecast: what a mesh says of the bytes that processes send for a sum is what they
// send, of any number of processes, round the ring and by doubling.
func TestSumsAreForecast(t *testing.T) {
	if mesh.RingFrom != collective.Small {
		t.Fatalf("a ring from %d bytes on, forecast from %d on", collective.Small, mesh.RingFrom)
	}
	for n := 1; n <= 9; n++ {
		members, sent := counted(t, collective.Mesh{Shape: []int{n}, Names: []string{"x"}})
		for _, size := range []int{4, 1000, mesh.RingFrom - 4, mesh.RingFrom, mesh.RingFrom + 4*n} {
			sent.Store(0)
			all(n, func(rank int) {
				network, name := members[rank].Network(), fmt.Sprint("sum", size)
				err := network.Send(t.Context(), gomem.Exchange{Name: name, Parts: n,
					Type: graph.Of(graph.F32, size/4), Data: make([]byte, size),
					How: graph.How{Fold: graph.Sum, Along: "x"}})
				if err == nil {
					err = network.Await(t.Context(), name)
				}
				if err != nil {
					t.Errorf("%d bytes, process %d of %d: %v", size, rank, n, err)
				}
			})
			if got, want := sent.Load(), mesh.SumSent(int64(size), n); got != want {
				t.Errorf("%d processes send %d bytes for a sum of %d, forecast %d", n, got, size,
					want)
			}
		}
	}
}

// layer is a step of a layer with sparse experts, whose choices are fed.
type layer struct {
	graph         *graph.Graph
	x, rate       graph.Value
	choices       [2]graph.Value
	target        gomem.Target
	width, tokens int
}

// expertsOf is a layer with so many experts, stacked or not.
func expertsOf(t *testing.T, experts int, stacked bool) *layer {
	t.Helper()
	l := &layer{graph: graph.New(), width: 6, tokens: 24}
	g, normal := l.graph, graph.Init{Dist: graph.Normal, Scale: 0.5}
	l.x = g.Input("x", graph.Named(graph.F32, graph.Dim{Name: "batch", Size: l.tokens},
		graph.Dim{Size: l.width}))
	l.rate = g.Input("rate", tensor.Of(graph.F32))
	for i := range l.choices {
		l.choices[i] = g.Input(fmt.Sprint("choice", i), tensor.Of(graph.I32, l.tokens))
	}
	in := g.Variable("in", tensor.Of(graph.F32, l.width, l.width), normal)
	gate := g.Variable("gate", tensor.Of(graph.F32, l.width, 2), normal)
	weights := []graph.Value{in, gate}
	multiply := func(name string, x, offsets graph.Value) graph.Value {
		if stacked {
			w := g.Variable(name, graph.Named(graph.F32, graph.Dim{Name: "experts", Size: experts},
				graph.Dim{Size: l.width}, graph.Dim{Size: l.width}), normal)
			weights = append(weights, w)
			return ops.GroupedMatMul(x, w, offsets)
		}
		var own []graph.Value
		for e := range experts {
			w := g.Variable(fmt.Sprint(name, e), tensor.Of(graph.F32, l.width, l.width), normal)
			g.Place(w, "experts", e, experts)
			own = append(own, w)
		}
		weights = append(weights, own...)
		return ops.ExpertMatMul(x, own, offsets)
	}
	x := ops.Tanh(ops.MatMul(l.x, in))
	rows, inv, offsets := ops.Route(l.choices[0], l.choices[1], experts)
	y := ops.Relu(multiply("w0/", ops.GatherRows(x, rows, inv), offsets))
	y = ops.CombineRows(multiply("w1/", y, offsets), ops.Softmax(ops.MatMul(x, gate)), inv, rows)
	loss := ops.Mean(ops.Square(ops.Add(x, y)))
	l.target = gomem.Target{Name: "step", Fetches: []graph.Value{loss}}
	for i, d := range autodiff.Grad(loss, weights...) {
		l.target.Updates = append(l.target.Updates, ops.SGD(weights[i], d, l.rate).ID)
	}
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// feeds are a step's, whose tokens have some choices.
func (l *layer) feeds(routes [][2]int32) gomem.Feeds {
	feeds := gomem.Feeds{l.x: gomem.NewTensor(l.x.Type()), l.rate: gomem.NewTensor(l.rate.Type())}
	for i := range feeds[l.x].F32() {
		feeds[l.x].F32()[i] = float32(i*7%11)/8 - 0.5
	}
	feeds[l.rate].F32()[0] = 0.1
	for k, v := range l.choices {
		feeds[v] = gomem.NewTensor(v.Type())
		for i, route := range routes {
			feeds[v].I32()[i] = route[k]
		}
	}
	return feeds
}

// routings are choices of steps: first those in which nobody wants anything of another of n
// processes, twice, as the first step says other things, too; then any, and unbalanced ones.
func (l *layer) routings(n, experts int) (list [][][2]int32) {
	draw := rand.New(rand.NewPCG(uint64(n), uint64(experts)))
	for kind := range 6 {
		var routes [][2]int32
		for t := range l.tokens {
			home := int32(t / (l.tokens / n) * (experts / n))
			a, b := draw.Int32N(int32(experts)), draw.Int32N(int32(experts)+1)-1
			switch kind {
			case 0, 1:
				a, b = home, home
			case 3:
				a, b = int32(experts-1), -1 // all to the last
			case 4:
				a, b = 0, int32(experts/2) // to two; the others have none
			}
			routes = append(routes, [2]int32{a, b})
		}
		list = append(list, routes)
	}
	return list
}

// wanted is how many bytes experts of other processes want: of tokens forward and of their
// gradients backward, and as much of what comes of each; and of the gates of choices, and of
// their gradients.
func (l *layer) wanted(routes [][2]int32, n, experts int) (bytes int64) {
	for t, route := range routes {
		home, seen := t/(l.tokens/n), map[int]bool{}
		for _, e := range route {
			if at := int(e) / (experts / n); e >= 0 && at != home {
				seen[at] = true
				bytes += 2 * 4
			}
		}
		bytes += int64(4 * len(seen) * l.width * 4)
	}
	return bytes
}

// TestRoutedBytes: over two to four processes that divide both the batch and sparse experts,
// the transport carries, of rows, those that experts of another process want, to the byte,
// forward and backward, however unevenly tokens are routed; and every step's loss is that of one
// process alone.
func TestRoutedBytes(t *testing.T) {
	policies := []gomem.Options{{Policy: planner.Vanilla}, {Policy: planner.Thesis, Partition: 3},
		{Policy: planner.Auto}}
	for n := 2; n <= 4; n++ {
		for _, stacked := range []bool{false, true} {
			experts := 2 * n
			l := expertsOf(t, experts, stacked)
			routings := l.routings(n, experts)
			o := policies[n-2]
			o.Threads = 1
			want, _ := l.losses(t, []gomem.Options{o}, routings, nil)
			spec, err := mesh.Parse(fmt.Sprintf("x:%dx1", n), "batch=x,experts=x")
			if err != nil {
				t.Fatal(err)
			}
			members, sent := counted(t, collective.Mesh{Shape: []int{n}, Names: []string{"x"}})
			var each []gomem.Options
			for rank, m := range members {
				own := o
				own.Mesh, own.Rank, own.Network = spec, rank, m.Network()
				each = append(each, own)
			}
			got, bytes := l.losses(t, each, routings, sent)
			for step, loss := range got {
				if off := math.Abs(float64(loss - want[step])); off > 1e-6 {
					t.Errorf("%d processes, step %d: loss %v, want %v", n, step, loss, want[step])
				}
				rows := l.wanted(routings[step], n, experts)
				if step > 0 && bytes[step]-bytes[1] != rows {
					t.Errorf("%d processes, step %d: %d bytes of rows, want %d", n, step,
						bytes[step]-bytes[1], rows)
				}
			}
		}
	}
}

// losses runs a step for each routing in every process, in a session of its own, and counts
// what is sent; all have the same losses.
func (l *layer) losses(t *testing.T, each []gomem.Options, routings [][][2]int32,
	sent *atomic.Int64) (losses []float32, bytes []int64) {
	t.Helper()
	sessions := make([]*gomem.Session, len(each))
	together := func(f func(rank int) error) {
		t.Helper()
		errs := make([]error, len(each))
		var all sync.WaitGroup
		for rank := range each {
			all.Go(func() { errs[rank] = f(rank) })
		}
		all.Wait()
		for rank, err := range errs {
			if err != nil {
				t.Fatalf("worker %d: %v", rank, err)
			}
		}
	}
	together(func(rank int) (err error) {
		sessions[rank], err = gomem.Compile(t.Context(), l.graph, each[rank], l.target)
		return err
	})
	for _, routes := range routings {
		var before int64
		if sent != nil {
			before = sent.Load()
		}
		own := make([]float32, len(each))
		together(func(rank int) error {
			out, err := sessions[rank].Step(t.Context(), l.target.Name, l.feeds(routes))
			if err == nil {
				own[rank] = out[0].F32()[0]
			}
			return err
		})
		for rank, loss := range own {
			if loss != own[0] {
				t.Errorf("worker %d has loss %v, worker 0 %v", rank, loss, own[0])
			}
		}
		if losses = append(losses, own[0]); sent != nil {
			bytes = append(bytes, sent.Load()-before)
		}
	}
	together(func(rank int) error {
		for _, u := range sessions[rank].Usage() {
			if u.Actual != u.Predicted {
				return fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
			}
		}
		return sessions[rank].Close()
	})
	return losses, bytes
}
