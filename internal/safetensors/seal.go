package safetensors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
)

// The metadata of a sealed file.
const (
	sumsKey = "checksum.crc32c" // 8 digits a tensor, in order of their data
	sealKey = "checksum.sha256" // of the header without this entry
)

// ErrChecksum says that a file is not as it was written.
var ErrChecksum = errors.New("the checksum is wrong: the file is damaged")

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of a tensor's bytes.
func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// WriterAt is what a sealed file is written to, from its beginning: a file.
type WriterAt interface {
	io.Writer
	io.WriterAt
}

// WriteSealed is Write with checksums in the metadata. They are known at the end
// only, so the header is then written again, in the same place.
func WriteSealed(w WriterAt, entries []Entry, metadata map[string]string,
	put func(Entry, io.Writer) error) error {
	blank, err := seal(entries, metadata, make([]uint32, len(entries)))
	if err != nil {
		return err
	}
	sums, err := write(w, entries, blank, put)
	if err != nil {
		return err
	}
	sealed, err := seal(entries, metadata, sums)
	if err != nil {
		return err
	}
	header, err := formatHeader(entries, sealed)
	if err != nil {
		return err
	}
	if _, err := w.WriteAt(header, 0); err != nil {
		return &Error{Err: err}
	}
	return nil
}

// Check reports what WriteSealed would refuse of a header.
func Check(entries []Entry, metadata map[string]string) error {
	_, err := seal(entries, metadata, make([]uint32, len(entries)))
	return err
}

// seal adds checksums to metadata. Their length depends on the number of entries
// alone.
func seal(entries []Entry, metadata map[string]string, sums []uint32) (map[string]string, error) {
	for _, key := range []string{sumsKey, sealKey} {
		if _, ok := metadata[key]; ok {
			return nil, &Error{Err: fmt.Errorf("metadata %q: the name is reserved", key)}
		}
	}
	var digits []byte
	for _, sum := range sums {
		digits = hex.AppendEncode(digits, binary.BigEndian.AppendUint32(nil, sum))
	}
	out := maps.Clone(metadata)
	if out == nil {
		out = map[string]string{}
	}
	out[sumsKey] = string(digits)
	header, err := formatHeader(entries, out)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(header)
	out[sealKey] = hex.EncodeToString(hash[:])
	return out, nil
}

// unseal takes the checksums out of metadata, nil if it has none. It demands that
// sealing what is left gives the same again.
func unseal(entries []Entry, metadata map[string]string) ([]uint32, error) {
	digits, hasSums := metadata[sumsKey]
	want, hasSeal := metadata[sealKey]
	if !hasSums && !hasSeal {
		return nil, nil
	}
	delete(metadata, sumsKey)
	delete(metadata, sealKey)
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != 4*len(entries) {
		return nil, fmt.Errorf("header: %w", ErrChecksum)
	}
	sums := make([]uint32, len(entries))
	for i := range sums {
		sums[i] = binary.BigEndian.Uint32(raw[4*i:])
	}
	sealed, err := seal(entries, metadata, sums)
	if err != nil {
		return nil, err
	}
	if sealed[sumsKey] != digits || sealed[sealKey] != want {
		return nil, fmt.Errorf("header: %w", ErrChecksum)
	}
	return sums, nil
}
