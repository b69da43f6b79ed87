//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// mostScratch is what a convolution by cuDNN may have: some algorithms of tensor cores want 128
// MiB, and a budget ought not go to what one operation keeps meanwhile. It is the same whatever the
// budget is, since what computes a convolution shows in its bits.
const mostScratch = 256 << 20

// Convolves says, of each of some convolutions, whether cuDNN computes it on a GPU, and in how much
// scratch: of none where there is no GPU, or no cuDNN. What cuDNN says that it computes is tried:
// it must come to what a plain loop does. It takes a context of the GPU, and memory for the trial,
// and gives them back. Of the options it takes GPU, Dirs, TF32, and Logger, which is told of each
// that is not cuDNN's, and why: kernels of gomem's compute it then, several times slower in
// bfloat16. The error says why it cannot be asked, or what it says other than that it does not
// compute a convolution: the one behind those that there are answers for.
func Convolves(o Options, list []kernels.Conv) (can []Convolved, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	g, dnn, err := find(o)
	switch {
	case err != nil:
		return nil, err
	case dnn == nil:
		return make([]Convolved, len(list)), nil
	}
	if g, err = g.Open(o.GPU); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	err = g.Bound(func() (err error) {
		can, err = convolves(o, g, dnn, list)
		return err
	})
	return can, err
}

// convolves asks and tries, where the GPU's context is current.
func convolves(o Options, g *driver.GPU, dnn *driver.DNN, list []kernels.Conv) (can []Convolved,
	err error) {
	c := convolutions{known: map[driver.Convolution]*driver.Convolve{}}
	if c.asks, err = dnn.Convolver(nil); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	t := &trial{gpu: g, log: o.Logger}
	for _, v := range list {
		v.TF32 = o.TF32 && !v.Half
		p, err := c.of(convolution(v))
		if err == nil && p.Room > mostScratch {
			err = fmt.Errorf("%w in %s: it wants %s", driver.ErrUnsupported, mib(mostScratch),
				mib(int64(p.Room)))
		}
		if err != nil && !errors.Is(err, driver.ErrUnsupported) {
			return can, fmt.Errorf("cuDNN %s: %w", dnn.Version, err)
		}
		answer := Convolved{Can: err == nil}
		if err == nil {
			answer.Scratch = int64(p.Room)
			t.add(v, p)
		} else {
			refused(o.Logger, v, err)
		}
		can = append(can, answer)
	}
	wrong, err := t.run(dnn)
	for i, v := range list {
		v.TF32 = o.TF32 && !v.Half
		if why := wrong[convolution(v)]; why != nil {
			refused(o.Logger, v, why)
			can[i] = Convolved{}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cuDNN %s: %w", dnn.Version, err)
	}
	return can, nil
}

// refused says that a convolution is not cuDNN's.
func refused(log *slog.Logger, v kernels.Conv, why error) {
	if log != nil {
		log.Info("a convolution is not cuDNN's", "convolution", convolution(v).String(),
			"why", why)
	}
}

// find looks for a GPU and for cuDNN; nil if there is none.
func find(o Options) (g *driver.GPU, dnn *driver.DNN, err error) {
	lib, err := driver.Load(driver.Options{Dirs: o.Dirs})
	if err == nil {
		g, err = lib.Look(o.GPU)
	}
	if err = none(err); errors.Is(err, ErrNone) {
		return nil, nil, nil
	}
	if err == nil {
		dnn, err = library(g)
	}
	return g, dnn, err
}

// library is cuDNN, or nil where it is not found. One that is found and cannot be loaded is an
// error.
func library(g *driver.GPU) (*driver.DNN, error) {
	dnn, err := g.DNN()
	if missing, ok := errors.AsType[*driver.MissingError](err); ok && missing.Err == nil {
		return nil, nil
	}
	return dnn, err
}

// convolutions are those that tasks were made of, prepared once each.
type convolutions struct {
	asks  *driver.Convolver // of no stream: it only prepares
	known map[driver.Convolution]*driver.Convolve
}

// open makes what the library is asked with, if there is one.
func (c *convolutions) open(d *Device) (err error) {
	if d.dnn == nil {
		return nil
	}
	c.known = map[driver.Convolution]*driver.Convolve{}
	c.asks, err = d.dnn.Convolver(nil)
	return d.taking(err)
}

// of is a convolution as the library's.
func (c *convolutions) of(v driver.Convolution) (*driver.Convolve, error) {
	if p, ok := c.known[v]; ok {
		return p, nil
	}
	p, err := c.asks.Convolve(v)
	if err == nil {
		c.known[v] = p
	}
	return p, err
}

func (c *convolutions) close() error {
	var errs []error
	for _, p := range c.known {
		errs = append(errs, p.Close())
	}
	if c.asks != nil {
		errs = append(errs, c.asks.Close())
	}
	return errors.Join(errs...)
}

// convolve appends a convolution to a task.
func (d *Device) convolve(t *task, c kernels.Conv) error {
	switch {
	case d.noDNN != nil:
		return fmt.Errorf("the plan has it computed by cuDNN: %w", d.noDNN)
	case d.dnn == nil:
		return errors.New("the plan has it computed by cuDNN, which is not found here")
	}
	p, err := d.convs.of(convolution(c))
	if err != nil {
		return fmt.Errorf("cuDNN %s: %w", d.dnn.Version, err)
	}
	if p.Room > uint64(c.Room) {
		return fmt.Errorf("cuDNN %s wants %d bytes to work in, and the plan has %d: make the plan "+
			"anew", d.dnn.Version, p.Room, c.Room)
	}
	t.parts = append(t.parts, func(s *stream) error {
		return s.convolver.Run(p, c.Images, c.Filters, c.Results, c.Scratch)
	})
	return nil
}

// convolution is one in the driver's terms.
func convolution(c kernels.Conv) driver.Convolution {
	passes := map[kernels.Pass]driver.Pass{kernels.Forward: driver.Forward,
		kernels.ToImages: driver.BackwardData, kernels.ToFilters: driver.BackwardFilter}
	s := c.Shape
	return driver.Convolution{Pass: passes[c.Pass], Batch: s.Batch, InC: s.InC,
		InH: s.InH, InW: s.InW, OutC: s.OutC, OutH: s.OutH(), OutW: s.OutW(), KH: s.KH, KW: s.KW,
		PadH: s.PadTop, PadW: s.PadLeft, StrideH: s.StrideH, StrideW: s.StrideW, DilH: s.DilH,
		DilW: s.DilW, Groups: s.Groups, TF32: c.TF32, Half: c.Half}
}
