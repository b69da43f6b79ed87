//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"testing"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel/conv"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// TestConvolutions: the library's are those of a plain loop, in all passes, with strides, edges
// and groups, of f32 and rounded to bfloat16; of what it refuses, the other commands run.
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
			convolve(s, want, made)
			in := append(append([]device.Operand{}, all[:made]...), all[made+1:]...)
			err := r.do(in, []device.Operand{all[made]},
				func(c *kernels.Call) ([]kernels.Command, error) {
					if !c.Convolutions {
						t.Error("there is no library")
					}
					at := append(append([]kernels.Operand{}, c.In[:made]...), c.Out[0])
					at = append(at, c.In[made:]...)
					return []kernels.Command{kernels.Conv{Pass: kernels.Pass(pass), Shape: s,
						Images: at[0].Addr, Filters: at[1].Addr, Results: at[2].Addr,
						Half: d == tensor.BF16, Otherwise: []kernels.Command{kernels.Fill{
							Addr: c.Out[0].Addr, Words: all[made].Bytes / 4}}}}, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if kernels.Pass(pass) == kernels.ToFilters && s.DilH > 1 { // refused
				clear(want[made])
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
