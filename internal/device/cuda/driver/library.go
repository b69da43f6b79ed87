//go:build linux && amd64 && !nocuda

package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// Options say where the libraries may be.
type Options struct {
	Dirs []string // looked through before all other folders
}

// MissingError says that a library was not found, or cannot be loaded.
type MissingError struct {
	Library string // what it is for: "CUDA driver"
	Name    string // its file: "libcuda.so.1"
	Err     error  // why a file that was found cannot be loaded; nil if none was found
}

// Error is one line.
func (e *MissingError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("no %s: %s not found", e.Library, e.Name)
	}
	return fmt.Sprintf("no %s: %s: %v", e.Library, e.Name, e.Err)
}

// Unwrap is the loader's error.
func (e *MissingError) Unwrap() error { return e.Err }

// OldError says that a library lacks a function.
type OldError struct {
	Library string // what it is for: "CUDA driver"
	Path    string // of the file
	Symbol  string // the function
}

// Error is one line.
func (e *OldError) Error() string {
	return fmt.Sprintf("the %s is too old: %s has no %s", e.Library, e.Path, e.Symbol)
}

// library is a loaded library with the addresses of its functions.
type library struct {
	path string
	fn   []uintptr
}

// dirs are the folders to look through, best first. The empty one stands for the dynamic
// linker's own search.
func (o Options) dirs() []string {
	dirs := slices.Concat(o.Dirs, filepath.SplitList(os.Getenv("GOMEM_CUDA_PATH")), []string{""})
	for _, p := range []string{"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
		"/usr/lib/wsl/lib", "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64",
		"/usr/lib/x86_64-linux-gnu", "/usr/lib64"} {
		dirs = append(dirs, newestFirst(p)...)
	}
	for _, root := range []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX"),
		"/opt/venv", "/usr/local", "/usr"} {
		if root != "" {
			dirs = append(dirs, newestFirst(root+"/lib/python3*/*-packages/nvidia/*/lib")...)
		}
	}
	return dirs
}

// newestFirst is what matches a pattern, the highest number first.
func newestFirst(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the patterns are ours, and well formed
	slices.Reverse(found)
	return found
}

// source says what to load a library from.
type source struct {
	what    string   // the library is for
	names   []string // of files, the best first
	beside  string   // a pattern of the names of files that are loaded first, less their version
	symbols []string // functions that it must have
	// parts are files that a file of a name loads itself when it is called, and ends the process
	// without: where one cannot be loaded now, neither can the file.
	parts map[string][]string
}

// load loads the first file that is there, and binds its functions.
func (s source) load(o Options) (*library, error) {
	missing := &MissingError{Library: s.what, Name: s.names[0]}
	for _, name := range s.names {
		for _, dir := range o.dirs() {
			path := filepath.Join(dir, name)
			handle, err := s.open(dir, name)
			switch {
			case err == nil:
				return s.bind(path, handle)
			case dir != "" && !errors.Is(err, fs.ErrNotExist):
				missing.Name, missing.Err = path, err
			}
		}
	}
	return nil, missing
}

// open loads a file of a folder, after what it needs from there: the linker finds that by name
// then, whatever run path the file has.
func (s source) open(dir, name string) (uintptr, error) {
	path := filepath.Join(dir, name)
	if dir != "" {
		if _, err := os.Stat(path); err != nil {
			return 0, err
		}
		if s.beside != "" {
			preload(newestFirst(filepath.Join(dir, s.beside+major(name)+"*")))
		}
	}
	for _, part := range s.parts[name] {
		if _, err := dlopen(filepath.Join(dir, part)); err != nil {
			return 0, err
		}
	}
	return dlopen(path)
}

// major is what the name of a library's file ends in, ".so.13", less what follows.
func major(name string) string {
	parts := strings.Split(name, ".")
	return "." + strings.Join(parts[1:min(3, len(parts))], ".")
}

// preload loads files that may need each other, in whatever order that works, and leaves out what
// does not: a library that cannot do without will tell.
func preload(files []string) {
	for before := len(files) + 1; len(files) < before; {
		before = len(files)
		files = slices.DeleteFunc(files, func(f string) bool {
			_, err := dlopen(f)
			return err == nil
		})
	}
}

// dlopen loads a file, for all that are loaded later.
func dlopen(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// elsewhere loads a library by name for one that will ask for it, from the first folder that has
// it.
func (o Options) elsewhere(what, name string) error {
	_, err := source{what: what, names: []string{name}}.load(o)
	return err
}

// bind finds the functions.
func (s source) bind(path string, handle uintptr) (*library, error) {
	l := &library{path: path, fn: make([]uintptr, len(s.symbols))}
	for i, name := range s.symbols {
		var err error
		if l.fn[i], err = purego.Dlsym(handle, name); err != nil {
			return nil, &OldError{s.what, path, name}
		}
	}
	return l, nil
}

// versions are the file names of a toolkit's library, those of the driver's own version
// first: an older driver runs no newer library. NVRTC's of CUDA 11 is called 11.2.
func versions(base string, driver int) []string {
	if driver >= 13000 {
		return []string{base + ".so.13", base + ".so.12", base + ".so"}
	}
	return []string{base + ".so.12", base + ".so.11", base + ".so.11.2", base + ".so"}
}

// version prints as CUDA does: 13000 is 13.0.
func version(v int) string { return strings.TrimSpace(fmt.Sprintf("%d.%d", v/1000, v%1000/10)) }
