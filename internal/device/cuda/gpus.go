//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// GPUs describes the machine's GPUs, with the libraries that are found in dirs or where
// libraries usually are. The error says why there are none.
func GPUs(dirs []string) ([]Info, error) {
	d, err := driver.Load(driver.Options{Dirs: dirs})
	if err != nil {
		return nil, err
	}
	n, err := d.Count()
	if err != nil {
		return nil, err
	}
	var list []Info
	for i := range n {
		info, err := described(d, i)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		list = append(list, info)
	}
	return list, nil
}

// Find describes a GPU by its number without taking any of its memory: Free is not known. The
// error wraps [ErrNone] where the machine has no driver, or shows no GPU.
func Find(dirs []string, number int) (Info, error) {
	d, err := driver.Load(driver.Options{Dirs: dirs})
	if err != nil {
		return Info{}, none(err)
	}
	g, err := d.Look(number)
	if err != nil {
		return Info{}, none(err)
	}
	return describe(g), nil
}

// Count is the number of the machine's GPUs. The error says why it is not known.
func Count(dirs []string) (int, error) {
	d, err := driver.Load(driver.Options{Dirs: dirs})
	if err != nil {
		return 0, err
	}
	return d.Count()
}

// none wraps ErrNone in an error that says that there is nothing to use, rather than that
// something is wrong with it.
func none(err error) error {
	missing, absent := errors.AsType[*driver.MissingError](err)
	hidden, failed := errors.AsType[*driver.Error](err)
	if absent && missing.Err == nil || failed && hidden.NoDevice() {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return err
}

// described is a GPU with what it has free, which takes a context.
func described(d *driver.Driver, number int) (info Info, err error) {
	g, err := d.Open(number)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	err = g.Bound(func() (err error) {
		info = describe(g)
		info.Free, _, err = g.Free()
		return err
	})
	return info, err
}

// describe says what a GPU is, and whether the libraries are there that it takes.
func describe(g *driver.GPU) Info {
	info := Info{Name: g.Name, Bus: g.Bus, Memory: g.Memory, Units: g.Units, CopyEngines: g.Copiers,
		Capability: fmt.Sprintf("%d.%d", g.Capability/10, g.Capability%10), Driver: g.String()}
	compiler, err1 := g.Compiler()
	if err1 == nil {
		info.Compiler = "NVRTC " + compiler.Version
	}
	blas, err2 := g.Blas()
	if err2 == nil {
		info.Products, info.ProductsFile = "cuBLAS "+blas.Version, blas.Path
	}
	info.Convolutions = "own convolutions"
	switch dnn, err := library(g); {
	case err != nil:
		info.Convolutions = err.Error()
	case dnn != nil:
		info.Convolutions = "cuDNN " + dnn.Version
	}
	for _, err := range []error{err2, err1} {
		if err != nil {
			info.Why = err.Error()
		}
	}
	return info
}
