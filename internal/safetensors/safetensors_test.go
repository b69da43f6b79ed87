package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/tensor"
)

// file makes the bytes of a file with any header and a number of zero bytes.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func read(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// TestFormat: the bytes are those of the format's specification.
func TestFormat(t *testing.T) {
	entries := []Entry{{Name: "a", Type: tensor.Of(tensor.F32, 2)},
		{Name: "b/c", Type: tensor.Of(tensor.U8)}}
	data := map[string][]byte{"a": {0, 0, 128, 63, 0, 0, 0, 64}, "b/c": {7}}
	var b bytes.Buffer
	if err := Write(&b, entries, map[string]string{"k": "v"},
		Whole(func(e Entry) ([]byte, error) { return data[e.Name], nil })); err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b/c":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	want := slices.Concat(file(header, 0), data["a"], data["b/c"])
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want)
	}
	f, err := read(want)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := f.Get("a"); err != nil || !slices.Equal(v.F32(), []float32{1, 2}) {
		t.Errorf("a = %v, %v", v, err)
	}
}

// TestRoundTrip: what is written is read, whatever the names, types and
// metadata.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Filter(func(s string) bool { return s != metadataKey })
		names := rapid.SliceOfNDistinct(name, 0, 8, rapid.ID[string]).Draw(t, "names")
		metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "metadata")
		var entries []Entry
		views := map[string]tensor.View{}
		for _, n := range names {
			typ := tensor.Of(rapid.SampledFrom(tensor.DTypes()).Draw(t, "dtype"),
				rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3).Draw(t, "shape")...)
			v := tensor.New(typ)
			copy(v.Data, rapid.SliceOfN(rapid.Byte(), len(v.Data), len(v.Data)).Draw(t, "data"))
			if typ.DType == tensor.Bool {
				v = v.To(tensor.U8).To(tensor.Bool)
			}
			entries, views[n] = append(entries, Entry{Name: n, Type: typ}), v
		}
		var b bytes.Buffer
		if err := Write(&b, entries, metadata,
			Whole(func(e Entry) ([]byte, error) { return views[e.Name].Data, nil })); err != nil {
			t.Fatal(err)
		}
		f, err := read(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(f.Metadata(), metadata) || len(f.Entries()) != len(entries) {
			t.Fatalf("read %v %v, wrote %v %v", f.Metadata(), f.Entries(), metadata, entries)
		}
		for _, e := range f.Entries() {
			got, err := f.Get(e.Name)
			if err != nil || !got.Type.Equal(views[e.Name].Type) ||
				!bytes.Equal(got.Data, views[e.Name].Data) {
				t.Fatalf("%q: %v %v, want %v", e.Name, got, err, views[e.Name])
			}
		}
	})
}

// badHeaders are headers of files with 8 bytes of data, and what the error says.
var badHeaders = []struct{ header, want string }{
	{``, "does not start with {"},
	{` {}`, "does not start with {"},
	{`[]`, "does not start with {"},
	{`{`, "bad JSON"},
	{`{}`, "8 bytes after the last tensor"},
	{`{} x`, "something follows"},
	{`{}{}`, "something follows"},
	{"{\"\xff\":1}", "not UTF-8"},
	{`{"a":1}`, "not a JSON object"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, `key "a" twice`},
	{`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, `key "dtype" twice`},
	{`{"a":{"dtype":"F32","shape":[2]}}`, `tensor "a": want a "dtype"`},
	{`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, `want a "dtype"`},
	{`{"a":{"shape":[2],"data_offsets":[0,8]}}`, `want a "dtype"`},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}}`, "unknown key"},
	{`{"a":{"dtype":"","shape":[2],"data_offsets":[0,8]}}`, `unknown element type ""`},
	{`{"a":{"dtype":"f32","shape":[2],"data_offsets":[0,8]}}`, `unknown element type "f32"`},
	{`{"a":{"dtype":"F8_E4M3","shape":[7],"data_offsets":[0,8]}}`, "8 bytes for F8_E4M3[7]"},
	{`{"a":{"dtype":"F4","shape":[17],"data_offsets":[0,8]}}`, "8 bytes for F4[17]"},
	{`{"a":{"dtype":"I8","shape":[-8],"data_offsets":[0,8]}}`, "has size -8"},
	{`{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,7]}}`, "1 bytes after the last"},
	{`{"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F99","shape":[2],"data_offsets":[2,8]}}`,
		`"b": overlaps tensor "a"`},
	{`{"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}}`, `"dtype"`},
	{`{"a":{"dtype":"F32","shape":null,"data_offsets":[0,8]}}`, "not a list of integers"},
	{`{"a":{"dtype":"F32","shape":[null],"data_offsets":[0,8]}}`, "not a list of integers"},
	{`{"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}}`, "not a list of integers"},
	{`{"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}}`, "not a list of integers"},
	{`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,8]}}`, "8 bytes for f32[0], which needs 0"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}`,
		`tensor "b": overlaps tensor "a"`},
	{`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, "has size -2"},
	{`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, "too large"},
	{`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`,
		"8 bytes for f32[3], which needs 12"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}}`, `two "data_offsets"`},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, "not a range"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}`, "not a range"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}`, "outside the 8 bytes of data"},
	{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "4 bytes after the last tensor"},
	{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`,
		"4 bytes before it belong to no tensor"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, `"b": overlaps tensor "a"`},
	{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}}`, "3 bytes before it"},
	{`{"__metadata__":{"k":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`,
		`value of "k" is not a string`},
	{`{"__metadata__":{"k":null},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`,
		`value of "k" is not a string`},
	{`{"__metadata__":[],"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`,
		"__metadata__: not a JSON object"},
}

