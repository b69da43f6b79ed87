package collective

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/memnet"
)

// TestMovesCostWhatTheyMust: an exchange that divides sends (n-1)/n of the value from every
// rank, a copy the value n-1 times in all, whatever the type, and an all-to-all needs no room
// but the window.
func TestMovesCostWhatTheyMust(t *testing.T) {
	const n, size = 4, 3 << 20
	// Of 16 rows that each has, 20 cross in all.
	pairs := [n][]int32{{4, 0, 1, 4}, {0, 1, 3, 2}, {1, 3, 0, 0}, {4, 2, 0, 2}}
	for via, want := range map[Via]int64{Ring: 2 * (n - 1) * size, Gathered: (n - 1) * size,
		Scattered: (n - 1) * size, Swapped: (n - 1) * size, Copied: (n - 1) * size,
		Permuted: (n - 1) * size, GatheredSome: size * 6 / 4, ScatteredSome: size * 6 / 4,
		SwappedSome: size * 20 / 16} {
		bound, err := Bytes([]Spec{{size, via}}, n, Options{}, ExchangerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		inWorld(t, n, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			w.must(func(x *node) error {
				e, err := x.exchanger(ExchangerOptions{})
				if err != nil {
					return err
				}
				elem := F32
				if via.moves() {
					elem = U8
				}
				if x.rank == 1 {
					time.Sleep(time.Second)
				}
				err = e.Send(Exchange{Name: "w", Elem: elem, Via: via, To: []int{1, 2, -1, 0},
					Rows:   Rows{Ranks: []int32{1, 2, 3, -1, 0, 2, 1, 0}, Each: 2},
					Counts: Counts{Most: 4, To: pairs[x.rank], From: pairs[x.rank]},
					Data:   make([]byte, size)})
				if err == nil {
					err = e.Await(background, "w")
				}
				if s := e.Stats(); s.PeakHeld+s.Scratch > bound {
					return fmt.Errorf("%v takes %d bytes of memory, more than %d: %w", via,
						s.PeakHeld+s.Scratch, bound, err)
				}
				time.Sleep(time.Second) // all are done
				return err
			})
			var sent int64
			for _, x := range w.nodes {
				sent += x.ex.Stats().Sent
			}
			if sent -= n * noticeSize; sent != want {
				t.Errorf("%v sends %d bytes, want %d", via, sent, want)
			}
		})
	}
}

// TestMovesAreChecked: what has no sense is refused before it is sent.
func TestMovesAreChecked(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
		e, err := w.nodes[0].exchanger(ExchangerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for want, x := range map[string]Exchange{
			"3 bytes are not equal parts of 2":  {Elem: U8, Via: Swapped, Data: make([]byte, 3)},
			"12 bytes are not equal parts of 2": {Via: Scattered, Data: make([]byte, 12)},
			"bytes are moved, and not added up": {Elem: U8, Via: Scattered, Data: make([]byte, 4)},
			"root 2 of 2 nodes":                 {Via: Copied, Root: 2},
			"root -1 of 2 nodes":                {Via: Copied, Root: -1},
			"no such type":                      {Via: Via(len(vias))},
		} {
			x.Name = "x"
			if err := e.Send(x); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if _, err := ParseVia("swap"); err == nil {
			t.Error("an all-to-all is a way to add up")
		}
	})
}
