package planner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// anyOptions draws options of every policy.
func anyOptions(t *rapid.T) Options {
	return Options{
		Policy:      rapid.SampledFrom(Policies()).Draw(t, "policy"),
		Strategy:    rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy"),
		Partition:   rapid.SampledFrom([]int{1, 2, 3, 5, 20, 200}).Draw(t, "partition"),
		Lookahead:   rapid.IntRange(1, 4).Draw(t, "lookahead"),
		NoPlacement: rapid.IntRange(0, 3).Draw(t, "placement") == 0,
		NoSwap:      rapid.IntRange(0, 3).Draw(t, "swap") == 0,
		Streams:     rapid.IntRange(1, 3).Draw(t, "streams"),
		Effort:      40, // what is granted does not depend on it
	}
}

// anyTargets draws a graph, and a training step of it, often with an evaluation.
func anyTargets(t *rapid.T) (*graph.Graph, []Target) {
	var m *randgraph.Model
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		m = randgraph.Exchanging(pick, 20)
	case 1:
		m = randgraph.Random(pick, 20)
	default:
		m = randgraph.Synthetic(rapid.IntRange(20, 300).Draw(t, "nodes"))
	}
	targets := []Target{training(m)}
	if rapid.Bool().Draw(t, "evaluation") {
		targets = append(targets, Target{Name: "eval", Fetches: m.Fetches})
	}
	return m.Graph, targets
}

// refused is the shortage that the targets are refused for, or nil.
func refused(t interface{ Fatal(...any) }, g *graph.Graph, o Options,
	targets []Target) *ErrOutOfMemory {
	_, err := All(context.Background(), g, o, targets...)
	var oom *ErrOutOfMemory
	if err != nil && !errors.As(err, &oom) {
		t.Fatal(err)
	}
	return oom
}

// draws is how many random cases a test of this file checks.
func draws(t *testing.T, short, long int, check func(*rapid.T)) {
	t.Helper()
	for round := range longtest.Count(short, long) {
		longtest.Check(t, round, check)
	}
}

func other(of space.ID) space.ID { return space.Device + space.Host - of }

// TestMinimumIsExact: under every policy and for either memory, given the other's
// budget, the minimum works, and a byte less is refused with that very number.
func TestMinimumIsExact(t *testing.T) {
	draws(t, 1, 50, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		of := rapid.SampledFrom([]space.ID{space.Device, space.Host}).Draw(t, "space")
		if rapid.Bool().Draw(t, "the other is limited") {
			least, err := Minimum(ctx, g, o, other(of), targets...)
			if err != nil {
				t.Fatal(err)
			}
			*o.Budget(other(of)) = least + least*rapid.Int64Range(0, 8).Draw(t, "more")/8
		}
		least, err := Minimum(ctx, g, o, of, targets...)
		if err != nil {
			t.Fatal(err)
		}
		*o.Budget(of) = least
		if e := refused(t, g, o, targets); e != nil {
			t.Fatalf("%s: the minimum of %s is refused: %v", o, of, e)
		}
		if least == 1 {
			return
		}
		*o.Budget(of) = least - 1
		e := refused(t, g, o, targets)
		switch {
		case e == nil:
			t.Fatalf("%s: a byte under the minimum of %s works", o, of)
		case e.Space == of && e.Need != least:
			t.Fatalf("%s: %d bytes of %s are needed, the refusal says %d", o, least, of, e.Need)
		}
		checkNeed(t, g, o, targets, e)
	})
}

// checkNeed holds a refusal against what it says: its need works, with the other
// budget raised if it says so, and a byte less does not.
func checkNeed(t *rapid.T, g *graph.Graph, o Options, targets []Target, e *ErrOutOfMemory) {
	if e.At == "" || strings.ContainsAny(e.Error(), "\n") ||
		strings.Contains(e.Error(), "--") {
		t.Fatalf("the refusal reads %q", e)
	}
	*o.Budget(e.Space) = e.Need
	if e.Remedy.Change == RaiseOther {
		*o.Budget(e.Remedy.Space) = e.Remedy.Bytes
	}
	if again := refused(t, g, o, targets); again != nil {
		t.Fatalf("%s: the need of %q is refused: %v", o, e, again)
	}
	if *o.Budget(e.Space)--; e.Need > 1 && refused(t, g, o, targets) == nil {
		t.Fatalf("%s: less than the need of %q works", o, e)
	}
}

// TestAnyRefusalIsExact: whatever the two budgets, a refusal says what works.
func TestAnyRefusalIsExact(t *testing.T) {
	draws(t, 1, 50, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o := anyOptions(t)
		results, err := All(context.Background(), g, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []space.ID{space.Device, space.Host} {
			for _, r := range results {
				*o.Budget(s) = max(*o.Budget(s), r.Plan.Spaces[s].Bytes)
			}
			part := rapid.Int64Range(0, 130).Draw(t, "percent")
			*o.Budget(s) = max(1, *o.Budget(s)*part/100)
		}
		if e := refused(t, g, o, targets); e != nil {
			checkNeed(t, g, o, targets, e)
		}
	})
}

