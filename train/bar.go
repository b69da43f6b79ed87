package train

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Terminal is an output that may be a terminal.
type Terminal interface {
	io.Writer
	Width() int // columns, now; 0 if it is no terminal
}

// TerminalOf is an output with the width that it has if it is a terminal: one that says
// so itself, or a file that is one.
func TerminalOf(w io.Writer) Terminal {
	if t, ok := w.(Terminal); ok {
		return t
	}
	return outlet{w}
}

// outlet is any output.
type outlet struct{ io.Writer }

// Width asks the system.
func (o outlet) Width() int {
	f, ok := o.Writer.(*os.File)
	if !ok {
		return 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || height <= 0 {
		return 0
	}
	return width
}

// Bar keeps a line with the progress of something at the bottom of a terminal, while
// lines that are written to it appear above. The line is never wider than the terminal:
// what does not fit is left out, and when the width changes it is drawn anew. Its methods
// may be called by any number of goroutines.
type Bar struct {
	mu    sync.Mutex
	out   Terminal
	line  func(width int) string // the line, as wide as that at most
	shown string                 // what is on the terminal, at its last line; "" if nothing
	part  []byte                 // of a line that has no end yet
	dirty bool                   // the line has changed since it was drawn
	drawn time.Time
	stop  chan struct{} // closed to end redrawing
	ended sync.WaitGroup
}

// barPause is the least time between two drawings of what changes all the time.
const barPause = 100 * time.Millisecond

// NewBar shows a bar on a terminal, until Close.
func NewBar(t Terminal) *Bar {
	b := &Bar{out: t, stop: make(chan struct{})}
	b.ended.Go(b.follow)
	return b
}

// follow draws what has changed, the width included, until the bar is closed.
func (b *Bar) follow() {
	tick := time.NewTicker(barPause)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-tick.C:
			b.mu.Lock()
			if b.dirty || b.line != nil && b.line(b.width()) != b.shown {
				b.draw()
			}
			b.mu.Unlock()
		}
	}
}

// Set states that done of total steps are done, with facts beside it, the most important
// first: those that there is no room for are left out.
func (b *Bar) Set(done, total int, facts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line = func(width int) string { return barLine(width, done, total, facts) }
	b.dirty = true
	if time.Since(b.drawn) >= barPause {
		b.draw()
	}
}

// Write prints whole lines above the bar; a part of a line waits for its end.
func (b *Bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part = append(b.part, p...)
	end := bytes.LastIndexByte(b.part, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	text := string(b.part[:end])
	b.part = append([]byte(nil), b.part[end:]...)
	erase := b.erase()
	b.shown = ""
	if _, err := io.WriteString(b.out, erase+text); err != nil {
		return 0, err
	}
	b.draw()
	return len(p), nil
}

// Close leaves the bar as it is and ends its line. Closing again does nothing.
func (b *Bar) Close() {
	b.mu.Lock()
	select {
	case <-b.stop:
		b.mu.Unlock()
		return
	default:
		close(b.stop)
	}
	if b.line != nil {
		b.draw()
	}
	end := ""
	if b.shown != "" {
		end = "\n"
	}
	_, _ = io.WriteString(b.out, end+string(b.part)) // a bar that cannot be seen harms nobody
	b.shown, b.part, b.line = "", nil, nil
	b.mu.Unlock()
	b.ended.Wait()
}

// width leaves a column free, since terminals differ in what they do with a line that
// ends there.
func (b *Bar) width() int { return max(1, b.out.Width()-1) }

// draw shows the line in place of what is there.
func (b *Bar) draw() {
	if b.line == nil {
		return
	}
	text := b.line(b.width())
	_, _ = io.WriteString(b.out, b.erase()+text+"\r")
	b.shown, b.dirty, b.drawn = text, false, time.Now()
}

// erase is what removes the line that is shown. The cursor is at its beginning: when a
// terminal becomes narrower and wraps the line, the cursor stays there, and all that is
// below it is the line's.
func (b *Bar) erase() string {
	if b.shown == "" {
		return ""
	}
	return "\r\x1b[J"
}

// The widths of the bar itself: enough to see it move; the facts matter more.
const minBar, maxBar = 8, 24

// barLine is a line of at most a width: the count, the bar, and as many facts as fit.
func barLine(width, done, total int, facts []string) string {
	count := fmt.Sprintf("step %d/%d", done, total)
	room := width - utf8.RuneCountInString(count)
	if room < 0 {
		return string([]rune(count)[:width])
	}
	tail, least := "", minBar+3 // with the brackets and the space before it
	if width < 60 {
		least = 0
	}
	for _, f := range facts {
		if n := utf8.RuneCountInString(tail + "  " + f); n+least <= room {
			tail += "  " + f
		}
	}
	room -= utf8.RuneCountInString(tail)
	return count + drawnBar(min(room-3, maxBar), done, total) + tail
}

// drawnBar is a space and a bar of so many characters between brackets, or nothing where
// it would show nothing.
func drawnBar(size, done, total int) string {
	if size < minBar {
		return ""
	}
	full := size
	if total > 0 && done < total {
		full = int(int64(size) * int64(done) / int64(total))
	}
	head := ""
	if full < size {
		head = ">"
	}
	return " [" + strings.Repeat("=", full) + head + strings.Repeat("-",
		size-full-len(head)) + "]"
}
