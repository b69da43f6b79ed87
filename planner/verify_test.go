package planner

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// drawVerified draws a small model, synthetic or random, and a plan of it under any
// policy, half of the time within a budget between the smallest and twice that.
func drawVerified(t *rapid.T, nodes int) (*randgraph.Model, *plan.Plan) {
	var m *randgraph.Model
	if rapid.Bool().Draw(t, "synthetic") {
		m = randgraph.Synthetic(rapid.IntRange(18, nodes).Draw(t, "nodes"))
	} else {
		m = randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			nodes/10)
	}
	o := anyOptions(t)
	if rapid.Bool().Draw(t, "budget") {
		least, err := MinDevice(context.Background(), m.Graph, training(m), o)
		if err != nil {
			t.Fatal(err)
		}
		o.DeviceBytes = least + least/8*rapid.Int64Range(0, 8).Draw(t, "more")
	}
	r, err := Compile(context.Background(), m.Graph, training(m), o)
	if err != nil {
		t.Fatal(err)
	}
	return m, r.Plan
}

// randomOptions draws options for the thesis policy and its ablations.
func randomOptions(t *rapid.T) Options {
	return Options{
		Policy:      rapid.SampledFrom([]Policy{Vanilla, Thesis, Thesis, Thesis}).Draw(t, "policy"),
		Strategy:    rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy"),
		Partition:   rapid.SampledFrom([]int{1, 2, 3, 5, 20, 200}).Draw(t, "partition"),
		Lookahead:   rapid.IntRange(1, 4).Draw(t, "lookahead"),
		NoPlacement: rapid.IntRange(0, 3).Draw(t, "placement") == 0,
		NoSwap:      rapid.IntRange(0, 3).Draw(t, "swap") == 0,
		Streams:     rapid.IntRange(1, 3).Draw(t, "streams"),
	}
}

func training(m *randgraph.Model) Target {
	return Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
}

func compiled(t testing.TB, m *randgraph.Model, o Options) *plan.Plan {
	t.Helper()
	r, err := Compile(context.Background(), m.Graph, training(m), o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// without is the plan with one step left out.
func without(p *plan.Plan, drop int) *plan.Plan {
	q := *p
	q.Steps, q.Slots = nil, slices.Clone(p.Slots)
	shift := func(i int) int {
		if i > drop {
			return i - 1
		}
		return i
	}
	for i, s := range p.Steps {
		if i == drop {
			continue
		}
		s.Wait = nil
		for _, w := range p.Steps[i].Wait {
			if w != drop {
				s.Wait = append(s.Wait, shift(w))
			}
		}
		q.Steps = append(q.Steps, s)
	}
	for i := range q.Slots {
		s := &q.Slots[i]
		s.From, s.To = min(shift(s.From), len(q.Steps)-1), min(shift(s.To), len(q.Steps)-1)
	}
	return &q
}

// TestVerifyCatchesDroppedSteps: no step of any plan can be left out.
func TestVerifyCatchesDroppedSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := drawVerified(t, 60)
		for i := range p.Steps {
			if plan.Verify(without(p, i), m.Graph, m.Fetches, m.Updates) == nil {
				t.Fatalf("dropping %s went unnoticed", p.StepString(i))
			}
		}
	})
}

// TestEveryWaitIsNeeded: Verify objects to a plan without any one of its
// waits, so none is superfluous and none can be forgotten.
func TestEveryWaitIsNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := drawVerified(t, 80)
		for i, s := range p.Steps {
			for k, w := range s.Wait {
				q := *p
				q.Steps = slices.Clone(q.Steps)
				q.Steps[i].Wait = slices.Delete(slices.Clone(s.Wait), k, k+1)
				if plan.Verify(&q, m.Graph, m.Fetches, m.Updates) == nil {
					t.Fatalf("%s need not wait for step %d", p.StepString(i), w)
				}
			}
		}
	})
}

