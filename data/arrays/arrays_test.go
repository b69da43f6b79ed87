package arrays

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
)

// TestNumPy: what NumPy wrote is read, whichever way it did, and is written again to the byte but
// for what is around it in the archive.
func TestNumPy(t *testing.T) {
	want := map[string]string{"float16": "f16[2 3]", "float32": "f32[2 3]", "float64": "f64[2 3]",
		"int8": "i8[2 3]", "int16": "i16[2 3]", "int32": "i32[2 3]", "int64": "i64[2 3]",
		"uint8": "u8[2 3]", "uint16": "u16[2 3]", "uint32": "u32[2 3]", "uint64": "u64[2 3]",
		"bool":   "bool[2 3]",
		"scalar": "f32[]", "vector": "i32[1]", "none": "f32[0 4]"}
	var sums []string
	for _, file := range []string{"stored", "compressed"} {
		s, err := Open("npz:testdata/" + file + ".npz")
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Arrays) != len(want) {
			t.Errorf("%s has %s", file, s)
		}
		for _, a := range s.Arrays {
			if a.Type.String() != want[a.Name] {
				t.Errorf("%s is %s, want %s", a.Name, a.Type, want[a.Name])
			}
			numbers := []float32{-5, -2, 1, 4, 7, 10}
			switch {
			case a.Name[0] == 'u':
				numbers = []float32{0, 1, 2, 3, 4, 5}
			case a.Name == "bool":
				numbers = []float32{1, 0, 1, 0, 1, 0}
			case !strings.HasSuffix(want[a.Name], "[2 3]"):
				continue
			}
			if have := a.To(tensor.F32).F32(); !slices.Equal(have, numbers) {
				t.Errorf("%s is %v, want %v", a.Name, have, numbers)
			}
		}
		sums = append(sums, s.SHA256)
	}
	if sums[0] != sums[1] {
		t.Error("compression makes other arrays")
	}
	z, err := zip.OpenReader("testdata/stored.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		theirs, _ := io.ReadAll(in)
		v, err := readArray(bytes.NewReader(theirs), int64(len(theirs)))
		if err != nil {
			t.Fatal(err)
		}
		head, err := header(v.Type)
		if err != nil || !bytes.Equal(append(head, v.Data...), theirs) {
			t.Errorf("%s: written as %q, %v", f.Name, head, err)
		}
	}
}

// TestRefusedByName: what NumPy may have and we do not says what it is.
func TestRefusedByName(t *testing.T) {
	z, err := zip.OpenReader("testdata/refused.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	says := map[string]string{"fortran": "Fortran", "big": "big endian: save .astype('<f4')",
		"long": "float128", "texts": "texts", "complex": "complex64",
		"objects": "objects", "structures": "structures: save each field"}
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, suffix)
		_, err := readMember(f)
		if err == nil || !strings.Contains(err.Error(), says[name]) {
			t.Errorf("%s: %v, want %q", name, err, says[name])
		}
	}
	if len(z.File) != len(says) {
		t.Errorf("%d arrays", len(z.File))
	}
}

// drawArray draws an array of any type.
func drawArray(t *rapid.T, name string) Array {
	var list []tensor.DType
	for _, d := range elements {
		list = append(list, d)
	}
	slices.Sort(list)
	sizes := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "sizes")
	v := tensor.New(tensor.Of(rapid.SampledFrom(list).Draw(t, "type"), sizes...))
	most := 255
	if v.Type.DType == tensor.Bool {
		most = 1
	}
	for i := range v.Data {
		v.Data[i] = byte(rapid.IntRange(0, most).Draw(t, "byte"))
	}
	return Array{name, v}
}

// TestRoundTrip: what is written is read, in all forms alike.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var list []Array
		for i := range rapid.IntRange(1, 3).Draw(t, "arrays") {
			list = append(list, drawArray(t, fmt.Sprintf("x.%d", i)))
		}
		var b bytes.Buffer
		if err := Write(&b, list); err != nil {
			t.Fatal(err)
		}
		sub, err := os.MkdirTemp(dir, "[*?")
		if err != nil {
			t.Fatal(err)
		}
		npz, tensors := filepath.Join(sub, "a.npz"), filepath.Join(sub, "a.safetensors")
		fill(t, npz, b.Bytes())
		var entries []safetensors.Entry
		for _, a := range list {
			head, _ := header(a.Type)
			fill(t, filepath.Join(sub, a.Name+suffix), append(head, a.Data...))
			entries = append(entries, safetensors.Entry{Name: a.Name, Type: a.Type})
		}
		f, err := os.Create(tensors)
		if err != nil {
			t.Fatal(err)
		}
		err = safetensors.WriteSealed(f, entries, nil,
			safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
				i := slices.IndexFunc(list, func(a Array) bool { return a.Name == e.Name })
				return list[i].Data, nil
			}))
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, spec := range []string{"npz:" + npz, "npz:" + sub, "tensors:" + tensors} {
			s, err := Open(spec)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range s.Arrays {
				if a.Name != list[i].Name || !a.Type.Equal(list[i].Type) ||
					!bytes.Equal(a.Data, list[i].Data) {
					t.Fatalf("%s: %s, want %v", spec, s, list)
				}
			}
		}
	})
}

type fataler interface{ Fatal(args ...any) }

