//go:build linux && amd64 && !nocuda

package driver

import (
	"time"
	"unsafe"
)

// Stream is a queue of work of a GPU.
type Stream struct {
	gpu    *GPU
	handle uintptr
}

// Event is a point in a stream.
type Event struct {
	gpu    *GPU
	handle uintptr
}

// Stream makes a stream that no default stream holds back.
func (g *GPU) Stream() (*Stream, error) {
	s := &Stream{gpu: g}
	return s, g.do(cuStreamCreate, uintptr(unsafe.Pointer(&s.handle)), nonBlocking)
}

// Close ends the stream once it is done.
func (s *Stream) Close() error { return s.gpu.do(cuStreamDestroy, s.handle) }

// Event makes an event, which says at what time it happened only if it is timed.
func (g *GPU) Event(timed bool) (*Event, error) {
	flags := uintptr(blockingSync)
	if !timed {
		flags |= disableTiming
	}
	e := &Event{gpu: g}
	return e, g.do(cuEventCreate, uintptr(unsafe.Pointer(&e.handle)), flags)
}

// Close ends the event.
func (e *Event) Close() error { return e.gpu.do(cuEventDestroy, e.handle) }

// Await returns when the event, as it was recorded last, has happened.
func (e *Event) Await() error { return e.gpu.do(cuEventSynchronize, e.handle) }

// Happened reports whether it has.
func (e *Event) Happened() (bool, error) {
	switch code := int32(call(e.gpu.lib.fn[cuEventQuery], e.handle)); code {
	case 0:
		return true, nil
	case notReady:
		return false, nil
	default:
		return false, e.gpu.fail(cuEventQuery, code)
	}
}

// Since is the time from another event, which has happened as this one has, both timed.
func (e *Event) Since(start *Event) (time.Duration, error) {
	var ms float32
	err := e.gpu.do(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), start.handle, e.handle)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Record makes the event happen after all that the stream was given so far.
func (s *Stream) Record(e *Event) error { return s.gpu.do(cuEventRecord, e.handle, s.handle) }

// Wait holds back what the stream is given later until the event has happened.
func (s *Stream) Wait(e *Event) error {
	return s.gpu.do(cuStreamWaitEvent, s.handle, e.handle, 0)
}

// ToDevice copies pinned memory, which must not change until that is done, to an address.
func (s *Stream) ToDevice(dst uint64, src []byte) error {
	return s.gpu.do(cuMemcpyHtoDAsync, uintptr(dst),
		uintptr(unsafe.Pointer(unsafe.SliceData(src))), word(len(src)), s.handle)
}

// ToHost copies from an address to pinned memory.
func (s *Stream) ToHost(dst []byte, src uint64) error {
	return s.gpu.do(cuMemcpyDtoHAsync, uintptr(unsafe.Pointer(unsafe.SliceData(dst))),
		uintptr(src), word(len(dst)), s.handle)
}

// Copy copies bytes from an address to another, where they do not overlap.
func (s *Stream) Copy(dst, src uint64, bytes int64) error {
	return s.gpu.do(cuMemcpyDtoDAsync, uintptr(dst), uintptr(src), word(bytes), s.handle)
}

// Fill sets 32-bit words.
func (s *Stream) Fill(dst uint64, x uint32, words int64) error {
	return s.gpu.do(cuMemsetD32Async, uintptr(dst), uintptr(x), word(words), s.handle)
}

// FillBytes sets bytes.
func (s *Stream) FillBytes(dst uint64, x byte, bytes int64) error {
	return s.gpu.do(cuMemsetD8Async, uintptr(dst), uintptr(x), word(bytes), s.handle)
}