// TestLargerBudgetsCopyLess: what a budget is enough for, a larger one is, and a
// larger one never copies more, for each target and under every policy but
// grappler's, whose rule does not go by bytes, and the planner's, which weighs times.
func TestLargerBudgetsCopyLess(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		least, err := Minimum(ctx, g, o, space.Device, targets...)
		if err != nil {
			t.Fatal(err)
		}
		var before []*Result
		step := int64(1)
		if o.Policy.Searches() { // plans take their time, and may copy more if that is faster
			step, o.Effort = 8, 10
		}
		for eighths := int64(8); eighths < 40; eighths += step + eighths/8 {
			o.DeviceBytes = least * eighths / 8
			now, err := All(ctx, g, o, targets...)
			if err != nil {
				t.Fatalf("%s: %d bytes are refused, %d work: %v", o, o.DeviceBytes, least, err)
			}
			for i := range before {
				a, b := copies(before[i].Plan), copies(now[i].Plan)
				if b > a && o.Policy != Grappler && !o.Policy.Searches() {
					t.Fatalf("%s: %s copies %d bytes, %d in a larger budget", o, targets[i].Name,
						a, b)
				}
			}
			sameVariables(t, now)
			before = now
		}
	})
}

// sameVariables demands that plans of one session agree on where variables are.
func sameVariables(t *rapid.T, results []*Result) {
	for _, r := range results {
		for i, b := range r.Plan.Variables {
			here, there := r.Plan.Slots[b.Slot], results[0].Plan.Variables[i]
			if other := results[0].Plan.Slots[there.Slot]; here.Space != other.Space ||
				here.Off != other.Off {
				t.Fatalf("%s is in two places", b.Name)
			}
		}
	}
}

// copies is how many bytes a plan copies.
func copies(p *plan.Plan) int64 { return p.Traffic().In() + p.Traffic().Out() }

// TestAutoIsVanillaWhereThatFits: a budget that is enough for vanilla gives
// vanilla's plan.
func TestAutoIsVanillaWhereThatFits(t *testing.T) {
	text := func(p *plan.Plan) string {
		var b strings.Builder
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	m := randgraph.Synthetic(600)
	o := Options{Policy: Vanilla}
	o.DeviceBytes = compiled(t, m, o).Spaces[space.Device].Bytes
	want := text(compiled(t, m, o))
	o.Policy = Auto
	r, err := Compile(context.Background(), m.Graph, training(m), o)
	if err != nil {
		t.Fatal(err)
	}
	if text(r.Plan) != want || r.Options.Policy != Vanilla {
		t.Errorf("auto makes %s in vanilla's budget", r.Plan.Title)
	}
}

// TestAutoUsesEveryPartOfTheBudget: from the minimum to vanilla's need, copies
// fall by steps, in none of which much of the budget is left for nothing.
func TestAutoUsesEveryPartOfTheBudget(t *testing.T) {
	longtest.Skip(t)
	m, ctx := randgraph.Synthetic(300), context.Background()
	least, err := MinDevice(ctx, m.Graph, training(m), Options{Policy: Auto})
	if err != nil {
		t.Fatal(err)
	}
	vanilla := compiled(t, m, Options{Policy: Vanilla}).Spaces[space.Device].Bytes
	amounts := map[int64]bool{}
	parts := int64(longtest.Count(4, 8))
	for i := range parts + 1 {
		o := Options{Policy: Auto, Effort: 300, DeviceBytes: least + (vanilla-least)*i/parts}
		amounts[copies(compiled(t, m, o))] = true
	}
	if len(amounts) < int(parts)*3/4 {
		t.Errorf("in %d budgets the amounts of bytes copied are %v", parts+1, amounts)
	}
}

// TestAutoNeedsNoMoreThanThesis: of neither memory, since it knows the same plans.
func TestAutoNeedsNoMoreThanThesis(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		for _, of := range []space.ID{space.Device, space.Host} {
			o.Policy = Thesis
			thesis, err := Minimum(ctx, g, o, of, targets...)
			if err != nil {
				t.Fatal(err)
			}
			o.Policy = Auto
			if auto, err := Minimum(ctx, g, o, of, targets...); err != nil || auto > thesis {
				t.Fatalf("auto needs %d bytes of %s (%v), thesis %d", auto, of, err, thesis)
			}
		}
	})
}

// TestGrapplerUsesTheBudget: where the rule's own forecast is wrong, it is told
// less, down to nothing; so it needs less than vanilla.
func TestGrapplerUsesTheBudget(t *testing.T) {
	m, ctx := randgraph.Synthetic(600), context.Background()
	least, err := MinDevice(ctx, m.Graph, training(m), Options{Policy: Grappler})
	if err != nil {
		t.Fatal(err)
	}
	vanilla := compiled(t, m, Options{Policy: Vanilla})
	if whole := vanilla.Spaces[space.Device].Bytes; least >= whole {
		t.Errorf("grappler needs %d bytes, vanilla %d", least, whole)
	}
	told, err := Predict(ctx, m.Graph, training(m), Options{Policy: Grappler, DeviceBytes: 1})
	if err != nil || least > told.Device {
		t.Errorf("grappler needs %d bytes, %d if it is told one byte (%v)", least, told.Device, err)
	}
	free := compiled(t, m, Options{Policy: Grappler})
	if copies(free) != copies(vanilla) {
		t.Errorf("without a budget grappler copies %d bytes, vanilla %d", copies(free),
			copies(vanilla))
	}
}

// TestPredict: what the rule guesses when it is told a budget, and what its plan
// comes to, are two numbers, and no budget refuses it.
func TestPredict(t *testing.T) {
	m, ctx := randgraph.Synthetic(600), context.Background()
	free, err := Predict(ctx, m.Graph, training(m), Options{Policy: Grappler})
	if err != nil || free.Estimate == 0 || free.Device == 0 || free.Host == 0 {
		t.Fatalf("%+v, %v", free, err)
	}
	tight, err := Predict(ctx, m.Graph, training(m), Options{Policy: Grappler, DeviceBytes: 1})
	if err != nil || tight.Estimate >= free.Estimate || tight.Device >= free.Device ||
		tight.Host <= free.Host {
		t.Errorf("told nothing, %+v; told one byte, %+v, %v", free, tight, err)
	}
}
