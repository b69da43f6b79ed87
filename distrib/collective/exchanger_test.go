package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib/memnet"
)

// grads are the exchanges of a step: their sizes and ways.
type grads []Spec

func drawGrads(t *rapid.T, n int) (g grads) {
	for range rapid.IntRange(0, 6).Draw(t, "exchanges") {
		s := Spec{Via: Via(rapid.IntRange(0, len(vias)-1).Draw(t, "via"))}
		each := rapid.SampledFrom([]int{0, 1, 17, 500, Small/4 - 1, Small / 4, 20011})
		s.Size = 4 * each.Draw(t, "elements")
		if s.Via.divides() {
			s.Size = s.Size / 4 / n * n * 4
		}
		g = append(g, s)
	}
	return g
}

// want is what comes of exchange number i on a rank.
func (s Spec) want(parts [][]float32, owners, i, rank int) []float32 {
	n := len(parts)
	lo, hi := Block(len(parts[0]), n, rank)
	switch via := resolve(s.Via, n, owners); {
	case via == Scattered:
		return ringOrder(parts, Mean)[lo:hi]
	case via == GatheredSome:
		return rowsFor(len(parts[0]), n, uint64(i)).gathered(parts, rank)
	case via == ScatteredSome:
		return rowsFor(len(parts[0]), n, uint64(i)).scattered(parts, rank, Mean)
	case via == SwappedSome:
		return countsFor(len(parts[0]), n, uint64(i)).swapped(parts, rank)
	case via == Copied:
		return parts[i%n]
	case via == Permuted:
		return permuted(parts, someRoute(i, n), rank)
	case via == Swapped:
		var out []float32
		for r := range n {
			out = append(out, parts[r][lo:hi]...)
		}
		return out
	case via == Gathered:
		out := make([]float32, len(parts[0]))
		for r := range n {
			lo, hi := Block(len(out), n, r)
			copy(out[lo:hi], parts[r][lo:hi])
		}
		return out
	case via == Servers:
		return serversOrder(parts, owners)
	case s.Size < Small:
		return treeOrder(parts, Mean)
	}
	return ringOrder(parts, Mean)
}

// serversOrder adds the block of each owner up from the rank after it.
func serversOrder(parts [][]float32, owners int) []float32 {
	n := len(parts)
	out := make([]float32, len(parts[0]))
	for b := range owners {
		lo, hi := Block(len(out), owners, b)
		for i := lo; i < hi; i++ {
			for d := 1; d <= n; d++ {
				out[i] += parts[(b+d)%n][i]
			}
			out[i] /= float32(n)
		}
	}
	return out
}

// TestExchanger: random steps, sent and awaited at random times, give what the ways say,
// bit for bit, and take no more memory than was said.
func TestExchanger(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := draw(r)
		d.n = 1 + d.n%5
		d.o = Options{Chunk: d.o.Chunk * 16, Window: d.o.Window * 16}
		specs := drawGrads(r, d.n)
		o := ExchangerOptions{Owners: rapid.IntRange(0, d.n).Draw(r, "owners")}
		owners, _ := o.owners(d.n)
		bound, err := Bytes(specs, d.n, d.o, o)
		if err != nil {
			r.Fatal(err)
		}
		inWorld(t, d.n, d.net, d.o, func(w *world) {
			w.must(func(x *node) error {
				e, err := x.exchanger(o)
				if err != nil {
					return err
				}
				for step := range 2 {
					if err := x.step(e, specs, owners, d.seed+uint64(step)); err != nil {
						return fmt.Errorf("%v %+v: %w", specs, d, err)
					}
				}
				time.Sleep(time.Second) // names are compared in the background
				if s := e.Stats(); s.PeakHeld+s.Scratch > bound || s.Held != 0 {
					return fmt.Errorf("%v %+v: %+v, more than %d", specs, d, s, bound)
				}
				return e.Close()
			})
		})
	})
}

