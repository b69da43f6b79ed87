//go:build linux && amd64 && !nocuda

package ops

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// realGPU runs commands on the machine's GPU, in memory of which the test's is a copy.
type realGPU struct {
	*driver.GPU
	module   *driver.Module
	stream   *driver.Stream
	products *driver.Products
	kernels  map[string]*driver.Kernel
}

// startGPU makes a host of the machine's GPU, of kernels' text; it ends with the process.
func startGPU(source string) (*host, error) {
	d, err := driver.Load(driver.Options{})
	if err != nil {
		return nil, err
	}
	g := &realGPU{kernels: map[string]*driver.Kernel{}}
	if g.GPU, err = d.Open(0); err != nil {
		return nil, err
	}
	unbind, err := g.Bind()
	if err != nil {
		return nil, err
	}
	defer unbind()
	compiler, err := g.Compiler()
	if err != nil {
		return nil, err
	}
	code, err := compiler.Compile(source, "kernels")
	if err != nil {
		return nil, err
	}
	if g.module, err = g.Load(code); err != nil {
		return nil, err
	}
	h := &host{gpu: g, memory: make([]byte, hostMemory)}
	h.address, err = g.Alloc(hostMemory)
	return h, errors.Join(err, g.start())
}

// start makes the stream.
func (g *realGPU) start() error {
	const workspace = 32 << 20
	blas, err := g.Blas()
	if err != nil {
		return err
	}
	room, err := g.Alloc(workspace)
	if err != nil {
		return err
	}
	if g.stream, err = g.Stream(); err != nil {
		return err
	}
	g.products, err = blas.Products(g.stream, room, workspace)
	return err
}

// run copies the memory to the GPU, runs a command and copies it back.
func (g *realGPU) run(h *host, c cuda.Command) error {
	return g.Bound(func() error {
		window := h.memory[:cmp.Or(h.used, int64(len(h.memory)))]
		if err := g.Write(h.address, window); err != nil {
			return err
		}
		if err := g.give(c); err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		return errors.Join(g.Sync(), g.Read(h.address, window))
	})
}

func (g *realGPU) give(c cuda.Command) error {
	switch c := c.(type) {
	case cuda.Kernel:
		return g.launch(c)
	case cuda.Gemm: // by rows, as the product of the transposes by columns
		if c.M == 0 || c.N == 0 || c.Batch == 0 {
			return nil
		}
		p := &driver.Gemm{TransA: c.TransB, TransB: c.TransA, M: c.N, N: c.M, K: c.K,
			Alpha: c.Alpha, Beta: c.Beta, A: c.B, B: c.A, C: c.C, LdA: c.LdB, LdB: c.LdA,
			LdC: c.LdC, Batch: c.Batch, StrideA: c.StrideB, StrideB: c.StrideA,
			StrideC: c.StrideC, TF32: c.TF32, HalfIn: c.HalfIn, HalfOut: c.HalfOut}
		p.Prepare()
		return g.products.Run(p)
	case cuda.Copy:
		if c.Bytes > 0 {
			return g.stream.Copy(c.To, c.From, c.Bytes)
		}
	case cuda.Fill:
		if c.Words > 0 {
			return g.stream.Fill(c.Addr, c.Word, c.Words)
		}
	}
	return nil
}

func (g *realGPU) launch(c cuda.Kernel) error {
	k, ok := g.kernels[c.Name]
	if !ok {
		var err error
		if k, err = g.module.Kernel(c.Name); err != nil {
			return err
		}
		g.kernels[c.Name] = k
	}
	if err := k.Allow(c.Shared); err != nil {
		return err
	}
	return g.stream.Launch(k.Prepare(c.Grid, c.Block, c.Shared, c.Args))
}
