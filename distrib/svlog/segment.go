package svlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// suffix ends the names of segments.
const suffix = ".svlog"

// nameOf is the file of a segment.
func nameOf(number int) string { return fmt.Sprintf("%08d%s", number, suffix) }

// segmentsOf are the numbers of the segments in a directory, ascending.
func segmentsOf(dir string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, f := range files {
		digits, ok := strings.CutSuffix(f.Name(), suffix)
		if n, err := strconv.Atoi(digits); ok && err == nil && nameOf(n) == f.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// DamageError says that what was on the disk once is not whole.
type DamageError struct {
	Path   string
	Offset int64 // of the first record that is not
	Clock  int64 // the last that was reached before it; -1: none
	What   string
}

// Error is one line.
func (e *DamageError) Error() string {
	after := "before its first clock"
	if e.Clock >= 0 {
		after = fmt.Sprintf("after clock %d", e.Clock)
	}
	return fmt.Sprintf("%s is damaged at byte %d, %s: %s", e.Path, e.Offset, after, e.What)
}

// segment is a file of a log that is read.
type segment struct {
	path string
	file io.ReaderAt
	size int64
	last bool // of those that there are: it may have a torn tail
}

// reading opens a segment.
func reading(dir string, numbers []int, i int) (*segment, func() error, error) {
	path := filepath.Join(dir, nameOf(numbers[i]))
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	ahead := &ahead{of: f, buf: make([]byte, 0, min(window, info.Size()))}
	return &segment{path, ahead, info.Size(), i == len(numbers)-1}, f.Close, nil
}

// ahead reads a file from front to back in windows.
type ahead struct {
	of  io.ReaderAt
	buf []byte // what is at at
	at  int64
}

// ReadAt reads from the window, which is moved to where that does not have all.
func (a *ahead) ReadAt(p []byte, at int64) (int, error) {
	if len(p) >= cap(a.buf) {
		return a.of.ReadAt(p, at)
	}
	if at < a.at || at+int64(len(p)) > a.at+int64(len(a.buf)) {
		n, err := a.of.ReadAt(a.buf[:cap(a.buf)], at)
		if a.buf, a.at = a.buf[:n], at; err != nil && err != io.EOF {
			return 0, err
		}
	}
	n := copy(p, a.buf[at-a.at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// each yields the records in order, and returns where the last ends: at the end of the file,
// or before a tail that was being written when the log ended. It is a *[DamageError] if what
// is not whole had been on the disk, or what yield returned.
func (s *segment) each(yield func(at int64, r record) error) (end int64, err error) {
	clock := int64(-1)
	for end < s.size {
		r, err := readRecord(s.file, end, s.size)
		if errors.Is(err, errBad) {
			if s.last && !s.durable(end) {
				return end, nil
			}
			return end, s.damage(end, clock, "no whole record is there")
		}
		if err != nil {
			return end, err
		}
		if err := yield(end, r); err != nil {
			return end, err
		}
		if r.kind == kindMark {
			clock = r.clock
		}
		end += r.size()
	}
	return end, nil
}

func (s *segment) damage(at, clock int64, what string) error {
	return &DamageError{s.path, at, clock, what}
}

// window is how much of a file is read at once.
const window = 256 << 10

// durable reports whether what is at an offset had been on the disk: a record behind it says
// so, which was written only after that.
func (s *segment) durable(at int64) bool {
	mark := binary.LittleEndian.AppendUint32(nil, magic)
	buf := make([]byte, min(window/2, s.size-at))
	for from := at; from < s.size; from += int64(max(len(buf)-len(mark)+1, 1)) {
		n, err := s.file.ReadAt(buf, from)
		if err != nil && err != io.EOF {
			return true // it cannot be read: then nothing may be thrown away
		}
		for i := 0; ; i++ {
			k := bytes.Index(buf[i:n], mark)
			if k < 0 {
				break
			}
			i += k
			if s.vouches(from+int64(i), at) {
				return true
			}
		}
	}
	return false
}

// vouches reports whether there is a record at an offset that says that another one had been
// on the disk before it. The head is looked at first: bodies are long.
func (s *segment) vouches(at, of int64) bool {
	var h [headSize]byte
	if s.size-at < headSize {
		return false
	}
	if _, err := s.file.ReadAt(h[:], at); err != nil {
		return true
	}
	if r, _, ok := parseHead(h[:]); !ok || r.synced <= of {
		return false
	}
	_, err := readRecord(s.file, at, s.size)
	return !errors.Is(err, errBad)
}
