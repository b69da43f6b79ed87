package data

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/tensor"
)

func TestPermute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 700).Draw(t, "n")
		key := rapid.Uint64().Draw(t, "key")
		seen := make([]bool, n)
		for i := range n {
			at := permute(i, n, key)
			if at < 0 || at >= n || seen[at] {
				t.Fatalf("%d goes to %d, which is outside or taken", i, at)
			}
			seen[at] = true
		}
	})
	if n := math.MaxInt32; permute(n-1, n, 1) >= n {
		t.Error("a large permutation leaves its range")
	}
}

// fixture is a corpus of 400 pairs of 2 to 50 tokens, and its tokenizer.
func fixture(t *testing.T) (*Corpus, *Tokenizer) {
	t.Helper()
	c := open(t, numbered(t, 400), Options{})
	return c, train(t, firstMerge+20, "source number target")
}

// loader makes a loader that must be good.
func loader(t interface{ Fatal(...any) }, c *Corpus, tok *Tokenizer, o LoaderOptions) *Loader {
	l, err := NewLoader(c, tok, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wellFormed reports whether a row is ids, EOS, then PAD.
func wellFormed(row []int32) bool {
	end := slices.Index(row, EOS)
	return end >= 0 && !slices.Contains(row[:end], PAD) && isPadding(row[end+1:])
}

// isPadding reports whether a row holds nothing but PAD.
func isPadding(row []int32) bool {
	return !slices.ContainsFunc(row, func(id int32) bool { return id != PAD })
}

// rowText decodes the rows of a batch, checking their form.
func rowText(t *testing.T, tok *Tokenizer, b Batch) (sources, targets []string) {
	t.Helper()
	tokens := 0
	pairs, length := b.Inputs[0].Type.Size(0), b.Inputs[0].Type.Size(1)
	for row := range pairs {
		source, target := b.Inputs[0].I32()[row*length:][:length],
			b.Inputs[1].I32()[row*length:][:length]
		filler := source[0] == EOS && isPadding(target)
		if !wellFormed(source) || !wellFormed(target) && !filler {
			t.Fatalf("rows %v and %v are not ids, EOS, PAD", source, target)
		}
		tokens += slices.Index(target, EOS) + 1
		sources, targets = append(sources, tok.Decode(source)), append(targets, tok.Decode(target))
	}
	if tokens != b.Units {
		t.Fatalf("batch says %d tokens, has %d", b.Units, tokens)
	}
	return sources, targets
}

func TestEpochs(t *testing.T) {
	c, tok := fixture(t)
	for _, o := range []LoaderOptions{{Pairs: 7, Length: 64},
		{Pairs: 4, Length: 64, Mode: Bucketed}} {
		t.Run(o.Mode.String(), func(t *testing.T) {
			l := loader(t, c, tok, o)
			var orders [2][]string
			for step := range 2 * l.StepsPerEpoch() {
				b := l.Train(step)
				if shape := l.Buckets()[b.Bucket]; !b.Inputs[0].Type.Equal(tensor.Of(tensor.I32,
					shape.Pairs, shape.Length)) || !b.Inputs[1].Type.Equal(b.Inputs[0].Type) {
					t.Fatalf("batch of %s and %s in a bucket of %v", b.Inputs[0].Type,
						b.Inputs[1].Type, shape)
				}
				sources, targets := rowText(t, tok, b)
				for i := range sources {
					if !slices.Contains(c.Train, Pair{sources[i], targets[i]}) {
						t.Fatalf("row %q to %q is no training pair", sources[i], targets[i])
					}
				}
				epoch := step / l.StepsPerEpoch()
				orders[epoch] = append(orders[epoch], sources...)
			}
			if slices.Equal(orders[0], orders[1]) {
				t.Error("two epochs have one order")
			}
			for _, order := range orders {
				slices.Sort(order)
				if n := len(slices.Compact(order)); n != len(order) || n < len(c.Train)*3/4 {
					t.Errorf("an epoch of %d rows has %d pairs of %d", len(order), n, len(c.Train))
				}
			}
		})
	}
}

// TestTrainIsPure checks the law that lets a run resume: a batch depends on
// the step alone.
func TestTrainIsPure(t *testing.T) {
	c, tok := fixture(t)
	rapid.Check(t, func(t *rapid.T) {
		o := LoaderOptions{
			Pairs:  rapid.IntRange(1, 9).Draw(t, "pairs"),
			Length: rapid.IntRange(16, 64).Draw(t, "length"),
			Seed:   rapid.Uint64().Draw(t, "seed"),
			Mode:   Mode(rapid.IntRange(0, 1).Draw(t, "mode")),
		}
		fresh, used := loader(t, c, tok, o), loader(t, c, tok, o)
		step := rapid.IntRange(0, 500).Draw(t, "step")
		var running sync.WaitGroup
		for other := range 4 {
			running.Go(func() { used.Train(step + other) })
		}
		got, want := used.Train(step), fresh.Train(step)
		running.Wait()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d differs after other steps", step)
		}
		o.Seed++
		if other := loader(t, c, tok, o); reflect.DeepEqual(other.Train(step), want) &&
			reflect.DeepEqual(other.Train(step+1), fresh.Train(step+1)) {
			t.Fatal("another seed gives the same order")
		}
	})
}

func TestHeldOutBatches(t *testing.T) {
	c, tok := fixture(t)
	if len(c.HeldOut) < 2 {
		t.Fatalf("%d pairs held out", len(c.HeldOut))
	}
	for _, o := range []LoaderOptions{{Pairs: 3, Length: 64},
		{Pairs: 2, Length: 64, Mode: Bucketed}} {
		l := loader(t, c, tok, o)
		var got []Pair
		for i := range l.HeldOutBatches() {
			b := l.HeldOut(i)
			sources, targets := rowText(t, tok, b)
			for row := range sources {
				if sources[row] != "" {
					got = append(got, Pair{sources[row], targets[row]})
				}
			}
		}
		if want := (&Corpus{HeldOut: c.HeldOut}); !slices.Equal(sorted(&Corpus{HeldOut: got}),
			sorted(want)) {
			t.Errorf("%v: held-out batches hold %q, want %q", o.Mode, got, c.HeldOut)
		}
	}
}

// TestUncounted: a batch that counts for nothing has the sources of its step, and no targets.
func TestUncounted(t *testing.T) {
	c, tok := fixture(t)
	pairs := loader(t, c, tok, LoaderOptions{Pairs: 3, Length: 64})
	running, err := NewRunningLoader(t.Context(), running(40, 6), learnt(t, 300),
		RunningOptions{Rows: 2, Length: 8})
	if err != nil {
		t.Fatal(err)
	}
	for target, l := range map[int32]interface {
		Batches
		Maskable
	}{PAD: pairs, NoTarget: running} {
		b, ok := l.Uncounted(1)
		none := slices.Repeat([]int32{target}, len(b.Inputs[1].I32()))
		if !ok || b.Units != 0 || !slices.Equal(b.Inputs[1].I32(), none) ||
			!slices.Equal(b.Inputs[0].I32(), l.Train(1).Inputs[0].I32()) {
			t.Errorf("%T: %v, %d units, targets %v", l, ok, b.Units, b.Inputs[1].I32())
		}
	}
}

func TestNoHeldOut(t *testing.T) {
	c := &Corpus{Train: []Pair{{"a", "b"}}}
	for _, mode := range []Mode{Padded, Bucketed} {
		l := loader(t, c, train(t, 300, "ab"), LoaderOptions{Pairs: 1, Length: 16, Mode: mode})
		if l.HeldOutBatches() != 0 || l.StepsPerEpoch() != 1 {
			t.Errorf("%v: %d held-out batches, %d steps; want 0 and 1", mode, l.HeldOutBatches(),
				l.StepsPerEpoch())
		}
	}
}

func TestLongRows(t *testing.T) {
	c := &Corpus{Train: []Pair{{strings.Repeat("x.", 40), "abcdefg"}, {"ab", "abcdefgh"}}}
	tok := train(t, firstMerge, "")
	l := loader(t, c, tok, LoaderOptions{Pairs: 2, Length: 8})
	b := l.Train(0)
	if sources, targets := rowText(t, tok, b); !slices.Contains(sources, "x.x.x.x") ||
		targets[0] != "abcdefg" || targets[1] != "abcdefg" || b.Units != 16 {
		t.Errorf("cut to %q and %q with %d tokens", sources, targets, b.Units)
	}
	l = loader(t, c, tok, LoaderOptions{Pairs: 1, Length: 16, Mode: Bucketed})
	if l.Dropped() != 1 || l.StepsPerEpoch() != 1 || l.Train(0).Units != 9 {
		t.Errorf("%d pairs dropped, %d steps, %d tokens; want 1, 1 and 9", l.Dropped(),
			l.StepsPerEpoch(), l.Train(0).Units)
	}
}

func TestBuckets(t *testing.T) {
	c, tok := fixture(t)
	want := []Bucket{{8, 32}, {16, 16}, {32, 8}, {64, 4}}
	if got := loader(t, c, tok, LoaderOptions{Pairs: 4, Length: 64,
		Mode: Bucketed}).Buckets(); !slices.Equal(got, want) {
		t.Errorf("buckets %v, want %v", got, want)
	}
	if got := loader(t, c, tok, LoaderOptions{}).Buckets(); !slices.Equal(got,
		[]Bucket{{256, 16}}) {
		t.Errorf("default %v, want one of 16 pairs of 256", got)
	}
}

func TestLoaderRefuses(t *testing.T) {
	c, tok := fixture(t)
	small := &Corpus{Train: c.Train[:3], Info: Info{Spec: "tsv:small"}}
	tests := []struct {
		name string
		c    *Corpus
		o    LoaderOptions
		want string
	}{
		{"negative pairs", c, LoaderOptions{Pairs: -1}, "batch of -1 pairs"},
		{"no room for a token", c, LoaderOptions{Length: 1}, "give at least 2"},
		{"negative length", c, LoaderOptions{Length: -8}, "rows of -8"},
		{"too large", c, LoaderOptions{Pairs: math.MaxInt, Length: 2}, "positions in all"},
		{"too long", c, LoaderOptions{Length: math.MaxInt}, "positions in all"},
		{"unknown mode", c, LoaderOptions{Mode: 7}, "batch mode 7: give pad or bucket"},
		{"negative mode", c, LoaderOptions{Mode: -1}, "batch mode -1"},
		{"too few pairs", small, LoaderOptions{Pairs: 4},
			"data tsv:small: 3 training pairs of up to 256 tokens do not fill one batch of 4"},
		{"too few in buckets", small, LoaderOptions{Pairs: 4, Mode: Bucketed}, "3 training pairs"},
		{"all too long", small, LoaderOptions{Pairs: 1, Length: 2, Mode: Bucketed},
			"0 training pairs of up to 2"},
		{"empty", &Corpus{}, LoaderOptions{}, "0 training pairs"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := NewLoader(test.c, tok, test.o); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	_, err := NewLoader(small, tok, LoaderOptions{})
	if e := (*Error)(nil); !errors.As(err, &e) {
		t.Errorf("%T, want *Error", err)
	}
}

func TestModeText(t *testing.T) {
	for _, mode := range []Mode{Padded, Bucketed} {
		text, err := mode.MarshalText()
		var got Mode
		if err != nil || got.UnmarshalText(text) != nil || got != mode {
			t.Errorf("%v reads back as %v (%v)", mode, got, err)
		}
	}
	var m Mode
	if err := m.UnmarshalText([]byte("padded")); err == nil {
		t.Error("an unknown name was accepted")
	}
	if _, err := Mode(9).MarshalText(); err == nil || Mode(9).String() != "Mode(9)" {
		t.Errorf("mode 9: %v, %v", Mode(9), err)
	}
}
