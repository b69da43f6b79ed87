package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image/color"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/gomem/gomem/data"
)

// oneLine reports an error that is not one line that can be printed.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q", err)
	}
}

// claiming is a PNG file that says another size than it has.
func claiming(content []byte, width, height uint32) []byte {
	b := bytes.Clone(content)
	binary.BigEndian.PutUint32(b[16:], width)
	binary.BigEndian.PutUint32(b[20:], height)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// FuzzPicture: a picture has pixels, no more than are allowed, and takes memory in a proportion
// to its file; of anything else the error is one line, and takes no more.
func FuzzPicture(f *testing.F) {
	png, jpeg := flat(3, 2, color.White), photo(3, 2)
	f.Add(png)
	f.Add(jpeg)
	f.Add(png[:len(png)-9])
	f.Add(claiming(png, 8000, 8000))
	f.Add(claiming(png, 0x7fffffff, 0x7fffffff))
	f.Add(claiming(png, 0, 1))
	if at := bytes.Index(jpeg, []byte{0xff, 0xc0}); at > 0 {
		large := bytes.Clone(jpeg)
		copy(large[at+5:], []byte{0x1f, 0xff, 0x1f, 0xff})
		f.Add(large)
	}
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add([]byte("GIF89a"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		img, err := Decode(content)
		runtime.ReadMemStats(&after)
		// A JPEG has half a thousand pixels a byte at most, of which each takes some bytes while
		// its parts are put together; a PNG has eight thousand of a bit each.
		const most, least = 20 << 10, 4 << 20
		if took := after.TotalAlloc - before.TotalAlloc; took > least+most*uint64(len(content)) {
			t.Errorf("%d bytes take %d", len(content), took)
		}
		if err != nil {
			oneLine(t, err)
			return
		}
		if size := img.Bounds().Size(); size.X < 1 || size.Y < 1 || size.X > maxPixels/size.Y {
			t.Errorf("%v", size)
		}
	})
}

// FuzzCIFAR: a batch is read if, and only if, it is whole records of the ten classes; else the
// error is a *data.Error of one line that names the file.
func FuzzCIFAR(f *testing.F) {
	record := make([]byte, cifarRecord)
	f.Add(record)
	f.Add(append(bytes.Clone(record), append([]byte{9}, record[1:]...)...))
	f.Add(append([]byte{10}, record[1:]...))
	f.Add(record[1:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "data_batch_1.bin")
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		r := &reader{ctx: t.Context(), path: path}
		records, err := r.readRecords(path, len(cifarNames()))
		whole := len(content) > 0 && len(content)%cifarRecord == 0
		for at := 0; whole && at < len(content); at += cifarRecord {
			whole = content[at] <= 9
		}
		if (err == nil) != whole || err == nil && !bytes.Equal(records, content) {
			t.Errorf("%d bytes: %v", len(content), err)
		}
		if err != nil {
			if bad, ok := errors.AsType[*data.Error](err); !ok || bad.Path != path {
				t.Errorf("%+v", err)
			}
			oneLine(t, err)
		}
	})
}
