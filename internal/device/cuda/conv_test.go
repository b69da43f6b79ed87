//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/kernel/conv"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// TestConvolutions: the library's are those of a plain loop, in all passes, with strides, edges
// and groups, of f32 and rounded to bfloat16. It says before what it does not compute, and is not
// asked to compute that all the same: the device refuses, and puts nothing in its place.
func TestConvolutions(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		t.Run(d.String(), func(t *testing.T) { convolutions(t, d) })
	}
}

func convolutions(t *testing.T, d tensor.DType) {
	r := newRig(t, options(t, source))
	of := func(off int64, sizes ...int) device.Operand {
		ty := tensor.Of(d, sizes...)
		return device.Operand{Region: device.Region{Mem: r.near, Off: off, Bytes: ty.Bytes()},
			Type: ty}
	}
	for _, s := range []conv.Shape{
		{Batch: 2, InC: 2, InH: 5, InW: 4, OutC: 3, KH: 3, KW: 2, StrideH: 1, StrideW: 2, PadTop: 1,
			PadBottom: 1, DilH: 1, DilW: 1, Groups: 1},
		{Batch: 1, InC: 4, InH: 6, InW: 5, OutC: 6, KH: 2, KW: 3, StrideH: 2, StrideW: 1,
			PadLeft: 1, PadRight: 1, DilH: 1, DilW: 1, Groups: 2},
		{Batch: 1, InC: 1, InH: 7, InW: 7, OutC: 2, KH: 2, KW: 2, StrideH: 1, StrideW: 1, DilH: 2,
			DilW: 3, Groups: 1},
	} {
		images := of(0, s.Batch, s.InC, s.InH, s.InW)
		filters := of(4096, s.OutC, s.InC/s.Groups, s.KH, s.KW)
		results := of(8192, s.Batch, s.OutC, s.OutH(), s.OutW())
		all := []device.Operand{images, filters, results}
		for pass, made := range []int{2, 0, 1} {
			want := make([][]float32, 3)
			for i, o := range all {
				want[i] = make([]float32, o.Type.Elems())
				for k := range want[i] {
					want[i][k] = float32((k*5+i)%7) - 3
				}
				r.write(o, want[i])
			}
			c := kernels.Conv{Pass: kernels.Pass(pass), Shape: s, Half: d == tensor.BF16}
			has := c.Pass != kernels.ToFilters || s.DilH == 1
			can, err := cuda.Convolves(options(t, source), []kernels.Conv{c})
			if err != nil || len(can) != 1 || can[0].Can != has {
				t.Fatalf("%+v: the library can: %v, %v", c, can, err)
			}
			convolve(s, want, made)
			in := append(append([]device.Operand{}, all[:made]...), all[made+1:]...)
			err = r.by(kernels.DNN, in, []device.Operand{all[made]}, placed(c, made))
			if !has {
				if err == nil || !strings.Contains(err.Error(), "test of ["+d.String()) ||
					!strings.Contains(err.Error(), "CUDNN_STATUS_NOT_SUPPORTED") {
					t.Errorf("%+v: %v", c, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			rounded := tensor.FromF32(want[made], len(want[made])).To(d).To(tensor.F32).F32()
			for i, got := range r.read(all[made]) {
				if got != rounded[i] {
					t.Fatalf("%+v, pass %d: element %d is %v, want %v", s, pass, i, got,
						rounded[i])
				}
			}
		}
	}
}

// placed are the commands of a convolution that makes operand number made of its three.
func placed(v kernels.Conv, made int) func(*kernels.Call) ([]kernels.Command, error) {
	return func(c *kernels.Call) ([]kernels.Command, error) {
		at := slices.Insert(slices.Clone(c.In), made, c.Out[0])
		v.Images, v.Filters, v.Results = at[0].Addr, at[1].Addr, at[2].Addr
		v.Scratch, v.Room = c.Scratch, c.Room
		return []kernels.Command{v}, nil
	}
}

// TestLibraryFails: that cuDNN fails is not that it does not compute a convolution: whoever asks is
// told, and who has it computed. A device without cuDNN says so, and that it computes nothing.
func TestLibraryFails(t *testing.T) {
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("a real library does not fail to order")
	}
	o := options(t, source)
	fine, bad := filters(3), filters(5)
	run := func(o cuda.Options, library string) error {
		r := newRig(t, o)
		x, w, y := f32(r.near, 0, 1, 2, 4, 4), f32(r.near, 4096, 5, 2, 3, 3),
			f32(r.near, 8192, 1, 5, 2, 2)
		return r.by(library, []device.Operand{x, w}, []device.Operand{y}, placed(bad, 2))
	}
	t.Run("fails", func(t *testing.T) {
		t.Setenv("EMU_CONV_FAILS", "5")
		const want = "CUDNN_STATUS_INTERNAL_ERROR"
		can, err := cuda.Convolves(o, []kernels.Conv{fine, bad, fine})
		if len(can) != 1 || !can[0].Can || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("asked, it says %v, %v", can, err)
		}
		err = run(o, kernels.DNN)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "test of [f32[1 2 4 4] f32[5 2 3 3]]") {
			t.Errorf("told to compute, it says %v", err)
		}
	})
	t.Run("other", func(t *testing.T) {
		if err := run(o, "mkl"); err == nil || !strings.Contains(err.Error(), `"mkl"`) {
			t.Errorf("a library that nobody knows: %v", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		with := o.Dirs[0]
		o.Dirs = []string{t.TempDir()}
		for _, name := range []string{"libcuda.so.1", "libnvrtc.so.13", "libcublas.so.13"} {
			if err := os.Symlink(filepath.Join(with, name),
				filepath.Join(o.Dirs[0], name)); err != nil {
				t.Fatal(err)
			}
		}
		can, err := cuda.Convolves(o, []kernels.Conv{fine})
		if err != nil || len(can) != 1 || can[0].Can {
			t.Errorf("a library that is not there computes %v, %v", can, err)
		}
		err = run(o, kernels.DNN)
		if err == nil || !strings.Contains(err.Error(), "cuDNN, which is not found here") {
			t.Errorf("without a library: %v", err)
		}
	})
}

// convolve computes images, filters or results of the two others. Small whole numbers make no
// rounding, so that any order of sums will do.
func convolve(s conv.Shape, of [][]float32, made int) {
	clear(of[made])
	c, o := s.InC/s.Groups, s.OutC/s.Groups
	for n := range s.Batch * s.OutC * s.OutH() * s.OutW() {
		j, i := n%s.OutW(), n/s.OutW()%s.OutH()
		out, b := n/s.OutW()/s.OutH()%s.OutC, n/s.OutW()/s.OutH()/s.OutC
		for tap := range c * s.KH * s.KW {
			x, y, k := tap%s.KW, tap/s.KW%s.KH, tap/s.KW/s.KH
			row, col := i*s.StrideH-s.PadTop+y*s.DilH, j*s.StrideW-s.PadLeft+x*s.DilW
			if row < 0 || row >= s.InH || col < 0 || col >= s.InW {
				continue
			}
			at := [3]int{((b*s.InC+out/o*c+k)*s.InH+row)*s.InW + col, out*c*s.KH*s.KW + tap, n}
			a, d := (made+1)%3, (made+2)%3
			of[made][at[made]] += of[a][at[a]] * of[d][at[d]]
		}
	}
}

// filters is a convolution of so many.
func filters(n int) kernels.Conv {
	return kernels.Conv{Shape: conv.Shape{Batch: 1, InC: 2, InH: 4, InW: 4, OutC: n, KH: 3, KW: 3,
		StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, Groups: 1}}
}

// TestLibraryLacks: what the library does not compute, fails to compute when it is tried, comes to
// something else or wants too much scratch for is not its own, and it is told why; what it wants
// scratch for within reason has as much.
func TestLibraryLacks(t *testing.T) {
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("a real library lacks nothing to order")
	}
	o := options(t, source)
	for _, half := range []bool{false, true} {
		for _, c := range []struct{ setting, value, why string }{
			{"LACKS", "5", "CUDNN_STATUS_NOT_SUPPORTED"},
			{"BREAKS", "5", "CUDNN_STATUS_INTERNAL_ERROR"},
			{"ERRS", "5", "a trial came to something else: element "},
		} {
			t.Run(c.setting, func(t *testing.T) {
				t.Setenv("EMU_CONV_"+c.setting, c.value)
				for pass := range kernels.Pass(3) {
					fine, bad := filters(3), filters(5)
					fine.Pass, bad.Pass, fine.Half, bad.Half = pass, pass, half, half
					lacks(t, o, fine, bad, c.why)
				}
			})
		}
	}
	for _, c := range []struct {
		room int64
		can  bool
	}{{48 << 20, true}, {256 << 20, true}, {256<<20 + 1, false}} {
		t.Setenv("EMU_CONV_ROOM", fmt.Sprint(c.room))
		can, err := cuda.Convolves(o, []kernels.Conv{filters(3)})
		if err != nil || can[0].Can != c.can || c.can && can[0].Scratch != c.room {
			t.Errorf("%d bytes: %+v, %v", c.room, can, err)
		}
	}
}

// lacks checks that of two convolutions one is the library's, and of the other it is told why not.
func lacks(t *testing.T, o cuda.Options, fine, bad kernels.Conv, why string) {
	t.Helper()
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	can, err := cuda.Convolves(o, []kernels.Conv{fine, bad, fine, bad})
	if err != nil || len(can) != 4 || !can[0].Can || can[1].Can || !can[2].Can || can[3].Can {
		t.Fatalf("asked, it says %v, %v", can, err)
	}
	shape := "1×2×4×4 by 5×2×3×3 in f32"
	if bad.Half {
		shape = "1×2×4×4 by 5×2×3×3 in bf16"
	}
	if n := strings.Count(log.String(), "\n"); n != 2 ||
		!strings.Contains(log.String(), shape) || !strings.Contains(log.String(), why) {
		t.Errorf("%d lines: %s", n, &log)
	}
}
