//go:build linux && amd64 && !nocuda

package cuda

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/internal/kernel/conv"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// trial has convolutions computed once, of small whole numbers, and looks at what comes out: that
// a library says how much it wants to work in does not mean that it computes what it should.
type trial struct {
	gpu   *driver.GPU
	log   *slog.Logger // may be nil
	tries []try
	// bytes of the largest operand, result and workspace
	operand, result, room int64
}

// try is a convolution that is prepared.
type try struct {
	conv     kernels.Conv
	prepared *driver.Convolve
}

// add has a convolution tried, once.
func (t *trial) add(c kernels.Conv, p *driver.Convolve) {
	for _, known := range t.tries {
		if known.prepared == p {
			return
		}
	}
	sizes := operandBytes(c)
	made := madeBy(c.Pass)
	for i, n := range sizes {
		if i == made {
			t.result = max(t.result, n)
		} else {
			t.operand = max(t.operand, n)
		}
	}
	t.room = max(t.room, int64(p.Room))
	t.tries = append(t.tries, try{c, p})
}

// operandBytes are those of images, filters and results.
func operandBytes(c kernels.Conv) [3]int64 {
	s, size := c.Shape, int64(4)
	if c.Half {
		size = 2
	}
	of := func(sizes ...int) int64 {
		n := size
		for _, x := range sizes {
			n *= int64(x)
		}
		return n
	}
	return [3]int64{of(s.Batch, s.InC, s.InH, s.InW), of(s.OutC, s.InC/s.Groups, s.KH, s.KW),
		of(s.Batch, s.OutC, s.OutH(), s.OutW())}
}

// madeBy is which of images, filters and results a pass computes.
func madeBy(p kernels.Pass) int {
	return [...]int{kernels.Forward: 2, kernels.ToImages: 0, kernels.ToFilters: 1}[p]
}

// run tries them all, and says of those that fail, or come to something else, why they are not the
// library's. Where the GPU has too little memory left for it nothing is tried.
func (t *trial) run(dnn *driver.DNN) (wrong map[driver.Convolution]error, err error) {
	if len(t.tries) == 0 {
		return nil, nil
	}
	at, err := t.gpu.Alloc(aligned(t.operand) + aligned(t.result) + max(t.room, 1))
	if e, ok := errors.AsType[*driver.Error](err); ok && e.OutOfMemory() {
		if t.log != nil {
			t.log.Warn("convolutions by cuDNN are not tried", "why", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.gpu.Release(at)) }()
	s, err := t.gpu.Stream()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	by, err := dnn.Convolver(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, by.Close()) }()
	return t.each(by, at)
}

// each tries one after the other, those of f32 first: operands are of one type at a time.
func (t *trial) each(by *driver.Convolver, at uint64) (map[driver.Convolution]error, error) {
	wrong := map[driver.Convolution]error{}
	for _, half := range []bool{false, true} {
		filled := false
		for _, x := range t.tries {
			if x.conv.Half != half {
				continue
			}
			if !filled {
				if err := t.fill(at, half); err != nil {
					return nil, err
				}
				filled = true
			}
			why, err := t.one(by, x, at)
			if err != nil {
				return nil, err
			}
			if why != nil {
				wrong[convolution(x.conv)] = why
			}
		}
	}
	return wrong, nil
}

// aligned is bytes up to where the next allocation may begin.
func aligned(bytes int64) int64 { return (bytes + 255) &^ 255 }

// drawn is the element of an operand by its number: of -3 to 3, with a long period.
func drawn(i int) float32 { return float32(uint32(i%period)*2654435761>>16%7) - 3 }

const period = 16381

// fill writes the numbers to the largest operand's memory: operands begin alike.
func (t *trial) fill(at uint64, half bool) error {
	x := make([]float32, period)
	for i := range x {
		x[i] = drawn(i)
	}
	v := tensor.FromF32(x, period)
	if half {
		v = v.To(tensor.BF16)
	}
	for off := int64(0); off < t.operand; off += int64(len(v.Data)) {
		n := min(int64(len(v.Data)), t.operand-off)
		if err := t.gpu.Write(at+uint64(off), v.Data[:n]); err != nil {
			return err
		}
	}
	return nil
}

// one tries a convolution: why says what is wrong with it, err what is wrong with the GPU.
func (t *trial) one(by *driver.Convolver, x try, at uint64) (why, err error) {
	result := at + uint64(aligned(t.operand))
	made, sizes := madeBy(x.conv.Pass), operandBytes(x.conv)
	if err := t.gpu.Blank(result, sizes[made]); err != nil {
		return nil, err
	}
	of := [3]uint64{at, at, at}
	of[made] = result
	if err := by.Run(x.prepared, of[0], of[1], of[2],
		result+uint64(aligned(t.result))); err != nil {
		return err, nil
	}
	if err := t.gpu.Sync(); err != nil {
		return nil, err
	}
	// of a large result its first part and its last
	const part = 1 << 20
	for _, lo := range []int64{0, max(0, sizes[made]-part)} {
		data := make([]byte, min(part, sizes[made]-lo))
		if err := t.gpu.Read(result+uint64(lo), data); err != nil {
			return nil, err
		}
		if why := compare(x.conv, data, lo); why != nil {
			return why, nil
		}
	}
	return nil, nil
}

