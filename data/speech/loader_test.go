package speech

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

var _ data.Batches = (*Loader)(nil)

// spoken is a set of so many sentences that is not read from anywhere.
func spoken(train, heldOut int) *Set {
	s := &Set{Info: data.Info{Spec: "formant", Noun: "utterance", Pairs: train + heldOut,
		HeldOut: heldOut}, seed: 1, analyser: newAnalyser(), Letters: English()}
	for n := range train + heldOut {
		text := "go"
		for _, digit := range fmt.Sprint(n) {
			text += " " + string("abcdefghij"[digit-'0']) + "a"
		}
		_, samples := voiceOf(text, s.seed).score(text)
		u := Utterance{Text: text, Frames: Frames(samples)}
		if n < train {
			s.Train = append(s.Train, u)
		} else {
			s.HeldOut = append(s.HeldOut, u)
		}
	}
	return s
}

// loader makes a loader that must be good.
func loader(t testing.TB, s *Set, o LoaderOptions) *Loader {
	t.Helper()
	l, err := NewLoader(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rows are the texts of a batch, which must be well formed.
func rows(t testing.TB, l *Loader, b data.Batch) (texts []string) {
	t.Helper()
	o := l.opts
	if len(b.Inputs) != 4 {
		t.Fatalf("%d inputs", len(b.Inputs))
	}
	for i, want := range []tensor.Type{
		tensor.Of(tensor.F32, o.Frames, o.Utterances, Coefficients), tensor.Of(tensor.I32,
			o.Utterances, o.Labels),
		tensor.Of(tensor.I32, o.Utterances), tensor.Of(tensor.I32, o.Utterances),
	} {
		if !b.Inputs[i].Type.Equal(want) {
			t.Fatalf("input %d is %s, want %s", i, b.Inputs[i].Type, want)
		}
	}
	features, ids, lengths, frames := b.Inputs[0].F32(), b.Inputs[1].I32(), b.Inputs[2].I32(),
		b.Inputs[3].I32()
	for k := range o.Utterances {
		row := ids[k*o.Labels:][:o.Labels]
		if slices.ContainsFunc(row[lengths[k]:], func(l int32) bool { return l != 0 }) {
			t.Fatalf("labels %v of %d", row, lengths[k])
		}
		if lengths[k] > 0 {
			texts = append(texts, English().Text(row[:lengths[k]]))
		}
		for f := range o.Frames {
			frame := features[(f*o.Utterances+k)*Coefficients:][:Coefficients]
			if there := slices.ContainsFunc(frame,
				func(x float32) bool { return x != 0 }); there != (f < int(frames[k])) {
				t.Fatalf("frame %d of %d of utterance %d: %v", f, frames[k], k, frame)
			}
		}
	}
	if b.Units != len(texts) {
		t.Fatalf("%d units, %d utterances", b.Units, len(texts))
	}
	return texts
}

// TestEpochs: an epoch has different utterances in each place, a held-out pass has
// all of them in order.
func TestEpochs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		train, held := rapid.IntRange(1, 12).Draw(rt, "train"),
			rapid.IntRange(0, 5).Draw(rt, "held out")
		o := LoaderOptions{Utterances: rapid.IntRange(1, train).Draw(rt, "batch"), Frames: 70,
			Labels: 12, Seed: rapid.Uint64().Draw(rt, "seed")}
		s := spoken(train, held)
		l := loader(t, s, o)
		if l.StepsPerEpoch() != train/o.Utterances ||
			l.HeldOutBatches() != (held+o.Utterances-1)/o.Utterances {
			rt.Fatalf("%d and %d batches", l.StepsPerEpoch(), l.HeldOutBatches())
		}
		for epoch := range 2 {
			var seen []string
			for step := range l.StepsPerEpoch() {
				seen = append(seen, rows(t, l, l.Train(epoch*l.StepsPerEpoch()+step))...)
			}
			slices.Sort(seen)
			if len(seen) != l.StepsPerEpoch()*o.Utterances ||
				len(slices.Compact(seen)) != len(seen) {
				rt.Fatalf("an epoch has %q", seen)
			}
		}
		var have, want []string
		for i := range l.HeldOutBatches() {
			have = append(have, rows(t, l, l.HeldOut(i))...)
		}
		for _, u := range s.HeldOut {
			want = append(want, u.Text)
		}
		if !slices.Equal(have, want) {
			rt.Fatalf("held out are %q, want %q", have, want)
		}
	})
}

