package distrib_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/wrap"
	"github.com/gomem/gomem/internal/longtest"
)

func bsp() distrib.Plan { return distrib.Plan{Consistency: distrib.BSP{}} }

// TestStall: who waits too long is told who is missing, first in the log, then by an
// error; and goes on when the missing one comes.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		engines, net := cluster(t, 2, memnet.Options{}, bsp, func(c *distrib.Config) {
			c.Log = func(s string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, s)
			}
		})
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			check(nil, s.Attach(zeros("w", 4, 2)))
			if w == 1 {
				time.Sleep(90 * time.Second)
			}
			check(s.Tick(ctx))
			begun := time.Now()
			_, err := s.Pull(ctx, distrib.Ref{})
			if w == 0 {
				var stall *distrib.StallError
				if !errors.As(err, &stall) || stall.Clock != 1 ||
					!slices.Equal(stall.Nodes, []distrib.NodeID{1}) ||
					stall.What != "parameter w" || time.Since(begun) != time.Minute {
					t.Errorf("after %v: %v", time.Since(begun), err)
				}
				_, err = s.Pull(ctx, distrib.Ref{})
			}
			check(nil, err)
			check(nil, s.Close())
		})
		finish(engines, net)
		want := "node 0 waits for parameter w at clock 1"
		if len(lines) != 2 || !strings.Contains(lines[0], want) {
			t.Errorf("the log has %q", lines)
		}
	})
}

// TestStallNamesTheCulprit: a reader learns from the rows' owner whose updates are missing.
func TestStallNamesTheCulprit(t *testing.T) {
	for _, down := range []distrib.Down{distrib.Values, distrib.Deltas} {
		synctest.Test(t, func(t *testing.T) {
			engines, net := cluster(t, 3, memnet.Options{Latency: time.Millisecond},
				func() distrib.Plan { return distrib.Plan{Down: down, Topology: chain{2}} }, nil)
			each(engines, func(w int, s distrib.Synchronizer) {
				ctx, check := context.Background(), must(t)
				check(nil, s.Attach(zeros("w", 8, 2)))
				if w == 2 {
					time.Sleep(90 * time.Second)
				}
				check(s.Tick(ctx))
				_, err := s.Pull(ctx, distrib.Ref{Row: 2, N: 2}) // of node 1
				var stall *distrib.StallError
				if w < 2 && (!errors.As(err, &stall) ||
					!slices.Equal(stall.Nodes, []distrib.NodeID{2})) {
					t.Errorf("worker %d: %v", w, err)
				}
				check(nil, s.Close())
			})
			for _, e := range engines {
				e.Close()
				net.Node(e.Audit().Self).Close()
			}
		})
	}
}

// TestLost: when a node dies, all who need it have an error that names it, at once; and
// what is pushed to it is counted as dropped.
func TestLost(t *testing.T) {
	for _, what := range []string{"pull", "tick", "push"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engines, net := cluster(t, 3, memnet.Options{Latency: time.Millisecond}, bsp,
					func(c *distrib.Config) { c.Outbox = 800 })
				time.AfterFunc(5*time.Second, func() { net.Kill(2) })
				each(engines, func(w int, s distrib.Synchronizer) { lose(t, what, w, s) })
				for _, e := range engines {
					e.Close()
					net.Node(e.Audit().Self).Close()
				}
				for _, e := range engines[:2] {
					if err := e.Audit().Check(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func lose(t *testing.T, what string, w int, s distrib.Synchronizer) {
	ctx, check := context.Background(), must(t)
	p := zeros("w", 100, 2)
	check(nil, s.Attach(p))
	if w == 2 {
		return
	}
	check(s.Pull(ctx, distrib.Ref{}))
	time.Sleep(time.Second)
	var err error
	begun := time.Now()
	switch what {
	case "pull":
		check(s.Tick(ctx))
		_, err = s.Pull(ctx, distrib.Ref{})
	case "tick":
		time.Sleep(5 * time.Second)
		_, err = s.Tick(ctx)
	case "push":
		for err == nil {
			err = s.Push(ctx, distrib.Ref{}, make(distrib.Dense, 200))
			time.Sleep(time.Second)
		}
	}
	var lost *distrib.LostError
	if !errors.As(err, &lost) || !slices.Equal(lost.Nodes, []distrib.NodeID{2}) || lost.Epoch != 1 {
		t.Errorf("%s: %v", what, err)
	}
	if d := time.Since(begun); d > 8*time.Second {
		t.Errorf("%s: told after %v", what, d)
	}
}

// TestCancel: a wait ends with its context, and the worker can go on.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 2, memnet.Options{}, bsp, nil)
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			check(nil, s.Attach(zeros("w", 4, 2)))
			if w == 1 {
				time.Sleep(5 * time.Second)
			}
			check(s.Tick(ctx))
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if _, err := s.Pull(short, distrib.Ref{}); w == 0 &&
				(!errors.Is(err, context.DeadlineExceeded) ||
					!strings.Contains(err.Error(), "parameter w")) {
				t.Error(err)
			}
			check(s.Pull(ctx, distrib.Ref{}))
			check(nil, s.Close())
		})
		finish(engines, net)
	})
}

