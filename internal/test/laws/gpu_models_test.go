//go:build linux && amd64 && !nocuda

package laws_test

import (
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
)

// TestModelsOnGPU: steps of every model on an emulated GPU come to the processor's losses up to
// rounding, the first two, after which rounding grows: on the processor, ResNets whose weights
// begin one ulp apart are 3e-5 apart at the second step and 1.5e-2 at the tenth. All come to the
// same bits under the policies, whatever the order of threads, and the pauses of streams.
func TestModelsOnGPU(t *testing.T) {
	longtest.Skip(t)
	emulated(t)
	steps := longtest.Count(2, 10)
	for name, build := range five {
		t.Run(name, func(t *testing.T) {
			someInShort(t, name)
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			want, err := lossesOf(m, gomem.Options{}, steps)
			if err != nil {
				t.Fatal(err)
			}
			var first []float32
			for _, c := range []struct {
				policy        planner.Policy
				order, jitter string
			}{{planner.Thesis, "0", "0"}, {planner.Auto, "1", "20"}, {planner.Thesis, "2", "100"}} {
				if first != nil && c.policy == planner.Thesis && !longtest.Enabled() {
					continue
				}
				t.Setenv("EMU_ORDER", c.order)
				t.Setenv("EMU_JITTER_US", c.jitter)
				got, err := lossesOf(m, gomem.Options{Policy: c.policy, Device: gomem.CUDA,
					Partition: 20}, steps)
				if err != nil {
					t.Fatalf("%s: %v", c.policy, err)
				}
				near(t, got[:len(got)/steps*2], want[:len(want)/steps*2], 1e-3)
				if first == nil {
					first = got
				}
				if !slices.Equal(got, first) {
					t.Errorf("%s, order %s: losses are %v, %v at first", c.policy, c.order, got,
						first)
				}
			}
		})
	}
}

// someInShort skips most models in the short form of a test: an emulated GPU takes its time.
func someInShort(t *testing.T, name string) {
	t.Helper()
	if name != "resnet" && name != "transformer" && !longtest.Enabled() {
		t.Skip("left to the long form")
	}
}