func fill(t fataler, path string, content []byte) {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// npy is a file with such a dictionary.
func npy(dictionary string, elements int) []byte {
	b := append([]byte(magic), 1, 0, byte(len(dictionary)), byte(len(dictionary)>>8))
	return append(append(b, dictionary...), make([]byte, elements)...)
}

// TestBadFiles: damaged files are refused in one line, and claims take no memory.
func TestBadFiles(t *testing.T) {
	const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
	if _, err := readArray(bytes.NewReader(npy(good, 24)), 80-1+6); err == nil {
		t.Error("a wrong size is no matter")
	}
	for dictionary, says := range map[string]string{
		strings.Replace(good, "(2, 3)", "(2147483647, 2147483647)", 1): "too large|24 bytes follow",
		strings.Replace(good, "(2, 3)", "(2, 4)", 1):                   "24 bytes follow",
		strings.Replace(good, "(2, 3)", "(-2, 3)", 1):                  "no size",
		strings.Replace(good, "(2, 3)", "(9999999999, 3)", 1):          "no size",
		strings.Replace(good, "(2, 3)", "6", 1):                        "no (",
		strings.Replace(good, "False", "0", 1):                         "neither True nor False",
		strings.Replace(good, "<f4", "", 1):                            "its elements are",
		strings.Replace(good, "'descr'", "descr", 1):                   "no '",
		good + "1": "something follows",
		"{}":       "no descr",
		"{'descr': '<f4', 'descr': '<f4', 'shape': (), }": "there twice",
		"{'descr': '<f4', 'more': 1, }":                   `a key "more"`,
		"":                                                "no {",
	} {
		file := npy(dictionary, 24)
		_, err := readArray(bytes.NewReader(file), int64(len(file)))
		if err == nil || !slices.ContainsFunc(strings.Split(says, "|"), func(s string) bool {
			return strings.Contains(err.Error(), s)
		}) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", dictionary, err, says)
		}
	}
	whole := npy(good, 24)
	for n := range whole {
		if _, err := readArray(bytes.NewReader(whole[:n]), int64(n)); err == nil {
			t.Errorf("its first %d bytes are an array", n)
		}
		if _, err := readArray(bytes.NewReader(whole[:n]), int64(len(whole))); err == nil {
			t.Errorf("its first %d bytes of more are an array", n)
		}
	}
	for spec, says := range map[string]string{
		"npz": "give npz:FILE", "csv:x": "give npz:FILE", "npz:": "give npz:FILE",
		"npz:testdata/none":         "check the path",
		"npz:testdata/make.py":      "no .npz file",
		"npz:testdata":              "no arrays",
		"tensors:testdata/make.py":  "header",
		"npz:testdata/refused.npz":  `array "fortran"`,
		"npz:testdata/compress.npz": "check the path",
	} {
		_, err := Open(spec)
		if e, ok := errors.AsType[*data.Error](err); !ok || !strings.Contains(e.Error(), says) {
			t.Errorf("%s: %v, want %q", spec, err, says)
		}
	}
}

// TestArchives: an archive whose members are damaged, there twice or too large to be is refused.
func TestArchives(t *testing.T) {
	var b bytes.Buffer
	x := Array{"x", tensor.FromF32([]float32{1, 2}, 2)}
	if err := Write(&b, []Array{x, x}); err != nil {
		t.Fatal(err)
	}
	if _, err := readZip(bytes.NewReader(b.Bytes()), int64(b.Len())); err == nil {
		t.Error("an array may be there twice")
	}
	b.Reset()
	if err := Write(&b, []Array{x}); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(b.Bytes())
	i := bytes.LastIndex(damaged, x.Data)
	damaged[i]++
	_, err := readZip(bytes.NewReader(damaged), int64(len(damaged)))
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("another element: %v", err)
	}
	f := &zip.File{FileHeader: zip.FileHeader{Name: "x.npy", Method: zip.Deflate,
		CompressedSize64: 10, UncompressedSize64: 1 << 40}}
	if _, err := readMember(f); err == nil || !strings.Contains(err.Error(), "cannot be") {
		t.Errorf("a claim: %v", err)
	}
	bf := Array{"x", tensor.New(tensor.Of(tensor.BF16, 1))}
	if err := Write(io.Discard, []Array{bf}); err == nil || !strings.Contains(err.Error(), "bf16") {
		t.Errorf("bfloat16: %v", err)
	}
}

// FuzzArray: no file makes the reader fail otherwise than by an error, and what it reads has no
// more bytes than the file.
func FuzzArray(f *testing.F) {
	f.Add(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24))
	f.Add(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1))
	f.Add(npy("{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': (1,), }", 4))
	f.Fuzz(func(t *testing.T, file []byte) {
		v, err := readArray(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		head, err := header(v.Type)
		if err != nil || len(v.Data) > len(file) {
			t.Fatalf("%s: %v", v.Type, err)
		}
		again := append(head, v.Data...)
		w, err := readArray(bytes.NewReader(again), int64(len(again)))
		if err != nil || !w.Type.Equal(v.Type) || !bytes.Equal(w.Data, v.Data) {
			t.Fatalf("%s is read back as %s: %v", v.Type, w.Type, err)
		}
	})
}

// FuzzArchive: no archive makes the reader fail otherwise than by an error.
func FuzzArchive(f *testing.F) {
	for _, name := range []string{"stored.npz", "compressed.npz", "refused.npz"} {
		file, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		list, err := readZip(bytes.NewReader(file), int64(len(file)))
		total := 0
		for _, a := range list {
			total += len(a.Data)
		}
		if err == nil && total > mostRatio*(len(file)+1) {
			t.Fatalf("%d bytes of %d", total, len(file))
		}
	})
}
