package svlog

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
)

// full is a disk that has no room between two points of what is written to it.
type full struct {
	osDisk
	at       *int64
	from, to int64
}

type fullFile struct {
	file
	d full
}

func (d full) Create(path string) (file, error) {
	f, err := d.osDisk.Create(path)
	return fullFile{f, d}, err
}

// Write writes a part, as a full disk does.
func (f fullFile) Write(b []byte) (int, error) {
	at := *f.d.at
	*f.d.at += int64(len(b))
	if *f.d.at <= f.d.from || at >= f.d.to {
		return f.file.Write(b)
	}
	n, err := f.file.Write(b[:len(b)/2])
	return n, errors.Join(err, syscall.ENOSPC)
}

// TestFullDisk: a replica whose disk is full goes on, says so once, and is logged again when there
// is room; what was logged before and is since can be restored.
func TestFullDisk(t *testing.T) {
	for _, from := range []int64{0, 100, 150_000} {
		dir, told, at := t.TempDir(), []string(nil), int64(0)
		o := Options{Keep: 1 << 20,
			Warn: func(line string) { told = append(told, line) }}
		l, err := open(dir, o, full{at: &at, from: from, to: from + 60_000})
		if err != nil {
			t.Fatal(err)
		}
		l.Describe(nil, "opt")
		v := begin(6, adds, l, [2]int{60, 60})
		all := map[int64]moment{}
		for c := int64(1); c <= 300; c++ {
			v.clock(c, 1000)
			all[c] = v.moment()
			drained(l)
		}
		closed(t, l)
		marks := clocks(t, dir)
		if len(marks) == 0 || marks[len(marks)-1] != 300 || len(marks) == 300 {
			t.Errorf("full from byte %d: clocks %v", from, marks)
		}
		for _, c := range marks {
			all[c].same(t, restored(t, dir, c, adds))
		}
		if len(told) != 2 || !strings.Contains(told[0], "no space left") ||
			!strings.Contains(told[1], "is written again") {
			t.Errorf("full from byte %d: %q", from, told)
		}
	}
}

// loggerEnv has the test's program be one that logs until it is killed.
const loggerEnv = "GOMEM_TEST_LOGGER"

// logger logs clock after clock, and says which are on the disk for good.
func logger(dir string) error {
	l, err := Open(dir, Options{Keep: 3, Rule: momentum()})
	if err != nil {
		return err
	}
	l.Describe(nil, "opt")
	v := begin(7, momentum, l, [2]int{60, 60})
	v.rule = l.o.Rule
	for c := int64(1); ; c++ {
		v.clock(c, 50)
		if c%3 == 0 {
			drained(l)
			fmt.Println(c)
		}
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(loggerEnv); dir != "" {
		fmt.Fprintln(os.Stderr, logger(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestKilled: of a process that is killed while it logs no clock is lost that was on the disk, and
// whatever is there is what its replica was.
func TestKilled(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range longtest.Count(4, 100) {
		dir := t.TempDir()
		last := killed(t, dir, 20+rng.IntN(80), time.Duration(rng.IntN(3000))*time.Microsecond)
		marks := clocks(t, dir)
		if len(marks) == 0 || marks[len(marks)-1] < last {
			t.Fatalf("clock %d was on the disk, and there are %v", last, marks)
		}
		same := replica(t, marks[len(marks)-1])
		for _, c := range marks[max(0, len(marks)-5):] {
			same[c].same(t, restored(t, dir, c, momentum))
		}
		closed(t, opened(t, dir, Options{}))
	}
}

// replica is what the logger's replica is at every clock.
func replica(t *testing.T, clocks int64) []moment {
	l := opened(t, t.TempDir(), Options{Rule: momentum()})
	v := begin(7, momentum, l, [2]int{60, 60})
	v.rule = l.o.Rule
	all := []moment{v.moment()}
	for c := int64(1); c <= clocks; c++ {
		v.clock(c, 50)
		all = append(all, v.moment())
	}
	closed(t, l)
	return all
}

// killed runs a logger, kills it some time after it has said so many clocks, and returns the last
// that it said.
func killed(t *testing.T, dir string, lines int, after time.Duration) (last int64) {
	t.Helper()
	p := exec.Command(os.Args[0])
	p.Env = append(os.Environ(), loggerEnv+"="+dir)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for i := 0; in.Scan(); i++ {
		if _, err := fmt.Sscan(in.Text(), &last); err != nil {
			t.Fatalf("%q: %v", in.Text(), err)
		}
		if i == lines {
			time.AfterFunc(after, func() { _ = p.Process.Kill() })
		}
	}
	_ = p.Wait()
	return last
}
