package profile_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/train"
)

func compare(t *testing.T, a, b *plan.Plan) *profile.Diff {
	t.Helper()
	d, err := profile.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// diffText is what people read; it fits.
func diffText(t *testing.T, d *profile.Diff) string {
	t.Helper()
	var b strings.Builder
	if err := d.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(line) > 81 || strings.HasSuffix(line, " \n") {
			t.Errorf("%q", line)
		}
	}
	return b.String()
}

// TestDiffModels: a plan is the same as itself, others differ, and from the other
// side everything is the other way around.
func TestDiffModels(t *testing.T) {
	for name, build := range builders {
		t.Run(name, func(t *testing.T) {
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			make := func(o gomem.Options) *plan.Plan {
				p, err := gomem.Plan(t.Context(), m.Graph, o, train.Targets(&m.Model)...)
				if err != nil {
					t.Fatal(err)
				}
				return p.Results[0].Plan
			}
			a := make(gomem.Options{Policy: "thesis", Partition: 20})
			b := make(gomem.Options{Policy: "vanilla"})
			if d := compare(t, a, a); !d.Same || len(d.Copies)+len(d.Ops)+len(d.Values) > 0 ||
				diffText(t, d) != "" {
				t.Errorf("%+v", d)
			}
			there, back := compare(t, a, b), compare(t, b, a)
			if there.Same || back.Same || len(there.Values) == 0 ||
				len(there.Values) != len(back.Values) || len(there.Copies) != len(back.Copies) ||
				there.A != back.B || there.Moved != back.Moved {
				t.Errorf("there %d, back %d values", len(there.Values), len(back.Values))
			}
			text := diffText(t, there)
			for _, want := range []string{"device peak", "copied for stage", "gone",
				profile.Rehomes, profile.Unstages} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			diffRoundTrip(t, there)
		})
	}
}

func diffRoundTrip(t *testing.T, d *profile.Diff) {
	t.Helper()
	var b bytes.Buffer
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(&b)
	dec.DisallowUnknownFields()
	var back profile.Diff
	if err := dec.Decode(&back); err != nil || !reflect.DeepEqual(*d, back) {
		t.Errorf("%v: %+v is read back as %+v", err, *d, back)
	}
}

// TestDiffValues: what became of each value.
func TestDiffValues(t *testing.T) {
	small := func(steps ...plan.Step) *plan.Plan {
		p := &plan.Plan{Title: "t", Parts: 1, Steps: steps,
			Spaces:  []plan.Space{{Name: "device", Bytes: 64}, {Name: "host", Bytes: 64}},
			Streams: []plan.Stream{{Name: "compute0"}}}
		for range 2 {
			p.Slots = append(p.Slots, plan.Slot{Bytes: 64, To: max(0, len(steps)-1), Value: "x"})
		}
		p.Slots[1].Space = 1
		return p
	}
	run := func(name string) plan.Step {
		return plan.Step{Name: name, Do: plan.Launch{Op: "add", Out: []plan.Ref{{Slot: 0}},
			Scratch: plan.NoSlot}}
	}
	swap := func(name string, why space.Reason) plan.Step {
		return plan.Step{Name: name, Do: plan.Copy{Src: plan.Ref{Slot: 0},
			Dst: plan.Ref{Slot: 1}, Bytes: 64, Why: why}}
	}
	for _, c := range []struct {
		a, b *plan.Plan
		want []profile.ValueDiff
	}{
		{small(run("x")), small(run("x"), run("x")), []profile.ValueDiff{
			{Value: "x", Change: profile.Recomputes, Bytes: 64, A: 1, B: 2}}},
		{small(run("x"), run("x")), small(run("x")), []profile.ValueDiff{
			{Value: "x", Change: profile.Keeps, Bytes: 64, A: 2, B: 1}}},
		{small(run("x")), small(run("x"), swap("x", space.SwapOut)), []profile.ValueDiff{
			{Value: "x", Change: profile.Leaves, Bytes: 64, B: 1}}},
		{small(run("x"), swap("x", space.SwapOut)), small(run("x")), []profile.ValueDiff{
			{Value: "x", Change: profile.Remains, Bytes: 64, A: 1}}},
		{small(swap("w", space.Stage)), small(swap("w", space.Stage), swap("w", space.Stage)),
			[]profile.ValueDiff{{Value: "w", Change: profile.Stages, Bytes: 64, A: 1, B: 2}}},
		{small(run("x")), small(run("y")), []profile.ValueDiff{
			{Value: "y", Change: profile.Appears, Bytes: 64, B: 1},
			{Value: "x", Change: profile.Disappears, Bytes: 64, A: 1}}},
	} {
		if d := compare(t, c.a, c.b); !reflect.DeepEqual(d.Values, c.want) {
			t.Errorf("%+v, want %+v", d.Values, c.want)
		}
	}
}

