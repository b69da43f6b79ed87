package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
)

// Entry is a tensor of a file: its name and type. Axes have no names.
type Entry struct {
	Name string
	Type tensor.Type
	off  int64  // of its bytes, from the start of the data
	size int64  // of its bytes in a file that was read
	code string // the element type of one that is foreign
}

// Foreign is a tensor of a file whose elements are of a type that tensors here do not have.
// It cannot be read.
type Foreign struct {
	Name string
	Type string // in the format's words, and the axes: F8_E4M3[8 2]
}

// File is an open file whose header has been checked. Its methods may be called
// by any number of goroutines until it is closed.
type File struct {
	path     string
	r        io.ReaderAt
	close    func() error
	data     int64 // where the data starts
	metadata map[string]string
	entries  []Entry // in order of their data
	foreign  []Foreign
	byName   map[string]int
	sums     []uint32 // of the entries' data; nil if the file is not sealed
}

// Open opens and checks the file at path. A file that is not as the format
// demands, or cannot be read, gives an *[Error].
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: regular.Bare(err)}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, &Error{Path: path, Err: cmp.Or(regular.Bare(err), f.Close())}
	}
	out, err := Read(f, info.Size())
	if err != nil {
		return nil, cmp.Or(named(err, path), f.Close())
	}
	out.path, out.close = path, f.Close
	return out, nil
}

// named adds the path to an error of this package.
func named(err error, path string) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Path: path, Tensor: e.Tensor, Err: e.Err}
	}
	return &Error{Path: path, Err: err}
}

// Read checks the header of the file whose size bytes r has. The data is read
// later, by [File.Get].
func Read(r io.ReaderAt, size int64) (*File, error) {
	raw, err := readHeader(r, size)
	if err != nil {
		return nil, named(err, "")
	}
	f := &File{r: r, close: func() error { return nil }, data: 8 + int64(len(raw)),
		byName: map[string]int{}}
	all, metadata, err := parseHeader(raw, size-f.data)
	if err != nil {
		return nil, named(err, "")
	}
	if err := tile(all, size-f.data); err != nil {
		return nil, err
	}
	f.metadata = metadata
	f.list(all)
	if f.sums, err = unseal(f.entries, f.metadata); err != nil {
		return nil, named(err, "")
	}
	return f, nil
}

func readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	var length [8]byte
	if size < 8 {
		return nil, fmt.Errorf("%d bytes are too few for the length of the header: the file is "+
			"truncated", size)
	}
	if err := readFull(r, length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > maxHeader:
		return nil, fmt.Errorf("header of %d bytes: at most %d are allowed; not a safetensors "+
			"file?",
			n, maxHeader)
	case n > uint64(size-8):
		return nil, fmt.Errorf("header of %d bytes, but only %d follow: the file is truncated", n,
			size-8)
	}
	raw := make([]byte, n)
	return raw, readFull(r, raw, 8)
}

func readFull(r io.ReaderAt, into []byte, off int64) error {
	if n, err := r.ReadAt(into, off); n < len(into) {
		return fmt.Errorf("read %d of %d bytes at offset %d: %w", n, len(into), off, err)
	}
	return nil
}

// tile sorts the entries by their data and demands that they cover all of it
// without holes or overlaps.
func tile(entries []Entry, data int64) error {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.size, b.size),
			cmp.Compare(a.Name, b.Name)) // of those without bytes many are in one place
	})
	var end int64
	for i, e := range entries {
		switch {
		case e.off < end:
			return tensorError(e.Name, "overlaps tensor %q", entries[i-1].Name)
		case e.off > end:
			return tensorError(e.Name, "%d bytes before it belong to no tensor", e.off-end)
		}
		end += e.size
	}
	if end != data {
		return &Error{Err: fmt.Errorf("%d bytes after the last tensor", data-end)}
	}
	return nil
}

// list sets tensors that can be read apart from those that cannot.
func (f *File) list(all []Entry) {
	for _, e := range all {
		if e.code != "" {
			f.foreign = append(f.foreign, Foreign{e.Name, e.typeText()})
			continue
		}
		f.byName[e.Name] = len(f.entries)
		f.entries = append(f.entries, e)
	}
}

// Metadata are the strings of the file but for checksums; never nil. The caller
// may not change them.
func (f *File) Metadata() map[string]string { return f.metadata }

// Sealed reports whether the file has checksums. Those of the header are right
// then, and Get compares a tensor's.
func (f *File) Sealed() bool { return f.sums != nil }

// Entries are the tensors in order of their data, but for those of [File.Foreign]. The
// caller may not change them.
func (f *File) Entries() []Entry { return f.entries }

// Foreign are the tensors that cannot be read, in order of their data.
func (f *File) Foreign() []Foreign { return f.foreign }

// Get reads a tensor into memory of its own. A missing tensor, a failed read or
// bytes that are not those which a sealed file was written with give an *[Error].
func (f *File) Get(name string) (tensor.View, error) {
	i, err := f.find(name)
	if err != nil {
		return tensor.View{}, err
	}
	e := f.entries[i]
	v := tensor.New(e.Type)
	if err := readFull(f.r, v.Data, f.data+e.off); err != nil {
		return tensor.View{}, f.fail(name, err)
	}
	if f.Sealed() && checksum(v.Data) != f.sums[i] {
		return tensor.View{}, f.fail(name, ErrChecksum)
	}
	if err := checkBool(v, 0); err != nil {
		return tensor.View{}, f.fail(name, err)
	}
	return v, nil
}

// checkBool reports a byte that is no truth value, of elements from the one of a number on.
func checkBool(v tensor.View, at int64) error {
	if v.Type.DType != tensor.Bool {
		return nil
	}
	for i, b := range v.U8() {
		if b > 1 {
			return fmt.Errorf("element %d is %d, which is no truth value", at+int64(i), b)
		}
	}
	return nil
}

// Close closes a file that Open opened; it does nothing for Read's.
func (f *File) Close() error { return f.close() }
