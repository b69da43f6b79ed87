package gomem_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/test/trial"
)

// TestOptionsCoverPlanning: every decision of package planner can be taken
// through the façade's options, and none is lost on the way there and back.
func TestOptionsCoverPlanning(t *testing.T) {
	var want planner.Options
	v := reflect.ValueOf(&want).Elem()
	for i := range v.NumField() {
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
