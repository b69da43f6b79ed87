package planner

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
)

// after are the options that a remedy leads to.
func after(o Options, r Remedy) Options {
	switch r.Change {
	case UsePolicy:
		o = Options{Policy: r.Policy, Strategy: o.Strategy, Partition: o.Partition,
			Lookahead: o.Lookahead, NoPlacement: o.NoPlacement, NoSwap: o.NoSwap,
			Streams: o.Streams, DeviceBytes: o.DeviceBytes, HostBytes: o.HostBytes,
			DiskBytes: o.DiskBytes}
	case AllowBoth:
		o.NoPlacement, o.NoSwap = false, false
	case SmallerPartition:
		o.Partition = r.N
	case ShorterLookahead:
		o.Lookahead = r.N
	case UseDisk:
		o.DiskBytes = r.Bytes
	}
	return o
}

// TestRemediesWork: what a refusal names works within the budgets at hand.
func TestRemediesWork(t *testing.T) {
	longtest.Skip(t)
	seen := map[Change]bool{}
	missing := func() []Change {
		return slices.DeleteFunc([]Change{Shrink, UsePolicy, AllowBoth, SmallerPartition},
			func(c Change) bool { return seen[c] })
	}
	check := func(t *rapid.T) {
		g, targets := anyTargets(t)
		o := anyOptions(t)
		if !o.Policy.Partitioned() { // the remedy is a policy by its defaults
			o = Options{Policy: o.Policy, Streams: o.Streams}
		}
		ctx := context.Background()
		if rapid.Bool().Draw(t, "the host is limited") {
			host, err := Minimum(ctx, g, o, space.Host, targets...)
			if err != nil {
				t.Fatal(err)
			}
			o.HostBytes = host
		}
		least, err := Minimum(ctx, g, o, space.Device, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.DeviceBytes = max(1, least*rapid.Int64Range(30, 99).Draw(t, "percent")/100)
		e := refused(t, g, o, targets)
		if e == nil {
			t.Skip("a budget of a byte is enough")
		}
		r := e.Remedy
		seen[r.Change] = true
		if r.Change == Shrink {
			return
		}
		if r.Change == UseDisk {
			if again := refused(t, g, after(o, r), targets); again != nil {
				t.Fatalf("%v did not help: %v", r, again)
			}
			return
		}
		if r.Change == RaiseOther {
			return // TestAnyRefusalIsExact
		}
		if r.Space != e.Space || r.Bytes > e.Budget {
			t.Fatalf("need %d of %d: %+v", e.Need, e.Budget, r)
		}
		if again := refused(t, g, after(o, r), targets); again != nil {
			t.Fatalf("%v did not help: %v", r, again)
		}
	}
	patient := !testing.Short() // else there are too few draws to meet all
	for i := 0; i < longtest.Count(1, 30) || patient && i < 10 && len(missing()) > 0; i++ {
		longtest.Check(t, i, check)
	}
	if patient && len(missing()) > 0 {
		t.Errorf("no graph was helped by changes %d", missing())
	}
}

// TestRemedyOfTheHost: where the host is short, auto knows vanilla.
func TestRemedyOfTheHost(t *testing.T) {
	m := randgraph.Synthetic(600)
	o := Options{Policy: Vanilla}
	o.HostBytes = compiled(t, m, o).Spaces[space.Host].Bytes
	o.Policy = Thesis
	e := refused(t, m.Graph, o, []Target{training(m)})
	if e == nil || e.Space != space.Host || e.Remedy.Policy != Auto {
		t.Fatalf("in vanilla's host memory: %v", e)
	}
	o.Policy = Auto
	if e := refused(t, m.Graph, o, []Target{training(m)}); e != nil {
		t.Error(e)
	}
}

// TestBothShort: where neither budget is enough by itself, the refusal says what
// both must be.
func TestBothShort(t *testing.T) {
	m := randgraph.Synthetic(600)
	o := Options{DeviceBytes: 1, HostBytes: 1}
	e := refused(t, m.Graph, o, []Target{training(m)})
	if e == nil || e.Space != space.Host || e.Remedy.Change != RaiseOther {
		t.Fatalf("in a byte of each: %v", e)
	}
	_, err := MinDevice(context.Background(), m.Graph, training(m), o)
	var host *ErrOutOfMemory
	if !errors.As(err, &host) || host.Space != space.Host || host.Remedy.Change == RaiseOther {
		t.Errorf("the minimum of the device, in a byte of the host: %v", err)
	}
	o.DeviceBytes, o.HostBytes = e.Remedy.Bytes, e.Need
	if again := refused(t, m.Graph, o, []Target{training(m)}); again != nil {
		t.Error(again)
	}
	o.DeviceBytes--
	if refused(t, m.Graph, o, []Target{training(m)}) == nil {
		t.Error("a byte less of the device works")
	}
}

// TestSmallerSaysWhatFits: over partition sizes the least is found, with how much.
func TestSmallerSaysWhatFits(t *testing.T) {
	m, ctx := randgraph.Synthetic(600), context.Background()
	o := Options{Partition: 500}
	least, err := MinDevice(ctx, m.Graph, training(m), o)
	if err != nil {
		t.Fatal(err)
	}
	unplanned := whole(m.Graph, []Target{training(m)})
	r, err := unplanned.Smaller(ctx, o, least)
	if err != nil || r.Change != SmallerPartition || r.Bytes >= least {
		t.Fatalf("below %d bytes: %+v, %v", least, r, err)
	}
	o.Partition, o.DeviceBytes = r.N, r.Bytes
	if e := refused(t, m.Graph, o, []Target{training(m)}); e != nil {
		t.Error(e)
	}
	if r, err := unplanned.Smaller(ctx, o, 1); err != nil || r.Change != Shrink {
		t.Errorf("below a byte: %+v, %v", r, err)
	}
}
