package onnx

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
)

// File is a model with the directory in which its external data are.
type File struct {
	*Model
	Path string
}

// mostBytes is what a message of protobuf may have; larger models have external data.
const mostBytes = 1 << 31

// Open reads a file. Weights in other files are read when they are asked for.
func Open(path string) (*File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > mostBytes {
		err = fmt.Errorf("%s is larger than 2 GiB, which no message of protobuf is", path)
	}
	if err != nil {
		return nil, err
	}
	data, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{m, path}, nil
}

// View is a copy of a tensor of the model.
func (f *File) View(t *Tensor) (v tensor.View, err error) {
	var data []byte
	if t.External != nil {
		if data, err = f.external(t); err != nil {
			return v, fmt.Errorf("%s: tensor %q: %w", f.Path, t.Name, err)
		}
	}
	if v, err = t.View(data); err != nil {
		return v, fmt.Errorf("%s: %w", f.Path, err)
	}
	return v, nil
}

// external reads what a tensor has in another file, which may be nowhere but below the model's
// directory.
func (f *File) external(t *Tensor) ([]byte, error) {
	kind, err := t.Kind()
	if err != nil {
		return nil, err
	}
	e := t.External
	if e.Length >= 0 && e.Length != kind.Bytes() {
		return nil, fmt.Errorf("%s has %d bytes of it, and %s takes %d", e.Location, e.Length, kind,
			kind.Bytes())
	}
	dir, err := os.OpenRoot(filepath.Dir(f.Path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	name := filepath.FromSlash(e.Location)
	info, err := dir.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || e.Offset > info.Size() ||
		kind.Bytes() > info.Size()-e.Offset {
		return nil, fmt.Errorf("%s has %d bytes, too few for %s from %d on", e.Location,
			info.Size(), kind, e.Offset)
	}
	in, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data := make([]byte, kind.Bytes())
	_, err = io.ReadFull(io.NewSectionReader(in, e.Offset, kind.Bytes()), data)
	return data, err
}
