package plan

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const small = `plan policy=thesis
parts 1
space device 64 of 100
space host 64 of 100
stream compute0 compute
stream in copy-in
slot 0 device+0 8 0-1 f32[2] : x
slot 1 host+0 8 0-0 f32[batch:2] : x
feed #0 1 : x
step 0 p0 in #0 copy 0 <- 1 8 feed : x
step 1 p0 compute0 #1 launch relu 0 <- 0 scratch 0 mutates 1 wait 0 : y
fetch 1+4 f32[] : y
`

func TestParse(t *testing.T) {
	p, err := Parse(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(small, b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestParseErrors: every mistake is an error that names its line.
func TestParseErrors(t *testing.T) {
	for name, change := range map[string][2]string{
		"no header":       {"plan policy=thesis\n", ""},
		"unknown line":    {"parts 1", "pieces 1"},
		"bad number":      {"parts 1", "parts one"},
		"negative":        {"parts 1", "parts -1"},
		"huge":            {"parts 1", "parts 99999999999"},
		"unknown engine":  {"copy-in", "teleport"},
		"unknown space":   {"host+0", "moon+0"},
		"bad type":        {"f32[2]", "f33[2]"},
		"open type":       {"f32[2]", "f32[2"},
		"wrong number":    {"slot 1", "slot 7"},
		"unknown stream":  {"p0 in", "p0 up"},
		"unknown action":  {"copy 0", "move 0"},
		"unknown reason":  {" feed :", " whim :"},
		"missing arrow":   {"copy 0 <-", "copy 0"},
		"ends early":      {" 8 feed : x", " : x"},
		"trailing words":  {"of 100\nspace host", "of 100 more\nspace host"},
		"no partition":    {"step 0 p0", "step 0 0"},
		"bad wait":        {"wait 0", "wait soon"},
		"launch no arrow": {"launch relu 0 <- 0", "launch relu 0"},
	} {
		text := strings.Replace(small, change[0], change[1], 1)
		if text == small {
			t.Fatalf("%s: nothing to replace", name)
		}
		if _, err := Parse(strings.NewReader(text)); err == nil ||
			!strings.HasPrefix(err.Error(), "plan line ") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if _, err := Parse(strings.NewReader("")); err == nil {
		t.Error("an empty text is a plan")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if _, err := p.WriteTo(&b); err != nil {
			return
		}
	})
}
