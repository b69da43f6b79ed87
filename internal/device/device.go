// Package device says what a device is: memories, and streams that run tasks in
// order. It decides nothing: which task runs on which stream, at which
// addresses and after which events is in the plan.
//
// A device is driven by one goroutine. Everything a stream is given is queued
// and runs later, in the order of the calls, at the latest when somebody waits
// for it; between streams there is no order but by events. What a task needs is
// resolved when the task is made, once for many steps.
//
// The subpackages are the devices: cpu, the reference; null, which runs nothing
// and keeps count. devicetest has the tests that all must pass.
package device

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
)

// Device makes memories, streams and tasks.
type Device interface {
	// Alloc makes a memory of exactly so many bytes in a space, zeroed. The space says what
	// kind of memory that is: the device's own; the host's, in the form that the device's
	// copy engines want; a file. It refuses a space that the device has not.
	Alloc(s space.ID, bytes int64) (Memory, error)
	// Stream starts a stream. It refuses an engine that the device has not.
	Stream(name string, e space.Engine) (Stream, error)
	// Launch makes the task of running an operation, by the kernels of its engine. It
	// refuses what [Launch.Check] does, an engine that the device has not, an operation
	// that the engine or the library cannot run, and memories of another device. A device that
	// computes refuses a library that it has not.
	Launch(l Launch) (Task, error)
	// Copy makes the task of copying bytes between memories. It refuses what
	// [Copy.Check] does, an engine that the device has not, and memories of
	// another device.
	Copy(c Copy) (Task, error)
	// Call makes the task of calling a function about memory. It refuses what
	// [Call.Check] does, an engine that the device has not, and memories of another
	// device.
	Call(c Call) (Task, error)
	// Err is the first error since the device was opened or reset: a task's, which
	// is an *[Error], or the cause that Stop was given; a *[Stopped] is both, the cause
	// first. After it no task begins.
	Err() error
	// Stop makes cause the device's error, if it has none, so that no other task
	// begins; a task that only waits ends early. Any goroutine may call it.
	Stop(cause error)
	// Reset forgets the error, so that tasks run again. It waits until the streams
	// are done with what they were given. No Stop may be under way.
	Reset()
	// Close ends the streams and frees the memories. Nothing else of the device
	// may be used after it.
	Close() error
}

// Reacher is a device that can copy from the memory of others of its kind.
type Reacher interface {
	// Pull copies bytes of device memory, of this device or of another one, to this device's, and
	// returns when they are there. Tasks of [Call] call it, on space.Peer.
	Pull(dst, src Region) error
	// Clear zeroes bytes of the device's memory, as Pull would copy them.
	Clear(dst Region) error
}

// Trier is a device that can show that it computes what its tasks say.
type Trier interface {
	// Try runs parts of the tasks that were made, before any has run, in their memories, which are
	// zero then. The error says what computes something else than it should.
	Try() error
}

// Accountant is a device of whose memory the process has more than it allocates.
type Accountant interface {
	// Beside is how many bytes that is, beside the memories and what streams work in.
	Beside() (int64, error)
}

// Compiler is a device that has a compiler for what tasks are made of.
type Compiler interface {
	// Compile compiles what tasks are quicker by that were made since the last call, all of it
	// at once. No task may be running. Without it they have the same results.
	Compile() error
}

// Memory is one allocation, handed out by address.
type Memory interface {
	// Space is where it is, which decides what engines may touch it.
	Space() space.ID
	// Bytes is its size.
	Bytes() int64
	// Used is the largest end of a region that anything has touched since the
	// last ResetUsed.
	Used() int64
	// ResetUsed forgets what was touched.
	ResetUsed()
	// Write copies data to an address. No task may be running.
	Write(off int64, data []byte) error
	// Read copies bytes from an address. No task may be running.
	Read(off int64, data []byte) error
}

// Region is a range of a memory.
type Region struct {
	Mem        Memory
	Off, Bytes int64
}

// Operand is a region read or written as a value.
type Operand struct {
	Region
	Type tensor.Type
}

// Launch describes the task of running an operation. An update's variables are
// in In.
type Launch struct {
	Engine  space.Engine // of the streams that may run it
	Step    int          // index in the plan, for errors and traces
	Name    string       // the node's name
	What    string       // the operation's name
	Op      any
	In, Out []Operand
	Scratch Region // no bytes if there is none
	Library string // what computes it, of the device's libraries; "": the engine's own kernels
	Cost    Cost
}

// Cost is what running an operation takes, for devices that tell the time by it.
type Cost struct {
	FLOPs int64 // floating-point operations; a multiply-add counts as two
	Bytes int64 // bytes of operands read and results written
}

// Copy describes the task of copying.
type Copy struct {
	Engine   space.Engine // of the streams that may run it
	Step     int
	Name     string
	What     string // the reason
	Dst, Src Region
}

// Call describes the task of handing bytes of host memory to a function, such as one that
// gives them to a network; or, on space.Peer, of having a function exchange bytes of the device's
// memory with other devices.
type Call struct {
	Engine space.Engine // of the streams that may run it: space.Send, space.Await or space.Peer
	Step   int
	Name   string
	What   string
	// In are read; what the first of them has is copied to where Data begins, unless it is
	// Data, or the call is on space.Peer: then Do reads In and writes Data.
	In   []Region
	Data Region
	// Do is given the bytes of In and Data, where the device has them, and none on space.Peer: one
	// that runs nothing does not call it. Once the device has stopped, stop is closed, and Do must
	// return soon.
	Do func(stop <-chan struct{}, in [][]byte, data []byte) error
}

// Task is something a stream of its engine can run, as often as one likes.
type Task any

// Event marks a point in a stream. What its numbers mean, only its device knows.
type Event struct {
	Stream int
	Seq    uint64
}

// Stream runs tasks in order. Its methods queue and return.
type Stream interface {
	// Run queues tasks. They are one queue entry, so it is cheaper to queue many
	// than one after the other; the slice must not change until they have run. A
	// task of another engine fails.
	Run(tasks ...Task)
	// Record marks the point after everything queued so far.
	Record() Event
	// Wait holds back what is queued later until the event has happened.
	Wait(Event)
	// Sync returns when everything queued has run or has been skipped because
	// of an error; it returns the device's error.
	Sync() error
	// Begun is the number of tasks that began since the stream was started: those
	// that came first, since none begins after an error. It may be asked for after
	// Sync.
	Begun() uint64
}

// ErrDamaged is bytes of a disk that are not those that were written there.
var ErrDamaged = errors.New("damaged: these are not the bytes that were written there")

// Error is a task that failed.
type Error struct {
	Step int
	Name string
	What string
	Err  error
}

// Error is one line.
func (e *Error) Error() string { return fmt.Sprintf("%s (%s): %v", e.Name, e.What, e.Err) }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }
