package arrays

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
)

// mostRatio is how many bytes a compressed byte stands for at most: deflate has 258 bytes in two
// bits.
const mostRatio = 1032

// readArchive reads an .npz file.
func readArchive(path string) ([]Array, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return readZip(f, info.Size())
}

// readZip reads the arrays of a zip file of size bytes.
func readZip(in io.ReaderAt, size int64) ([]Array, error) {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return nil, fmt.Errorf("it is no .npz file: %w", err)
	}
	var list []Array
	seen := map[string]bool{}
	var claimed uint64
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, suffix)
		if claimed += f.CompressedSize64; !ok || seen[name] || claimed > uint64(size) {
			return nil, fmt.Errorf("member %q is no .npy file, is there twice, or overlaps another",
				f.Name)
		}
		seen[name] = true
		v, err := readMember(f)
		if err != nil {
			return nil, of(name, err)
		}
		list = append(list, Array{name, v})
	}
	return list, nil
}

// readMember reads a member of an archive.
func readMember(f *zip.File) (v tensor.View, err error) {
	const encrypted = 1
	switch {
	case f.Flags&encrypted != 0:
		return v, errors.New("it is encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return v, fmt.Errorf("it is compressed by method %d: save it with numpy.savez", f.Method)
	case f.UncompressedSize64/mostRatio > f.CompressedSize64:
		return v, fmt.Errorf("it is said to have %d bytes, which %d compressed ones cannot be",
			f.UncompressedSize64, f.CompressedSize64)
	}
	in, err := f.Open()
	if err != nil {
		return v, err
	}
	defer in.Close()
	if v, err = readArray(in, int64(f.UncompressedSize64)); err != nil {
		return v, err
	}
	if _, err = in.Read(make([]byte, 1)); err != io.EOF { // where the checksum is compared
		return v, fmt.Errorf("it is damaged: %w", err)
	}
	return v, nil
}

// Write writes an .npz file as numpy.savez does, which is a function of the arrays alone. Elements
// that NumPy does not have, bfloat16, are an error.
func Write(w io.Writer, list []Array) error {
	z := zip.NewWriter(w)
	for _, a := range list {
		head, err := header(a.Type)
		if err != nil {
			return of(a.Name, err)
		}
		f, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + suffix, Method: zip.Store})
		if err != nil {
			return err
		}
		for _, part := range [][]byte{head, a.Data} {
			if _, err := f.Write(part); err != nil {
				return err
			}
		}
	}
	return z.Close()
}