// TestOutboxIsBounded: pushes wait while others are slow, and what can never fit is refused.
func TestOutboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 4000
		engines, net := cluster(t, 3, memnet.Options{Bps: 80_000, Latency: time.Millisecond},
			func() distrib.Plan { return distrib.Plan{Consistency: distrib.Async{}} },
			func(c *distrib.Config) { c.Outbox, c.Message, c.Window = bound, 500, 2 })
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			p := zeros("w", 80, 5)
			check(nil, s.Attach(p))
			for range 30 {
				u := make(distrib.Dense, 400)
				for i := range u {
					u[i] = 1
				}
				check(nil, s.Push(ctx, distrib.Ref{}, u))
				check(nil, s.Push(ctx, distrib.Ref{Row: 3, N: 1}, u[:5:5]))
				check(s.Tick(ctx))
			}
			check(nil, s.Close())
		})
		finish(engines, net)
		var blocked int64
		for _, e := range engines {
			_, peak := e.Memory()
			if peak.Outbox > bound {
				t.Errorf("%d bytes in an outbox of %d", peak.Outbox, bound)
			}
			a := e.Audit()
			blocked += a.Blocked
			if err := a.Check(); err != nil {
				t.Error(err)
			}
		}
		if blocked == 0 {
			t.Error("no push waited: the test shows nothing")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 1, memnet.Options{}, bsp,
			func(c *distrib.Config) { c.Outbox = 39 })
		s := engines[0].Worker(0)
		must(t)(nil, s.Attach(zeros("w", 5, 2)))
		err := s.Push(context.Background(), distrib.Ref{}, make(distrib.Dense, 10))
		var bound *distrib.BoundError
		if !errors.As(err, &bound) || bound.Need != 40 || bound.Bound != 39 {
			t.Error(err)
		}
		must(t)(nil, s.Close())
		finish(engines, net)
	})
}

// TestNonsense: what other nodes send that makes no sense ends them, not this one.
func TestNonsense(t *testing.T) {
	for name, m := range map[string]*distrib.Msg{
		"no head":    {Class: distrib.Updates},
		"short head": {Class: distrib.Updates, Head: []byte{3, 0, 0}},
		"long head":  {Class: distrib.Updates, Head: make([]byte, 500)},
		"noise":      {Class: distrib.ValuesOf, Head: []byte(strings.Repeat("\x03", 52))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engines, net := cluster(t, 2, memnet.Options{}, bsp, nil)
				m.Done = nil
				net.Node(1).Serve(deaf{})
				s := engines[0].Worker(0)
				must(t)(nil, s.Attach(zeros("w", 5, 2)))
				for range 3 {
					net.Node(1).Send(0, m)
				}
				time.Sleep(time.Second)
				_, err := s.Tick(context.Background())
				var lost *distrib.LostError
				if !errors.As(err, &lost) || lost.Nodes[0] != 1 {
					t.Errorf("%v", err)
				}
				engines[0].Close()
				net.Node(0).Close()
				net.Node(1).Close()
			})
		})
	}
}

type deaf struct{}

func (deaf) Receive(distrib.NodeID, *distrib.Msg) {}
func (deaf) Down(distrib.NodeID, error)           {}

// TestStrangers: nodes with other parameters end each other, saying so.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 2, memnet.Options{}, bsp, nil)
		each(engines, func(w int, s distrib.Synchronizer) {
			must(t)(nil, s.Attach(zeros("w", 4, 2+w)))
			time.Sleep(time.Second)
			_, err := s.Tick(context.Background())
			if err == nil || !strings.Contains(err.Error(), "parameters") {
				t.Error(err)
			}
		})
		for _, e := range engines {
			e.Close()
			net.Node(e.Audit().Self).Close()
		}
	})
}

// TestMisuse: what a caller does wrong is said in a line.
func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 1, memnet.Options{}, bsp, nil)
		s, ctx := engines[0].Worker(0), context.Background()
		pull := func(r distrib.Ref) error {
			_, err := s.Pull(ctx, r)
			return err
		}
		if err := pull(distrib.Ref{}); err == nil {
			t.Error("a pull before parameters are attached")
		}
		for _, p := range []*distrib.Param{zeros("w", 0, 2), {Name: "w", Rows: 2, Cols: 2}} {
			if err := s.Attach(p); err == nil {
				t.Errorf("%+v is attached", p)
			}
		}
		if err := s.Attach(zeros("w", 2, 2), zeros("w", 2, 2)); err == nil {
			t.Error("two parameters of a name are attached")
		}
		if err := s.Attach(); err == nil {
			t.Error("nothing is attached")
		}
		must(t)(nil, s.Attach(zeros("w", 4, 2)))
		if err := s.Attach(zeros("w", 4, 2)); err == nil {
			t.Error("parameters are attached twice")
		}
		for _, r := range []distrib.Ref{{Param: 1}, {Param: -1}, {Row: 4, N: 1}, {Row: 3, N: 2},
			{Row: -1, N: 1}, {N: -1}, {Row: 1}} {
			if pull(r) == nil || s.Push(ctx, r, distrib.Dense{1, 2}) == nil {
				t.Errorf("there are no rows %+v", r)
			}
		}
		var shape *distrib.ShapeError
		if err := s.Push(ctx, distrib.Ref{}, make(distrib.Dense, 7)); !errors.As(err, &shape) {
			t.Error(err)
		}
		must(t)(nil, s.Close())
		must(t)(nil, s.Close())
		if err := pull(distrib.Ref{}); err == nil {
			t.Error("a pull after the end")
		}
		finish(engines, net)
	})
}

