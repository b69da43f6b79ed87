package planner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// TestBudgetsAreMonotone: a larger budget never gets a shorter prefetch.
func TestBudgetsAreMonotone(t *testing.T) {
	m, ctx := randgraph.Synthetic(600), context.Background()
	least, err := MinDevice(ctx, m.Graph, training(m), Options{})
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for budget := least; budget < 3*least; budget += least / 8 {
		r, err := Compile(ctx, m.Graph, training(m), Options{DeviceBytes: budget})
		if err != nil {
			t.Fatal(err)
		}
		if r.Prefetch < last {
			t.Fatalf("prefetch %d at a budget of %d, %d at a smaller one", r.Prefetch, budget, last)
		}
		last = r.Prefetch
	}
	if last != 20 {
		t.Errorf("with room to spare the prefetch is %d, want a partition", last)
	}
}

func TestBadOptions(t *testing.T) {
	m := randgraph.Synthetic(20)
	for name, o := range map[string]Options{
		"policy":                    {Policy: "fast"},
		"strategy":                  {Strategy: "random"},
		"partition":                 {Partition: -1},
		"lookahead":                 {Lookahead: -1},
		"streams":                   {Streams: 99},
		"budget":                    {DeviceBytes: -1},
		"host":                      {HostBytes: -1},
		"effort":                    {Effort: -1},
		"operations beyond 32 bits": {Partition: 1 << 32},
		"partitions beyond 32 bits": {Lookahead: 1<<32 + 1},
	} {
		if _, err := Compile(context.Background(), m.Graph, training(m), o); err == nil ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := randgraph.Synthetic(20)
	if _, err := Compile(ctx, m.Graph, training(m), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// TestThesisStory: partitioning with swapping needs less than vanilla, and with
// placement still less (thesis, figure 6.4).
func TestThesisStory(t *testing.T) {
	m := randgraph.Synthetic(2000)
	peak := func(o Options) int64 { return compiled(t, m, o).Spaces[space.Device].Bytes }
	vanilla, partitioned, placed := peak(Options{Policy: Vanilla}),
		peak(Options{NoPlacement: true}), peak(Options{})
	if !(vanilla > partitioned && partitioned > placed) {
		t.Errorf("vanilla %d, +partition %d, +placement %d", vanilla, partitioned, placed)
	}
}

// TestStaging: an operation on the device that reads a variable finds a staged
// copy, which arrives at most a partition early, and is shared by readers that are
// within the look-ahead of each other, and by no others.
func TestStaging(t *testing.T) {
	const k = 2
	m := randgraph.Synthetic(200)
	p := compiled(t, m, Options{Partition: 5, Strategy: partition.DFS, Lookahead: k})
	type copied struct{ arrived, read int }
	staged, copies := map[plan.SlotID]copied{}, 0
	latest := map[string]int{} // by variable: partition of its latest reader
	for _, s := range p.Steps {
		switch do := s.Do.(type) {
		case plan.Copy:
			if do.Why == space.Stage {
				staged[do.Dst.Slot] = copied{s.Part, -1}
				copies++
			}
		case plan.Launch:
			for _, r := range do.In {
				c, ok := staged[r.Slot]
				if !ok {
					continue
				}
				name := p.Slots[r.Slot].Value
				last, before := latest[name]
				switch {
				case c.read < 0 && s.Part-c.arrived > 1:
					t.Errorf("%s is staged %d partitions early", name, s.Part-c.arrived)
				case c.read < 0 && before && s.Part-last <= k:
					t.Errorf("%s is staged again for partition %d, it was there in %d", name,
						s.Part, last)
				case c.read >= 0 && s.Part-c.read > k:
					t.Errorf("%s stays from partition %d to %d", name, c.read, s.Part)
				}
				staged[r.Slot], latest[name] = copied{c.arrived, s.Part}, s.Part
			}
		}
	}
	if copies == 0 {
		t.Fatal("nothing is staged")
	}
	for slot, c := range staged {
		if c.read < 0 {
			t.Errorf("%s is staged and never read", p.Slots[slot].Value)
		}
	}
}

// TestLookAhead: a value goes out exactly where more than K partitions pass
// without a use (thesis, section 6.3.2), and larger K copies less.
func TestLookAhead(t *testing.T) {
	m := randgraph.Synthetic(400)
	last := int64(-1)
	for k := 1; k <= 4; k++ {
		p := compiled(t, m, Options{Partition: 5, Lookahead: k})
		bytes := p.Traffic()[space.SwapIn]
		if last >= 0 && bytes > last {
			t.Errorf("K=%d swaps in %d bytes, K=%d only %d", k, bytes, k-1, last)
		}
		last = bytes
	}
	p := compiled(t, m, Options{NoSwap: true})
	if tr := p.Traffic(); tr[space.SwapIn]+tr[space.SwapOut] != 0 {
		t.Error("swaps although swapping is off")
	}
}

// TestUpdatesRunWhereVariablesLive: on the host with placement, on the device
// without.
func TestUpdatesRunWhereVariablesLive(t *testing.T) {
	m := randgraph.Synthetic(100)
	for _, o := range []Options{{}, {NoPlacement: true}} {
		p := compiled(t, m, o)
		for _, s := range p.Steps {
			if l, ok := s.Do.(plan.Launch); ok && l.Mutates > 0 {
				host := p.Streams[s.Stream].Engine == space.HostCompute
				if host == o.NoPlacement {
					t.Fatalf("%+v: update %s runs on stream %s", o, s.Name,
						p.Streams[s.Stream].Name)
				}
			}
		}
	}
}

// TestAutoUsesTheBudget: what the budget leaves over is used to be faster, from at
// least the thesis policy's speed at the smallest budget to vanilla's. It may be less
// than vanilla's: updates on the host go on beside the device.
func TestAutoUsesTheBudget(t *testing.T) {
	longtest.Skip(t)
	m, ctx := randgraph.Synthetic(300), context.Background()
	compiled := func(o Options) *Result {
		r, err := Compile(ctx, m.Graph, training(m), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	least, err := MinDevice(ctx, m.Graph, training(m), Options{Policy: Auto})
	if err != nil {
		t.Fatal(err)
	}
	free := compiled(Options{Policy: Auto})
	if moved := free.Plan.Traffic(); moved[space.SwapIn] != 0 || moved[space.SwapOut] != 0 {
		t.Errorf("without a budget %d bytes are swapped", moved[space.SwapIn])
	}
	slowest := time.Hour
	for _, budget := range []int64{least, 2 * least, 4 * least, 8 * least} {
		r := compiled(Options{Policy: Auto, Effort: longtest.Count(300, 0), DeviceBytes: budget})
		if bytes := r.Plan.Spaces[space.Device].Bytes; bytes > budget {
			t.Errorf("a plan of %d bytes within %d", bytes, budget)
		}
		if r.Step > slowest+slowest/20 { // the search is not exhaustive
			t.Errorf("a step takes %s within %d bytes, %s within less", r.Step, budget, slowest)
		}
		thesis, err := Compile(ctx, m.Graph, training(m), Options{DeviceBytes: budget})
		if err == nil && r.Step > thesis.Step && r.Options.Policy != Vanilla {
			t.Errorf("a step takes %s within %d bytes, %s by the thesis policy", r.Step, budget,
				thesis.Step)
		}
		slowest = r.Step
	}
	if _, err := Compile(ctx, m.Graph, training(m),
		Options{Policy: Auto, DeviceBytes: least - 1}); err == nil {
		t.Error("a byte less than the smallest budget is accepted")
	}
}
