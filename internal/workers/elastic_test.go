package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// site is where the workers of a test meet: a network for each view, and who is in it.
type site struct {
	most int

	mu    sync.Mutex
	epoch int64
	here  map[distrib.NodeID]*place
	nets  map[int64]*memnet.Network
	last  map[distrib.NodeID]*once
	opens func(id distrib.NodeID, epoch int64) // called before a node opens a view; may be nil
	vital string                               // as of Elastic
	how   SchemeOptions
	log   func(id distrib.NodeID) *slog.Logger   // nil: none
	again func(id distrib.NodeID) (Place, error) // joins anew; nil: who is out ends

	expels chan distrib.NodeID // nil: nobody is expelled
}

// place is a node of a site.
type place struct {
	views chan distrib.View
	alive context.Context
	end   context.CancelCauseFunc
}

var errKilled = errors.New("killed")

func newSite(most int) *site {
	return &site{most: most, here: map[distrib.NodeID]*place{}, nets: map[int64]*memnet.Network{},
		last: map[distrib.NodeID]*once{}}
}

// come adds nodes, and tells all of the next view.
func (s *site) come(ids ...distrib.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		p := &place{views: make(chan distrib.View, 100)}
		p.alive, p.end = context.WithCancelCause(context.Background())
		s.here[id], s.last[id] = p, nil
	}
	s.publish()
}

// publish tells all nodes of the next view. The site is locked.
func (s *site) publish() {
	s.epoch++
	s.nets[s.epoch] = memnet.NewNetwork(s.most, memnet.Options{})
	for id, p := range s.here {
		p.views <- s.view(id)
	}
}

func (s *site) view(self distrib.NodeID) distrib.View {
	v := distrib.View{Epoch: s.epoch, Self: self}
	for i := range distrib.NodeID(s.most) {
		if s.here[i] != nil {
			v.Nodes = append(v.Nodes, distrib.Node{ID: i})
		}
	}
	return v
}

// kill ends nodes as kill -9 does: their connections break, and a while later they are in
// no view.
func (s *site) kill(ids ...distrib.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.here[id] == nil {
			continue
		}
		s.here[id].end(errKilled)
		s.nets[s.epoch].Kill(id)
		delete(s.here, id)
	}
	time.AfterFunc(20*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.publish()
	})
}

// freeze stops a node as SIGSTOP does: no connection breaks, and a while later it is in no view.
func (s *site) freeze(id distrib.NodeID) {
	s.mu.Lock()
	s.nets[s.epoch].Partition(id)
	s.here[id].end(errKilled)
	s.mu.Unlock()
	time.AfterFunc(20*time.Millisecond, func() { s.leave(id) })
}

// leave takes a node out that has ended.
func (s *site) leave(id distrib.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here[id] != nil {
		delete(s.here, id)
		s.publish()
	}
}

