package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan/space"
)

// queueLength is how far the issuing goroutine may run ahead of a stream.
const queueLength = 1024

// spins is how often a stream looks for an event before it parks.
const spins = 200

// stream is a goroutine with a queue.
type stream struct {
	device *Device
	name   string
	id     int
	place  *place
	rate   int64         // bytes per second of a copy engine, 0 for no limit
	idle   time.Time     // when a throttled engine is done with what it has copied
	late   time.Duration // how much too long its last sleep was

	queue  chan command
	queued uint64        // commands given
	begun  uint64        // tasks begun; the goroutine's until Sync
	done   atomic.Uint64 // commands finished

	waiting atomic.Int32 // goroutines in the slow path of await
	mu      sync.Mutex
	moved   *sync.Cond
}

// Queue is what [Device.Stream] returns: a stream that also does things for a device of
// which this one is the host's part.
type Queue interface {
	device.Stream
	// Do queues a function. It is called in its turn, after an error too, and is no task.
	Do(f func())
}

// command is tasks to run, a function to call, or an event to wait for.
type command struct {
	tasks []device.Task
	do    func()
	on    *stream
	seq   uint64
}

// Stream starts a stream.
func (d *Device) Stream(name string, e space.Engine) (device.Stream, error) {
	place, err := d.place(e)
	if err != nil {
		return nil, err
	}
	s := &stream{device: d, name: name, id: len(d.streams), place: place,
		queue: make(chan command, queueLength)}
	if e == space.CopyIn || e == space.CopyOut {
		s.rate = d.options.CopyBytesPerSecond
	}
	s.moved = sync.NewCond(&s.mu)
	d.streams = append(d.streams, s)
	d.workers.Go(s.work)
	return s, nil
}

// Run queues tasks.
func (s *stream) Run(tasks ...device.Task) { s.put(command{tasks: tasks}) }

// Do queues a function.
func (s *stream) Do(f func()) { s.put(command{do: f}) }

// Record is the number of commands so far.
func (s *stream) Record() device.Event { return device.Event{Stream: s.id, Seq: s.queued} }

// Wait queues the wait for an event.
func (s *stream) Wait(e device.Event) {
	on := s.device.streams[e.Stream]
	if on != s && on.done.Load() < e.Seq {
		s.put(command{on: on, seq: e.Seq})
	}
}

func (s *stream) put(c command) {
	s.queued++
	s.queue <- c
}

// Sync waits for the queue to empty.
func (s *stream) Sync() error {
	s.await(s.queued)
	return s.device.Err()
}

// Begun is the number of tasks begun.
func (s *stream) Begun() uint64 { return s.begun }

// work runs commands until the queue is closed.
func (s *stream) work() {
	for c := range s.queue {
		if c.on != nil {
			c.on.await(c.seq)
		}
		if c.do != nil {
			c.do()
		}
		s.begun += s.run(c.tasks)
		s.advance()
	}
}

// run does tasks until one has failed, on any stream, and returns how many it began.
func (s *stream) run(tasks []device.Task) (begun uint64) {
	for _, given := range tasks {
		if s.device.fault.Failed() {
			break
		}
		t, ok := given.(*task)
		if !ok || t.place != s.place {
			s.device.fault.Set(s.refuse(given))
			break
		}
		begun++
		if err := t.run(s); err != nil {
			s.device.fault.Set(t.error(err))
		}
	}
	return begun
}

// refuse is the error of a task that is not for this stream.
func (s *stream) refuse(given device.Task) error {
	t, ok := given.(*task)
	if !ok || t.place.device != s.device {
		return fmt.Errorf("stream %s: task %T is not this device's", s.name, given)
	}
	return t.error(device.Misplaced(t.place.engine, s.name, s.place.engine))
}

// advance tells those who wait that a command is finished.
func (s *stream) advance() {
	s.done.Add(1)
	if s.waiting.Load() > 0 {
		s.mu.Lock()
		s.moved.Broadcast()
		s.mu.Unlock()
	}
}

// await returns when seq commands are finished.
func (s *stream) await(seq uint64) {
	for range spins {
		if s.done.Load() >= seq {
			return
		}
		runtime.Gosched()
	}
	s.waiting.Add(1)
	s.mu.Lock()
	for s.done.Load() < seq {
		s.moved.Wait()
	}
	s.mu.Unlock()
	s.waiting.Add(-1)
}

// throttle holds a copy engine back to its rate. Short copies accumulate until
// a sleep is worth its overhead, and the time that a sleep took too long is made
// up for by the copies after it.
func (s *stream) throttle(start time.Time, bytes int64) {
	if s.rate == 0 {
		return
	}
	if ready := start.Add(-s.late); s.idle.Before(ready) {
		s.idle = ready
	}
	seconds := min(float64(bytes)/float64(s.rate), 1e9) // decades; a Duration holds no centuries
	s.idle = s.idle.Add(time.Duration(seconds * float64(time.Second)))
	const least = 100 * time.Microsecond
	wait := time.Until(s.idle)
	if wait <= least {
		// what one copy could not make up for is left to the next
		s.late = min(s.late, max(0, -wait))
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.late = time.Since(s.idle)
	case <-s.device.fault.Done():
		s.idle, s.late = time.Time{}, 0 // nothing is owed for what is given up
	}
}
