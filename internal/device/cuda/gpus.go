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
		info, err := describe(d, i)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		list = append(list, info)
	}
	return list, nil
}

func describe(d *driver.Driver, number int) (info Info, err error) {
	g, err := d.Open(number)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	defer g.Bind()()
	free, _, err := g.Free()
	if err != nil {
		return Info{}, err
	}
	info = Info{Name: g.Name, Memory: g.Memory, Free: free, Units: g.Units,
		Capability:  fmt.Sprintf("%d.%d", g.Capability/10, g.Capability%10),
		CopyEngines: g.Copiers, Driver: d.String()}
	compiler, err1 := g.Compiler()
	if err1 == nil {
		info.Compiler = "NVRTC " + compiler.Version
	}
	blas, err2 := g.Blas()
	if err2 == nil {
		info.Products = blas.Path
	}
	for _, err := range []error{err2, err1} {
		if err != nil {
			info.Why = err.Error()
		}
	}
	return info, nil
}
