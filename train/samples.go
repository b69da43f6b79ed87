package train

import (
	"bytes"
	"fmt"
	"math"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/images"
)

// SampleWriter makes scorers of models that draw, whose output is images f32[n 3
// height width] with levels from −1 to 1. Each evaluation's first batch becomes a
// grid in the directory, step-000100.png after a hundred steps. A directory that
// cannot be made or written to is an error now, not after the first hundred.
func SampleWriter(dir string) (func(step int, last bool) Scorer, error) {
	if err := rehearse(osDisk{}, dir); err != nil {
		return nil, fmt.Errorf("%s: cannot save there: %w", dir, bare(err))
	}
	return func(step int, _ bool) Scorer {
		return &sampleWriter{store: store{dir: dir, disk: osDisk{}}, step: step}
	}, nil
}

type sampleWriter struct {
	store store
	step  int
	done  bool
}

// Score writes the first batch. A file that is there is replaced whole.
func (s *sampleWriter) Score(_ data.Batch, outputs []gomem.Tensor,
	_ func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	if s.done {
		return nil
	}
	s.done = true
	var grid bytes.Buffer
	columns := int(math.Ceil(math.Sqrt(float64(outputs[0].Type.Size(0)))))
	if err := images.EncodeGrid(&grid, outputs[0], columns); err != nil {
		return err
	}
	if err := s.store.disk.MkdirAll(s.store.dir); err != nil {
		return err
	}
	return s.store.replace(fmt.Sprintf("step-%06d.png", s.step), func(f file) error {
		_, err := f.Write(grid.Bytes())
		return err
	})
}

// Skip passes over a batch, which is no other worker's picture.
func (s *sampleWriter) Skip() { s.done = true }

// Part is nothing: the picture is where it belongs, since worker 0 has the first batch.
func (*sampleWriter) Part() ([]byte, error) { return nil, nil }

// Add adds nothing.
func (*sampleWriter) Add([]byte) error { return nil }

// Metrics are none: the pictures are the result.
func (*sampleWriter) Metrics() (map[string]float64, error) { return nil, nil }
