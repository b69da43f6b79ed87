package fewbits

import "unsafe"

// blockArgs are the arguments of the kernels, which unpack blocks of a row, or multiply as many
// elements by pairs of rows. Both are at least one.
type blockArgs struct {
	dst    unsafe.Pointer // where elements go, or what they are multiplied by
	src    unsafe.Pointer // the first block
	row    unsafe.Pointer // the begin of its row
	blocks int

	pairs, stride int            // of rows; bytes from a row to the next
	sums          unsafe.Pointer // of each row, float32
	ahead         int            // bytes from what is read to what is fetched

	// Assembly keeps addresses, and what is read of a block's parts, here.
	//lint:ignore U1000 only assembly uses them
	srcAt, rowAt uintptr
	//lint:ignore U1000 only assembly uses them
	steps, floors [16]float32
}

// span is the most elements that a kernel is called for at a time: a goroutine in assembly cannot
// be preempted.
const span = 1 << 16
