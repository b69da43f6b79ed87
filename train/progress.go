package train

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/go-units"
)

// Progress prints a run as it goes: on a terminal a bar with the last step, and above it
// a line for every evaluation, checkpoint and warning; elsewhere lines only, for steps
// too. Its Observe is one for Options.
type Progress struct {
	// Facts says in words what is to be seen of a step, the most important first, given
	// the time that is left. Those that a line has no room for are left out.
	Facts func(e Event, left time.Duration) []string
	// Lines is where lines go that are to appear above the bar; it is the output itself
	// where there is no bar.
	Lines io.Writer

	out      Terminal
	bar      *Bar
	stepTime Recent    // of a step, in nanoseconds
	shown    int       // the last step that had a line
	shownAt  time.Time // and when
}

// NewProgress prints to w: to a terminal with a bar.
func NewProgress(w io.Writer) *Progress {
	return &Progress{Facts: Facts, Lines: w, out: TerminalOf(w), stepTime: Recent{Share: 0.1}}
}

// Show is the Observe of a new Progress, which ends with the run, with a line about all of
// it.
func Show(w io.Writer) func(Event) {
	p := NewProgress(w)
	return func(e Event) {
		p.Observe(e)
		if e.Summary != nil {
			fmt.Fprintln(w, Wrapped(p.width(), "done", e.Summary.facts()))
		}
	}
}

// facts are a run in words.
func (s Summary) facts() []string {
	memory := units.BytesSize(float64(s.ActualDevicePeak))
	if s.ActualDevicePeak == s.PredictedDevicePeak {
		memory += " predicted = actual"
	} else {
		memory += ", predicted " + units.BytesSize(float64(s.PredictedDevicePeak))
	}
	return []string{fmt.Sprintf("%d steps", s.Steps-s.ResumedFrom),
		fmt.Sprintf("loss %.4f -> %.4f", s.LossFirst, s.LossLast),
		fmt.Sprintf("%.2f ms a step (median)", s.StepMillis), "device " + memory}
}

// RateFact is a step's learning rate in words.
func RateFact(e Event) string { return fmt.Sprintf("rate %.3g", e.LearningRate) }

// Facts are a step's loss, metrics, learning rate and speed, and the time left.
func Facts(e Event, left time.Duration) []string {
	facts := []string{fmt.Sprintf("loss %.4f", e.Loss)}
	for _, name := range slices.Sorted(maps.Keys(e.Metrics)) {
		facts = append(facts, fmt.Sprintf("%s %.4f", name, e.Metrics[name]))
	}
	speed := fmt.Sprintf("%.3g %ss/s", e.UnitsPerSecond, e.Unit)
	if e.UnitsPerSecond >= 100 {
		speed = fmt.Sprintf("%.0f %ss/s", e.UnitsPerSecond, e.Unit)
	}
	facts = append(facts, RateFact(e))
	return append(facts, left.Round(time.Second).String()+" left", speed,
		"device "+units.BytesSize(float64(e.DeviceBytes)))
}

// Observe prints an event.
func (p *Progress) Observe(e Event) {
	switch e.Kind {
	case Start:
		p.start(e)
	case Init:
		text := Folded(fmt.Sprintf("began with %s: %s", e.Path, e.Text), p.width())
		fmt.Fprintln(p.Lines, text)
	case Warning:
		fmt.Fprintf(p.Lines, "warning: %s\n", e.Text)
	case Step:
		p.stepTime.Add(float64(e.StepTime))
		p.step(e)
	case Eval:
		p.evaluation(e)
	case Save:
		fmt.Fprintf(p.Lines, "step %d/%d  saved %s\n", e.Step, e.Steps, e.Path)
	case Stop:
		fmt.Fprintf(p.Lines, "step %d/%d  %s\n", e.Step, e.Steps, e.Text)
	case View:
		text := fmt.Sprintf("step %d/%d  %s", e.Step, e.Steps, e.Text)
		fmt.Fprintln(p.Lines, Folded(text, p.width()))
	case End:
		p.Close()
	}
}

