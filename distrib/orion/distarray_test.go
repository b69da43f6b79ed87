package orion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// cells are the elements of an array that have an index, as texts.
func cells[T any](a *DistArray[T], index ...int64) (all []string) {
	for at, x := range a.Where(index...) {
		all = append(all, fmt.Sprint(at, x))
	}
	return all
}

// made is an array that is made of what is to be kept.
func made[T any](t *testing.T, a *DistArray[T], keep func([]int64) bool) *DistArray[T] {
	t.Helper()
	if err := a.Make(keep); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestDrawnByIndex: what an element is does not depend on who makes it, nor on what else is made;
// other seeds draw others; and numbers are distributed as they are said to be.
func TestDrawnByIndex(t *testing.T) {
	for name, draw := range map[string]func(seed uint64) *DistArray[float32]{
		"uniform": func(seed uint64) *DistArray[float32] { return Rand(seed, 30, 40) },
		"normal":  func(seed uint64) *DistArray[float32] { return Randn(seed, 30, 40) },
		"randomized": func(seed uint64) *DistArray[float32] {
			return Randomized(Rand(7, 30, 40), seed, 0)
		},
	} {
		whole := made(t, draw(3), nil)
		for workers := int64(1); workers < 5; workers++ {
			for rank := range workers {
				part := made(t, draw(3), func(i []int64) bool { return i[1]%workers == rank })
				for at, x := range part.Where(Every, Every) {
					if have, ok := whole.At(at...); !ok || have != x || at[1]%workers != rank {
						t.Fatalf("%s: element %v is %v, of all %v", name, at, x, have)
					}
				}
			}
		}
		if other := made(t, draw(4), nil); slices.Equal(other.values, whole.values) {
			t.Errorf("%s: two seeds draw the same", name)
		}
	}
	for name, want := range map[string][2]float64{"uniform": {0.5, 1. / 12}, "normal": {0, 1}} {
		a := made(t, map[string]*DistArray[float32]{"uniform": Rand(1, 100_000),
			"normal": Randn(1, 100_000)}[name], nil)
		sum, squares := 0.0, 0.0
		for _, x := range a.values {
			sum, squares = sum+float64(x), squares+float64(x)*float64(x)
		}
		mean := sum / 1e5
		if v := squares/1e5 - mean*mean; math.Abs(mean-want[0]) > 0.02 ||
			math.Abs(v-want[1]) > 0.02 {
			t.Errorf("%s: mean %v, variance %v, want %v", name, mean, v, want)
		}
	}
}

// TestRandomizedPermutes: every index of the dimensions that are asked for becomes one other, and
// the others stay.
func TestRandomizedPermutes(t *testing.T) {
	index := func(at []int64, _ float32) ([3]int64, error) { return [3]int64(at), nil }
	a := made(t, Randomized(Map(Rand(1, 9, 5, 7), index), 2, 2, 0), nil)
	became := [3]map[int64]int64{{}, {}, {}}
	for at, was := range a.Where(Every, Every, Every) {
		for d := range 3 {
			if have, ok := became[d][was[d]]; ok && have != at[d] {
				t.Fatalf("index %d of dimension %d becomes %d and %d", was[d], d, have, at[d])
			}
			became[d][was[d]] = at[d]
		}
	}
	moved := [3]int{}
	for d, m := range became {
		for from, to := range m {
			if from != to {
				moved[d]++
			}
		}
	}
	if a.Len() != 9*5*7 || moved[0] == 0 || moved[1] != 0 || moved[2] == 0 {
		t.Errorf("%d elements, of each dimension moved %v", a.Len(), moved)
	}
}

// TestMapsAreFused: maps of maps are made in one pass, and nothing before it is asked for.
func TestMapsAreFused(t *testing.T) {
	var order []string
	step := func(name string) func([]int64, float32) (float32, error) {
		return func(at []int64, x float32) (float32, error) {
			order = append(order, fmt.Sprint(name, at[0]))
			return x + 1, nil
		}
	}
	a := Rand(1, 3)
	c := Map(Map(a, step("a")), step("b"))
	if order != nil {
		t.Errorf("%v before it is made", order)
	}
	made(t, c, nil)
	if fmt.Sprint(order) != "[a0 b0 a1 b1 a2 b2]" || a.Len() != 0 {
		t.Errorf("%v; %d elements before", order, a.Len())
	}
	own := errors.New("own")
	err := Map(a, func([]int64, float32) (int, error) { return 0, own }).Make(nil)
	if !errors.Is(err, own) {
		t.Errorf("%v", err)
	}
}

// TestQueries: points, sets and rows are those that a look at all elements finds.
func TestQueries(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		a := made(t, Rand(rng.Uint64(), 4, 3, 5), func([]int64) bool { return rng.IntN(3) > 0 })
		for range 30 {
			query := []int64{rng.Int64N(5) - 1, rng.Int64N(4) - 1, rng.Int64N(6) - 1}
			var want []string
			for i, at := range a.Points() {
				if meets(at, query) {
					want = append(want, fmt.Sprint(at, a.values[i]))
				}
			}
			if have := cells(a, query...); !slices.Equal(have, want) {
				t.Fatalf("%v: %v, want %v", query, have, want)
			}
			x, ok := a.At(query...)
			if one := len(want) == 1 && !slices.Contains(query, Every); ok != one ||
				ok && fmt.Sprint(query, x) != want[0] {
				t.Fatalf("%v: %v, %v, want %v", query, x, ok, want)
			}
			if ok && (!a.Set(-x, query...) || cells(a, query...)[0] != fmt.Sprint(query, -x)) {
				t.Fatalf("%v is not set", query)
			}
			if row := a.Row(2, 1); row != nil && len(row) != 5 ||
				(row != nil) != (len(cells(a, 2, 1, Every)) == 5) {
				t.Fatalf("a row of %d", len(row))
			}
		}
		if a.Set(1, 9, 0, 0) || a.Row(1, 2, 3, 4) != nil || cells(a, Every) != nil {
			t.Error("there is more than there is")
		}
		if _, ok := a.At(1); ok {
			t.Error("an element of one index")
		}
	}
}

