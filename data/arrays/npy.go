package arrays

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/legible"
)

// magic begins every .npy file.
const magic = "\x93NUMPY"

// mostHeader bounds the text of a header, in bytes, as NumPy does.
const mostHeader = 10_000

// elements are the types that arrays may have, by NumPy's codes.
var elements = map[string]tensor.DType{"<f2": tensor.F16, "<f4": tensor.F32, "<f8": tensor.F64,
	"|i1": tensor.I8, "<i2": tensor.I16, "<i4": tensor.I32, "<i8": tensor.I64,
	"|u1": tensor.U8, "<u2": tensor.U16, "<u4": tensor.U32, "<u8": tensor.U64, "|b1": tensor.Bool}

// others are types that arrays of NumPy may have and that are not computed with, by the kind
// letter of their codes.
var others = map[byte]string{'f': "float", 'c': "complex", 'O': "objects", 'S': "bytes",
	'U': "texts", 'V': "structures", 'M': "dates", 'm': "times"}

// readArray reads an .npy file of size bytes. Nothing is allocated for what is not there.
func readArray(in io.Reader, size int64) (tensor.View, error) {
	kind, header, err := readHeader(in, size)
	if err != nil {
		return tensor.View{}, err
	}
	if have := size - header; have != kind.Bytes() {
		return tensor.View{}, fmt.Errorf("%d bytes follow its header, and %s takes %d", have, kind,
			kind.Bytes())
	}
	v := tensor.New(kind)
	if _, err := io.ReadFull(in, v.Data); err != nil {
		return v, cut(err)
	}
	if kind.DType == tensor.Bool {
		for i, b := range v.Data {
			if b > 1 {
				return v, fmt.Errorf("element %d is the byte %d, which is no bool", i, b)
			}
		}
	}
	return v, nil
}

// cut says that there is less than was said.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends in the middle")
	}
	return err
}

// readHeader reads what is before the elements, and says how many bytes that is.
func readHeader(in io.Reader, size int64) (kind tensor.Type, length int64, err error) {
	start := make([]byte, len(magic)+2)
	if _, err := io.ReadFull(in, start); err != nil {
		return kind, 0, cut(err)
	}
	if string(start[:len(magic)]) != magic {
		return kind, 0, errors.New("it does not begin as an .npy file does")
	}
	width := 4
	switch version := start[len(magic)]; version {
	case 1:
		width = 2
	case 2, 3:
	default:
		return kind, 0, fmt.Errorf("it is of version %d of the format: want 1 to 3", version)
	}
	count := make([]byte, 4)
	if _, err := io.ReadFull(in, count[:width]); err != nil {
		return kind, 0, cut(err)
	}
	n := int64(binary.LittleEndian.Uint32(count))
	length = int64(len(start)+width) + n
	if n > mostHeader || length > size {
		return kind, 0, fmt.Errorf("its header is said to have %d bytes: want at most %d, and no "+
			"more than the file has", n, mostHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return kind, 0, cut(err)
	}
	kind, err = parseHeader(string(text))
	return kind, length, err
}

// parseHeader reads the dictionary of a header.
func parseHeader(text string) (kind tensor.Type, err error) {
	p := &parser{rest: text}
	seen := map[string]bool{}
	p.want("{")
	for !p.take("}") && p.err == nil {
		key := p.quoted()
		p.want(":")
		if seen[key] {
			p.fail("%q is there twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			kind.DType = p.element()
		case "fortran_order":
			if p.truth() {
				p.fail("it is in Fortran's order: save numpy.ascontiguousarray of it")
			}
		case "shape":
			kind.Shape = p.shape()
		default:
			p.fail("its header has a key %s", strconv.Quote(key))
		}
		if !p.take(",") {
			p.want("}")
			break
		}
	}
	if p.space(); p.rest != "" {
		p.fail("something follows the dictionary of its header")
	}
	if len(seen) != 3 {
		p.fail("its header has no descr, no fortran_order or no shape")
	}
	if p.err != nil {
		return tensor.Type{}, p.err
	}
	return kind, kind.Check()
}

// parser reads the literals of Python that a header has. It keeps its first error.
type parser struct {
	rest string
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \n") }

// take takes a text if it is next.
func (p *parser) take(text string) (ok bool) {
	p.space()
	p.rest, ok = strings.CutPrefix(p.rest, text)
	return ok
}

func (p *parser) want(text string) {
	if !p.take(text) {
		p.fail("its header has no %s before %s", text, strconv.Quote(legible.Cut(p.rest, 20)))
	}
}

// quoted is a string.
func (p *parser) quoted() string {
	p.want("'")
	text, rest, ok := strings.Cut(p.rest, "'")
	if !ok || strings.Contains(text, `\`) {
		p.fail("its header has a text without an end")
		return ""
	}
	p.rest = rest
	return text
}

// element is a type of elements.
func (p *parser) element() tensor.DType {
	if p.take("[") {
		p.fail("its elements are structures: save each field as an array of its own")
		return tensor.Invalid
	}
	code := p.quoted()
	d, ok := elements[code]
	if !ok && p.err == nil {
		p.err = foreign(code)
	}
	return d
}

// foreign is the error of elements that are not computed with.
func foreign(code string) error {
	const want = "want floats of 16 to 64 bits, integers of 8 to 64, or bool"
	if len(code) < 2 {
		return fmt.Errorf("its elements are %s: %s", strconv.Quote(code), want)
	}
	if _, ok := elements["<"+code[1:]]; ok && code[0] == '>' {
		return fmt.Errorf("its elements are big endian: save .astype('<%s') of it", code[1:])
	}
	name, ok := others[code[1]]
	numbers := code[1] == 'f' || code[1] == 'c'
	if n, err := strconv.Atoi(code[2:]); err == nil && n < 64 && numbers {
		name += strconv.Itoa(8 * n)
	}
	if !ok {
		name = strconv.Quote(legible.Cut(code, 20))
	}
	return fmt.Errorf("its elements are %s: %s", name, want)
}

func (p *parser) truth() bool {
	switch {
	case p.take("True"):
		return true
	case p.take("False"):
		return false
	}
	p.fail("fortran_order is neither True nor False")
	return false
}

// shape is a tuple of sizes.
func (p *parser) shape() (shape []tensor.Dim) {
	p.want("(")
	for !p.take(")") && p.err == nil {
		p.space()
		digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		n, err := strconv.ParseInt(p.rest[:digits], 10, 32)
		if err != nil {
			p.fail("its shape has something that is no size, or too large")
			return nil
		}
		p.rest = p.rest[digits:]
		shape = append(shape, tensor.Dim{Size: int(n)})
		if !p.take(",") {
			p.want(")")
			break
		}
	}
	return shape
}

// header is what begins the .npy file of a type: a multiple of 64 bytes, as NumPy has it.
func header(t tensor.Type) ([]byte, error) {
	code := ""
	for c, d := range elements {
		if d == t.DType {
			code = c
		}
	}
	if code == "" {
		return nil, fmt.Errorf("NumPy has no %s", t.DType)
	}
	shape := ""
	for _, n := range t.Sizes() {
		shape += strconv.Itoa(n) + ", "
	}
	if shape = strings.TrimSuffix(shape, " "); t.Rank() > 1 {
		shape = strings.TrimSuffix(shape, ",")
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", code, shape)
	before := len(magic) + 4
	text += strings.Repeat(" ", 63-(before+len(text))%64) + "\n"
	out := append([]byte(magic), 1, 0)
	return append(binary.LittleEndian.AppendUint16(out, uint16(len(text))), text...), nil
}
