package main

import (
	"context"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
)

// TestSources: what a model may learn from is what its reader knows.
func TestSources(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing is read
	read := func(open func(spec string) error) func(string) bool {
		return func(spec string) bool {
			err := open(spec)
			return err == nil || !strings.Contains(err.Error(), "unknown source")
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
		{pictures, read(func(spec string) error {
			_, err := images.Open(ctx, spec, images.Options{MaxImages: 1}, nil)
			return err
		})},
		{sounds, read(func(spec string) error {
			_, err := speech.Open(ctx, spec, speech.Options{MaxUtterances: 1}, nil)
			return err
		})},
	} {
		for _, source := range append(append(append([]string{"ftp"}, texts...), pictures...),
			sounds...) {
			want := false
			for _, own := range c.sources {
				want = want || own == source
			}
			spec := map[string]string{"go": "go:doc", "glyphs": "glyphs", "formant": "formant"}[source]
			if spec == "" {
				spec = source + ":none"
			}
			if c.knows(spec) != want {
				t.Errorf("%v: %s is known: %t", c.sources, spec, !want)
			}
		}
	}
}
