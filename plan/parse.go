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
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
)

// maxSpaces is how many spaces a space.ID can number beside the network.
const maxSpaces = int(space.Network)

// maxLine is how long a line may be, in bytes.
const maxLine = 16 << 20

// Parse reads what WriteTo prints, to its end line and nothing behind it. Errors name the line.
// It checks the form only; [Verify] checks the sense.
func Parse(r io.Reader) (*Plan, error) {
	p := &parser{plan: &Plan{}}
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := readLine(in)
		switch {
		case errors.Is(err, errLong):
			return nil, fmt.Errorf("plan line %d: %w", n, err)
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("plan: %w", err)
		case text == "" && n == 1:
			return nil, errors.New("plan: the text is empty")
		case text == "" && !p.ended:
			return nil, fmt.Errorf("plan line %d: there is no end line: the text is cut off, or "+
				"an older gomem's", n-1)
		case text == "":
			p.finish()
			return p.plan, nil
		}
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if n == 1 {
			p.title(text)
		} else {
			p.line(text)
		}
		if p.err != nil {
			return nil, fmt.Errorf("plan line %d: %w", n, p.err)
		}
	}
}

// errLong is the error of a line that no plan has.
var errLong = fmt.Errorf("it is longer than %d MiB", maxLine>>20)

// readLine reads a line with its end, or what there is up to the end of the text.
func readLine(in *bufio.Reader) (string, error) {
	var line strings.Builder
	for {
		part, err := in.ReadSlice('\n')
		line.Write(part)
		switch {
		case line.Len() > maxLine:
			return "", errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line.String(), err
		}
	}
}

// finish gives fixed slots the life that their lines do not print.
func (p *parser) finish() {
	for i := range p.plan.Slots {
		if s := &p.plan.Slots[i]; s.Fixed {
			s.To = max(0, len(p.plan.Steps)-1)
		}
	}
}

type parser struct {
	plan   *Plan
	fields []string // words left on the line
	name   string   // what follows the words, behind a colon
	named  bool     // something does
	ended  bool     // the end line was read
	err    error    // first mistake
}

// title reads the first line.
func (p *parser) title(text string) {
	title, ok := strings.CutPrefix(text, "plan ")
	if !ok {
		p.fail("does not start with a plan line")
	}
	p.plan.Title = p.unquote(title)
}

func (p *parser) line(text string) {
	var head string
	head, p.name, p.named = strings.Cut(text, " : ")
	p.fields = strings.Fields(head)
	if p.ended {
		p.fail("it is behind the end line")
	}
	switch kind := p.word(); kind {
	case "graph":
		p.plan.Digest = p.word()
	case "parts":
		p.plan.Parts = p.integer("")
	case "window":
		p.plan.Window = p.integer("")
	case "gathers":
		p.plan.Gathers = true
	case "space":
		p.space()
	case "stream":
		p.stream()
	case "slot":
		p.slot()
	case "feed":
		p.plan.Feeds = append(p.plan.Feeds, p.binding())
	case "variable":
		p.plan.Variables = append(p.plan.Variables, p.binding())
	case "step":
		p.step()
	case "fetch":
		f := Fetch{Value: p.last(), Ref: p.ref(p.word())}
		f.Type = p.dtype()
		p.plan.Fetches = append(p.plan.Fetches, f)
	case "end":
		p.end()
	default:
		p.fail("unknown line %.60q", kind)
	}
	switch {
	case len(p.fields) > 0:
		p.fail("unexpected %.60q", p.fields[0])
	case p.named:
		p.fail("unexpected name %.60q", p.name)
	}
}

// end reads how much there was before it.
func (p *parser) end() {
	p.ended = true
	for _, x := range []struct {
		what string
		have int
	}{{"slots", len(p.plan.Slots)}, {"steps", len(p.plan.Steps)},
		{"fetches", len(p.plan.Fetches)}} {
		if n := p.integer(""); n != x.have {
			p.fail("%s: there are %d, the end line says %d", x.what, x.have, n)
		}
	}
}

func (p *parser) space() {
	s := Space{Name: p.word(), Bytes: p.long()}
	p.expect("of")
	s.Budget = p.long()
	p.expect("align")
	s.Align = p.long()
	p.plan.Spaces = append(p.plan.Spaces, s)
	if len(p.plan.Spaces) > maxSpaces {
		p.fail("more than %d spaces", maxSpaces)
	}
}

func (p *parser) stream() {
	s := Stream{Name: p.word(), Engine: p.engine()}
	p.plan.Streams = append(p.plan.Streams, s)
	if len(p.plan.Streams) > maxStreams {
		p.fail("more than %d streams", maxStreams)
	}
}

