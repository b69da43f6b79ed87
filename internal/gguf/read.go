package gguf

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/regular"
)

// Magic is what every file begins with.
const Magic = "GGUF"

// maxHeader is the most bytes of a header: the largest vocabularies have some 20 MiB.
const maxHeader = 256 << 20

// alignmentKey says what tensors begin at multiples of, if it is not alignment.
const (
	alignmentKey = "general.alignment"
	alignment    = 32
)

// File is an open file whose header has been checked. Its methods may be called by any number of
// goroutines until it is closed.
type File struct {
	path    string
	r       io.ReaderAt
	close   func() error
	data    int64 // where the data begins
	values  Metadata
	tensors []Tensor
	byName  map[string]int
	state   fs.FileInfo // when it was opened; nil of what Read read
}

// Open opens and checks the file at path. One that is not as the format demands, or cannot be read,
// gives an *[Error].
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: regular.Bare(err)}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, &Error{Path: path, Err: cmp.Or(regular.Bare(err), f.Close())}
	}
	out, err := read(f, info.Size())
	if err != nil {
		return nil, cmp.Or[error](&Error{Path: path, Err: err}, f.Close())
	}
	out.path, out.close, out.state = path, f.Close, info
	return out, nil
}

// Index is the file without its values, closed: to open it again by [File.Reopen], which a header
// of some MiB makes slow otherwise.
func (f *File) Index() *File {
	return &File{path: f.path, data: f.data, tensors: f.tensors, byName: f.byName, state: f.state}
}

// Reopen opens the file of an index. One that has changed since gives an *[Error].
func (f *File) Reopen() (*File, error) {
	r, err := regular.Open(f.path)
	if err != nil {
		return nil, &Error{Path: f.path, Err: regular.Bare(err)}
	}
	info, err := r.Stat()
	if err == nil && (info.Size() != f.state.Size() || !info.ModTime().Equal(f.state.ModTime())) {
		err = errors.New("it has changed since it was opened first")
	}
	if err != nil {
		return nil, &Error{Path: f.path, Err: cmp.Or(regular.Bare(err), r.Close())}
	}
	out := *f
	out.r, out.close = r, r.Close
	return &out, nil
}

// Is reports whether the file at path begins as one of GGUF does.
func Is(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	begins := make([]byte, len(Magic))
	_, err = f.ReadAt(begins, 0)
	return err == nil && string(begins) == Magic
}

// Read checks the header of the file whose size bytes r has. Tensors are read later, by
// [File.ReadPart]. Errors are *[Error]s.
func Read(r io.ReaderAt, size int64) (*File, error) {
	f, err := read(r, size)
	if err != nil {
		return nil, &Error{Err: err}
	}
	return f, nil
}

func read(r io.ReaderAt, size int64) (*File, error) {
	whole := min(size, maxHeader)
	d := &decoder{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, whole), 1<<16),
		left: uint64(whole)}
	tensors, keys := d.start()
	f := &File{r: r, close: func() error { return nil }, byName: map[string]int{}}
	f.values = d.metadata(keys)
	f.tensors = several(d, tensors, 24, d.tensor)
	if d.err != nil {
		return nil, d.err
	}
	align, err := f.values.alignment()
	if err != nil {
		return nil, err
	}
	f.data = padded(whole-int64(d.left), align)
	return f, f.place(size, align)
}

// start reads what is before the keys.
func (d *decoder) start() (tensors, keys uint64) {
	begins := make([]byte, len(Magic))
	d.read(begins)
	if d.err == nil && string(begins) != Magic {
		d.fail("it begins with %q, where GGUF's files have %q", begins, Magic)
	}
	var version uint32
	d.read(&version)
	switch {
	case d.err != nil || version == 2 || version == 3:
	case version&0xffff == 0:
		d.fail("its numbers are big endian: want little endian")
	default:
		d.fail("its version is %d: want 2 or 3", version)
	}
	d.read(&tensors)
	d.read(&keys)
	return tensors, keys
}

