package gomlx

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// buffer is a value in host memory, between executions.
type buffer struct {
	shape  shapes.Shape
	tensor gomem.Tensor // its Data is nil once it is finalized or donated
	freed  bool
}

// newBuffer makes a zeroed buffer.
func newBuffer(device backends.DeviceNum, shape shapes.Shape) (*buffer, error) {
	if device != 0 {
		return nil, fmt.Errorf("gomem: device %d: there is one, number 0", device)
	}
	t, err := typeOf(shape)
	if err != nil {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("gomem: %w", err)
	}
	return &buffer{shape: shape.Clone(), tensor: gomem.NewTensor(t)}, nil
}

// bufferOf is a buffer of this backend that is not freed.
func bufferOf(b backends.Buffer) (*buffer, error) {
	x, ok := b.(*buffer)
	switch {
	case !ok || x == nil:
		return nil, fmt.Errorf("gomem: the buffer is a %T, of another backend", b)
	case x.freed:
		return nil, errors.New("gomem: the buffer was finalized, or donated to an execution")
	}
	return x, nil
}

// free lets go of the memory.
func (b *buffer) free() { b.tensor, b.freed = gomem.Tensor{}, true }

// BufferFinalize lets go of a buffer's memory.
func (b *Backend) BufferFinalize(x backends.Buffer) error {
	buf, err := bufferOf(x)
	if err == nil {
		buf.free()
	}
	return err
}

// BufferShape is the shape of a buffer.
func (b *Backend) BufferShape(x backends.Buffer) (shapes.Shape, error) {
	buf, err := bufferOf(x)
	if err != nil {
		return shapes.Invalid(), err
	}
	return buf.shape, nil
}

// BufferDeviceNum is 0.
func (b *Backend) BufferDeviceNum(x backends.Buffer) (backends.DeviceNum, error) {
	_, err := bufferOf(x)
	return 0, err
}

// BufferToFlatData copies a buffer's elements to a slice of as many.
func (b *Backend) BufferToFlatData(x backends.Buffer, to any) error {
	buf, err := bufferOf(x)
	if err != nil {
		return err
	}
	bytes, err := rawOf(to, buf.shape)
	copy(bytes, buf.tensor.Data)
	return err
}

// rawOf are the bytes of a slice that has the elements of a shape.
func rawOf(flat any, shape shapes.Shape) ([]byte, error) {
	bytes, d, err := raw(flat)
	switch {
	case err != nil:
		return nil, err
	case d != shape.DType || len(bytes) != int(shape.Memory()):
		return nil, fmt.Errorf("gomem: %d bytes of %s for %s", len(bytes), d, shape)
	}
	return bytes, nil
}

// BufferFromFlatData makes a buffer of a copy of a slice's elements.
func (b *Backend) BufferFromFlatData(device backends.DeviceNum, from any, shape shapes.Shape) (
	backends.Buffer, error) {
	if err := b.alive(); err != nil {
		return nil, err
	}
	buf, err := newBuffer(device, shape)
	if err != nil {
		return nil, err
	}
	bytes, err := rawOf(from, shape)
	if err != nil {
		return nil, err
	}
	copy(buf.tensor.Data, bytes)
	return buf, nil
}

// HasSharedBuffers is true: buffers are in host memory.
func (b *Backend) HasSharedBuffers() bool { return true }

// NewSharedBuffer makes a zeroed buffer, and the slice of its elements, which may be read and
// written while no execution has it.
func (b *Backend) NewSharedBuffer(device backends.DeviceNum, shape shapes.Shape) (
	backends.Buffer, any, error) {
	if err := b.alive(); err != nil {
		return nil, nil, err
	}
	buf, err := newBuffer(device, shape)
	if err != nil {
		return nil, nil, err
	}
	return buf, flat(buf.tensor, shape.DType), nil
}

// BufferData is the slice of a buffer's elements, in its memory.
func (b *Backend) BufferData(x backends.Buffer) (any, error) {
	buf, err := bufferOf(x)
	if err != nil {
		return nil, err
	}
	return flat(buf.tensor, buf.shape.DType), nil
}

// BufferCopyToDevice is an error: there is no other device.
func (b *Backend) BufferCopyToDevice(_ backends.Buffer, device backends.DeviceNum) (
	backends.Buffer, error) {
	return nil, fmt.Errorf("gomem: a copy to device %d: there is one, number 0", device)
}