// engine reads what an engine does.
func (p *parser) engine() space.Engine {
	if p.accept("copies") {
		from := p.spaceID()
		p.expect("to")
		to := p.spaceID()
		if from == to {
			p.fail("copies from a space to itself")
		}
		return space.Copier(from, to)
	}
	p.expect("runs")
	p.expect("in")
	in := p.spaceID()
	return space.Copier(in, in)
}

// spaceID reads the name of a space, or the network's.
func (p *parser) spaceID() space.ID {
	w := p.word()
	if w == space.Network.String() && !slices.Contains(p.spaces(), w) {
		return space.Network
	}
	return space.ID(p.oneOf(p.spaces(), w))
}

func (p *parser) slot() {
	p.number(len(p.plan.Slots))
	where, off, _ := strings.Cut(p.word(), "+")
	s := Slot{Value: p.last(), Space: space.ID(p.oneOf(p.spaces(), where)),
		Off: p.parse(off, 63), Bytes: p.long()}
	if life := p.word(); life == "fixed" {
		s.Fixed = true
	} else {
		from, to, _ := strings.Cut(life, "-")
		s.From, s.To = int(p.parse(from, 31)), int(p.parse(to, 31))
	}
	s.Type = p.dtype()
	p.plan.Slots = append(p.plan.Slots, s)
}

func (p *parser) binding() Binding {
	return Binding{Name: p.last(), Node: graph.NodeID(p.integer("#")), Slot: SlotID(p.integer(""))}
}

func (p *parser) step() {
	p.number(len(p.plan.Steps))
	s := Step{Name: p.last(), Part: p.integer("p")}
	s.Stream = StreamID(p.oneOf(p.streams(), p.word()))
	s.Node = graph.NodeID(p.integer("#"))
	s.Do = p.action(p.word())
	if p.accept("wait") {
		for len(p.fields) > 0 && p.err == nil {
			s.Wait = append(s.Wait, p.integer(""))
		}
	}
	p.plan.Steps = append(p.plan.Steps, s)
}

// action reads what a word begins.
func (p *parser) action(word string) Action {
	for _, a := range actions {
		if a.word == word {
			return a.parse(p)
		}
	}
	p.fail("unknown action %.60q", word)
	return nil
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

// last is the name at the end of the line.
func (p *parser) last() string {
	if !p.named {
		p.fail("want a colon and a name at the end")
	}
	p.named = false
	return p.unquote(p.name)
}

func (p *parser) unquote(name string) string {
	if !strings.HasPrefix(name, `"`) {
		return name
	}
	plain, err := strconv.Unquote(name)
	if err != nil {
		p.fail("%.60q is not a quoted name", name)
	}
	return plain
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

// parse reads digits, without a sign, as a number of so many bits.
func (p *parser) parse(s string, bits int) int64 {
	n, err := strconv.ParseUint(s, 10, bits)
	if err != nil {
		p.fail("%.60q is not a number below 2^%d", s, bits)
	}
	return int64(n)
}

// long reads a number of bytes.
func (p *parser) long() int64 { return p.parse(p.word(), 63) }

// integer reads whatever else is counted.
func (p *parser) integer(prefix string) int {
	w := p.word()
	digits, ok := strings.CutPrefix(w, prefix)
	if !ok {
		p.fail("want %s and a number, have %.60q", prefix, w)
	}
	return int(p.parse(digits, 31))
}

// number reads a running number.
func (p *parser) number(want int) {
	if n := p.integer(""); n != want {
		p.fail("number %d, want %d", n, want)
	}
}

func (p *parser) ref(w string) Ref {
	slot, off, plus := strings.Cut(w, "+")
	r := Ref{Slot: SlotID(p.parse(slot, 31))}
	if plus {
		r.Off = p.parse(off, 63)
	}
	return r
}

// refs reads places as far as there are some.
func (p *parser) refs() (list []Ref) {
	for p.err == nil && len(p.fields) > 0 && p.fields[0][0] >= '0' && p.fields[0][0] <= '9' {
		list = append(list, p.ref(p.word()))
	}
	return list
}

// reason reads why a copy is made.
func (p *parser) reason() space.Reason {
	var names []string
	for r := range space.Reasons {
		names = append(names, r.String())
	}
	return space.Reason(p.oneOf(names, p.word()))
}

func (p *parser) oneOf(list []string, w string) int {
	i := slices.Index(list, w)
	if i < 0 {
		p.fail("%.60q is not one of %s", w, strings.Join(list, ", "))
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