func (s *site) open(v distrib.View) (distrib.Transport, error) {
	if s.opens != nil {
		s.opens(v.Self, v.Epoch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.last[v.Self]; old != nil && !old.closed.Load() {
		return nil, fmt.Errorf("epoch %d is open still, %d cannot begin", old.epoch, v.Epoch)
	}
	t := &once{Transport: s.nets[v.Epoch].Node(v.Self), epoch: v.Epoch}
	s.last[v.Self] = t
	return t, nil
}

// once is a transport that must be closed before the next one is opened, as a port's.
type once struct {
	distrib.Transport
	epoch  int64
	closed atomic.Bool
}

// Drop gives a node up.
func (o *once) Drop(node distrib.NodeID, why error) {
	o.Transport.(distrib.Dropper).Drop(node, why)
}

// Close closes it.
func (o *once) Close() error {
	o.closed.Store(true)
	return o.Transport.Close()
}

// join makes a member of a node, with how many workers must go on; wrapped, if it is not
// nil, wraps the node's first transport.
func (s *site) join(id distrib.NodeID, scheme string, least int, wait time.Duration,
	wrapped func(distrib.Transport) distrib.Transport) (*Member, error) {
	s.mu.Lock()
	p := s.here[id]
	s.mu.Unlock()
	v := <-p.views
	t, err := s.open(v)
	if err != nil {
		return nil, err
	}
	if wrapped != nil {
		t = wrapped(t)
	}
	how, o, err := s.options(id, p, scheme, least, wait)
	if err != nil {
		return nil, err
	}
	return Join(v, t, how, o)
}

// options are a member's.
func (s *site) options(id distrib.NodeID, p *place, scheme string, least int,
	wait time.Duration) (how Scheme, o Options, err error) {
	if scheme == "stratified" {
		how = Schedule(scheme, "by a schedule")
	} else if how, err = ParseScheme(scheme, s.how); err != nil {
		return how, o, err
	}
	renew := func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.publish()
		return nil
	}
	o = Options{Alive: p.alive, Log: func(string) {}}
	if s.log != nil {
		o.Logger = s.log(id)
	}
	if least > 0 {
		o.Elastic = &Elastic{Least: least, Most: s.most, Views: p.views, Open: s.open, Renew: renew,
			Wait: wait, Quiet: 500 * time.Millisecond, Vital: s.vital, Remedy: "do",
			Again: s.joinedAgain(id), Within: time.Minute,
			Own: func(string) {}}
		if s.expels != nil {
			o.Elastic.Expel = s.expel
		}
	}
	return how, o, nil
}

// lesson is a small problem of classes that workers learn together.
func lesson(t *testing.T, within bool) train.Options {
	t.Helper()
	return accumulating(t, within, 1)
}

// accumulating is one whose updates are of several batches.
func accumulating(t *testing.T, within bool, batches int) train.Options {
	t.Helper()
	const n, width, batch = 480, 5, 6
	x, y := tensor.New(tensor.Of(graph.F32, n, width)), tensor.New(tensor.Of(graph.I32, n))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x.F32() {
		x.F32()[i] = float32(rng.NormFloat64()) + float32(i/width%3)
		y.I32()[i/width] = int32(i / width % 3)
	}
	m := nn.NewModel()
	if within {
		m.Workers = 4
	}
	x0, y0 := m.Input("x", graph.F32, batch, width), m.Input("y", graph.I32, batch)
	net := func(c *nn.Ctx) graph.Value {
		return nn.Linear(c.In("out"), nn.Tanh(nn.Linear(c.In("in"), x0, 7)), 3)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y0), nn.Momentum{Mu: 0.9}, nn.MinimizeOptions{
		Rate: nn.Constant(0.05), Accumulate: batches})
	m.Evaluate(nn.CrossEntropy(net(m.Evaluation()), y0))
	l, err := data.FromTensors(data.ExamplesOptions{Batch: batch, HeldOut: 24}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	return train.Options{Model: m, Loader: l, Session: gomem.Options{Threads: 1}, Seed: 5}
}

// ended is what came of a worker.
type ended struct {
	train.Summary
	err    error
	events []train.Event
}

// changes are the events of views: after which step, and with how many workers. Who had shown
// that step is chance.
func (e *ended) changes() (out []string) {
	for _, v := range e.events {
		if v.Kind != train.View {
			continue
		}
		text, rest, _ := strings.Cut(v.Text, " from step ")
		if !strings.HasSuffix(rest, " could not be shown") {
			text = v.Text
		}
		out = append(out, fmt.Sprintf("%d: %s", v.Step, text))
	}
	return out
}

// course is a run on a site.
type course struct {
	*site
	scheme string
	least  int
	wait   time.Duration
	own    func(id distrib.NodeID, o *train.Options)
	wraps  func(id distrib.NodeID) func(distrib.Transport) distrib.Transport
	ctx    func(id distrib.NodeID) context.Context
	parts  func(m *Member, p *train.Parallel) // changes a worker's part

	late    distrib.NodeID // joins when it is ready; 0: nobody does
	refused error          // what comes of that, if not nil
}

// work is a worker's whole part.
func (c *course) work(t *testing.T, id distrib.NodeID) *ended {
	e := &ended{}
	var wrapped func(distrib.Transport) distrib.Transport
	if c.wraps != nil {
		wrapped = c.wraps(id)
	}
	m, err := c.member(id, wrapped)
	if err != nil {
		e.err = err
		return e
	}
	o := lesson(t, m.Network() != nil)
	o.Session.Network = m.Network()
	o.Observe = func(v train.Event) { e.events = append(e.events, v) }
	if c.own != nil {
		c.own(id, &o)
	}
	ctx := t.Context()
	if c.ctx != nil {
		ctx = c.ctx(id)
	}
	if o.Parallel, e.err = m.Parallel(o.Model.Graph); e.err == nil {
		if c.parts != nil {
			c.parts(m, o.Parallel)
		}
		e.Summary, e.err = train.Run(ctx, o)
	}
	e.err = m.Close(e.err)
	c.leave(id)
	return e
}

// member is a worker's, which comes when it is ready if it is late.
func (c *course) member(id distrib.NodeID, wrapped func(distrib.Transport) distrib.Transport) (
	*Member, error) {
	if c.late == 0 || id != c.late {
		return c.join(id, c.scheme, c.least, c.wait, wrapped)
	}
	how, o, err := c.options(id, &place{}, c.scheme, c.least, c.wait)
	if err != nil {
		return nil, err
	}
	return Coming(how, o, func(context.Context) (Place, error) {
		if c.refused != nil {
			return Place{}, c.refused
		}
		c.come(id)
		c.mu.Lock()
		p := c.here[id]
		c.mu.Unlock()
		v := <-p.views
		t, err := c.open(v)
		return Place{View: v, Transport: t, Alive: p.alive, Views: p.views}, err
	})
}

// all runs workers 0 to n-1, and has the whole in bounded time.
func (c *course) all(t *testing.T, n int) []*ended {
	t.Helper()
	var ids []distrib.NodeID
	for i := range n {
		ids = append(ids, distrib.NodeID(i))
	}
	c.come(ids...)
	out := make([]*ended, n)
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() { out[id] = c.work(t, id) })
	}
	wg.Wait()
	return out
}

