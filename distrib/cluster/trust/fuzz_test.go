package trust_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib/cluster/trust"
)

// FuzzToken: a token has one text but for the space around it, and an error has none of what
// was read, which may be another secret.
func FuzzToken(f *testing.F) {
	part := strings.Repeat("A", 43)
	token := "gomem1." + part + "." + part
	f.Add([]byte(token))
	f.Add([]byte(" " + token + "\r\n"))
	f.Add([]byte("gomem1." + part + "." + part[1:] + "B"))
	f.Add([]byte("gomem1." + part[:20] + "\n" + part[20:] + "." + part))
	f.Add([]byte("gomem1." + part + "." + part + "="))
	f.Add([]byte("gomem1.." + part))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := trust.ParseToken(text)
		if err != nil {
			if _, same := trust.ParseToken(nil); err.Error() != same.Error() {
				t.Errorf("%q", err)
			}
			return
		}
		if have := read.Reveal(); !bytes.Equal(bytes.TrimSpace(have), bytes.TrimSpace(text)) {
			t.Errorf("%q is read as %q", text, have)
		}
		if again, err := trust.ParseToken(read.Reveal()); err != nil || again != read {
			t.Errorf("%q is not read again: %v", text, err)
		}
	})
}
