package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// TestOnce: a line that several processes say is written once, in the first one's words; what a
// process says again is written again, and nothing is remembered for ever.
func TestOnce(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	o := &once{w: &b}
	for _, line := range []string{"[1] gomem: no\n", "gomem: no\n", "[2] gomem: no\n",
		"[1] gomem: no\n", "[1 gomem: no\n", "[2] gomem: yes\n", "[1] [2] gomem: yes\n",
		"[3] {\"rank\":3}\n", "[4] "} {
		if n, err := o.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "[1] gomem: no\n[1] gomem: no\n[1 gomem: no\n[2] gomem: yes\n" +
		"[1] [2] gomem: yes\n{\"rank\":3}\n[4] "; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	for i := range mostSaid {
		fmt.Fprintf(o, "%d\n", i)
	}
	b.Reset()
	if fmt.Fprint(o, "gomem: no\n"); b.Len() == 0 || len(o.said) != mostSaid {
		t.Errorf("%q, %d lines", b.String(), len(o.said))
	}
}
