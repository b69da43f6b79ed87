package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Write writes a file: the tensors that entries list, in that order, and the
// metadata. get is called once for each entry, in order, for its bytes, which
// are written before the next call: one tensor at a time is in memory. Names
// must differ. Errors about a tensor are *[Error]s; errors of w and of get are
// wrapped.
func Write(w io.Writer, entries []Entry, metadata map[string]string,
	get func(Entry) ([]byte, error)) error {
	_, err := write(w, entries, metadata, get)
	return err
}

// write writes a file and returns the checksums of its tensors.
func write(w io.Writer, entries []Entry, metadata map[string]string,
	get func(Entry) ([]byte, error)) ([]uint32, error) {
	header, err := formatHeader(entries, metadata)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, &Error{Err: err}
	}
	sums := make([]uint32, len(entries))
	for i, e := range entries {
		data, err := get(e)
		if err != nil {
			return nil, &Error{Tensor: e.Name, Err: err}
		}
		if int64(len(data)) != e.Type.Bytes() {
			return nil, tensorError(e.Name, "%d bytes for %s, which needs %d", len(data), e.Type,
				e.Type.Bytes())
		}
		if _, err := w.Write(data); err != nil {
			return nil, &Error{Tensor: e.Name, Err: err}
		}
		sums[i] = checksum(data)
	}
	return sums, nil
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
