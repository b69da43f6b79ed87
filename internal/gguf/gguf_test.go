package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const values = "testdata/values.gguf"

// TestLibrary: what the library for Python has written is read: values of every type, and tensors
// of every type that it knows.
func TestLibrary(t *testing.T) {
	f, err := Open(values)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m := f.Metadata()
	for name, want := range map[string]any{
		"UINT8": uint8(200), "INT8": int8(-100), "UINT16": uint16(60000), "INT16": int16(-30000),
		"UINT32": uint32(4e9), "INT32": int32(-2e9), "FLOAT32": float32(0.1), "BOOL": true,
		"STRING": "hé", "UINT64": uint64(18e18), "INT64": int64(-9e18), "FLOAT64": 0.1,
	} {
		if got := m.Get("one." + name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		many := reflect.ValueOf(m.Get("many." + name))
		if many.Len() != 2 || many.Index(0).Interface() != want ||
			many.Index(1).Interface() != want {
			t.Errorf("%s: %v, want %v twice", name, many, want)
		}
	}
	if got := m.Get("many.ARRAY"); !reflect.DeepEqual(got, []any{[]int32{1, 2}, []int32{3}}) {
		t.Errorf("array of arrays %#v", got)
	}
	if m.Get("none") != nil {
		t.Error("a key that is not there has a value")
	}
	known := 0
	for i := range storages {
		if Type(i).known() {
			known++
		}
	}
	if known != len(f.Tensors()) {
		t.Errorf("%d types, the library has %d", known, len(f.Tensors()))
	}
	for i, x := range f.Tensors() {
		s := storages[x.Type]
		data := make([]byte, x.Bytes())
		if err := f.ReadPart(x.Name, data, 0); err != nil {
			t.Fatal(err)
		}
		for at, b := range data {
			if int(b) != (at+i)%251 {
				t.Fatalf("%s: byte %d is %d", x.Name, at, b)
			}
		}
		if x.Name != x.Type.String() || len(data) != 6*s.bytes ||
			!reflect.DeepEqual(x.Sizes, []int{3, 2 * s.elements}) {
			t.Errorf("%s is %s %v of %d bytes", x.Name, x.Type, x.Sizes, len(data))
		}
	}
}

// TestRoundTrip: what is written of a file that was read is the same file, to the byte.
func TestRoundTrip(t *testing.T) {
	for _, path := range []string{values, "../../train/testdata/gguf/llama.gguf"} {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Write(&b, f.Metadata(), f.Tensors(), putting(f.whole)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), whole) {
			t.Errorf("%s: %d bytes are written, of %d", path, b.Len(), len(whole))
		}
	}
}

// whole reads all bytes of a tensor.
func (f *File) whole(t Tensor) ([]byte, error) {
	b := make([]byte, t.Bytes())
	return b, f.ReadPart(t.Name, b, 0)
}

