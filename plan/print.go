package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/count"
)

// WriteTo prints a plan whose indexes are in range as text that [Parse] reads
// back: a header, one slot a line, one step a line, and at the end how many slots,
// steps and fetches there were, so that a text that is cut off is none. Sizes and
// addresses are bytes; a line has 16 MiB at most. Names are printed as they are,
// those that would break a line or look quoted with Go's quotes. A stream, an
// operation or an axis whose name is empty or has spaces cannot be printed: the
// error, before anything is written, is an *[Error].
//
//	slot 12 device+4096 2048 17-23 f32[64 8] enc/0/att/qk
//	step 17 p3 compute0 #55 launch matmul 12 <- 5 3+64 wait 15 : enc/0/att/qk
//	step 18 p3 out #55 copy 31 <- 12 2048 swap-out idle 41 wait 17 : enc/0/att/qk
//	end 40 213 2
func (p *Plan) WriteTo(w io.Writer) (int64, error) {
	if err := p.printable(); err != nil {
		return 0, err
	}
	b := count.NewWriter(w)
	fmt.Fprintf(b, "plan %s\n", quoted(p.Title))
	if p.Digest != "" {
		fmt.Fprintf(b, "graph %s\n", p.Digest)
	}
	fmt.Fprintf(b, "parts %d\n", p.Parts)
	if p.Window > 0 {
		fmt.Fprintf(b, "window %d\n", p.Window)
	}
	if p.Gathers {
		fmt.Fprintln(b, "gathers")
	}
	for _, s := range p.Spaces {
		fmt.Fprintf(b, "space %s %d of %d align %d\n", s.Name, s.Bytes, s.Budget, s.Align)
	}
	for _, s := range p.Streams {
		fmt.Fprintf(b, "stream %s %s\n", s.Name, s.Engine.Name(p.SpaceName))
	}
	for i, s := range p.Slots {
		life := "fixed"
		if !s.Fixed {
			life = fmt.Sprintf("%d-%d", s.From, s.To)
		}
		fmt.Fprintf(b, "slot %d %s+%d %d %s %s : %s\n", i, p.Spaces[s.Space].Name, s.Off, s.Bytes,
			life, s.Type, quoted(s.Value))
	}
	for _, f := range p.Feeds {
		fmt.Fprintf(b, "feed #%d %d : %s\n", f.Node, f.Slot, quoted(f.Name))
	}
	for _, f := range p.Variables {
		fmt.Fprintf(b, "variable #%d %d : %s\n", f.Node, f.Slot, quoted(f.Name))
	}
	for i := range p.Steps {
		fmt.Fprintln(b, p.StepString(i))
	}
	for _, f := range p.Fetches {
		fmt.Fprintf(b, "fetch %s %s : %s\n", f.Ref, f.Type, quoted(f.Value))
	}
	fmt.Fprintf(b, "end %d %d %d\n", len(p.Slots), len(p.Steps), len(p.Fetches))
	return b.Done()
}

// quoted is a name at the end of a line: itself, or in quotes where a reader
// would take something else for it.
func quoted(name string) string {
	if strings.HasPrefix(name, `"`) || strings.ContainsAny(name, "\r\n") {
		return strconv.Quote(name)
	}
	return name
}

// printable demands that what is printed between spaces is one word.
func (p *Plan) printable() error {
	var err error
	word := func(step int, name, what, w string) {
		if err == nil && (w == "" || strings.ContainsFunc(w, unicode.IsSpace)) {
			err = &Error{Step: step, Name: name,
				Err: fmt.Errorf("%s %q cannot be printed: it is empty or has spaces", what, w)}
		}
	}
	axes := func(t tensor.Type) {
		for _, d := range t.Shape {
			word(-1, "", "axis", "."+d.Name)
		}
	}
	word(-1, "", "digest", "."+p.Digest)
	for _, s := range p.Spaces {
		word(-1, "", "space", s.Name)
	}
	for _, s := range p.Streams {
		word(-1, "", "stream", s.Name)
	}
	for i := range p.Slots {
		axes(p.Slots[i].Type)
	}
	for i := range p.Fetches {
		axes(p.Fetches[i].Type)
	}
	for i := range p.Steps {
		if do := p.Steps[i].Do; do != nil {
			word(i, p.Steps[i].Name, "operation", do.What())
			if l, ok := do.(Launch); ok {
				word(i, p.Steps[i].Name, "library", "."+l.Library)
			}
		}
	}
	return err
}

// String is the slot's number, with "+off" where the offset is not zero.
func (r Ref) String() string {
	if r.Off == 0 {
		return fmt.Sprint(int(r.Slot))
	}
	return fmt.Sprintf("%d+%d", r.Slot, r.Off)
}

// StepString prints one step.
func (p *Plan) StepString(i int) string {
	var b strings.Builder
	s := p.Steps[i]
	fmt.Fprintf(&b, "step %d p%d %s #%d ", i, s.Part, p.Streams[s.Stream].Name, s.Node)
	if s.Do != nil {
		s.Do.print(&b)
	}
	if len(s.Wait) > 0 {
		b.WriteString(" wait")
		for _, w := range s.Wait {
			fmt.Fprintf(&b, " %d", w)
		}
	}
	fmt.Fprintf(&b, " : %s", quoted(s.Name))
	return b.String()
}

func refs(list []Ref) string {
	var b strings.Builder
	for _, r := range list {
		b.WriteByte(' ')
		b.WriteString(r.String())
	}
	return b.String()
}
