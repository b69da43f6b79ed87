package cpu

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/space"
)

// diskSpace is the space whose memories are files.
const diskSpace = space.Host + 1

// diskBlock is how many bytes are read or written at once: enough for a disk to be
// as fast as it can.
const diskBlock = 4 << 20

// file is what a disk memory needs of a file.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
}

// disk is a memory in a file, of which nothing is kept in memory but what the
// operating system keeps. It is there for as long as the device is.
type disk struct {
	device.Water
	device *Device
	bytes  int64
	file   file
}

// createFile makes a file of zeros that has its place on the disk, where the file
// system can promise that. Where an open file may be removed it is so at once: then
// nobody can cut it by its name, and the place is free again when the process ends,
// however it does.
func createFile(dir string, bytes int64) (file, error) {
	f, err := os.CreateTemp(dir, "gomem-*.disk")
	if err != nil {
		return nil, err
	}
	if err := reserve(f, bytes); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "reserve", Path: f.Name(), Err: err}, f.Close(),
			os.Remove(f.Name()))
	}
	if os.Remove(f.Name()) != nil {
		return named{f}, nil
	}
	return f, nil
}

// named is a file that is removed when it is closed.
type named struct{ *os.File }

// Close closes and removes the file.
func (n named) Close() error { return errors.Join(n.File.Close(), os.Remove(n.Name())) }

// allocDisk makes a memory in a file of its own.
func (d *Device) allocDisk(bytes int64) (device.Memory, error) {
	f, err := d.create(d.options.DiskDir, bytes)
	if err != nil {
		return nil, fmt.Errorf("cpu device: %d bytes of disk: %w", bytes, err)
	}
	m := &disk{device: d, bytes: bytes, file: f}
	d.disks = append(d.disks, m)
	return m, nil
}

func (m *disk) Space() space.ID { return diskSpace }
func (m *disk) Bytes() int64    { return m.bytes }

// Write copies data to an address of the file.
func (m *disk) Write(off int64, data []byte) error { return m.access(off, data, m.store) }

// Read copies bytes from an address of the file.
func (m *disk) Read(off int64, data []byte) error { return m.access(off, data, m.load) }

func (m *disk) access(off int64, data []byte, move func(off int64, data []byte) error) error {
	r := device.Region{Mem: m, Off: off, Bytes: int64(len(data))}
	if err := r.Check(); err != nil {
		return err
	}
	m.Touch(off + r.Bytes)
	return move(off, data)
}

// load fills data from the file, store writes it there. Errors name the file.
func (m *disk) load(off int64, data []byte) error { return m.move(off, data, m.file.ReadAt) }

func (m *disk) store(off int64, data []byte) error { return m.move(off, data, m.file.WriteAt) }

// move reads or writes block by block. The file has all its bytes at any time; so if
// it has fewer, somebody has cut it, and what is read might be zeros that nobody
// wrote.
func (m *disk) move(off int64, data []byte, block func(p []byte, off int64) (int, error)) error {
	for len(data) > 0 {
		if err := m.whole(); err != nil {
			return err
		}
		part := data[:min(len(data), diskBlock)]
		n, err := block(part, off)
		off, data = off+int64(n), data[n:]
		switch {
		case n == len(part): // io.EOF may say that there is no more
		case err == nil || err == io.EOF:
			return m.fail(off, io.ErrUnexpectedEOF)
		default:
			return m.fail(off, err)
		}
	}
	return nil
}

// whole reports a file that is shorter than it was made.
func (m *disk) whole() error {
	info, err := m.file.Stat()
	if err != nil {
		return m.fail(0, err)
	}
	if info.Size() < m.bytes {
		return m.fail(info.Size(), fmt.Errorf("cut to %d of %d bytes: %w", info.Size(), m.bytes,
			io.ErrUnexpectedEOF))
	}
	return nil
}

// fail is an error at an address, with the file's name once.
func (m *disk) fail(off int64, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == m.file.Name() {
		return fmt.Errorf("at byte %d: %w", off, err)
	}
	return fmt.Errorf("%s: at byte %d: %w", m.file.Name(), off, err)
}