// TestBadHeaders: every damage is an *Error of one line that says what is wrong.
func TestBadHeaders(t *testing.T) {
	for _, c := range badHeaders {
		f, err := read(file(c.header, 8))
		if _, ok := errors.AsType[*Error](err); !ok || f != nil {
			t.Errorf("%s: got %v, %v (%T)", c.header, f, err, err)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q does not say %q", c.header, err, c.want)
		}
	}
}

// TestForeign: a tensor of a type that tensors here do not have is known by its name, and
// refuses itself alone.
func TestForeign(t *testing.T) {
	f, err := read(file(`{"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},`+
		`"q":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[0,8]},`+
		`"p":{"dtype":"F4","shape":[3,2],"data_offsets":[16,19]},`+
		`"n":{"dtype":"NEW_7","shape":[1],"data_offsets":[19,24]}}`, 24))
	if err != nil {
		t.Fatal(err)
	}
	if e := f.Entries(); len(e) != 1 || e[0].Name != "b" {
		t.Errorf("entries %v", e)
	}
	want := `[{q F8_E4M3[2 4]} {p F4[3 2]} {n NEW_7[1]}]`
	if got := fmt.Sprint(f.Foreign()); got != want {
		t.Errorf("foreign %s, want %s", got, want)
	}
	if _, err := f.Get("b"); err != nil {
		t.Error(err)
	}
	for _, read := range []func() error{
		func() error { _, err := f.Get("q"); return err },
		func() error { _, err := f.ReadPart("q", nil, 0); return err },
		func() error { return f.CheckParts("q", 0) },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), `tensor "q": elements of `+
			`type F8_E4M3: want F32,`) {
			t.Error(err)
		}
	}
}