// TestVerifyCatchesChanges: moving a slot onto a live one, shortening a life,
// exchanging operands, a wrong header and a smaller budget are all noticed.
func TestVerifyCatchesChanges(t *testing.T) {
	m := randgraph.Synthetic(60)
	p := compiled(t, m, Options{Partition: 5})
	check := func(name string, change func(q *plan.Plan)) {
		q := *p
		q.Slots, q.Steps, q.Spaces = slices.Clone(p.Slots), slices.Clone(p.Steps),
			slices.Clone(p.Spaces)
		q.Fetches, q.Feeds = slices.Clone(p.Fetches), slices.Clone(p.Feeds)
		change(&q)
		if plan.Verify(&q, m.Graph, m.Fetches, m.Updates) == nil {
			t.Errorf("%s went unnoticed", name)
		}
	}
	for i, a := range p.Slots {
		for j, b := range p.Slots {
			if i != j && a.Space == b.Space && a.From <= b.To && b.From <= a.To {
				check(fmt.Sprintf("slot %d moved onto %d", i, j), func(q *plan.Plan) {
					q.Slots[i].Off = b.Off
				})
				break
			}
		}
		if a.To > a.From && !a.Fixed {
			check(fmt.Sprintf("slot %d freed early", i), func(q *plan.Plan) {
				q.Slots[i].To = a.From
			})
		}
	}
	for i, s := range p.Steps {
		if l, ok := s.Do.(plan.Launch); ok && len(l.In) > 1 && l.In[0] != l.In[1] {
			check("exchanged operands", func(q *plan.Plan) {
				l.In = slices.Clone(l.In)
				l.In[0], l.In[1] = l.In[1], l.In[0]
				q.Steps[i].Do = l
			})
		}
		check("another stream", func(q *plan.Plan) {
			q.Steps[i].Stream = plan.StreamID(len(p.Streams))
		})
		check("another node", func(q *plan.Plan) { q.Steps[i].Node = -1 })
		check("waits for itself", func(q *plan.Plan) { q.Steps[i].Wait = []int{i} })
	}
	check("peak one byte low", func(q *plan.Plan) { q.Spaces[space.Device].Bytes-- })
	check("budget one byte low", func(q *plan.Plan) {
		q.Spaces[space.Host].Budget = q.Spaces[space.Host].Bytes - 1
	})
	check("missing fetch", func(q *plan.Plan) { q.Fetches = nil })
	check("fetch of another slot", func(q *plan.Plan) { q.Fetches[0].Ref.Slot = 0 })
	check("missing feed", func(q *plan.Plan) { q.Feeds = nil })
	check("no partitions", func(q *plan.Plan) { q.Parts = 0 })
}

// TestConcurrentStepsDoNotConflict compares Verify with brute force: it walks
// every state that the streams of a small plan can be in, and looks at every
// pair of steps that can run at the same time.
func TestConcurrentStepsDoNotConflict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := drawVerified(t, 18)
		if msg := conflict(p); msg != "" {
			t.Fatal(msg)
		}
		// Verify never accepts what brute force rejects.
		i := rapid.IntRange(0, len(p.Steps)-1).Draw(t, "step")
		q := *p
		q.Steps = slices.Clone(p.Steps)
		q.Steps[i].Wait = nil
		if conflict(&q) != "" && plan.Verify(&q, m.Graph, m.Fetches, m.Updates) == nil {
			t.Fatalf("step %d without waits conflicts, Verify accepts it", i)
		}
	})
}

// conflict describes two steps that can run at once and touch the same bytes,
// one of them writing.
func conflict(p *plan.Plan) string {
	lanes := make([][]int, len(p.Streams))
	number := make([]int, len(p.Steps))
	for i, s := range p.Steps {
		number[i] = len(lanes[s.Stream])
		lanes[s.Stream] = append(lanes[s.Stream], i)
	}
	seen := map[string]bool{}
	todo := [][]int{make([]int, len(lanes))}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if key := fmt.Sprint(at); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		var heads []int
		for s, k := range at {
			if k == len(lanes[s]) {
				continue
			}
			i := lanes[s][k]
			ready := !slices.ContainsFunc(p.Steps[i].Wait, func(w int) bool {
				return at[p.Steps[w].Stream] <= number[w]
			})
			if ready {
				heads = append(heads, i)
				next := slices.Clone(at)
				next[s]++
				todo = append(todo, next)
			}
		}
		for a, i := range heads {
			for _, j := range heads[:a] {
				if overlap(p, i, j) {
					return fmt.Sprintf("%s runs beside %s", p.StepString(i), p.StepString(j))
				}
			}
		}
	}
	return ""
}

func overlap(p *plan.Plan, i, j int) (found bool) {
	plan.Each(p.Steps[i].Do, func(a plan.SlotID, wa bool) {
		plan.Each(p.Steps[j].Do, func(b plan.SlotID, wb bool) {
			x, y := p.Slots[a], p.Slots[b]
			if (wa || wb) && x.Space == y.Space && x.Off < y.Off+y.Bytes && y.Off < x.Off+x.Bytes {
				found = true
			}
		})
	})
	return found
}

// TestParseReadsWhatIsPrinted: a plan survives its text, and still verifies.
func TestParseReadsWhatIsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, p := drawVerified(t, 120)
		var text bytes.Buffer
		n, err := p.WriteTo(&text)
		if err != nil || n != int64(text.Len()) {
			t.Fatalf("wrote %d of %d bytes, %v", n, text.Len(), err)
		}
		back, err := plan.Parse(&text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatal(diff)
		}
		if err := plan.Verify(back, m.Graph, m.Fetches, m.Updates); err != nil {
			t.Fatal(err)
		}
	})
}
