package orion

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// groups are those of n workers on a network in memory, by rank.
func groups(t *testing.T, n int) (all []*collective.Group, net *memnet.Network) {
	t.Helper()
	return groupsOf(t, n, collective.Options{})
}

func groupsOf(t *testing.T, n int, o collective.Options) (all []*collective.Group,
	net *memnet.Network) {
	t.Helper()
	net = memnet.NewNetwork(n, memnet.Options{})
	var nodes []distrib.NodeID
	for i := range n {
		nodes = append(nodes, distrib.NodeID(i))
	}
	for _, id := range nodes {
		m, err := collective.NewMux(net.Node(id), o)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Group(nodes...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		all = append(all, g)
	}
	return all, net
}

// apart runs passes of a loop by workers that share nothing, and is what each of them has at the
// end.
func apart(t *testing.T, s *Schedule, points [][]int64, passes int) ([]*Trial, error) {
	t.Helper()
	trials, errs := make([]*Trial, s.Workers), make([]error, s.Workers)
	for i := range s.Loop.Arrays {
		s.Loop.Arrays[i].Bytes = TrialBytes
	}
	all, _ := groups(t, s.Workers)
	var wg sync.WaitGroup
	for rank, g := range all {
		trial, err := NewTrial(s.Loop, s.Workers, len(points))
		if err != nil {
			t.Fatal(err)
		}
		trials[rank] = trial
		wg.Go(func() {
			r := &Run{Schedule: s, Points: points, Body: trial.Body}
			w, err := r.Worker(g, trial)
			if err == nil {
				w.After = func(ctx context.Context, pass int) error {
					if pass < passes-1 {
						return nil
					}
					return w.Gather(ctx)
				}
				err = w.Run(t.Context(), passes)
			}
			if errs[rank] = err; err != nil {
				g.Abort(err)
			}
		})
	}
	wg.Wait()
	return trials, errors.Join(errs...)
}

// TestWorkersAreSerial: workers in processes of their own leave the bits of the serial order, of
// each kind of loop, after any number of passes.
func TestWorkersAreSerial(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	kinds := map[Kind]int{}
	for n := range longtest.Count(6000, 60000) {
		l := valid(rng, n%2 == 0)
		c, err := Choose(l, Options{Workers: 1 + rng.IntN(6), Times: rng.IntN(4)})
		if err != nil {
			t.Fatal(err)
		}
		points := some(rng, l)
		s := c.Schedule(points)
		if points == nil {
			points = all(l)
		}
		if kinds[s.Kind]++; s.Kind < Rotation && kinds[s.Kind] > 60 {
			continue
		}
		passes := 1 + n%3
		serial, err := NewTrial(l, s.Workers, len(points))
		if err != nil {
			t.Fatal(err)
		}
		for range passes {
			if err := (&Run{s, points, serial.Body, false}).Serial(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		trials, err := apart(t, s, points, passes)
		if err != nil {
			t.Fatalf("case %d: %v, of\n%s", n, err, l)
		}
		for rank, x := range trials {
			if why := differs(x, serial, rank); why != "" {
				t.Fatalf("case %d: %s by %d workers, %d passes: worker %d has other bits %s, "+
					"of\n%s", n, s.Kind, s.Workers, passes, rank, why, l)
			}
		}
	}
	for k := Serial; k <= Unimodular; k++ {
		if kinds[k] == 0 {
			t.Errorf("no loop is %s: %v", k, kinds)
		}
	}
}

// differs is where what a worker has differs from what there is in one process.
func differs(x, serial *Trial, rank int) string {
	for i := range x.data {
		if !slices.Equal(x.data[i], serial.data[i]) {
			return "of " + x.loop.Arrays[i].Name
		}
	}
	if !maps.Equal(x.buffers[rank], serial.buffers[rank]) {
		return "in its buffer"
	}
	return ""
}

// TestFactorsRotate: matrix factorisation by workers that share nothing has the bits of the serial
// order, in any order of its iterations and in the one that is written.
func TestFactorsRotate(t *testing.T) {
	text := strings.NewReplacer("600", "60", "900", "90").Replace(factorisation)
	for workers := 1; workers <= 6; workers++ {
		l := parse(t, text)
		l.Ordered = workers%2 == 0
		c, err := Choose(l, Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Schedule(nil)
		points := all(l)
		trial, err := NewTrial(l, workers, len(points))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := (&Run{s, points, trial.Body, false}).Serial(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		trials, err := apart(t, s, points, 2)
		if err != nil {
			t.Fatal(err)
		}
		for rank, x := range trials {
			if why := differs(x, trial, rank); why != "" {
				t.Errorf("%s, worker %d of %d: other bits %s", s.Kind, rank, workers, why)
			}
		}
		for _, d := range s.divisions() {
			if d.how == shares {
				t.Errorf("%s by %d workers: a matrix is shared", s.Kind, workers)
			}
		}
	}
}

// TestNobodyWaitsForAll: a worker waits for nothing but what its block needs, between passes
// neither: worker 1 does not end its last step before worker 2 has begun the next pass, with a part
// of time that worker 0 has handed on two steps before. A barrier would never let it.
func TestNobodyWaitsForAll(t *testing.T) {
	l := parse(t, factorisation)
	c, err := Choose(l, Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Schedule(nil)
	all, _ := groups(t, 3)
	begun := make(chan struct{})
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for rank, g := range all {
		w := &Worker{Schedule: s, Group: g, Memory: nowhere{}, Block: func(_ context.Context,
			pass, index int) error {
			if rank == 2 && pass == 1 && index == 0 {
				close(begun)
			}
			if rank == 1 && pass == 0 && s.Blocks[rank][index].Step == 5 {
				<-begun
			}
			return nil
		}}
		wg.Go(func() { errs[rank] = w.Run(t.Context(), 2) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestNoKnot: workers with many parts of time, who can hand on all of theirs before they need any
// of another's, do not wait for each other to take them.
func TestNoKnot(t *testing.T) {
	l := parse(t, factorisation)
	c, err := Choose(l, Options{Workers: 3, Times: 150})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Schedule(nil)
	all, _ := groupsOf(t, 3, collective.Options{Chunk: 64, Window: 256})
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for rank, g := range all {
		w := &Worker{Schedule: s, Group: g, Memory: nowhere{},
			Block: func(context.Context, int, int) error { return nil }}
		wg.Go(func() { errs[rank] = w.Run(t.Context(), 3) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || s.Along.Parts() < 400 {
		t.Errorf("%d parts of time: %v", s.Along.Parts(), err)
	}
}

// nowhere is the memory of a worker whose blocks do nothing.
type nowhere struct{}

func (nowhere) Load(b []byte, _ int, _, n int64) []byte { return append(b, make([]byte, 4*n)...) }
func (nowhere) Store(int, int64, int64, []byte)         {}

// TestWorkersEnd: a worker that fails, one that is lost, and the end of the context end all; whose
// schedule is for others is told so.
func TestWorkersEnd(t *testing.T) {
	l := parse(t, factorisation)
	c, err := Choose(l, Options{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Schedule(nil)
	failed := errors.New("failed")
	for name, at := range map[string]func(kill, cancel func()) error{
		"fails":    func(_, _ func()) error { return failed },
		"is lost":  func(kill, _ func()) error { kill(); return nil },
		"is ended": func(_, cancel func()) error { cancel(); return nil },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		all, net := groups(t, 4)
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for rank, g := range all {
			w := &Worker{Schedule: s, Group: g, Memory: nowhere{}, Sums: make([]float64, 1)}
			w.Block = func(_ context.Context, pass, index int) error {
				if rank == 2 && pass == 1 && index == 5 {
					return at(func() { net.Kill(2) }, cancel)
				}
				return nil
			}
			wg.Go(func() {
				if errs[rank] = w.Run(ctx, 1000); errs[rank] != nil {
					g.Abort(errs[rank])
				}
			})
		}
		wg.Wait()
		for rank, err := range errs {
			if err == nil {
				t.Errorf("a worker %s: worker %d goes on", name, rank)
			}
		}
		if name == "fails" && !errors.Is(errs[2], failed) {
			t.Errorf("%v", errs[2])
		}
		cancel()
	}
	all, _ := groups(t, 2)
	w := &Worker{Schedule: s, Group: all[0]}
	if err := w.Run(t.Context(), 1); err == nil ||
		!strings.Contains(err.Error(), "a schedule for 4 workers, and there are 2") {
		t.Errorf("%v", err)
	}
}
