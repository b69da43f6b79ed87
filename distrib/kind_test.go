package distrib_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// TestKindsKeepTheLaws runs random schedules with rows of every kind under every plan that has
// them: what must be seen is seen, once, and at every instant no integer is missing.
func TestKindsKeepTheLaws(t *testing.T) {
	for seed := range uint64(longtest.Count(200, 10_000)) {
		rng := rand.New(rand.NewPCG(seed, 31))
		s := schedule{seed: seed, nodes: 1 + rng.IntN(5), perNode: 1 + rng.IntN(2),
			stale: rng.IntN(4), clocks: 2 + rng.IntN(6), kind: allKinds()[rng.IntN(3)],
			pause: time.Duration(1+rng.IntN(100)) * time.Millisecond,
			net: memnet.Options{Seed: seed, Latency: time.Duration(rng.IntN(30)) * time.Millisecond,
				Jitter: time.Duration(rng.IntN(30)) * time.Millisecond}}
		plans := plansOf(s.stale, s.nodes)
		delete(plans, "adarevision")
		var names []string
		for name := range plans {
			names = append(names, name)
		}
		slices.Sort(names)
		name := names[rng.IntN(len(names))]
		s.plan = plans[name]
		s.foreign = slices.Contains([]string{"sums", "tree", "filters", "flow"}, name)
		s.late = strings.HasPrefix(name, "filter")
		if strings.HasPrefix(name, "async") {
			s.stale = -1
		}
		ordered, demand := rng.IntN(3) == 0, rng.IntN(3) == 0
		s.change = func(c *distrib.Config) {
			c.Ordered, c.OnDemand = ordered && s.stale >= 0, demand && name == "servers"
			c.Message = 64
		}
		title := fmt.Sprintf("%d %s %s s=%d %dx%d", seed, s.kind.Name(), name, s.stale, s.nodes,
			s.perNode)
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if end := s.run(t); s.stale >= 0 && !s.late {
					s.full(t, end)
				}
			})
		})
		if t.Failed() {
			return
		}
	}
}

// exactly checks that a node has no integer too many or too few, now.
func exactly(t *testing.T, e *distrib.Engine) {
	t.Helper()
	for _, l := range e.Audit().Params {
		if l.Pushed != l.Pending+l.Sent+l.Dropped+l.Drained || l.Received != l.Folded+l.Held {
			t.Errorf("%+v", l)
		}
	}
}

// TestIntsAreSums: rows of integers are what a map of counts is, in the form that their fill
// says, whatever memory sums are made in, and written and read they are the same.
func TestIntsAreSums(t *testing.T) {
	longtest.Check(t, 0, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		kind := distrib.IntRows{}
		row, owned, want := kind.Zero(n), false, make([]int32, n)
		for range rapid.IntRange(0, 12).Draw(t, "updates") {
			u := drawInts(t, n)
			before := slices.Clone(u.Val)
			if row = sum(row, u, owned); !slices.Equal(u.Val, before) {
				t.Fatalf("%v has changed", u)
			}
			owned = rapid.Bool().Draw(t, "owned")
			for at, v := range u.All() {
				want[at] += v
			}
			checkInts(t, row.(distrib.Ints), want)
		}
		b := row.AppendWire([]byte("x"))[1:]
		if len(b) != row.WireSize() || len(b) > kind.Most(n) {
			t.Fatalf("%d bytes, said %d of at most %d", len(b), row.WireSize(), kind.Most(n))
		}
		again, err := kind.Decode(b, n)
		if err != nil {
			t.Fatal(err)
		}
		checkInts(t, again.(distrib.Ints), want)
		send, keep := (distrib.DVF{Low: 2}).Split(&distrib.Entry{U: row}, 0, distrib.Link{})
		for i, v := range want {
			sent, kept := elementOf(send, i), elementOf(keep, i)
			if sent+kept != v || sent != 0 && kept != 0 || kept > 2 || kept < -2 {
				t.Fatalf("of %d %d is sent and %d kept", v, sent, kept)
			}
		}
	})
}

func sum(a, b distrib.Update, owned bool) distrib.Update {
	if owned {
		return distrib.AddOwned(a, b)
	}
	return distrib.Add(a, b)
}

func elementOf(u distrib.Update, i int) int32 {
	if u == nil {
		return 0
	}
	return u.(distrib.Ints).At(i)
}

func drawInts(t *rapid.T, n int) distrib.Ints {
	value := rapid.OneOf(rapid.Int32Range(-2, 2), rapid.Int32())
	if rapid.Bool().Draw(t, "dense") {
		return distrib.Ints{N: n, Val: rapid.SliceOfN(value, n, n).Draw(t, "values")}
	}
	u := distrib.Ints{N: n}
	for i := range n {
		if rapid.Bool().Draw(t, "there") {
			u.Idx, u.Val = append(u.Idx, uint32(i)), append(u.Val, value.Draw(t, "value"))
		}
	}
	return u
}

