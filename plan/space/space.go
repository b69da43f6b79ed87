// Package space numbers the memories of a machine, and names the engines that work
// on them by what they reach. Everything that speaks of either, from placement to
// devices, uses these numbers: there is no second numbering.
package space

import (
	"fmt"
	"math"
)

// ID numbers a memory; it indexes the spaces of a plan. The larger the number, the
// farther the memory is from the kernels, and the more there is of it. A plan may have other names
// for its spaces.
type ID uint8

// The spaces of a machine: every one has the first two.
const (
	Device ID = iota // the memory that kernels work in, of which there is too little
	Host             // the memory beside it: variables, and what is swapped out
	Disk             // files, for what the host has no room for
)

// Network is where a value is that is in flight between machines: the farthest memory,
// which has no addresses. No plan numbers it among its own.
const Network ID = math.MaxUint8

// String is "device", "host", "disk", "network" or the number.
func (s ID) String() string {
	switch s {
	case Device:
		return "device"
	case Host:
		return "host"
	case Disk:
		return "disk"
	case Network:
		return "network"
	}
	return fmt.Sprintf("space %d", uint8(s))
}

// Engine is what runs the steps of a stream. It is the one space that it can read
// and the one that it can write: if they are the same, it runs operations there;
// otherwise it copies from one to the other.
type Engine uint16

// The engines of two memories.
const (
	Compute     = Engine(Device)<<8 | Engine(Device) // the device's compute units
	CopyIn      = Engine(Host)<<8 | Engine(Device)   // the copy engine towards the device
	CopyOut     = Engine(Device)<<8 | Engine(Host)   // the copy engine from the device
	HostCompute = Engine(Host)<<8 | Engine(Host)     // the host's processor
)

// The engines of the network: the one that values leave by, and the one by which they
// are back.
const (
	Send  = Engine(Host)<<8 | Engine(Network)
	Await = Engine(Network)<<8 | Engine(Host)
)

// Peer is the engine of a device that reaches the memory of other workers' devices: it copies what
// they have in theirs to its own. What it copies is in flight in no memory.
const Peer = Engine(Network)<<8 | Engine(Device)

// Copier is the engine that copies from one space to another.
func Copier(from, to ID) Engine { return Engine(from)<<8 | Engine(to) }

// Reads is the one space that the engine can read.
func (e Engine) Reads() ID { return ID(e >> 8) }

// Writes is the one space that the engine can write.
func (e Engine) Writes() ID { return ID(e & 0xff) }

// Copies reports whether the engine copies; the others run operations.
func (e Engine) Copies() bool { return e.Reads() != e.Writes() }

// String is what the engine does: "runs in device", "copies host to device".
func (e Engine) String() string { return e.Name(ID.String) }

// Name is what the engine does, in a machine that has other names for its spaces.
func (e Engine) Name(of func(ID) string) string {
	if e.Copies() {
		return fmt.Sprintf("copies %s to %s", of(e.Reads()), of(e.Writes()))
	}
	return "runs in " + of(e.Reads())
}
