package arrays

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// numbered are n examples: i, and 2i and 2i+1.
func numbered(n int) *Set {
	ids, pairs := tensor.New(tensor.Of(tensor.I64, n)), tensor.New(tensor.Of(tensor.F32, n, 2))
	for i := range n {
		ids.I64()[i] = int64(i)
		pairs.F32()[2*i], pairs.F32()[2*i+1] = float32(2*i), float32(2*i+1)
	}
	return &Set{Spec: "npz:x", Arrays: []Array{{"id", ids}, {"pair", pairs}}}
}

func columns(batch int) []Column {
	return []Column{{Name: "pair", Type: tensor.Of(tensor.F32, batch, 2)},
		{Name: "id", Type: tensor.Of(tensor.I32, batch)}}
}

// seen are the examples of a batch, whose columns have to belong together.
func seen(t *rapid.T, b data.Batch) []int32 {
	for k, id := range b.Inputs[1].I32() {
		if pair := b.Inputs[0].F32()[2*k:]; pair[0] != float32(2*id) || pair[1] != pair[0]+1 {
			t.Fatalf("example %d has %v", id, pair[:2])
		}
	}
	return b.Inputs[1].I32()
}

// TestBatches: an epoch has no example twice, what is held out is never trained on, batches are a
// function of seed and step, and of other data all is evaluated.
func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := rapid.IntRange(1, 5).Draw(t, "batch")
		n := rapid.IntRange(10*batch, 80).Draw(t, "examples")
		o := LoaderOptions{Columns: columns(batch), Seed: rapid.Uint64().Draw(t, "seed"),
			EvalShare: rapid.SampledFrom([]float64{0, 0.25, 0.5}).Draw(t, "share")}
		l, err := NewLoader(numbered(n), o)
		if err != nil {
			t.Fatal(err)
		}
		same, err := NewLoader(numbered(n), o)
		if err != nil {
			t.Fatal(err)
		}
		all := map[int32]int{}
		for i := range l.HeldOutBatches() {
			for _, id := range seen(t, l.HeldOut(i)) {
				all[id] += 100
			}
		}
		for step := range l.StepsPerEpoch() {
			ids := seen(t, l.Train(step))
			for _, id := range ids {
				all[id]++
			}
			if !slices.Equal(ids, seen(t, same.Train(step))) {
				t.Fatalf("step %d has another batch", step)
			}
		}
		for id, count := range all {
			if count != 1 && count != 100 {
				t.Fatalf("example %d is there %d times", id, count)
			}
		}
		o.Whole = true
		if l, err = NewLoader(numbered(n), o); err != nil {
			t.Fatal(err)
		}
		clear(all)
		for i := range l.HeldOutBatches() {
			for _, id := range seen(t, l.HeldOut(i)) {
				all[id]++
			}
		}
		if l.StepsPerEpoch() != 0 || len(all) != n/batch*batch {
			t.Fatalf("%d of %d examples are evaluated", len(all), n)
		}
	})
}

// TestColumns: arrays that are missing, superfluous, of other sizes or of numbers that would not
// be the same are refused by name; others are converted.
func TestColumns(t *testing.T) {
	set := numbered(20)
	far := numbered(20)
	far.Arrays[0].I64()[7] = 1 << 40
	short := numbered(20)
	short.Arrays[1].View = tensor.New(tensor.Of(tensor.F32, 19, 2))
	bytes := numbered(20)
	bytes.Arrays[0].View = bytes.Arrays[0].To(tensor.U8)
	halves := numbered(20)
	halves.Arrays[1].View = halves.Arrays[1].To(tensor.F16)
	doubles := numbered(20)
	doubles.Arrays[1].View = doubles.Arrays[1].To(tensor.F64)
	id := Column{Name: "id", Type: tensor.Of(tensor.I32, 4)}
	pair := columns(4)[0]
	label := id
	label.Below = 20
	fewer := id
	fewer.Below = 19
	wide := Column{Name: "pair", Type: tensor.Of(tensor.F32, 4, 3)}
	other := Column{Name: "id", Type: tensor.Of(tensor.I32, 5)}
	for _, c := range []struct {
		set     *Set
		columns []Column
		says    string // "": it works
	}{
		{set, columns(4), ""}, {bytes, columns(4), ""}, {halves, columns(4), ""},
		{set, []Column{pair, label}, ""},
		{set, nil, "no columns"},
		{set, []Column{pair}, `array "id" is for nothing`},
		{set, append(columns(4), Column{Name: "mask", Type: id.Type}), `no array "mask", i32[4]`},
		{far, columns(4), `array "id" is i64[20]: not all of it is in i32`},
		{doubles, columns(4), ".astype('float32')"},
		{short, columns(4), `"pair" has 19 examples, and "id" 20`},
		{set, []Column{wide, id}, "want the axes of f32[4 3]"},
		{set, []Column{pair, other}, `column "id" of a batch is i32[5]`},
		{set, []Column{pair, {Name: "id", Type: tensor.Of(tensor.I32)}}, "want the axes of i32[]"},
		{set, []Column{pair, fewer}, "number 19 of it is 19: want labels from 0 to 18"},
		{set, columns(64), "do not fill one batch"},
	} {
		_, err := NewLoader(c.set, LoaderOptions{Columns: c.columns})
		if _, typed := errors.AsType[*data.Error](err); (err == nil) != (c.says == "") ||
			err != nil && (!typed || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%v: %v, want %q", c.columns, err, c.says)
		}
	}
	if _, err := NewLoader(set, LoaderOptions{Columns: columns(4), EvalShare: 2}); err == nil {
		t.Error("twice of all is held out")
	}
}