func checkInts(t *rapid.T, u distrib.Ints, want []int32) {
	some, abs := 0, 0.0
	for i, v := range want {
		if u.At(i) != v {
			t.Fatalf("%v at %d, want %d", u, i, v)
		}
		if abs += math.Abs(float64(v)); v != 0 {
			some++
		}
	}
	if err := (distrib.IntRows{}).Check(u, len(want)); err != nil {
		t.Fatal(err)
	}
	dense := u.Idx == nil && len(u.Val) > 0
	if dense && 4*some < len(want) || !dense && (2*some > len(want) || len(u.Val) != some) {
		t.Fatalf("%d of %d are not 0, dense: %v", some, len(want), dense)
	}
	if u.Bytes() > 4*len(want) {
		t.Fatalf("%d bytes for %d integers", u.Bytes(), len(want))
	}
	if _, size := u.Sums(); size != abs {
		t.Fatalf("absolute values of %v, want %v", size, abs)
	}
}

// TestElasticKinds: nodes come and go while integers are counted, which is [TestElastic] with rows
// of every kind.
func TestElasticKinds(t *testing.T) {
	for name, plan := range elasticPlans() {
		for i, kind := range allKinds() {
			for seed := range uint64(longtest.Count(1, 50)) {
				t.Run(name+" "+kind.Name(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						elastic(t, plan, kind, 3*seed+uint64(i))
					})
				})
			}
		}
	}
}

// TestKindsAreSaved: what is saved at a clock is what was pushed before it, has the same bits when
// it is read, and a run goes on from it.
func TestKindsAreSaved(t *testing.T) {
	for seed := range uint64(longtest.Count(20, 1000)) {
		for _, kind := range allKinds() {
			rng := rand.New(rand.NewPCG(seed, 14))
			name := []string{"servers", "lazy", "sums", "tree", "paced", "bosen"}[rng.IntN(6)]
			s := schedule{seed: seed, nodes: 1 + rng.IntN(4), perNode: 1, stale: rng.IntN(4),
				clocks: 4 + rng.IntN(6), kind: kind, foreign: name == "sums" || name == "tree",
				pause: time.Duration(1+rng.IntN(100)) * time.Millisecond}
			s.plan = plansOf(s.stale, s.nodes)[name]
			kept := &shelf{of: map[distrib.Clock][][]byte{}}
			s.change = func(c *distrib.Config) {
				c.Saves = func(k distrib.Clock) bool { return k%2 == 0 }
				c.Save, c.Message = kept.save, 64
			}
			synctest.Test(t, func(t *testing.T) {
				s.full(t, s.run(t))
				s.checkSaved(t, kept, 2)
			})
			if t.Failed() {
				t.Fatalf("seed %d: %s, %s", seed, kind.Name(), name)
			}
		}
	}
}

// TestKindsRefuse: what rows of a kind cannot be had with is said when they are attached.
func TestKindsRefuse(t *testing.T) {
	average := func(context.Context, *distrib.Round) error { return nil }
	for name, c := range map[string]struct {
		plan distrib.Plan
		p    distrib.Param
		want string
	}{
		"average": {distrib.Plan{Every: []distrib.Periodic{{Every: 1, Do: average}}},
			distrib.Param{}, "of dense numbers: want servers"},
		"factors": {distrib.Plan{Up: distrib.Chain{&distrib.PowerSGD{}}}, distrib.Param{},
			"no low rank"},
		"local":    {distrib.Plan{Topology: &distrib.Local{}}, distrib.Param{}, "of dense numbers"},
		"momentum": {distrib.Plan{Rule: &distrib.Momentum{}}, distrib.Param{}, "more than add"},
		"data":     {distrib.Plan{}, distrib.Param{Data: make([]float32, 6)}, "and 6 numbers"},
		"cells": {distrib.Plan{}, distrib.Param{Cells: make([]distrib.Update, 3)},
			"2 rows of kind int32"},
		"form": {distrib.Plan{},
			distrib.Param{Cells: []distrib.Update{nil, make(distrib.Dense, 3)}},
			"distrib.Dense"},
		"places": {distrib.Plan{}, distrib.Param{Cells: []distrib.Update{
			distrib.Ints{N: 3, Idx: []uint32{2, 1}, Val: []int32{1, 1}}, nil}}, "do not ascend"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := func() distrib.Plan { return c.plan }
			engines, net := cluster(t, 1, memnet.Options{}, plan, nil)
			c.p.Name, c.p.Rows, c.p.Cols, c.p.Kind = "w", 2, 3, distrib.IntRows{}
			err := engines[0].Worker(0).Attach(&c.p)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			net.Node(0).Close()
		})
	}
}

