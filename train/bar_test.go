package train

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// screen is a terminal that wraps lines, and wraps them anew when its width changes. It
// understands what a bar writes.
type screen struct {
	width int
	lines [][]rune // up to their ends, however many rows they take
	line  int      // where the cursor is
	col   int
}

func newScreen(width int) *screen { return &screen{width: width, lines: [][]rune{nil}} }

// Width is the terminal's.
func (s *screen) Width() int { return s.width }

// Write draws.
func (s *screen) Write(p []byte) (int, error) {
	text := []rune(string(p))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			s.line, s.col = s.line+1, 0
			if s.line == len(s.lines) {
				s.lines = append(s.lines, nil)
			}
		case '\r':
			s.col -= s.col % s.width // of the row
		case '\x1b':
			if !strings.HasPrefix(string(text[i:]), "\x1b[J") {
				panic(fmt.Sprintf("unknown sequence %q", string(text[i:])))
			}
			s.lines[s.line] = s.lines[s.line][:s.col]
			s.lines = s.lines[:s.line+1]
			i += 2
		default:
			if s.col < len(s.lines[s.line]) {
				s.lines[s.line][s.col] = c
			} else {
				s.lines[s.line] = append(s.lines[s.line], c)
			}
			s.col++
		}
	}
	return len(p), nil
}

// text is what can be seen.
func (s *screen) text() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(string(l) + "\n")
	}
	return b.String()
}

var facts = []string{"loss 2.5000", "2m20s left", "1234 tokens/s", "device 192MiB", "copies 3GiB/s"}

// TestBarFits: at every width the line fits, with the count and the facts that matter.
func TestBarFits(t *testing.T) {
	for width, want := range map[int]string{
		10: "step 123/3",
		14: "step 123/300",
		40: "step 123/300  loss 2.5000  2m20s left",
		60: "step 123/300 [========>-----------]  loss 2.5000  2m20s left",
		80: "step 123/300 [====>-----]  loss 2.5000  2m20s left  1234 tokens/s  device 192MiB",
		120: "step 123/300 [=========>--------------]  loss 2.5000  2m20s left  1234 tokens/s  " +
			"device 192MiB  copies 3GiB/s",
	} {
		got := barLine(width, 123, 300, facts)
		if len(got) > width || got != want {
			t.Errorf("at %d columns:\n%q, want\n%q", width, got, want)
		}
	}
}

// TestBarLeavesNoFragments: whatever is printed and however wide the terminal becomes, in
// the end each line that was printed is there once, and one bar, the last.
func TestBarLeavesNoFragments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		widths := []int{40, 60, 80, 120, 17}
		s := newScreen(rapid.SampledFrom(widths).Draw(t, "width"))
		b := NewBar(s)
		var printed []string
		last := 0
		for i := range rapid.IntRange(1, 20).Draw(t, "events") {
			b.mu.Lock() // as the bar's own goroutine looks at the width
			s.width = rapid.SampledFrom(widths).Draw(t, "width")
			b.mu.Unlock()
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				line := fmt.Sprintf("line %d %s.", i, strings.Repeat("x", i*7))
				printed = append(printed, line)
				half := len(line) / 2
				fmt.Fprint(b, line[:half])
				fmt.Fprintln(b, line[half:])
			default:
				b.mu.Lock()
				b.drawn = time.Time{} // no pause between drawings
				b.mu.Unlock()
				b.Set(i+1, 20, facts...)
				last = i + 1
			}
		}
		b.Close()
		b.Close()
		want := strings.Join(append(printed, ""), "\n")
		if last > 0 {
			want += barLine(s.width-1, last, 20, facts) + "\n"
		}
		if got := strings.TrimSuffix(s.text(), "\n"); got != want {
			t.Fatalf("%d columns show\n%s\nwant\n%s", s.width, got, want)
		}
	})
}

// TestBarFollowsTheWidth: a bar that nothing happens to is drawn anew.
func TestBarFollowsTheWidth(t *testing.T) {
	s := newScreen(120)
	b := NewBar(s)
	b.Set(1, 20, facts...)
	for _, width := range []int{60, 40, 120} {
		b.mu.Lock()
		s.width = width
		b.mu.Unlock()
		want := barLine(width-1, 1, 20, facts) + "\n"
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			b.mu.Lock()
			got := s.text()
			b.mu.Unlock()
			if got == want {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d columns show %q, want %q", width, got, want)
			}
		}
	}
	b.Close()
}
