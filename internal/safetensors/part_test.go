package safetensors

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/tensor"
)

// TestParts: a tensor may be read in any parts, in any order, by anybody: together they have
// its checksum, of no other part is anything read, and any bit that has flipped is noticed.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "data")
		list := []Entry{{Name: "before", Type: tensor.Of(tensor.U8, 3)},
			{Name: "x", Type: tensor.Of(tensor.U8, len(data))}}
		var m memory
		if err := WriteSealed(&m, list, nil, Whole(func(e Entry) ([]byte, error) {
			return map[string][]byte{"before": {1, 2, 3}, "x": data}[e.Name], nil
		})); err != nil {
			t.Fatal(err)
		}
		flip := rapid.IntRange(-1, 8*len(data)-1).Draw(t, "flip")
		if flip >= 0 {
			m.Bytes()[m.Len()-len(data)+flip/8] ^= 1 << (flip % 8)
		}
		r := &counting{Reader: bytes.NewReader(m.Bytes())}
		f, err := Read(r, int64(m.Len()))
		if err != nil {
			t.Fatal(err)
		}
		r.bytes = 0
		got, sum := make([]byte, len(data)), uint32(0)
		for len(data) > 0 && r.bytes < len(data) { // from both ends
			n := rapid.IntRange(1, len(data)-r.bytes).Draw(t, "n")
			lo := rapid.SampledFrom([]int{r.front, len(data) - r.back - n}).Draw(t, "from")
			if lo == r.front {
				r.front += n
			} else {
				r.back += n
			}
			own, err := f.ReadPart("x", got[lo:lo+n], int64(lo))
			if err != nil {
				t.Fatal(err)
			}
			sum ^= own
		}
		if r.bytes != len(data) || flip < 0 && !bytes.Equal(got, data) {
			t.Fatalf("%d bytes are read, %v of %v", r.bytes, got, data)
		}
		if err := f.CheckParts("x", sum); errors.Is(err, ErrChecksum) != (flip >= 0) {
			t.Fatalf("bit %d flipped: %v", flip, err)
		}
	})
}

// counting counts bytes that are read, and those at both ends.
type counting struct {
	*bytes.Reader
	bytes, front, back int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.bytes += len(p)
	return c.Reader.ReadAt(p, off)
}

// TestBadParts: what is not in a file is refused, and so are bytes that are no truth values.
func TestBadParts(t *testing.T) {
	var m memory
	e := []Entry{{Name: "x", Type: tensor.Of(tensor.Bool, 4)}}
	get := func(Entry) ([]byte, error) { return []byte{0, 1, 2, 1}, nil }
	if err := Write(&m, e, nil, Whole(get)); err != nil {
		t.Fatal(err)
	}
	f, err := Read(bytes.NewReader(m.Bytes()), int64(m.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		n, at int
	}{{"y", 1, 0}, {"x", 1, -1}, {"x", 2, 3}, {"x", 0, 5}, {"x", 2, 2}} {
		if _, err := f.ReadPart(c.name, make([]byte, c.n), int64(c.at)); err == nil {
			t.Errorf("%+v is read", c)
		}
	}
	if _, err := f.ReadPart("x", make([]byte, 2), 0); err != nil || f.CheckParts("x", 9) != nil {
		t.Error("of a file without checksums: ", err)
	}
	if f.CheckParts("y", 0) == nil {
		t.Error("what is not there is as it was")
	}
	var short memory
	short.Write(m.Bytes()[:m.Len()-1])
	cut := &File{r: bytes.NewReader(short.Bytes()), data: f.data, byName: f.byName,
		entries: f.entries}
	if _, err := cut.ReadPart("x", make([]byte, 2), 2); !errors.Is(err, io.EOF) {
		t.Error("what has been cut off is read: ", err)
	}
}
