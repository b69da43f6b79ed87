package search

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// solve is the decision for a budget of the device.
func solve(t rapid.TB, pr *Problem, device int64, o Options, warm ...*Decision) *Decision {
	t.Helper()
	d, err := pr.Solve(context.Background(), Budget{device, plenty}, o, warm...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestNothingToGiveUp: where everything fits, everything is executed once, and nothing is copied
// but inputs and what is fetched, unless other plans are faster than to have all on the device.
func TestNothingToGiveUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := randomProgram(r, t)
		pr := New(p, slow())
		all := make([]bool, p.Graph.Len())
		for i := range all {
			all[i] = true
		}
		here := solve(r, pr, plenty, Options{Resident: all})
		var work, copies int64
		for i := range pr.ops {
			work += pr.ops[i].time
		}
		executed, copied := actions(p, pr, here)
		if copied != "" {
			r.Fatalf("%s is copied, although all is on the device", copied)
		}
		for n := range p.Graph.Nodes() {
			if node := p.Graph.Node(graph.NodeID(n)); node.Kind == graph.KindInput && p.Live[n] {
				copies += pr.values[pr.valueOf[p.ValueIndex(node.Value(0))]].in
			}
		}
		for _, f := range pr.fetches {
			copies += pr.values[f].out
		}
		if executed != len(pr.ops) || here.time < work || here.time > work+copies {
			r.Fatalf("%d executions of %d operations, %d ns of %d and %d of copies", executed,
				len(pr.ops), here.time, work, copies)
		}
		d := solve(r, pr, plenty, Options{})
		executed, copied = actions(p, pr, d)
		more := executed != len(pr.ops) || copied != ""
		if d.time > here.time || more && d.time == here.time {
			r.Fatalf("%d executions of %d operations, %d ns and all on the device %d; %q copied",
				executed, len(pr.ops), d.time, here.time, copied)
		}
	})
}

// actions are how many operations a decision executes, and what it copies that is no feed and
// no result, if anything.
func actions(p *program.Program, pr *Problem, d *Decision) (executed int, copied string) {
	for _, e := range pr.Schedule(d).Events {
		switch {
		case !e.Copies():
			executed++
		case e.Reason != space.Feed && e.Reason != space.Result:
			copied = p.Graph.Node(e.Node).Name
		}
	}
	return executed, copied
}

// five are the models at a size that tests can plan.
func five(t *testing.T) map[string]*models.Model {
	t.Helper()
	list := map[string]*models.Model{}
	add := func(name string, m *models.Model, err error) {
		if err != nil {
			t.Fatal(err)
		}
		list[name] = m
	}
	r, _ := models.NewResNetConfig("s64")
	m, err := models.ResNet(r)
	add("resnet", m, err)
	f, _ := models.NewTransformerConfig("s64")
	m, err = models.Transformer(f)
	add("transformer", m, err)
	e, _ := models.NewMoEConfig("s64")
	m, err = models.MoE(e)
	add("moe", m, err)
	w, _ := models.NewWGANConfig("s64")
	m, err = models.WGAN(w)
	add("wgan", m, err)
	s, _ := models.NewDeepSpeechConfig("s64")
	s.Unrolled = true
	m, err = models.DeepSpeech(s)
	add("deepspeech", m, err)
	return list
}

// objective is the program of one of a model's steps.
func objective(t *testing.T, m *models.Model, k int) *program.Program {
	o := m.Objectives[k]
	var updates []graph.NodeID
	for _, n := range o.Updates {
		updates = append(updates, n.ID)
	}
	return eager(t, m.Graph, []graph.Value{o.Loss}, updates)
}

// TestModels: plans of all models keep to budgets of half and a third of what they
// need with all, and are right.
func TestModels(t *testing.T) {
	for name, m := range five(t) {
		for k := range m.Objectives {
			p := objective(t, m, k)
			pr := New(p, titan())
			all := solve(t, pr, plenty, Options{})
			checkDecision(t, p, pr, all)
			for _, percent := range []int64{35, 50}[:longtest.Count(1, 2)] {
				d := solve(t, pr, all.Peak()*percent/100, Options{Effort: 60})
				if d == nil {
					t.Errorf("%s: nothing fits %d %%", name, percent)
					continue
				}
				checkDecision(t, p, pr, d)
			}
		}
	}
}

// TestTargetsAgree: what one of two programs decides about variables holds for the
// other.
func TestTargetsAgree(t *testing.T) {
	m := five(t)["wgan"]
	first, second := objective(t, m, 0), objective(t, m, 1)
	one, other := New(first, titan()), New(second, titan())
	budget := solve(t, one, plenty, Options{}).Peak() / 2
	d := solve(t, one, budget, Options{Effort: 100})
	o := Options{Effort: 100, Resident: d.Resident()}
	e := solve(t, other, budget, o)
	if d == nil || e == nil {
		t.Fatal("nothing fits")
	}
	checkDecision(t, second, other, e)
	checkOptions(t, second, o, e)
}

