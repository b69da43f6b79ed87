package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"

	"github.com/gomem/gomem/graph/tensor"
)

const (
	// maxHeader bounds the header, in bytes, as the reference library does: a
	// damaged length must not make a reader allocate all memory.
	maxHeader   = 100_000_000
	metadataKey = "__metadata__"
)

// codes are the format's names of element types.
var codes = map[tensor.DType]string{
	tensor.F32: "F32", tensor.I32: "I32", tensor.U8: "U8", tensor.BF16: "BF16", tensor.F16: "F16",
	tensor.I64: "I64", tensor.F64: "F64", tensor.Bool: "BOOL", tensor.I8: "I8", tensor.I16: "I16",
	tensor.U16: "U16", tensor.U32: "U32", tensor.U64: "U64",
}

// foreign are the format's other element types, and the bits of an element.
var foreign = map[string]int{
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
	"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "C64": 64,
}

// readable are the element types of tensors that can be read.
const readable = "F32, F64, BF16, F16, I8, I16, I32, I64, U8, U16, U32, U64 or BOOL"

// spelling is what names of element types look like.
var spelling = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// parseDType is the element type of a name. One that tensors here do not have is Invalid.
func parseDType(code string) (tensor.DType, error) {
	for d, c := range codes {
		if c == code {
			return d, nil
		}
	}
	if !spelling.MatchString(code) {
		return tensor.Invalid, fmt.Errorf("unknown element type %q: want %s", code, readable)
	}
	return tensor.Invalid, nil
}

// Error says what is wrong with a file. Its message is one line.
type Error struct {
	Path   string // the file, "" if it has no name
	Tensor string // the tensor, "" if the trouble is with the whole file
	Err    error  // the cause
}

// Error gives path, tensor and cause.
func (e *Error) Error() string {
	s := "safetensors"
	if e.Path != "" {
		s += " " + e.Path
	}
	if e.Tensor != "" {
		s += fmt.Sprintf(": tensor %q", e.Tensor)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func tensorError(name, format string, args ...any) error {
	return &Error{Tensor: name, Err: fmt.Errorf(format, args...)}
}

// object reads the JSON object in raw and calls visit for its members. A
// repeated key is an error: two readers could disagree about which one counts.
func object(raw []byte, visit func(key string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return fmt.Errorf("bad JSON: %w", err)
		}
		key, ok := t.(string)
		if !ok || seen[key] {
			return fmt.Errorf("bad JSON: key %q twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return fmt.Errorf("bad JSON: %w", err)
		}
		if err := visit(key, value); err != nil {
			return err
		}
	}
	return closed(dec)
}

// closed demands the end of the object, and nothing after it.
func closed(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("bad JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bad JSON: something follows the object")
	}
	return nil
}

// parseHeader reads the header of a file with the given number of data bytes.
func parseHeader(raw []byte, data int64) ([]Entry, map[string]string, error) {
	if !utf8.Valid(raw) {
		return nil, nil, errors.New("header is not UTF-8")
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil, errors.New("header does not start with {")
	}
	var entries []Entry
	metadata := map[string]string{}
	err := object(raw, func(key string, value json.RawMessage) error {
		if key == metadataKey {
			return parseMetadata(value, metadata)
		}
		e, err := parseEntry(key, value, data)
		entries = append(entries, e)
		return err
	})
	if _, ok := errors.AsType[*Error](err); err != nil && !ok {
		err = fmt.Errorf("header: %w", err)
	}
	return entries, metadata, err
}

func parseMetadata(raw []byte, into map[string]string) error {
	err := object(raw, func(key string, value json.RawMessage) error {
		var s *string
		if err := json.Unmarshal(value, &s); err != nil || s == nil {
			return fmt.Errorf("value of %q is not a string", key)
		}
		into[key] = *s
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", metadataKey, err)
	}
	return nil
}

// parseEntry reads one tensor's description and checks it against itself and
// the number of data bytes.
func parseEntry(name string, raw []byte, data int64) (Entry, error) {
	var dtype *string
	var shape, offsets []int64
	err := object(raw, func(key string, value json.RawMessage) (err error) {
		switch key {
		case "dtype":
			err = json.Unmarshal(value, &dtype)
		case "shape":
			shape, err = integers(value)
		case "data_offsets":
			offsets, err = integers(value)
		default:
			err = fmt.Errorf("unknown key")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return Entry{}, tensorError(name, "%w", err)
	case dtype == nil || shape == nil || len(offsets) != 2:
		return Entry{}, tensorError(name, `want a "dtype", a "shape" and two "data_offsets"`)
	}
	t, err := parseType(*dtype, shape)
	if err != nil {
		return Entry{}, tensorError(name, "%w", err)
	}
	e := Entry{Name: name, Type: t, off: offsets[0], size: offsets[1] - offsets[0]}
	if t.DType == tensor.Invalid {
		e.code = *dtype
	}
	return e, e.check(offsets[1], data)
}

func parseType(dtype string, shape []int64) (tensor.Type, error) {
	d, err := parseDType(dtype)
	if err != nil {
		return tensor.Type{}, err
	}
	t := tensor.Type{DType: d}
	for _, n := range shape {
		if int64(int(n)) != n {
			return t, fmt.Errorf("axis of %d elements is too large", n)
		}
		t.Shape = append(t.Shape, tensor.Dim{Size: int(n)})
	}
	if d != tensor.Invalid {
		return t, t.Check()
	}
	wide := t // as many of the widest elements: their bytes can be counted
	wide.DType = tensor.F64
	return t, wide.Check()
}

// bytes is the storage that the entry's type needs. Of a type that nobody knows it is what
// the file has.
func (e Entry) bytes() int64 {
	bits, known := foreign[e.code]
	switch {
	case e.code == "":
		return e.Type.Bytes()
	case !known:
		return e.size
	}
	n := int64(e.Type.Elems())
	return n/8*int64(bits) + (n%8*int64(bits)+7)/8
}

// typeText is the entry's type in the format's words, of one that tensors here do not have.
func (e Entry) typeText() string {
	if e.code == "" {
		return e.Type.String()
	}
	return e.code + fmt.Sprint(e.Type.Sizes())
}

// check compares the range of the entry with its type and the data.
func (e Entry) check(end, data int64) error {
	switch {
	case e.off < 0 || end < e.off:
		return tensorError(e.Name, "offsets [%d, %d] are not a range", e.off, end)
	case end > data:
		return tensorError(e.Name, "bytes [%d, %d] are outside the %d bytes of data: the file is "+
			"truncated or damaged", e.off, end, data)
	case e.size != e.bytes():
		return tensorError(e.Name, "%d bytes for %s, which needs %d", e.size, e.typeText(),
			e.bytes())
	}
	return nil
}

// integers reads an array of integers; the result is never nil.
func integers(raw []byte) ([]int64, error) {
	var list []*int64
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, errors.New("not a list of integers")
	}
	out := make([]int64, len(list))
	for i, p := range list {
		if p == nil {
			return nil, errors.New("not a list of integers")
		}
		out[i] = *p
	}
	return out, nil
}
