//go:build linux && amd64 && !nocuda

package driver

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInstalledLibraries: NVIDIA's libraries that are here, whatever their versions, export all
// that is bound of them. They are read, not loaded: that takes no GPU.
func TestInstalledLibraries(t *testing.T) {
	seen := 0
	for pattern, symbols := range map[string][]string{"libcuda.so.1": driverSymbols(),
		"libnvrtc.so.1[123]": nvrtcSymbols(), "libcublas.so.1[123]": cublasSymbols(),
		"libcudnn.so.[89]":  cudnnSymbols(),
		"libnvidia-ml.so.1": nvmlSymbols()} {
		for _, dir := range (Options{}).dirs() {
			for _, path := range newestFirst(filepath.Join(dir, pattern)) {
				seen++
				exported := exports(t, path)
				for _, name := range symbols {
					if !exported[name] {
						t.Errorf("%s has no %s", path, name)
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Skip("there are none of NVIDIA's libraries, in $GOMEM_CUDA_PATH or elsewhere")
	}
}

// exports are the names that a library exports.
func exports(t *testing.T, path string) map[string]bool {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			all[s.Name] = true
		}
	}
	return all
}

// says is C++ by which the headers themselves say a function's form.
const says = `#include <cstddef>
#include <cstdio>
#include <string>
#include <tuple>
#include <type_traits>
template <class T> char how() {
	return std::is_pointer_v<T> ? 'p' : sizeof(T) == 1 ? 'c' : sizeof(T) == 4 ? 'i' : 'l';
}
template <int k, class R, class... A> std::tuple_element_t<k, std::tuple<A...>> nth(R (*)(A...));
#define WRITTEN(f, k) sizeof(std::remove_pointer_t<decltype(nth<k>((decltype(&f))nullptr))>)
template <class R, class... A> std::string form(R (*)(A...)) {
	std::string s{how<R>()};
	if (sizeof...(A)) s += ' ';
	((s += how<A>()), ...);
	return s;
}
`

// TestInstalledHeaders: NVIDIA's headers that are here declare what testdata/headers.txt says, as
// a compiler reads them.
func TestInstalledHeaders(t *testing.T) {
	forms, numbers := headers(t)
	var flags []string
	found, need := map[string]bool{}, []string{"cuda.h", "nvrtc.h", "cublas_v2.h", "cudnn.h",
		"nvml.h", "crt/host_defines.h"} // the last one is included by others
	for _, dir := range (Options{}).dirs() {
		include := filepath.Join(dir, "../include")
		for _, name := range need {
			if _, err := os.Stat(filepath.Join(include, name)); dir != "" && err == nil {
				flags, found[name] = append(flags, "-isystem", include), true
			}
		}
	}
	if len(found) < len(need) {
		t.Skipf("of NVIDIA's headers there are %q beside the libraries",
			slices.Sorted(maps.Keys(found)))
	}
	program, want := says, ""
	for _, name := range need {
		program += fmt.Sprintf("#include <%s>\n", name)
	}
	program += chosen(forms, "cublasGemmEx", "cublasGemmStridedBatchedEx") + "int main() {\n"
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		function := "&" + name
		if strings.HasPrefix(name, "cublasGemm") {
			function = "chosen(" + function + ")"
		}
		// a pointer of the function's type: nothing is linked
		program += fmt.Sprintf("puts((\"%s \" + form((decltype(%s))nullptr)).c_str());\n", name,
			function)
		want += name + " " + forms[name] + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		program += fmt.Sprintf("printf(\"%s = %%ld\\n\", (long)%s);\n", name, name)
		want += fmt.Sprintf("%s = %d\n", name, numbers[name])
	}
	if got := run(t, program+"}\n", flags); got != want {
		for line := range strings.Lines(got) {
			if !strings.Contains(want, line) {
				t.Errorf("the headers say %s", line)
			}
		}
		t.Error("testdata/headers.txt says otherwise")
	}
}

// chosen is C++ that chooses, among functions of one name, those that a library has: cublas_v2.h
// declares products once more, with an older type of sums.
func chosen(forms map[string]string, names ...string) (text string) {
	for _, name := range names {
		_, parameters, _ := strings.Cut(forms[name], " ")
		var types []string
		for i := range len(parameters) - 2 {
			types = append(types, fmt.Sprintf("T%d", i))
		}
		text += fmt.Sprintf("template <class R, class %s>\n"+
			"auto chosen(R (*f)(%s, cublasComputeType_t, cublasGemmAlgo_t)) { return f; }\n",
			strings.Join(types, ", class "), strings.Join(types, ", "))
	}
	return text
}

// run is what a C++ program prints.
func run(t *testing.T, program string, flags []string) string {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip(err)
	}
	out := filepath.Join(t.TempDir(), "says")
	cmd := exec.Command("g++", append(flags, "-std=c++17", "-x", "c++", "-", "-o", out)...)
	cmd.Stdin = strings.NewReader(program)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := exec.Command(out).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
