package arena

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
)

// TestUncountable: blocks whose sum is no number are not said to fit into what is
// left of it after it has overflowed.
func TestUncountable(t *testing.T) {
	huge := int64(1) << 62
	for name, bs := range map[string][]Block{
		"four at once":        slices.Repeat([]Block{{0, 9, huge, false}}, 4),
		"four that are fixed": slices.Repeat([]Block{{0, 0, huge, true}}, 4),
		"one beyond rounding": {{0, 0, math.MaxInt64, false}},
		"one fixed":           {{0, 0, math.MaxInt64 - 1, true}, {0, 1, 1, false}},
	} {
		p := line.Pack(bs)
		if p.Peak != math.MaxInt64 || p.Load != math.MaxInt64 || len(p.Offsets) != len(bs) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	after := []Block{{0, 1, huge, false}, {2, 3, huge - int64(space.Line), false}}
	if p := line.Pack(after); p.Peak != huge {
		t.Errorf("one after the other: %+v", p)
	}
}

// TestLongLives: times are only compared, never added to or counted through.
func TestLongLives(t *testing.T) {
	var bs []Block
	for i := range 40 {
		bs = append(bs, Block{From: i, To: math.MaxInt - i%2, Bytes: 64 * int64(1+i%7)},
			Block{From: i << 50, To: i<<50 + 1, Bytes: 64 * int64(1+i%5)},
			Block{From: math.MinInt + i, To: -i, Bytes: 192})
	}
	p := line.Pack(bs)
	for i, a := range bs {
		for j, b := range bs[:i] {
			if meet(a, b) && p.Offsets[i] < p.Offsets[j]+b.Bytes &&
				p.Offsets[j] < p.Offsets[i]+a.Bytes {
				t.Fatalf("%+v at %d and %+v at %d", a, p.Offsets[i], b, p.Offsets[j])
			}
		}
	}
	if p.Load != plainLoad(bs) {
		t.Errorf("load %d, want %d", p.Load, plainLoad(bs))
	}
}

// TestNoBytes: blocks of no bytes take no room, and nothing at all none.
func TestNoBytes(t *testing.T) {
	p := line.Pack([]Block{{0, 5, 0, false}, {0, 5, 64, false}, {3, 9, 0, true}, {1, 2, 0, false}})
	if p.Peak != 64 || p.Load != 64 {
		t.Errorf("%+v", p)
	}
	if p := line.Pack(nil); p.Peak != 0 || p.Load != 0 || len(p.Offsets) != 0 {
		t.Errorf("nothing: %+v", p)
	}
}

// TestFixedAreStable: the addresses of the fixed blocks are the running sum of
// their sizes, whatever else is packed and however it is mixed with them.
func TestFixedAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		p := line.Pack(bs)
		var fixed []int64
		var next int64
		for i, b := range bs {
			if b.Fixed {
				fixed = append(fixed, p.Offsets[i])
				if p.Offsets[i] != next {
					t.Fatalf("fixed block %d is at %d, want %d", i, p.Offsets[i], next)
				}
				next += line.Up(b.Bytes)
			}
		}
		moves := func(b Block) bool { return !b.Fixed }
		alone := line.Pack(slices.DeleteFunc(slices.Clone(bs), moves))
		if !slices.Equal(alone.Offsets, fixed) && len(fixed) > 0 {
			t.Fatalf("with others %v, without %v", fixed, alone.Offsets)
		}
		for i, b := range bs {
			if !b.Fixed && b.Bytes > 0 && p.Offsets[i] < next {
				t.Fatalf("block %d is at %d, fixed blocks reach %d", i, p.Offsets[i], next)
			}
		}
	})
}

// TestDeterministic: equal blocks are packed alike.
func TestDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		if a, b := fmt.Sprint(line.Pack(bs)), fmt.Sprint(line.Pack(slices.Clone(bs))); a != b {
			t.Fatalf("%s, then %s", a, b)
		}
	})
}
