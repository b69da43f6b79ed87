package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

const small = `plan policy=thesis
graph sha256:0123
parts 1
space device 64 of 100 align 64
space host 64 of 100 align 64
stream compute0 runs in device
stream in copies host to device
slot 0 device+0 8 0-1 f32[2] : x
slot 1 host+0 8 0-0 f32[batch:2] : x
slot 2 host+64 4 fixed f32[1] : w
feed #0 1 : x
variable #2 2 : w
step 0 p0 in #0 copy 0 <- 1 8 feed idle 3 : x
step 1 p0 compute0 #1 launch relu 0 <- 0 scratch 0 mutates 1 by cudnn wait 0 : y
fetch 1+4 f32[] : y
end 3 2 1
`

// ended is the text of a plan with its end line.
func ended(text string) string {
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		kind, _, _ := strings.Cut(line, " ")
		counts[kind]++
	}
	return fmt.Sprintf("%send %d %d %d\n", text, counts["slot"], counts["step"], counts["fetch"])
}

func parse(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func printed(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if n, err := p.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", n, b.Len(), err)
	}
	return b.String()
}

// TestParse: what is read is printed as it was; without a line end after the last
// line or with those of Windows it is the same.
func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"as it is": small, "no line end": strings.TrimSuffix(small, "\n"),
		"carriage returns": strings.ReplaceAll(small, "\n", "\r\n"),
	} {
		if diff := cmp.Diff(small, printed(t, parse(t, text))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if p := parse(t, ended("plan \n")); p.Title != "" || len(p.Slots) > 0 {
		t.Errorf("nothing but a title reads as %+v", p)
	}
}

// TestFixedSlotsWithoutSteps: they are live at step 0 at least.
func TestFixedSlotsWithoutSteps(t *testing.T) {
	p := parse(t, ended("plan x\nspace host 4 of 4 align 64\n"+
		"slot 0 host+0 4 fixed f32[1] : w\n"))
	if s := p.Slots[0]; !s.Fixed || s.From != 0 || s.To != 0 {
		t.Errorf("the slot is %+v", s)
	}
}

// TestLongLines: a line may be much longer than any plan's, but not without end.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 15<<20)
	p := parse(t, strings.Replace(small, "wait 0 : y", "wait 0 : "+long, 1))
	if n := len(p.Steps[1].Name); n != len(long) {
		t.Errorf("the name has %d bytes of %d", n, len(long))
	}
	many := strings.Repeat(" 0+4", 1<<16)
	p = parse(t, strings.Replace(small, "relu 0 <- 0 ", "relu 0 <-"+many+" ", 1))
	if n := len(p.Steps[1].Do.(plan.Launch).In); n != 1<<16 {
		t.Errorf("%d operands of %d", n, 1<<16)
	}
	_, err := plan.Parse(io.MultiReader(strings.NewReader("plan x\n"), endless{}))
	if err == nil || err.Error() != "plan line 2: it is longer than 16 MiB" {
		t.Errorf("a line without end: %v", err)
	}
}

