package plan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/space"
)

// Parse reads what WriteTo prints. Errors name the line. It checks the form
// only; [Verify] checks the sense.
func Parse(r io.Reader) (*Plan, error) {
	p := &parser{plan: &Plan{}}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	for n := 1; in.Scan(); n++ {
		if err := p.line(in.Text()); err != nil {
			return nil, fmt.Errorf("plan line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if !p.started {
		return nil, errors.New("plan: the text is empty")
	}
	for i := range p.plan.Slots {
		if s := &p.plan.Slots[i]; s.Fixed {
			s.To = max(0, len(p.plan.Steps)-1)
		}
	}
	return p.plan, nil
}

type parser struct {
	plan    *Plan
	started bool
	fields  []string // words left on the line
	err     error    // first mistake on the line
}

func (p *parser) line(text string) error {
	head, name, _ := strings.Cut(text, " : ")
	p.fields, p.err = strings.Fields(head), nil
	kind := p.word()
	switch {
	case kind == "plan":
		p.started = true
		p.plan.Title = strings.TrimPrefix(text, "plan ")
		return p.err
	case !p.started:
		return errors.New("does not start with a plan line")
	}
	switch kind {
	case "parts":
		p.plan.Parts = p.integer("")
	case "space":
		s := Space{Name: p.word(), Bytes: p.long("")}
		p.expect("of")
		s.Budget = p.long("")
		p.plan.Spaces = append(p.plan.Spaces, s)
	case "stream":
		s := Stream{Name: p.word()}
		s.Engine = space.Engine(p.oneOf(engines(), p.word()))
		p.plan.Streams = append(p.plan.Streams, s)
	case "slot":
		p.slot(name)
	case "feed":
		p.plan.Feeds = append(p.plan.Feeds, p.binding(name))
	case "variable":
		p.plan.Variables = append(p.plan.Variables, p.binding(name))
	case "step":
		p.step(name)
	case "fetch":
		f := Fetch{Value: name, Ref: p.ref(p.word())}
		f.Type = p.dtype()
		p.plan.Fetches = append(p.plan.Fetches, f)
	default:
		return fmt.Errorf("unknown line %q", kind)
	}
	if p.err == nil && len(p.fields) > 0 {
		p.fail("unexpected %q", p.fields[0])
	}
	return p.err
}

func (p *parser) slot(name string) {
	p.number(len(p.plan.Slots))
	where, off, _ := strings.Cut(p.word(), "+")
	s := Slot{Value: name, Space: space.ID(p.oneOf(p.spaces(), where)), Off: p.parse(off),
		Bytes: p.long("")}
	if life := p.word(); life == "fixed" {
		s.Fixed = true
	} else {
		from, to, _ := strings.Cut(life, "-")
		s.From, s.To = int(p.parse(from)), int(p.parse(to))
	}
	s.Type = p.dtype()
	p.plan.Slots = append(p.plan.Slots, s)
}

func (p *parser) binding(name string) Binding {
	return Binding{Name: name, Node: graph.NodeID(p.integer("#")), Slot: SlotID(p.integer(""))}
}

func (p *parser) step(name string) {
	p.number(len(p.plan.Steps))
	s := Step{Name: name, Part: p.integer("p")}
	s.Stream = StreamID(p.oneOf(p.streams(), p.word()))
	s.Node = graph.NodeID(p.integer("#"))
	switch kind := p.word(); kind {
	case "launch":
		s.Do = p.launch()
	case "copy":
		s.Do = p.copy()
	default:
		p.fail("unknown action %q", kind)
	}
	if p.accept("wait") {
		for len(p.fields) > 0 && p.err == nil {
			s.Wait = append(s.Wait, p.integer(""))
		}
	}
	p.plan.Steps = append(p.plan.Steps, s)
}

func (p *parser) launch() Launch {
	l := Launch{Op: p.word(), Scratch: NoSlot}
	for p.err == nil && !p.accept("<-") {
		l.Out = append(l.Out, p.ref(p.word()))
	}
	for p.err == nil && len(p.fields) > 0 && p.fields[0][0] >= '0' && p.fields[0][0] <= '9' {
		l.In = append(l.In, p.ref(p.word()))
	}
	if p.accept("scratch") {
		l.Scratch = SlotID(p.integer(""))
	}
	if p.accept("mutates") {
		l.Mutates = p.integer("")
	}
	return l
}

func (p *parser) copy() Copy {
	c := Copy{Dst: p.ref(p.word())}
	p.expect("<-")
	c.Src = p.ref(p.word())
	c.Bytes = p.long("")
	c.Why = Why(p.oneOf(whys[:], p.word()))
	if p.accept("idle") {
		c.Idle = p.integer("")
	}
	return c
}

// The rest reads words; the first mistake sticks.

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) word() string {
	if len(p.fields) == 0 {
		p.fail("the line ends early")
		return ""
	}
	w := p.fields[0]
	p.fields = p.fields[1:]
	return w
}

func (p *parser) accept(w string) bool {
	if len(p.fields) == 0 || p.fields[0] != w {
		return false
	}
	p.fields = p.fields[1:]
	return true
}

func (p *parser) expect(w string) {
	if !p.accept(w) {
		p.fail("want %q", w)
	}
}

func (p *parser) parse(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		p.fail("%q is not a number", s)
	}
	return n
}

func (p *parser) long(prefix string) int64 {
	w := p.word()
	digits, ok := strings.CutPrefix(w, prefix)
	if !ok {
		p.fail("want %s and a number, have %q", prefix, w)
	}
	return p.parse(digits)
}

func (p *parser) integer(prefix string) int {
	n := p.long(prefix)
	if int64(int32(n)) != n {
		p.fail("%d is too large", n)
		return 0
	}
	return int(n)
}

// number reads a running number.
func (p *parser) number(want int) {
	if n := p.integer(""); n != want {
		p.fail("number %d, want %d", n, want)
	}
}

func (p *parser) ref(w string) Ref {
	slot, off, plus := strings.Cut(w, "+")
	r := Ref{Slot: SlotID(p.parse(slot))}
	if plus {
		r.Off = p.parse(off)
	}
	return r
}

func (p *parser) oneOf(list []string, w string) int {
	i := slices.Index(list, w)
	if i < 0 {
		p.fail("%q is not one of %s", w, strings.Join(list, ", "))
		return 0
	}
	return i
}

// dtype reads a type, whose text may hold spaces between brackets.
func (p *parser) dtype() tensor.Type {
	w := p.word()
	for p.err == nil && !strings.HasSuffix(w, "]") {
		w += " " + p.word()
	}
	t, err := tensor.ParseType(w)
	if err != nil {
		p.fail("%v", err)
	}
	return t
}

func (p *parser) spaces() []string {
	var names []string
	for _, s := range p.plan.Spaces {
		names = append(names, s.Name)
	}
	return names
}

func (p *parser) streams() []string {
	var names []string
	for _, s := range p.plan.Streams {
		names = append(names, s.Name)
	}
	return names
}

func engines() []string {
	var names []string
	for e := range space.Engines {
		names = append(names, e.String())
	}
	return names
}
