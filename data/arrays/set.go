package arrays

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
)

// Array is an array with its name.
type Array struct {
	Name string
	tensor.View
}

// Set is arrays of different names, in the order of these, in memory.
type Set struct {
	Spec   string
	Arrays []Array
	SHA256 string // of names, types and elements, whatever the form
}

// Open reads "npz:FILE", "npz:DIR" or "tensors:FILE". The error is a *[data.Error].
func Open(spec string) (*Set, error) {
	form, path, ok := strings.Cut(spec, ":")
	read, known := map[string]func(string) ([]Array, error){"npz": readNumPy,
		"tensors": readTensors}[form]
	if !ok || !known || path == "" {
		return nil, &data.Error{Spec: spec, Misspelt: true,
			Err: errors.New("give npz:FILE, npz:DIR or tensors:FILE")}
	}
	list, err := read(path)
	if err == nil && len(list) == 0 {
		err = errors.New("it has no arrays")
	}
	if err != nil {
		return nil, &data.Error{Spec: spec, Path: path, Err: data.Remedied(err)}
	}
	slices.SortFunc(list, func(a, b Array) int { return strings.Compare(a.Name, b.Name) })
	s := &Set{Spec: spec, Arrays: list}
	sum := sha256.New()
	for _, a := range list {
		fmt.Fprintf(sum, "%q %s\n", a.Name, tensor.Of(a.Type.DType, a.Type.Sizes()...))
		sum.Write(a.Data)
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// Get is the array of a name.
func (s *Set) Get(name string) (tensor.View, bool) {
	i := slices.IndexFunc(s.Arrays, func(a Array) bool { return a.Name == name })
	if i < 0 {
		return tensor.View{}, false
	}
	return s.Arrays[i].View, true
}

// String lists the arrays: "image f32[60000 28 28], label i64[60000]".
func (s *Set) String() string {
	var list []string
	for _, a := range s.Arrays {
		list = append(list, fmt.Sprintf("%s %s", legible.Cut(a.Name, 60), a.Type))
	}
	return strings.Join(list, ", ")
}

// readNumPy reads an archive or a directory.
func readNumPy(path string) ([]Array, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readDir(path)
	}
	return readArchive(path)
}

// suffix ends the names of files of one array.
const suffix = ".npy"

// readDir reads the .npy files of a directory; other files are passed over.
func readDir(dir string) ([]Array, error) {
	files, err := filepath.Glob(filepath.Join(globbed(dir), "*"+suffix))
	if err != nil {
		return nil, err
	}
	var list []Array
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), suffix)
		v, err := readFile(file)
		if err != nil {
			return nil, of(name, err)
		}
		list = append(list, Array{name, v})
	}
	return list, nil
}

// globbed is a directory as a pattern that is for it alone.
func globbed(dir string) string {
	if os.PathSeparator == '\\' {
		return dir // where nothing can be escaped
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

func readFile(path string) (v tensor.View, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return v, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return v, err
	}
	return readArray(f, info.Size())
}

// of says which array an error is of.
func of(name string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("array %q: %w", legible.Cut(name, 60), err)
}

// readTensors reads a file of tensors.
func readTensors(path string) ([]Array, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if more := f.Foreign(); len(more) > 0 {
		return nil, fmt.Errorf("array %q has elements %s, which are not computed with",
			legible.Cut(more[0].Name, 60), legible.Cut(more[0].Type, 20))
	}
	var list []Array
	for _, e := range f.Entries() {
		v, err := f.Get(e.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, Array{e.Name, v})
	}
	return list, nil
}
