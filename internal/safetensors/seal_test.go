package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
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

// memory is a file in memory.
type memory struct {
	bytes.Buffer
	fails bool // WriteAt does
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if m.fails {
		return 0, errFull
	}
	return copy(m.Bytes()[off:], p), nil
}

// content is what a file holds.
type content struct {
	entries  []Entry
	metadata map[string]string
	data     map[string][]byte
}

// sample has two tensors of one type, which could be exchanged.
func sample() content {
	c := content{metadata: map[string]string{"step": "20", "seed": "7"}, data: map[string][]byte{}}
	for i, name := range []string{"a", "b", "c"} {
		t := tensor.Of(tensor.F32, 2, 3)
		if i == 2 {
			t = tensor.Of(tensor.U8, 5)
		}
		c.entries = append(c.entries, Entry{Name: name, Type: t})
		for k := range t.Bytes() {
			c.data[name] = append(c.data[name], byte(31*i+int(k)))
		}
	}
	return c
}

func (c content) get(e Entry) ([]byte, error) { return c.data[e.Name], nil }

func (c content) sealed(t require) []byte {
	var m memory
	if err := WriteSealed(&m, c.entries, c.metadata, Whole(c.get)); err != nil {
		t.Fatal(err)
	}
	return m.Bytes()
}

// require is what a test and a property have in common.
type require interface{ Fatal(args ...any) }

// readAll is everything that a reader learns of a file, or an error.
func readAll(b []byte) (content, error) {
	f, err := read(b)
	if err != nil {
		return content{}, err
	}
	c := content{entries: f.Entries(), metadata: f.Metadata(), data: map[string][]byte{}}
	for _, e := range c.entries {
		v, err := f.Get(e.Name)
		if err != nil {
			return content{}, err
		}
		c.data[e.Name] = v.Data
	}
	if !f.Sealed() {
		return c, errors.New("not sealed")
	}
	return c, nil
}

func (c content) equal(d content) bool {
	return maps.Equal(c.metadata, d.metadata) && maps.EqualFunc(c.data, d.data, bytes.Equal) &&
		slices.EqualFunc(c.entries, d.entries, func(a, b Entry) bool {
			return a.Name == b.Name && a.Type.Equal(b.Type)
		})
}

// TestEveryBit: no bit of a sealed file can change and be read in silence.
func TestEveryBit(t *testing.T) {
	want := sample()
	whole := want.sealed(t)
	if got, err := readAll(whole); err != nil || !got.equal(want) {
		t.Fatalf("read %v, %v; wrote %v", got, err, want)
	}
	for i := range whole {
		for bit := range 8 {
			whole[i] ^= 1 << bit
			if got, err := readAll(whole); err == nil && !got.equal(want) {
				t.Errorf("byte %d, bit %d: read %v", i, bit, got)
			} else if err == nil {
				t.Logf("byte %d, bit %d: another spelling of the same", i, bit)
			}
			whole[i] ^= 1 << bit
		}
	}
}

// TestExchanged: two tensors whose offsets or bytes changed places, a step that
// was changed by hand, and checksums that were taken out are all noticed.
func TestExchanged(t *testing.T) {
	whole := string(sample().sealed(t))
	offsets := strings.NewReplacer("[0,24]", "[24,48]", "[24,48]", "[0,24]")
	data := []byte(whole)
	start := len(data) - 53
	copy(data[start:], whole[start+24:start+48])
	copy(data[start+24:], whole[start:start+24])
	for what, damaged := range map[string]string{
		"offsets":   offsets.Replace(whole),
		"bytes":     string(data),
		"names":     strings.NewReplacer(`"a":`, `"b":`, `"b":`, `"a":`).Replace(whole),
		"shapes":    strings.Replace(whole, "[2,3]", "[3,2]", 1),
		"types":     strings.Replace(whole, "F32", "I32", 1),
		"step":      strings.Replace(whole, `"20"`, `"21"`, 1),
		"key":       strings.Replace(whole, `"seed"`, `"deed"`, 1),
		"no sums":   strings.Replace(whole, sumsKey, "checksum.nothing", 1),
		"no seal":   strings.Replace(whole, sealKey, "checksum.nothing", 1),
		"uppercase": strings.ToUpper(whole[:start]) + whole[start:],
	} {
		if damaged == whole {
			t.Fatalf("%s: nothing was changed", what)
		}
		if got, err := readAll([]byte(damaged)); err == nil {
			t.Errorf("%s: read %v", what, got)
		}
	}
}