// resumed are the weights of a run of 4 workers up to a step, which others resume then.
func resumed(t *testing.T, step, workers, steps int) string {
	t.Helper()
	return resumedBy(t, 4, step, workers, steps)
}

// resumedBy are those of a run of any number of workers before that.
func resumedBy(t *testing.T, before, step, workers, steps int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	first := &course{site: newSite(4), scheme: "ring"}
	first.own = func(_ distrib.NodeID, o *train.Options) { o.Steps, o.Save = step, dir }
	if e := first.all(t, before)[0]; e.err != nil {
		t.Fatal(e.err)
	}
	then := &course{site: newSite(4), scheme: "ring"}
	then.own = func(_ distrib.NodeID, o *train.Options) { o.Steps, o.Resume = steps, dir }
	e := then.all(t, workers)[0]
	if e.err != nil {
		t.Fatal(e.err)
	}
	return e.WeightsSHA256
}

// fatal is a transport whose n-th message to others kills its node.
type fatal struct {
	distrib.Transport
	mu   sync.Mutex
	left int
	kill func()
}

func (f *fatal) Send(to distrib.NodeID, m *distrib.Msg) {
	f.mu.Lock()
	f.left--
	now := f.left == 0
	f.mu.Unlock()
	if now {
		f.kill()
	}
	f.Transport.Send(to, m)
}

// TestLossInAStep: wherever a worker is lost, in the middle of a step, the others go on in
// the same processes, and learn, to the bit, what they would have if they had resumed a
// checkpoint of the step after which they went on.
func TestLossInAStep(t *testing.T) {
	const steps = 12
	want := map[int]string{}
	phases := longtest.Count(12, 150)
	for i := range phases {
		at := 8 + i*130/phases
		c := &course{site: newSite(4), scheme: "ring", least: 2,
			own: func(_ distrib.NodeID, o *train.Options) { o.Steps = steps }}
		c.wraps = func(id distrib.NodeID) func(distrib.Transport) distrib.Transport {
			if id != 2 {
				return nil
			}
			return func(t distrib.Transport) distrib.Transport {
				return &fatal{Transport: t, left: at, kill: func() { c.kill(2) }}
			}
		}
		out := c.all(t, 4)
		if out[2].err == nil {
			t.Fatalf("message %d: worker 2 ends well: the run is over before", at)
		}
		changes := out[0].changes()
		for _, id := range []int{0, 1, 3} {
			if e := out[id]; e.err != nil || e.Steps != steps || e.Workers != 3 ||
				fmt.Sprint(e.changes()) != fmt.Sprint(changes) {
				t.Fatalf("message %d: worker %d: %v, %+v, %v", at, id, e.err, e.Summary,
					e.changes())
			}
		}
		var step int
		if len(changes) != 1 {
			t.Fatalf("message %d: %v", at, changes)
		}
		if _, err := fmt.Sscanf(changes[0], "%d: worker 2 is gone; 3 go on", &step); err != nil {
			t.Fatalf("%q: %v", changes[0], err)
		}
		if step == steps {
			step = 0 // nothing was to be done again, and nothing to be resumed
		}
		if want[step] == "" && step > 0 {
			want[step] = resumed(t, step, 3, steps)
		}
		if step > 0 && out[0].WeightsSHA256 != want[step] {
			t.Errorf("message %d: other weights than a run resumed at step %d has", at, step)
		}
	}
	if len(want) < 3 {
		t.Errorf("losses after %d steps only", len(want))
	}
}

