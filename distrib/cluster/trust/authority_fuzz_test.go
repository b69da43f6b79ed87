package trust

import (
	"bytes"
	"testing"
)

// FuzzAuthority: an authority that is read is revealed as what is read again as the same, and an
// error has none of what was read, which is a secret.
func FuzzAuthority(f *testing.F) {
	a, err := New("test")
	if err != nil {
		f.Fatal(err)
	}
	text, err := a.Reveal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(bytes.ReplaceAll(text, []byte("CERTIFICATE"), []byte("PRIVATE KEY")))
	f.Add(append(bytes.Clone(text), text...))
	f.Add(text[:len(text)/2])
	f.Add(bytes.ToLower(text))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := parseAuthority(text)
		if err != nil {
			if err != errAuthority {
				t.Errorf("%q", err)
			}
			return
		}
		printed, err := read.Reveal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseAuthority(printed)
		if err != nil || again.Token() != read.Token() {
			t.Fatalf("not read again: %v", err)
		}
		if twice, err := again.Reveal(); err != nil || !bytes.Equal(twice, printed) {
			t.Errorf("revealed otherwise: %v", err)
		}
	})
}