// endless is read as zeros without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestCutOff: wherever a text is cut off before its last line is there, it is no plan.
func TestCutOff(t *testing.T) {
	whole := strings.TrimSuffix(small, "\n")
	for n := range len(whole) {
		if p, err := plan.Parse(strings.NewReader(whole[:n])); err == nil {
			t.Errorf("%d bytes of %d are read as %+v", n, len(whole), p)
		}
	}
	for text, want := range map[string]string{
		strings.TrimSuffix(small, "end 3 2 1\n"): "plan line 15: there is no end line: the text " +
			"is cut off, or an older gomem's",
		small + "\n":            "plan line 17: it is behind the end line",
		small + "end 3 2 1\n":   "plan line 17: it is behind the end line",
		small + "fetch 1 f32[]": "plan line 17: it is behind the end line",
	} {
		if _, err := plan.Parse(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestStrangeNames: every name survives its text, and so does the title.
func TestStrangeNames(t *testing.T) {
	for _, name := range []string{"", " ", "a : b", "two\nlines", "return\r", `"quoted"`, `"`,
		" : ", "tab\t", "\xff\xfe", "wait 3", "é", "\u2028", `a "b" c`} {
		p := parse(t, small)
		p.Title, p.Slots[0].Value, p.Feeds[0].Name, p.Variables[0].Name = name, name, name, name
		p.Steps[0].Name, p.Steps[1].Name, p.Fetches[0].Value = name, name, name
		if diff := cmp.Diff(p, parse(t, printed(t, p))); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
}

// TestUnprintable: what cannot be read back is not printed.
func TestUnprintable(t *testing.T) {
	for want, change := range map[string]func(p *plan.Plan){
		`plan: digest ".a b" cannot`:            func(p *plan.Plan) { p.Digest = "a b" },
		`plan: space "" cannot`:                 func(p *plan.Plan) { p.Spaces[0].Name = "" },
		`plan: stream "a b" cannot`:             func(p *plan.Plan) { p.Streams[1].Name = "a b" },
		"plan: step 1 (y): operation \"a\\nb\"": func(p *plan.Plan) { rename(p, "a\nb") },
		"plan: axis \".\\u2028\" cannot": func(p *plan.Plan) {
			p.Slots[0].Type = tensor.Named(tensor.F32, tensor.Dim{Name: "\u2028", Size: 2})
		},
		`plan: axis ".a b" cannot`: func(p *plan.Plan) {
			p.Fetches[0].Type = tensor.Named(tensor.F32, tensor.Dim{Name: "a b", Size: 2})
		},
	} {
		p := parse(t, small)
		change(p)
		var b bytes.Buffer
		_, err := p.WriteTo(&b)
		if _, ok := errors.AsType[*plan.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if b.Len() > 0 {
			t.Errorf("%s: printed nevertheless: %s", want, b.String())
		}
	}
}

func rename(p *plan.Plan, op string) {
	do := p.Steps[1].Do.(plan.Launch)
	do.Op = op
	p.Steps[1].Do = do
}

// TestWriteErrors: what the writer refuses is said.
func TestWriteErrors(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(io.ErrClosedPipe)
	if _, err := parse(t, small).WriteTo(w); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error is %v", err)
	}
}

// TestParseErrors: every mistake is an error that names its line.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"plan policy=thesis\n", "", "1: does not start with a plan line"},
		{"plan policy=thesis", `plan "policy`, `1: "\"policy" is not a quoted name`},
		{"parts 1", "pieces 1", `3: unknown line "pieces"`},
		{"parts 1", "", "3: the line ends early"},
		{"parts 1", "parts", "3: the line ends early"},
		{"parts 1", "parts one", `3: "one" is not a number below 2^31`},
		{"parts 1", "parts -1", `3: "-1" is not a number below 2^31`},
		{"parts 1", "parts +1", `3: "+1" is not a number below 2^31`},
		{"parts 1", "parts 1_0", `3: "1_0" is not a number below 2^31`},
		{"parts 1", "parts 2147483648", `3: "2147483648" is not a number below 2^31`},
		{"parts 1", "parts 1 : of 2", `3: unexpected name "of 2"`},
		{"64 of 100", "64 in 100", `4: want "of"`},
		{"of 100", "of 9223372036854775808", `4: "9223372036854775808" is not a number below 2^63`},
		{"align 64\nspace host", "align 64 more\nspace host", `4: unexpected "more"`},
		{"of 100 align 64", "of 100", `4: want "align"`},
		{"of 100 align 64", "of 100 align", `4: the line ends early`},
		{"of 100 align 64", "of 100 align -1", `4: "-1" is not a number below 2^63`},
		{"parts 1", "window", "3: the line ends early"},
		{"copies host to device", "teleports", `7: want "runs"`},
		{"copies host to device", "copies moon to device", `7: "moon" is not one of device, host`},
		{"copies host to device", "copies host device", `7: want "to"`},
		{"copies host to device", "copies host to host", "7: copies from a space to itself"},
		{"runs in device", "runs device", `6: want "in"`},
		{"runs in device", "runs in device 1", `6: unexpected "1"`},
		{"slot 1", "slot 7", "9: number 7, want 1"},
		{"host+0", "moon+0", `9: "moon" is not one of device, host`},
		{"host+0", "host++0", `9: "+0" is not a number below 2^63`},
		{"host+0", "host", `9: "" is not a number below 2^63`},
		{"8 0-0 f32", "8 0 f32", `9: "" is not a number below 2^31`},
		{"8 0-0 f32", "8 0-4294967296 f32", `9: "4294967296" is not a number below 2^31`},
		{"f32[2] :", "f33[2] :", `8: bad type "f33[2]": unknown element type "f33": want one of ` +
			"f32, i32, u8, bf16, f16, i64, f64, bool, i8, i16, u16, u32, u64"},
		{"f32[2] :", "f32[2 :", "8: the line ends early"},
		{"slot 2 host+64 4 fixed f32[1] : w", "slot 2 host+64 4 fixed f32[1]",
			"10: want a colon and a name at the end"},
		{"feed #0 1 : x", `feed #0 1 : "x`, `11: "\"x" is not a quoted name`},
		{"feed #0 1", "feed 0 1", `11: want # and a number, have "0"`},
		{"feed #0 1", "feed #0 4294967297", `11: "4294967297" is not a number below 2^31`},
		{"step 0 p0", "step 0 0", `13: want p and a number, have "0"`},
		{"step 0 p0", "step 0 p4294967296", `13: "4294967296" is not a number below 2^31`},
		{"p0 in", "p0 up", `13: "up" is not one of compute0, in`},
		{"copy 0", "move 0", `13: unknown action "move"`},
		{"copy 0 <-", "copy 0", `13: want "<-"`},
		{"copy 0 <- 1", "copy 4294967296 <- 1", `13: "4294967296" is not a number below 2^31`},
		{"copy 0 <- 1", "copy 0 <- 1+", `13: "" is not a number below 2^63`},
		{"copy 0 <- 1", "copy 0 <- 1+-4", `13: "-4" is not a number below 2^63`},
		{" feed idle", " whim idle",
			`13: "whim" is not one of swap-out, swap-in, stage, feed, gradient, fetch, write-back`},
		{" 8 feed idle 3 : x", " : x", "13: the line ends early"},
		{"launch relu 0 <- 0", "launch relu 0", `14: "scratch" is not a number below 2^31`},
		{"launch relu 0 <- 0 scratch 0 mutates 1 by cudnn wait 0", "launch relu 0",
			"14: the line ends early"},
		{"wait 0", "wait soon", `14: "soon" is not a number below 2^31`},
		{"wait 0", "wait 4294967296", `14: "4294967296" is not a number below 2^31`},
		{"wait 0", "then 0", `14: unexpected "then"`},
		{"fetch 1+4", "fetch 4294967296+4", `15: "4294967296" is not a number below 2^31`},
		{"fetch 1+4 f32[] : y\n", "", "15: fetches: there are 0, the end line says 1"},
		{"end 3 2", "end 4 2", "16: slots: there are 3, the end line says 4"},
		{"end 3 2 1", "end 3 1 1", "16: steps: there are 2, the end line says 1"},
		{"end 3 2 1", "end 3 2", "16: the line ends early"},
		{"end 3 2 1", "end 3 2 1 0", `16: unexpected "0"`},
	} {
		text := strings.Replace(small, c.old, c.new, 1)
		if text == small {
			t.Fatalf("%s: nothing to replace", c.old)
		}
		want := "plan line " + c.want
		if _, err := plan.Parse(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestParseLimits: spaces and streams are as many as can be numbered, the network's
// number beside.
func TestParseLimits(t *testing.T) {
	for line, want := range map[string]string{
		"space disk 0 of 0 align 1\n": "plan line 257: more than 255 spaces",
		"stream up runs in moon\n":    "plan line 259: more than 256 streams",
	} {
		const head = "plan x\nspace moon 0 of 0 align 1\n"
		room := 256 - 2*strings.Count(line, "space")
		parse(t, ended(head+strings.Repeat(line, room)))
		_, err := plan.Parse(strings.NewReader(head + strings.Repeat(line, 300)))
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestParseReader: nothing is no plan, and the reader's errors are passed on.
func TestParseReader(t *testing.T) {
	if _, err := plan.Parse(strings.NewReader("")); err == nil ||
		err.Error() != "plan: the text is empty" {
		t.Errorf("an empty text: %v", err)
	}
	broken := io.MultiReader(strings.NewReader(small), iotest.ErrReader(io.ErrNoProgress))
	if _, err := plan.Parse(broken); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error is %v", err)
	}
}

// FuzzParse: whatever can be read is printed in one way, and reads back as the
// same plan.
func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add(ended(strings.Replace(text, "DIGEST", "sha256:0", 1)))
	f.Add(strings.Replace(small, ": x", `: "x\n"`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := plan.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		once := printed(t, p)
		back := parse(t, once)
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatalf("reads back as another plan: %s", diff)
		}
		if diff := cmp.Diff(once, printed(t, back)); diff != "" {
			t.Fatalf("prints in two ways: %s", diff)
		}
	})
}

// FuzzVerify: there is no plan at which Verify panics or that it refuses in two
// ways.
func FuzzVerify(f *testing.F) {
	b := newBench()
	f.Add(b.text(f), uint8(0), int64(0))
	f.Fuzz(func(t *testing.T, text string, field uint8, value int64) {
		p, err := plan.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		p.Digest = b.g.Digest()
		spoil(p, field, value)
		first, second := b.verify(p), b.verify(p)
		if _, ok := errors.AsType[*plan.Error](first); first != nil && !ok {
			t.Fatalf("%T: %v", first, first)
		}
		if first != nil && first.Error() != second.Error() {
			t.Fatalf("%v, then %v", first, second)
		}
	})
}

// spoil puts a number into some field of a plan, where text might not.
func spoil(p *plan.Plan, field uint8, value int64) {
	at := int(uint64(value) % 8)
	if at >= len(p.Slots) || at >= len(p.Steps) || len(p.Spaces) == 0 {
		return
	}
	slot, step := &p.Slots[at], &p.Steps[at]
	switch field {
	case 1:
		slot.Off = value
	case 2:
		slot.Bytes = value
	case 3:
		slot.From = int(value)
	case 4:
		slot.To = int(value)
	case 5:
		slot.Space = space.ID(value)
	case 6:
		slot.Type.DType = tensor.DType(value)
	case 7:
		step.Node = -1
	case 8:
		step.Part = int(value)
	case 9:
		step.Stream = plan.StreamID(value)
	case 10:
		step.Wait = []int{int(value)}
	case 11:
		p.Parts = int(value)
	case 12:
		step.Do = plan.Copy{Src: plan.Ref{Slot: plan.SlotID(value), Off: value}, Bytes: value,
			Why: space.Reason(value), Idle: int(value)}
	case 13:
		step.Do = plan.Launch{Op: "relu", In: []plan.Ref{{Slot: plan.SlotID(value), Off: value}},
			Out: []plan.Ref{{Slot: plan.SlotID(at)}}, Scratch: plan.SlotID(value),
			Mutates: int(value)}
	case 14:
		p.Window = int(value)
	case 15:
		p.Spaces[0].Align = value
	case 16:
		p.Streams = append(p.Streams, plan.Stream{Name: "other", Engine: space.Engine(value)})
		step.Stream = plan.StreamID(len(p.Streams) - 1)
	case 17:
		if do, ok := step.Do.(plan.Copy); ok {
			do.Why, do.Dst.Slot = space.WriteBack, plan.SlotID(at)
			step.Do = do
		}
	}
}
