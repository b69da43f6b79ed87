package train

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// oneLine reports an error that is not one line that can be printed, or is much longer than the
// path in it.
func oneLine(t *testing.T, err error) {
	t.Helper()
	long := 1000
	if bad, ok := errors.AsType[*ErrCheckpoint](err); ok {
		long += 10 * len(bad.Path)
	}
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) ||
		len(err.Error()) > long {
		t.Errorf("%q", err)
	}
}

// FuzzCheckpoint: what a checkpoint says of its run is said again by what it is read as; of
// anything else the error is one line.
func FuzzCheckpoint(f *testing.F) {
	whole := Checkpoint{Model: "gpt", Size: "tiny", Config: map[string]string{"a": "b"},
		Labels: map[string]string{}, Step: 7, Seed: 1<<64 - 1, Tokenizer: "t", Machine: "m",
		Best: &Best{Value: 0.5, Step: 3}, Classes: []string{"x"}, Workers: 2, Executions: 14,
		Evaluated: 3}
	m, err := whole.metadata()
	if err != nil {
		f.Fatal(err)
	}
	add := func(key, value string) {
		was, had := m[key]
		m[key] = value
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		if delete(m, key); had {
			m[key] = was
		}
	}
	long := strings.Repeat("\n", 5000)
	for _, key := range []string{keyFormat, keyStep, keySeed, keyConfig, keyLabels, keyBest,
		keyClasses, keyWorkers, keyExecutions, keyEvaluated} {
		add(key, long)
		add(key, "null")
		add(key, strings.Repeat("9", 5000))
	}
	add(keyConfig, `{"a":`+strings.Repeat("9", 5000)+`}`)
	add(keyConfig, "{\x85}")
	f.Fuzz(func(t *testing.T, text []byte) {
		var m map[string]string
		if json.Unmarshal(text, &m) != nil {
			return
		}
		c, err := parse(m)
		if err != nil {
			oneLine(t, err)
			return
		}
		again, err := c.metadata()
		if err != nil {
			t.Fatal(err)
		}
		same, err := parse(again)
		if len(c.Classes) == 0 {
			c.Classes = nil // none is not written
		}
		if err != nil || !reflect.DeepEqual(c, same) {
			t.Errorf("%+v reads as %+v, %v", c, same, err)
		}
	})
}

// FuzzRenaming: a file of names has a line for each that is read, and every name that fits one
// is given what the line says; else the error is one line that names the file and its line.
func FuzzRenaming(f *testing.F) {
	for _, text := range []string{"h.*.w enc/*/w\n# a remark\n\nb a$1\n", "a b c\n", "a *\n",
		"\x1b[31m b c\n", "(a [b\n", "*a*b *c\r\n", "0 *\x04\n",
		"\xff \xff\n", "a" + strings.Repeat("*", 2000) +
			" b\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "names")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := ReadRenaming(path)
		if err != nil {
			if !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("%q does not name the file", err)
			}
			oneLine(t, err)
			return
		}
		for i, line := range r {
			theirs, ours, _ := strings.Cut(line.text, " ")
			name, by := r.apply(strings.ReplaceAll(theirs, "*", "x"))
			if by < 0 || by > i {
				t.Errorf("line %q is not of its own name", line.text)
			}
			if by == i && !strings.Contains(theirs, "*") && name != ours {
				t.Errorf("%q makes %q", line.text, name)
			}
		}
	})
}

// FuzzIndex: an index of a public checkpoint gives files beside it, all that it names, or an
// *ErrCheckpoint of one line.
func FuzzIndex(f *testing.F) {
	for _, text := range []string{`{"weight_map":{"a":"b"}}`, `{"weight_map":{"a":"../b"}}`,
		`{"weight_map":{"a\nb":"."}}`, `{"weight_map":{"a":"\u001b[31m\n"}}`, `{}`, `null`,
		`{"weight_map":{"a":` + strings.Repeat("9", 5000) + `}}`, `{"weight_map":{"a":".."}}`,
		`{"weight_map":{"a":""}}`, `{"weight_map":[]}`, `{"weight_map":{"a":"/"}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, publicIndex), text, 0o666); err != nil {
			t.Fatal(err)
		}
		p := &Public{Path: dir, dir: dir}
		if files, err := p.files(&publicTensors{}); err == nil {
			for _, file := range files {
				if filepath.Dir(file) != dir {
					t.Errorf("%q is not beside the index", file)
				}
			}
		}
		_, err := OpenPublic(dir)
		if _, ok := errors.AsType[*ErrCheckpoint](err); !ok {
			t.Fatalf("%v", err)
		}
		oneLine(t, err)
	})
}
