package train

import (
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/quant"
)

// held is the type of a tensor of the checkpoint as a variable holds it, in a format or, "", as it
// is.
func held(format string, t graph.Type) graph.Type {
	if format == "" || t.Rank() != 2 {
		return t
	}
	packed, err := ops.PackedType(t.Size(0), t.Size(1), format)
	if err != nil {
		return t
	}
	return packed
}

// formatsOf are the formats of variables of one graph that are held in few bits.
func formatsOf(vars []graph.Value) map[*graph.Node]string {
	if len(vars) == 0 {
		return nil
	}
	return ops.Packings(vars[0].Graph())
}

// packPiece is about how many elements are read at a time.
const packPiece = 1 << 18

// packing is what is told the elements that are packed of variables in few bits, some at a time.
func (p *Public) packing(vars []graph.Value, formats map[*graph.Node]string) func(elements int) {
	var done, all int64
	for _, v := range vars {
		if formats[v.Node] != "" {
			all += int64(p.tensors[v.Node.Name].Type.Elems())
		}
	}
	return func(elements int) {
		if done += int64(elements); p.Packed != nil {
			p.Packed(done, all)
		}
	}
}

// pack gives a variable in a format of few bits the value of the checkpoint, some rows at a time,
// after each of which packed is told of their elements. Rows that are in the format already are
// taken as they are.
func (p *Public) pack(s *gomem.Session, v graph.Value, name string, packed func(int)) error {
	t := p.tensors[v.Node.Name]
	format, err := quant.Parse(name)
	if err != nil {
		return &ErrCheckpoint{Path: t.file, Err: err}
	}
	f, err := t.open()
	if err != nil {
		return &ErrCheckpoint{Path: t.file, Err: bare(err)}
	}
	defer closeRead(f)
	rows := t.packer(f, format, packed)
	size := v.Type().Size(1)
	return s.Write(v, func(part tensor.View, at int64) error {
		n := part.Type.Elems() / size
		if err := rows.pack(part.Data, int(at)/size, n); err != nil {
			return &ErrCheckpoint{Path: t.file, Err: bare(err)}
		}
		return nil
	})
}

// packer packs rows of a tensor.
type packer struct {
	publicTensor
	in       tensorFile
	to       quant.Format
	told     func(elements int)
	piece    int // rows that are read at a time
	buffer   []byte
	unpacked tensor.View
}

// packer packs rows of a matrix in a format, some at a time, and then tells told of their elements.
func (t publicTensor) packer(f tensorFile, format quant.Format, told func(int)) *packer {
	rows, width := t.Type.Size(0), t.Type.Size(1)
	p := &packer{publicTensor: t, in: f, to: format, told: told,
		piece: min(rows, max(1, packPiece/max(1, width)))}
	if t.format() != format {
		p.buffer = make([]byte, p.piece*t.rowBytes())
		p.unpacked = tensor.New(tensor.Of(graph.F32, p.piece*width))
	}
	return p
}

// pack writes n rows from the one of a number on. Rows that are in the format already are taken as
// they are.
func (p *packer) pack(out []byte, from, n int) error {
	size, width := len(out)/n, p.Type.Size(1)
	for at := 0; at < n; at += p.piece {
		n := min(p.piece, n-at)
		packed := out[at*size : (at+n)*size]
		if p.format() == p.to {
			if err := p.readRows(p.in, packed, from+at); err != nil {
				return err
			}
			p.told(n * width)
			continue
		}
		raw, x := p.buffer[:n*p.rowBytes()], some(p.unpacked, 0, n*width)
		if err := p.readRows(p.in, raw, from+at); err != nil {
			return err
		}
		p.unpack(x, raw, n)
		if bad, i := nonFinite(x); i >= 0 {
			return fmt.Errorf("tensor %s has an element that is %v, which %s has not",
				shownName(p.Name), bad, p.to)
		}
		packRows(p.to, packed, x.F32(), n)
		p.told(n * width)
	}
	return nil
}

// packRows packs n rows.
func packRows(format quant.Format, out []byte, x []float32, n int) {
	size, width := len(out)/n, len(x)/n
	eachRow(n, func(i int) {
		format.Pack(out[i*size:(i+1)*size], x[i*width:(i+1)*width])
	})
}
