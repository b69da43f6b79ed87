package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"unicode/utf8"
)

// Write writes a file: the tensors that entries list, in that order, and the
// metadata. put is called once for each entry, in order, and writes its bytes, in as many parts
// as it likes; [Whole] is for who has a tensor's at once. Names must differ. Errors about a
// tensor are *[Error]s; errors of w and of put are wrapped.
func Write(w io.Writer, entries []Entry, metadata map[string]string,
	put func(Entry, io.Writer) error) error {
	_, err := write(w, entries, metadata, put)
	return err
}

// Whole writes the bytes of a tensor that get has all of.
func Whole(get func(Entry) ([]byte, error)) func(Entry, io.Writer) error {
	return func(e Entry, w io.Writer) error {
		data, err := get(e)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
}

// write writes a file and returns the checksums of its tensors.
func write(w io.Writer, entries []Entry, metadata map[string]string,
	put func(Entry, io.Writer) error) ([]uint32, error) {
	header, err := formatHeader(entries, metadata)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, &Error{Err: err}
	}
	sums := make([]uint32, len(entries))
	for i, e := range entries {
		t := &measured{w: w, left: e.Type.Bytes()}
		if err := put(e, t); err != nil {
			return nil, &Error{Tensor: e.Name, Err: err}
		}
		if t.left != 0 {
			return nil, tensorError(e.Name, "%d bytes for %s, which needs %d",
				e.Type.Bytes()-t.left, e.Type, e.Type.Bytes())
		}
		sums[i] = t.sum
	}
	return sums, nil
}

// measured writes a tensor's bytes, and no more than it has.
type measured struct {
	w    io.Writer
	left int64
	sum  uint32
}

// Write writes a part.
func (c *measured) Write(data []byte) (int, error) {
	c.left -= int64(len(data))
	if c.left < 0 {
		return 0, nil // and who called says how many were too many
	}
	c.sum = crc32.Update(c.sum, castagnoli, data)
	return c.w.Write(data)
}

// description is a tensor as the header has it.
type description struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// formatHeader makes the length and the header, with members in the order of
// the data.
func formatHeader(entries []Entry, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(metadata) > 0 {
		for k, v := range metadata {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, &Error{Err: fmt.Errorf("metadata %q is not UTF-8", k)}
			}
		}
		if err := member(&b, metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	if err := describe(&b, entries); err != nil {
		return nil, err
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - 8
	if n > maxHeader {
		return nil, &Error{Err: fmt.Errorf("header of %d bytes: at most %d are allowed", n,
			maxHeader)}
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

func describe(b *bytes.Buffer, entries []Entry) error {
	seen := map[string]bool{metadataKey: true}
	var off int64
	for _, e := range entries {
		if err := writable(e, seen); err != nil {
			return &Error{Tensor: e.Name, Err: err}
		}
		seen[e.Name] = true
		end := off + e.Type.Bytes()
		if end < off {
			return tensorError(e.Name, "too many bytes in all")
		}
		d := description{DType: codes[e.Type.DType], Shape: e.Type.Sizes(),
			Offsets: [2]int64{off, end}}
		if err := member(b, e.Name, d); err != nil {
			return err
		}
		off = end
	}
	return nil
}

// writable reports an entry that no file can have.
func writable(e Entry, seen map[string]bool) error {
	switch {
	case e.Name == metadataKey:
		return errors.New("the name is reserved")
	case seen[e.Name]:
		return errors.New("the name is used twice")
	case !utf8.ValidString(e.Name):
		return errors.New("the name is not UTF-8")
	}
	return e.Type.Check()
}

// member appends `"key":value` to an object.
func member(b *bytes.Buffer, key string, value any) error {
	k, err := json.Marshal(key)
	if err != nil {
		return err
	}
	v, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if b.Bytes()[b.Len()-1] != '{' {
		b.WriteByte(',')
	}
	b.Write(k)
	b.WriteByte(':')
	b.Write(v)
	return nil
}