// TestKindsArePushedAsTheyAre: updates of another form, or of many rows, are refused, and the
// table goes on.
func TestKindsArePushedAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 1, memnet.Options{}, bsp, nil)
		s, ctx := engines[0].Worker(0), context.Background()
		p := tableOf(distrib.IntRows{}, "topics", 3, 4)
		p.Cells = []distrib.Update{distrib.Ints{N: 4, Val: []int32{1, 2, 3, 4}}, nil, nil}
		must(t)(nil, s.Attach(p))
		table := distrib.NewTable(s, 0, p)
		for what, err := range map[string]error{
			"3 rows of kind int32": s.Push(ctx, distrib.Ref{}, distrib.Ints{N: 12}),
			"distrib.Dense":        table.IncRow(ctx, 1, make([]float32, 4)),
			"5 integers":           table.Add(ctx, 1, distrib.Ints{N: 5}),
			"0.5 is added":         table.Inc(ctx, 1, 1, 0.5),
			"NaN is added":         table.Inc(ctx, 1, 1, float32(math.NaN())),
		} {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		must(t)(nil, table.Inc(ctx, 0, 3, -4))
		must(t)(nil, table.Inc(ctx, 2, 1, 7))
		must(t)(table.Clock(ctx))
		row, err := table.Row(ctx, 0)
		must(t)(nil, err)
		if got := fmt.Sprint(distrib.AsDense(row)); got != "[1 2 3 0]" {
			t.Errorf("%s", got)
		}
		must(t)(nil, table.Inc(ctx, 0, 0, 5))
		if got := row.(distrib.Ints).At(0); got != 1 {
			t.Errorf("a row that was read has become %d", got)
		}
		dst := make([]float32, 4)
		must(t)(table.GetRow(ctx, 2, dst))
		want := []float32{0, 7, 0, 0}
		if v, err := table.Get(ctx, 2, 1); err != nil || v != 7 || !slices.Equal(dst, want) {
			t.Errorf("%v, %v, %v", v, err, dst)
		}
		must(t)(nil, s.Close())
		finish(engines, net)
	})
}

// TestKindsMeet: nodes that mean rows of different kinds by a name end each other.
func TestKindsMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 2, memnet.Options{}, bsp, nil)
		each(engines, func(w int, s distrib.Synchronizer) {
			must(t)(nil, s.Attach(tableOf(allKinds()[w+1], "w", 4, 2)))
			time.Sleep(time.Second)
			_, err := s.Tick(context.Background())
			if err == nil || !strings.Contains(err.Error(), "kinds or plans") {
				t.Errorf("worker %d: %v", w, err)
			}
		})
		for i, e := range engines {
			e.Close()
			net.Node(distrib.NodeID(i)).Close()
		}
	})
}

// FuzzInts: bytes are read as integers that are written and read again as the same, in no more
// memory than a few times what they are; or they are refused.
func FuzzInts(f *testing.F) {
	kind := distrib.IntRows{}
	for _, u := range []distrib.Ints{{N: 9}, {N: 9, Idx: []uint32{1, 8}, Val: []int32{-1, 1 << 30}},
		{N: 3, Val: []int32{1, 2, 3}}, {N: 9, Val: []int32{1, 1, 1, 1, 1, 1, 1, 1, -1}}} {
		f.Add(u.AppendWire(nil), u.N)
	}
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1}, 1<<30)
	f.Add([]byte{2, 1}, 1<<40)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, b []byte, cols int) {
		if cols < 1 || cols > 1<<31-1 {
			return
		}
		u, err := kind.Decode(b, cols)
		if err != nil {
			if _, ok := errors.AsType[*distrib.FrameError](err); !ok {
				t.Errorf("%v is no *FrameError", err)
			}
			return
		}
		if err := kind.Check(u, cols); err != nil {
			t.Fatal(err)
		}
		if distrib.Bytes(u) > 16*len(b) {
			t.Errorf("%d bytes of %d", distrib.Bytes(u), len(b))
		}
		wire := u.AppendWire(nil)
		again, err := kind.Decode(wire, cols)
		if err != nil || !bytes.Equal(again.AppendWire(nil), wire) || len(wire) != u.WireSize() {
			t.Errorf("% x is % x again: %v", b, wire, err)
		}
	})
}

