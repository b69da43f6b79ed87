//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// convolutions are those that tasks were made of, prepared once each. Which of them the library
// computes, and by what algorithm, follows from what they are: it is the same in every plan.
type convolutions struct {
	asks  *driver.Convolver                       // of no stream: it says what the library can do
	known map[driver.Convolution]*driver.Convolve // nil: the library cannot
}

// open makes what the library is asked with, if there is one.
func (c *convolutions) open(d *Device) (err error) {
	if d.dnn == nil {
		return nil
	}
	c.known = map[driver.Convolution]*driver.Convolve{}
	c.asks, err = d.dnn.Convolver(nil, 0, d.options.Workspace)
	return err
}

// of is a convolution as the library's, nil if it cannot compute it within a workspace.
func (c *convolutions) of(v driver.Convolution) *driver.Convolve {
	p, ok := c.known[v]
	if !ok {
		p, _ = c.asks.Convolve(v) // why not makes no difference: kernels of our own can
		c.known[v] = p
	}
	return p
}

func (c *convolutions) close() error {
	var errs []error
	for _, p := range c.known {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if c.asks != nil {
		errs = append(errs, c.asks.Close())
	}
	return errors.Join(errs...)
}

// convolve appends a convolution to a task: the library's, or what is to be done otherwise.
func (d *Device) convolve(t *task, c kernels.Conv) error {
	passes := map[kernels.Pass]driver.Pass{kernels.Forward: driver.Forward,
		kernels.ToImages: driver.BackwardData, kernels.ToFilters: driver.BackwardFilter}
	s := c.Shape
	p := d.convs.of(driver.Convolution{Pass: passes[c.Pass], Batch: s.Batch, InC: s.InC,
		InH: s.InH, InW: s.InW, OutC: s.OutC, OutH: s.OutH(), OutW: s.OutW(), KH: s.KH, KW: s.KW,
		PadH: s.PadTop, PadW: s.PadLeft, StrideH: s.StrideH, StrideW: s.StrideW, DilH: s.DilH,
		DilW: s.DilW, Groups: s.Groups, TF32: c.TF32,
		Half: c.Half})
	if p != nil {
		t.parts = append(t.parts, func(s *stream) error {
			return s.convolver.Run(p, c.Images, c.Filters, c.Results)
		})
		return nil
	}
	for _, o := range c.Otherwise {
		if err := d.prepare(t, o); err != nil {
			return err
		}
	}
	return nil
}
