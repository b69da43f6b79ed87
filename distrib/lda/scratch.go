package lda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// scratch is numbers in a file that nobody else sees. Where an open file may be removed it is so at
// once: then it is gone when the process ends, however it does. Elsewhere Close removes it.
type scratch[T uint16 | uint32] struct {
	file  *os.File
	named bool // it is still to be removed
}

func newScratch[T uint16 | uint32](dir string) (*scratch[T], error) {
	f, err := os.CreateTemp(dir, "gomem-*.lda")
	if err != nil {
		return nil, fmt.Errorf("lda: documents on the disk: %w", err)
	}
	return &scratch[T]{f, os.Remove(f.Name()) != nil}, nil
}

// chunk is how many bytes are read or written at a time.
const chunk = 1 << 16

// write puts numbers where there are so many before them.
func (s *scratch[T]) write(at int64, numbers []T) error {
	return s.each(at, numbers, func(off int64, buf []byte, some []T) error {
		if _, err := binary.Encode(buf, binary.LittleEndian, some); err != nil {
			return err
		}
		_, err := s.file.WriteAt(buf, off)
		return err
	})
}

// read takes numbers from where there are so many before them.
func (s *scratch[T]) read(at int64, numbers []T) error {
	return s.each(at, numbers, func(off int64, buf []byte, some []T) error {
		if _, err := s.file.ReadAt(buf, off); err != nil {
			return err
		}
		_, err := binary.Decode(buf, binary.LittleEndian, some)
		return err
	})
}

// each visits numbers by chunks, and where they are in the file.
func (s *scratch[T]) each(at int64, numbers []T,
	do func(off int64, buf []byte, some []T) error) error {
	size := binary.Size(T(0))
	buf := make([]byte, min(chunk, size*len(numbers)))
	for len(numbers) > 0 {
		some := numbers[:min(len(numbers), chunk/size)]
		if err := do(at*int64(size), buf[:size*len(some)], some); err != nil {
			return fmt.Errorf("lda: documents on the disk: %w", err)
		}
		at, numbers = at+int64(len(some)), numbers[len(some):]
	}
	return nil
}

// Close removes the file.
func (s *scratch[T]) Close() error {
	err := s.file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}
