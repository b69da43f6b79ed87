package lower

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// bytesOf walks through views, by their operation's own word.
func bytesOf(v graph.Value) graph.Value {
	for v.Node.Op != nil {
		if _, ok := v.Node.Op.(graph.Viewer); !ok {
			break
		}
		v = v.Node.In[0]
	}
	return v
}

// TestSlotsFollowLives: a slot that holds a value on the device is live while the
// value is there, and no longer than the prefetch asks for.
func TestSlotsFollowLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		o.Prefetch, o.Unshared = 0, false // nothing is early or late
		made := written(t, p, o)
		for i, s := range made.Slots {
			if s.Fixed || s.Space != space.Device {
				continue
			}
			first, last := math.MaxInt, -1
			for k, step := range made.Steps {
				plan.Each(step.Do, func(id plan.SlotID, _ bool) {
					if int(id) == i {
						first, last = min(first, k), k
					}
				})
			}
			if first != s.From || last != s.To {
				t.Fatalf("slot %d (%s) is live from %d to %d and used from %d to %d", i, s.Value,
					s.From, s.To, first, last)
			}
		}
	})
}
