package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
)

// TestMissingPrograms: what is not installed is a failure, not a misuse; what is
// no source of data is one.
func TestMissingPrograms(t *testing.T) {
	t.Setenv("GOROOT", t.TempDir()+"/none")
	if o := invoke(t, "train", "--size", "s512"); o.status != exitFailure ||
		!strings.Contains(o.stderr, "install Go or set GOROOT to one") {
		t.Errorf("without Go: %+v", o)
	}
	for _, misspelt := range []bool{true, false} {
		err := asSpec(&data.Error{Spec: "go:doc", Err: errors.New("no Go"), Misspelt: misspelt})
		if _, usage := errors.AsType[*usageError](err); usage != misspelt {
			t.Errorf("misspelt %t is a usage error: %t", misspelt, usage)
		}
	}
}

// TestSources: what a model may learn from is what its reader knows.
func TestSources(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing is read
	whole := map[string]string{"go": "go:doc", "glyphs": "glyphs", "formant": "formant"}
	read := func(open func(spec string) error) func(string) bool {
		return func(spec string) bool {
			err := open(spec)
			return err == nil || !strings.Contains(err.Error(), "unknown source") &&
				!strings.Contains(err.Error(), "no running text")
		}
	}
	for _, c := range []struct {
		sources []string
		knows   func(spec string) bool
	}{
		{texts, read(func(spec string) error {
			_, err := data.Open(ctx, spec, nil)
			return err
		})},
		{running, read(func(spec string) error {
			_, err := data.OpenRunning(ctx, spec, nil)
			return err
		})},
		{pictures, read(func(spec string) error {
			_, err := images.Open(ctx, spec, images.Options{MaxImages: 1}, nil)
			return err
		})},
		{sounds, read(func(spec string) error {
			_, err := speech.Open(ctx, spec, speech.Options{MaxUtterances: 1}, nil)
			return err
		})},
	} {
		for _, source := range slices.Concat([]string{"ftp"}, texts, pictures, sounds) {
			want := slices.Contains(c.sources, source)
			spec := source + ":none"
			if whole, ok := whole[source]; ok {
				spec = whole
			}
			if c.knows(spec) != want {
				t.Errorf("%v: %s is known: %t", c.sources, spec, !want)
			}
		}
	}
}