// TestHostBudget: the host's budget is kept to, and is refused if it is less than the
// inputs.
func TestHostBudget(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := randomProgram(r, t)
		pr := New(p, slow())
		all := solve(r, pr, plenty, Options{})
		free := solve(r, pr, all.Peak()*6/10, Options{Effort: 60})
		if free == nil {
			return
		}
		b := Budget{all.Peak() * 6 / 10,
			free.host * rapid.Int64Range(50, 100).Draw(r, "percent") / 100}
		d, err := pr.Solve(context.Background(), b, Options{Effort: 60})
		if err != nil {
			r.Fatal(err)
		}
		if d != nil {
			checkDecision(r, p, pr, d)
		}
		b.Host = pr.feeds - 1
		if d, err = pr.Solve(context.Background(), b, Options{Effort: 5}); d != nil || err != nil {
			r.Fatalf("%d bytes of the host are enough for inputs of %d: %v", b.Host, pr.feeds, err)
		}
	})
}

// TestWarm: what was found before is never forgotten.
func TestWarm(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := randomProgram(r, t)
		pr := New(p, slow())
		peak := solve(r, pr, plenty, Options{}).Peak()
		less := solve(r, pr, peak*rapid.Int64Range(30, 90).Draw(r, "less")/100,
			Options{Effort: 100})
		if less == nil {
			return
		}
		more := solve(r, pr, peak*rapid.Int64Range(90, 100).Draw(r, "more")/100,
			Options{Effort: 1}, less)
		if more == nil || more.Time() > less.Time() {
			r.Fatal("a larger budget is slower")
		}
		checkDecision(r, p, pr, more)
	})
}

// TestTighten: a decision that is tightened keeps to the smaller budget.
func TestTighten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := randomProgram(r, t)
		pr := New(p, slow())
		peak := solve(r, pr, plenty, Options{}).Peak()
		o := Options{Effort: 60, NoRecompute: rapid.Bool().Draw(r, "no recompute")}
		d := solve(r, pr, peak*rapid.Int64Range(40, 100).Draw(r, "percent")/100, o)
		if d == nil {
			return
		}
		b := Budget{d.Peak() * rapid.Int64Range(80, 100).Draw(r, "inner") / 100, plenty}
		less, err := pr.Tighten(context.Background(), d, b, o)
		if err != nil {
			r.Fatal(err)
		}
		if less != nil {
			checkDecision(r, p, pr, less)
			checkOptions(r, p, o, less)
		}
		if less == nil && b.Device == d.Peak() && stillFits(pr, d, b) {
			r.Fatal("what fits is lost")
		}
	})
}

// stillFits reports whether the same decisions fit another budget.
func stillFits(pr *Problem, d *Decision, b Budget) bool {
	e := newEvaluator(pr, b)
	e.force(d.homes)
	return e.evaluate(d.state.clone()) < never
}

// TestDeterministic: the same question has the same answer.
func TestDeterministic(t *testing.T) {
	m := five(t)["transformer"]
	p := objective(t, m, 0)
	var schedules []*program.Schedule
	for range 2 {
		pr := New(p, titan())
		peak := solve(t, pr, plenty, Options{}).Peak()
		schedules = append(schedules, pr.Schedule(solve(t, pr, peak*2/5, Options{Effort: 150})))
	}
	same := cmp.Comparer(func(a, b graph.Value) bool { return a == b })
	if diff := cmp.Diff(schedules[0], schedules[1], same); diff != "" {
		t.Error(diff)
	}
}

// TestCancelled: a search that is called off says so.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := randgraph.Synthetic(100)
	pr := New(eager(t, m.Graph, m.Fetches, m.Updates), slow())
	if _, err := pr.Solve(ctx, Budget{1, 1}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// TestTree: the tree answers as a list does.
func TestTree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64Range(-20, 20), 1, 40).Draw(r, "numbers")
		var tr tree
		tr.build(list)
		want := slices.Clone(list)
		for range rapid.IntRange(0, 20).Draw(r, "steps") {
			a := rapid.Int32Range(0, int32(len(list)-1)).Draw(r, "from")
			b := rapid.Int32Range(a, int32(len(list)-1)).Draw(r, "to")
			x := rapid.Int64Range(-20, 20).Draw(r, "x")
			tr.add(a, b, x)
			for i := a; i <= b; i++ {
				want[i] += x
			}
			limit := rapid.Int64Range(-40, 40).Draw(r, "limit")
			last := int32(-1)
			for i := a; i <= b; i++ {
				if want[i] > limit {
					last = i
				}
			}
			if got := tr.lastOver(a, b, limit); got != last {
				r.Fatalf("%d is the last above %d from %d to %d of %v, not %d", last, limit, a, b,
					want, got)
			}
		}
	})
}

// TestHeap: what is freed earliest comes first.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var h heap
		list := rapid.SliceOf(rapid.Int64Range(0, 20)).Draw(r, "times")
		for i, at := range list {
			h.push(freeing{at, int64(i)})
		}
		slices.Sort(list)
		for _, at := range list {
			if got := h.pop(); got.at != at {
				r.Fatalf("%d comes before %d", got.at, at)
			}
		}
	})
}
