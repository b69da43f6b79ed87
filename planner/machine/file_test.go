package machine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/planner/machine"
)

// TestRoundTrip: what is written is read again, whatever the numbers.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _ := machine.Named(rapid.SampledFrom(machine.Builtin()).Draw(t, "name"))
		rate := rapid.Float64Range(1e3, 1e21)
		p.Device = machine.Rates{FLOPs: rate.Draw(t, "flops"), Bytes: rate.Draw(t, "bytes"),
			Launch: rapid.Float64Range(0, 1e9).Draw(t, "launch")}
		p.In, p.DiskRead = rate.Draw(t, "in"), rate.Draw(t, "read")
		if rapid.Bool().Draw(t, "own") {
			p.Operations = map[string]machine.Rates{"matmul": p.Device}
		}
		p.Name = rapid.StringMatching(`[a-zé0-9 "\\]{1,40}`).Draw(t, "its name")
		var b bytes.Buffer
		if err := p.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		got, err := machine.Parse(b.Bytes())
		if err != nil || !cmp.Equal(got, p) {
			t.Fatalf("%v\n%s", err, cmp.Diff(p, got))
		}
	})
}

// TestBadProfiles: what makes no sense is refused, with the name of the field.
func TestBadProfiles(t *testing.T) {
	p := builtin(t, machine.TitanXThesis)
	p.Operations = map[string]machine.Rates{"matmul": p.Device}
	var b bytes.Buffer
	if err := p.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for _, c := range []struct{ old, new, want string }{
		{`"name": "titanx-thesis"`, `"name": ""`, "name"},
		{`"name": "titanx-thesis"`, `"name": "x\u001b[31m"`, `name: "x\x1b[31m": want`},
		{`"name": "titanx-thesis"`, `"name": "two\nlines"`, "name"},
		{`"name": "titanx-thesis"`, `"name": "\u202etxt"`, "name"},
		{`"name": "titanx-thesis"`, `"name": "` + strings.Repeat("é", 41) + `"`,
			"40 characters at most"},
		{`"element_bytes": 4`, `"element_bytes": 0`, "element_bytes"},
		{`"element_bytes": 4`, `"element_bytes": 2.5`, "element_bytes"},
		{`4380000000000`, `0`, "device.flops_per_second"},
		{`4380000000000`, `NaN`, "invalid character"},
		{`4380000000000`, `1e400`, "flops_per_second"},
		{`"launch_ns": 5000`, `"launch_ns": -1`, "launch_ns"},
		{`"launch_ns": 5000`, `"launch_us": 5`, "launch_us"},
		{`200000000000`, `-1`, "host.flops_per_second"},
		{`"in_bytes_per_second": 12000000000`, `"in_bytes_per_second": 1e22`,
			"in_bytes_per_second"},
		{`"in_bytes_per_second": 12000000000,`, ``, "in_bytes_per_second"},
		{`"out_bytes_per_second": 12000000000`, `"out_bytes_per_second": "fast"`,
			"out_bytes_per_second"},
		{`": 6000000000`, `": 0.5`, "disk_read_bytes_per_second"},
		{`770000000000`, `-770000000000`, "achieved_flops_per_second.moe"},
		{`"matmul": {`, `"matmul": {"bytes_per_second": 0}, "mat": {`,
			"operations.matmul.flops_per_second"},
		{"}\n}\n", "}\n} {}", "more after it"},
		{good, "", "EOF"},
		{good, "[]", "array"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Errorf("%s is not in\n%s", c.old, good)
		}
		if _, err := machine.Parse([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("with %s for %s the error is %v, want one about %s", c.new, c.old, err, c.want)
		}
	}
}
