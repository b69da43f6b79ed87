//go:build linux && amd64 && !nocuda

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/regular"
)

// code is the compiled kernels: those of [Options].Source, and modules of those that were written
// for launches.
type code struct {
	compiler *driver.Compiler
	module   *driver.Module
	written  []*driver.Module
	kernels  map[string]*driver.Kernel
	shared   map[string]uint32 // the most dynamic shared memory that a kernel was allowed
	waiting  []waiting         // launches of kernels that are not compiled yet
}

// waiting is a launch that becomes that of the kernel which was written for it.
type waiting struct {
	kernels.Kernel
	name, what string // of the task
	launch     **driver.Launch
}

// loadCode loads the kernels.
func (d *Device) loadCode() (err error) {
	d.code = code{kernels: map[string]*driver.Kernel{}, shared: map[string]uint32{}}
	if d.code.compiler, err = d.gpu.Compiler(); err != nil {
		return err
	}
	d.code.module, err = d.load(d.options.Source)
	return err
}

// load loads the kernels of a text, compiled now or by an earlier process.
func (d *Device) load(source string) (*driver.Module, error) {
	path := d.cached(source)
	if path != "" {
		if cubin, err := regular.ReadFile(path); err == nil {
			if m, err := d.gpu.Load(cubin); err == nil {
				return m, nil
			}
		}
	}
	cubin, err := d.code.compiler.Compile(source, "kernels")
	if err != nil {
		return nil, fmt.Errorf("the kernels do not compile: %w", err)
	}
	if path != "" {
		keep(path, cubin)
	}
	return d.gpu.Load(cubin)
}

// Compile compiles the kernels that were written for launches, in one module, and has them launched
// by these from then on.
func (d *Device) Compile() error {
	launches := d.code.waiting
	d.code.waiting = nil
	missing := map[string]*kernels.Written{}
	for _, l := range launches {
		if d.code.kernels[l.Written.Name] == nil {
			missing[l.Written.Name] = l.Written
		}
	}
	return d.bound(func() error {
		if err := d.compile(missing); err != nil {
			return fmt.Errorf("cuda device: %s, which can be interpreted instead: %w",
				d.chains(launches, missing), err)
		}
		for _, l := range launches {
			*l.launch = d.code.kernels[l.Written.Name].Prepare(l.Grid, l.Block, l.Shared,
				slices.Clone(l.Args))
		}
		return nil
	})
}

// chains names what does not compile: the operation whose kernel does not by itself, of which the
// kernel is that of the first launch; all of them if each does.
func (d *Device) chains(launches []waiting, missing map[string]*kernels.Written) string {
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		w := missing[name]
		if _, err := d.code.compiler.Compile(kernels.WrittenSource([]*kernels.Written{w}),
			"kernels"); err == nil {
			continue
		}
		for _, l := range launches {
			if l.Written.Name == name {
				return fmt.Sprintf("the kernel %s of the chain %s (%s)", name, l.name, l.what)
			}
		}
	}
	return fmt.Sprintf("the kernels of %d chains", len(missing))
}

// compile loads kernels that were written, by their names, which they are in the order of: plans
// that have the same ones find them compiled.
func (d *Device) compile(missing map[string]*kernels.Written) error {
	if len(missing) == 0 {
		return nil
	}
	var list []*kernels.Written
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		list = append(list, missing[name])
	}
	if log := d.options.Logger; log != nil {
		defer time.AfterFunc(patience, func() {
			log.Info("cuda: kernels of chains are being compiled, once for plans that have the "+
				"same", "chains", len(list))
		}).Stop()
	}
	m, err := d.load(kernels.WrittenSource(list))
	if err != nil {
		return err
	}
	d.code.written = append(d.code.written, m)
	for _, w := range list {
		if d.code.kernels[w.Name], err = m.Kernel(w.Name); err != nil {
			return err
		}
		if err := d.account.uses(d.code.kernels[w.Name]); err != nil {
			return err
		}
	}
	return nil
}

// patience is after how long somebody is told what takes so long.
const patience = 2 * time.Second

// closeCode unloads the kernels.
func (d *Device) closeCode() error {
	err := d.code.module.Close()
	for _, m := range d.code.written {
		err = errors.Join(err, m.Close())
	}
	return err
}

// cached is the file of the compiled kernels of a text, named after all that they depend on; none
// if there is no place for it.
func (d *Device) cached(source string) string {
	c, dir := d.code.compiler, d.options.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(user, "gomem", "cuda")
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%q\n%s", d.gpu.Name, c.Version, c.Options,
		source))
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
		if err := d.account.uses(k); err != nil {
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
