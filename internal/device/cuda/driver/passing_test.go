//go:build linux && amd64 && !nocuda

package driver

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// pointed is what pointers of the test's calls point to, as the C library declares it.
type pointed struct {
	f32  float32
	i32  int32
	f64  float64
	i64  int64
	text *byte
}

// passing is what every function of the library begins with: it says what it was given, and writes
// where its pointers point.
const passing = `#include <string.h>
struct pointed { float f32; int i32; double f64; long long i64; const char *text; };
long long given[32];
static long long seen(void *p) {
	struct pointed *x = p;
	x->f64 += x->f32;
	x->f32 *= 2;
	x->i32 = -x->i32;
	return x->i64 += strlen(x->text);
}
`

// TestPassing: a C library gets what is passed to it, and what it returns and writes comes back, in
// all the forms of NVIDIA's functions: numbers of 8, 32 and 64 bits, with and without a sign, more
// than there are registers, and structs of numbers with points by their addresses.
func TestPassing(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc, by which the test builds a library: ", err)
	}
	forms, _ := headers(t)
	distinct := map[string]bool{}
	for _, form := range forms {
		distinct[form] = true
	}
	distinct["l "+strings.Repeat("ilpc", 8)] = true // as many as can be passed
	list := slices.Sorted(maps.Keys(distinct))
	text, names := passing, []string{"given"}
	for i, form := range list {
		text += function(i, form)
		names = append(names, fmt.Sprintf("form%d", i))
	}
	dir := t.TempDir()
	cmd := exec.Command(gcc, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o",
		filepath.Join(dir, "libpassing.so"))
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lib, err := source{what: "test", names: []string{"libpassing.so"}, symbols: names}.load(
		Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	for i, form := range list {
		passed(t, form, lib.fn[i+1], unsafe.Slice((*int64)(pointer(lib.fn[0])), 32))
	}
}

// function is the text of a function of a form.
func function(number int, form string) string {
	types := map[rune]string{'i': "int", 'l': "long long", 'c': "unsigned char", 'p': "void *"}
	result, parameters, _ := strings.Cut(form, " ")
	var declared []string
	body := ""
	for k, p := range parameters {
		declared = append(declared, fmt.Sprintf("%s a%d", types[p], k))
		value := fmt.Sprintf("a%d", k)
		if p == 'p' {
			value = "seen(" + value + ")"
		}
		body += fmt.Sprintf("\tgiven[%d] = %s;\n", k, value)
	}
	returned := map[string]string{"i": "-5", "l": "-5000000000", "p": `"five"`}[result]
	return fmt.Sprintf("%s form%d(%s) {\n%s\treturn %s;\n}\n", types[rune(result[0])], number,
		strings.Join(declared, ", "), body, strings.Replace(returned, `"five"`,
			`(void *)"five"`, 1))
}

// passed calls a function of a form.
func passed(t *testing.T, form string, fn uintptr, given []int64) {
	t.Helper()
	result, parameters, _ := strings.Cut(form, " ")
	args, want := make([]uintptr, len(parameters)), make([]int64, len(parameters))
	all := make([]*pointed, len(parameters))
	for k, p := range parameters {
		n := int64(k)
		switch p {
		case 'i':
			args[k], want[k] = word(int32(-1-n)), -1-n
		case 'l':
			args[k], want[k] = word(-1<<40-n), -1<<40-n
		case 'c':
			args[k], want[k] = uintptr(200+n), 200+n
		case 'p':
			all[k] = &pointed{1.5 + float32(n), int32(n), 0.25, n << 40, cString("text")}
			args[k], want[k] = uintptr(unsafe.Pointer(all[k])), n<<40+4
		}
	}
	got := call(fn, args...)
	if !slices.Equal(given[:len(want)], want) {
		t.Errorf("%s: given %d, want %d", form, given[:len(want)], want)
	}
	for k, x := range all {
		if n := float32(k); x != nil && (x.f32 != 3+float32(2*n) || x.i32 != -int32(k) ||
			x.f64 != 1.75+float64(n) || x.i64 != want[k]) {
			t.Errorf("%s: parameter %d points to %+v", form, k, *x)
		}
	}
	switch {
	case result == "i" && int32(got) != -5, result == "l" && int64(got) != -5000000000,
		result == "p" && goString(got) != "five":
		t.Errorf("%s: it returns %#x", form, got)
	}
}
