package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/kernel/pool"
)

func TestLeast(t *testing.T) {
	if least([]float64{9, 1, 5}) != 1 || !math.IsNaN(least(nil)) {
		t.Error("the smallest is another")
	}
}

// TestRatio: a round in which both sides are slow does not count.
func TestRatio(t *testing.T) {
	if got := ratio([]float64{2, 20, 2}, []float64{1, 10, 1}); got != 2 {
		t.Errorf("ratio is %v, want 2", got)
	}
	if got := ratio(nil, []float64{1}); !math.IsNaN(got) {
		t.Errorf("ratio without a rival is %v, want NaN", got)
	}
}

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{0.123: "0.12", 12.34: "12.3", 234.5: "234",
		-0.5: "-0.50"} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
	for ratio, want := range map[float64]string{0.95: "0.95 (0.90)", 0.85: "**0.85** (0.90)",
		math.Inf(1): "+Inf (0.90)"} {
		if got := against(ratio, 0.9); got != want {
			t.Errorf("against(%v) = %q, want %q", ratio, got, want)
		}
	}
	if number(math.NaN()) != "missing" || against(math.NaN(), 1) != "missing" {
		t.Error("what was not measured must say so")
	}
}

func TestTable(t *testing.T) {
	var w strings.Builder
	header(&w, "shape", "a", "b")
	row(&w, "1×2", "3", "4")
	const want = "\n| shape | a | b |\n|---|---:|---:|\n| 1×2 | 3 | 4 |\n"
	if got := w.String(); got != want {
		t.Errorf("table is %q, want %q", got, want)
	}
}

// alone is a watch on a machine without neighbours.
func alone() *watch { return &watch{runnable: func() (int, error) { return 1, nil }} }

// TestWatch: a turn waits for a neighbour to end, as long as there is patience.
func TestWatch(t *testing.T) {
	running := []int{3, 2, 1, 2, 1, 4, 4}
	w := &watch{patience: 3 * rest, runnable: func() (int, error) {
		n := running[0]
		running = running[1:]
		return n, nil
	}}
	for range 3 {
		w.turn()
	}
	if w.turns != 3 || w.disturbed != 1 || len(running) != 1 {
		t.Errorf("%d turns, %d disturbed, %d readings left; want 3, 1, 1", w.turns, w.disturbed,
			len(running))
	}
	w.runnable = func() (int, error) { return 0, errors.ErrUnsupported }
	w.turn()
	if w.disturbed != 1 || !strings.Contains(w.String(), "does not tell") {
		t.Errorf("a system that tells nothing: %s", w)
	}
}

