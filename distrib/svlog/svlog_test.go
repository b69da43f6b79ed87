package svlog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
)

// TestEveryClock: what is restored of any clock is what the replica was then, to the bit, by
// whatever rule, across averages and bases that keep the log short.
func TestEveryClock(t *testing.T) {
	rules := map[string]newRule{"add": adds, "decay": decays, "momentum": momentum, "adam": adam}
	clocks := int64(longtest.Count(500, 2000))
	if testing.Short() {
		clocks = 120
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := opened(t, dir, Options{Rule: rule(), Keep: 1 << 20})
			v := begin(1, rule, l, [2]int{60, 200}, [2]int{1, 7})
			v.rule = l.o.Rule // whose state the log's bases have
			all := []moment{v.moment()}
			l.Mark(0, nil)
			for c := int64(1); c <= clocks; c++ {
				v.clock(c, 100)
				all = append(all, v.moment())
			}
			closed(t, l)
			h := history(t, dir)
			for c := int64(1); c <= clocks; c++ {
				s, err := h.Restore(c, rule())
				if err != nil {
					t.Fatal(err)
				}
				all[c].same(t, s)
			}
		})
	}
}

// TestLengths: a log is never twice its base, but for its description; what is older than the
// newest base is removed, and what is on the disk is what is counted.
func TestLengths(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	v := begin(2, adds, l, [2]int{64, 64})
	var all int64
	for c := int64(1); c <= 400; c++ {
		r := floats(v.rng, 128)
		v.apply(0, c, distrib.Ref{N: 64}, distrib.Factored{R: 1, J: 64, K: 64, A: r[:64],
			B: r[64:]})
		if l.Due() {
			v.base(c)
		}
		l.Mark(c, nil)
		drained(l)
		numbers, size := sizes(t, dir)
		if base := int64(4*64*64 + 2*headSize + 400); size > 2*base || len(numbers) != 1 {
			t.Fatalf("clock %d: %d bytes in %d segments, of a base of %d", c, size, len(numbers),
				base)
		}
		all = l.Stats().Written
	}
	closed(t, l)
	if all < 400*(4*128) || l.Stats().Written != all+headSize {
		t.Errorf("%d bytes are written of 400 updates, then %d", all, l.Stats().Written)
	}
	if last, err := history(t, dir).Latest(); err != nil || last != 400 {
		t.Errorf("clock %d is the last: %v", last, err)
	}
}

// drained waits until all that was told is on the disk.
func drained(l *Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.staged > 0 {
		l.changed.Wait()
	}
}

// sizes are the segments of a directory, and their bytes.
func sizes(t testing.TB, dir string) (numbers []int, bytes int64) {
	t.Helper()
	numbers, err := segmentsOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		info, err := os.Stat(filepath.Join(dir, nameOf(n)))
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return numbers, bytes
}

// small is a log of some clocks that was closed in order, in one segment.
func small(t testing.TB) (path string, b []byte, all []moment) {
	t.Helper()
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	v := begin(3, adds, l, [2]int{30, 30})
	all = append(all, v.moment())
	for c := int64(1); c <= 4; c++ {
		for from := range distrib.NodeID(2) {
			r := floats(v.rng, 60)
			v.apply(from, c, distrib.Ref{N: 30}, distrib.Factored{R: 1, J: 30, K: 30, A: r[:30],
				B: r[30:]})
		}
		l.Read(distrib.Clock(c), distrib.Ref{N: 30})
		copy(v.read[0], v.params[0].Data)
		l.State(0, v.opt)
		l.Mark(c, nil)
		all = append(all, v.moment())
		drained(l) // a group for every clock
	}
	closed(t, l)
	path = filepath.Join(dir, nameOf(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, b, all
}

// TestTorn: of a log that ends anywhere, what is there up to its last whole clock is restored,
// and another one goes on with it.
func TestTorn(t *testing.T) {
	path, b, all := small(t)
	dir := filepath.Dir(path)
	for n := 0; n < len(b); n += longtest.Count(11, 1) {
		write(t, path, b[:n])
		marks := clocks(t, dir)
		for _, at := range marks {
			all[at].same(t, restored(t, dir, at, adds))
		}
		if n%(11*13) != 0 {
			continue
		}
		l := opened(t, dir, Options{Keep: 9})
		v := begin(4, adds, l, [2]int{30, 30})
		v.clock(9, 100)
		closed(t, l)
		v.moment().same(t, restored(t, dir, 9, adds))
		for _, at := range marks {
			all[at].same(t, restored(t, dir, at, adds))
		}
		for k := range 3 {
			_ = os.Remove(filepath.Join(dir, nameOf(k+1)))
		}
	}
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestDamage: a bit that is turned in what had been on the disk is an error that says where and
// when, and nothing else ever comes of it.
func TestDamage(t *testing.T) {
	path, b, all := small(t)
	dir := filepath.Dir(path)
	end := len(b) - headSize
	for i := 0; i < end; i += longtest.Count(29, 1) {
		bad := slices.Clone(b)
		bad[i] ^= 1 << (i % 8)
		write(t, path, bad)
		_, err := history(t, dir).Restore(4, nil)
		damage, ok := errors.AsType[*DamageError](err)
		if !ok || damage.Path != path || damage.Offset > int64(i) {
			t.Fatalf("a bit of byte %d: %v", i, err)
		}
		if _, err := Open(dir, Options{}); err == nil {
			t.Fatalf("a bit of byte %d: it is opened", i)
		}
	}
	bad := slices.Clone(b)
	bad[end-1] ^= 1
	write(t, path, bad)
	h := history(t, dir)
	_, err := h.Latest()
	if damage, ok := errors.AsType[*DamageError](err); !ok || damage.Clock != 3 ||
		!strings.Contains(err.Error(), "after clock 3: ") {
		t.Errorf("damage behind clock 3: %v", err)
	}
	if _, err := h.Restore(4, nil); err == nil {
		t.Error("a damaged clock is restored")
	}
	all[3].same(t, restored(t, dir, 3, adds))
}

// TestMissing: a clock that a log has not is an error that says which it has.
func TestMissing(t *testing.T) {
	path, _, _ := small(t)
	h := history(t, filepath.Dir(path))
	_, err := h.Restore(7, nil)
	missing, ok := errors.AsType[*MissingError](err)
	if !ok || missing.At != 7 || !strings.Contains(err.Error(), "no clock 7: it has 1 to 4") {
		t.Error(err)
	}
	if _, err := h.Restore(4, momentum()); err == nil {
		t.Error("it is replayed through another rule")
	}
}

// TestBack: of a clock that is reached again, as by a run that has gone back, it is the last time.
func TestBack(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{Keep: 9})
	v := begin(5, adds, l, [2]int{4, 4})
	for c := int64(1); c <= 5; c++ {
		v.clock(c, 100)
	}
	v.base(2)
	v.clock(3, 100)
	again := v.moment()
	closed(t, l)
	again.same(t, restored(t, dir, 3, adds))
}

// TestHeld: nobody writes to a directory beside another.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("two write to one log")
	}
	closed(t, l)
	closed(t, opened(t, dir, Options{}))
}
