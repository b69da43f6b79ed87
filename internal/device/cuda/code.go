//go:build linux && amd64 && !nocuda

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/internal/regular"
)

// code is the compiled kernels.
type code struct {
	module  *driver.Module
	kernels map[string]*driver.Kernel
	shared  map[string]uint32 // the most dynamic shared memory that a kernel was allowed
}

// loadCode loads the kernels, compiled now or by an earlier process.
func (d *Device) loadCode() error {
	d.code = code{kernels: map[string]*driver.Kernel{}, shared: map[string]uint32{}}
	compiler, err := d.gpu.Compiler()
	if err != nil {
		return err
	}
	path := d.cached(compiler)
	if path != "" {
		if cubin, err := regular.ReadFile(path); err == nil {
			if d.code.module, err = d.gpu.Load(cubin); err == nil {
				return nil
			}
		}
	}
	cubin, err := compiler.Compile(d.options.Source, "kernels")
	if err != nil {
		return fmt.Errorf("the kernels do not compile: %w", err)
	}
	if path != "" {
		keep(path, cubin)
	}
	d.code.module, err = d.gpu.Load(cubin)
	return err
}

// cached is the file of the compiled kernels, named after all that they depend on; none if
// there is no place for it.
func (d *Device) cached(c *driver.Compiler) string {
	dir := d.options.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(user, "gomem", "cuda")
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%q\n%s", d.gpu.Name, c.Version, c.Options,
		d.options.Source))
	return filepath.Join(dir, hex.EncodeToString(sum[:])+".cubin")
}

// keep writes a file at once. Without it the kernels are compiled again next time, which is
// no error.
func keep(path string, data []byte) {
	disk, dir, name := regular.OS{}, filepath.Dir(path), filepath.Base(path)
	if disk.MkdirAll(dir) == nil {
		_ = regular.Replace(disk, dir, name, func(f regular.File) error {
			_, err := f.Write(data)
			return err
		})
	}
}

// kernel is a function, allowed so much dynamic shared memory.
func (d *Device) kernel(name string, shared uint32) (*driver.Kernel, error) {
	k, ok := d.code.kernels[name]
	if !ok {
		var err error
		if k, err = d.code.module.Kernel(name); err != nil {
			return nil, err
		}
		d.code.kernels[name] = k
	}
	if shared > d.code.shared[name] {
		if err := k.Allow(shared); err != nil {
			return nil, err
		}
		d.code.shared[name] = shared
	}
	return k, nil
}