// gate ends a worker before one of its batches is made.
type gate struct {
	data.Batches
	at int
	do func()
}

func (g gate) Train(i int) data.Batch {
	if i >= g.at && i < g.at+4 {
		g.do()
	}
	return g.Batches.Train(i)
}

// Uncounted is as of [data.Maskable].
func (g gate) Uncounted(i int) (b data.Batch, ok bool) {
	if m, ok := g.Batches.(data.Maskable); ok {
		return m.Uncounted(i)
	}
	return b, false
}

// TestLosses: workers that are lost before a step, two at once, while a checkpoint is
// saved, while the next group is formed, one after the other; what is left goes on.
func TestLosses(t *testing.T) {
	const steps = 16
	for name, arrange := range map[string]func(c *course) (left []int){
		"before a step": func(c *course) []int {
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = steps; id == 1 {
					o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.kill(1) })}
				}
			}
			return []int{0, 2, 3}
		},
		"one that is stopped": func(c *course) []int {
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = steps; id == 1 {
					o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.freeze(1) })}
				}
			}
			return []int{0, 2, 3}
		},
		"two at once": func(c *course) []int {
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = steps; id == 1 {
					o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.kill(1, 3) })}
				}
			}
			return []int{0, 2}
		},
		"while saving": func(c *course) []int {
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = steps; id == 0 {
					show := o.Observe
					o.Observe = func(e train.Event) {
						if show(e); e.Kind == train.Save && e.Step == 4 {
							c.kill(2)
						}
					}
				}
			}
			return []int{0, 1, 3}
		},
		"while a group is formed": func(c *course) []int {
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = steps; id == 1 {
					o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.kill(1) })}
				}
			}
			c.opens = func(id distrib.NodeID, epoch int64) {
				if id == 2 && epoch == 2 {
					c.kill(2)
				}
			}
			return []int{0, 3}
		},
		"the first": func(c *course) []int {
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = steps; id == 0 {
					o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.kill(0) })}
				}
			}
			return []int{1, 2, 3}
		},
		"one after the other": func(c *course) []int {
			c.own = func(id distrib.NodeID, o *train.Options) {
				if o.Steps = steps; id == 1 || id == 2 {
					o.Loader = gate{o.Loader, 16 * int(id), sync.OnceFunc(func() { c.kill(id) })}
				}
			}
			return []int{0, 3}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &course{site: newSite(4), scheme: "ring", least: 2}
			left := arrange(c)
			own, dir := c.own, filepath.Join(t.TempDir(), "run")
			c.own = func(id distrib.NodeID, o *train.Options) {
				o.Save, o.SaveEvery = dir, 4
				own(id, o)
			}
			out := c.all(t, 4)
			first := out[left[0]]
			for _, id := range left {
				if e := out[id]; e.err != nil || e.Steps != steps || e.Workers != len(left) {
					t.Errorf("worker %d: %v, %+v, %v", id, e.err, e.Summary, e.changes())
				}
			}
			saved, err := train.Inspect(dir)
			if err != nil || saved.Step != steps || max(saved.Workers, 1) != len(left) ||
				first.Checkpoint != saved.Path {
				t.Errorf("%+v, %v; %v", saved, err, first.changes())
			}
		})
	}
}

// TestTooFew: fewer than are needed save and end, with the reason; after a wait, if others
// could come.
func TestTooFew(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0:                     "1 worker is left, --min is 2",
		50 * time.Millisecond: "1 worker is left, --min is 2: nobody has come for 50ms",
	} {
		dir := filepath.Join(t.TempDir(), "run")
		c := &course{site: newSite(2), scheme: "ring", least: 2, wait: wait}
		c.own = func(id distrib.NodeID, o *train.Options) {
			if o.Steps, o.Save = 100, dir; id == 1 {
				o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.kill(1) })}
			}
		}
		out := c.all(t, 2)
		saved, err := train.Inspect(dir)
		if out[0].err == nil || out[0].err.Error() != want || err != nil || saved.Step != 10 ||
			saved.Executions != 20 {
			t.Errorf("%v; %+v, %v", out[0].err, saved, err)
		}
	}
}
