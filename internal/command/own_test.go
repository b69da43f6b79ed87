package command

import (
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestLocalGoesOn: a run of workers in step that is saved and resumed is the one that was
// not, to the bit: what optimizers keep on every worker is saved, too. So is the run that
// was saved and went on.
func TestLocalGoesOn(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	schemes := [][]string{{"bosen", "--staleness", "0"}, {"ring"}, {"factors"}, {"bsp"}}
	for _, scheme := range schemes[:longtest.Count(1, len(schemes))] {
		run := with(tiny, "--eval-batches", "1", "--bleu", "0", "--json", "--local", "3",
			"--sync")
		run = with(run, scheme...)
		weights := func(more ...string) string {
			t.Helper()
			s := summaryOf(t, gather(t, inMemory{}, with(run, more...)...))
			return s["weights_sha256"].(string)
		}
		want := weights("--steps", "4")
		dir := "saved-" + scheme[0]
		if got := weights("--steps", "2", "--save", dir); got == want {
			t.Errorf("%v: two steps are as good as four", scheme)
		}
		if got := weights("--steps", "4", "--resume", dir); got != want {
			t.Errorf("%v: the run that was resumed has other weights", scheme)
		}
		if got := weights("--steps", "4", "--save-every", "2", "--save", dir+"-on"); got != want {
			t.Errorf("%v: the run that was saved has other weights", scheme)
		}
	}
}
