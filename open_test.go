package gomem_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// TestOptionsCoverPlanning: every decision of package planner can be taken
// through the façade's options, and none is lost on the way there and back. What the device is
// follows from its name.
func TestOptionsCoverPlanning(t *testing.T) {
	var want planner.Options
	v := reflect.ValueOf(&want).Elem()
	for name, other := range map[string]bool{"": false, gomem.CPU: false, gomem.Null: false,
		gomem.CUDA: true, gomem.CUDA + ":1": true} {
		if d := (gomem.Options{Device: name}).Planning().Device; (d != nil) != other {
			t.Errorf("plans for %q are for %T", name, d)
		}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Name == "Device" {
			continue
		}
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Interface:
			f.Set(reflect.ValueOf(machine.Default()))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		default:
			f.SetInt(int64(i + 1))
		}
		if got := (gomem.Options{}).With(want).Planning(); got != want {
			t.Errorf("%s is lost: %+v", v.Type().Field(i).Name, got)
		}
	}
}

// TestOpen: plans can be made once and opened as often as one likes; the seed
// selects the initial values; who sets them all need not draw them.
func TestOpen(t *testing.T) {
	m := randgraph.Random(func(int) int { return 0 }, 6)
	ctx := context.Background()
	target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	p, err := gomem.Plan(ctx, m.Graph, gomem.Options{}, target)
	if err != nil {
		t.Fatal(err)
	}
	open := func(o gomem.Options) *gomem.Session {
		s, err := gomem.Open(p, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	first, again := open(gomem.Options{Seed: 7}), open(gomem.Options{Seed: 7, Threads: 2})
	other, blank := open(gomem.Options{Seed: 8}), open(gomem.Options{Seed: 7, NoInitialize: true})
	want := trial.Values(t, first)
	if !trial.SameBits(want, trial.Values(t, again)) || trial.SameBits(want, trial.Values(t,
		other)) {
		t.Error("initial values do not depend on the seed alone")
	}
	for _, x := range trial.Values(t, blank) {
		if slices.Max(x) != 0 {
			t.Error("a variable is drawn though nobody asked for it")
		}
	}
	for _, v := range first.Variables() {
		x, _ := first.Get(v)
		if err := blank.Set(v, x); err != nil {
			t.Fatal(err)
		}
	}
	for step := range 3 {
		a, errA := first.Step(ctx, "train", trial.Feeds(m, step))
		b, errB := blank.Step(ctx, "train", trial.Feeds(m, step))
		if errA != nil || errB != nil || !slices.EqualFunc(a, b, func(a, b gomem.Tensor) bool {
			return slices.Equal(a.Data, b.Data)
		}) {
			t.Fatalf("step %d differs: %v, %v", step, errA, errB)
		}
	}
}

// TestOpenNothing: there must be plans, and options that make sense.
func TestOpenNothing(t *testing.T) {
	for _, p := range []*gomem.Planned{nil, {}} {
		if _, err := gomem.Open(p, gomem.Options{}); err == nil {
			t.Error("a session without plans is opened")
		}
	}
	if _, err := gomem.Plan(t.Context(), randgraph.Synthetic(10).Graph,
		gomem.Options{}); err == nil {
		t.Error("a graph is planned without a target")
	}
}

// TestBadTargets: with fusion and without, for plans and for minima, what cannot be
// a target is an error that names it, and nothing panics.
func TestBadTargets(t *testing.T) {
	m := randgraph.Synthetic(40)
	good := gomem.Target{Name: "good", Fetches: m.Fetches}
	bad := func(ids ...graph.NodeID) []gomem.Target {
		return []gomem.Target{good, {Name: "bad", Fetches: m.Fetches, Updates: ids}}
	}
	var nobody context.Context
	for _, c := range []struct {
		name    string
		ctx     context.Context
		g       *graph.Graph
		targets []gomem.Target
		want    string
	}{
		{"beyond the graph", t.Context(), m.Graph, bad(1 << 20), `target "bad": update 0`},
		{"negative", t.Context(), m.Graph, bad(-7), `target "bad": update 0`},
		{"a leaf", t.Context(), m.Graph, bad(m.Inputs[0].Node.ID), `target "bad": update 0`},
		{"computed", t.Context(), m.Graph, bad(m.Fetches[0].Node.ID), `target "bad": update 0`},
		{"no value", t.Context(), m.Graph, []gomem.Target{{Name: "bad",
			Fetches: []graph.Value{{}}}}, `target "bad": fetch 0`},
		{"one name", t.Context(), m.Graph, []gomem.Target{good, good},
			`two targets are called "good"`},
		{"nothing", t.Context(), m.Graph, []gomem.Target{{}}, "nothing to compute"},
		{"no targets", t.Context(), m.Graph, nil, "no targets"},
		{"no graph", t.Context(), nil, []gomem.Target{good}, "the graph is nil"},
		{"no context", nobody, m.Graph, []gomem.Target{good}, "the context is nil"},
	} {
		for _, noFusion := range []bool{false, true} {
			o := gomem.Options{NoFusion: noFusion}
			_, errPlan := gomem.Plan(c.ctx, c.g, o, c.targets...)
			_, errDevice := gomem.MinDevice(c.ctx, c.g, o, c.targets...)
			_, errHost := gomem.MinHost(c.ctx, c.g, o, c.targets...)
			_, errSmaller := gomem.SmallerPartition(c.ctx, &gomem.Planned{Graph: c.g,
				Targets: c.targets}, o, 1<<40)
			_, errUnplanned := gomem.MinDeviceOf(c.ctx, &gomem.Planned{}, o)
			if errUnplanned == nil {
				t.Error("what has not been planned has a smallest budget")
			}
			for _, err := range []error{errPlan, errDevice, errHost, errSmaller} {
				if err == nil || !strings.Contains(err.Error(), c.want) ||
					!strings.HasPrefix(err.Error(), "gomem: ") {
					t.Errorf("%s: want %q, have %v", c.name, c.want, err)
				}
			}
		}
	}
}
