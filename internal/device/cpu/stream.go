package cpu

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan/space"
)

// queueLength is how far the issuing goroutine may run ahead of a stream.
const queueLength = 1024

// A stream lets commands come together before its goroutine begins with them, and who waits
// for a few that are soon done runs them: waking a goroutine takes longer than a short step,
// and it wakes on another core, whose caches are cold.
const (
	startAt   = 128     // commands with which the goroutine begins
	worthWake = 1 << 18 // load from which it is woken by who waits: some 20 µs
)

// spins is how often a stream looks for an event before it parks.
const spins = 200

// stream is a queue, and a goroutine that runs its commands if nobody does who waits for
// them.
type stream struct {
	device *Device
	name   string
	id     int
	place  *place
	rate   int64         // bytes per second of a copy engine, 0 for no limit
	idle   time.Time     // when a throttled engine is done with what it has copied
	late   time.Duration // how much too long its last sleep was

	queued uint64        // commands given
	begun  uint64        // tasks begun; of who runs the stream, until Sync
	done   atomic.Uint64 // commands finished

	waiting atomic.Int32 // goroutines that wait for moved
	mu      sync.Mutex
	moved   sync.Cond // a command is finished
	wake    sync.Cond // the goroutine has something to do

	queue  []command // a ring
	first  int       // the next to run
	length int       // not begun
	load   int64     // of tasks since the queue was empty
	busy   bool      // a goroutine runs commands
	due    bool      // the stream's own is to run what is left
	closed bool
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
		queue: make([]command, queueLength)}
	if e == space.CopyIn || e == space.CopyOut {
		s.rate = d.options.CopyBytesPerSecond
	}
	s.moved.L, s.wake.L = &s.mu, &s.mu
	d.streams = append(d.streams, s)
	d.workers.Go(s.work)
	return s, nil
}

// Run queues tasks.
func (s *stream) Run(tasks ...device.Task) { s.put(command{tasks: tasks}) }

// loadOf is what tasks take together, at most so much that sums do not overflow.
func (s *stream) loadOf(tasks []device.Task) (sum int64) {
	for _, given := range tasks {
		if t, ok := given.(*task); ok {
			sum += t.load
		}
	}
	if s.rate > 0 {
		return max(sum, worthWake) // it sleeps
	}
	return sum
}

// Do queues a function, and begins: another device may wait for it.
func (s *stream) Do(f func()) {
	s.put(command{do: f})
	s.start(0)
}

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
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.length == queueLength {
		s.waiting.Add(1)
		s.moved.Wait()
		s.waiting.Add(-1)
	}
	s.queue[(s.first+s.length)%queueLength] = c
	s.load += s.loadOf(c.tasks)
	if s.length++; s.length >= startAt {
		s.rouse()
	}
}

// start has the goroutine run the commands, if there is a certain load of them.
func (s *stream) start(least int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load >= least {
		s.rouse()
	}
}

// rouse has the goroutine run the commands, once nobody else does. The caller has the lock.
func (s *stream) rouse() {
	if s.length == 0 || s.due {
		return
	}
	if s.due = true; !s.busy {
		s.wake.Signal()
	}
}

// Sync waits for the queue to empty, and runs what of it nobody does: the other streams'
// commands run meanwhile.
func (s *stream) Sync() error {
	for _, other := range s.device.streams {
		if other != s {
			other.start(worthWake)
		}
	}
	s.mu.Lock()
	if !s.busy {
		s.drain(s.queued)
	}
	s.mu.Unlock()
	s.await(s.queued)
	return s.device.Err()
}

// Begun is the number of tasks begun.
func (s *stream) Begun() uint64 { return s.begun }

// work runs commands when they are due, until the stream is closed.
func (s *stream) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed || s.length > 0 {
		if s.busy || !s.due && !s.closed {
			s.wake.Wait()
			continue
		}
		s.drain(math.MaxUint64)
	}
}

// drain runs commands until seq are finished or there are none. The caller has the lock, and
// nobody else runs any.
func (s *stream) drain(seq uint64) {
	s.busy = true
	for s.length > 0 && s.done.Load() < seq {
		c := s.queue[s.first]
		s.queue[s.first] = command{}
		s.first = (s.first + 1) % queueLength
		s.length--
		s.mu.Unlock()
		s.command(c)
		s.mu.Lock()
	}
	if s.busy = false; s.length == 0 {
		s.load, s.due = 0, false
	} else if s.due {
		s.wake.Signal()
	}
}

// help has what is before seq run, if nobody does: by the caller if that is soon done.
func (s *stream) help(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load >= worthWake {
		s.rouse()
	} else if !s.busy {
		s.drain(seq)
	}
}

// command runs a command.
func (s *stream) command(c command) {
	if c.on != nil {
		c.on.await(c.seq)
	}
	if c.do != nil {
		c.do()
	}
	s.begun += s.run(c.tasks)
	s.advance()
}

// close ends the goroutine after what is queued.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wake.Signal()
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
	if s.done.Load() >= seq {
		return
	}
	s.help(seq)
	for range spins {
		if s.done.Load() >= seq {
			return
		}
		runtime.Gosched()
	}
	s.waiting.Add(1)
	s.mu.Lock()
	for s.done.Load() < seq {
		s.rouse()
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
