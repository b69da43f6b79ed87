package images

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exif is Exif data with a width and an orientation.
func exif(order binary.AppendByteOrder, by uint16) []byte {
	b := []byte("II*\x00")
	if order == binary.BigEndian {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint16(order.AppendUint32(b, 8), 2)
	const short = 3
	for _, tag := range [][2]uint16{{0x100, 9}, {0x112, by}} {
		b = order.AppendUint16(order.AppendUint16(b, tag[0]), short)
		b = order.AppendUint16(order.AppendUint32(b, 1), tag[1])
		b = order.AppendUint16(b, 0)
	}
	return b
}

// inPNG and inJPEG put Exif data into a file.
func inPNG(content, exif []byte) []byte {
	const behind = 8 + 12 + 13 // the mark and the first chunk
	chunk := append([]byte("eXIf"), exif...)
	sum := crc32.ChecksumIEEE(chunk)
	chunk = append(binary.BigEndian.AppendUint32(nil, uint32(len(exif))), chunk...)
	chunk = binary.BigEndian.AppendUint32(chunk, sum)
	return slices.Insert(slices.Clone(content), behind, chunk...)
}

func inJPEG(content, exif []byte) []byte {
	exif = append([]byte("Exif\x00\x00"), exif...)
	segment := append([]byte("\xff\xe0\x00\x04ab\xff\xff\xe1"), // another one, and filling
		byte((len(exif)+2)>>8), byte(len(exif)+2))
	return slices.Insert(slices.Clone(content), 2, append(segment, exif...)...)
}

// uprights are what Pillow's ImageOps.exif_transpose makes of the rows abc and def, for each
// orientation.
var uprights = []string{"abc/def", "cba/fed", "fed/cba", "def/abc", "ad/be/cf", "da/eb/fc",
	"fc/eb/da", "cf/be/ad"}

// shades are a picture of grey for each letter, in squares, so that JPEG keeps them apart.
func shades(rows string) image.Image {
	const side = 16
	lines := strings.Split(rows, "/")
	img := image.NewGray(image.Rect(0, 0, side*len(lines[0]), side*len(lines)))
	for i := range img.Pix {
		x, y := i%img.Stride/side, i/img.Stride/side
		img.Pix[i] = 40 * (lines[y][x] - 'a' + 1)
	}
	return img
}

// TestUpright: a picture is seen as its Exif data says, in files of both kinds and byte
// orders, alone and in a batch.
func TestUpright(t *testing.T) {
	stored := shades("abc/def")
	var lossless, lossy bytes.Buffer
	if err := png.Encode(&lossless, stored); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&lossy, stored, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	for i, rows := range uprights {
		want := shades(rows)
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for name, content := range map[string][]byte{
				"PNG":  inPNG(lossless.Bytes(), exif(order, uint16(i+1))),
				"JPEG": inJPEG(lossy.Bytes(), exif(order, uint16(i+1))),
			} {
				got, err := Decode(content)
				if err != nil || got.Bounds() != want.Bounds() {
					t.Fatalf("%s, %d: %v, %v", name, i+1, got.Bounds(), err)
				}
				for y := range want.Bounds().Dy() {
					for x := range want.Bounds().Dx() {
						a, _, _, _ := got.At(x, y).RGBA()
						b, _, _, _ := want.At(x, y).RGBA()
						if a>>8 > b>>8+2 || b>>8 > a>>8+2 {
							t.Fatalf("%s, %d: %d at %d %d, want %d", name, i+1, a>>8, x, y, b>>8)
						}
					}
				}
			}
		}
		var straight bytes.Buffer
		if err := png.Encode(&straight, want); err != nil {
			t.Fatal(err)
		}
		root := tree(t, 2)
		write(t, filepath.Join(root, "red", "0.PNG"), straight.Bytes())
		plain := open(t, "dir:"+root, Options{})
		write(t, filepath.Join(root, "red", "0.PNG"), inPNG(lossless.Bytes(),
			exif(binary.BigEndian, uint16(i+1))))
		tagged := open(t, "dir:"+root, Options{})
		for k := range plain.train.len() {
			a, b := image.NewRGBA(image.Rect(0, 0, 9, 9)), image.NewRGBA(image.Rect(0, 0, 9, 9))
			plain.train.paint(a, k, nil)
			tagged.train.paint(b, k, nil)
			if !bytes.Equal(a.Pix, b.Pix) {
				t.Errorf("%d: a batch has other pixels of a picture that is turned", i+1)
			}
		}
	}
}

// TestNoOrientation: what is no orientation is none, and nothing that is cut off is read.
func TestNoOrientation(t *testing.T) {
	content := flat(3, 2, color.White)
	for _, data := range [][]byte{nil, []byte("II*\x00"), []byte("MM\x00*\xff\xff\xff\xff"),
		[]byte("what"), exif(binary.BigEndian, 0), exif(binary.LittleEndian, 9)} {
		if got := orientation(inPNG(content, data)); got != 1 {
			t.Errorf("% x is the orientation %d", data, got)
		}
	}
	for _, whole := range [][]byte{inPNG(content, exif(binary.LittleEndian, 6)),
		inJPEG(photo(3, 2), exif(binary.BigEndian, 6))} {
		if got := orientation(whole); got != 6 {
			t.Errorf("the orientation is %d, want 6", got)
		}
		for n := range min(len(whole), 100) {
			orientation(whole[:n])
		}
	}
}

// FuzzOrientation: no file is too strange.
func FuzzOrientation(f *testing.F) {
	f.Add(inPNG(flat(3, 2, color.White), exif(binary.LittleEndian, 6)))
	f.Add(inJPEG(photo(3, 2), exif(binary.BigEndian, 8)))
	f.Fuzz(func(t *testing.T, content []byte) {
		if by := orientation(content); by < 1 || by > 8 {
			t.Errorf("orientation %d", by)
		}
	})
}
