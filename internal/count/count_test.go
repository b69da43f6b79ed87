package count_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/count"
)

// short takes so many bytes and then fails.
type short int

var errFull = errors.New("full")

func (s *short) Write(p []byte) (int, error) {
	n := min(len(p), int(*s))
	*s -= short(n)
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// TestWriterCountsWhatArrives: everything passes, and the count is that of the
// bytes that the writer below has taken, whether or not it took all of them.
func TestWriterCountsWhatArrives(t *testing.T) {
	text := strings.Repeat("0123456789\n", 1000)
	var b strings.Builder
	w := count.NewWriter(&b)
	for line := range strings.Lines(text) {
		fmt.Fprint(w, line)
	}
	if n, err := w.Done(); n != int64(len(text)) || err != nil || b.String() != text {
		t.Errorf("%d bytes, %v; want %d", n, err, len(text))
	}

	for _, room := range []int{0, 1, 4095, 4096, 5000, len(text) - 1} {
		below := short(room)
		w := count.NewWriter(&below)
		fmt.Fprint(w, text)
		if n, err := w.Done(); n != int64(room) || !errors.Is(err, errFull) {
			t.Errorf("room for %d: %d bytes, %v", room, n, err)
		}
	}
}
