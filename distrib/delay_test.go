package distrib_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// spy is a rule that adds and remembers when updates came.
type spy struct {
	distrib.Additive
	at, delay []distrib.Version
}

func (s *spy) Apply(w []float32, cols int, e *distrib.Entry) distrib.Version {
	s.at, s.delay = append(s.at, e.At), append(s.delay, e.Delay)
	return s.Additive.Apply(w, cols, e)
}

// late is a job of one server and workers that compute for times of their own.
type late struct {
	workers, clocks int
	most            distrib.Version
	pause           func(rng *rand.Rand, worker int) time.Duration
	rule            func() distrib.Rule
	wrap            distrib.Wrap
}

// run returns the engines' books, what the server has in the end, and its rule.
func (l *late) run(t *testing.T) (all []distrib.Audit, end []float32, rule distrib.Rule) {
	t.Helper()
	ts := memnet.New(l.workers+1, memnet.Options{Latency: time.Millisecond, Bps: 1e6})
	view := distrib.View{Epoch: 2, Nodes: []distrib.Node{{Roles: []string{distrib.RoleServer}}}}
	for i := range l.workers {
		view.Nodes = append(view.Nodes, distrib.Node{ID: distrib.NodeID(i + 1),
			Roles: []string{distrib.RoleWorker}})
	}
	var engines []*distrib.Engine
	var wg sync.WaitGroup
	rule = l.rule()
	for i := range ts {
		if l.wrap != nil {
			ts[i] = l.wrap(ts[i])
		}
		view.Self = distrib.NodeID(i)
		e, err := distrib.New(distrib.Config{Transport: ts[i], View: view, Audited: true,
			Message: math.MaxInt32, Plan: distrib.Plan{Rule: rule,
				Consistency: distrib.Async{Delay: l.most}}})
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
		w := &distrib.Param{Name: "w", Rows: 30, Cols: 10, Data: make([]float32, 300)}
		if i == 0 {
			if err := e.Attach(w); err != nil {
				t.Fatal(err)
			}
			continue
		}
		wg.Go(func() {
			x := l.work(t, i, e.Worker(0), w)
			if i == 1 {
				end = x
			}
		})
	}
	wg.Wait()
	for _, e := range engines {
		<-e.Done()
		a := e.Audit()
		if err := a.Check(); err != nil {
			t.Error(err)
		}
		all = append(all, a)
		e.Close()
	}
	for _, tr := range ts {
		tr.Close()
	}
	return all, end, rule
}

// work adds one to all elements each clock, and returns what is there in the end.
func (l *late) work(t *testing.T, i int, s distrib.Synchronizer, w *distrib.Param) []float32 {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(7, uint64(i)))
	err := s.Attach(w)
	for range l.clocks {
		if err == nil {
			_, err = s.Pull(ctx, distrib.Ref{})
		}
		time.Sleep(l.pause(rng, i))
		if err == nil {
			err = s.Push(ctx, distrib.Ref{}, distrib.Dense(slices.Repeat([]float32{1}, 300)))
		}
		if err == nil {
			_, err = s.Tick(ctx)
		}
	}
	if err == nil {
		_, err = s.Pull(ctx, distrib.Ref{})
	}
	x := slices.Clone(w.Data)
	if err = errors.Join(err, s.Close()); err != nil {
		t.Errorf("worker %d: %v", i, err)
	}
	return x
}

// TestDelaysAreBounded: whatever workers' pauses, no update is folded in after more others than
// the bound since it was computed; what is discarded is counted, and the books are balanced.
func TestDelaysAreBounded(t *testing.T) {
	for seed := range uint64(longtest.Count(6, 300)) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			l := &late{workers: 2 + rng.IntN(5), clocks: 5 + rng.IntN(20),
				most: distrib.Version(1 + rng.IntN(6)), rule: func() distrib.Rule { return &spy{} },
				pause: func(rng *rand.Rand, worker int) time.Duration {
					return time.Duration(rng.IntN(20*worker*worker)) * time.Millisecond
				}}
			all, _, rule := l.run(t)
			s := rule.(*spy)
			for i, by := range s.delay {
				if by > l.most || s.at[i] != distrib.Version(i) {
					t.Errorf("update %d is number %d, %d late of %d", i, s.at[i], by, l.most)
				}
			}
			var counted int64
			for _, n := range all[0].Delays {
				counted += n
			}
			if n := int64(l.workers * l.clocks); all[0].Stale+int64(len(s.delay)) != n ||
				counted != int64(len(s.delay)) {
				t.Errorf("%d folded in, %d counted, %d discarded, of %d", len(s.delay), counted,
					all[0].Stale, n)
			}
		})
	}
}

// TestNothingIsLateAlone: a worker alone computes from all that it has pushed.
func TestNothingIsLateAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{workers: 1, clocks: 9, most: 1, rule: func() distrib.Rule { return &spy{} },
			pause: func(*rand.Rand, int) time.Duration { return time.Millisecond }}
		all, end, rule := l.run(t)
		if d := rule.(*spy).delay; slices.Max(d) != 0 || len(d) != 9 || all[0].Stale != 0 {
			t.Errorf("delays %v, %d discarded", d, all[0].Stale)
		}
		if end[0] != 9 {
			t.Errorf("it ends with %v, want 9", end[0])
		}
	})
}