// start shows the first step that is to come.
func (p *Progress) start(e Event) {
	if e.Step > 0 {
		fmt.Fprintf(p.Lines, "resumed after step %d from %s\n", e.Step, e.Path)
	}
	p.shown = e.Step
	if p.out.Width() > 0 && p.bar == nil {
		p.bar = NewBar(p.out)
		p.Lines = p.bar
		p.bar.Set(e.Step, e.Steps, "first step")
	}
}

// evaluation prints what came of one, and examples of it.
func (p *Progress) evaluation(e Event) {
	facts := []string{fmt.Sprintf("held-out loss %.4f", e.Loss)}
	for _, name := range slices.Sorted(maps.Keys(e.Metrics)) {
		facts = append(facts, fmt.Sprintf("%s %.4f", name, e.Metrics[name]))
	}
	at := fmt.Sprintf("step %d/%d", e.Step, e.Steps)
	fmt.Fprintln(p.Lines, Wrapped(p.width(), at, facts))
	for _, sample := range e.Samples { // what is made of a text has a line of its own
		text, made, both := strings.Cut(sample, " -> ")
		fmt.Fprintf(p.Lines, "  %s\n", cut(text, p.width()-2))
		if both {
			fmt.Fprintf(p.Lines, "    -> %s\n", cut(made, p.width()-7))
		}
	}
}

// cut is a text of at most so many columns, with a mark where it is cut.
func cut(text string, columns int) string {
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:max(0, columns-1)]) + "…"
}

// everySteps and everyTime are how often steps get a line; no run has many more than a
// hundred but for its time.
const (
	everySteps = 10
	everyTime  = 2 * time.Second
)

// step shows a step. The time left follows from recent steps.
func (p *Progress) step(e Event) {
	left := time.Duration(float64(e.Steps-e.Step) * p.stepTime.Value())
	if p.bar != nil {
		p.bar.Set(e.Step, e.Steps, p.Facts(e, left)...)
		return
	}
	every := max(everySteps, e.Steps/100)
	due := p.shownAt.IsZero() || e.Step == e.Steps || e.Step-p.shown >= every ||
		time.Since(p.shownAt) >= everyTime
	if !due {
		return
	}
	p.shown, p.shownAt = e.Step, time.Now()
	at := fmt.Sprintf("step %d/%d", e.Step, e.Steps)
	if e.Exchanged != nil { // of a job there is more to say than a line has room for
		fmt.Fprintln(p.Lines, Wrapped(pageWidth, at, p.Facts(e, left)))
		return
	}
	fmt.Fprintln(p.Lines, stepLine(at, p.Facts(e, left)))
}

// pageWidth is the most columns of what is not printed to a terminal.
const pageWidth = 80

// width is how many columns a line may have.
func (p *Progress) width() int {
	if w := p.out.Width(); w > 0 {
		return w
	}
	return pageWidth
}

// stepLine is a line with as many facts as it has room for.
func stepLine(line string, facts []string) string {
	for _, f := range facts {
		if utf8.RuneCountInString(line)+2+utf8.RuneCountInString(f) <= pageWidth {
			line += "  " + f
		}
	}
	return line
}

// Wrapped is a line of facts, two spaces apart, that goes on in further lines, two columns
// in, where the width has no room for all.
func Wrapped(width int, line string, facts []string) string {
	var done strings.Builder
	for _, f := range facts {
		if utf8.RuneCountInString(line)+2+utf8.RuneCountInString(f) > width {
			done.WriteString(line + "\n")
			line = ""
		}
		line += "  " + f
	}
	return done.String() + line
}

// Close ends the bar, if there is one. What is printed afterwards has no bar below it.
func (p *Progress) Close() {
	if p.bar != nil {
		p.bar.Close()
		p.bar, p.Lines = nil, p.out
	}
}

// Folded breaks text between words into lines of at most a width, where words allow that.
func Folded(text string, width int) string {
	var lines strings.Builder
	line := ""
	for _, word := range strings.SplitAfter(text, " ") {
		fits := utf8.RuneCountInString(strings.TrimRight(line+word, " ")) <= width
		if line != "" && !fits {
			lines.WriteString(strings.TrimRight(line, " ") + "\n")
			line = ""
		}
		line += word
	}
	return lines.String() + strings.TrimRight(line, " ")
}