// valid is a small file with two tensors.
func valid(t testing.TB) []byte {
	var b bytes.Buffer
	entries := []Entry{{Name: "a", Type: tensor.Of(tensor.F32, 2, 3)},
		{Name: "b", Type: tensor.Of(tensor.I32)}}
	err := Write(&b, entries, map[string]string{"k": "v"}, Whole(func(e Entry) ([]byte, error) {
		return make([]byte, e.Type.Bytes()), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTruncation: no proper prefix of a file is accepted, nor a file with a
// byte more.
func TestTruncation(t *testing.T) {
	whole := valid(t)
	for n := range whole {
		if _, err := read(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(whole))
		}
	}
	if _, err := read(append(whole, 0)); err == nil {
		t.Error("a trailing byte is accepted")
	}
	if _, err := read(whole); err != nil {
		t.Error(err)
	}
}

// TestHeaderLength: an absurd length is refused before it is allocated.
func TestHeaderLength(t *testing.T) {
	for _, n := range []uint64{3, maxHeader + 1, 1 << 62, 1<<64 - 1} {
		b := binary.LittleEndian.AppendUint64(nil, n)
		if _, err := read(append(b, "{}"...)); err == nil {
			t.Errorf("a header of %d bytes is accepted", n)
		}
	}
}

// TestOpenErrors: errors name the path.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("what"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, bad, filepath.Join(dir, "none")} {
		_, err := Open(path)
		if e, ok := errors.AsType[*Error](err); !ok || e.Path != path ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
	good := filepath.Join(dir, "good")
	if err := os.WriteFile(good, valid(t), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get("none"); err == nil ||
		!strings.Contains(err.Error(), good+`: tensor "none": not in the file`) {
		t.Errorf("missing tensor: %v", err)
	}
	if err := os.Truncate(good, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get("b"); !errors.Is(err, io.EOF) {
		t.Errorf("tensor of a file truncated after opening: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

var errFull = errors.New("no space left")

// fullWriter accepts a number of bytes.
type fullWriter int

func (w *fullWriter) Write(p []byte) (int, error) {
	n := min(len(p), int(*w))
	*w -= fullWriter(n)
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// TestWriteErrors: bad entries are refused, and errors of the writer and of the
// source of data come back.
func TestWriteErrors(t *testing.T) {
	f32 := tensor.Of(tensor.F32, 2)
	get := func(e Entry) ([]byte, error) { return make([]byte, 8), nil }
	for _, c := range []struct {
		entries  []Entry
		metadata map[string]string
		want     string
	}{
		{[]Entry{{Name: "a", Type: f32}, {Name: "a", Type: f32}}, nil, "used twice"},
		{[]Entry{{Name: metadataKey, Type: f32}}, nil, "reserved"},
		{[]Entry{{Name: "\xff", Type: f32}}, nil, "not UTF-8"},
		{[]Entry{{Name: "a"}}, nil, "without an element type"},
		{[]Entry{{Name: "a", Type: tensor.Of(tensor.F32, 0)}}, nil, "8 bytes for f32[0]"},
		{[]Entry{{Name: "a", Type: tensor.Of(tensor.F32, -1)}}, nil, "size -1"},
		{[]Entry{{Name: "a", Type: tensor.Of(tensor.F32, 3)}}, nil, "8 bytes for f32[3]"},
		{[]Entry{{Name: "a", Type: f32}}, map[string]string{"k": "\xff"}, `"k" is not UTF-8`},
	} {
		if err := Write(io.Discard, c.entries, c.metadata, Whole(get)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v does not say %q", c.entries, err, c.want)
		}
	}
	for n := range 60 {
		w := fullWriter(n)
		err := Write(&w, []Entry{{Name: "a", Type: f32}}, nil, Whole(get))
		if !errors.Is(err, errFull) {
			t.Errorf("disk with %d bytes: %v", n, err)
		}
	}
	failing := func(e Entry) ([]byte, error) { return nil, errFull }
	err := Write(io.Discard, []Entry{{Name: "a", Type: f32}}, nil, Whole(failing))
	if !errors.Is(err,
		errFull) {
		t.Errorf("failing source: %v", err)
	}
}

// FuzzRead: any bytes are refused with an *Error or read completely, and
// written again they are the same file.
func FuzzRead(f *testing.F) {
	for _, c := range badHeaders {
		f.Add(file(c.header, 8))
	}
	f.Add(valid(f))
	f.Add(file(`{"a":{"dtype":"I8","shape":[8],"data_offsets":[0,8]}}`, 8))
	f.Add(sample().sealed(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := read(b)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if len(in.Foreign()) > 0 {
			return // which nobody here writes
		}
		var again bytes.Buffer
		err = Write(&again, in.Entries(), in.Metadata(), Whole(func(e Entry) ([]byte, error) {
			v, err := in.Get(e.Name)
			return v.Data, err
		}))
		if err != nil {
			t.Fatal(err)
		}
		out, err := read(again.Bytes())
		if err != nil || fmt.Sprint(out.Entries(), out.Metadata()) != fmt.Sprint(in.Entries(),
			in.Metadata()) {
			t.Fatalf("read %v %v, then %v: %v", in.Entries(), in.Metadata(), out, err)
		}
	})
}

// TestUnpaddedHeader: early writers did not pad the header.
func TestUnpaddedHeader(t *testing.T) {
	f, err := read(file(`{"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}}`, 16))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := f.Get("test"); err != nil || !slices.Equal(v.I32(), make([]int32, 4)) ||
		v.Type.String() != "i32[2 2]" {
		t.Errorf("got %v, %v", v, err)
	}
}
