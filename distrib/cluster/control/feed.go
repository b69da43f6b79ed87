package control

import (
	"sync"

	"github.com/gomem/gomem/distrib"
)

// feed hands views on in order, however late they are taken.
type feed struct {
	out  chan distrib.View
	quit chan struct{} // nobody takes any more
	stop sync.Once

	mu     sync.Mutex
	queue  []distrib.View
	closed bool
	more   chan struct{} // has one element if something was queued
}

func newFeed() *feed {
	f := &feed{out: make(chan distrib.View), quit: make(chan struct{}),
		more: make(chan struct{}, 1)}
	go f.run()
	return f
}

func (f *feed) run() {
	defer close(f.out)
	for {
		select {
		case <-f.more:
		case <-f.quit:
			return
		}
		for {
			v, ok, closed := f.take()
			if closed {
				return
			}
			if !ok {
				break
			}
			select {
			case f.out <- v:
			case <-f.quit:
				return
			}
		}
	}
}

func (f *feed) take() (v distrib.View, ok, closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return v, false, f.closed
	}
	v, f.queue = f.queue[0], f.queue[1:]
	return v, true, false
}

// put queues a view; last says that none follows.
func (f *feed) put(v distrib.View, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.queue, f.closed = append(f.queue, v), last
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// drop forgets what nobody has taken.
func (f *feed) drop() { f.stop.Do(func() { close(f.quit) }) }
