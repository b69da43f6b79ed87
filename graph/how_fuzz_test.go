package graph

import (
	"testing"

	"github.com/gomem/gomem/internal/legible"
)

// FuzzHow: a way to exchange is one line, and is read again as itself; of anything else the error
// is one short line.
func FuzzHow(f *testing.F) {
	for _, text := range []string{"mean", "mean/ring", "sum@batch", "mean/ring@batch", "gather/x",
		"sum@a@b", "sum@\xff", "mean/@", "sum@a b", "@", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHow(text)
		if err != nil {
			if !legible.Is(err.Error()) || len(err.Error()) > 1000 {
				t.Errorf("%q", err)
			}
			return
		}
		if printed := h.String(); printed != text || !legible.Is(printed) {
			t.Errorf("%q is printed as %q", text, printed)
		}
	})
}
