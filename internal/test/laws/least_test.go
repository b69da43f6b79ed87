package laws_test

import (
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
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

// TestFusedNeedsNoMoreThanUnrolled: an LSTM as one operation is cut along time, and so DeepSpeech
// trains within half of vanilla's peak, and in its sizes within what it does with an operation for
// each part of each step.
func TestFusedNeedsNoMoreThanUnrolled(t *testing.T) {
	speech := func(size string, frames, batch int, unrolled bool) *models.Model {
		c, err := models.NewDeepSpeechConfig(size)
		c.Unrolled, c.Frames, c.Utterances = unrolled, frames, batch
		m, err := smallest(c, err, models.DeepSpeech)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	type sizes struct {
		size          string
		frames, batch int
	}
	all := []sizes{{"s512", 40, 4}, {"s64", 40, 40}}
	if longtest.Enabled() {
		all = append(all, sizes{"s64", 165, 16}, sizes{"base", 165, 40})
	}
	for _, x := range all {
		o := gomem.Options{Policy: planner.Auto, HostBytes: 1 << 40}
		fused := speech(x.size, x.frames, x.batch, false)
		least := leastOf(t, fused, o)
		if x.batch < 40 || x.size == "base" { // else no other layer needs as much as some steps
			unrolled := leastOf(t, speech(x.size, x.frames, x.batch, true), o)
			if least > unrolled {
				t.Errorf("%v: fused needs %d bytes, unrolled %d", x, least, unrolled)
			}
		}
		o.Policy = planner.Vanilla
		if vanilla := leastOf(t, fused, o); least > vanilla/2 {
			t.Errorf("%v: %d bytes at least, of vanilla's %d", x, least, vanilla)
		}
	}
}
