package data

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/tensor"
)

// columnsOf are n examples: the number i, and 2i and 2i+1.
func columnsOf(t testing.TB, n int, o ExamplesOptions) *Examples {
	t.Helper()
	ids, pairs := make([]int32, n), make([]float32, 2*n)
	for i := range ids {
		ids[i], pairs[2*i], pairs[2*i+1] = int32(i), float32(2*i), float32(2*i+1)
	}
	e, err := FromTensors(o, tensor.FromI32(ids, n), tensor.FromF32(pairs, n, 2))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// seen are the examples of a batch, which is checked.
func seen(t *rapid.T, e *Examples, b Batch) []int32 {
	ids, pairs := b.Inputs[0].I32(), b.Inputs[1].F32()
	for k, id := range ids {
		want := [2]float32{float32(2 * id), float32(2*id + 1)}
		weight := float32(1)
		if k >= b.Units {
			want, weight = [2]float32{}, 0
		}
		if got := [2]float32(pairs[2*k:]); got != want {
			t.Fatalf("row %d of example %d is %v", k, id, got)
		}
		if e.opts.Pad && b.Inputs[2].F32()[k] != weight {
			t.Fatalf("row %d of %d weighs %v", k, b.Units, b.Inputs[2].F32()[k])
		}
	}
	for i, want := range e.Types() {
		if !b.Inputs[i].Type.Equal(want) {
			t.Fatalf("input %d is %s, not %s", i, b.Inputs[i].Type, want)
		}
	}
	return ids[:b.Units]
}

// TestExamplesPartition: an epoch has every training example once, an evaluation every
// held-out one, and no example is both; without Pad, less than a batch is missing.
func TestExamplesPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := ExamplesOptions{
			Batch: rapid.IntRange(1, 6).Draw(t, "batch"), Seed: rapid.Uint64().Draw(t, "seed"),
			Pad:     rapid.Bool().Draw(t, "pad"),
			InOrder: rapid.Bool().Draw(t, "in order"),
		}
		o.HeldOut = o.Batch * rapid.IntRange(-1, 2).Draw(t, "held out")
		n := max(0, o.HeldOut) + o.Batch + rapid.IntRange(2, 60).Draw(t, "n")
		x := madeOf(t, n, o)
		epochs := [2]map[int32]bool{{}, {}}
		for epoch, ids := range epochs {
			for k := range x.StepsPerEpoch() {
				for _, id := range seen(t, x, x.Train(epoch*x.StepsPerEpoch()+k)) {
					if ids[id] {
						t.Fatalf("example %d twice in epoch %d", id, epoch)
					}
					ids[id] = true
				}
			}
		}
		held := map[int32]bool{}
		for k := range x.HeldOutBatches() {
			for _, id := range seen(t, x, x.HeldOut(k)) {
				if held[id] || epochs[0][id] || epochs[1][id] {
					t.Fatalf("held-out example %d twice, or trained on", id)
				}
				held[id] = true
			}
		}
		missing := n - len(epochs[0]) - len(held)
		if o.Pad && missing != 0 || missing > 2*(o.Batch-1) {
			t.Fatalf("%d of %d examples are missing", missing, n)
		}
	})
}

func madeOf(t *rapid.T, n int, o ExamplesOptions) *Examples {
	e, err := FromFunc(o, n, func(i int, row []tensor.View) {
		row[0].I32()[0] = int32(i)
		row[1].F32()[0], row[1].F32()[1] = float32(2*i), float32(2*i+1)
	}, tensor.Of(tensor.I32), tensor.Of(tensor.F32, 2))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExamplesRepeat: batches are a function of options and step; seeds and epochs have
// orders of their own; tensors and a function give the same.
func TestExamplesRepeat(t *testing.T) {
	order := func(seed uint64, step int) []int32 {
		return columnsOf(t, 100, ExamplesOptions{Batch: 90, Seed: seed}).Train(step).Inputs[0].I32()
	}
	if !slices.Equal(order(1, 0), order(1, 0)) || slices.Equal(order(1, 0), order(1, 1)) ||
		slices.Equal(order(1, 0), order(2, 0)) {
		t.Error("the order is not that of seed and epoch")
	}
	last := columnsOf(t, 100, ExamplesOptions{Batch: 10, HeldOut: 20, InOrder: true})
	if got := last.HeldOut(1).Inputs[0].I32(); got[0] != 90 || got[9] != 99 {
		t.Errorf("the last examples are held out as %v", got)
	}
}

func TestExamplesRefuse(t *testing.T) {
	x, y := tensor.FromF32(make([]float32, 10), 10), tensor.FromF32(make([]float32, 9), 9)
	for _, c := range []struct {
		want string
		o    ExamplesOptions
		in   []tensor.View
	}{
		{"no tensors", ExamplesOptions{Batch: 1}, nil},
		{"tensor 0 is f32[]", ExamplesOptions{Batch: 1},
			[]tensor.View{tensor.FromF32([]float32{1})}},
		{"tensor 1 is f32[9], tensor 0 has 10 rows", ExamplesOptions{Batch: 1},
			[]tensor.View{x, y}},
		{"batches of 0", ExamplesOptions{}, []tensor.View{x}},
		{"10 of 10 are held out", ExamplesOptions{Batch: 1, HeldOut: 10}, []tensor.View{x}},
		{"9 to train on do not fill one batch of 10", ExamplesOptions{Batch: 10},
			[]tensor.View{x}},
		{"2 held out do not fill one batch of 3", ExamplesOptions{Batch: 3, HeldOut: 2},
			[]tensor.View{x}},
	} {
		_, err := FromTensors(c.o, c.in...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := FromFunc(ExamplesOptions{Batch: 1}, 0,
		func(int, []tensor.View) {}, tensor.Of(tensor.F32)); err == nil {
		t.Error("no examples are taken")
	}
	if _, err := FromFunc(ExamplesOptions{Batch: 1}, 1, nil); err == nil {
		t.Error("no function is taken")
	}
}

func TestShare(t *testing.T) {
	for share, want := range map[float64]int{0: -1, 0.001: 1, 0.1: 10, 0.5: 50, 0.999: 100} {
		if got, err := Share(100, share); got != want || err != nil {
			t.Errorf("Share(100, %v) = %d, %v, want %d", share, got, err, want)
		}
	}
	for _, share := range []float64{-0.1, 1, 2} {
		if _, err := Share(100, share); err == nil {
			t.Errorf("a share of %v is taken", share)
		}
	}
}
