package orion

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// tried is the hash of what a run leaves of a trial.
func tried(t *testing.T, s *Schedule, points [][]int64, debug bool,
	run func(*Run, context.Context) error) uint64 {
	t.Helper()
	trial, err := NewTrial(s.Loop, s.Workers, len(points))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(&Run{s, points, trial.Body, debug}, t.Context()); err != nil {
		t.Fatal(err)
	}
	return trial.Finish()
}

// plain is a loop's schedule as one block.
func plain(l *Loop) *Schedule {
	zero := make([]int64, len(l.Space))
	return (&Choice{Loop: l, Workers: 1, Space: zero, Time: zero}).Schedule(nil)
}

// TestParallelIsSerial: workers leave the bits that the serial order leaves, of each kind of loop,
// and where the loop is ordered, the plain loop's. No use that the body makes is undeclared.
func TestParallelIsSerial(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	kinds := map[Kind]int{}
	for n := range longtest.Count(400, 5000) {
		s, points, _ := scheduled(t, rng, n)
		kinds[s.Kind]++
		serial := tried(t, s, points, false, (*Run).Serial)
		if tried(t, s, points, n%2 == 0, (*Run).Parallel) != serial {
			t.Fatalf("case %d: %s by %d workers has other bits, of\n%s", n, s.Kind, s.Workers,
				s.Loop)
		}
		if s.Loop.Ordered && tried(t, plain(s.Loop), points, true, (*Run).Serial) != serial {
			t.Fatalf("case %d: %s is in another order than\n%s", n, s.Kind, s.Loop)
		}
	}
	for k := Serial; k <= Unimodular; k++ {
		if kinds[k] == 0 {
			t.Errorf("no loop is %s: %v", k, kinds)
		}
	}
}

