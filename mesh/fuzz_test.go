package mesh_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/gomem/gomem/mesh"
)

// FuzzParse: a mesh and a layout that are read print as what reads as the same, and pass the
// check that those made by a program have to; of any others the error is one line.
func FuzzParse(f *testing.F) {
	for _, s := range [][2]string{{"batch:2", ""},
		{"batch:2,experts:4x5", "experts=experts,b=batch"},
		{"a:1x+2", "*/w0:1=a"}, {"a:2", "x=y=a"}, {"a\n:2", ""}, {"a:2,a:2", ""},
		{"a:65536x65536", ""}, {"a:2", "w\u2028=a"}, {"a:2", "a:-1=a"}, {"\xff:2", ""},
		{"a:2", "a=\xff"}, {"a:99999999999999999999", "a=a"}, {"a:2", "a=a,a=a"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, layout string) {
		s, err := mesh.Parse(text, layout)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", err)
			}
			return
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		again, err := mesh.Parse(s.Mesh.String(), s.Layout.String())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%v reads as %v, %v", s, again, err)
		}
		if n := s.Mesh.Processes() * s.Mesh.Slices(); n < 1 || n > 1<<12 {
			t.Errorf("%d coordinates", n)
		}
	})
}
