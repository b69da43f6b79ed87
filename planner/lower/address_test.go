package lower

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// TestAddressesKeepToLimits: however addresses are changed, they are a plan's, and keep to what
// was asked for: pressed ones are lower, spread ones within the budgets, and lifted ones end where
// they should. The sketch that others were made of is as it was.
func TestAddressesKeepToLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		k := sketched(t, p, o)
		k.Pack(Need{}, 0)
		packed := k.Clone()
		verified := func(what string, k *Sketch) {
			made := k.Plan(p, what, k.Need)
			AddWaits(made)
			if err := plan.Verify(made, p.Graph, p.Fetches, p.Updates); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if pressed := k.Press(k.Load[space.Device], 3*Effort); pressed != nil {
			verified("pressed", pressed)
			if pressed.Need[space.Device] >= k.Need[space.Device] {
				t.Fatalf("%d bytes are pressed into %d", k.Need, pressed.Need)
			}
		}
		limits := Need{2 * k.Need[space.Device], 2 * k.Need[space.Host]}
		if wide := k.Clone(); wide.Ring(limits, 8) {
			if verified("spread", wide); !wide.Need.Within(limits) {
				t.Fatalf("%d bytes are spread over %d, of %d", k.Need, wide.Need, limits)
			}
		}
		to := k.Need[space.Device] + rapid.Int64Range(1, 1000).Draw(t, "more")
		if k.Lift(space.Device, to, to+int64(space.Line)) {
			if verified("lifted", k); k.Need[space.Device] < to ||
				k.Need[space.Device] >= to+int64(space.Line) {
				t.Fatalf("what is lifted to %d bytes ends at %d", to, k.Need[space.Device])
			}
		}
		shared := []*Sketch{k.Clone(), k.Clone()}
		if to += 1000; LiftTop(shared, space.Device, to, to+int64(space.Line)) {
			for _, k := range shared {
				if verified("lifted with its variables", k); k.Need[space.Device] < to ||
					k.Need[space.Device] >= to+int64(space.Line) {
					t.Fatalf("what is lifted to %d bytes ends at %d", to, k.Need[space.Device])
				}
			}
		}
		verified("as it was", packed)
	})
}

// TestLiftTop: plans that share variables have them at one address after they are lifted, and
// nothing moves if they cannot be.
func TestLiftTop(t *testing.T) {
	sketch := func(slots ...plan.Slot) *Sketch {
		k := &Sketch{slots: slots, align: space.Line}
		k.Need[space.Disk] = 300
		return k
	}
	low := plan.Slot{Space: space.Disk, Bytes: 100, Fixed: true}
	top := plan.Slot{Space: space.Disk, Off: 128, Bytes: 172, Fixed: true}
	other := plan.Slot{Space: space.Disk, Off: 192, Bytes: 172, Fixed: true}
	above := plan.Slot{Space: space.Disk, Off: 1000, Bytes: 8, From: 1, To: 1}
	for _, row := range []struct {
		name  string
		plans []*Sketch
		limit int64
		want  int64 // where the space ends; 0: it cannot be lifted
	}{
		{"alone", []*Sketch{sketch(low, top)}, 1 << 20, 1004},
		{"shared", []*Sketch{sketch(low, top), sketch(top, low)}, 1 << 20, 1004},
		{"no room", []*Sketch{sketch(low, top)}, 1003, 0},
		{"another variable", []*Sketch{sketch(low, top), sketch(low, other)}, 1 << 20, 0},
		{"another's value above", []*Sketch{sketch(low, top), sketch(low, top, above)}, 1 << 20, 0},
		{"no variable", []*Sketch{sketch(low, top), sketch()}, 1 << 20, 0},
	} {
		if got := LiftTop(row.plans, space.Disk, 1000, row.limit); got != (row.want > 0) {
			t.Errorf("%s: %t", row.name, got)
		}
		for i, k := range row.plans {
			at, need := int64(128), int64(300)
			if row.want > 0 {
				at, need = row.want-172, row.want
			}
			if n := k.top(space.Disk); n >= 0 && row.name != "another variable" &&
				(k.slots[n].Off != at || k.Need[space.Disk] != need) {
				t.Errorf("%s: plan %d has it at %d, and ends at %d", row.name, i, k.slots[n].Off,
					k.Need[space.Disk])
			}
		}
	}
}

// TestNothingThatCannotBeCounted: more bytes than a number can hold are more than any budget.
func TestNothingThatCannotBeCounted(t *testing.T) {
	s := &program.Schedule{Events: make([]program.Event, 1)}
	for range 2 {
		s.Stays = append(s.Stays, program.Stay{Space: space.Host, Over: program.NoStay,
			Bytes: math.MaxInt64/2 + 1})
	}
	k := Of(&program.Program{Graph: graph.New(), Schedule: s})
	if k.Load[space.Host] != math.MaxInt64 || k.Apart(space.Host) != math.MaxInt64 {
		t.Errorf("it comes to %d at once and %d side by side", k.Load[space.Host],
			k.Apart(space.Host))
	}
}
