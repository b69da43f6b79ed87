package device

import (
	"sync"
	"sync/atomic"
)

// Fault is the error that a device stopped for; the zero Fault is none. Its
// methods may be called from any goroutine, but for Clear, which nothing else may
// overlap.
type Fault struct {
	first atomic.Pointer[error]
	mu    sync.Mutex
	set   chan struct{} // closed by Set; made by who waits first
}

// Set makes err the error, unless there is one.
func (f *Fault) Set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first.CompareAndSwap(nil, &err) && f.set != nil {
		close(f.set)
	}
}

// Err is the error, or nil.
func (f *Fault) Err() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}

// Failed reports whether there is an error.
func (f *Fault) Failed() bool { return f.first.Load() != nil }

// Done is closed when there is an error.
func (f *Fault) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set == nil {
		f.set = make(chan struct{})
		if f.first.Load() != nil {
			close(f.set)
		}
	}
	return f.set
}

// Clear forgets the error.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first.Swap(nil) != nil {
		f.set = nil
	}
}