// TestMemoryIsWhatWasSaid: a node that is late has all the bytes waiting for it that were
// predicted, and not one more.
func TestMemoryIsWhatWasSaid(t *testing.T) {
	for _, via := range []Via{Ring, Servers} {
		const n, size = 4, 16 << 20
		want, err := Bytes([]Spec{{size, via}}, n, Options{}, ExchangerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		inWorld(t, n, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			w.must(func(x *node) error {
				e, err := x.exchanger(ExchangerOptions{})
				if err != nil {
					return err
				}
				if x.rank == 2 {
					time.Sleep(time.Second)
				}
				err = e.Send(Exchange{Name: "w", Via: via, Data: make([]byte, size)})
				if err != nil {
					return err
				}
				if err := e.Await(background, "w"); err != nil {
					return err
				}
				s := e.Stats()
				if have := s.PeakHeld + s.Scratch; have > want || x.rank == 2 && have != want {
					return fmt.Errorf("%v: %d bytes, want %d", via, have, want)
				}
				return nil
			})
		})
	}
	for _, c := range []struct{ n, owners int }{{0, 0}, {2, 3}, {2, -1}} {
		if _, err := Bytes(nil, c.n, Options{}, ExchangerOptions{Owners: c.owners}); err == nil {
			t.Errorf("%+v has a size", c)
		}
	}
}

// TestAbandonedTogether: nodes that have all given up a step may begin again with another
// exchanger of the same group.
func TestAbandonedTogether(t *testing.T) {
	inWorld(t, 3, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			if x.rank != 1 {
				if err := e.Send(Exchange{Name: "w", Data: make([]byte, 400_000)}); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			if err := e.Close(); err != nil {
				return err
			}
			if e, err = x.exchanger(ExchangerOptions{}); err != nil {
				return err
			}
			v := []float32{float32(x.rank)}
			if err := e.Send(Exchange{Name: "w", Op: Mean, Data: bytesOf(v)}); err != nil {
				return err
			}
			if err := e.Await(background, "w"); err != nil || v[0] != 1 {
				return fmt.Errorf("%v: %w", v, err)
			}
			return nil
		})
	})
}

// step sends and awaits the exchanges of a step.
func (x *node) step(e *Exchanger, specs grads, owners int, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, uint64(x.rank)))
	data := make([][]float32, len(specs))
	sent := make(chan int, len(specs))
	errs := make(chan error, 1)
	go func() {
		defer close(sent)
		for i, s := range specs {
			late(rng, 3)
			data[i] = numbers[float32](s.Size/4, x.rank, seed+uint64(i))
			kind := fmt.Sprintf("f32[%d]", s.Size/4)
			err := e.Send(Exchange{Name: fmt.Sprint("w", i), Type: kind,
				Op: Mean, Via: s.Via, Root: i % x.group.Size(), To: someRoute(i, x.group.Size()),
				Rows:   rowsFor(len(data[i]), x.group.Size(), uint64(i)),
				Counts: countsFor(len(data[i]), x.group.Size(), uint64(i)).of(x.rank),
				Data:   bytesOf(data[i])})
			if err != nil {
				errs <- err
				return
			}
			sent <- i
		}
	}()
	for i := range sent {
		if err := e.Await(background, fmt.Sprint("w", i)); err != nil {
			return err
		}
		var parts [][]float32
		for r := range x.group.Size() {
			parts = append(parts, numbers[float32](specs[i].Size/4, r, seed+uint64(i)))
		}
		got := data[i]
		if specs[i].Via == Scattered || specs[i].Via == ScatteredSome {
			lo, hi := Block(len(got), len(parts), x.rank)
			got = got[lo:hi]
		}
		err := same(got, specs[i].want(parts, owners, i, x.rank), "exchange %d, rank %d", i,
			x.rank)
		if err != nil {
			return err
		}
	}
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// TestExchangesOverlap: a small exchange does not wait for a large one before it.
func TestExchangesOverlap(t *testing.T) {
	net := memnet.Options{Latency: time.Millisecond, Bps: 8e6}
	inWorld(t, 2, net, Options{Chunk: 64 << 10}, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			large, small := make([]byte, 4<<20), make([]byte, 4)
			if err := e.Send(Exchange{Name: "large", Data: large}); err != nil {
				return err
			}
			if err := e.Send(Exchange{Name: "small", Data: small}); err != nil {
				return err
			}
			if err := e.Await(background, "small"); err != nil || w.passed() > time.Second {
				return fmt.Errorf("the small one took %v: %v", w.passed(), err)
			}
			if err := e.Await(background, "large"); err != nil || w.passed() < 4*time.Second {
				return fmt.Errorf("the large one took %v: %v", w.passed(), err)
			}
			return e.Close()
		})
	})
}

