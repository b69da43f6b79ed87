package machine_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/planner/machine"
)

// TestProfilesAreDocumented: docs/machines.md has every field of a profile and no other, and its
// example, which has all of them, is read.
func TestProfilesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	var said, want []string
	field := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|")
	for _, row := range field.FindAllSubmatch(text, -1) {
		said = append(said, string(row[1]))
	}
	for _, of := range []any{machine.Profile{}, machine.Rates{}} {
		for _, f := range written(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			want = append(want, name)
		}
	}
	slices.Sort(said)
	slices.Sort(want)
	if !slices.Equal(said, want) {
		t.Errorf("the document has %v, a profile %v", said, want)
	}
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("there is no example")
	}
	p, err := machine.Parse(example[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range written(*p) {
		if reflect.ValueOf(*p).FieldByIndex(f.Index).IsZero() {
			t.Errorf("the example has no %s", f.Name)
		}
	}
}

// written are the fields of a struct that a file can have.
func written(of any) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeOf(of)),
		func(f reflect.StructField) bool { return f.Tag.Get("json") == "-" })
}
