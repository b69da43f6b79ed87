package plan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// TestTraffic: bytes are counted by the reason of their copy and by direction.
func TestTraffic(t *testing.T) {
	p := newBench().plan(t, more...)
	want := plan.Traffic{space.Stage: 24, space.Feed: 8, space.Gradient: 8}
	got := p.Traffic()
	if got != want || got.In() != 32 || got.Out() != 8 || p.Launches() != 5 {
		t.Errorf("traffic %v, in %d, out %d, %d launches", got, got.In(), got.Out(), p.Launches())
	}
	every := plan.Traffic{1, 2, 4, 8, 16, 32, 64}
	if every.In() != 2+4+8 || every.Out() != 1+16+32+64 {
		t.Errorf("of %v, %d go in and %d out", every, every.In(), every.Out())
	}
}

// TestTimeline: the bytes that are live during each step, added up by hand.
func TestTimeline(t *testing.T) {
	p := newBench().plan(t)
	for in, want := range map[space.ID][]int64{
		space.Device: {8, 16, 24, 24 + 16 + 80, 16 + 8, 16 + 8, 8, 0, 0},
		space.Host:   {32, 24, 24, 24, 24, 24, 32, 48, 48},
	} {
		if diff := cmp.Diff(want, p.Timeline(in)); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
	if live := (&plan.Plan{Slots: p.Slots}).Timeline(space.Host); len(live) > 0 {
		t.Errorf("without steps %v", live)
	}
}

// TestPeak: it is named after the operation during which most is live, with the
// largest values first.
func TestPeak(t *testing.T) {
	p := newBench().plan(t)
	want := plan.Peak{Bytes: 400, Step: 3, At: "mix", Live: 120, Values: 6, Largest: []plan.Holder{
		{Value: "scratch of mix", Type: "u8[80]", Bytes: 80},
		{Value: "x", Type: "f32[2]", Bytes: 8}}}
	if diff := cmp.Diff(want, p.Peak(space.Device, 2)); diff != "" {
		t.Error(diff)
	}
	want = plan.Peak{Bytes: 208, Step: 7, At: "norm", Live: 48, Fixed: 24, Values: 4,
		Largest: []plan.Holder{{Value: "w", Type: "f32[2 2]", Bytes: 16},
			{Value: "norm", Type: "f32[2 2]", Bytes: 16}, {Value: "k", Type: "f32[2]", Bytes: 8},
			{Value: "add", Type: "f32[2]", Bytes: 8}}}
	if diff := cmp.Diff(want, p.Peak(space.Host, 9)); diff != "" {
		t.Error(diff)
	}
}

// TestError: the cause is in the chain.
func TestError(t *testing.T) {
	cause := errors.New("why")
	for want, err := range map[string]*plan.Error{
		"plan: step 3 (a/b): why": {Step: 3, Name: "a/b", Err: cause},
		"plan: host: why":         {Step: -1, Name: "host", Err: cause},
		"plan: why":               {Step: -1, Err: cause},
	} {
		if err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
