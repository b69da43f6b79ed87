package onnx

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gomem/gomem/graph/tensor"
)

// message is a message that a test writes.
type message []byte

func (m message) bytes(num protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, num, protowire.BytesType), b)
}

func (m message) number(num protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, num, protowire.VarintType), v)
}

// modelOf is a model with a tensor.
func modelOf(t message) []byte {
	return message(nil).bytes(7, message(nil).bytes(5, t)).bytes(8, message(nil).number(2, 18))
}

func floats(v ...float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// TestTensors: elements are in raw bytes, in the numbers of their type, packed or not, or in a
// part of another file; too few, too many, and those of another field are errors.
func TestTensors(t *testing.T) {
	two := message(nil).number(1, 2).number(2, uint64(Float)).bytes(8, []byte("w"))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), floats(9, 3, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(key, value string) []byte {
		return message(nil).bytes(1, []byte(key)).bytes(2, []byte(value))
	}
	outside := two.number(14, 1).bytes(13, entry("location", "data"))
	apart := protowire.AppendFixed32(protowire.AppendTag(two, 4, protowire.Fixed32Type),
		math.Float32bits(3))
	apart = protowire.AppendFixed32(protowire.AppendTag(apart, 4, protowire.Fixed32Type),
		math.Float32bits(4))
	for name, c := range map[string]struct {
		tensor message
		err    string
	}{
		"raw":           {two.bytes(9, floats(3, 4)), ""},
		"packed":        {two.bytes(4, floats(3, 4)), ""},
		"apart":         {message(apart), ""},
		"outside":       {outside.bytes(13, entry("offset", "4")), ""},
		"too few":       {two.bytes(9, floats(3)), "has 4 bytes"},
		"too many":      {two.bytes(9, floats(3, 4, 5)), "has 12 bytes"},
		"another field": {two.bytes(10, make([]byte, 16)), "has 0 bytes"},
		"beyond":        {outside.bytes(13, entry("offset", "8")), "too few for"},
		"before":        {outside.bytes(13, entry("offset", "-4")), "have no place"},
		"elsewhere": {two.number(14, 1).bytes(13, entry("location", "../data")),
			"escapes"},
		"no file":  {two.number(14, 1).bytes(13, entry("location", "none")), "no such file"},
		"negative": {message(nil).number(1, math.MaxUint64).number(2, 1), "-1 elements"},
		"huge": {message(nil).number(1, 1<<31-1).number(1, 1<<31-1).number(1, 1<<31-1).number(2, 1),
			"too large"},
		"text":    {message(nil).number(2, 8), "are string"},
		"unknown": {message(nil).number(2, 99), "are type 99"},
	} {
		path := filepath.Join(dir, "model.onnx")
		if err := os.WriteFile(path, modelOf(c.tensor), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		var v tensor.View
		if err == nil {
			v, err = f.View(f.Graph.Initializers[0])
		}
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", name, err, c.err)
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.err == "" && (v.F32()[0] != 3 || v.F32()[1] != 4):
			t.Errorf("%s: %v", name, v)
		}
	}
}

// TestDeep: graphs within graphs end.
func TestDeep(t *testing.T) {
	g := message(nil)
	for range 10_000 {
		a := message(nil).bytes(6, g)
		g = message(nil).bytes(1, message(nil).bytes(5, a))
	}
	file := message(nil).bytes(7, g).bytes(8, message(nil).number(2, 18))
	if _, err := Decode(file); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("%v", err)
	}
}

// FuzzDecode: no file makes it panic, and a tensor that is given has the bytes that it says.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("../../front/onnx/testdata/*/*/model.onnx")
	if err != nil || len(files) == 0 {
		f.Fatal("no models: ", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(modelOf(message(nil).number(1, 2).number(2, 1).bytes(9, floats(1, 2))))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			return
		}
		for _, x := range m.Graph.Initializers {
			if v, err := x.View(nil); err == nil && int64(len(v.Data)) != v.Type.Bytes() {
				t.Errorf("%s has %d bytes", v.Type, len(v.Data))
			}
		}
	})
}
