package data

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// The layout of a catalogue (GNU gettext manual, "The Format of GNU MO
// Files"): seven 32-bit words in the writer's byte order, of which a reader
// needs the first five; then two tables of (length, offset) and the strings.
const (
	moMagic       = 0x950412de
	moHeaderBytes = 20 // magic, revision, count, table of msgids, table of msgstrs
	moEntryBytes  = 8  // length, offset
)

// readCatalogues reads every *.mo file below a directory.
func (r *reader) readCatalogues(ctx context.Context, path string) error {
	root, err := r.directory(path)
	if err != nil {
		return err
	}
	isCatalogue := func(d fs.DirEntry) bool {
		return shown(d) && (d.IsDir() || strings.HasSuffix(d.Name(), ".mo"))
	}
	return r.readTree(ctx, root, isCatalogue, parseMO)
}

// parseMO extracts the translated messages of a catalogue in either byte
// order. Any input gives pairs or an error.
func parseMO(text []byte) (parsed, error) {
	ids, translations, err := moTables(text)
	if err != nil {
		return parsed{}, err
	}
	var p parsed
	for i := range ids.count {
		id, err := ids.at(i)
		if err != nil {
			return parsed{}, err
		}
		translation, err := translations.at(i)
		if err != nil {
			return parsed{}, err
		}
		p.addMessage(id, translation)
	}
	return p, nil
}

// addMessage adds one entry of a catalogue. The entry of the empty msgid is
// its header.
func (p *parsed) addMessage(id, translation string) {
	if id == "" {
		return
	}
	if _, plain, ok := strings.Cut(id, "\x04"); ok {
		id = plain
	}
	id, _, _ = strings.Cut(id, "\x00")
	translation, _, _ = strings.Cut(translation, "\x00")
	pair := Pair{Source: oneLine(id), Target: oneLine(translation)}
	if pair.Source == "" || pair.Target == "" || !utf8.ValidString(id) ||
		!utf8.ValidString(translation) {
		p.dropped++
		return
	}
	p.pairs = append(p.pairs, pair)
}

// moTable is one of the two tables of strings.
type moTable struct {
	text   []byte // the whole file
	order  binary.ByteOrder
	start  uint64 // of the table, in bytes
	count  int
	budget int // bytes of strings that may still be read
}

// moTables checks the header and finds the two tables.
func moTables(text []byte) (ids, translations moTable, err error) {
	order, err := moOrder(text)
	if err != nil {
		return ids, translations, err
	}
	word := func(i int) uint64 { return uint64(order.Uint32(text[4*i:])) }
	if major := word(1) >> 16; major > 1 {
		return ids, translations, fmt.Errorf("catalogue revision %d is not known: write it again "+
			"with msgfmt", major)
	}
	count, size := word(2), uint64(len(text))
	for _, start := range []uint64{word(3), word(4)} {
		if start+count*moEntryBytes > size {
			return ids, translations, fmt.Errorf("catalogue cut short: a table of %d messages at "+
				"byte %d does not fit in %d bytes: copy the file again", count, start, size)
		}
	}
	ids = moTable{text: text, order: order, start: word(3), count: int(count), budget: len(text)}
	translations = ids
	translations.start = word(4)
	return ids, translations, nil
}

// moOrder finds the byte order from the magic number.
func moOrder(text []byte) (binary.ByteOrder, error) {
	if len(text) < moHeaderBytes {
		return nil, fmt.Errorf("catalogue of %d bytes has no header: copy the file again",
			len(text))
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint32(text) == moMagic {
			return order, nil
		}
	}
	return nil, errors.New("not a gettext catalogue (bad magic number): remove it or rename it")
}

// at returns string i of the table. Strings that together are longer than the
// file overlap, which no writer does and which would let a small file expand
// without bound.
func (t *moTable) at(i int) (string, error) {
	entry := t.text[t.start+uint64(i)*moEntryBytes:]
	length, offset := uint64(t.order.Uint32(entry)), uint64(t.order.Uint32(entry[4:]))
	if offset+length > uint64(len(t.text)) {
		return "", fmt.Errorf("catalogue cut short: message %d at byte %d has %d bytes of %d: "+
			"copy the file again", i, offset, length, len(t.text))
	}
	if t.budget -= int(length); t.budget < 0 {
		return "", errors.New("catalogue with overlapping messages: write it again with msgfmt")
	}
	return string(t.text[offset : offset+length]), nil
}
