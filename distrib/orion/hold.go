package orion

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// Held is a [DistArray] of elements that have one number of bytes each.
type Held interface {
	load(b []byte, from, n int64) []byte
	store(from, n int64, b []byte)
	elementBytes() int64
}

// held is the memory of arrays.
type held []Held

// Hold is the [Memory] of a loop's arrays, which are made, in their order. An array whose elements
// are of another number of bytes than the loop says, or of no fixed one, is an error.
func Hold(l *Loop, arrays ...Held) (Memory, error) {
	if len(arrays) != len(l.Arrays) {
		return nil, fmt.Errorf("%d arrays of the %d that the loop has", len(arrays), len(l.Arrays))
	}
	for i, a := range arrays {
		if n := a.elementBytes(); n != l.Arrays[i].Bytes {
			return nil, fmt.Errorf("elements of array %s have %d bytes, the loop says %d",
				l.Arrays[i].Name, n, l.Arrays[i].Bytes)
		}
	}
	return held(arrays), nil
}

// Load appends elements.
func (h held) Load(b []byte, array int, from, n int64) []byte { return h[array].load(b, from, n) }

// Store takes elements.
func (h held) Store(array int, from, n int64, b []byte) { h[array].store(from, n, b) }

func (a *DistArray[T]) elementBytes() int64 {
	var x T
	return int64(binary.Size(x))
}

// between are the values of elements that are there, one behind the other.
func (a *DistArray[T]) between(from, n int64) []T {
	i, _ := slices.BinarySearch(a.keys, from)
	return a.values[i:][:n]
}

func (a *DistArray[T]) load(b []byte, from, n int64) []byte {
	b, _ = binary.Append(b, binary.LittleEndian, a.between(from, n)) // Hold knows that they can be
	return b
}

func (a *DistArray[T]) store(from, n int64, b []byte) {
	_, _ = binary.Decode(b, binary.LittleEndian, a.between(from, n))
}

// saved is what a checkpoint has of an array.
type saved[T any] struct {
	Shape, Keys []int64
	Values      []T
}

// errDamaged is what becomes of a checkpoint that is no more what was written.
var errDamaged = errors.New("the checkpoint of an array is damaged, or it is none")

// Save writes the elements that there are, as a checkpoint: bytes of package gob, and a CRC-32C.
func (a *DistArray[T]) Save(w io.Writer) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(saved[T]{a.shape, a.keys, a.values}); err != nil {
		return err
	}
	sum := crc32.Checksum(b.Bytes(), crc32.MakeTable(crc32.Castagnoli))
	_, err := w.Write(binary.LittleEndian.AppendUint32(b.Bytes(), sum))
	return err
}

// Restored is an array of a checkpoint, which is made already.
func Restored[T any](r io.Reader) (*DistArray[T], error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	n := len(b) - 4
	if n < 0 || crc32.Checksum(b[:n], crc32.MakeTable(crc32.Castagnoli)) !=
		binary.LittleEndian.Uint32(b[n:]) {
		return nil, errDamaged
	}
	var s saved[T]
	if err := gob.NewDecoder(bytes.NewReader(b[:n])).Decode(&s); err != nil {
		return nil, fmt.Errorf("a checkpoint of an array: %w", err)
	}
	a := &DistArray[T]{shape: s.Shape, keys: s.Keys, values: s.Values, made: true}
	if err := (Array{"of a checkpoint", s.Shape, 1}).check(); err != nil {
		return nil, err
	}
	size := Array{Shape: s.Shape}.Elements()
	for i, k := range s.Keys {
		if k < 0 || k >= size || i > 0 && k <= s.Keys[i-1] || len(s.Values) != len(s.Keys) {
			return nil, errDamaged
		}
	}
	return a, nil
}