// compare compares part of a result from a byte with a plain loop: some elements, as many as take
// little time, and that all are numbers. What is rounded on the way is allowed for.
func compare(c kernels.Conv, data []byte, from int64) error {
	const work, fewest, most = 1 << 21, 4, 64
	size, slack := 4, 1.0/1024 // TF32 has 10 bits
	if c.Half {
		size, slack = 2, 1.0/64
	}
	n, first := len(data)/size, int(from)/size
	each := max(1, n/min(most, max(fewest, work/max(1, terms(c)))))
	for i := range n {
		got := float64(element(data, i, size))
		last := i == n-1
		if math.IsNaN(got) || i%each == 0 || last {
			want, sum := convolved(c, first+i)
			if !(math.Abs(got-want) <= slack*sum) {
				return &WrongError{first + i, got, want}
			}
		}
	}
	return nil
}

// element is one of f32 or bfloat16.
func element(data []byte, i, size int) float32 {
	if size == 2 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
}

// terms is how many products an element is a sum of, at most.
func terms(c kernels.Conv) int {
	s := c.Shape
	switch c.Pass {
	case kernels.Forward:
		return s.InC / s.Groups * s.KH * s.KW
	case kernels.ToImages:
		return s.OutC / s.Groups * s.KH * s.KW
	}
	return s.Batch * s.OutH() * s.OutW()
}

// convolved is an element of what a pass makes of drawn numbers, and the sum of its terms' sizes.
func convolved(c kernels.Conv, element int) (value, sum float64) {
	add := func(a, b int) {
		x := float64(drawn(a)) * float64(drawn(b))
		value, sum = value+x, sum+math.Abs(x)
	}
	switch s := c.Shape; c.Pass {
	case kernels.Forward:
		results(s, element, add)
	case kernels.ToImages:
		images(s, element, add)
	case kernels.ToFilters:
		filters(s, element, add)
	}
	return value, sum
}

// results adds the terms of an element of the results: of images and filters.
func results(s conv.Shape, element int, add func(image, filter int)) {
	channels, outs := s.InC/s.Groups, s.OutC/s.Groups
	j, i := element%s.OutW(), element/s.OutW()%s.OutH()
	o, b := element/(s.OutW()*s.OutH())%s.OutC, element/(s.OutW()*s.OutH()*s.OutC)
	for tap := range channels * s.KH * s.KW {
		u, v, k := tap%s.KW, tap/s.KW%s.KH, tap/(s.KW*s.KH)
		r, w := i*s.StrideH-s.PadTop+v*s.DilH, j*s.StrideW-s.PadLeft+u*s.DilW
		if r >= 0 && r < s.InH && w >= 0 && w < s.InW {
			add(((b*s.InC+o/outs*channels+k)*s.InH+r)*s.InW+w, o*channels*s.KH*s.KW+tap)
		}
	}
}

// images adds the terms of an element of the images' gradient: of filters and results.
func images(s conv.Shape, element int, add func(filter, result int)) {
	channels, outs := s.InC/s.Groups, s.OutC/s.Groups
	w, r := element%s.InW, element/s.InW%s.InH
	k, b := element/(s.InW*s.InH)%s.InC, element/(s.InW*s.InH*s.InC)
	for tap := range outs * s.KH * s.KW {
		u, v, o := tap%s.KW, tap/s.KW%s.KH, k/channels*outs+tap/(s.KW*s.KH)
		i, j := r+s.PadTop-v*s.DilH, w+s.PadLeft-u*s.DilW
		if i%s.StrideH != 0 || j%s.StrideW != 0 {
			continue
		}
		i, j = i/s.StrideH, j/s.StrideW
		if i >= 0 && i < s.OutH() && j >= 0 && j < s.OutW() {
			add(((o*channels+k%channels)*s.KH+v)*s.KW+u, ((b*s.OutC+o)*s.OutH()+i)*s.OutW()+j)
		}
	}
}

// filters adds the terms of an element of the filters' gradient: of images and results.
func filters(s conv.Shape, element int, add func(image, result int)) {
	channels, outs := s.InC/s.Groups, s.OutC/s.Groups
	u, v := element%s.KW, element/s.KW%s.KH
	k, o := element/(s.KW*s.KH)%channels, element/(s.KW*s.KH*channels)
	for n := range s.Batch * s.OutH() * s.OutW() {
		j, i, b := n%s.OutW(), n/s.OutW()%s.OutH(), n/(s.OutW()*s.OutH())
		r, w := i*s.StrideH-s.PadTop+v*s.DilH, j*s.StrideW-s.PadLeft+u*s.DilW
		if r >= 0 && r < s.InH && w >= 0 && w < s.InW {
			add(((b*s.InC+o/outs*channels+k)*s.InH+r)*s.InW+w,
				((b*s.OutC+o)*s.OutH()+i)*s.OutW()+j)
		}
	}
}
