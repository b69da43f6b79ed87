package pool_test

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/kernel/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPool returns a pool that the test closes.
func newPool(t testing.TB, threads int) *pool.Pool {
	t.Helper()
	p := pool.New(threads)
	t.Cleanup(p.Close)
	return p
}

func TestThreads(t *testing.T) {
	var none *pool.Pool
	if got := none.Threads(); got != 1 {
		t.Errorf("nil pool: %d threads, want 1", got)
	}
	if got := newPool(t, 3).Threads(); got != 3 {
		t.Errorf("New(3): %d threads", got)
	}
	for _, n := range []int{0, -1} {
		if got := newPool(t, n).Threads(); got < 1 {
			t.Errorf("New(%d): %d threads", n, got)
		}
	}
}

func TestRunCallsEachOnce(t *testing.T) {
	for _, threads := range []int{0, 1, 2, 3, 8} {
		p := newPool(t, threads)
		for _, n := range []int{-1, 0, 1, 2, 3, 7, 100, 1000} {
			checkOnce(t, p, n)
		}
	}
	checkOnce(t, nil, 10)
}

// checkOnce runs n pieces on p and fails unless each ran once.
func checkOnce(t *testing.T, p *pool.Pool, n int) {
	t.Helper()
	calls := make([]atomic.Int32, max(n, 0))
	p.Run(n, func(i int) { calls[i].Add(1) })
	for i := range calls {
		if got := calls[i].Load(); got != 1 {
			t.Errorf("threads=%d n=%d: piece %d ran %d times", p.Threads(), n, i, got)
		}
	}
}

// TestRunUsesThreads has every piece wait for all the others: it ends only if
// each runs on a thread of its own.
func TestRunUsesThreads(t *testing.T) {
	const threads = 4
	p := newPool(t, threads)
	for range 20 {
		var here sync.WaitGroup
		here.Add(threads)
		p.Run(threads, func(int) { here.Done(); here.Wait() })
	}
}

// TestRunAfterPark lets the workers park before the next call.
func TestRunAfterPark(t *testing.T) {
	p := newPool(t, 2)
	for range 10 {
		time.Sleep(time.Millisecond)
		var here sync.WaitGroup
		here.Add(2)
		p.Run(2, func(int) { here.Done(); here.Wait() })
	}
}

func TestRunConcurrentAndNested(t *testing.T) {
	p := newPool(t, 3)
	var total atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 100 {
				p.Run(5, func(int) {
					p.Run(3, func(i int) { total.Add(int64(i)) })
				})
			}
		})
	}
	callers.Wait()
	if want := int64(8 * 100 * 5 * 3); total.Load() != want {
		t.Errorf("total %d, want %d", total.Load(), want)
	}
}

func TestForCoversRange(t *testing.T) {
	pools := []*pool.Pool{nil, newPool(t, 1), newPool(t, 2), newPool(t, 5)}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(pools).Draw(t, "pool")
		n := rapid.IntRange(0, 3000).Draw(t, "n")
		grain := rapid.IntRange(-1, 700).Draw(t, "grain")
		seen := make([]int32, n)
		p.For(n, grain, func(lo, hi int) {
			if hi-lo < min(grain, n) || lo >= hi {
				panic(fmt.Sprintf("range [%d, %d) is shorter than the grain", lo, hi))
			}
			for i := lo; i < hi; i++ {
				seen[i]++
			}
		})
		for i, times := range seen {
			if times != 1 {
				t.Fatalf("element %d was visited %d times", i, times)
			}
		}
	})
}

func TestPanicSurfacesInCaller(t *testing.T) {
	for _, threads := range []int{1, 2, 4} {
		p := newPool(t, threads)
		for bad := range 16 {
			got := panicOf(func() {
				p.Run(16, func(i int) {
					if i == bad {
						panic(bad)
					}
				})
			})
			if got != bad {
				t.Errorf("threads=%d: recovered %v, want %d", threads, got, bad)
			}
		}
		checkOnce(t, p, 100)
	}
}

// TestPanicInHelper has only the pieces that are not the caller's panic.
func TestPanicInHelper(t *testing.T) {
	p := newPool(t, 2)
	got := panicOf(func() {
		var here sync.WaitGroup
		here.Add(2)
		p.Run(2, func(int) {
			here.Done()
			here.Wait()
			if !bytes.Contains(debug.Stack(), []byte("panicOf(")) {
				panic("helper")
			}
		})
	})
	if got != "helper" {
		t.Errorf("recovered %v", got)
	}
}

// panicOf returns what fn panics with.
func panicOf(fn func()) (value any) {
	defer func() { value = recover() }()
	fn()
	return nil
}

func TestClose(t *testing.T) {
	p := pool.New(3)
	checkOnce(t, p, 10)
	p.Close()
	p.Close()
	checkOnce(t, p, 10)
	var none *pool.Pool
	none.Close()
}

func TestRunDoesNotAllocate(t *testing.T) {
	for _, threads := range []int{1, 2} {
		p := newPool(t, threads)
		var sum atomic.Int64
		fn := func(i int) { sum.Add(1) }
		rangeFn := func(lo, hi int) { sum.Add(int64(hi - lo)) }
		allocs := testing.AllocsPerRun(100, func() {
			p.Run(8, fn)
			p.For(4096, 64, rangeFn)
		})
		if allocs > 0 {
			t.Errorf("threads=%d: %v allocations a call", threads, allocs)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			p := newPool(b, threads)
			for b.Loop() {
				p.Run(threads, func(int) {})
			}
		})
	}
}
