// Package space names the memories of a machine, and the engines that work on
// them. Everything that speaks of either, from placement to devices, uses these
// words: there is no second numbering.
package space

import "fmt"

// ID numbers a memory; it indexes the spaces of a plan.
type ID uint8

// The spaces.
const (
	Device ID = iota // the memory that kernels work in, of which there is too little
	Host             // the memory beside it: variables, and what is swapped out
	Count            // the number of spaces
)

var names = [Count]string{"device", "host"}

// String is the space's name.
func (s ID) String() string {
	if s < Count {
		return names[s]
	}
	return fmt.Sprintf("space %d", uint8(s))
}

// Alignment is what the address of every slot of the space is a multiple of, in
// bytes: a cache line, and the widest vector that a kernel loads.
func (s ID) Alignment() int64 { return 64 }

// Engine is what runs the steps of a stream.
type Engine uint8

// The engines.
const (
	Compute     Engine = iota // the device's compute units
	CopyIn                    // the copy engine towards the device
	CopyOut                   // the copy engine from the device
	HostCompute               // the host's processor
	Engines                   // the number of engines
)

var engines = [Engines]struct {
	name          string
	reads, writes ID
}{
	Compute:     {"compute", Device, Device},
	CopyIn:      {"copy-in", Host, Device},
	CopyOut:     {"copy-out", Device, Host},
	HostCompute: {"host", Host, Host},
}

// String is the engine's name.
func (e Engine) String() string {
	if e < Engines {
		return engines[e].name
	}
	return fmt.Sprintf("engine %d", uint8(e))
}

// Reads is the one space that the engine can read.
func (e Engine) Reads() ID { return engines[e].reads }

// Writes is the one space that the engine can write.
func (e Engine) Writes() ID { return engines[e].writes }

// Copies reports whether the engine copies; the others run operations.
func (e Engine) Copies() bool { return e.Reads() != e.Writes() }