// TestExchangeTypes: all element types, sums and means.
func TestExchangeTypes(t *testing.T) {
	inWorld(t, 3, memnet.Options{}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			f64, i32, i64 := []float64{float64(x.rank)}, []int32{int32(x.rank)}, []int64{1 << 40}
			for _, a := range []Exchange{
				{Name: "f64", Elem: F64, Op: Mean, Via: Ring, Data: bytesOf(f64)},
				{Name: "i32", Elem: I32, Data: bytesOf(i32)},
				{Name: "i64", Elem: I64, Via: Servers, Data: bytesOf(i64)},
			} {
				if err := e.Send(a); err != nil {
					return err
				}
				if err := e.Await(background, a.Name); err != nil {
					return err
				}
			}
			if f64[0] != 1 || i32[0] != 3 || i64[0] != 3<<40 {
				return fmt.Errorf("%v %v %v", f64, i32, i64)
			}
			return e.Close()
		})
	})
}

// TestOrderIsChecked: nodes that send different exchanges are told both names, whatever
// lanes they would take.
func TestOrderIsChecked(t *testing.T) {
	for _, c := range []struct {
		name   string
		theirs Exchange
	}{
		{"another name", Exchange{Name: "b", Type: "f32[4]", Data: make([]byte, 16)}},
		{"another lane", Exchange{Name: "b", Type: "f32[40000]", Data: make([]byte, 160000)}},
		{"another way", Exchange{Name: "a", Type: "f32[4]", Via: Servers, Data: make([]byte, 16)}},
		{"another type", Exchange{Name: "a", Type: "f32[2,2]", Data: make([]byte, 16)}},
	} {
		inWorld(t, 3, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			mine := Exchange{Name: "a", Type: "f32[4]", Data: make([]byte, 16)}
			errs := w.each(func(x *node) error {
				e, err := x.exchanger(ExchangerOptions{})
				if err != nil {
					return err
				}
				defer e.Close()
				ex := mine
				if x.rank == 1 {
					ex = c.theirs
				}
				ex.Data = slices.Clone(ex.Data)
				if err := e.Send(ex); err != nil {
					return err
				}
				return e.Await(background, ex.Name)
			})
			named := 0
			for r, err := range errs {
				var mismatch *MismatchError
				if err == nil {
					t.Errorf("%s: rank %d saw nothing", c.name, r)
				} else if errors.As(err, &mismatch) {
					named++
				}
				all := fmt.Sprint(err)
				if !strings.Contains(all, mine.label()) ||
					!strings.Contains(all, c.theirs.label()) {
					t.Errorf("%s: rank %d: %v", c.name, r, err)
				}
			}
			if named == 0 || w.passed() > time.Second {
				t.Errorf("%s: %d named it, after %v", c.name, named, w.passed())
			}
		})
	}
}