// putting writes what get has of a tensor.
func putting(get func(Tensor) ([]byte, error)) func(Tensor, io.Writer) error {
	return func(t Tensor, w io.Writer) error {
		data, err := get(t)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
}

// small is a file with one key and two tensors.
func small(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	err := Write(&b, Metadata{{"a", uint32(7)}, {"b", []string{"x", "yz"}}}, []Tensor{
		{Name: "first", Type: F32, Sizes: []int{2, 3}}, {Name: "next", Type: Q8_0,
			Sizes: []int{1, 32}}}, func(t Tensor, w io.Writer) error {
		_, err := w.Write(make([]byte, t.Bytes()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTruncated: every beginning of a file is refused, but for zeros at its end.
func TestTruncated(t *testing.T) {
	whole := small(t)
	last := len(whole) - 30 // 34 bytes, and zeros up to 64
	for n := range len(whole) {
		_, err := Read(bytes.NewReader(whole[:n]), int64(n))
		if _, ok := errors.AsType[*Error](err); ok != (n < last) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// TestHostile: a header that says what cannot be is refused by its name, before memory is taken.
func TestHostile(t *testing.T) {
	whole := string(small(t))
	u32 := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
	u64 := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	for _, row := range []struct{ old, with, want string }{
		{"GGUF", "GGML", "begins with"},
		{u32(3) + u64(2), u32(1) + u64(2), "version is 1"},
		{u32(3) + u64(2), "\x00\x00\x00\x03" + u64(2), "big endian"},
		{u64(2) + u64(2), u64(1<<60) + u64(2), "where"},
		{u64(2) + u64(2), u64(2) + u64(1<<60), "where"},
		{u64(1) + "b", u64(1) + "a", "key a is there twice"},
		{"b" + u32(9), "b" + u32(77), "a value of type 77"},
		{u32(8) + u64(2), u32(8) + u64(1<<61), "key b: 2305843009213693952 values"},
		{u32(8) + u64(2), u32(13) + u64(2), "an array of type 13"},
		{u64(2) + "yz", u64(1<<63) + "yz", "values of 1 bytes"},
		{"first" + u32(2), "first" + u32(5), "first has 5 axes"},
		{u64(3) + u64(2) + u32(0), u64(1<<40) + u64(2) + u32(0), "an axis of 1099511627776"},
		{u64(3) + u64(2) + u32(0), u64(0) + u64(2) + u32(0), "first has an axis of 0"},
		{u64(3) + u64(2) + u32(0), u64(3) + u64(2) + u32(4), "elements of type 4"},
		{u64(3) + u64(2) + u32(0), u64(3) + u64(2) + u32(8), "rows of 3 elements in Q8_0"},
		{u64(3) + u64(2) + u32(0), u64(1<<30) + u64(1<<30) + u32(0), "too many elements"},
		{u64(32) + u64(1) + u32(8) + u64(32), u64(32) + u64(1) + u32(8) + u64(0), "want 32"},
		{u64(32) + u64(1) + u32(8) + u64(32), u64(32) + u64(1) + u32(8) + u64(1<<63), "no file"},
		{u64(32) + u64(1) + u32(8), u64(32) + u64(99) + u32(8), "truncated"},
		{u64(4) + "next", u64(5) + "first", "first is there twice"},
	} {
		b := strings.Replace(whole, row.old, row.with, 1)
		if b == whole {
			t.Errorf("%q is not there", row.old)
		}
		_, err := Read(strings.NewReader(b), int64(len(b)))
		if err == nil || !strings.Contains(err.Error(), row.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q for %q: %v, want %q", row.with, row.old, err, row.want)
		}
	}
	for _, align := range []any{uint32(3), uint32(0), uint64(32), "32"} {
		err := Write(&bytes.Buffer{}, Metadata{{alignmentKey, align}}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "power of two") {
			t.Errorf("alignment %v: %v", align, err)
		}
	}
}

// TestNested: arrays within each other are read up to a depth.
func TestNested(t *testing.T) {
	value := any([]uint8{1, 2})
	for depth := 1; depth <= maxNested+1; depth++ {
		var b bytes.Buffer
		if err := Write(&b, Metadata{{"a", value}}, nil, nil); err != nil {
			t.Fatal(err)
		}
		f, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
		switch {
		case (err == nil) != (depth <= maxNested):
			t.Errorf("%d arrays: %v", depth, err)
		case err == nil && !reflect.DeepEqual(f.Metadata().Get("a"), value):
			t.Errorf("%d arrays: %v", depth, f.Metadata())
		}
		value = []any{value}
	}
}

// TestBadWrites: what a file cannot have is not written.
func TestBadWrites(t *testing.T) {
	none := func(Tensor, io.Writer) error { return nil }
	for _, row := range []struct {
		m    Metadata
		all  []Tensor
		want string
	}{
		{Metadata{{"a", nil}}, nil, "nil"},
		{Metadata{{"a", 1 + 2i}}, nil, "complex128"},
		{Metadata{{"a", []uint{1}}}, nil, "uint"},
		{nil, []Tensor{{Name: "x", Type: 4, Sizes: []int{1}}}, "elements of type 4"},
		{nil, []Tensor{{Name: "x", Sizes: []int{1, 1, 1, 1, 1}}}, "5 axes"},
		{nil, []Tensor{{Name: "x", Type: Q8_0}}, "one number"},
		{nil, []Tensor{{Name: "x", Sizes: []int{1}}, {Name: "x", Sizes: []int{1}}}, "twice"},
		{nil, []Tensor{{Name: "x", Sizes: []int{1}}}, "has 0 bytes: want 4"},
	} {
		err := Write(&bytes.Buffer{}, row.m, row.all, none)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v %v: %v, want %q", row.m, row.all, err, row.want)
		}
	}
}

// TestOpen: files that are not there, or are none, are named; parts that are not there are refused.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "short": "GG", "other": "GGUQ etc."} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) || Is(path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) || !Is(values) {
		t.Errorf("no file: %v", err)
	}
	whole := small(t)
	f, err := Read(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		n, at int64
	}{{"first", 25, 0}, {"first", 1, 24}, {"first", 1, -1}, {"first", 1, 1 << 62}, {"none", 0, 0}} {
		if err := f.ReadPart(row.name, make([]byte, row.n), row.at); err == nil {
			t.Errorf("%+v is read", row)
		}
	}
}

// TestReopen: a file is opened again by its index, has the same tensors, and is refused if it has
// changed or is gone.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gguf")
	data, err := os.ReadFile(values)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	index := f.Index()
	again, err := index.Reopen()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.Tensors() {
		want, err := f.whole(x)
		got, failed := again.whole(x)
		if err != nil || failed != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %v", x.Name, err, failed)
		}
	}
	for _, x := range []*File{f, again} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(path, append(data, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Reopen(); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Reopen(); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// FuzzRead: a file of any bytes is refused, or is written again as one that says the same.
func FuzzRead(f *testing.F) {
	whole := small(f)
	f.Add(whole)
	draw := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := bytes.Clone(whole[:200])
		for range 1 + draw.IntN(3) {
			b[draw.IntN(len(b))] = byte(draw.IntN(256))
		}
		f.Add(append(b, whole[200:]...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v", err)
			}
			return
		}
		var again bytes.Buffer
		if err := Write(&again, file.Metadata(), file.Tensors(), putting(file.whole)); err != nil {
			t.Fatal(err)
		}
		other, err := Read(bytes.NewReader(again.Bytes()), int64(again.Len()))
		if err != nil || len(other.Tensors()) != len(file.Tensors()) ||
			len(other.Metadata()) != len(file.Metadata()) {
			t.Fatalf("written again: %v", err)
		}
	})
}
