package images

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
)

// upright is an image as its file says that it is held: cameras write the pixels as the
// sensor has them, and beside them how the camera was turned.
func upright(src image.Image, content []byte) image.Image {
	by := orientation(content)
	if by == 1 {
		return src
	}
	return &turned{src, by}
}

// orientation is the tag of this name in the Exif data of a JPEG or PNG, from 1 to 8; 1,
// upright, where there is none (CIPA DC-008, "Exif", section 4.6.4; PNG 3, section 11.3.3).
func orientation(content []byte) int {
	var exif []byte
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xd8")):
		exif = segmentOf(content[2:])
	case bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")):
		exif = chunkOf(content[8:])
	}
	if v := tagOf(exif); v >= 1 && v <= 8 {
		return v
	}
	return 1
}

// segmentOf is the Exif data of the segments of a JPEG, which come before its pixels.
func segmentOf(b []byte) []byte {
	const exif, scan = 0xe1, 0xda
	for len(b) >= 4 && b[0] == 0xff && b[1] != scan {
		if b[1] == 0xff { // filled up
			b = b[1:]
			continue
		}
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < 2 || 2+size > len(b) {
			return nil
		}
		if body, ok := bytes.CutPrefix(b[4:2+size], []byte("Exif\x00\x00")); b[1] == exif && ok {
			return body
		}
		b = b[2+size:]
	}
	return nil
}

// chunkOf is the Exif data of the chunks of a PNG.
func chunkOf(b []byte) []byte {
	const around = 12 // length, type and checksum
	for len(b) >= around {
		size := int64(binary.BigEndian.Uint32(b))
		if size > int64(len(b)-around) {
			return nil
		}
		if string(b[4:8]) == "eXIf" {
			return b[8:][:size]
		}
		b = b[around+size:]
	}
	return nil
}

// tagOf is the orientation in Exif data, a directory of TIFF; 0 if there is none.
func tagOf(b []byte) int {
	const head, entry, tag, short = 8, 12, 0x112, 3
	var order binary.ByteOrder = binary.LittleEndian
	if bytes.HasPrefix(b, []byte("MM\x00*")) {
		order = binary.BigEndian
	} else if !bytes.HasPrefix(b, []byte("II*\x00")) {
		return 0
	}
	if len(b) < head {
		return 0
	}
	first := int64(order.Uint32(b[4:]))
	if first+2 > int64(len(b)) {
		return 0
	}
	entries := b[first+2:]
	for range order.Uint16(b[first:]) {
		if len(entries) < entry {
			break
		}
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			return int(order.Uint16(entries[8:]))
		}
		entries = entries[entry:]
	}
	return 0
}

// turned is an image that is seen as an orientation says.
type turned struct {
	src image.Image
	by  int
}

// Bounds begins at zero; from 5 on, width and height change places.
func (t *turned) Bounds() image.Rectangle {
	size := t.src.Bounds().Size()
	if t.by >= 5 {
		size = image.Pt(size.Y, size.X)
	}
	return image.Rectangle{Max: size}
}

// ColorModel is the source's.
func (t *turned) ColorModel() color.Model { return t.src.ColorModel() }

// At is a pixel.
func (t *turned) At(x, y int) color.Color {
	p := t.from(x, y)
	return t.src.At(p.X, p.Y)
}

// RGBA64At is a pixel, without asking for memory.
func (t *turned) RGBA64At(x, y int) color.RGBA64 {
	p := t.from(x, y)
	if src, ok := t.src.(image.RGBA64Image); ok {
		return src.RGBA64At(p.X, p.Y)
	}
	return color.RGBA64Model.Convert(t.src.At(p.X, p.Y)).(color.RGBA64)
}

// from is where in the source a pixel is.
func (t *turned) from(x, y int) image.Point {
	b := t.src.Bounds()
	right, bottom := b.Dx()-1, b.Dy()-1
	if t.by >= 5 {
		x, y = y, x
	}
	switch t.by {
	case 2, 7, 3, 8:
		x = right - x
	}
	switch t.by {
	case 4, 7, 3, 6:
		y = bottom - y
	}
	return b.Min.Add(image.Pt(x, y))
}