// TestHostileCells: frames of rows that no kind has end the node that sends them, by name.
func TestHostileCells(t *testing.T) {
	ref := distrib.Ref{Row: 1, N: 1}
	good := distrib.Ints{N: 4, Idx: []uint32{1}, Val: []int32{5}}
	frame := func(r distrib.Ref, u distrib.Update) []byte {
		b, err := distrib.AppendFrame(nil, distrib.Frame{Ref: r, U: u, Epoch: 1})
		must(t)(nil, err)
		return b
	}
	body := func(b ...byte) []byte {
		f := frame(ref, good)[:40]
		binary.LittleEndian.PutUint32(f[32:], uint32(len(b)))
		return resealed(append(f, b...))
	}
	for name, c := range map[string]struct {
		kind distrib.Kind
		msg  []byte
		want string
	}{
		"cell in dense rows":  {nil, frame(ref, good), "a cell in rows of dense numbers"},
		"cell in sparse rows": {distrib.SparseRows{}, frame(ref, good), "cells in a sparse row"},
		"numbers in integers": {distrib.IntRows{}, frame(ref, make(distrib.Dense, 4)), "int32"},
		"many rows": {distrib.IntRows{}, frame(distrib.Ref{Row: 0, N: 2}, good),
			"2 rows of kind int32"},
		"no bytes":       {distrib.IntRows{}, body(), "no integers"},
		"way 9":          {distrib.IntRows{}, body(9, 1, 1, 1), "in way 9"},
		"element 4":      {distrib.IntRows{}, body(1, 1, 4, 2), "element 4 of 4"},
		"more than said": {distrib.IntRows{}, body(1, 1, 0, 2, 2), "1 bytes behind"},
		"2^40 elements": {distrib.IntRows{}, body(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0),
			"gaps and numbers"},
		"a zero":       {distrib.IntRows{}, body(1, 1, 0, 0), "is 0"},
		"33 bits":      {distrib.IntRows{}, body(1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x1f), "32 bits"},
		"short dense":  {distrib.IntRows{}, body(0, 1, 0, 0), "3 bytes for 4 integers"},
		"long bitmap":  {distrib.IntRows{}, body(2, 0x10, 2), "more than 4 elements"},
		"int64, short": {longRows{}, body(1, 1), "too few bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engines, net := cluster(t, 2, memnet.Options{}, bsp, nil)
				net.Node(1).Serve(deaf{})
				s := engines[0].Worker(0)
				must(t)(nil, s.Attach(tableOf(c.kind, "w", 5, 4)))
				net.Node(1).Send(0, &distrib.Msg{Class: distrib.Updates, Body: [][]byte{c.msg},
					Head: headOf(3)})
				time.Sleep(time.Second)
				_, err := s.Tick(context.Background())
				var nonsense *distrib.NonsenseError
				if !errors.As(err, &nonsense) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
				engines[0].Close()
				net.Node(0).Close()
				net.Node(1).Close()
			})
		})
	}
}

// headOf is the head of node 1's first message of a kind, in epoch 1.
func headOf(kind byte) []byte {
	b := make([]byte, 56, 60)
	b[0], b[4], b[8], b[24] = kind, 1, 1, 1
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// TestKindsAreCounted: what rows of a kind take is counted to the byte, now and at most, and never
// comes to more than their bound.
func TestKindsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 1, memnet.Options{}, bsp, nil)
		e, ctx := engines[0], context.Background()
		s := e.Worker(0)
		must(t)(nil, s.Attach(tableOf(distrib.IntRows{}, "topics", 2, 1000)))
		empty, _ := e.Memory()
		bound := e.Bound()
		u := distrib.Ints{N: 1000}
		for i := range 400 {
			u.Idx, u.Val = append(u.Idx, uint32(2*i)), append(u.Val, 1)
		}
		minus := distrib.Ints{N: 1000, Idx: u.Idx, Val: slices.Repeat([]int32{-1}, 400)}
		add := func(u distrib.Ints) distrib.Memory {
			must(t)(nil, s.Push(ctx, distrib.Ref{Row: 1, N: 1}, u))
			must(t)(s.Tick(ctx))
			must(t)(s.Pull(ctx, distrib.Ref{}))
			now, _ := e.Memory()
			return now
		}
		if now := add(u); now.Rows != empty.Rows+400*8 || now.Replica != empty.Replica+400*8 {
			t.Errorf("%+v after %+v", now, empty)
		}
		if now := add(minus); now.Rows != empty.Rows || now.Replica != empty.Replica {
			t.Errorf("%+v after %+v", now, empty)
		}
		_, peak := e.Memory()
		if peak.Rows != empty.Rows+400*8 || peak.Replica != empty.Replica+400*8 {
			t.Errorf("%+v at most after %+v", peak, empty)
		}
		if again := e.Bound(); again != bound || bound.Rows != empty.Rows+2*4001 {
			t.Errorf("bound %+v, then %+v", bound, again)
		}
		must(t)(nil, s.Close())
		finish(engines, net)
	})
}
