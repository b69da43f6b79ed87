package machine_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/gomem/gomem/planner/machine"
)

// FuzzParse: a profile that is read passes its check and is written as what reads as the same;
// of any other the error is one line of no great length.
func FuzzParse(f *testing.F) {
	profile, err := machine.Named(machine.TitanX)
	if err != nil {
		f.Fatal(err)
	}
	var built bytes.Buffer
	if err := profile.WriteJSON(&built); err != nil {
		f.Fatal(err)
	}
	f.Add(built.Bytes())
	f.Add(bytes.TrimSuffix(bytes.TrimSpace(built.Bytes()), []byte("}")))
	f.Add(append(built.Bytes(), "{}"...))
	end := bytes.LastIndexByte(built.Bytes(), '}')
	for _, more := range []string{`"achieved_flops_per_second":{"a\nb":1e99}`,
		`"operations":{"` + strings.Repeat("x", 5000) + `":{}}`, `"name":"\u2028"`,
		`"operations":{"\u001b[31m":{"flops_per_second":-1}}`, `"element_bytes":9`, `"more":1`,
		`"in_bytes_per_second":1e400`, `"operations":null`} {
		f.Add([]byte(string(built.Bytes()[:end]) + "," + more + "}"))
	}
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := machine.Parse(text)
		if err != nil {
			text := err.Error()
			if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) ||
				len(text) > 1000 {
				t.Errorf("%q", text)
			}
			return
		}
		var written bytes.Buffer
		if err := p.WriteJSON(&written); err != nil {
			t.Fatal(err)
		}
		again, err := machine.Parse(written.Bytes())
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%+v reads as %+v, %v", p, again, err)
		}
	})
}
