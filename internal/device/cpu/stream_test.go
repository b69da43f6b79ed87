package cpu_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/plan/space"
)

// lanes is a device with a few streams of its copy engines, and what ran where.
type lanes struct {
	d        *cpu.Device
	streams  []device.Stream
	dst, src device.Memory

	mu   sync.Mutex
	ran  []int    // steps, in the order in which they ended
	whom []string // goroutines that ran them
}

const laneBytes = 1 << 20

func newLanes(t *testing.T, streams int) *lanes {
	t.Helper()
	l := &lanes{}
	d, err := cpu.Open(cpu.Options{Threads: 1, Listener: func(e trace.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ran, l.whom = append(l.ran, e.Step), append(l.whom, goroutine())
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	l.d = d
	var err1, err2 error
	l.dst, err1 = d.Alloc(space.Device, int64(streams)*laneBytes)
	l.src, err2 = d.Alloc(space.Host, int64(streams)*laneBytes)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for i := range streams {
		s, err := d.Stream(fmt.Sprint(i), space.CopyIn)
		if err != nil {
			t.Fatal(err)
		}
		l.streams = append(l.streams, s)
	}
	return l
}

// copy is the task of copying so many bytes, for a stream.
func (l *lanes) copy(t *testing.T, stream, step int, size int64) device.Task {
	t.Helper()
	off := int64(stream) * laneBytes
	c, err := l.d.Copy(device.Copy{Engine: space.CopyIn, Step: step, Name: "x", What: "stage",
		Dst: device.Region{Mem: l.dst, Off: off, Bytes: size},
		Src: device.Region{Mem: l.src, Off: off, Bytes: size}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	b := make([]byte, 64)
	return string(bytes.Fields(b[:runtime.Stack(b, false)])[1])
}

// TestWhoWaitsRuns: what is soon done runs on the goroutine that waits for it, from stream to
// stream, and nobody is woken.
func TestWhoWaitsRuns(t *testing.T) {
	l := newLanes(t, 3)
	for step := range 30 {
		s := l.streams[step%3]
		if step > 0 {
			s.Wait(l.streams[(step-1)%3].Record())
		}
		s.Run(l.copy(t, step%3, step, 64))
	}
	for _, s := range l.streams {
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.ran) != 30 {
		t.Fatalf("%d of 30 copies ran", len(l.ran))
	}
	for i, who := range l.whom {
		if l.ran[i] != i || who != goroutine() {
			t.Errorf("copy %d was the %dth, on goroutine %s of the waiting one's %s", l.ran[i], i,
				who, goroutine())
		}
	}
}

// TestRunsBesideWhoWaits: what may take longer runs beside what is waited for.
func TestRunsBesideWhoWaits(t *testing.T) {
	l := newLanes(t, 1) // its stream has nothing to do
	host := device.Region{Mem: l.src, Bytes: 8}
	begun := make(chan struct{})
	for _, do := range []func() error{func() error {
		select {
		case <-begun:
			return nil
		case <-time.After(10 * time.Second):
			return errors.New("the other stream has not begun")
		}
	}, func() error { close(begun); return nil }} {
		s, err := l.d.Stream("send", space.Send)
		if err != nil {
			t.Fatal(err)
		}
		task, err := l.d.Call(device.Call{Engine: space.Send, Name: "x", What: "send",
			In: []device.Region{host}, Data: host,
			Do: func(<-chan struct{}, [][]byte, []byte) error { return do() }})
		if err != nil {
			t.Fatal(err)
		}
		s.Run(task)
		l.streams = append(l.streams, s)
	}
	if err := l.streams[1].Sync(); err != nil {
		t.Fatal(err)
	}
}

// TestEventsOfAnyStreams: whoever runs them, tasks of a stream run in order, and after what
// their stream waits for.
func TestEventsOfAnyStreams(t *testing.T) {
	l := newLanes(t, 4)
	rng := rand.New(rand.NewPCG(1, 2))
	var after [][2]int // pairs of steps, the first before the second
	last := [4]int{-1, -1, -1, -1}
	for step := range 4000 {
		i := rng.IntN(4)
		if j := rng.IntN(4); j != i && last[j] >= 0 && rng.IntN(3) == 0 {
			l.streams[i].Wait(l.streams[j].Record())
			after = append(after, [2]int{last[j], step})
		}
		if last[i] >= 0 {
			after = append(after, [2]int{last[i], step})
		}
		size := int64(64)
		if rng.IntN(50) == 0 {
			size = laneBytes / 2
		}
		l.streams[i].Run(l.copy(t, i, step, size))
		if last[i] = step; rng.IntN(200) == 0 {
			l.streams[rng.IntN(4)].Sync()
		}
	}
	l.d.Reset()
	at := map[int]int{}
	for i, step := range l.ran {
		at[step] = i
	}
	if len(at) != 4000 {
		t.Fatalf("%d of 4000 copies ran", len(at))
	}
	for _, p := range after {
		if at[p[0]] > at[p[1]] {
			t.Fatalf("step %d ran before step %d", p[1], p[0])
		}
	}
}