// TestBadArrays: what files say wrong is refused by its line, and elements that cannot be are
// refused.
func TestBadArrays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	parse := func(line string) (index []int64, x int, err error) {
		if line == "" {
			return nil, 0, nil
		}
		for _, word := range strings.Fields(line) {
			n := int64(0)
			if _, err := fmt.Sscan(word, &n); err != nil {
				return nil, 0, err
			}
			index = append(index, n)
		}
		return index, len(line), nil
	}
	for text, want := range map[string]string{
		"0 1\n\n2 x\n":    "data: line 3: ",
		"0 1\n2\n":        "data: line 2: element [2] of an array of 2 dimensions",
		"0 -1\n":          "data: line 1: element [0 -1]",
		"":                "array of elements of 0 dimensions",
		"1 2\n1 2\n":      "element [1 2] comes twice",
		"2000000000000 1": "line 1: element [2000000000000 1]",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := TextFile(path, parse).Make(nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("0 1\n3 0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := made(t, TextFile(path, parse), nil); !slices.Equal(a.Shape(), []int64{4, 2}) ||
		a.Len() != 2 {
		t.Errorf("%v, %d elements", a.Shape(), a.Len())
	}
	if err := TextFile(path, parse, 3, 3).Make(nil); err == nil ||
		!strings.Contains(err.Error(), "element [3 0] is not within [3 3]") {
		t.Errorf("%v", err)
	}
	if err := TextFile(path+"x", parse).Make(nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := Rand(1, 1<<40, 1<<40).Make(nil); err == nil {
		t.Error("an array of 2^80 elements")
	}
	if err := Randomized(Rand(1, 3), 1, 1).Make(nil); err == nil {
		t.Error("another order of a dimension that is not there")
	}
	if _, err := GroupBy(Rand(1, 3), -1); err == nil {
		t.Error("groups by a dimension that is not there")
	}
}

// TestGroupBy: every element is in the group of its index, in order, and in no other.
func TestGroupBy(t *testing.T) {
	a := made(t, Rand(5, 6, 7), func(i []int64) bool { return (i[0]+i[1])%3 == 0 && i[1] != 4 })
	g, err := GroupBy(a, 1)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for at, group := range g.Where(Every) {
		var have []string
		for _, c := range group {
			have = append(have, fmt.Sprint(c.Index, c.Value))
		}
		if count += len(group); !slices.Equal(have, cells(a, Every, at[0])) {
			t.Errorf("group %v: %v", at, have)
		}
	}
	if count != a.Len() || g.Len() != 6 || !slices.Equal(g.Shape(), []int64{7}) {
		t.Errorf("%d elements of %d in %d groups of %v", count, a.Len(), g.Len(), g.Shape())
	}
}

// TestCheckpoint: what was saved comes back; with any bit turned round, or cut, it is refused.
func TestCheckpoint(t *testing.T) {
	a := made(t, Randn(1, 5, 6), func(i []int64) bool { return i[0] != 2 })
	var b bytes.Buffer
	if err := a.Save(&b); err != nil {
		t.Fatal(err)
	}
	back, err := Restored[float32](bytes.NewReader(b.Bytes()))
	if err != nil || !slices.Equal(cells(back, Every, Every), cells(a, Every, Every)) ||
		!slices.Equal(back.Shape(), a.Shape()) {
		t.Fatalf("%v", err)
	}
	for i := range 8 * b.Len() {
		bad := bytes.Clone(b.Bytes())
		bad[i/8] ^= 1 << (i % 8)
		if _, err := Restored[float32](bytes.NewReader(bad)); !errors.Is(err, errDamaged) {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
	for n := range b.Len() {
		if _, err := Restored[float32](bytes.NewReader(b.Bytes()[:n])); err == nil {
			t.Fatalf("%d bytes are taken", n)
		}
	}
	if _, err := Restored[string](&b); err == nil {
		t.Error("numbers are taken for texts")
	}
}

// TestHold: arrays are the memory of a loop whose elements they have, and of no other.
func TestHold(t *testing.T) {
	l := parse(t, `{"space": ["i 4"], "arrays": [{"name": "A", "shape": [4], "bytes": 4}],
		"body": ["write A[i]"]}`)
	a := made(t, Rand(1, 4), nil)
	m, err := Hold(l, a)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(a.values)
	b := m.Load(nil, 0, 1, 2)
	a.Set(9, 1)
	a.Set(9, 2)
	if m.Store(0, 1, 2, b); len(b) != 8 || !slices.Equal(a.values, want) {
		t.Errorf("%v, want %v", a.values, want)
	}
	wide := Map(a, func(_ []int64, x float32) (float64, error) { return float64(x), nil })
	words := Map(a, func([]int64, float32) (string, error) { return "", nil })
	for _, arrays := range [][]Held{{}, {a, a}, {wide}, {words}} {
		if _, err := Hold(l, arrays...); err == nil {
			t.Errorf("%d arrays are taken", len(arrays))
		}
	}
}

// TestWriteBuffer: no more is held than the bound, writes to an element are merged, they are
// applied in the order of elements, each once, and an error leaves what was not applied.
func TestWriteBuffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for most := range 6 {
		want, have := map[int64]int{}, map[int64]int{}
		var order []int64
		b := NewWriteBuffer(most, func(a, b int) int { return a + b }, func(e int64, x int) error {
			have[e] += x
			order = append(order, e)
			return nil
		})
		for range 200 {
			e, x := rng.Int64N(9), rng.IntN(5)
			order = nil
			if err := b.Write(e, x); err != nil {
				t.Fatal(err)
			}
			if want[e] += x; len(b.held) > max(most, 1) || !slices.IsSorted(order) {
				t.Fatalf("%d are held, of %d; applied %v", len(b.held), most, order)
			}
		}
		if err := b.Flush(); err != nil || fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("%v, %v, want %v", err, have, want)
		}
	}
	full := errors.New("full")
	b := NewWriteBuffer(3, func(_, b int) int { return b }, func(e int64, _ int) error {
		if e == 2 {
			return full
		}
		return nil
	})
	err := errors.Join(b.Write(3, 1), b.Write(1, 1), b.Write(2, 1), b.Write(4, 1))
	if !errors.Is(err, full) || len(b.held) != 2 {
		t.Errorf("%v, %v are left", err, b.held)
	}
}

// pulls counts what is pulled.
type pulls struct {
	distrib.Batched
	all [][]distrib.Ref
}

func (p *pulls) PullRows(_ context.Context, refs []distrib.Ref) error {
	p.all = append(p.all, refs)
	return nil
}

// TestPrefetch: each row that a block reads is pulled once for it, and what it reads is asked once
// for all passes.
func TestPrefetch(t *testing.T) {
	asked := 0
	p := &Prefetch{Reads: func(index []int64, note func(int64)) {
		asked++
		note(index[0] % 3)
		note(7)
	}}
	block := func(from int64) iter.Seq[[]int64] {
		return slices.Values([][]int64{{from}, {from + 3}, {from + 1}})
	}
	s := &pulls{}
	for range 3 {
		for b := range 2 {
			if err := p.Pull(t.Context(), s, 4, b, block(int64(b))); err != nil {
				t.Fatal(err)
			}
		}
	}
	const want = "[[{4 0 1} {4 1 1} {4 7 1}] [{4 1 1} {4 2 1} {4 7 1}]]"
	if asked != 6 || len(s.all) != 6 || fmt.Sprint(s.all[:2]) != want ||
		fmt.Sprint(s.all[4:]) != want {
		t.Errorf("asked %d times: %v", asked, s.all)
	}
}
