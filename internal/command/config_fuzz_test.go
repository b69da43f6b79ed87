package command

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"
)

// trainFlags are those that a file may have.
func trainFlags(t testing.TB) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for _, n := range parserOf(t).Model.Children {
		for _, f := range n.Flags {
			if n.Name == "train" && f.Name != "config" {
				flags[f.Name] = f
			}
		}
	}
	return flags
}

// FuzzConfig: a file of flags has texts, truths and lists of texts for flags that there are, no
// other than the file says again when it is written of them, and takes memory by its size; of
// any other file the error is one line of no great length.
func FuzzConfig(f *testing.F) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		of := strings.Repeat(",*"+string(c-1), 9)[1:]
		laughs += string(c) + ": &" + string(c) + " [" + of + "]\n"
	}
	for _, text := range []string{"size: s512\nlr: 1e-3\nfuse: false\n", "no-fuse: true\n", laughs,
		"metrics: [numbers, 3]\n", `{"seed": 18446744073709551615}`, "seed: 0x10\n", "- a\n",
		"steps: 1\n---\nsteps: 2\n", "? [a]\n: b\n", "steps: !!binary aGk=\n", "lr: .inf\n",
		"steps: &a [*a]\n", "<<: {steps: 3}\n", "1: 2\n", "null", "", "steps: 1\nsteps: 2\n",
		"\"\\x1b[31m\": 1\n", strings.Repeat("[", 20000), strings.Repeat("x", 5000) + ": 1\n",
		strings.Repeat("a b ", 5000) + ": 1\n", "steps: 2024-01-01\n", "%YAML 9.9\n---\na: 1\n",
		"steps: '\xff'\n", "save: \"\\xff\"\n", "clip: 1e400\n", "clip: -1\n"} {
		f.Add([]byte(text))
	}
	flags := trainFlags(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "flags")
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		c := config{map[string]any{}, map[string]bool{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.read(path, flags)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20+1000*uint64(len(text)) {
			t.Errorf("%d bytes take %d of memory", len(text), took)
		}
		if err != nil {
			if said := oneLine(err); len(said) > 2000 || strings.ContainsFunc(said, unprintable) {
				t.Errorf("%d bytes: %.3000q", len(said), said)
			}
			return
		}
		again, err := yaml.Marshal(c.values)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, again, 0o666); err != nil {
			t.Fatal(err)
		}
		same := config{map[string]any{}, map[string]bool{}}
		if err := same.read(path, flags); err != nil || !equalValues(c.values, same.values) {
			t.Errorf("%v is written as %q and reads as %v, %v", c.values, again, same.values, err)
		}
	})
}

// equalValues compares values of files.
func equalValues(a, b map[string]any) bool {
	return maps.EqualFunc(a, b, func(x, y any) bool {
		xs, list := x.([]any)
		ys, both := y.([]any)
		if !list || !both || len(xs) != len(ys) {
			return !list && !both && x == y
		}
		for i := range xs {
			if xs[i] != ys[i] {
				return false
			}
		}
		return true
	})
}

// FuzzKeptConfig: what a run keeps of a flag reads as the flag, but for what is not UTF-8.
func FuzzKeptConfig(f *testing.F) {
	for _, value := range []string{"s512", "1e-3", "true", "null", "~", "0x10", "a: b", "'", "\n a",
		"2024-01-01", "\xff", "\u2028", "- a", "\x00", "no", "[a]", " x ", "\ufeff", "=", "<<",
		"\r", "\u0085"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		path := filepath.Join(t.TempDir(), "flags")
		text, err := configText(map[string]string{"data": value, "size": "s512"})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		values, err := readConfig(path)
		want := map[string]any{"data": value, "size": "s512"}
		if !utf8.ValidString(value) {
			delete(want, "data")
		}
		if err != nil || !equalValues(values, want) {
			t.Errorf("%q is written as %q and reads as %v, %v", value, text, values, err)
		}
	})
}
