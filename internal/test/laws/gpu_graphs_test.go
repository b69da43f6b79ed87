//go:build linux && amd64 && !nocuda

package laws_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
)

// TestCUDAGraphsOnGPU: steps of every model whose launches are captured and replayed have the bits
// of those that are launched one by one, though dropout's seeds, learning rates and counters differ
// from step to step: they are data. Streams pause at random meanwhile. What is captured in the
// second step is replayed in it and in all others, and nothing is refused.
func TestCUDAGraphsOnGPU(t *testing.T) {
	longtest.Skip(t)
	emulated(t)
	t.Setenv("EMU_JITTER_US", "20")
	steps := longtest.Count(2, 10)
	for name, build := range five {
		t.Run(name, func(t *testing.T) {
			someInShort(t, name)
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			o := gomem.Options{Policy: planner.Thesis, Device: gomem.CUDA, Partition: 20,
				NoCUDAGraphs: true}
			want, err := lossesOf(m, o, steps)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			o.NoCUDAGraphs = false
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
				Level: slog.LevelDebug}))
			got, err := lossesOf(m, o, steps)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("losses are %v, %v one by one, %v", got, want, err)
			}
			var graphs, replayed, refused int
			_, counts, _ := strings.Cut(log.String(), " graphs=")
			if _, err := fmt.Sscanf(counts, "%d replayed=%d refused=%d", &graphs, &replayed,
				&refused); err != nil || graphs < 10 || replayed != graphs*(steps-1) ||
				refused > 0 {
				t.Errorf("%q, %v", counts, err)
			}
		})
	}
}
