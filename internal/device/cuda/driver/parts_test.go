//go:build linux && amd64 && !nocuda

package driver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestParts: a library that opens its parts by name when it is called, and aborts without, is
// loaded with them, though they need each other and no run path leads to them; and is refused where
// one of those that convolutions take is missing or broken.
func TestParts(t *testing.T) {
	if dir := os.Getenv("GOMEM_TEST_PARTS"); dir != "" {
		openParts(t, dir)
		return
	}
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ name, missing, want string }{
		{"whole", "", "opened"},
		{"a part that others do without", "libcudnn_heuristic.so.9", "opened"},
		{"a part that others need", "libcudnn_graph.so.9", "libcudnn_graph.so.9"},
		{"a part", "libcudnn_cnn.so.9", "libcudnn_cnn.so.9"},
		{"CUDA's own", "libcublasLt.so.12", "libcublasLt.so.12 not found"},
	} {
		dir := t.TempDir()
		fakeParts(t, dir, c.missing)
		// a process of its own: what is loaded stays
		cmd := exec.Command(os.Args[0], "-test.run", "^TestParts$", "-test.v")
		cmd.Env = append(os.Environ(), "GOMEM_TEST_PARTS="+dir, "GOMEM_CUDA_PATH=")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) ||
			strings.Contains(string(out), "opened") != (c.want == "opened") {
			t.Errorf("%s: %v, want %q in\n%s", c.name, err, c.want, out)
		}
	}
}

// fakeParts builds a library like cuDNN 9, but for a part that is left out.
func fakeParts(t *testing.T, dir, missing string) {
	build := func(name, text string, needs ...string) {
		if name == missing {
			return
		}
		args := []string{"-shared", "-fPIC", "-x", "c++", "-", "-o", filepath.Join(dir, name),
			"-Wl,-soname," + name, "-Wl,--no-as-needed", "-L" + dir}
		for _, n := range needs {
			if n != missing {
				args = append(args, "-l:"+n)
			}
		}
		cmd := exec.Command("g++", args...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	part := func(name string, needs ...string) {
		build(name, fmt.Sprintf("extern \"C\" int made_of_%d() { return 1; }", len(name)), needs...)
	}
	part("libcublasLt.so.12")
	part("libcudnn_graph.so.9")
	part("libcudnn_ops.so.9", "libcudnn_graph.so.9")
	part("libcudnn_cnn.so.9", "libcudnn_ops.so.9")
	part("libcudnn_engines_precompiled.so.9", "libcudnn_graph.so.9")
	part("libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9")
	text := "#include <dlfcn.h>\n#include <cstdlib>\n"
	for _, name := range cudnnSymbols() {
		body := "return 0;"
		switch name {
		case "cudnnGetVersion":
			body = "return 90100;"
		case "cudnnGetCudartVersion":
			body = "return 12040;"
		case "cudnnCreate":
			body = `if (!dlopen("libcudnn_cnn.so.9", RTLD_NOW) ||
				!dlopen("libcudnn_engines_precompiled.so.9", RTLD_NOW) ||
				!dlopen("libcublasLt.so.12", RTLD_NOW)) abort();
			return 0;`
		}
		text += fmt.Sprintf("extern \"C\" long %s() { %s }\n", name, body)
	}
	build("libcudnn.so.9", text)
}

// openParts loads the library and calls it.
func openParts(t *testing.T, dir string) {
	g := &GPU{Driver: &Driver{options: Options{Dirs: []string{dir}}}}
	dnn, err := g.DNN()
	if missing, ok := errors.AsType[*MissingError](err); ok {
		t.Log(missing)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dnn.Convolver(nil); err != nil {
		t.Fatal(err)
	}
	t.Log("opened")
}