// TestAdaDelay: the steps are those of the formula, and a sum of weighted updates is theirs.
func TestAdaDelay(t *testing.T) {
	a := &distrib.AdaDelay{C: 2, L: 3}
	w := []float32{10, 20}
	a.Apply(w, 2, &distrib.Entry{At: 6, Delay: 9, U: distrib.Dense{1, -2}})
	if want := []float32{10 - 1./11, 20 + 2./11}; math.Abs(float64(w[0]-want[0])) > 1e-6 ||
		math.Abs(float64(w[1]-want[1])) > 1e-6 {
		t.Errorf("%v, want %v", w, want)
	}
	for _, text := range []string{"adadelay", "adadelay:2", "adadelay:2:3"} {
		if _, err := distrib.ParseRule(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"adadelay:0", "adadelay:1:-1", "adadelay:1:2:3", "adadelay:x"} {
		if r, err := distrib.ParseRule(text); err == nil {
			t.Errorf("%s is %+v", text, r)
		}
	}
}

// sums is a transport that holds updates back until there is one of each of its workers, and
// hands their owner one sum of them.
type sums struct {
	distrib.Transport
	mu   *sync.Mutex
	wait *[]heldPush
	pool *distrib.Pool
	of   int
	hits *int
}

type heldPush struct {
	from distrib.NodeID
	m    *distrib.Msg
}

func (s *sums) Serve(h distrib.Handler) {
	if s.Self() == 0 {
		*s.pool = h.(distrib.Pool)
	}
	s.Transport.Serve(h)
}

func (s *sums) Send(to distrib.NodeID, m *distrib.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to != 0 || *s.pool == nil {
		s.Transport.Send(to, m)
		return
	}
	if _, ok := (*s.pool).Push(m); !ok {
		s.Transport.Send(to, m)
		return
	}
	*s.wait = append(*s.wait, heldPush{s.Self(), m})
	if len(*s.wait) < s.of {
		return
	}
	go s.hand(*s.wait)
	*s.wait = nil
}

// hand hands a sum over, twice: the second time is one too many.
func (s *sums) hand(all []heldPush) {
	var ms []*distrib.Msg
	var parts []distrib.Part
	for _, h := range all {
		ms, parts = append(ms, h.m), append(parts, distrib.Part{From: h.from, Head: h.m.Head})
	}
	body, err := (*s.pool).Sum(ms, 0)
	for _, want := range []bool{true, false} {
		taken, wrong := (*s.pool).TakeSum(parts, body)
		err = errors.Join(err, wrong)
		if taken != want {
			err = errors.Join(err, fmt.Errorf("taken: %v, want %v", taken, want))
		}
	}
	s.mu.Lock()
	*s.hits++
	s.mu.Unlock()
	for _, h := range all {
		h.m.Done(err)
	}
}

// TestSumsCountAsTheirParts: what is added up on its way is folded in once, with all its clocks,
// and as if each update had come by itself.
func TestSumsCountAsTheirParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var wait []heldPush
		var pool distrib.Pool
		hits := 0
		l := &late{workers: 3, clocks: 8, most: 99, rule: func() distrib.Rule { return nil },
			pause: func(*rand.Rand, int) time.Duration { return time.Millisecond },
			wrap: func(tr distrib.Transport) distrib.Transport {
				return &sums{tr, &mu, &wait, &pool, 3, &hits}
			}}
		all, end, _ := l.run(t)
		if hits != 8 || end[0] != 24 {
			t.Errorf("%d sums, and %v in the end, want 8 and 24", hits, end[0])
		}
		if l := all[0].Params[0]; l.Received != 24*300 {
			t.Errorf("%v were received", l.Received)
		}
	})
}

// TestSumsAreWeighted: under a rule that weighs updates, a sum has each by its place in it.
func TestSumsAreWeighted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var wait []heldPush
		var pool distrib.Pool
		hits, a := 0, &distrib.AdaDelay{C: 2, L: 3}
		l := &late{workers: 3, clocks: 1, most: 99, rule: func() distrib.Rule { return a },
			pause: func(*rand.Rand, int) time.Duration { return time.Millisecond },
			wrap: func(tr distrib.Transport) distrib.Transport {
				return &sums{tr, &mu, &wait, &pool, 3, &hits}
			}}
		_, end, _ := l.run(t)
		want := 0.0
		for i := range 3 { // computed from nothing, the i-th without the i before it
			want -= 1 / (3 + 2*math.Sqrt(float64(2*i+1)))
		}
		if hits != 1 || math.Abs(float64(end[0])-want) > 1e-6 {
			t.Errorf("%d sums, and %v in the end, want 1 and %v", hits, end[0], want)
		}
	})
}

// TestSumsThatMakeNoSense are refused, and change nothing.
func TestSumsThatMakeNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := memnet.New(2, memnet.Options{})
		var pool distrib.Pool
		grab := &grabbed{Transport: ts[0], pool: &pool}
		e, err := distrib.New(distrib.Config{Transport: grab, View: viewOf(2)})
		if err == nil {
			err = e.Worker(0).Attach(&distrib.Param{Name: "w", Rows: 1, Cols: 1,
				Data: make([]float32, 1)})
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, parts := range [][]distrib.Part{nil, {{From: 1}}, {{From: 1, Head: []byte("what")}},
			{{From: 1, Head: make([]byte, 64)}}} {
			taken, err := pool.TakeSum(parts, [][]byte{[]byte("garbage")})
			if taken || err == nil {
				t.Errorf("case %d is taken: %v %v", i, taken, err)
			}
		}
		for _, m := range []*distrib.Msg{{}, {Class: distrib.Updates, Head: []byte{3, 4}}} {
			if _, ok := pool.Push(m); ok {
				t.Errorf("%v is a push", m)
			}
			if _, err := pool.Sum([]*distrib.Msg{m}, 0); err == nil {
				t.Errorf("%v is added up", m)
			}
		}
		e.Close()
		ts[0].Close()
		ts[1].Close()
	})
}

type grabbed struct {
	distrib.Transport
	pool *distrib.Pool
}

func (g *grabbed) Serve(h distrib.Handler) {
	*g.pool = h.(distrib.Pool)
	g.Transport.Serve(h)
}