// TestPure: a batch depends on seed and step alone, whoever asks.
func TestPure(t *testing.T) {
	s := spoken(30, 0)
	one, two, other := loader(t, s, LoaderOptions{Utterances: 4, Seed: 1}),
		loader(t, s, LoaderOptions{Utterances: 4, Seed: 1}),
		loader(t, s, LoaderOptions{Utterances: 4, Seed: 2})
	var running sync.WaitGroup
	for step := range 8 {
		running.Go(func() {
			a, b := one.Train(step), two.Train(step)
			for i := range a.Inputs {
				if string(a.Inputs[i].Data) != string(b.Inputs[i].Data) {
					t.Errorf("input %d of step %d differs", i, step)
				}
			}
		})
	}
	running.Wait()
	var a, b []string
	for step := range one.StepsPerEpoch() {
		a, b = append(a, rows(t, one, one.Train(step))...),
			append(b, rows(t, other, other.Train(step))...)
	}
	if slices.Equal(a, b) {
		t.Error("the seed does not change the order")
	}
	if again := rows(t, one, one.Train(one.StepsPerEpoch())); slices.Equal(again, a[:4]) {
		t.Error("two epochs have one order")
	}
}

// TestUncounted: a batch that counts for nothing has no frames, in the shapes of others.
func TestUncounted(t *testing.T) {
	l := loader(t, spoken(30, 0), LoaderOptions{Utterances: 4})
	b, ok := l.Uncounted(1)
	if !ok || b.Units != 0 || !slices.Equal(b.Inputs[3].I32(), make([]int32, 4)) {
		t.Errorf("%v, %d units, frames %v", ok, b.Units, b.Inputs[3].I32())
	}
	for i, x := range l.Train(1).Inputs {
		if !x.Type.Equal(b.Inputs[i].Type) {
			t.Errorf("input %d is %s, want %s", i, b.Inputs[i].Type, x.Type)
		}
	}
}

// TestFits: what does not fit is left out and counted.
func TestFits(t *testing.T) {
	s := spoken(3, 1)
	s.Train[0].Text = strings.Repeat("ab", 20) // more labels
	s.Train[1].Frames = 166
	s.HeldOut[0].Text, s.HeldOut[0].Frames = "aaa", 4 // three labels and two blanks
	s.Info.Dropped, s.Info.Reason = 2, "repeated"
	l := loader(t, s, LoaderOptions{Utterances: 1, Labels: 30})
	i := l.Info()
	if i.Pairs != 1 || i.HeldOut != 0 || i.Dropped != 5 ||
		i.Reason != "repeated; too long, or with too few frames for the text" {
		t.Errorf("info %+v", i)
	}
	if l.HeldOutBatches() != 0 || l.StepsPerEpoch() != 1 {
		t.Errorf("%d and %d batches", l.StepsPerEpoch(), l.HeldOutBatches())
	}
}

func TestLoaderRefuses(t *testing.T) {
	s := spoken(3, 0)
	for _, test := range []struct {
		o    LoaderOptions
		want string
	}{
		{LoaderOptions{Utterances: -1}, "batch of -1 utterances: give at least 1"},
		{LoaderOptions{Frames: -1}, "utterances of -1 frames: give at least 1"},
		{LoaderOptions{Labels: -2}, "utterances of -2 labels: give at least 1"},
		{LoaderOptions{Utterances: 1 << 20, Frames: 1 << 20},
			"give at most 41297762 frames in all"},
		{LoaderOptions{}, "data formant: 3 training utterances of up to 165 frames and 82 labels " +
			"do not fill one batch of 16"},
		{LoaderOptions{Utterances: 1, Frames: 5},
			"data formant: 0 training utterances of up to 5 frames and 2 labels"},
	} {
		if l, err := NewLoader(s, test.o); l != nil || err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.o, err, test.want)
		}
	}
}

// TestLostFile: a file that is lost after the set was opened is an utterance of
// nothing, and is told.
func TestLostFile(t *testing.T) {
	s := open(t, "csv:"+csvOf(t), Options{})
	l := loader(t, s, LoaderOptions{Utterances: 2})
	if b := l.Train(0); b.Units != 2 || l.Err() != nil {
		t.Fatalf("%d units, %v", b.Units, l.Err())
	}
	for _, lose := range []func(path string) error{
		os.Remove,
		func(path string) error {
			return os.WriteFile(path, wav(Rate, make([]float32, 99)), 0o666)
		},
	} {
		l := loader(t, s, LoaderOptions{Utterances: 2})
		if err := lose(s.Train[1].Path); err != nil {
			t.Fatal(err)
		}
		b := l.Train(0)
		bad, ok := errors.AsType[*data.Error](l.Err())
		if b.Units != 1 || !ok || bad.Path != s.Train[1].Path {
			t.Errorf("%d units, %v", b.Units, l.Err())
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	l := loader(b, spoken(64, 0), LoaderOptions{Utterances: 16})
	for i := range b.N {
		l.Train(i)
	}
}

func BenchmarkUtterance(b *testing.B) {
	text := "the quick brown fox jumps over a lazy dog again"
	a := newAnalyser()
	b.Run("speak", func(b *testing.B) {
		for range b.N {
			speak(text, 1)
		}
	})
	samples := speak(text, 1)
	b.Run(fmt.Sprintf("features of %.1f seconds", float64(len(samples))/Rate), func(b *testing.B) {
		for range b.N {
			a.features(samples)
		}
	})
}