// TestConfigs: configurations that cannot be are refused.
func TestConfigs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := memnet.New(1, memnet.Options{})[0]
		defer tr.Close()
		nodes := []distrib.Node{{ID: 0, Roles: []string{distrib.RoleServer}}}
		good := distrib.Config{Transport: tr, View: distrib.View{Nodes: nodes}}
		if _, err := distrib.New(good); err != nil {
			t.Error(err)
		}
		for name, spoil := range map[string]func(*distrib.Config){
			"transport": func(c *distrib.Config) { c.Transport = nil },
			"self":      func(c *distrib.Config) { c.View.Self = 3 },
			"role":      func(c *distrib.Config) { c.Workers = 1 },
			"twice":     func(c *distrib.Config) { c.View.Nodes = append(nodes, nodes...) },
			"epoch":     func(c *distrib.Config) { c.View.Epoch = -1 },
			"outbox":    func(c *distrib.Config) { c.Outbox = -1 },
			"window":    func(c *distrib.Config) { c.Window = -1 },
			"saves":     func(c *distrib.Config) { c.Save = (&shelf{}).save },
		} {
			c := good
			spoil(&c)
			if _, err := distrib.New(c); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
		for name, plan := range map[string]distrib.Plan{
			"a filter that keeps rows back": {DownF: distrib.DVF{Low: 1}},
			"order without clocks":          {Consistency: distrib.Async{}},
			"no way to a node":              {Topology: ways{2, 0}},
		} {
			nodes := []distrib.Node{{ID: 0}, {ID: 1}}
			c := distrib.Config{Transport: tr, Plan: plan, View: distrib.View{Nodes: nodes},
				Ordered: true}
			e, err := distrib.New(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Worker(0).Attach(zeros("w", 2, 2)); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	})
}

// TestAccidents: of messages that come twice one counts; what is lost or damaged on the
// way ends the connection, or a wait that names who is missing: nobody ever reads a value
// that is not true.
func TestAccidents(t *testing.T) {
	for name, f := range map[string]wrap.Faults{
		"twice":     {Duplicate: 0.3, Delay: 0.2, MaxDelay: 30 * time.Millisecond},
		"swallowed": {Swallow: 0.03},
		"dropped":   {Drop: 0.03},
		"damaged":   {Corrupt: 0.03},
	} {
		for _, plan := range []string{"servers", "sums", "two ways", "drawn lazy", "bosen"} {
			for seed := range uint64(longtest.Count(3, 200)) {
				t.Run(name+" "+plan, func(t *testing.T) {
					f.Seed = seed
					synctest.Test(t, func(t *testing.T) { accidents(t, f, plan, name == "twice") })
				})
			}
		}
	}
}

func accidents(t *testing.T, f wrap.Faults, plan string, harmless bool) {
	const nodes, clocks = 3, 12
	var ticks [nodes]atomic.Int64 // of who fails, others have no more than these
	var nets []distrib.Transport
	engines, _ := cluster(t, nodes, memnet.Options{}, plansOf(1, nodes)[plan],
		func(c *distrib.Config) {
			c.Transport = f.Wrap(c.Transport)
			nets = append(nets, c.Transport)
		})
	each(engines, func(w int, s distrib.Synchronizer) {
		ctx := context.Background()
		p := zeros("w", nodes, clocks)
		err := s.Attach(p)
		for c := 0; c < clocks && err == nil; c++ {
			if _, err = s.Pull(ctx, distrib.Ref{}); err != nil {
				break
			}
			for i, v := range p.Data {
				at := i % clocks
				must := at < c-1 && int64(at) < ticks[i/clocks].Load()
				if must && v != 1 || v != 0 && v != 1 {
					t.Errorf("worker %d in clock %d reads %v", w, c, p.Data)
					break
				}
			}
			time.Sleep(10 * time.Millisecond)
			u := make(distrib.Dense, clocks)
			u[c] = 1
			if err = s.Push(ctx, distrib.Ref{Row: int32(w), N: 1}, u); err == nil {
				if _, err = s.Tick(ctx); err == nil {
					ticks[w].Add(1)
				}
			}
		}
		var lost *distrib.LostError
		var stall *distrib.StallError
		if err != nil && (harmless || !errors.As(err, &lost) && !errors.As(err, &stall)) {
			t.Errorf("worker %d: %v", w, err)
		}
		s.Close()
	})
	for i, e := range engines {
		e.Close()
		nets[i].Close()
	}
}
