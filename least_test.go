package gomem_test

import (
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// leastOf is the smallest device budget that works for a model's training.
func leastOf(t *testing.T, m *models.Model, o gomem.Options) int64 {
	t.Helper()
	least, err := gomem.MinDevice(t.Context(), m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	return least
}

// TestFusedNeedsNoMoreThanUnrolled: an LSTM as one operation is cut along time, and so trains
// within what it does with an operation for each part of each step; and within far less than half
// of vanilla's peak.
func TestFusedNeedsNoMoreThanUnrolled(t *testing.T) {
	speech := func(size string, batch int, unrolled bool) *models.Model {
		c, err := models.NewDeepSpeechConfig(size)
		c.Unrolled, c.Utterances = unrolled, batch
		m, err := smallest(c, err, models.DeepSpeech)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	batches := map[string]int{"s512": 40}
	if !testing.Short() {
		batches["s64"] = 16
	}
	if longtest.Enabled() {
		batches["base"] = 40
	}
	for size, batch := range batches {
		o := gomem.Options{Policy: compile.Auto, HostBytes: 1 << 40}
		fused := speech(size, batch, false)
		least := leastOf(t, fused, o)
		if unrolled := leastOf(t, speech(size, batch, true), o); least > unrolled {
			t.Errorf("%s: fused needs %d bytes, unrolled %d", size, least, unrolled)
		}
		o.Policy = compile.Vanilla
		if vanilla := leastOf(t, fused, o); least > vanilla/2 {
			t.Errorf("%s: %d bytes at least, of vanilla's %d", size, least, vanilla)
		}
	}
}
