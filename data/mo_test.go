package data

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makeMO writes a catalogue of (msgid, msgstr) entries, little- or big-endian.
func makeMO(big bool, entries ...[2]string) string {
	var order binary.AppendByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	const header = 28
	n := uint32(len(entries))
	var out, text []byte
	for _, word := range []uint32{moMagic, 0, n, header, header + 8*n, 0, 0} {
		out = order.AppendUint32(out, word)
	}
	for side := range 2 {
		for _, entry := range entries {
			out = order.AppendUint32(out, uint32(len(entry[side])))
			out = order.AppendUint32(out, header+16*n+uint32(len(text)))
			text = append(append(text, entry[side]...), 0)
		}
	}
	return string(append(out, text...))
}

func TestCatalogues(t *testing.T) {
	root := t.TempDir()
	writeAt(t, filepath.Join(root, "LC_MESSAGES/big.mo"), makeMO(true,
		[2]string{"", "Content-Type: text/plain; charset=UTF-8\n"},
		[2]string{"menu\x04Open\n  file", "Datei öffnen"},
		[2]string{"%d file\x00%d files", "%d Datei\x00%d Dateien"}))
	writeAt(t, filepath.Join(root, "small.mo"), makeMO(false,
		[2]string{"Close", "Schließen"}, [2]string{"New", ""}, [2]string{"Old", "\xe4lter"}))
	writeAt(t, filepath.Join(root, "notes.txt"), "not a catalogue")
	c := open(t, "mo:"+root, Options{})
	want := []Pair{{"%d file", "%d Datei"}, {"Close", "Schließen"}, {"Open file", "Datei öffnen"}}
	if got := sorted(c); !slices.Equal(got, want) {
		t.Errorf("pairs %q, want %q", got, want)
	}
	if c.Info.Files != 2 || c.Info.Dropped != 2 {
		t.Errorf("%d files, %d dropped; want 2 and 2", c.Info.Files, c.Info.Dropped)
	}
}

func TestParseMORefuses(t *testing.T) {
	good := makeMO(false, [2]string{"abc", "def"}, [2]string{"ghi", "jkl"})
	patch := func(at int, word uint32) string {
		b := []byte(good)
		binary.LittleEndian.PutUint32(b[at:], word)
		return string(b)
	}
	tests := []struct{ name, text, want string }{
		{"empty", "", "no header"},
		{"header cut short", good[:19], "no header"},
		{"bad magic", patch(0, 0x12345678), "bad magic"},
		{"unknown revision", patch(4, 2<<16), "revision 2"},
		{"too many messages", patch(8, 1<<31), "does not fit"},
		{"most messages", patch(8, 1<<32-1), "does not fit"},
		{"msgids outside", patch(12, 1<<32-8), "does not fit"},
		{"msgstrs outside", patch(16, uint32(len(good)-8)), "does not fit"},
		{"tables cut short", good[:50], "does not fit"},
		{"strings cut short", good[:len(good)-2], "cut short"},
		{"long msgid", patch(28, 1<<32-1), "message 0 at byte"},
		{"msgid outside", patch(32, 1<<32-1), "message 0 at byte"},
		{"long msgstr", patch(28+16, 1<<31), "message 0 at byte"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := parseMO([]byte(test.text)); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestParseMOOverlap feeds a catalogue whose every message is the whole file:
// without a bound its strings would be thousands of times its size.
func TestParseMOOverlap(t *testing.T) {
	const n, size = 1000, 16 << 10
	text := make([]byte, size)
	for i, word := range []uint32{moMagic, 0, n, moHeaderBytes, moHeaderBytes} {
		binary.LittleEndian.PutUint32(text[4*i:], word)
	}
	for i := range n {
		binary.LittleEndian.PutUint32(text[moHeaderBytes+moEntryBytes*i:], size)
	}
	if _, err := parseMO(text); err == nil || !strings.Contains(err.Error(), "overlapping") {
		t.Errorf("%v, want an overlap", err)
	}
}

func FuzzMO(f *testing.F) {
	entry := [2]string{"context\x04one\x00many", "eins\x00viele"}
	for _, big := range []bool{false, true} {
		good := makeMO(big, [2]string{"", "header"}, entry, [2]string{"a", "b"})
		f.Add([]byte(good))
		f.Add([]byte(good[:len(good)-3]))
		f.Add([]byte(good[:40]))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parseMO(text)
		total := 0
		for _, pair := range p.pairs {
			total += len(pair.Source) + len(pair.Target)
			if pair.Source == "" || pair.Target == "" ||
				strings.ContainsAny(pair.Source, "\x00\n") {
				t.Errorf("pair %q", pair)
			}
		}
		if err != nil && len(p.pairs) > 0 || total > 2*len(text) {
			t.Errorf("%d bytes of pairs from %d, error %v", total, len(text), err)
		}
	})
}
