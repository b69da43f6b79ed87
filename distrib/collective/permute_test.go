package collective

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/memnet"
)

// routes are all permutations of so many ranks of which some may go nowhere, but the one that
// goes nowhere.
func routes(ranks int) (all [][]int) {
	var extend func(to []int)
	extend = func(to []int) {
		if len(to) == ranks {
			if slices.Max(to) >= 0 {
				all = append(all, slices.Clone(to))
			}
			return
		}
		for r := -1; r < ranks; r++ {
			if r < 0 || !slices.Contains(to, r) {
				extend(append(to, r))
			}
		}
	}
	extend(nil)
	return all
}

// permuted is what a permutation makes of all ranks' values on one of them.
func permuted(parts [][]float32, to []int, rank int) []float32 {
	if from := slices.Index(to, rank); from >= 0 {
		return parts[from]
	}
	return make([]float32, len(parts[0]))
}

// someRoute is one of them, by number.
func someRoute(i, ranks int) []int {
	to := make([]int, ranks)
	for r := range to {
		to[r] = (r + i) % ranks
	}
	if i%2 == 1 && ranks > 1 {
		to[i%ranks] = -1
	}
	return to
}

// moving is how many ranks send something.
func moving(to []int) (n int64) {
	for i, r := range to {
		if r >= 0 && r != i {
			n++
		}
	}
	return n
}

// TestPermute: every permutation of one to five ranks, whole or in part, puts every value
// where it says, whatever the sizes of messages and who is late, and what is sent is once
// what goes to another rank.
func TestPermute(t *testing.T) {
	for n := 1; n <= 5; n++ {
		all := routes(n)
		o := Options{Chunk: 64, Window: 128}
		inWorld(t, n, memnet.Options{Latency: time.Millisecond}, o, func(w *world) {
			var want int64
			for i, to := range all {
				length := []int{0, 1, 16, 17, 100}[i%5]
				want += 4 * int64(length) * moving(to)
				w.must(func(x *node) error { return x.permutes(to, length, uint64(i)) })
			}
			var sent int64
			for _, x := range w.nodes {
				sent += x.group.Stats().Sent
			}
			if sent != want {
				t.Errorf("%d ranks sent %d bytes, want %d", n, sent, want)
			}
		})
	}
}

func (x *node) permutes(to []int, length int, seed uint64) error {
	var parts [][]float32
	for r := range to {
		parts = append(parts, numbers[float32](length, r, seed))
	}
	late(rand.New(rand.NewPCG(seed, uint64(x.rank))), 5)
	data := slices.Clone(parts[x.rank])
	if err := Permute(background, x.group, data, to); err != nil {
		return err
	}
	return same(data, permuted(parts, to, x.rank), "%v, rank %d", to, x.rank)
}

// TestPermutationsAreChecked: what is none is refused, and nothing is sent.
func TestPermutationsAreChecked(t *testing.T) {
	inWorld(t, 3, memnet.Options{}, Options{}, func(w *world) {
		x := w.nodes[0]
		e, err := x.exchanger(ExchangerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			to   []int
			want string
		}{
			{nil, "[] is no permutation of 3 ranks"},
			{[]int{1, 0}, "[1 0] is no permutation of 3 ranks"},
			{[]int{1, 0, 3}, "there is no rank 3 of 3"},
			{[]int{1, -2, 0}, "there is no rank -2 of 3"},
			{[]int{1, 2, 1}, "rank 1 is in it twice"},
			{[]int{-1, -1, -1}, "nothing goes anywhere"},
		} {
			sent := e.Send(Exchange{Name: "x", Via: Permuted, To: c.to, Data: make([]byte, 4)})
			for _, err := range []error{sent, Permute(background, x.group, []byte{1}, c.to)} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v: %v, want %s", c.to, err, c.want)
				}
			}
		}
		if s := x.group.Stats().Sent; s != 0 {
			t.Errorf("%d bytes are sent", s)
		}
	})
}

// TestPermutationsMustAgree: ranks that have another permutation are told so, by an exchanger
// with both of them.
func TestPermutationsMustAgree(t *testing.T) {
	routes := [][]int{{1, 0}, {1, -1}}
	inWorld(t, 2, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
		for _, err := range w.each(func(x *node) error {
			return Permute(background, x.group, make([]float32, 9), routes[x.rank])
		}) {
			if err == nil || !strings.Contains(err.Error(), "permute") {
				t.Errorf("%v, want a permutation that differs", err)
			}
		}
	})
	inWorld(t, 2, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
		errs := w.each(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err == nil {
				err = e.Send(Exchange{Name: "x", Via: Permuted, To: routes[x.rank],
					Data: make([]byte, 8)})
			}
			if err != nil {
				return err
			}
			return e.Await(background, "x")
		})
		for _, want := range []string{"to [1 0]", "to [1 -1]"} {
			if text := fmt.Sprint(errs); !strings.Contains(text, want) {
				t.Errorf("%s, want %s", text, want)
			}
		}
	})
}
