package device

import (
	"errors"
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

// Stopped is a device that was stopped while a task was under way, which then failed: what
// it should have computed is not there.
type Stopped struct {
	Cause error  // Stop's
	Task  *Error // of the first task that failed
}

// Error is the cause's message: the task failed because of it, or would not have mattered.
func (e *Stopped) Error() string { return e.Cause.Error() }

// Unwrap is both.
func (e *Stopped) Unwrap() []error { return []error{e.Cause, e.Task} }

// Set makes err the error, unless there is one. A task's, after a cause that is none, is
// kept beside it.
func (f *Fault) Set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.first.Load()
	if before == nil {
		f.first.Store(&err)
		if f.set != nil {
			close(f.set)
		}
		return
	}
	task, failed := err.(*Error)
	if _, known := errors.AsType[*Error](*before); failed && !known {
		var both error = &Stopped{*before, task}
		f.first.Store(&both)
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
