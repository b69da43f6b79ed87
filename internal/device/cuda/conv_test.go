//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel/conv"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// TestConvolutions: the library's are those of a plain loop, in all passes, with strides, edges
// and groups; of what it refuses, the other commands run.
func TestConvolutions(t *testing.T) {
	r := newRig(t, options(t, source))
	for _, s := range []conv.Shape{
		{Batch: 2, InC: 2, InH: 5, InW: 4, OutC: 3, KH: 3, KW: 2, StrideH: 1, StrideW: 2, PadTop: 1,
			PadBottom: 1, DilH: 1, DilW: 1, Groups: 1},
		{Batch: 1, InC: 4, InH: 6, InW: 5, OutC: 6, KH: 2, KW: 3, StrideH: 2, StrideW: 1,
			PadLeft: 1, PadRight: 1, DilH: 1, DilW: 1, Groups: 2},
		{Batch: 1, InC: 1, InH: 7, InW: 7, OutC: 2, KH: 2, KW: 2, StrideH: 1, StrideW: 1, DilH: 2,
			DilW: 3, Groups: 1},
	} {
		images := f32(r.near, 0, s.Batch, s.InC, s.InH, s.InW)
		filters := f32(r.near, 4096, s.OutC, s.InC/s.Groups, s.KH, s.KW)
		results := f32(r.near, 8192, s.Batch, s.OutC, s.OutH(), s.OutW())
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
						Otherwise: []kernels.Command{kernels.Fill{Addr: c.Out[0].Addr,
							Words: int64(all[made].Type.Elems())}}}}, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if kernels.Pass(pass) == kernels.ToFilters && s.DilH > 1 { // refused
				clear(want[made])
			}
			for i, got := range r.read(all[made]) {
				if got != want[made][i] {
					t.Fatalf("%+v, pass %d: element %d is %v, want %v", s, pass, i, got,
						want[made][i])
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