// tensor reads what a header says of a tensor.
func (d *decoder) tensor() Tensor {
	t := Tensor{Name: d.text()}
	var axes uint32
	if d.read(&axes); axes > maxAxes {
		d.fail("tensor %s has %d axes: want %d at most", shown(t.Name), axes, maxAxes)
		return t
	}
	t.Sizes = make([]int, axes)
	for i := range t.Sizes {
		var n uint64
		if d.read(&n); n > math.MaxInt32 {
			d.fail("tensor %s has an axis of %d elements", shown(t.Name), n)
		}
		t.Sizes[len(t.Sizes)-1-i] = int(min(n, math.MaxInt32))
	}
	var off uint64
	d.read(&t.Type)
	if d.read(&off); off > math.MaxInt64 {
		d.fail("tensor %s is at %d, which no file has", shown(t.Name), off)
	}
	t.off = int64(min(off, math.MaxInt64))
	return t
}

// alignment is what tensors begin at multiples of.
func (m Metadata) alignment() (int64, error) {
	switch n := m.Get(alignmentKey).(type) {
	case nil:
		return alignment, nil
	case uint32:
		if n >= 1 && n <= 1<<20 && n&(n-1) == 0 {
			return int64(n), nil
		}
	}
	return 0, fmt.Errorf("%s is %v: want a power of two up to 2^20, as a u32", alignmentKey,
		m.Get(alignmentKey))
}

// padded is the next multiple of the alignment.
func padded(n, align int64) int64 { return (n + align - 1) / align * align }

// place demands that the tensors are one after the other, within the file.
func (f *File) place(size, align int64) error {
	var next int64
	for i := range f.tensors {
		t := &f.tensors[i]
		if err := t.measure(); err != nil {
			return err
		}
		if _, twice := f.byName[t.Name]; twice {
			return t.fail("is there twice")
		}
		f.byName[t.Name] = i
		switch {
		case t.off != next:
			return t.fail("is at %d: want %d, behind the one before it", t.off, next)
		case t.bytes > size-f.data-t.off:
			return t.fail("has %d bytes at %d, of %d there are: the file is truncated", t.bytes,
				f.data+t.off, size)
		}
		next = padded(t.off+t.bytes, align)
	}
	return nil
}

// fail is an error of a tensor.
func (t Tensor) fail(format string, args ...any) error {
	return fmt.Errorf("tensor %s %s", shown(t.Name), fmt.Sprintf(format, args...))
}

// shown is a name as errors show it.
func shown(name string) string { return legible.Cut(name, 100) }

// Metadata are the file's values. The caller may not change them.
func (f *File) Metadata() Metadata { return f.values }

// Tensors are those of the file, in its order. The caller may not change them.
func (f *File) Tensors() []Tensor { return f.tensors }

// Tensor is the one of a name, if there is one.
func (f *File) Tensor(name string) (t Tensor, ok bool) {
	i, ok := f.byName[name]
	if ok {
		t = f.tensors[i]
	}
	return t, ok
}

// ReadPart reads those bytes of a tensor that begin at an offset. Errors are *[Error]s.
func (f *File) ReadPart(name string, into []byte, at int64) error {
	t, ok := f.Tensor(name)
	switch {
	case !ok:
		return &Error{f.path, fmt.Errorf("no tensor %s", shown(name))}
	case at < 0 || int64(len(into)) > t.bytes-at:
		return &Error{f.path, t.fail("has no %d bytes at %d: it has %d", len(into), at, t.bytes)}
	}
	if n, err := f.r.ReadAt(into, f.data+t.off+at); n < len(into) {
		return &Error{f.path, t.fail("cannot be read: %v", regular.Bare(err))}
	}
	return nil
}

// Close closes a file that Open opened; it does nothing for Read's.
func (f *File) Close() error { return f.close() }