// TestFactorsAreSerial: matrix factorisation by stochastic gradient descent has the same bits by
// any number of workers as in serial order, and other ones in another order.
func TestFactorsAreSerial(t *testing.T) {
	text := strings.NewReplacer("600", "60", "900", "90").Replace(factorisation)
	sums := map[uint64]bool{}
	for workers := 1; workers <= 8; workers++ {
		l := parse(t, text)
		l.Ordered = workers%2 == 0
		c, err := Choose(l, Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		points, err := l.All()
		if err != nil {
			t.Fatal(err)
		}
		var sum [2]uint64
		for i, run := range []func(*Run, context.Context) error{(*Run).Serial, (*Run).Parallel} {
			f, err := NewFactors(l)
			if err != nil {
				t.Fatal(err)
			}
			r := &Run{c.Schedule(points), points, f.Body, true}
			if err := run(r, t.Context()); err != nil {
				t.Fatal(err)
			}
			sum[i] = f.Finish()
		}
		if sum[0] != sum[1] {
			t.Errorf("%d workers, %s: other bits", workers, c.Kind)
		}
		sums[sum[0]] = true
	}
	if len(sums) != 4 { // one of all in order, as one worker is; and those of 3, 5 and 7 workers
		t.Errorf("%d results", len(sums))
	}
}

// TestWithoutWaits is the control: where workers do not wait, and the first is slow, bits differ.
func TestWithoutWaits(t *testing.T) {
	l := parse(t, stencil)
	c, err := Choose(l, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	points, err := l.All()
	if err != nil {
		t.Fatal(err)
	}
	s := c.Schedule(nil)
	serial := tried(t, s, points, false, (*Run).Serial)
	mine := 0
	for _, p := range points {
		mine += s.Across.Part(p) // of worker 1
	}
	for i := range s.Blocks[1] {
		s.Blocks[1][i].After = nil
	}
	trial, err := NewTrial(l, 2, len(points))
	if err != nil {
		t.Fatal(err)
	}
	ahead := make(chan struct{})
	r := &Run{Schedule: s, Points: points, Body: func(it *Iteration) error {
		if it.Worker == 0 {
			<-ahead
		}
		err := trial.Body(it)
		if it.Worker == 1 {
			if mine--; mine == 0 {
				close(ahead)
			}
		}
		return err
	}}
	if err := r.Parallel(t.Context()); err != nil || trial.Finish() == serial {
		t.Errorf("bits are the same: %v", err)
	}
}

// TestNoBarrier: a worker whose blocks wait for nobody who is slow goes on. Worker 1 does not end
// its first iteration before worker 0 is in its second step; a barrier would never let it.
func TestNoBarrier(t *testing.T) {
	l := parse(t, factorisation)
	c, err := Choose(l, Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	var points [][]int64
	for i := range l.Space[0].Size {
		points = append(points, []int64{i, 10}, []int64{i, 400}, []int64{i, 800})
	}
	s := c.Schedule(points)
	second := make(chan struct{})
	var once atomic.Bool
	r := &Run{Schedule: s, Points: points, Body: func(it *Iteration) error {
		if it.Worker == 0 && s.Along.Part(it.Index) == 1 && once.CompareAndSwap(false, true) {
			close(second)
		}
		if it.Worker == 1 {
			<-second
		}
		return nil
	}}
	if err := r.Parallel(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestUndeclared: in debug mode, what a body uses and the loop does not declare is an error that
// names the iteration, the array and the subscript; else it goes on.
func TestUndeclared(t *testing.T) {
	l := parse(t, `{"space": ["i 4", "j 5"], "arrays": [{"name": "A", "shape": [4, 5]},
		{"name": "B", "shape": [9]}], "body": ["read A[i, j]", "read A[i-1, :]", "write A[i, 3]",
		"buffer B[?]"]}`)
	c, err := Choose(l, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	points := [][]int64{{2, 1}}
	for _, x := range []struct {
		use  func(it *Iteration)
		want string
	}{
		{func(it *Iteration) { it.Use(Read, "A", 2, 1); it.Use(Read, "A", 1, 4) }, ""},
		{func(it *Iteration) { it.Use(Read, "A", 1, Every); it.Use(Buffer, "B", 8) }, ""},
		{func(it *Iteration) { it.Use(Write, "A", 2, 3); it.Use(Buffer, "B", Every) }, ""},
		{func(it *Iteration) { it.Use(Read, "A", 2, 2) }, "iteration [2 1] reads A[2, 2], which " +
			"the loop does not declare: subscript 2 is 2, and declared as j"},
		{func(it *Iteration) { it.Use(Read, "A", 3, 1) }, "subscript 1 is 3, and declared as i"},
		{func(it *Iteration) { it.Use(Read, "A", 2, Every) },
			"subscript 2 is :, and declared as j"},
		{func(it *Iteration) { it.Use(Read, "A", 1, 5) }, "subscript 2 is 5, and declared as :"},
		{func(it *Iteration) { it.Use(Write, "A", 2, 1) }, "subscript 2 is 1, and declared as 3"},
		{func(it *Iteration) { it.Use(Write, "A", 2) },
			"writes A[2], which the loop does not declare"},
		{func(it *Iteration) { it.Use(Write, "B", 2) },
			"writes B[2], which the loop does not declare"},
		{func(it *Iteration) { it.Use(Read, "C", 2) },
			"reads C[2], which the loop does not declare"},
		{func(it *Iteration) { it.Use(Buffer, "B", 9) }, "buffers B[9], which the loop does not " +
			"declare: subscript 1 is 9, and declared as ?"},
	} {
		for _, debug := range []bool{true, false} {
			body := func(it *Iteration) error { x.use(it); return nil }
			r := &Run{c.Schedule(points), points, body, debug}
			err := r.Parallel(t.Context())
			_, undeclared := errors.AsType[*UndeclaredError](err)
			if bad := debug && x.want != ""; bad != undeclared || bad &&
				!strings.Contains(err.Error(), x.want) || !bad && err != nil {
				t.Errorf("debug %v: %v, want %q", debug, err, x.want)
			}
		}
	}
}

// TestRunsEnd: an error of a body, and the end of the context, end all workers; points that are no
// iterations are refused.
func TestRunsEnd(t *testing.T) {
	l := parse(t, stencil)
	c, err := Choose(l, Options{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	points, err := l.All()
	if err != nil {
		t.Fatal(err)
	}
	own := errors.New("own")
	for name, run := range map[string]func(*Run, context.Context) error{
		"serial": (*Run).Serial, "parallel": (*Run).Parallel} {
		r := &Run{c.Schedule(nil), points, func(it *Iteration) error {
			if it.Index[0] == 20 && it.Index[1] == 20 {
				return own
			}
			return nil
		}, false}
		if err := run(r, t.Context()); !errors.Is(err, own) {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.Body = func(it *Iteration) error { cancel(); return nil }
		if err := run(r, ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		for _, bad := range [][][]int64{{{0, 40}}, {{-1, 0}}, {{1}}, {{1, 1}, {1, 1}},
			{{1, 1}, {0, 1}}, {nil}} {
			r.Points = bad
			if err := run(r, t.Context()); err == nil ||
				!strings.Contains(err.Error(), "outside of the loop, or not in order") {
				t.Errorf("%s: %v: %v", name, bad, err)
			}
		}
	}
}