// TestDiffFetches: what only one plan fetches, or more often, is said, and that nothing but the
// order differs; from the other side it is the other way around.
func TestDiffFetches(t *testing.T) {
	whole := inputOf(t, "transformer").Plan
	first := whole.Fetches[0]
	with := func(fetches ...plan.Fetch) *plan.Plan {
		p := *whole
		p.Fetches = fetches
		return &p
	}
	other := first
	other.Value = "another"
	name, dtype := first.Value, first.Type.String()
	for _, c := range []struct {
		a, b *plan.Plan
		want []profile.FetchDiff
		says string
	}{
		{with(first), with(), []profile.FetchDiff{{Value: name, Type: dtype, ACount: 1}}, "gone"},
		{with(first), with(first, first, other), []profile.FetchDiff{
			{Value: name, Type: dtype, ACount: 1, BCount: 2},
			{Value: "another", Type: dtype, BCount: 1}}, "fetches of another"},
		{with(first, other), with(other, first), []profile.FetchDiff{}, "in another order"},
	} {
		there, back := compare(t, c.a, c.b), compare(t, c.b, c.a)
		text := diffText(t, there)
		if !reflect.DeepEqual(there.Fetches, c.want) || !strings.Contains(text, c.says) ||
			strings.Contains(text, "Titles") {
			t.Errorf("%+v, want %+v and %q in\n%s", there.Fetches, c.want, c.says, text)
		}
		if len(back.Fetches) != len(there.Fetches) || back.Reordered != there.Reordered {
			t.Errorf("there %+v, back %+v", there.Fetches, back.Fetches)
		}
		diffRoundTrip(t, there)
	}
}

// TestDiffAddresses: a difference that no table has is said all the same.
func TestDiffAddresses(t *testing.T) {
	in := inputOf(t, "transformer")
	moved := *in.Plan
	moved.Slots = append([]plan.Slot(nil), in.Plan.Slots...)
	moved.Slots[3].Off += 64
	if text := diffText(t, compare(t, in.Plan, &moved)); !strings.Contains(text,
		"1 slot that both have is at another address") {
		t.Error(text)
	}
	titled := *in.Plan
	titled.Title = "another"
	if text := diffText(t, compare(t, in.Plan, &titled)); !strings.Contains(text, "Titles") {
		t.Error(text)
	}
}

// TestDiffRefused: plans whose numbers refer to nothing are errors, not panics.
func TestDiffRefused(t *testing.T) {
	good := inputOf(t, "transformer").Plan
	for says, change := range map[string]func(*plan.Plan){
		"is in no space": func(p *plan.Plan) { p.Slots[0].Space = 9 },
		"at no time":     func(p *plan.Plan) { p.Slots[5].To = len(p.Steps) },
		"slot or stream": func(p *plan.Plan) { p.Steps[3].Stream = 200 },
		"step 4": func(p *plan.Plan) {
			p.Steps[4].Do = plan.Copy{Src: plan.Ref{Slot: 1 << 30}}
		},
		"cannot be printed": func(p *plan.Plan) { p.Spaces[0].Name = "" },
	} {
		bad := *good
		bad.Slots = append([]plan.Slot(nil), good.Slots...)
		bad.Steps = append([]plan.Step(nil), good.Steps...)
		bad.Spaces = append([]plan.Space(nil), good.Spaces...)
		change(&bad)
		for _, pair := range [][2]*plan.Plan{{good, &bad}, {&bad, good}} {
			if _, err := profile.Compare(pair[0], pair[1]); err == nil ||
				!strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
	}
}