// TestExchangesAreChecked: what cannot be exchanged is refused at once.
func TestExchangesAreChecked(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
		x := w.nodes[0]
		if _, err := x.exchanger(ExchangerOptions{Owners: 3}); err == nil {
			t.Error("3 owners of 2 nodes")
		}
		e, err := x.exchanger(ExchangerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		buf := bytesOf(make([]int64, 8))
		for _, c := range []struct {
			x    Exchange
			want string
		}{
			{Exchange{Data: buf}, `collective: exchange "": it has no name`},
			{Exchange{Name: "w", Data: buf[:6]}, `collective: exchange "w": collective: 6 bytes ` +
				`are no whole, aligned elements of 4`},
			{Exchange{Name: "w", Data: buf[1:9]}, `collective: exchange "w": collective: 8 bytes ` +
				`are no whole, aligned elements of 4`},
			{Exchange{Name: "w", Data: buf[4:12], Elem: F64}, `collective: exchange "w": ` +
				`collective: 8 bytes are no whole, aligned elements of 8`},
			{Exchange{Name: "w", Data: buf[:12], Via: Gathered}, `collective: exchange "w": ` +
				`12 bytes are not equal parts of 2 nodes`},
			{Exchange{Name: "w", Data: buf, Elem: I64, Op: Mean}, `collective: exchange "w": ` +
				`collective: there is no mean of integers: sum them`},
			{Exchange{Name: "w", Data: buf, Via: Via(len(vias))}, `collective: exchange "w": ` +
				`no such type, way or reduction`},
		} {
			if err := e.Send(c.x); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
		if err := e.Await(background, "w"); err == nil {
			t.Error("what was not sent was awaited")
		}
		if err := e.Send(Exchange{Name: "w", Data: buf}); err != nil {
			t.Error(err)
		}
		if err := e.Send(Exchange{Name: "w", Data: buf}); err == nil {
			t.Error("one name twice")
		}
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		if err := e.Await(ctx, "w"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the end of the context", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAbandon: nothing touches the data afterwards, and the others are told.
func TestAbandon(t *testing.T) {
	net := memnet.Options{Latency: time.Millisecond, Bps: 8e6}
	inWorld(t, 3, net, Options{}, func(w *world) {
		errs := w.each(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			defer e.Close()
			data := make([]byte, 4<<20)
			if err := e.Send(Exchange{Name: "w", Data: data}); err != nil {
				return err
			}
			if x.rank != 1 {
				return e.Await(background, "w")
			}
			time.Sleep(time.Second)
			e.Abandon()
			e.Abandon()
			for i := range data {
				data[i] = byte(i) // the race detector sees who still looks
			}
			return e.Send(Exchange{Name: "v", Data: data})
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), errAbandoned.Error()) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if w.passed() > 2*time.Second {
			t.Errorf("it took %v", w.passed())
		}
	})
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		rows, cols, samples, workers, servers int
		want                                  Via
	}{
		{4096, 4096, 32, 8, 8, Gathered}, // few samples beside a large matrix
		{4096, 4096, 0, 8, 8, Ring},      // the same bytes as servers
		{64, 64, 1000, 8, 8, Ring},
		{4096, 4096, 32, 8, 2, Gathered},
		{512, 512, 0, 4, 1, Ring},
	} {
		got := Choose(c.rows, c.cols, c.samples, c.workers, c.servers)
		if got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		fewest := Fewest{c.workers}.Factors(int64(4*c.rows*c.cols),
			int64(4*c.samples*(c.rows+c.cols)))
		if c.samples > 0 && c.workers == c.servers && fewest != (c.want == Gathered) {
			t.Errorf("%+v: by factors is %v", c, fewest)
		}
	}
	if !(Fewest{2}).Factors(4, 0) {
		t.Error("factors that are there cost something")
	}
	// Poseidon's formulas at 4096 x 4096, 32 samples, 8 workers and servers.
	want := Traffic{Servers: 4 * 2 * 4096 * 4096 * 14 / 8, Ring: 4 * 4 * 4096 * 4096 * 7 / 8,
		Factors: 4 * 2 * 32 * 7 * 8192}
	if got := TrafficOf(4096, 4096, 32, 8, 8); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for v := range vias[:Gathered+1] {
		if got, err := ParseVia(Via(v).String()); err != nil || got != Via(v) {
			t.Errorf("%v: %v, %v", Via(v), got, err)
		}
	}
	if _, err := ParseVia("pigeon"); err == nil {
		t.Error("a pigeon is no way")
	}
}
