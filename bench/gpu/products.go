//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// numbers are what products are computed in.
var numbers = []number{{"f32", false, false}, {"TF32", true, false}, {"bfloat16", false, true}}

type number struct {
	name       string
	tf32, half bool
}

// products measures products of square matrices.
func products(ctx context.Context, b *bench) error {
	sizes := []int{512, 1024, 2048, 4096, 8192, 16384}
	if b.emulate {
		sizes = []int{16, 32}
	}
	columns := []string{"n"}
	for _, k := range numbers {
		columns = append(columns, k.name)
	}
	b.title("Matrix products", "TFLOP/s of n×n by n×n, by the library, of random "+
		"operands; medians of 7 rounds of 10.")
	b.head(1, columns...)
	return onGPU(b.dirs(), func(r *rig) error {
		m, err := r.matrices(sizes[len(sizes)-1])
		if err != nil {
			return err
		}
		return b.each(ctx, sizes, strconv.Itoa, m.rates)
	})
}

// matrices are two operands and a result of the largest size.
type matrices struct {
	*rig
	handle *driver.Products
	at     [3]uint64
}

func (r *rig) matrices(n int) (*matrices, error) {
	m := &matrices{rig: r}
	bytes := 4 * int64(n) * int64(n)
	for i := range m.at {
		var err error
		if m.at[i], err = r.room(bytes); err != nil {
			return nil, err
		}
		if err := r.scatter(m.at[i], bytes); err != nil {
			return nil, err
		}
	}
	s, err := r.stream()
	if err != nil {
		return nil, err
	}
	workspace, err := r.room(cuda.Workspace)
	if err != nil {
		return nil, err
	}
	blas, err := r.Blas()
	if err != nil {
		return nil, err
	}
	if m.handle, err = blas.Products(s, workspace, cuda.Workspace); err == nil {
		r.ends = append(r.ends, m.handle.Close)
	}
	return m, err
}

// scatter fills memory with random numbers around zero, of f32 or of bfloat16: the halves of a
// word are equal. Of equal numbers a product takes less current, and less time.
func (r *rig) scatter(at uint64, bytes int64) error {
	rng := rand.New(rand.NewPCG(1, at))
	data := make([]byte, min(bytes, 1<<24))
	for i := 0; i < len(data); i += 4 {
		half := math.Float32bits(float32(rng.NormFloat64())) >> 16
		binary.LittleEndian.PutUint32(data[i:], half<<16|half)
	}
	for ; bytes > 0; bytes -= int64(len(data)) {
		data = data[:min(bytes, int64(len(data)))]
		if err := r.Write(at, data); err != nil {
			return err
		}
		at += uint64(len(data))
	}
	return nil
}

// rates are the row of a size.
func (m *matrices) rates(n int) ([]string, error) {
	var cells []string
	for _, k := range numbers {
		flops, err := m.rate(n, k)
		if err != nil {
			return nil, err
		}
		cells = append(cells, fmt.Sprintf("%.2f", flops/1e12))
	}
	return cells, nil
}

// rate is how many floating-point operations a second products of a size take.
func (m *matrices) rate(n int, k number) (flops float64, err error) {
	const rounds, times = 7, 10
	g := &driver.Gemm{M: n, N: n, K: n, Alpha: 1, A: m.at[0], B: m.at[1], C: m.at[2], LdA: n,
		LdB: n, LdC: n, TF32: k.tf32, HalfIn: k.half, HalfOut: k.half}
	g.Prepare()
	took, err := m.timed(rounds, func() error {
		for range times {
			if err := m.handle.Run(g); err != nil {
				return err
			}
		}
		return nil
	})
	return 2 * float64(n) * float64(n) * float64(n) * times / took, err
}