func TestParseRunnable(t *testing.T) {
	if n, err := parseRunnable("1.23 1.13 1.58 3/97 8976\n"); n != 3 || err != nil {
		t.Errorf("%d running (%v), want 3", n, err)
	}
	for _, bad := range []string{"", "a b c", "1 2 3 x"} {
		if _, err := parseRunnable(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestInterleave: sides alternate, forwards and backwards; one that is missing
// has no times; an error ends it.
func TestInterleave(t *testing.T) {
	var order []string
	fake := func(name string) side {
		return func(repetitions int) (time.Duration, error) {
			order = append(order, name)
			return time.Duration(repetitions) * time.Second, nil
		}
	}
	times, err := interleave(t.Context(), alone(), 2, fake("a"), nil, fake("b"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "ab"+"ab"+"ba" {
		t.Errorf("order is %q: want a calibration of each, then ab, ba", got)
	}
	if len(times[0]) != 2 || times[1] != nil || times[2][1] != 1 {
		t.Errorf("times are %v, want two of one second, none, and two", times)
	}
	bad := errors.New("bad")
	if _, err := interleave(t.Context(), alone(), 2,
		func(int) (time.Duration, error) { return 0, bad }); !errors.Is(err, bad) {
		t.Errorf("error is %v, want %v", err, bad)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := interleave(ctx, alone(), 1, fake("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}

func TestRepetitions(t *testing.T) {
	for each, want := range map[time.Duration]int{time.Second: 1, time.Millisecond: 8,
		time.Microsecond: 8000} {
		n, err := repetitions(func(n int) (time.Duration, error) {
			return time.Duration(n) * each, nil
		})
		if err != nil || n != want {
			t.Errorf("%v each: %d repetitions (%v), want %d", each, n, err, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "/mine")
	got := environment([]string{"HOME=/h", "OPENBLAS_CORETYPE=Haswell", "OMP_NUM_THREADS=7",
		"LD_LIBRARY_PATH=/mine"}, 2, []string{"/openmp"})
	want := []string{"HOME=/h", "LD_LIBRARY_PATH=/openmp:/mine", "OMP_NUM_THREADS=2",
		"OPENBLAS_NUM_THREADS=2"}
	if !slices.Equal(got, want) {
		t.Errorf("environment is %v, want %v", got, want)
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range []string{"-table fft", "-threads -1", "-threads 100000", "-rounds 0",
		"gemm"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	o, err := parse([]string{"-table", "gemm", "-threads", "1"})
	if err != nil || len(o.tables) != 1 || !slices.Equal(o.threads, []int{1}) {
		t.Errorf("options are %+v (%v)", o, err)
	}
}

// TestMissingPeer: without a compiler the row has gomem's figures and says that
// the others are missing and what to install.
func TestMissingPeer(t *testing.T) {
	tools, err := newToolchain("no-such-compiler")
	if err != nil {
		t.Fatal(err)
	}
	defer tools.close()
	var w strings.Builder
	b := &bench{w: &w, tools: tools, threads: 1, rounds: 1, pool: pool.New(1), watch: alone()}
	defer b.pool.Close()
	blas, peak := b.start(t.Context(), openBLAS), b.start(t.Context(), plainC)
	c := b.product(product{m: 8, k: 8, n: 8}, blas, peak)
	err = b.measure(t.Context(), c, func(o outcome) []string {
		return []string{number(o.rates[0]), number(o.rates[1]), against(o.ratios[1], 1)}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"OpenBLAS: missing", "apt-get install", "libopenblas-dev",
		"| missing | missing |"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, w.String())
		}
	}
	for _, p := range []*peer{blas, peak} {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}

// local is a bench on one thread that compiles its peers, and what ends them.
func local(t *testing.T) (b *bench, end func()) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler")
	}
	tools, err := newToolchain("cc")
	if err != nil {
		t.Fatal(err)
	}
	b = &bench{w: io.Discard, tools: tools, threads: 1, rounds: 1, watch: alone()}
	return b, func() {
		if err := errors.Join(b.closePeers(), tools.close()); err != nil {
			t.Error(err)
		}
	}
}

// agree checks that the first rival's result is gomem's, and that another would
// be refused.
func agree(t *testing.T, c comparison) {
	t.Helper()
	c.launch()
	r := c.rivals[0]
	if _, err := r.side(&c, sumsOf(c.result)); err != nil {
		t.Error(err)
	}
	if _, err := r.side(&c, sums{1e9, 1}); r.same && err == nil {
		t.Errorf("%s: a wrong result is accepted", c.name)
	}
}

func TestLoopsAgree(t *testing.T) {
	b, end := local(t)
	defer end()
	c := b.start(t.Context(), plainC)
	if c.missing {
		t.Skip(c.about)
	}
	for _, v := range vectorOps {
		for _, primitive := range []bool{true, false} {
			p, err := b.problem(v, 4*columns, primitive, c)
			if err != nil {
				t.Fatal(err)
			}
			agree(t, p)
		}
	}
	if _, err := c.prepare("sinh 4096 1024"); err == nil {
		t.Error("an unknown loop is accepted")
	}
}

func TestProductsAgree(t *testing.T) {
	b, end := local(t)
	defer end()
	blas := b.start(t.Context(), openBLAS)
	if blas.missing {
		t.Skip(blas.about)
	}
	for _, p := range []product{
		{m: 5, k: 6, n: 7}, {m: 5, k: 6, n: 7, transA: true},
		{batch: 3, m: 5, k: 6, n: 7, transB: true},
		{m: 1, k: 6, n: 7}, {m: 1, k: 6, n: 7, transB: true},
	} {
		agree(t, b.product(p, blas, blas))
	}
}

func TestConvolutionsAgree(t *testing.T) {
	b, end := local(t)
	defer end()
	dnn := b.start(t.Context(), oneDNN)
	if dnn.missing {
		t.Skip(dnn.about)
	}
	for kind := range directions {
		c, err := b.convolution(kind, layer{in: 3, size: 8, out: 4, filter: 3, stride: 2, pad: 1},
			dnn, dnn)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, c)
	}
}
