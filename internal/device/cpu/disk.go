package cpu

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan/space"
)

// diskSpace is the space whose memories are files.
const diskSpace = space.Host + 1

// file is what a disk memory needs of a file.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
}

// disk is a memory in a file, of which nothing is kept in memory but checksums, and what
// the operating system keeps. It is there for as long as the device is.
type disk struct {
	device.Water
	device *Device
	bytes  int64
	file   file

	sections []section
	spare    sync.Pool // of *[pageBytes]byte
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
	m := &disk{device: d, bytes: bytes, file: f,
		sections: make([]section, (bytes+sectionBytes-1)/sectionBytes),
		spare:    sync.Pool{New: func() any { return new([pageBytes]byte) }}}
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

// load fills data from the file, and checks that it is what was written there; store
// writes data there. Errors name the file.
func (m *disk) load(off int64, data []byte) error { return m.move(off, data, m.loadFrom) }

func (m *disk) store(off int64, data []byte) error { return m.move(off, data, m.storeIn) }

// move reads or writes section by section. The file has all its bytes at any time; so if it
// has fewer, somebody has cut it.
func (m *disk) move(off int64, data []byte, of func(i int64, lo int, data []byte) error) error {
	for len(data) > 0 {
		if err := m.whole(); err != nil {
			return err
		}
		lo := int(off % sectionBytes)
		n := min(len(data), sectionBytes-lo)
		if err := of(off/sectionBytes, lo, data[:n]); err != nil {
			return err
		}
		off, data = off+int64(n), data[n:]
	}
	return nil
}

// loadFrom reads bytes of a section. A page of which they have a part is read as a whole,
// since only a whole page can be checked.
func (m *disk) loadFrom(i int64, lo int, data []byte) error {
	s := &m.sections[i]
	s.RLock()
	defer s.RUnlock()
	from, to := lo, lo+len(data)
	for _, q := range s.pages.cut(lo, to) {
		err := m.part(i, q, from, to, func(part []byte) {
			copy(data[max(int(q.lo), lo)-lo:], part)
		})
		if err != nil {
			return err
		}
		if int(q.lo) < lo {
			from = min(int(q.hi), to)
		} else {
			to = int(q.lo)
		}
	}
	if from == to {
		return nil
	}
	return m.read(i, from, data[from-lo:to-lo])
}

// storeIn writes bytes of a section. A page of which they take a part is read first, since
// what stays of it becomes a page of its own.
func (m *disk) storeIn(i int64, lo int, data []byte) error {
	s, hi := &m.sections[i], lo+len(data)
	s.Lock()
	defer s.Unlock()
	var before, after []page
	for _, q := range s.pages.cut(lo, hi) {
		err := m.part(i, q, 0, lo, func(part []byte) { before = sumsOf(int(q.lo), part) })
		if err == nil {
			err = m.part(i, q, hi, sectionBytes, func(part []byte) { after = sumsOf(hi, part) })
		}
		if err != nil {
			return err
		}
	}
	first, last := s.pages.within(lo, hi)
	s.pages = slices.Replace(s.pages, first, last, slices.Concat(before, after)...)
	n, err := m.file.WriteAt(data, i*sectionBytes+int64(lo))
	if err := m.moved(i, lo, data, n, err); err != nil {
		return err
	}
	s.pages = slices.Insert(s.pages, first+len(before), sumsOf(lo, data)...)
	return nil
}

// part calls do with the bytes of a page that are from lo to hi, if there are any.
func (m *disk) part(i int64, q page, lo, hi int, do func([]byte)) error {
	lo, hi = max(lo, int(q.lo)), min(hi, int(q.hi))
	if lo >= hi {
		return nil
	}
	spare := m.spare.Get().(*[pageBytes]byte)
	defer m.spare.Put(spare)
	data := spare[:q.hi-q.lo]
	if err := m.read(i, int(q.lo), data); err != nil {
		return err
	}
	do(data[lo-int(q.lo) : hi-int(q.lo)])
	return nil
}

// read reads bytes of a section, which cut no page, and checks them.
func (m *disk) read(i int64, lo int, data []byte) error {
	n, err := m.file.ReadAt(data, i*sectionBytes+int64(lo))
	if err := m.moved(i, lo, data, n, err); err != nil {
		return err
	}
	if at, damaged := m.sections[i].pages.damage(lo, data); damaged {
		return m.fail(i*sectionBytes+int64(at), device.ErrDamaged)
	}
	return nil
}

// moved reports that fewer bytes of a section than asked for were read or written; io.EOF
// beside all of them may say that there is no more.
func (m *disk) moved(i int64, lo int, data []byte, n int, err error) error {
	switch {
	case n == len(data):
		return nil
	case err == nil || err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return m.fail(i*sectionBytes+int64(lo+n), err)
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
	at := fmt.Sprintf("page %d, at byte %d", off/pageBytes, off)
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == m.file.Name() {
		return fmt.Errorf("%s: %w", at, err)
	}
	return fmt.Errorf("%s: %s: %w", m.file.Name(), at, err)
}