// TestSealedAnything: whatever the names and metadata, and whatever bytes are
// overwritten, a sealed file is read as written or not at all.
func TestSealedAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := content{data: map[string][]byte{}}
		free := func(s string) bool { return s != metadataKey && s != sumsKey && s != sealKey }
		c.metadata = rapid.MapOfN(rapid.String().Filter(free), rapid.String(), 0, 4).Draw(t, "m")
		names := rapid.SliceOfNDistinct(rapid.String().Filter(free), 0, 5, rapid.ID[string])
		for _, n := range names.Draw(t, "names") {
			e := Entry{Name: n, Type: tensor.Of(tensor.U8, rapid.IntRange(1, 9).Draw(t, "size"))}
			size := int(e.Type.Bytes())
			c.entries = append(c.entries, e)
			c.data[n] = rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		}
		whole := c.sealed(t)
		if got, err := readAll(whole); err != nil || !got.equal(c) {
			t.Fatalf("read %v, %v; wrote %v", got, err, c)
		}
		at := rapid.IntRange(0, len(whole)-1).Draw(t, "at")
		copy(whole[at:], rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "garbage"))
		if got, err := readAll(whole); err == nil && !got.equal(c) {
			t.Fatalf("garbage at %d: read %v, wrote %v", at, got, c)
		}
	})
}

// TestSealErrors: what cannot be sealed is refused, and a header that cannot be
// written again is an error.
func TestSealErrors(t *testing.T) {
	c := sample()
	for _, key := range []string{sumsKey, sealKey} {
		err := WriteSealed(&memory{}, c.entries, map[string]string{key: ""}, Whole(c.get))
		if err == nil || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%s: %v", key, err)
		}
	}
	err := WriteSealed(&memory{fails: true}, c.entries, nil, Whole(c.get))
	if !errors.Is(err, errFull) {
		t.Errorf("no second header: %v", err)
	}
	bad := append(slices.Clone(c.entries), c.entries[0])
	if Check(c.entries, c.metadata) != nil || Check(bad, nil) == nil ||
		Check(c.entries, map[string]string{"k": "\xff"}) == nil {
		t.Error("Check does not say what WriteSealed would")
	}
}

// TestSealedFile: in a real file, and one that is damaged after it was opened.
func TestSealedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c := sample()
	err = WriteSealed(f, c.entries, c.metadata, Whole(c.get))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	in, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.Get("b"); err != nil {
		t.Error(err)
	}
	whole := c.sealed(t)
	whole[len(whole)-20] ^= 4
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = in.Get("b")
	if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrChecksum) ||
		e.Tensor != "b" || e.Path != path {
		t.Errorf("a damaged tensor: %v", err)
	}
}

// discard is a file that keeps nothing.
type discard struct{ io.Writer }

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// BenchmarkWrite is what checksums cost: nothing beside any disk.
func BenchmarkWrite(b *testing.B) {
	entries := []Entry{{Name: "a", Type: tensor.Of(tensor.U8, 64<<20)}}
	data := make([]byte, 64<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		err := WriteSealed(discard{io.Discard}, entries, nil,
			Whole(func(Entry) ([]byte, error) { return data, nil }))
		if err != nil {
			b.Fatal(err)
		}
	}
}

// TestHeaderIsPadded: a sealed header too is a multiple of 8 bytes.
func TestHeaderIsPadded(t *testing.T) {
	if n := binary.LittleEndian.Uint64(sample().sealed(t)); n%8 != 0 {
		t.Errorf("%d bytes", n)
	}
}
