package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
)

// heldNames are the files that are held out of a set.
func heldNames(s *Set) map[string]bool {
	names := map[string]bool{}
	for _, e := range s.heldOut.(files).entries {
		names[e.name] = true
	}
	return names
}

// TestShareOfFiles: a larger share of files holds out what a smaller one does, and 1/50
// is the default.
func TestShareOfFiles(t *testing.T) {
	root := tree(t, 150)
	plain := open(t, "dir:"+root, Options{})
	smaller := heldNames(plain)
	for _, share := range []float64{0.02, 0.1, 0.3, 0.7} {
		s := open(t, "dir:"+root, Options{EvalShare: share})
		names := heldNames(s)
		for name := range smaller {
			if !names[name] {
				t.Errorf("%v does not hold out %s, a smaller share does", share, name)
			}
		}
		if share == 0.02 && s.Info != plain.Info || s.Info.SHA256 != plain.Info.SHA256 {
			t.Errorf("%v: %s, by default %s", share, s.Info, plain.Info)
		}
		n, all := s.heldOut.len(), float64(s.Info.Pairs)
		if n != s.Info.HeldOut || s.train.len()+n != s.Info.Pairs ||
			math.Abs(float64(n)-share*all) > 5*math.Sqrt(all*share) {
			t.Errorf("%v: %s", share, s.Info)
		}
		smaller = names
	}
}

// TestShareOfGlyphs: the last of all glyphs are held out, whatever the share, and an
// image is what it was.
func TestShareOfGlyphs(t *testing.T) {
	for share, want := range map[float64]int{0.1: 5_100, 0.5: 25_500, 0.01: 510} {
		plain, s := open(t, "glyphs", Options{}), open(t, "glyphs", Options{EvalShare: share})
		if s.heldOut.len() != want || s.train.len() != 51_000-want || s.Info.HeldOut != want {
			t.Errorf("%v: %s", share, s.Info)
		}
		if s.heldOut.kind(want-1) != plain.heldOut.kind(999) ||
			!bytes.Equal(lastOf(s, 16), lastOf(plain, 16)) {
			t.Errorf("%v: the last image is another", share)
		}
	}
}

// lastOf is the last held-out image of a set.
func lastOf(s *Set, size int) []byte {
	dst := image.NewRGBA(image.Rect(0, 0, size, size))
	s.heldOut.paint(dst, s.heldOut.len()-1, nil)
	return dst.Pix
}

// TestSharesRefused: what is no share, and any of CIFAR-10, which has a test set.
func TestSharesRefused(t *testing.T) {
	const bad = "give a number above 0, below 1"
	for _, c := range []struct {
		spec  string
		share float64
		want  string
	}{
		{"glyphs", math.NaN(), bad}, {"glyphs", -1, bad}, {"dir:x", 1, bad},
		{"icons:x", math.Inf(1), bad},
		{"cifar10:" + cifarFiles(t, 2), 0.1, "its test set is what is held out"},
		{"glyphs", 0.999999, "no image to train on"},
	} {
		_, err := Open(t.Context(), c.spec, Options{EvalShare: c.share}, nil)
		if _, ok := errors.AsType[*data.Error](err); !ok ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s, %v: %v does not say %q", c.spec, c.share, err, c.want)
		}
	}
}
