//go:build linux && amd64 && !nocuda

package gomem_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// gpuLosses is the losses of some steps of a model, all objectives in turn.
func gpuLosses(m *models.Model, o gomem.Options, steps int) (losses []float32, err error) {
	o.Seed = 3
	s, err := gomem.Compile(context.Background(), m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	feeds := thesis.Feeds(m)
	for step := range steps {
		feeds[m.Seed] = gomem.Pair(3, int32(step))
		feeds[m.Step] = gomem.Scalar(float32(step + 1))
		for _, objective := range m.Objectives {
			out, err := s.Step(context.Background(), objective.Name, feeds)
			if err != nil {
				return nil, err
			}
			losses = append(losses, out[0].F32()[0])
		}
	}
	return losses, nil
}

// TestModelsOnGPU: steps of every model on an emulated GPU come to the processor's losses up to
// rounding, the first two, after which rounding grows: on the processor, ResNets whose weights
// begin one ulp apart are 3e-5 apart at the second step and 1.5e-2 at the tenth. All come to the
// same bits under the policies. Where an optimizer is many operations (fine), policies compute
// them on the host or on the device, whose logarithms and sums differ in their last bits.
func TestModelsOnGPU(t *testing.T) {
	emulated(t)
	steps := longtest.Count(2, 10)
	for name, build := range five {
		t.Run(name, func(t *testing.T) {
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			want, err := gpuLosses(m, gomem.Options{}, steps)
			if err != nil {
				t.Fatal(err)
			}
			var first []float32
			for _, policy := range []compile.Policy{compile.Thesis, compile.Auto} {
				got, err := gpuLosses(m, gomem.Options{Policy: policy, Device: gomem.CUDA,
					Partition: 20}, steps)
				if err != nil {
					t.Fatalf("%s: %v", policy, err)
				}
				near(t, got[:len(got)/steps*2], want[:len(want)/steps*2], 1e-3)
				if first == nil {
					first = got
				}
				if strings.Contains(name, "fine") {
					near(t, got, first, 1e-5)
				} else if !slices.Equal(got, first) {
					t.Errorf("%s: losses are %v, %v under another policy", policy, got, first)
				}
			}
		})
	}
}
